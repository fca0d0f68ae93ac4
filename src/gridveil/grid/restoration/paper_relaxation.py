"""The relaxation of the two-level problem, and a solver for one lower-level model.

**The relaxation** drops the condition that dispatches are optimal, which leaves one linear
programme. Its columns are how far each capacity moves up and down from its start, how far each
model's cost is off its goal, and a dispatch for every model that meets all limits:

    min  weight (up + down) + sum_t off_t,   off_t >= |goal_t - cost of the dispatch|.

Its value is a lower bound. The bound rises with what is known about optimal dispatches: that a
limit binds, that the cost is at most some value, and that of two columns at one bus the cheaper one
is filled first. A model whose goal is below its cost at all capacities needs none of this: its
dispatch is the cheapest possible, because that is what the upper level wants.

**One lower-level model** is a linear programme from which limits can be left out. Every limit of a
model (a row, and each bound of a column) has a price, which is zero if the limit does not bind.
Setting a price to zero means leaving its limit out: the other prices are then the optimal ones of
the model without it. Limits are numbered: the rows, then the lower bounds of the columns, then the
upper bounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from itertools import pairwise

import highspy
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from gridveil.grid.restoration.paper_bilevel import Bilevel, LowerModel
from gridveil.grid.restoration.paper_programme import quiet

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Part = tuple[Floats, Floats, Floats]


class Relaxation:
    """The relaxation as a linear programme, and the places of its columns and rows.

    Parameters
    ----------
    problem
        Both levels.
    hard
        Which models have a goal above their least possible cost.

    Attributes
    ----------
    cost, low, high, table, row_low, row_high
        The costs, bounds and rows of the programme.
    """

    def __init__(self, problem: Bilevel, hard: Bools) -> None:
        self.problem, self.hard = problem, hard
        self.lines = len(problem.start)
        count, models = 2 * self.lines + len(problem.models), problem.models
        self._x = count + np.concatenate([[0], np.cumsum([len(m.lin) for m in models])])
        goes_up, goes_down = problem.low - problem.start, problem.start - problem.high
        none, price = np.zeros(len(models)), np.full(2 * self.lines, problem.weight)
        self.cost = np.concatenate([price, none + 1, np.zeros(self._x[-1] - count)])
        self.low = np.concatenate(
            [np.maximum(goes_up, 0), np.maximum(goes_down, 0), none, *(m.low for m in models)]
        )
        self.high = np.concatenate(
            [
                np.maximum(problem.high - problem.start, 0),
                np.maximum(problem.start - problem.low, 0),
                none + np.inf,
                *(m.high for m in models),
            ]
        )
        self._first: list[int] = []
        self.table, self.row_low, self.row_high = self._build()
        self._linear = Linear(
            self.cost, self.low, self.high, self.table, self.row_low, self.row_high
        )

    def phi(self, z: Floats) -> Floats:
        """Return the capacities of a solution."""
        moved: Floats = self.problem.start + z[: self.lines] - z[self.lines : 2 * self.lines]
        return np.clip(moved, self.problem.low, self.problem.high)

    def off(self, z: Floats) -> Floats:
        """Return how far each model's cost is off its goal in a solution."""
        return z[2 * self.lines : self._x[0]]

    def dispatch(self, z: Floats, t: int) -> Floats:
        """Return a model's dispatch in a solution."""
        return z[self._x[t] : self._x[t + 1]]

    def columns_of(self, t: int) -> slice:
        """Return the places of the columns of a model's dispatch."""
        return slice(int(self._x[t]), int(self._x[t + 1]))

    def rows_of(self, t: int) -> slice:
        """Return the places of a model's limits among the rows."""
        first = self._first[t]
        return slice(first, first + len(self.problem.models[t].rows))

    def root(self) -> Answer:
        """Solve it with no limit decided, and remember the reduced costs of moving down."""
        found = self._linear.solve()
        if found.end is End.SOLVED:
            self._value, self._price = found.value, found.column_dual[self.lines : 2 * self.lines]
        return found

    def floor(self, objective: float) -> Floats:
        """Compute the lowest capacities that a solution with a smaller objective can have."""
        down = slice(self.lines, 2 * self.lines)
        least, most = self.low[down], self.high[down]
        with np.errstate(divide="ignore"):
            room = np.where(self._price > 0, (objective - self._value) / self._price, np.inf)
        top = self.problem.start + self.low[: self.lines]
        floor: Floats = top - np.minimum(most, least + np.maximum(room, 0.0))
        return floor

    def solve(self, binding: list[Bools], off: Floats) -> Answer:
        """Solve it with some limits binding (numbered as above) and lower bounds of `off`.

        Parameters
        ----------
        binding
            For every model, which of its limits bind.
        off
            For every model, the least distance of its cost from its goal.
        """
        low, high, row_low = self.low.copy(), self.high.copy(), self.row_low.copy()
        low[2 * self.lines : self._x[0]] = off
        for t, model in enumerate(self.problem.models):
            rows, width, at = len(model.rows), len(model.lin), self.columns_of(t)
            tight, bottom, top = np.split(binding[t], [rows, rows + width])
            here = self.rows_of(t)
            row_low[here] = np.where(tight, self.row_high[here], row_low[here])
            high[at] = np.where(bottom, model.low, high[at])
            low[at] = np.where(top, model.high, low[at])
        self._linear.change_columns(low, high)
        self._linear.change_rows(row_low, self.row_high)
        return self._linear.solve()

    def _build(self) -> tuple[csr_array, Floats, Floats]:
        parts: list[Part] = []
        for t, model in enumerate(self.problem.models):
            parts += [self._balances(t, model), self._costs(t, model), self._order(t, model)]
            self._first.append(sum(len(low) for _, low, _ in parts))
            parts.append(self._limits(t, model))
        tables, lows, highs = zip(*parts, strict=True)
        whole = csr_array(vstack([csr_array(table) for table in tables]))
        return whole, np.concatenate(lows), np.concatenate(highs)

    def _blank(self, rows: int) -> Floats:
        return np.zeros((rows, int(self._x[-1])))

    def _balances(self, t: int, model: LowerModel) -> Part:
        part = self._blank(len(model.demand))
        part[:, self.columns_of(t)] = model.island == np.arange(len(model.demand))[:, None]
        return part, model.demand, model.demand

    def _costs(self, t: int, model: LowerModel) -> Part:
        """Add `off >= cost - goal`, and for a hard model `off >= goal - cost`."""
        signs = np.array([1.0, -1.0] if self.hard[t] else [1.0])
        part = self._blank(len(signs))
        part[:, 2 * self.lines + t] = 1.0
        part[:, self.columns_of(t)] = -signs[:, None] * model.lin
        least = signs * (model.constant - self.problem.goal[t])
        return part, least, np.full(len(signs), np.inf)

    def _order(self, t: int, model: LowerModel) -> Part:
        """Fill columns at one bus in order of cost: a cheaper one has at least as large a share."""
        width = model.high - model.low
        pairs = []
        if self.hard[t]:
            for bus in np.unique(model.bus):
                own = np.flatnonzero((model.bus == bus) & (width > 0))
                own = own[np.argsort(model.lin[own], kind="stable")]
                pairs += list(pairwise(own))
        part, low = self._blank(len(pairs)), np.zeros(len(pairs))
        for row, (cheap, dear) in enumerate(pairs):
            part[row, self._x[t] + cheap] = 1 / width[cheap]
            part[row, self._x[t] + dear] = -1 / width[dear]
            low[row] = model.low[cheap] / width[cheap] - model.low[dear] / width[dear]
        return part, low, np.full(len(pairs), np.inf)

    def _limits(self, t: int, model: LowerModel) -> Part:
        rows = np.arange(len(model.rows))
        part = self._blank(len(rows))
        part[:, self.columns_of(t)] = model.rows
        part[rows, model.line] -= model.factor
        part[rows, self.lines + model.line] += model.factor
        return part, np.full(len(rows), -np.inf), model.limits(self.problem.start)


