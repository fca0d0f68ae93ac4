"""A dual simplex that solves all models of a batch at once, one step of every model at a time.

On a small network, solving a model takes less time than handing it to a solver. Here the models of
a batch, which share `A`, go through the bounded dual simplex together, in a few array operations
per step. They start from the merit order, which is optimal without the branches, or from the basis
of a solved model, with columns flipped to the bound that their reduced costs ask for. The rows are

    sum x = D,    F x - s - v + w = 0  for the branches that some solution overloads,

with `-room[1] <= s <= room[0]`, and with line slack `v, w >= 0` at the slack price. No answer is
trusted: models whose answer is not certified go on to HiGHS.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gridveil.grid.opf.formulation import Batch, Formulation
from gridveil.grid.opf.lazy_rows import Answer, Outcome

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

FEASIBLE = 1e-9
# The smallest pivot; smaller entries count as zero.
PIVOT = 1e-9
MOST_STEPS = 80
MOST_ROUNDS = 6
# With fewer models or more rows than this, HiGHS is as fast.
FEWEST_MODELS, MOST_ROWS = 16, 64
# A solved model is a better start than the merit order if that overloads more branches a model than
# this (without and with line slack, of which each takes steps of its own), if a step takes long
# because the table has so many entries, and if there are so many models.
MANY_BROKEN, LARGE_TABLE, FEWEST_LIKE = (8, 5), 1800, 64
# Some models go first, to see whether most can be solved. HiGHS is warm then, and as fast when no
# more than so many models are left.
PROBE, FEW_LEFT = 32, 8
# A basis with a larger condition number is no start.
WORST_CONDITION = 1e10


def applies(form: Formulation, batch: Batch) -> bool:
    """Say whether the batch can be solved at once: small, linear, one island, and bounded."""
    bounds = batch.bounds
    return (
        len(batch) >= FEWEST_MODELS
        and form.flows.dense is not None
        and form.islands == 1
        and len(form.columns) > 0
        and not bounds.quad.any()
        and bool(np.isfinite(bounds.low).all() and np.isfinite(bounds.high).all())
    )


def solve_together(
    form: Formulation, batch: Batch, wanted: Bools, alone: Callable[[int], Answer]
) -> dict[int, Answer]:
    """Solve the wanted models of a batch; those without an answer are left out.

    They start from the merit order. If that overloads many branches, `alone` solves the first
    model, and the others start from its basis: models of a population are alike.
    """
    answers: dict[int, Answer] = {}
    todo = np.flatnonzero(wanted & (batch.room.sum(1) >= 0).all(1))
    if len(todo) == 0:
        return answers
    place, x = _merit_order(batch, todo)
    broken = _over(batch, todo, form.flow(x)) > FEASIBLE
    rows = int(broken.any(0).sum())
    large = rows * (x.shape[1] + 3 * rows) > LARGE_TABLE
    many = broken.sum() > MANY_BROKEN[form.slack.lines] * len(todo)
    if large and many and len(todo) >= FEWEST_LIKE:
        _follow(form, batch, todo, alone, answers)
    elif rows <= MOST_ROWS:
        _finish(form, batch, todo, _ordered(batch, todo, place, x), answers)
    return answers


def _follow(
    form: Formulation,
    batch: Batch,
    todo: Ints,
    alone: Callable[[int], Answer],
    answers: dict[int, Answer],
) -> None:
    """Solve the first model alone and the others from its basis, if that solves most of a few."""
    first = int(todo[0])
    answers[first] = alone(first)
    start = _like(form, batch, todo[1:], first, answers[first])
    if start is None:
        return
    todo, tableau = start
    for some in np.split(np.arange(len(todo)), [PROBE]):
        _finish(form, batch, todo[some], tableau.only(some), answers, FEW_LEFT)
        if 2 * sum(int(k) in answers for k in todo[some]) < len(some):
            break


def _finish(
    form: Formulation,
    batch: Batch,
    todo: Ints,
    tableau: Tableau,
    answers: dict[int, Answer],
    few: int = 0,
) -> None:
    """Step to the optimum, add the rows of branches that are overloaded there, and go on.

    If there is no room for all rows, those that most models break come first. It ends after some
    rounds, without room for more rows, or when only a few models are left.
    """
    for _ in range(MOST_ROUNDS):
        ended = _steps(tableau, few)
        todo, tableau = todo[ended], tableau.only(ended)
        over = _over(batch, todo, form.flow(tableau.x[:, : len(form.columns)]))
        over[:, tableau.lines] = 0.0
        good = np.asarray((over <= FEASIBLE).all(1))
        _collect(form, tableau, todo, good, answers)
        models = (over > FEASIBLE).sum(0)
        lines = np.argsort(-models, kind="stable")[: MOST_ROWS - len(tableau.lines)]
        lines = np.sort(lines[models[lines] > 0])
        if len(lines) == 0:
            break
        todo, tableau = todo[~good], tableau.only(~good)
        tableau = _with_rows(form, batch, todo, tableau, lines)


@dataclass(eq=False)
class Tableau:
    """The state of the simplex, one row per model.

    `basis` lists the basic columns, `basic` marks them, `inverse` is `B^-1`. All models share `A`,
    whose rows after the first are those of `lines`.
    """

    lines: Ints
    A: Floats
    b: Floats
    cost: Floats
    low: Floats
    high: Floats
    x: Floats
    basis: Ints
    basic: Bools
    inverse: Floats

    def only(self, which: Bools | Ints) -> Tableau:
        """Return the state of some of the models."""
        return Tableau(
            lines=self.lines,
            A=self.A,
            b=self.b[which],
            cost=self.cost[which],
            low=self.low[which],
            high=self.high[which],
            x=self.x[which],
            basis=self.basis[which],
            basic=self.basic[which],
            inverse=self.inverse[which],
        )

    def duals(self) -> Floats:
        """Compute `y = c_B B^-1`."""
        at = np.take_along_axis(self.cost, self.basis, 1)
        found: Floats = np.matmul(at[:, None], self.inverse)[:, 0]
        return found


def _over(batch: Batch, todo: Ints, flow: Floats) -> Floats:
    return np.asarray(np.maximum(flow - batch.room[todo, 0], -flow - batch.room[todo, 1]))


def _merit_order(batch: Batch, todo: Ints) -> tuple[Ints, Floats]:
    """Fill the columns in order of cost until demand is met; the last one filled is basic."""
    low, high, lin = (v[todo] for v in (batch.bounds.low, batch.bounds.high, batch.bounds.lin))
    order = np.argsort(lin, axis=1, kind="stable")
    width = np.take_along_axis(high - low, order, 1)
    room = width.cumsum(1)
    need = batch.demand[todo] - low.sum(1, keepdims=True)
    place = np.minimum((room < need).sum(1), low.shape[1] - 1)
    filled = np.arange(low.shape[1]) < place[:, None]
    # Columns are at a bound exactly, and not where rounding takes `low + width`.
    taken = np.zeros(low.shape, dtype=bool)
    np.put_along_axis(taken, order, filled, 1)
    x = np.where(taken, high, low)
    models = np.arange(len(todo))
    basic = order[models, place]
    x[models, basic] += need[:, 0] - np.where(filled, width, 0.0).sum(1)
    return basic, x


def _ordered(batch: Batch, todo: Ints, place: Ints, x: Floats) -> Tableau:
    """Set up models without branches at their merit order, where the column `place` is basic."""
    count = len(todo)
    basic = np.zeros(x.shape, dtype=bool)
    basic[np.arange(count), place] = True
    return Tableau(
        lines=np.zeros(0, dtype=np.int64),
        A=np.ones((1, x.shape[1])),
        b=batch.demand[todo],
        cost=batch.bounds.lin[todo],
        low=batch.bounds.low[todo],
        high=batch.bounds.high[todo],
        x=x,
        basis=place[:, None],
        basic=basic,
        inverse=np.ones((count, 1, 1)),
    )


def _like(
    form: Formulation, batch: Batch, todo: Ints, first: int, answer: Answer
) -> tuple[Ints, Tableau] | None:
    """Set up the models that can start from the basis of a solved one, and say which they are.

    The basis is read off the answer: columns between their bounds, and slack of branches that are
    overloaded. A degenerate answer does not tell its basis: then there is None.
    """
    lines = np.flatnonzero(answer.prices.any(0))
    if len(lines) > MOST_ROWS or answer.outcome is not Outcome.SOLVED:
        return None
    x = answer.x[None]
    whole = np.append(todo, first)
    place = np.zeros(len(whole), dtype=np.int64)
    tableau = _ordered(batch, whole, place, np.repeat(x, len(whole), axis=0))
    tableau = _with_rows(form, batch, whole, tableau, lines)
    bought = tableau.x[-1].copy()
    if form.slack.lines:
        flow = form.flow(x)[0, lines]
        over = np.maximum(flow - batch.room[first, 0, lines], 0.0)
        under = np.maximum(-flow - batch.room[first, 1, lines], 0.0)
        bought[x.shape[1] + len(lines) :] = np.concatenate([over, under])
    # Branches with a price are at a limit, so their `s` is not basic.
    inside = np.minimum(bought - tableau.low[-1], tableau.high[-1] - bought) > FEASIBLE
    inside[x.shape[1] : x.shape[1] + len(lines)] = False
    basis = np.flatnonzero(inside)
    if len(basis) != 1 + len(lines) or np.linalg.cond(tableau.A[:, basis]) > WORST_CONDITION:
        return None
    tableau = tableau.only(np.arange(len(todo)))
    inverse = np.linalg.inv(tableau.A[:, basis])
    tableau.basis[:], tableau.basic[:], tableau.inverse[:] = basis, inside, inverse
    reduced = tableau.cost - tableau.duals() @ tableau.A
    tableau.x = np.where(reduced < 0, tableau.high, tableau.low)
    may = (np.isfinite(tableau.x) | inside).all(1)
    return todo[may], tableau.only(may)


def _with_rows(form: Formulation, batch: Batch, todo: Ints, old: Tableau, lines: Ints) -> Tableau:
    """Add rows of branches, with columns `s` (and `v, w`), of which `s` is basic."""
    count, models, width = len(lines), len(todo), old.A.shape[1]
    F = np.zeros((count, width))
    F[:, : len(form.columns)] = form.flows.rows(lines)[:, form.columns.bus]
    unit = np.eye(count)
    own = np.hstack([-unit, -unit, unit] if form.slack.lines else [-unit])
    none = np.zeros((models, own.shape[1] - count))
    idle, room = np.zeros((models, count)), batch.room[todo][:, :, lines]
    height = len(old.A)
    # B = [[old B, 0], [F, -I]], and its inverse is [[old inverse, 0], [F old inverse, -I]].
    inverse = np.zeros((models, height + count, height + count))
    inverse[:, :height, :height] = old.inverse
    inverse[:, height:, :height] = F.T[old.basis].transpose(0, 2, 1) @ old.inverse
    inverse[:, height:, height:] = -unit
    more = np.broadcast_to(width + np.arange(count), (models, count))
    basic = np.zeros((models, own.shape[1]), dtype=bool)
    basic[:, :count] = True
    return Tableau(
        lines=np.concatenate([old.lines, lines]),
        A=np.vstack([np.hstack([old.A, np.zeros((height, own.shape[1]))]), np.hstack([F, own])]),
        b=np.hstack([old.b, idle]),
        cost=np.hstack([old.cost, idle, none + form.slack.price]),
        low=np.hstack([old.low, -room[:, 1], none]),
        high=np.hstack([old.high, room[:, 0], none + np.inf]),
        x=np.hstack([old.x, old.x @ F.T, none]),
        basis=np.hstack([old.basis, more]),
        basic=np.hstack([old.basic, basic]),
        inverse=inverse,
    )


def _steps(whole: Tableau, few: int) -> Bools:
    """Step, in place, until all models but a few are optimal or stuck; return the optimal ones."""
    ended = np.zeros(len(whole.b), dtype=bool)
    place = np.arange(len(whole.b))
    part = whole.only(place)
    stuck = np.zeros(len(place), dtype=bool)
    for _ in range(MOST_STEPS):
        row, miss = _leaving(part)
        done = np.abs(miss) <= FEASIBLE
        ended[place[done & ~stuck]] = True
        out = done | stuck
        if out.any():
            for name in ("x", "basis", "basic", "inverse"):
                getattr(whole, name)[place[out]] = getattr(part, name)[out]
            place, part, row, miss = place[~out], part.only(~out), row[~out], miss[~out]
        if len(place) <= few:
            break
        stuck = _pivot(part, row, miss)
    return ended


def _leaving(part: Tableau) -> tuple[Ints, Floats]:
    """Find the basic column furthest outside its bounds, and its signed distance."""
    held = np.where(part.basic, 0.0, part.x)
    values = (part.inverse @ (part.b - held @ part.A.T)[:, :, None])[:, :, 0]
    models = np.arange(len(values))
    part.x[models[:, None], part.basis] = values
    low, high = part.low[models[:, None], part.basis], part.high[models[:, None], part.basis]
    miss = np.maximum(values - high, 0.0) + np.minimum(values - low, 0.0)
    # Steepest edge: a miss counts by the length of its row of the inverse.
    row = (miss**2 / np.einsum("kij,kij->ki", part.inverse, part.inverse)).argmax(1)
    return row, miss[models, row]


def _pivot(part: Tableau, row: Ints, miss: Floats) -> Bools:
    """Make one dual step with bound flips in every model; return which had no step to make."""
    models = np.arange(len(row))
    y = part.duals()
    alpha = (part.inverse[models, row] * np.sign(miss)[:, None]) @ part.A
    # A column may move up from its lower bound or down from its upper one, to reduce the miss.
    span = part.high - part.low
    upper = part.x >= part.high
    size = np.where(upper, -alpha, alpha)
    may = (size > PIVOT) & (span > 0) & ~part.basic
    ratio = np.full(may.shape, np.inf)
    np.divide(np.abs(part.cost - y @ part.A), size, out=ratio, where=may)
    # Columns are flipped in order of their ratios; the one whose flip would more than remove the
    # miss enters the basis.
    found = np.zeros(len(row), dtype=bool)
    enter, left, todo = part.basis[models, row], np.abs(miss), models
    while len(todo):
        column = ratio[todo].argmin(1)
        able = np.isfinite(ratio[todo, column])
        todo, column = todo[able], column[able]
        left[todo] -= span[todo, column] * size[todo, column]
        more = left[todo] > 0
        found[todo[~more]], enter[todo[~more]] = True, column[~more]
        todo, column = todo[more], column[more]
        part.x[todo, column] = np.where(
            upper[todo, column], part.low[todo, column], part.high[todo, column]
        )
        ratio[todo, column] = np.inf
    _exchange(part, row, enter, miss > 0)
    return ~found


def _exchange(part: Tableau, row: Ints, enter: Ints, above: Bools) -> None:
    """Exchange columns of the basis; the one that leaves is set to the bound that it broke."""
    models = np.arange(len(row))
    leave = part.basis[models, row]
    part.x[models, leave] = np.where(above, part.high[models, leave], part.low[models, leave])
    part.basic[models, leave] = False
    part.basic[models, enter] = True
    part.basis[models, row] = enter
    column = (part.inverse @ part.A.T[enter][:, :, None])[:, :, 0]
    pivot = part.inverse[models, row] / column[models, row][:, None]
    column[models, row] = 0.0
    part.inverse -= column[:, :, None] * pivot[:, None]
    part.inverse[models, row] = pivot


def _collect(
    form: Formulation,
    tableau: Tableau,
    todo: Ints,
    good: Bools,
    answers: dict[int, Answer],
) -> None:
    y, width, lines = tableau.duals(), len(form.columns), tableau.lines
    # A binding limit along the branch has `y < 0` on its row, one against it `y > 0`.
    prices = np.zeros((len(todo), 2, form.flows.height))
    prices[:, 0, lines], prices[:, 1, lines] = np.maximum(-y[:, 1:], 0), np.maximum(y[:, 1:], 0)
    for k in np.flatnonzero(good):
        answers[int(todo[k])] = Answer(Outcome.SOLVED, tableau.x[k, :width], y[k, :1], prices[k])
