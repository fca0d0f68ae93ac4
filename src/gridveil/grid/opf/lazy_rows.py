"""Solve a model with few of its branch rows at first, and add those that its solutions break.

A solver (`LinearModel` in `highs`, that of `quadratic` for interior points) begins with the
balances alone. The row of a branch is added when a solution breaks its limit, and stays: the next
model of the population mostly needs the same rows. `solve_lazily` calls back into the solver that
it is given.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from gridveil.grid.opf.formulation import FAR, Batch, Formulation

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

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


def without_numbers(outcome: Outcome, form: Formulation) -> Answer:
    """Return an answer of zeros, for a model without a solution or without columns."""
    prices = np.zeros((2, form.flows.height))
    return Answer(outcome, np.zeros(len(form.columns)), np.zeros(form.islands), prices)
