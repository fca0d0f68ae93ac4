"""The methods of a grid release; each is the class of its options."""

from __future__ import annotations

from gridveil.grid.methods.base import PENALTY, Method
from gridveil.grid.methods.certified import Certified
from gridveil.grid.methods.laplace import Laplace
from gridveil.grid.methods.paper import Paper

METHODS: dict[str, type[Method]] = {kind.method: kind for kind in (Certified, Paper, Laplace)}
"""The methods by name, the default first."""

__all__ = ["METHODS", "PENALTY", "Certified", "Laplace", "Method", "Paper"]
