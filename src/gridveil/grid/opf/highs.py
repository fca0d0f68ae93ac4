"""One HiGHS model, changed in place from one OPF model to the next and warm-started.

It begins with the balances alone. Rows of branches are added when a solution breaks their limit
(see `lazily`), and stay: the next model of the population mostly needs the same ones.

Models with quadratic costs go to Clarabel's interior point, on the few rows that matter:
`min 1/2 x'Px + q'x` s.t. `Ax + s = b`, `s` zero (balances) or not below zero (bounds and branch
rows). An interior point does not warm-start, but with the branch rows added lazily the programme
has no more than the generators' columns and a handful of dense rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Protocol

import clarabel  # type: ignore[import-untyped]
import highspy
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csc_matrix, csr_array, diags_array, eye_array, vstack

from gridveil.grid.opf.formulation import FAR, Batch, Formulation

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

# Entries of the PTDF below this are rounding: 10,000 MW move such a flow by 1e-8 MW.
NEGLIGIBLE = 1e-12
TOLERANCE = 1e-9
# A branch gets its row when it is over its limit by more than this (MW).
OVERLOAD = 1e-7
# How many rows are added at once, the worst first, for one often mends its neighbours: so many,
# or this share of all broken ones.
ROWS_AT_ONCE, SHARE_AT_ONCE = 24, 16


class Outcome(IntEnum):
    """What a solver says about one model."""

    SOLVED = 0
    INFEASIBLE = 1
    UNBOUNDED = 2
    FAILED = 3
    CROWDED = 4
    """It needs more rows than pay."""


@dataclass(frozen=True, eq=False)
class Answer:
    """One model's columns `x`, price of every island's balance, and prices of the limits.

    `prices` has the shape of `Batch.room`: `(2, branches)`.
    """

    outcome: Outcome
    x: Floats
    balance: Floats
    prices: Floats


class Solver(Protocol):
    """A model that can be loaded with numbers, given more rows, and run."""

    form: Formulation
    rows: Rows

    def load(self, batch: Batch, k: int) -> None:
        """Take the numbers of model `k`."""

    def add(self, places: Ints) -> None:
        """Add rows, by their places in `Batch.room` of one model, flattened."""

    def run(self) -> Answer:
        """Solve it."""


def solve_lazily(solver: Solver, batch: Batch, k: int, most: float = np.inf) -> Answer:
    """Solve model `k`, adding the rows that its solution breaks until none is left.

    It is `CROWDED` if more than `most` rows would be needed.
    """
    answer = _add_broken(solver, batch, k, most)
    if answer.outcome is not Outcome.UNBOUNDED:
        return answer
    # Rows that are not there yet may bound it: look for them within a box.
    answer = _add_broken(solver, batch.one(k).within_reach(), 0, most)
    if answer.outcome is Outcome.SOLVED and np.abs(answer.x).max() >= FAR * (1 - TOLERANCE):
        return replace(answer, outcome=Outcome.UNBOUNDED)
    return answer


def _add_broken(solver: Solver, batch: Batch, k: int, most: float) -> Answer:
    solver.load(batch, k)
    room = batch.room[k].ravel()
    while True:
        answer = solver.run()
        if answer.outcome is not Outcome.SOLVED:
            return answer
        flow = solver.form.flow(answer.x[None])[0]
        over = np.concatenate([flow, -flow]) - room
        broken = np.flatnonzero(over > OVERLOAD)
        broken = broken[~solver.rows.has[broken]]
        if len(broken) == 0:
            return answer
        if len(solver.rows.place) + ROWS_AT_ONCE > most:
            return without_numbers(Outcome.CROWDED, solver.form)
        some = max(ROWS_AT_ONCE, len(broken) // SHARE_AT_ONCE)
        solver.add(broken[np.argsort(-over[broken], kind="stable")[:some]])


def add_all(solver: Solver, batch: Batch) -> None:
    """Add the rows of all branches that have a limit in some model."""
    solver.add(np.flatnonzero(np.isfinite(batch.room).any(0)))


@dataclass(frozen=True)
class Way:
    """How HiGHS is to solve: which algorithm, how tightly, and whether from scratch."""

    solver: str = "simplex"
    tolerance: float = TOLERANCE
    presolve: str = "off"


class Rows:
    """Which branch rows a model has, in which order, by their places in a flattened room."""

    def __init__(self, lines: int) -> None:
        self.has: Bools = np.zeros(2 * lines, dtype=bool)
        self.place: Ints = np.zeros(0, dtype=np.int64)

    def extend(self, places: Ints) -> None:
        """Take more rows."""
        self.has[places] = True
        self.place = np.concatenate([self.place, places])

    def lines(self, places: Ints) -> Ints:
        """Give the branches of rows."""
        return np.asarray(places % (len(self.has) // 2))

    def signs(self, places: Ints) -> Ints:
        """Give 1 for rows along a branch, -1 for rows against it."""
        return np.where(places < len(self.has) // 2, 1, -1)

    def spread(self, values: Floats) -> Floats:
        """Spread the rows' prices over the branches."""
        found = np.zeros(len(self.has))
        found[self.place] = values
        return found.reshape(2, -1)