class End(Enum):
    """How a solve ended."""

    SOLVED = auto()
    INFEASIBLE = auto()
    UNBOUNDED = auto()
    FAILED = auto()


@dataclass(frozen=True, eq=False)
class Answer:
    """How a solve ended, and if it was solved the value, the columns and the duals."""

    end: End
    value: float
    x: Floats
    row_dual: Floats
    column_dual: Floats


_ENDS = {
    highspy.HighsModelStatus.kOptimal: End.SOLVED,
    highspy.HighsModelStatus.kInfeasible: End.INFEASIBLE,
    highspy.HighsModelStatus.kUnbounded: End.UNBOUNDED,
}


class Linear:
    """A warm-started HiGHS model ``min cost'x, low <= x <= high, row_low <= A x <= row_high``."""

    def __init__(
        self,
        cost: Floats,
        low: Floats,
        high: Floats,
        A: Floats | csr_array,
        row_low: Floats,
        row_high: Floats,
    ) -> None:
        self._highs = quiet(parallel="off")
        table = csr_array(A)
        self._columns = np.arange(len(cost), dtype=np.int32)
        self._rows = np.arange(len(row_low), dtype=np.int32)
        none = np.zeros(0, np.int32)
        self._highs.addCols(
            len(cost), cost, low, high, 0, np.zeros(len(cost), np.int32), none, np.zeros(0)
        )
        self._highs.addRows(
            len(row_low),
            row_low,
            row_high,
            table.nnz,
            table.indptr[:-1].astype(np.int32),
            table.indices.astype(np.int32),
            table.data,
        )

    def change_columns(self, low: Floats, high: Floats) -> None:
        """Set new bounds for every column."""
        self._highs.changeColsBounds(len(self._columns), self._columns, low, high)

    def change_rows(self, low: Floats, high: Floats) -> None:
        """Set new bounds for every row."""
        # The type stub of highspy lacks this method.
        self._highs.changeRowsBounds(  # type: ignore[attr-defined]
            len(self._rows), self._rows, low, high
        )

    def solve(self) -> Answer:
        """Solve it from the last solution, or from scratch if that fails."""
        end = self._run()
        if end is End.FAILED:
            self._highs.clearSolver()
            end = self._run()
        if end is not End.SOLVED:
            none = np.zeros(0)
            return Answer(end, np.inf if end is End.INFEASIBLE else -np.inf, none, none, none)
        found = self._highs.getSolution()
        return Answer(
            end,
            float(self._highs.getInfo().objective_function_value),
            np.array(found.col_value),
            np.array(found.row_dual),
            np.array(found.col_dual),
        )

    def _run(self) -> End:
        self._highs.run()
        return _ENDS.get(self._highs.getModelStatus(), End.FAILED)


