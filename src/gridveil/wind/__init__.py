"""Wind power records: read, plan, release, evaluate.

`read_records` seals the private power; `plan` and `release` take the method by name or as its
options (`Tuned`, `Wpo`, `Laplace`); `evaluate` compares a bundle with the real records, for the
owner alone. `RBF`, `Polynomial`, `BSpline` and `Columns` are features of the regression.

>>> import gridveil as gv
>>> gv.wind.RBF(5).names[0]
'rbf(speed, 2.5)'
"""

from __future__ import annotations

from gridveil.wind.demo import CAPACITY, demo_records, power_curve
from gridveil.wind.evaluation import Evaluation, evaluate
from gridveil.wind.features import RBF, BSpline, Columns, Polynomial
from gridveil.wind.methods import Laplace, Synthetic, Tuned, Wpo
from gridveil.wind.methods.tuned_weight_mix import weight_mix
from gridveil.wind.queries import huber
from gridveil.wind.records import Records, read_records
from gridveil.wind.regression import fit_features
from gridveil.wind.release import WindPlan, WindRelease, plan, release
from gridveil.wind.restoration.restore import restore
from gridveil.wind.row_blocks import ArrayRows, DaskRows

__all__ = [
    "CAPACITY",
    "RBF",
    "ArrayRows",
    "BSpline",
    "Columns",
    "DaskRows",
    "Evaluation",
    "Laplace",
    "Polynomial",
    "Records",
    "Synthetic",
    "Tuned",
    "WindPlan",
    "WindRelease",
    "Wpo",
    "demo_records",
    "evaluate",
    "fit_features",
    "huber",
    "plan",
    "power_curve",
    "read_records",
    "release",
    "restore",
    "weight_mix",
]
