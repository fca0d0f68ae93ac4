"""What is left of the two levels where optimality below is forgotten: one linear programme.

Its columns are how far each capacity goes up and down from where it started, how far each model's
cost is off its goal, and a dispatch for every model that keeps to all limits:

    min  weight (up + down) + sum_t off_t,   off_t >= |goal_t - cost of the dispatch|.

Its value is a lower bound. It is raised by what is known of optimal dispatches: that a limit binds,
that the cost is at most so much, and that of two columns at one bus the cheaper one is filled
first. A model whose goal is below its cost at all capacities needs none of this: its dispatch is
as cheap as can be, because that is what the upper level wants.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from gridveil.grid.restoring.bilevel import Bilevel, LowerModel
from gridveil.grid.restoring.linear import Answer, End, Linear

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Part = tuple[Floats, Floats, Floats]


class Relaxation:
    """The linear programme, and where things are in it.

    Parameters
    ----------
    problem
        Both levels.
    hard
        Which models have a goal above their least possible cost.

    Attributes
    ----------
    cost, low, high, table, row_low, row_high
        The programme.
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
        """The capacities of a solution."""
        moved: Floats = self.problem.start + z[: self.lines] - z[self.lines : 2 * self.lines]
        return np.clip(moved, self.problem.low, self.problem.high)

    def off(self, z: Floats) -> Floats:
        """How far each model's cost is off in a solution."""
        return z[2 * self.lines : self._x[0]]

    def dispatch(self, z: Floats, t: int) -> Floats:
        """A model's dispatch in a solution."""
        return z[self._x[t] : self._x[t + 1]]

    def columns_of(self, t: int) -> slice:
        """Where a model's dispatch is."""
        return slice(int(self._x[t]), int(self._x[t + 1]))

    def rows_of(self, t: int) -> slice:
        """Where a model's rows are."""
        first = self._first[t]
        return slice(first, first + len(self.problem.models[t].rows))

    def root(self) -> Answer:
        """Solve it with nothing known, and remember what it would cost to go down."""
        found = self._linear.solve()
        if found.end is End.SOLVED:
            self._value, self._price = found.value, found.column_dual[self.lines : 2 * self.lines]
        return found

    def floor(self, objective: float) -> Floats:
        """The lowest capacities that an objective below this one can have."""
        down = slice(self.lines, 2 * self.lines)
        least, most = self.low[down], self.high[down]
        with np.errstate(divide="ignore"):
            room = np.where(self._price > 0, (objective - self._value) / self._price, np.inf)
        top = self.problem.start + self.low[: self.lines]
        floor: Floats = top - np.minimum(most, least + np.maximum(room, 0.0))
        return floor

    def solve(self, binding: list[Bools], off: Floats) -> Answer:
        """Solve it with limits that bind (see `LowerSolver` for their order) and `off` from below.

        Parameters
        ----------
        binding
            For every model, which of its limits bind.
        off
            For every model, how far its cost is off its goal at least.
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
        """`off >= cost - goal`, and `off >= goal - cost` where that can matter."""
        signs = np.array([1.0, -1.0] if self.hard[t] else [1.0])
        part = self._blank(len(signs))
        part[:, 2 * self.lines + t] = 1.0
        part[:, self.columns_of(t)] = -signs[:, None] * model.lin
        least = signs * (model.constant - self.problem.goal[t])
        return part, least, np.full(len(signs), np.inf)

    def _order(self, t: int, model: LowerModel) -> Part:
        """Columns at one bus are filled in order of cost: the share of a dearer one is smaller."""
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
