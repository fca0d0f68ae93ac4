"""Studies: the paper's figures reproduced with correct privacy, and ours beside them.

A study works on public or made-up data with seeded noise. It is not a release.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from gridveil.studies.plan import Plan, Run, Study
from gridveil.studies.runner import Findings, run_study

if TYPE_CHECKING:
    from gridveil.studies.fig2 import Fig2
    from gridveil.studies.fig3 import Fig3
    from gridveil.studies.fig4 import Fig4
    from gridveil.studies.fig5 import Fig5

__all__ = ["Fig2", "Fig3", "Fig4", "Fig5", "Findings", "Plan", "Run", "Study", "run_study"]


def __getattr__(name: str) -> Any:
    # On demand: a worker of one study loads what that study needs.
    if name in __all__:
        return getattr(importlib.import_module(f"gridveil.studies.{name.lower()}"), name)
    raise AttributeError(f"module 'gridveil.studies' has no attribute {name!r}")
