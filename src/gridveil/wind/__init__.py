"""Wind power records: read, release, evaluate.

>>> import gridveil as gv
>>> gv.wind.RBF(5).names[0]
'rbf(speed, 2.5)'
"""

from __future__ import annotations

from gridveil.wind.features import RBF, BSpline, Columns, Polynomial
from gridveil.wind.records import Records, read_records
from gridveil.wind.release import WindPlan, WindRelease, plan, release

__all__ = [
    "RBF",
    "BSpline",
    "Columns",
    "Polynomial",
    "Records",
    "WindPlan",
    "WindRelease",
    "plan",
    "read_records",
    "release",
]
