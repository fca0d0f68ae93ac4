"""A dual simplex that solves all models of a batch at once, one step of every model at a time.

On a small network, solving a model takes less time than handing it to a solver. Here the models of
a batch, which share `A`, go through the bounded dual simplex together, in a few array operations
per step. They start from the merit order, which is optimal without the branches. The rows are

    sum x = D,    F x - s - v + w = 0  for the branches that some solution overloads,

with `-room[1] <= s <= room[0]`, and with line slack `v, w >= 0` at the slack price. There is no
state between batches, and no answer is trusted: models whose answer is not certified go on to
HiGHS.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gridveil.grid.opf.formulation import Batch, Formulation
from gridveil.grid.opf.highs import Answer, Outcome

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

FEASIBLE = 1e-9
# The smallest pivot; smaller entries count as zero.
PIVOT = 1e-9
MOST_STEPS = 80
MOST_ROUNDS = 4
# With fewer models or more rows than this, HiGHS is as fast.
FEWEST_MODELS, MOST_ROWS = 16, 64


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


def solve_together(form: Formulation, batch: Batch, wanted: Bools) -> dict[int, Answer]:
    """Solve the wanted models of a batch; those without an answer are left out."""
    todo = np.flatnonzero(wanted & (batch.room.sum(1) >= 0).all(1))
    answers: dict[int, Answer] = {}
    if len(todo) == 0:
        return answers
    start, x = _merit_order(batch, todo)
    flow = form.flow(x)
    lines = np.flatnonzero((_over(batch, todo, flow) > FEASIBLE).any(0))
    for _ in range(MOST_ROUNDS):
        if len(lines) > MOST_ROWS or len(todo) == 0:
            break
        tableau = _begin(form, batch, todo, lines, (start, x))
        ended = _steps(tableau)
        todo, start, x, tableau = todo[ended], start[ended], x[ended], tableau.only(ended)
        found = tableau.x[:, : len(form.columns)]
        flow = form.flow(found)
        over = _over(batch, todo, flow)
        over[:, lines] = 0.0
        good = np.asarray((over <= FEASIBLE).all(1))
        _collect(form, tableau, lines, todo, good, answers)
        todo, start, x = todo[~good], start[~good], x[~good]
        lines = np.union1d(lines, np.flatnonzero((over > FEASIBLE).any(0)))
    return answers


@dataclass(eq=False)
class Tableau:
    """The state of the simplex, one row per model.

    `basis` lists the basic columns, `basic` marks them, `inverse` is `B^-1`; all models share `A`.
    """

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
    taken = np.where(np.arange(low.shape[1]) < place[:, None], width, 0.0)
    models = np.arange(len(todo))
    taken[models, place] = need[:, 0] - taken.sum(1)
    x = low.copy()
    np.put_along_axis(x, order, np.take_along_axis(low, order, 1) + taken, 1)
    return order[models, place], x


def _begin(
    form: Formulation, batch: Batch, todo: Ints, lines: Ints, start: tuple[Ints, Floats]
) -> Tableau:
    """Set up the columns `x, s` (and `v, w`) with the merit order's basis."""
    first, x = start
    count, models, width = len(lines), len(todo), len(form.columns)
    F = form.flows.rows(lines)[:, form.columns.bus]
    unit = np.eye(count)
    bought = [-unit, unit] if form.slack.lines else []
    A = np.zeros((1 + count, width + count * (1 + len(bought))))
    A[0, :width] = 1.0
    A[1:] = np.hstack([F, -unit, *bought])
    extra = count * len(bought)
    none = np.zeros((models, extra))
    bounds, room = batch.bounds, batch.room[todo][:, :, lines]
    idle = np.zeros((models, count))
    basis = np.hstack([first[:, None], np.broadcast_to(width + np.arange(count), (models, count))])
    basic = np.zeros((models, A.shape[1]), dtype=bool)
    np.put_along_axis(basic, basis, True, 1)
    # B = [[1, 0], [F_first, -I]] is its own inverse up to signs.
    inverse = np.zeros((models, 1 + count, 1 + count))
    inverse[:, 0, 0] = 1.0
    inverse[:, 1:, 0] = F[:, first].T
    inverse[:, 1:, 1:] = -unit
    return Tableau(
        A=A,
        b=np.hstack([batch.demand[todo], idle]),
        cost=np.hstack([bounds.lin[todo], idle, none + form.slack.price]),
        low=np.hstack([bounds.low[todo], -room[:, 1], none]),
        high=np.hstack([bounds.high[todo], room[:, 0], none + np.inf]),
        x=np.hstack([x, x @ F.T, none]),
        basis=basis,
        basic=basic,
        inverse=inverse,
    )


def _steps(whole: Tableau) -> Bools:
    """Step, in place, until all models are optimal or stuck; return which are optimal."""
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
            for name in ("x", "basis", "inverse"):
                getattr(whole, name)[place[out]] = getattr(part, name)[out]
            place, part, row, miss = place[~out], part.only(~out), row[~out], miss[~out]
        if len(place) == 0:
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
    row = np.abs(miss).argmax(1)
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
    model, column = np.nonzero(may)
    ratio = np.full(may.shape, np.inf)
    ratio[model, column] = np.abs(part.cost[model, column] - (y @ part.A)[model, column])
    ratio[model, column] /= size[model, column]
    # Columns are flipped in order of their ratios; the one whose flip would more than remove the
    # miss enters the basis.
    few = int(may.sum(1).max(initial=1))
    order = np.argsort(ratio, axis=1)[:, :few]
    gain = np.zeros(may.shape)
    gain[model, column] = span[model, column] * size[model, column]
    left = np.abs(miss)[:, None] - gain[models[:, None], order].cumsum(1)
    count = (left > 0).sum(1)
    enter = order[models, np.minimum(count, few - 1)]
    found = may[models, enter] & (count < few)
    passed = (np.arange(few) < count[:, None]) & found[:, None]
    model, column = np.nonzero(passed)[0], order[passed]
    kept = may[model, column]
    model, column = model[kept], column[kept]
    part.x[model, column] = np.where(
        upper[model, column], part.low[model, column], part.high[model, column]
    )
    enter = np.where(found, enter, part.basis[models, row])
    _exchange(part, row, enter, miss > 0)
    return np.asarray(~found)


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
    lines: Ints,
    todo: Ints,
    good: Bools,
    answers: dict[int, Answer],
) -> None:
    y, width = tableau.duals(), len(form.columns)
    # A binding limit along the branch has `y < 0` on its row, one against it `y > 0`.
    prices = np.zeros((len(todo), 2, form.flows.height))
    prices[:, 0, lines], prices[:, 1, lines] = np.maximum(-y[:, 1:], 0), np.maximum(y[:, 1:], 0)
    for k in np.flatnonzero(good):
        answers[int(todo[k])] = Answer(Outcome.SOLVED, tableau.x[k, :width], y[k, :1], prices[k])
