"""Small problems whose only unknowns are the released values, to which cuts are added.

`nearest` is a quadratic programme: the values nearest to an aim by weighted least squares, within a
box and behind cuts. `unreachable` is linear programmes: which models to give up if the cuts have no
solution. Both are solved from scratch every time: with some hundred rows that takes milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import clarabel  # type: ignore[import-untyped]
import highspy
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from gridveil.errors import GridveilError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

TIGHT = 1e-9
_NEARLY = {"Solved", "AlmostSolved"}
# A cut counts as met if it is missed by no more than this.
_MISS = 1e-6
# A bound of the box is near if it is within this many deviations of the typical entry.
_FAR = 100.0


class Unsolved(GridveilError):
    """The solver gave up on a problem in public data."""


@dataclass(frozen=True)
class Total:
    """A number that the values should add up to: ``row @ values = goal``.

    `weight` is what a squared miss costs; None if the total must be met exactly.
    """

    row: Floats
    goal: float
    weight: float | None


@dataclass(frozen=True, eq=False)
class Aim:
    """The values that released ones should be near, how much each counts, and the public box.

    Parameters
    ----------
    centre
        One number per entry.
    weight
        What a squared miss of each costs.
    low, high
        The public box.
    totals
        Sums of entries that are known too.
    """

    centre: Floats
    weight: Floats
    low: Floats
    high: Floats
    totals: tuple[Total, ...] = ()


@dataclass
class Cuts:
    """Rows ``slope @ values <= bound``, and the model that each belongs to."""

    width: int
    slope: list[Floats] = field(default_factory=list)
    bound: list[float] = field(default_factory=list)
    model: list[int] = field(default_factory=list)

    def add(self, slope: Floats, bound: float, model: int) -> None:
        """Add a row."""
        self.slope.append(slope)
        self.bound.append(bound)
        self.model.append(model)

    def of(self, models: Iterable[int]) -> Cuts:
        """Return the rows of these models."""
        some = set(models)
        kept = [place for place, model in enumerate(self.model) if model in some]
        return Cuts(
            self.width,
            [self.slope[place] for place in kept],
            [self.bound[place] for place in kept],
            [self.model[place] for place in kept],
        )

    def matrix(self) -> sparse.csr_array:
        """Return the slopes of all rows as a sparse matrix."""
        rows = np.array(self.slope).reshape(-1, self.width)
        return sparse.csr_array(rows)

    def __len__(self) -> int:
        return len(self.bound)


def nearest(aim: Aim, cuts: Cuts) -> Floats | None:
    """Find the values nearest to the aim that meet the cuts, or None if no values in the box do.

    Bounds of the box that are far away are left out until a solution breaks them: such large
    numbers next to small ones would cost the solver its precision.
    """
    reach = _FAR / float(np.sqrt(np.median(aim.weight)))
    above, below = aim.high - aim.centre <= reach, aim.centre - aim.low <= reach
    while True:
        step = _step(aim, cuts, above, below)
        if step is None:
            return None
        values = aim.centre + step
        passed_above, passed_below = ~above & (values > aim.high), ~below & (values < aim.low)
        if not (passed_above.any() or passed_below.any()):
            return np.asarray(np.clip(values, aim.low, aim.high))
        above, below = above | passed_above, below | passed_below


def _step(aim: Aim, cuts: Cuts, above: Bools, below: Bools) -> Floats | None:
    """Compute the step from the aim to the nearest values that meet cuts and near bounds."""
    n, totals = len(aim.centre), aim.totals
    unit = 1.0 / float(np.median(aim.weight))
    weight = np.concatenate(
        [aim.weight * unit, [0.0 if t.weight is None else t.weight * unit for t in totals]]
    )
    # One more variable for each total (its miss) keeps the quadratic part diagonal.
    known = np.array([total.row for total in totals]).reshape(-1, n)
    sums = sparse.hstack([sparse.csr_array(known), -sparse.eye_array(len(totals))])
    fixed = [place for place, total in enumerate(totals) if total.weight is None]
    held = sparse.eye_array(n + len(totals), format="csr")[[n + place for place in fixed]]
    wide = sparse.eye_array(n, n + len(totals), format="csr")
    slopes = cuts.matrix()
    rows = sparse.hstack([slopes, sparse.csr_array((len(cuts), len(totals)))])
    matrix = sparse.csc_array(sparse.vstack([sums, held, rows, wide[above], -wide[below]]))
    right = np.concatenate(
        [
            np.array([total.goal for total in totals]) - known @ aim.centre,
            np.zeros(len(fixed)),
            np.array(cuts.bound) - slopes @ aim.centre,
            (aim.high - aim.centre)[above],
            (aim.centre - aim.low)[below],
        ]
    )
    equal = len(totals) + len(fixed)
    cones = [clarabel.NonnegativeConeT(len(right) - equal)]
    if equal:
        cones.insert(0, clarabel.ZeroConeT(equal))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = TIGHT
    quadratic = sparse.diags_array(2 * weight).tocsc()
    none = np.zeros(len(weight))
    found = clarabel.DefaultSolver(quadratic, none, matrix, right, cones, settings).solve()
    status = str(found.status)
    if "Infeasible" in status:
        return None
    step = np.array(found.x)
    over = matrix @ step - right
    over[:equal] = np.abs(over[:equal])
    # If the solver stopped early, a step that meets the rows will do, even if not the nearest.
    if status in _NEARLY or bool((over <= _MISS * (1 + np.abs(right))).all()):
        return step[:n]
    raise Unsolved(f"Clarabel ended with {status} on a public problem.")


def unreachable(aim: Aim, cuts: Cuts) -> list[int]:
    """Choose models to give up if no values in the box meet all cuts; none if some values do.

    These are all models whose own cuts can't be met. If there are none, it is the one model without
    which the other cuts are missed least.
    """
    missed, blamed = _misses(aim, cuts)
    alone = [model for model in missed if _misses(aim, cuts.of([model]))[0]]
    if alone or not missed:
        return alone
    everyone = set(cuts.model)

    def left(model: int) -> float:
        return sum(_misses(aim, cuts.of(everyone - {model}))[0].values())

    return [min(blamed, key=left)]


def _misses(aim: Aim, cuts: Cuts) -> tuple[dict[int, float], list[int]]:
    """Minimise the total miss of the cuts; return it by model, and the models with binding cuts.

    A miss is the distance of the values from a cut.
    """
    models, place = np.unique(cuts.model, return_inverse=True)
    n, size = len(aim.centre), np.maximum(np.linalg.norm(cuts.slope, axis=1), 1e-12)
    rows = sparse.diags_array(1 / size) @ cuts.matrix()
    miss = sparse.csr_array(
        (-np.ones(len(place)), (np.arange(len(place)), place)), shape=(len(place), len(models))
    )
    held = [total for total in aim.totals if total.weight is None]
    sums = sparse.csr_array(np.array([total.row for total in held]).reshape(-1, n))
    goals = np.array([total.goal for total in held])
    matrix = sparse.vstack(
        [
            sparse.hstack([rows, miss]),
            sparse.hstack([sums, sparse.csr_array((len(held), len(models)))]),
        ]
    )
    found = linear(
        np.concatenate([np.zeros(n), np.ones(len(models))]),
        matrix,
        np.concatenate([np.full(len(cuts), -np.inf), goals]),
        np.concatenate([np.array(cuts.bound) / size, goals]),
        np.concatenate([aim.low, np.zeros(len(models))]),
        np.concatenate([aim.high, np.full(len(models), np.inf)]),
    )
    if found is None:
        raise Unsolved("No values in the public range add up to the published total.")
    values, prices = found
    missed = {int(m): float(x) for m, x in zip(models, values[n:], strict=True) if x > _MISS}
    return missed, np.unique(models[place[np.abs(prices[: len(cuts)]) > TIGHT]]).tolist()


def linear(
    cost: Floats, matrix: Any, left: Floats, right: Floats, low: Floats, high: Floats
) -> tuple[Floats, Floats] | None:
    """Minimise ``cost @ x`` with ``left <= matrix @ x <= right``; return ``x`` and the row duals.

    Solved by HiGHS from scratch; None if there is no solution.
    """
    rows = sparse.csr_array(matrix)
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = len(cost), rows.shape[0]
    model.col_cost_, model.col_lower_, model.col_upper_ = cost, low, high
    model.row_lower_, model.row_upper_ = left, right
    model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    model.a_matrix_.start_ = rows.indptr
    model.a_matrix_.index_ = rows.indices
    model.a_matrix_.value_ = rows.data
    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("threads", 1)
    for tolerance in ("primal_feasibility_tolerance", "dual_feasibility_tolerance"):
        solver.setOptionValue(tolerance, TIGHT)
    solver.passModel(model)
    solver.run()
    status = solver.getModelStatus()
    if status == highspy.HighsModelStatus.kOptimal:
        solution = solver.getSolution()
        return np.array(solution.col_value), np.array(solution.row_dual)
    if status in (
        highspy.HighsModelStatus.kInfeasible,
        highspy.HighsModelStatus.kUnboundedOrInfeasible,
    ):
        return None
    raise Unsolved(f"HiGHS ended with {solver.modelStatusToString(status)} on a public problem.")
