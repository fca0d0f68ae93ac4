"""One HiGHS model, changed in place from one OPF model to the next and warm-started.

It begins with the balances alone. The row of a branch is added when a solution breaks its limit
(see `solve_lazily`, which calls back into the solver that it is given), and stays: the next model
of the population mostly needs the same rows.

**Columns that are left out at first.** Shed and spill are two columns for each bus, and each would
make every branch row longer, though hardly any is used. On a large network the model starts with
one of each in every island. Once no limit is broken, the prices of that solution tell which other
columns would lower the cost, and these are added. If none would, the solution is optimal with all
columns: their reduced costs have the right sign.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum

import highspy
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, vstack

from gridveil.grid.opf.formulation import FAR, Batch, Formulation

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

# Entries of the PTDF below this are rounding errors: 10,000 MW change such a flow by 1e-8 MW.
NEGLIGIBLE = 1e-12
TOLERANCE = 1e-9
# A branch gets its row when it is over its limit by more than this (MW).
OVERLOAD = 1e-7
# How many rows are added at once, the worst first, because one often repairs its neighbours: 24, or
# a 16th of all broken rows if that is more.
ROWS_AT_ONCE, SHARE_AT_ONCE = 24, 16


class Outcome(IntEnum):
    """What a solver reports about one model."""

    SOLVED = 0
    INFEASIBLE = 1
    UNBOUNDED = 2
    FAILED = 3
    CROWDED = 4
    """It needs so many dense rows that the form with angles is faster."""


@dataclass(frozen=True, eq=False)
class Answer:
    """One model's solution: columns `x`, the price of every island's balance, prices of the limits.

    `prices` has the shape of `Batch.room`: `(2, branches)`.
    """

    outcome: Outcome
    x: Floats
    balance: Floats
    prices: Floats


class Solver:
    """A solver that loads the numbers of a model, takes more rows, and runs.

    `add`, `widen` and `thin` do nothing here: they are for solvers that start with some of the rows
    and columns only.
    """

    form: Formulation
    rows: Rows

    @property
    def width(self) -> int:
        """How many entries a branch row may have."""
        return len(self.form.columns)

    def load(self, batch: Batch, k: int) -> None:
        """Take the numbers of model `k`."""
        raise NotImplementedError

    def run(self) -> Answer:
        """Solve the loaded model."""
        raise NotImplementedError

    def add(self, places: Ints) -> None:
        """Add branch rows, given by their places in one model's flattened `Batch.room`."""

    def widen(self, answer: Answer) -> bool:
        """Add columns left out so far that would lower the cost; say whether there were any."""
        return False

    def thin(self) -> None:
        """Drop rows that the last solution does not need."""


def solve_lazily(solver: Solver, batch: Batch, k: int, most: float = np.inf) -> Answer:
    """Solve model `k`, adding the rows that its solution breaks until it breaks none.

    If the rows would have more than `most` entries, those that do not bind are dropped, once. If
    there are still too many, the outcome is `CROWDED`.
    """
    answer = _add_broken(solver, batch, k, most)
    if answer.outcome is not Outcome.UNBOUNDED:
        return answer
    # Rows that were not added yet may bound it: look for them with all columns bounded.
    answer = _add_broken(solver, batch.one(k).within_reach(), 0, most)
    if answer.outcome is Outcome.SOLVED and np.abs(answer.x).max() >= FAR * (1 - TOLERANCE):
        return replace(answer, outcome=Outcome.UNBOUNDED)
    return answer


def _add_broken(solver: Solver, batch: Batch, k: int, most: float) -> Answer:
    solver.load(batch, k)
    room = batch.room[k].ravel()
    thinned = False
    while True:
        answer = solver.run()
        if answer.outcome is not Outcome.SOLVED:
            if answer.outcome is Outcome.INFEASIBLE and solver.widen(answer):
                continue
            return answer
        flow = solver.form.flow(answer.x[None])[0]
        over = np.concatenate([flow, -flow]) - room
        broken = np.flatnonzero(over > OVERLOAD)
        broken = broken[~solver.rows.has[broken]]
        if len(broken) == 0:
            if solver.widen(answer):
                continue
            return answer
        some = max(ROWS_AT_ONCE, len(broken) // SHARE_AT_ONCE)
        if not thinned and (len(solver.rows.place) + some) * solver.width > most:
            # Most rows come from other models. Only once for each model, so this can't cycle.
            solver.thin()
            thinned = True
        if (len(solver.rows.place) + ROWS_AT_ONCE) * solver.width > most:
            return without_numbers(Outcome.CROWDED, solver.form)
        solver.add(broken[np.argsort(-over[broken], kind="stable")[:some]])


def add_all(solver: Solver, batch: Batch) -> None:
    """Add the rows of all branches that have a limit in some model."""
    solver.add(np.flatnonzero(np.isfinite(batch.room).any(0)))


@dataclass(frozen=True)
class Way:
    """The settings of HiGHS: its algorithm, tolerance and presolve."""

    solver: str = "simplex"
    tolerance: float = TOLERANCE
    presolve: str = "off"


class Rows:
    """Which branch rows a model has and in which order, by their places in the flattened room."""

    def __init__(self, lines: int) -> None:
        self.has: Bools = np.zeros(2 * lines, dtype=bool)
        self.place: Ints = np.zeros(0, dtype=np.int64)

    def extend(self, places: Ints) -> None:
        """Append rows."""
        self.has[places] = True
        self.place = np.concatenate([self.place, places])

    def drop(self, orders: Ints) -> None:
        """Remove rows, given by their position in the order."""
        self.has[self.place[orders]] = False
        self.place = np.delete(self.place, orders)

    def lines(self, places: Ints) -> Ints:
        """Return the branch of each row."""
        return np.asarray(places % (len(self.has) // 2))

    def signs(self, places: Ints) -> Ints:
        """Return 1 for rows along a branch, -1 for rows against it."""
        return np.where(places < len(self.has) // 2, 1, -1)

    def spread(self, values: Floats) -> Floats:
        """Put the rows' prices in the shape of `Batch.room` of one model, 0 without a row."""
        found = np.zeros(len(self.has))
        found[self.place] = values
        return found.reshape(2, -1)


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


def without_numbers(outcome: Outcome, form: Formulation) -> Answer:
    """Return an answer of zeros, for a model without a solution or without columns."""
    prices = np.zeros((2, form.flows.height))
    return Answer(outcome, np.zeros(len(form.columns)), np.zeros(form.islands), prices)


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
