"""The restoration of capacities as a problem of two levels: capacities above, models below.

Above, capacities `phi` of the limited branches are chosen in a box. Below, every model of a
population answers with its cheapest dispatch,

    C_t(phi) = constant + min lin'x,  low <= x <= high,  sum of an island's x = demand,
               rows x <= room + factor phi[line],

and the objective is `sum_t |goal_t - C_t(phi)| + weight ||phi - start||_1`. A branch has a row
along it and one against it, and two more if its angle difference is limited (with a `factor` of 0).
A row that no dispatch can reach at the lowest capacity is left out: it never binds.

**Embedded** is the convex problem of `paper_steps` for capacities, with the models inside. If
capacities are the only private values and costs are linear, a model's dispatch can be part of the
programme: ``cost of the dispatch <= goal + miss`` is then exactly the convex term, and every
solution serves the models. Rows of lines are added when they are broken. The concave term is a
plane, as in `paper_steps`, which changes from step to step; everything else stays warm.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gridveil.errors import InputError
from gridveil.grid.model.network import Network
from gridveil.grid.model.population import Population
from gridveil.grid.opf.columns import Slack
from gridveil.grid.opf.formulation import Batch, Formulation, check_population
from gridveil.grid.restoration.paper_programme import GrowingProgramme

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# A row counts as out of reach if every dispatch stays below its limit by at least this (MW).
CLEAR = 1e-7


@dataclass(frozen=True, eq=False)
class LowerModel:
    """The numbers of one lower-level model; the module's docstring explains them."""

    lin: Floats
    low: Floats
    high: Floats
    constant: float
    bus: Ints
    island: Ints
    demand: Floats
    rows: Floats
    line: Ints
    factor: Floats
    room: Floats

    def limits(self, phi: Floats) -> Floats:
        """Compute the right-hand sides of the rows at capacities `phi`."""
        found: Floats = self.room + self.factor * phi[self.line]
        return found


@dataclass(frozen=True, eq=False)
class Bilevel:
    """Both levels: the models, and the upper level's goals, start, box and weight."""

    models: tuple[LowerModel, ...]
    goal: Floats
    start: Floats
    low: Floats
    high: Floats
    weight: float

    def objective(self, phi: Floats, costs: Floats) -> float:
        """Compute the objective of capacities from the models' costs there."""
        distance = np.abs(phi - self.start).sum()
        return float(np.abs(self.goal - costs).sum() + self.weight * distance)


def describe(
    network: Network,
    models: Population,
    goal: ArrayLike,
    start: ArrayLike,
    low: ArrayLike,
    high: ArrayLike,
    weight: float,
) -> Bilevel:
    """Check the input, and collect the numbers of every model.

    Parameters are those of `restore_exactly`.
    """
    check_population(network, models)
    limited = np.flatnonzero(np.isfinite(network.branches.capacity))
    if len(limited) == 0:
        raise InputError("No branch of this network has a limited capacity.")
    targets = as_vector(goal, models.size, "goal", "one for each model")
    first, floor, top = (
        as_vector(values, len(limited), name, "one for each limited branch")
        for values, name in ((start, "start"), (low, "low"), (high, "high"))
    )
    if (floor > top).any():
        raise InputError("The lower limit of a capacity is above its upper limit.")
    if not (np.isfinite(weight) and weight >= 0):
        raise InputError(f"weight={weight!r} is not a price.", remedy="Give a number from 0.")
    form = Formulation(network, "series", own_costs=models.cost is None, pieces=None, slack=Slack())
    batch = form.batch(models, np.full(len(network.branches), np.inf))
    _check_columns(batch)
    scale = np.ones((models.size, len(network.branches)))
    scale = scale if models.capacity is None else models.capacity
    found = tuple(
        _lower(form, batch.one(t), limited, scale[t, limited], floor, top)
        for t in range(models.size)
    )
    return Bilevel(found, targets, first, floor, top, float(weight))


def as_vector(values: ArrayLike, count: int, name: str, what: str) -> Floats:
    """Return an array of `count` finite numbers, or raise an error that says what is needed."""
    try:
        array = np.array(values, dtype=float)
    except (TypeError, ValueError):
        array = np.full(1, np.nan)
    if array.shape != (count,) or not np.isfinite(array).all():
        raise InputError(f"{name} needs {count} finite numbers, {what}.")
    return array


