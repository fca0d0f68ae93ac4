"""One HiGHS model, changed in place from one OPF model to the next and warm-started.

It gets the rows of its branches one by one (see `lazy_rows`), and some of its columns late too.

**Columns that are left out at first.** Shed and spill are two columns for each bus, and each would
make every branch row longer, though hardly any is used. On a large network the model starts with
one of each in every island. Once no limit is broken, the prices of that solution tell which other
columns would lower the cost, and these are added. If none would, the solution is optimal with all
columns: their reduced costs have the right sign.
"""

from __future__ import annotations

from dataclasses import dataclass

import highspy
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, vstack

from gridveil.grid.opf.formulation import Batch, Formulation
from gridveil.grid.opf.lazy_rows import TOLERANCE, Answer, Outcome, Rows, Solver, without_numbers

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

# Entries of the PTDF below this are rounding errors: 10,000 MW change such a flow by 1e-8 MW.
NEGLIGIBLE = 1e-12


@dataclass(frozen=True)
class Way:
    """The settings of HiGHS: its algorithm, tolerance and presolve."""

    solver: str = "simplex"
    tolerance: float = TOLERANCE
    presolve: str = "off"


class LinearModel(Solver):
    """A linear programme in HiGHS."""

    def __init__(self, form: Formulation, way: Way | None = None) -> None:
        self.form = form
        self.rows = Rows(form.flows.height)
        self._slack_of: dict[int, int] = {}
        self._no_limit = np.full(0, -np.inf)
        self._row_indices = np.arange(form.islands, dtype=np.int32)
        self._inside = _first_inside(form)
        # The columns that HiGHS has so far, in its order, and their positions in it.
        self._taken: Ints = np.flatnonzero(self._inside)
        self._place = np.arange(len(self._taken), dtype=np.int32)
        self._highs = quiet(way or Way())
        self._build()

    @property
    def width(self) -> int:
        """How many entries a branch row may have."""
        return len(self._taken)

    def load(self, batch: Batch, k: int) -> None:
        """Take the numbers of model `k`."""
        self._batch, self._k = batch, k
        bounds, some = batch.bounds, self._taken
        self._highs.changeColsBounds(
            len(some), self._place, bounds.low[k, some], bounds.high[k, some]
        )
        self._highs.changeColsCost(len(some), self._place, bounds.lin[k, some])
        demand = batch.demand[k]
        lower = np.concatenate([demand, self._no_limit])
        upper = np.concatenate([demand, batch.room[k].ravel()[self.rows.place]])
        # The type stub of highspy lacks this method.
        self._highs.changeRowsBounds(  # type: ignore[attr-defined]
            len(upper), self._row_indices, lower, upper
        )

    def add(self, places: Ints) -> None:
        """Add rows `sign F x - v <= room`."""
        lines, table = self.rows.lines(places), self._table(places, self._taken)
        starts, columns, values = [0], [], []
        for line, row in zip(lines, table, strict=True):
            kept = np.flatnonzero(np.abs(row) > NEGLIGIBLE)
            slack = self._slack(int(line))
            columns.append(np.concatenate([self._place[kept], slack]))
            values.append(np.concatenate([row[kept], -np.ones(len(slack))]))
            starts.append(starts[-1] + len(columns[-1]))
        self.rows.extend(places)
        self._count_rows()
        self._highs.addRows(
            len(places),
            self._no_limit[: len(places)],
            self._batch.room[self._k].ravel()[places],
            starts[-1],
            np.array(starts[:-1], dtype=np.int32),
            np.concatenate(columns).astype(np.int32),
            np.concatenate(values),
        )

    def widen(self, answer: Answer) -> bool:
        """Add columns that would lower the cost at the answer's prices; all if it is unsolved."""
        outside = np.flatnonzero(~self._inside)
        if len(outside) and answer.outcome is Outcome.SOLVED:
            bounds, form = self._batch.bounds, self.form
            paid = form.flows.back(answer.prices[0] - answer.prices[1])[form.columns.bus[outside]]
            reduced = bounds.lin[self._k, outside] + paid
            reduced -= answer.balance[form.column_island[outside]]
            # A column that was left out is zero, which is its lower or its upper bound.
            saved = np.where(bounds.low[self._k, outside] == 0, -reduced, reduced)
            outside = outside[saved > TOLERANCE * max(1.0, form.slack.price)]
        if len(outside) == 0:
            return False
        self._let_in(outside)
        return True

    def thin(self) -> None:
        """Drop the rows that are not at their limit; the basis stays valid without them."""
        status = self._highs.getBasis().row_status[self.form.islands :]
        idle = np.flatnonzero([one == highspy.HighsBasisStatus.kBasic for one in status])
        if len(idle) == 0:
            return
        self._highs.deleteRows(len(idle), (self.form.islands + idle).astype(np.int32))
        self.rows.drop(idle)
        self._count_rows()

    def run(self) -> Answer:
        """Solve the loaded model, starting from the solution before."""
        self._highs.run()
        outcome = outcome_of(self._highs)
        if outcome is not Outcome.SOLVED or self._highs.getNumCol() == 0:
            return without_numbers(outcome, self.form)
        solution = self._highs.getSolution()
        dual = np.array(solution.row_dual)
        x = np.zeros(len(self.form.columns))
        x[self._taken] = np.array(solution.col_value)[self._place]
        islands = self.form.islands
        # In a minimisation a `<=` row has a dual below zero; its price has the opposite sign.
        return Answer(outcome, x, dual[:islands], self.rows.spread(-dual[islands:]))

    def _count_rows(self) -> None:
        count = len(self.rows.place)
        self._no_limit = np.full(count, -np.inf)
        self._row_indices = np.arange(self.form.islands + count, dtype=np.int32)

    def _build(self) -> None:
        count, islands = len(self._taken), self.form.islands
        none = np.zeros(0)
        self._highs.addRows(
            islands, np.zeros(islands), np.zeros(islands), 0, np.zeros(islands, np.int32),
            none.astype(np.int32), none,
        )  # fmt: skip
        self._highs.addCols(
            count,
            np.zeros(count),
            np.zeros(count),
            np.zeros(count),
            count,
            self._place,
            self.form.column_island[self._taken].astype(np.int32),
            np.ones(count),
        )

    def _let_in(self, columns: Ints) -> None:
        """Add columns, with their entries in the balances and in all branch rows."""
        bounds, k, islands, count = self._batch.bounds, self._k, self.form.islands, len(columns)
        first = self._highs.getNumCol()
        own = csc_array(
            (np.ones(count), (self.form.column_island[columns], np.arange(count))),
            shape=(islands, count),
        )
        table = self._table(self.rows.place, columns)
        table[np.abs(table) <= NEGLIGIBLE] = 0.0
        matrix = csc_array(vstack([own, csc_array(table)]))
        self._highs.addCols(
            count,
            bounds.lin[k, columns],
            bounds.low[k, columns],
            bounds.high[k, columns],
            matrix.nnz,
            matrix.indptr[:-1].astype(np.int32),
            matrix.indices.astype(np.int32),
            matrix.data,
        )
        self._inside[columns] = True
        self._taken = np.concatenate([self._taken, columns])
        self._place = np.concatenate([self._place, first + np.arange(count, dtype=np.int32)])

    def _table(self, places: Ints, columns: Ints) -> Floats:
        """Compute the entries of branch rows (given by their places) in some columns."""
        rows = self.form.flows.rows(self.rows.lines(places))
        return np.asarray(
            self.rows.signs(places)[:, None] * rows[:, self.form.columns.bus[columns]]
        )

    def _slack(self, line: int) -> list[int]:
        """Return the position of a branch's slack column, which is added when first needed."""
        if not self.form.slack.lines:
            return []
        if line not in self._slack_of:
            self._slack_of[line] = self._highs.getNumCol()
            none = np.zeros(0)
            self._highs.addCol(self.form.slack.price, 0.0, np.inf, 0, none.astype(np.int32), none)
        return [self._slack_of[line]]


