"""The methods of a wind release: one module each, with its options, its queries and its steps."""

from __future__ import annotations

from gridveil.wind.methods.base import Method
from gridveil.wind.methods.laplace import Laplace
from gridveil.wind.methods.synthetic import Synthetic
from gridveil.wind.methods.tuned import Tuned
from gridveil.wind.methods.wpo import Wpo

BY_NAME: dict[str, type[Method]] = {kind.method: kind for kind in (Tuned, Synthetic, Wpo, Laplace)}
"""The methods by the names that the statement, the command line and the plan page use."""

__all__ = ["BY_NAME", "Laplace", "Method", "Synthetic", "Tuned", "Wpo"]
