"""Studies: the paper's figures with correct privacy, compared with GridVeil's own methods.

A study works on public or made-up data with seeded noise. It is not a release.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from gridveil.studies.runner import Findings, run_study
from gridveil.studies.study_plan import Plan, Run, Study

if TYPE_CHECKING:
    from gridveil.studies.fig2 import Fig2
    from gridveil.studies.fig3 import Fig3
    from gridveil.studies.fig4 import Fig4
    from gridveil.studies.fig5 import Fig5

__all__ = ["Fig2", "Fig3", "Fig4", "Fig5", "Findings", "Plan", "Run", "Study", "run_study"]


def __getattr__(name: str) -> Any:
    # Load on demand: a worker loads only the study that it runs.
    if name in __all__:
        return getattr(importlib.import_module(f"gridveil.studies.{name.lower()}"), name)
    raise AttributeError(f"module 'gridveil.studies' has no attribute {name!r}")