class LinearModel:
    """A linear programme in HiGHS."""

    def __init__(self, form: Formulation, way: Way | None = None) -> None:
        self.form = form
        self.rows = Rows(len(form.flows.b))
        self._slack_of: dict[int, int] = {}
        self._width = len(form.columns)
        self._indices = np.arange(self._width, dtype=np.int32)
        self._row_indices = np.arange(form.islands, dtype=np.int32)
        self._no_limit = np.full(0, -np.inf)
        self._highs = quiet(way or Way())
        self._build()

    def load(self, batch: Batch, k: int) -> None:
        """Take the numbers of model `k`."""
        self._batch, self._k = batch, k
        bounds, count = batch.bounds, self._width
        self._highs.changeColsBounds(count, self._indices, bounds.low[k], bounds.high[k])
        self._highs.changeColsCost(count, self._indices, bounds.lin[k])
        demand = batch.demand[k]
        lower = np.concatenate([demand, self._no_limit])
        upper = np.concatenate([demand, batch.room[k].ravel()[self.rows.place]])
        # Its stub leaves this method out.
        self._highs.changeRowsBounds(  # type: ignore[attr-defined]
            len(upper), self._row_indices, lower, upper
        )

    def add(self, places: Ints) -> None:
        """Add rows `sign F x - v <= room`."""
        lines, signs = self.rows.lines(places), self.rows.signs(places)
        table = signs[:, None] * self.form.flows.rows(lines)[:, self.form.columns.bus]
        starts, columns, values = [0], [], []
        for line, row in zip(lines, table, strict=True):
            kept = np.flatnonzero(np.abs(row) > NEGLIGIBLE)
            slack = self._slack(int(line))
            columns.append(np.concatenate([kept, slack]))
            values.append(np.concatenate([row[kept], -np.ones(len(slack))]))
            starts.append(starts[-1] + len(columns[-1]))
        self.rows.extend(places)
        count = len(self.rows.place)
        self._no_limit = np.full(count, -np.inf)
        self._row_indices = np.arange(self.form.islands + count, dtype=np.int32)
        self._highs.addRows(
            len(places),
            self._no_limit[: len(places)],
            self._batch.room[self._k].ravel()[places],
            starts[-1],
            np.array(starts[:-1], dtype=np.int32),
            np.concatenate(columns).astype(np.int32),
            np.concatenate(values),
        )

    def run(self) -> Answer:
        """Solve it from where it stands."""
        self._highs.run()
        outcome = outcome_of(self._highs)
        if outcome is not Outcome.SOLVED or self._highs.getNumCol() == 0:
            return without_numbers(outcome, self.form)
        solution = self._highs.getSolution()
        dual = np.array(solution.row_dual)
        x = np.array(solution.col_value)[: self._width]
        islands = self.form.islands
        # A row `<=` has a dual below zero in a minimisation; its price is the other way round.
        return Answer(outcome, x, dual[:islands], self.rows.spread(-dual[islands:]))

    def _build(self) -> None:
        count, islands = self._width, self.form.islands
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
            self._indices,
            self.form.column_island.astype(np.int32),
            np.ones(count),
        )

    def _slack(self, line: int) -> list[int]:
        """Give the place of a branch's slack column, made when first asked for."""
        if not self.form.slack.lines:
            return []
        if line not in self._slack_of:
            self._slack_of[line] = self._highs.getNumCol()
            none = np.zeros(0)
            self._highs.addCol(self.form.slack.price, 0.0, np.inf, 0, none.astype(np.int32), none)
        return [self._slack_of[line]]


def without_numbers(outcome: Outcome, form: Formulation) -> Answer:
    """Give an answer that is all zeros: there is no solution, or nothing to decide."""
    prices = np.zeros((2, len(form.flows.b)))
    return Answer(outcome, np.zeros(len(form.columns)), np.zeros(form.islands), prices)


_OUTCOMES = {
    highspy.HighsModelStatus.kOptimal: Outcome.SOLVED,
    highspy.HighsModelStatus.kModelEmpty: Outcome.SOLVED,
    highspy.HighsModelStatus.kInfeasible: Outcome.INFEASIBLE,
    highspy.HighsModelStatus.kUnbounded: Outcome.UNBOUNDED,
}


def outcome_of(highs: highspy.Highs) -> Outcome:
    """What HiGHS said of the model that it ran."""
    return _OUTCOMES.get(highs.getModelStatus(), Outcome.FAILED)


def quiet(way: Way) -> highspy.Highs:
    """A HiGHS that prints nothing, uses one thread, and solves in this way."""
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


@dataclass(frozen=True)
class InteriorWay:
    """How tightly Clarabel is to solve, and whether it may rescale the data."""

    tolerance: float = 1e-11
    equilibrate: bool = True


class QuadraticModel:
    """A quadratic programme in Clarabel, with the interface of `LinearModel`."""

    def __init__(self, form: Formulation, way: InteriorWay | None = None) -> None:
        self.form = form
        self.rows = Rows(len(form.flows.b))
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