def _first_inside(form: Formulation) -> Bools:
    """Mark the columns that a model starts with: all, except shed and spill on a large network."""
    found = np.ones(len(form.columns), dtype=bool)
    if form.flows.dense is not None or not form.slack.buses:
        return found
    bought = np.flatnonzero(form.columns.unit < 0)
    found[bought] = False
    # Keep one of each kind in every island, so that its balance can always be met.
    for kind in np.split(bought, 2):
        found[kind[np.unique(form.column_island[kind], return_index=True)[1]]] = True
    return found


_OUTCOMES = {
    highspy.HighsModelStatus.kOptimal: Outcome.SOLVED,
    highspy.HighsModelStatus.kModelEmpty: Outcome.SOLVED,
    highspy.HighsModelStatus.kInfeasible: Outcome.INFEASIBLE,
    highspy.HighsModelStatus.kUnbounded: Outcome.UNBOUNDED,
}


def outcome_of(highs: highspy.Highs) -> Outcome:
    """Translate the status that HiGHS reports for the model it ran."""
    return _OUTCOMES.get(highs.getModelStatus(), Outcome.FAILED)


def quiet(way: Way) -> highspy.Highs:
    """Make a HiGHS instance that prints nothing, uses one thread, and has these settings."""
    highs = highspy.Highs()  # type: ignore[no-untyped-call]
    options: dict[str, bool | int | float | str] = {
        "output_flag": False,
        "threads": 1,
        "parallel": "off",
        "small_matrix_value": NEGLIGIBLE,
        "solver": way.solver,
        "presolve": way.presolve,
        "primal_feasibility_tolerance": way.tolerance,
        "dual_feasibility_tolerance": way.tolerance,
    }
    for name, value in options.items():
        highs.setOptionValue(name, value)
    return highs
