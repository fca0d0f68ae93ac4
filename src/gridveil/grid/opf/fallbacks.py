"""Solve a batch of models, prove every answer, and try other solvers if a proof fails.

The first rung of the ladder solves all models of a small network together, or each model with the
warm-started solver that the batch shares. If an answer is not certified, its model is solved again
on its own: from scratch, by an interior point, and to tight tolerances. Infeasibility is proved as
well: the least total overload of the lines, at no other cost, has a dual bound above zero.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from gridveil.grid.opf.angles import AngleModel, fits, size
from gridveil.grid.opf.batch_simplex import applies, solve_together
from gridveil.grid.opf.certificates import Certified, certify
from gridveil.grid.opf.formulation import Batch, Formulation
from gridveil.grid.opf.highs import LinearModel, Way
from gridveil.grid.opf.lazy_rows import (
    Answer,
    Outcome,
    Solver,
    add_all,
    solve_lazily,
    without_numbers,
)
from gridveil.grid.opf.polishing import polished
from gridveil.grid.opf.quadratic import InteriorWay, QuadraticModel

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

# The model switches from PTDF rows to angles once the rows have more entries than this many models
# with angles, but never at fewer than `LEAST_ROWS` rows.
SPARSE_MODELS, LEAST_ROWS = 24, 60
# MW by which a certified solution of the strict model may miss a limit.
VIOLATION = 1e-6
# A model counts as infeasible if its total overload is proved to be above this (MW).
PROOF = 1e-7
# Relative difference above which generation limits can't meet demand.
SHORT = 1e-9


class Status(IntEnum):
    """What is known about one model. The values up to TIGHT are certified solutions."""

    OPTIMAL = 0
    """Solved on the first rung."""
    FROM_SCRATCH = 1
    """Solved on the second rung, from scratch."""
    INTERIOR = 2
    """Solved on the third rung, by an interior point."""
    TIGHT = 3
    """Solved on the last rung, to tight tolerances."""
    UNCERTIFIED = 4
    """Has a solution, with a gap above the tolerance."""
    INFEASIBLE = 5
    """Proved to have no solution; its cost is infinite."""
    UNBOUNDED = 6
    """Its cost has no lower bound."""
    FAILED = 7
    """Every solver failed, and infeasibility is unproved."""


Rung = Callable[[Formulation], Solver]
LINEAR: tuple[tuple[Status, Rung], ...] = (
    (Status.FROM_SCRATCH, lambda form: LinearModel(form, Way(presolve="on"))),
    (Status.INTERIOR, lambda form: LinearModel(form, Way(solver="ipm", presolve="on"))),
    (Status.TIGHT, lambda form: LinearModel(form, Way(tolerance=1e-10))),
)
SPARSE: tuple[tuple[Status, Rung], ...] = (
    (Status.FROM_SCRATCH, lambda form: AngleModel(form, Way(presolve="on"))),
    (Status.INTERIOR, lambda form: AngleModel(form, Way(solver="ipm", presolve="on"))),
    (Status.TIGHT, lambda form: AngleModel(form, Way(tolerance=1e-10))),
)
QUADRATIC: tuple[tuple[Status, Rung], ...] = (
    (Status.FROM_SCRATCH, lambda form: QuadraticModel(form, InteriorWay(equilibrate=False))),
    (Status.TIGHT, lambda form: QuadraticModel(form, InteriorWay(tolerance=1e-13))),
)


class Ladder:
    """A sequence of solvers for batches of one formulation; keeps rows and basis between batches.

    Parameters
    ----------
    form
        The formulation.
    tolerance
        Relative gap up to which a cost counts as certified.
    all_rows
        Give the model every branch row at once instead of lazily.
    """

    def __init__(self, form: Formulation, *, tolerance: float, all_rows: bool = False) -> None:
        self.form = form
        self._tolerance = tolerance
        self._all_rows = all_rows
        self._models: dict[bool, Solver] = {}
        # Dense rows are faster while they have no more entries than a few sparse models.
        self._most: float = max(LEAST_ROWS * len(form.columns), SPARSE_MODELS * size(form))
        if form.flows.dense is not None:
            self._most = np.inf  # a small network keeps its whole PTDF
        self._angles: AngleModel | None = None
        self._elastic: LinearModel | None = None

    def solve(self, batch: Batch) -> tuple[Ints, Certified]:
        """Solve every model; return statuses and certified answers."""
        hopeless = _out_of_reach(self.form, batch)
        quick = not self._all_rows and applies(self.form, batch)
        together: dict[int, Answer] = {}
        if quick:
            together = solve_together(self.form, batch, ~hopeless, lambda k: self._one(batch, k))
        answers = [
            without_numbers(Outcome.INFEASIBLE, self.form)
            if hopeless[k]
            else together.get(k) or self._one(batch, k)
            for k in range(len(batch))
        ]
        certified = certify(self.form, batch, answers)
        status = np.where(hopeless, Status.INFEASIBLE, Status.OPTIMAL).astype(np.int64)
        unsolved = _unsolved(answers) & ~hopeless
        lost = np.flatnonzero(unsolved & _infeasible(answers))
        if len(lost):
            proved = lost[self._proved_infeasible(batch.some(lost))]
            status[proved], unsolved[proved], hopeless[proved] = Status.INFEASIBLE, False, True
        doubtful = ~hopeless & ~unsolved & self._rejected(certified)
        tighter = self._angles is not None and doubtful.any() and self._angles.tighten()
        for k in np.flatnonzero(doubtful | unsolved):
            answer = answers[k]
            if k in together or (tighter and doubtful[k]):
                answer = self._one(batch, int(k))
                certified.put(int(k), certify(self.form, batch.one(int(k)), [answer]))
            if answer.outcome is not Outcome.SOLVED or self._rejected(certified)[k]:
                status[k] = self._climb(batch.one(int(k)), answer, certified, int(k))
        for k in np.flatnonzero(status > Status.UNCERTIFIED):
            _blank(certified, int(k), Status(status[k]))
        return status, certified

    def _one(self, batch: Batch, k: int) -> Answer:
        """Solve one model with the warm solver of its kind.

        Linear models start with rows of the PTDF. If one needs too many, it is solved with angles,
        and so are all models after it: many more rows are broken on the way to a solution than
        bind at its end, so a solution can't tell whether rows would be faster again.
        """
        curved = bool(batch.bounds.quad[k].any())
        if curved or self._all_rows or not fits(self.form, batch, k):
            return solve_lazily(self._model(curved, batch, k), batch, k)
        if self._angles is None:
            answer = solve_lazily(self._model(False, batch, k), batch, k, self._most)
            if answer.outcome is not Outcome.CROWDED:
                return answer
            self._angles = AngleModel(self.form)
        return solve_lazily(self._angles, batch, k)

    def _model(self, curved: bool, batch: Batch, k: int) -> Solver:
        if curved not in self._models:
            model: Solver = QuadraticModel(self.form) if curved else LinearModel(self.form)
            if self._all_rows:
                model.load(batch, k)
                add_all(model, batch)
            self._models[curved] = model
        return self._models[curved]

    def _rejected(self, certified: Certified) -> Bools:
        good = (certified.gap <= self._tolerance) & (certified.violation <= VIOLATION)
        return np.asarray(~good)

    def _climb(self, batch: Batch, answer: Answer, into: Certified, k: int) -> Status:
        """Try the rungs in turn on one model; write its best answer into row `k` of `into`."""
        if answer.outcome is Outcome.INFEASIBLE and self._proved_infeasible(batch)[0]:
            return Status.INFEASIBLE
        curved = bool(batch.bounds.quad.any())
        outcomes = [answer.outcome]
        solved = answer.outcome is Outcome.SOLVED
        if curved and solved and self._take(batch, polished(self.form, batch, answer), into, k):
            return Status.OPTIMAL
        sparse = self._angles is not None and fits(self.form, batch, 0)
        for status, rung in QUADRATIC if curved else SPARSE if sparse else LINEAR:
            answer = solve_lazily(rung(self.form), batch, 0)
            outcomes.append(answer.outcome)
            if answer.outcome is not Outcome.SOLVED:
                continue
            if Outcome.SOLVED not in outcomes[:-1]:
                into.put(k, certify(self.form, batch, [answer]))
            if self._take(batch, answer, into, k):
                return status
            if curved and self._take(batch, polished(self.form, batch, answer), into, k):
                return status
        if Outcome.SOLVED in outcomes:
            return Status.UNCERTIFIED
        if self._proved_infeasible(batch)[0]:
            return Status.INFEASIBLE
        return Status.UNBOUNDED if Outcome.UNBOUNDED in outcomes else Status.FAILED

    def _take(self, batch: Batch, answer: Answer, into: Certified, k: int) -> bool:
        """Write an answer into row `k` if it is better; say whether the row is now certified."""
        found = certify(self.form, batch, [answer])
        if _miss(found, 0) < _miss(into, k):
            into.put(k, found)
        return not self._rejected(into)[k]

    def _proved_infeasible(self, batch: Batch) -> Bools:
        """Say of which models a lower bound of the least total overload is above zero."""
        if self.form.slack.lines:
            return np.zeros(len(batch), dtype=bool)
        if self._elastic is None:
            self._elastic = LinearModel(self.form.elastic())
        free = batch.without_cost()
        answers = [solve_lazily(self._elastic, free, k) for k in range(len(free))]
        bound = certify(self._elastic.form, free, answers).bound
        return np.asarray(~_unsolved(answers) & (bound > PROOF))


def _miss(certified: Certified, k: int) -> tuple[bool, float]:
    return bool(certified.violation[k] > VIOLATION), float(certified.gap[k])


def _unsolved(answers: list[Answer]) -> Bools:
    return np.array([answer.outcome is not Outcome.SOLVED for answer in answers], dtype=bool)


def _infeasible(answers: list[Answer]) -> Bools:
    return np.array([answer.outcome is Outcome.INFEASIBLE for answer in answers], dtype=bool)


def _out_of_reach(form: Formulation, batch: Batch) -> Bools:
    """Mark models whose limits cross, or whose demand no output within the limits can meet."""
    low, high = batch.bounds.low, batch.bounds.high
    slip = SHORT * np.maximum(1.0, np.abs(batch.demand))
    short = form.balance(high) < batch.demand - slip
    long = form.balance(low) > batch.demand + slip
    return np.asarray((low > high).any(1) | short.any(1) | long.any(1))


def _blank(certified: Certified, k: int, status: Status) -> None:
    """Overwrite the numbers of a model without a solution."""
    value = {Status.INFEASIBLE: np.inf, Status.UNBOUNDED: -np.inf}.get(status, np.nan)
    certified.cost[k] = value
    certified.bound[k] = -np.inf if status is Status.FAILED else value
    certified.gap[k] = np.inf if status is Status.FAILED else 0.0
    certified.violation[k] = 0.0
    for values in (certified.x, certified.flow, certified.nodal, certified.prices):
        values[k] = np.nan