def _check_columns(batch: Batch) -> None:
    bounds = batch.bounds
    if bounds.quad.any():
        raise InputError(
            "The exact restoration needs linear costs, and some are quadratic.",
            remedy="Use network.linearised(), or a population with costs of its own.",
        )
    if not (np.isfinite(bounds.low).all() and np.isfinite(bounds.high).all()):
        raise InputError("The exact restoration needs finite generator limits.")


def _lower(
    form: Formulation, batch: Batch, limited: Ints, scale: Floats, low: Floats, high: Floats
) -> LowerModel:
    """Collect the numbers of one model, with the rows that some dispatch can reach."""
    flows, bounds, base = form.flows, batch.bounds, batch.base[0]
    live = flows.live[limited]
    lines, mine = limited[live], np.flatnonzero(live)
    cap, most = scale[live] * low[live], scale[live] * high[live]
    at, line, factor, room, lowest = [], [], [], [], []
    for sign, angle in ((1, flows.high_angle), (-1, -flows.low_angle)):
        at.append(sign * flows.rows(lines))
        line.append(mine)
        factor.append(scale[live])
        room.append(-sign * base[lines])
        lowest.append(cap - sign * base[lines])
        ceiling = np.full(len(flows.b), np.inf)
        ceiling[lines] = most
        tight = np.flatnonzero(np.isfinite(angle) & (angle < ceiling))
        at.append(sign * flows.rows(tight))
        line.append(np.zeros(len(tight), dtype=np.int64))
        factor.append(np.zeros(len(tight)))
        room.append(angle[tight] - sign * base[tight])
        lowest.append(room[-1])
    rows = np.concatenate(at)[:, form.columns.bus]
    x_low, x_high, island = bounds.low[0], bounds.high[0], form.column_island
    reach = _reach(rows, x_low, x_high, island, batch.demand[0])
    kept = reach > np.concatenate(lowest) - CLEAR
    return LowerModel(
        lin=bounds.lin[0],
        low=x_low,
        high=x_high,
        constant=float(bounds.constant[0]),
        bus=form.columns.bus,
        island=island,
        demand=batch.demand[0],
        rows=rows[kept],
        line=np.concatenate(line)[kept],
        factor=np.concatenate(factor)[kept],
        room=np.concatenate(room)[kept],
    )


def _reach(rows: Floats, low: Floats, high: Floats, island: Ints, demand: Floats) -> Floats:
    """Compute the largest value of every row over all dispatches that meet demand (a knapsack)."""
    total = rows @ low
    for label, need in enumerate(demand):
        own = np.flatnonzero(island == label)
        order = np.argsort(-rows[:, own], axis=1, kind="stable")
        width = (high - low)[own][order]
        left = need - low[own].sum() - (width.cumsum(1) - width)
        taken = np.clip(left, 0.0, width)
        total += (np.take_along_axis(rows[:, own], order, 1) * taken).sum(1)
    found: Floats = total
    return found


# A row is added if it is broken by more than this (MW): a hundredth of the overload from which the
# engine counts a model as infeasible.
_BROKEN = 1e-9
_AT_ONCE = 20


