"""Studies: the paper's figures reproduced with correct privacy, and ours beside them.

A study works on public or made-up data with seeded noise. It is not a release.
"""

from __future__ import annotations

from gridveil.studies.plan import Plan, Run, Study
from gridveil.studies.runner import Findings, run_study

__all__ = ["Findings", "Plan", "Run", "Study", "run_study"]
