"""Models with quadratic costs, solved by Clarabel's interior point with only the rows they need.

`min 1/2 x'Px + q'x` s.t. `Ax + s = b`, `s` zero (balances) or not below zero (bounds and branch
rows). An interior point does not warm-start, but with the branch rows added lazily (see
`lazy_rows`) the programme has no more than the generators' columns and a handful of dense rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import clarabel  # type: ignore[import-untyped]
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csc_matrix, csr_array, eye_array, vstack

from gridveil.grid.opf.formulation import Batch, Formulation
from gridveil.grid.opf.highs import NEGLIGIBLE
from gridveil.grid.opf.lazy_rows import Answer, Outcome, Rows, Solver, without_numbers

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

# A branch row that did not bind in more solutions in a row than this is dropped: every row makes
# each step of an interior point slower, and a row that is needed again is added again.
IDLE = 4
# A price below this share of the largest price counts as zero.
NO_PRICE = 1e-7


@dataclass(frozen=True)
class InteriorWay:
    """Clarabel's tolerance, and whether it may rescale the data."""

    tolerance: float = 1e-11
    equilibrate: bool = True


@dataclass(frozen=True)
class _Rows:
    """The matrix of all rows and what it was built for; most models can share it."""

    has_low: Bools
    has_high: Bools
    below: Ints
    above: Ints
    slacks: int
    matrix: csc_matrix


class QuadraticModel(Solver):
    """A quadratic programme in Clarabel, with the interface of `LinearModel`."""

    def __init__(self, form: Formulation, way: InteriorWay | None = None) -> None:
        self.form = form
        self.rows = Rows(form.flows.height)
        self._way = way or InteriorWay()
        self._branch_rows: list[Floats] = []
        # In how many models in a row each branch row has not been binding.
        self._idle: Ints = np.zeros(0, dtype=np.int64)
        self._kept: _Rows | None = None

    def load(self, batch: Batch, k: int) -> None:
        """Take the numbers of model `k`."""
        self._batch, self._k = batch, k
        self._drop()

    def add(self, places: Ints) -> None:
        """Add rows `sign F x - v <= room`."""
        lines, signs = self.rows.lines(places), self.rows.signs(places)
        table = signs[:, None] * self.form.flows.rows(lines)[:, self.form.columns.bus]
        self._branch_rows.extend(np.where(np.abs(table) > NEGLIGIBLE, table, 0.0))
        self.rows.extend(places)
        self._idle = np.concatenate([self._idle, np.zeros(len(places), dtype=np.int64)])
        self._kept = None

    def _drop(self) -> None:
        """Drop the branch rows that have not been binding for more than `IDLE` models."""
        idle = np.flatnonzero(self._idle > IDLE)
        if len(idle) == 0:
            return
        self.rows.drop(idle)
        gone = set(idle.tolist())
        self._branch_rows = [row for k, row in enumerate(self._branch_rows) if k not in gone]
        self._idle = np.delete(self._idle, idle)
        self._kept = None

    def run(self) -> Answer:
        """Solve the loaded model."""
        bounds, k, islands = self._batch.bounds, self._k, self.form.islands
        low, high = bounds.low[k], bounds.high[k]
        rows = self._rows(np.isfinite(low), np.isfinite(high))
        slack = np.full(rows.slacks, self.form.slack.price)
        lin = np.concatenate([bounds.lin[k], slack])
        room = self._batch.room[k].ravel()[self.rows.place]
        sides = [high[rows.above], -low[rows.below], np.zeros(rows.slacks)]
        b = np.concatenate([self._batch.demand[k], room, *sides])
        # Clarabel's tolerances need numbers near 1: divide by the largest power and price.
        unit, price = max(np.abs(b).max(initial=1.0), 1.0), max(np.abs(lin).max(initial=1.0), 1e-6)
        P = _diagonal(2.0 * bounds.quad[k] * unit / price, len(lin))
        cones = [clarabel.ZeroConeT(islands), clarabel.NonnegativeConeT(len(b) - islands)]
        found = clarabel.DefaultSolver(
            P, lin / price, rows.matrix, b / unit, cones, self._settings()
        ).solve()
        outcome = _outcome(found.status)
        if outcome is not Outcome.SOLVED:
            return without_numbers(outcome, self.form)
        z = np.array(found.z) * price
        duals = z[islands : islands + len(self.rows.place)]
        self._idle = np.where(duals > NO_PRICE * price, 0, self._idle + 1)
        x = np.array(found.x)[: len(self.form.columns)] * unit
        return Answer(outcome, x, -z[:islands], self.rows.spread(duals))

    def _rows(self, below: Bools, above: Bools) -> _Rows:
        """Return the matrix for columns with these finite bounds, rebuilt if anything changed."""
        kept = self._kept
        if kept is None or not (
            np.array_equal(kept.has_low, below) and np.array_equal(kept.has_high, above)
        ):
            kept = self._kept = self._build(below, above)
        return kept

    def _build(self, has_low: Bools, has_high: Bools) -> _Rows:
        """Stack the balances, the branch rows, and the finite bounds of columns and slack."""
        width, count = len(self.form.columns), len(self.rows.place)
        to_slack = self._to_slack()
        slacks = to_slack.shape[1]
        entries = (np.ones(width), (self.form.column_island, np.arange(width)))
        balances = csr_array(entries, shape=(self.form.islands, width + slacks))
        dense = np.array(self._branch_rows).reshape(count, width)
        branches = csr_array(np.hstack([dense, to_slack.toarray()]))
        every = csr_array(eye_array(width + slacks))
        above, below = np.flatnonzero(has_high), np.flatnonzero(has_low)
        bounded = np.concatenate([below, width + np.arange(slacks)])
        parts = [balances, branches, every[above], -every[bounded]]
        matrix = csc_matrix(csc_array(vstack([part for part in parts if part.shape[0]])))
        return _Rows(has_low, has_high, below, above, slacks, matrix)

    def _to_slack(self) -> csr_array:
        """Build the slack's entries in the branch rows: one slack for both rows of a branch."""
        count = len(self.rows.place)
        if not self.form.slack.lines:
            return csr_array((count, 0))
        lines, place = np.unique(self.rows.lines(self.rows.place), return_inverse=True)
        return csr_array((-np.ones(count), (np.arange(count), place)), shape=(count, len(lines)))

    def _settings(self) -> clarabel.DefaultSettings:
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.max_threads = 1
        settings.equilibrate_enable = self._way.equilibrate
        settings.tol_gap_abs = self._way.tolerance
        settings.tol_gap_rel = self._way.tolerance
        settings.tol_feas = self._way.tolerance
        return settings


def _diagonal(values: Floats, size: int) -> csc_matrix:
    """Make a square matrix of this size that has `values` at the start of its diagonal."""
    places = np.flatnonzero(values)
    starts = np.searchsorted(places, np.arange(size + 1))
    return csc_matrix((values[places], places, starts), shape=(size, size))


def _outcome(status: clarabel.SolverStatus) -> Outcome:
    # AlmostSolved and InsufficientProgress count as solved: the certificate decides.
    names = {
        "Solved": Outcome.SOLVED,
        "AlmostSolved": Outcome.SOLVED,
        "InsufficientProgress": Outcome.SOLVED,
        "PrimalInfeasible": Outcome.INFEASIBLE,
        "AlmostPrimalInfeasible": Outcome.INFEASIBLE,
        "DualInfeasible": Outcome.UNBOUNDED,
        "AlmostDualInfeasible": Outcome.UNBOUNDED,
    }
    return names.get(str(status), Outcome.FAILED)