class Embedded(GrowingProgramme):
    """A linear programme over capacities and dispatches that minimises distances and misses.

    Parameters
    ----------
    models
        The numbers of every model.
    goals
        The costs that the models should have.
    start
        The capacities that distances are measured from.
    low, high
        The public box.
    known
        For every model, the rows that it has needed so far; more are added in place.
    """

    def __init__(
        self,
        models: list[LowerModel],
        goals: Floats,
        start: Floats,
        low: Floats,
        high: Floats,
        known: list[set[int]],
    ) -> None:
        self._models, self._goals, self._start, self._known = models, goals, start, known
        self._low, self._high = low, high
        n, terms = len(start), len(models)
        self._n = n
        self._x = 2 * n + terms + np.concatenate([[0], np.cumsum([len(m.lin) for m in models])])
        self._up = np.maximum(low - start, 0.0), np.maximum(high - start, 0.0)
        self._down = np.maximum(start - high, 0.0), np.maximum(start - low, 0.0)
        super().__init__(
            np.concatenate([self._up[0], self._down[0], np.zeros(terms), *(m.low for m in models)]),
            np.concatenate(
                [self._up[1], self._down[1], np.full(terms, np.inf), *(m.high for m in models)]
            ),
            range(2 * n + terms),
        )
        for t, model in enumerate(models):
            self._add_model(t, model)

    def solve(self, plane: tuple[Floats, Floats, Floats] | None) -> tuple[Floats, float]:
        """Find the best capacities and the least sum, with the concave term replaced by a plane.

        Parameters
        ----------
        plane
            Values, costs and slopes at a point; None to leave the concave term out.
        """
        self._turn(plane)
        while True:
            x, value = self._solved()
            phi = self._phi(x)
            if not self._add_broken(x, phi):
                return phi, value

    def hold(self, lines: Ints, ends: Floats) -> None:
        """Keep some capacities at or below these ends, and release all others."""
        least_up, most_up = self._up
        least_down, most_down = (end.copy() for end in self._down)
        most_up, least_up = most_up.copy(), least_up.copy()
        most_up[lines] = np.maximum(ends - self._start[lines], 0.0)
        least_up[lines] = np.minimum(least_up[lines], most_up[lines])
        least_down[lines] = np.maximum(self._start[lines] - ends, least_down[lines])
        places = np.arange(2 * self._n, dtype=np.int32)
        low, high = np.concatenate([least_up, least_down]), np.concatenate([most_up, most_down])
        self._highs.changeColsBounds(len(places), places, low, high)

    def dispatches(self) -> list[Floats]:
        """Return the models' dispatches in the last solution."""
        x = np.array(self._highs.getSolution().col_value)
        return [x[self._x[t] : self._x[t + 1]] for t in range(len(self._models))]

    def _phi(self, x: Floats) -> Floats:
        n = self._n
        return np.clip(self._start + x[:n] - x[n : 2 * n], self._low, self._high)

    def _add_model(self, t: int, model: LowerModel) -> None:
        at = np.arange(self._x[t], self._x[t + 1])
        for island, demand in enumerate(model.demand):
            own = at[model.island == island]
            self._add(own, np.ones(len(own)), float(demand), float(demand))
        places = np.append(at, 2 * self._n + t)
        most = float(self._goals[t]) - model.constant
        self._add(places, np.append(model.lin, -1.0), -np.inf, most)
        for row in sorted(self._known[t]):
            self._add_row(t, row)

    def _add_row(self, t: int, row: int) -> None:
        """Add a line's limit: ``rows x <= room + factor (start + up - down)``."""
        model, line = self._models[t], int(self._models[t].line[row])
        at = np.arange(self._x[t], self._x[t + 1])
        factor = float(model.factor[row])
        places = np.concatenate([at, [line, self._n + line]])
        values = np.concatenate([model.rows[row], [-factor, factor]])
        limit = float(model.room[row] + factor * self._start[line])
        self._add(places, values, -np.inf, limit)

    def _add_broken(self, x: Floats, phi: Floats) -> bool:
        found = False
        for t, model in enumerate(self._models):
            over = model.rows @ x[self._x[t] : self._x[t + 1]] - model.limits(phi)
            over[list(self._known[t])] = -np.inf
            worst = np.argsort(-over, kind="stable")[:_AT_ONCE]
            for row in worst[over[worst] > _BROKEN].tolist():
                self._known[t].add(row)
                self._add_row(t, row)
                found = True
        return found

    def _turn(self, plane: tuple[Floats, Floats, Floats] | None) -> None:
        self._replace_planes(0 if plane is None else len(self._models))
        if plane is None:
            return
        values, costs, slopes = plane
        for t in range(len(self._models)):
            some = np.flatnonzero(slopes[t])
            places = np.concatenate([some, self._n + some, [2 * self._n + t]])
            slope = slopes[t, some]
            # miss >= goal - cost - slope (start + up - down - values)
            least = self._goals[t] - costs[t] - slopes[t] @ (self._start - values)
            self._add(places, np.concatenate([slope, -slope, [1.0]]), float(least), np.inf)