def highs_name() -> str:
    """Return the solver's name and version."""
    version = highspy.Highs().version()  # type: ignore[no-untyped-call]
    return f"HiGHS {version}"


# Added to every limit (MW): capacities from a linear programme may be too small by its tolerance.
EASE = 1e-9


@dataclass(frozen=True, eq=False)
class Lowest:
    """A lower-level model's least cost, dispatch, and prices of balances and limits."""

    end: End
    cost: float
    x: Floats
    balance: Floats
    prices: Floats


class LowerSolver:
    """A solver for one lower-level model at changing capacities, with limits left out."""

    def __init__(self, model: LowerModel) -> None:
        self.model = model
        self.columns, self.count = len(model.lin), len(model.rows) + 2 * len(model.lin)
        balance = (model.island == np.arange(len(model.demand))[:, None]).astype(float)
        self._open = np.full(len(model.rows), np.inf)
        self._linear = Linear(
            model.lin,
            model.low,
            model.high,
            np.vstack([balance, model.rows]),
            np.concatenate([model.demand, -self._open]),
            np.concatenate([model.demand, self._open]),
        )

    def gaps(self, phi: Floats, x: Floats) -> Floats:
        """Compute how far a dispatch is from each limit (MW)."""
        model = self.model
        room = model.limits(phi) - model.rows @ x
        found: Floats = np.maximum(np.concatenate([room, x - model.low, model.high - x]), 0.0)
        return found

    def solve(self, phi: Floats, left_out: Bools | None = None) -> Lowest:
        """Find the least cost at `phi`, without the limits that are left out."""
        model, rows = self.model, len(self.model.rows)
        out = np.zeros(self.count, dtype=bool) if left_out is None else left_out
        limits = np.where(out[:rows], np.inf, model.limits(phi) + EASE)
        low = np.where(out[rows : rows + self.columns], -np.inf, model.low)
        high = np.where(out[rows + self.columns :], np.inf, model.high)
        self._linear.change_columns(low, high)
        self._linear.change_rows(
            np.concatenate([model.demand, -self._open]), np.concatenate([model.demand, limits])
        )
        found = self._linear.solve()
        islands = len(model.demand)
        # In a minimisation a `<=` row and an upper bound have duals below zero.
        duals = -found.row_dual[islands:], found.column_dual, -found.column_dual
        return Lowest(
            found.end,
            found.value + model.constant,
            found.x,
            found.row_dual[:islands],
            np.maximum(np.concatenate(duals), 0.0),
        )
