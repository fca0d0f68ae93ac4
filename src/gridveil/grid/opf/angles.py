"""The sparse form of the linear models, with the angle of every bus as a column.

The other form (see `lazy_rows`) has one dense row of the PTDF for each branch near its limit: few
rows, unless many branches are near their limits. Here all rows are present, and all are sparse.
Flows are `b (theta_from - theta_to)`, and one balance for each bus except the references ties the
angles to the columns:

    (A' diag(b) A theta)_i = what the columns inject at bus i,

so that `diag(b) A theta = F x`, and limits, prices and proofs mean the same in both forms. Every
branch has one row with a lower and an upper end, and with line slack one slack column for each end.
If no branch has limits that cross, the two columns add up to the one slack of `formulation`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import block_array, csr_array, diags_array, hstack

from gridveil.grid.opf.formulation import Batch, Formulation
from gridveil.grid.opf.highs import Way, outcome_of, quiet
from gridveil.grid.opf.lazy_rows import TOLERANCE, Answer, Outcome, Rows, Solver, without_numbers

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Costs are scaled so that the largest is near this: the solver's tolerance is absolute, and with
# prices near 1 it leaves fewer correct digits than the certificate asks for.
LARGEST_COST = 2.0**10
# At this tolerance a warm model takes a third of the steps that it takes at the tight one, and most
# answers are still certified.
LOOSE = 1e-7


def size(form: Formulation) -> int:
    """Count the entries of the sparse matrix."""
    lines = 4 if form.slack.lines else 2
    return 3 * form.flows.buses + 2 * len(form.columns) + (lines + 2) * len(form.flows.b)


def fits(form: Formulation, batch: Batch, k: int) -> bool:
    """Say whether model `k` can be written with angles: no outages, and no limits that cross."""
    return form.flows.outages is None and bool((batch.room[k].sum(0) >= 0).all())


class AngleModel(Solver):
    """A linear programme in HiGHS whose columns are injections, angles and, with slack, overloads.

    Without a `Way` it starts at the loose tolerance, and uses presolve until it has a solution to
    start the next solve from.
    """

    def __init__(self, form: Formulation, way: Way | None = None) -> None:
        self.form = form
        self.rows = Rows(len(form.flows.b))
        self.rows.has[:] = True
        self._lines = np.flatnonzero(form.flows.live)
        self._width = len(form.columns)
        self._columns = np.arange(self._width, dtype=np.int32)
        self._loose = way is None
        self._highs = quiet(way or Way(tolerance=LOOSE, presolve="on"))
        self._scale = 1.0
        self._build()

    def load(self, batch: Batch, k: int) -> None:
        """Take the numbers of model `k`."""
        bounds, count = batch.bounds, self._width
        largest = float(np.abs(bounds.lin[k]).max(initial=self.form.slack.price))
        self._scale = 1.0 if largest == 0 else 2.0 ** round(np.log2(LARGEST_COST / largest))
        self._highs.changeColsBounds(count, self._columns, bounds.low[k], bounds.high[k])
        self._highs.changeColsCost(count, self._columns, self._scale * bounds.lin[k])
        if self.form.slack.lines:
            over = np.arange(self._first_slack, self._highs.getNumCol(), dtype=np.int32)
            price = np.full(len(over), self._scale * self.form.slack.price)
            self._highs.changeColsCost(len(over), over, price)
        demand, room = batch.demand[k], batch.room[k][:, self._lines]
        # The type stub of highspy lacks this method.
        self._highs.changeRowsBounds(  # type: ignore[attr-defined]
            len(self._changing),
            self._changing,
            np.concatenate([demand, -room[1]]),
            np.concatenate([demand, room[0]]),
        )

    def tighten(self) -> bool:
        """Switch to the tight tolerance; say whether it was loose before."""
        loose, self._loose = self._loose, False
        if loose:
            for kind in ("primal", "dual"):
                self._highs.setOptionValue(f"{kind}_feasibility_tolerance", TOLERANCE)
        return loose

    def run(self) -> Answer:
        """Solve the loaded model, starting from the solution before."""
        self._highs.run()
        outcome = outcome_of(self._highs)
        if outcome is not Outcome.SOLVED:
            return without_numbers(outcome, self.form)
        self._highs.setOptionValue("presolve", "off")
        solution = self._highs.getSolution()
        dual = np.array(solution.row_dual) / self._scale
        prices = np.zeros((2, len(self.form.flows.b)))
        # A row at its upper end has a dual below zero in a minimisation.
        prices[0, self._lines] = np.maximum(-dual[self._first_line :], 0.0)
        prices[1, self._lines] = np.maximum(dual[self._first_line :], 0.0)
        x = np.array(solution.col_value)[: self._width]
        return Answer(outcome, x, dual[: self.form.islands], prices)

    def _build(self) -> None:
        form, flows, lines = self.form, self.form.flows, self._lines
        kept, laplacian = flows.grounded()
        # Each angle is in the unit that makes its diagonal entry of the balances 1.
        unit = diags_array(1.0 / np.where(laplacian.diagonal() == 0, 1.0, laplacian.diagonal()))
        place = np.full(flows.buses, -1)
        place[kept] = np.arange(len(kept))
        islands = _table(form.column_island, np.arange(self._width), form.islands, self._width)
        injected = _table(place[form.columns.bus], np.arange(self._width), len(kept), self._width)
        rise = [
            _table(np.arange(len(lines)), place[bus[lines]], len(lines), len(kept))
            for bus in (flows.from_bus, flows.to_bus)
        ]
        angles = diags_array(flows.b[lines]) @ (rise[0] - rise[1])
        one = diags_array(np.ones(len(lines)))
        bought = hstack([-one, one]) if form.slack.lines else None
        blocks: list[list[Any]] = [
            [islands, None, None],
            [injected, -(laplacian @ unit), None],
            [None, angles @ unit, bought],
        ]
        matrix = csr_array(block_array(blocks))
        self._first_slack = self._width + len(kept)
        self._first_line = form.islands + len(kept)
        self._changing = np.concatenate(
            [np.arange(form.islands), self._first_line + np.arange(len(lines))]
        ).astype(np.int32)
        self._pass(matrix, len(kept))

    def _pass(self, matrix: csr_array, angles: int) -> None:
        height, width = matrix.shape
        low, high = np.zeros(width), np.full(width, np.inf)
        high[: self._width] = 0.0
        low[self._width : self._width + angles] = -np.inf
        none = np.zeros(0)
        self._highs.addCols(
            width, np.zeros(width), low, high, 0, np.zeros(width, np.int32),
            none.astype(np.int32), none,
        )  # fmt: skip
        self._highs.addRows(
            height,
            np.zeros(height),
            np.zeros(height),
            matrix.nnz,
            matrix.indptr[:-1].astype(np.int32),
            matrix.indices.astype(np.int32),
            matrix.data,
        )


def _table(row: Ints, column: Ints, height: int, width: int) -> csr_array:
    """Make a sparse matrix with ones at these places; a place of -1 is left out."""
    there = (row >= 0) & (column >= 0)
    return csr_array(
        (np.ones(int(there.sum())), (row[there], column[there])), shape=(height, width)
    )
