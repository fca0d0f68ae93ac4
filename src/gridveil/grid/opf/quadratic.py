"""Models with quadratic costs: Clarabel's interior point, on the few rows that matter.

`min 1/2 x'Px + q'x` s.t. `Ax + s = b`, `s` zero (balances) or not below zero (bounds and branch
rows). An interior point does not warm-start, but with the branch rows added lazily (see `highs`)
the programme has no more than the generators' columns and a handful of dense rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import clarabel  # type: ignore[import-untyped]
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csc_matrix, csr_array, diags_array, eye_array, vstack

from gridveil.grid.opf.formulation import Batch, Formulation
from gridveil.grid.opf.highs import NEGLIGIBLE, Answer, Outcome, Rows, Solver, without_numbers

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class InteriorWay:
    """How tightly Clarabel is to solve, and whether it may rescale the data."""

    tolerance: float = 1e-11
    equilibrate: bool = True


class QuadraticModel(Solver):
    """A quadratic programme in Clarabel, with the interface of `LinearModel`."""

    def __init__(self, form: Formulation, way: InteriorWay | None = None) -> None:
        self.form = form
        self.rows = Rows(form.flows.height)
        self._way = way or InteriorWay()
        self._branch_rows: list[Floats] = []

    def load(self, batch: Batch, k: int) -> None:
        """Take the numbers of model `k`."""
        self._batch, self._k = batch, k

    def add(self, places: Ints) -> None:
        """Add rows `sign F x - v <= room`."""
        lines, signs = self.rows.lines(places), self.rows.signs(places)
        table = signs[:, None] * self.form.flows.rows(lines)[:, self.form.columns.bus]
        self._branch_rows.extend(np.where(np.abs(table) > NEGLIGIBLE, table, 0.0))
        self.rows.extend(places)

    def run(self) -> Answer:
        """Solve it."""
        bounds, k, width = self._batch.bounds, self._k, len(self.form.columns)
        slack_lines, to_slack = self._slacks()
        low = np.concatenate([bounds.low[k], np.zeros(len(slack_lines))])
        high = np.concatenate([bounds.high[k], np.full(len(slack_lines), np.inf)])
        lin = np.concatenate([bounds.lin[k], np.full(len(slack_lines), self.form.slack.price)])
        quad = np.concatenate([bounds.quad[k], np.zeros(len(slack_lines))])
        blocks = [self._balances(len(slack_lines)), self._limits(to_slack)]
        A, b = _stack(blocks, low, high)
        islands = self.form.islands
        # In units of the typical cost and power Clarabel's tolerances mean something.
        unit, price = max(np.abs(b).max(initial=1.0), 1.0), max(np.abs(lin).max(initial=1.0), 1e-6)
        P = csc_matrix(diags_array(2.0 * quad * unit / price))
        cones = [clarabel.ZeroConeT(islands), clarabel.NonnegativeConeT(len(b) - islands)]
        found = clarabel.DefaultSolver(
            P, lin / price, csc_matrix(A), b / unit, cones, self._settings()
        ).solve()
        outcome = _outcome(found.status)
        if outcome is not Outcome.SOLVED:
            return without_numbers(outcome, self.form)
        z = np.array(found.z) * price
        rows = z[islands : islands + len(self.rows.place)]
        x = np.array(found.x)[:width] * unit
        return Answer(outcome, x, -z[:islands], self.rows.spread(rows))

    def _slacks(self) -> tuple[Ints, csr_array]:
        """Give the branches that have slack, and where it stands in the branch rows."""
        count = len(self.rows.place)
        if not self.form.slack.lines:
            return np.zeros(0, np.int64), csr_array((count, 0))
        lines, place = np.unique(self.rows.lines(self.rows.place), return_inverse=True)
        entries = (-np.ones(count), (np.arange(count), place))
        return lines, csr_array(entries, shape=(count, len(lines)))

    def _balances(self, slacks: int) -> tuple[csr_array, Floats]:
        width = len(self.form.columns)
        entries = (np.ones(width), (self.form.column_island, np.arange(width)))
        matrix = csr_array(entries, shape=(self.form.islands, width + slacks))
        return matrix, self._batch.demand[self._k]

    def _limits(self, to_slack: csr_array) -> tuple[csr_array, Floats]:
        width = len(self.form.columns)
        dense = np.array(self._branch_rows).reshape(len(self.rows.place), width)
        both = np.hstack([dense, to_slack.toarray()])
        return csr_array(both), self._batch.room[self._k].ravel()[self.rows.place]

    def _settings(self) -> clarabel.DefaultSettings:
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.max_threads = 1
        settings.equilibrate_enable = self._way.equilibrate
        settings.tol_gap_abs = self._way.tolerance
        settings.tol_gap_rel = self._way.tolerance
        settings.tol_feas = self._way.tolerance
        return settings


def _stack(
    blocks: list[tuple[csr_array, Floats]], low: Floats, high: Floats
) -> tuple[csc_array, Floats]:
    """Put the finite bounds of the columns under the rows."""
    every = csr_array(eye_array(len(low)))
    below, above = np.flatnonzero(np.isfinite(high)), np.flatnonzero(np.isfinite(low))
    matrices = [block[0] for block in blocks] + [every[below], -every[above]]
    rights = [block[1] for block in blocks] + [high[below], -low[above]]
    A = csc_array(vstack([m for m in matrices if m.shape[0]]))
    return A, np.concatenate(rights)


def _outcome(status: clarabel.SolverStatus) -> Outcome:
    # AlmostSolved and InsufficientProgress are answers too: the certificate decides.
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
