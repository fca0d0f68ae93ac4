"""Restoration of capacities as a problem of two levels: capacities above, models below.

Above, capacities `phi` of the limited branches are chosen in a box. Below, every model of a
population answers with its cheapest dispatch,

    C_t(phi) = constant + min lin'x,  low <= x <= high,  sum of an island's x = demand,
               rows x <= room + factor phi[line],

and the two meet in `sum_t |goal_t - C_t(phi)| + weight ||phi - start||_1`. A branch has a row along
it and one against it, and the same again where its angle difference is limited (`factor` is 0
there). A row that no dispatch can reach, at the lowest capacity, is left out: it never binds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gridveil.errors import InputError
from gridveil.grid.network import Network
from gridveil.grid.population import Population
from gridveil.grid.solving.columns import Slack
from gridveil.grid.solving.formulation import Batch, Formulation
from gridveil.grid.solving.settings import check_population

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# A row counts as out of reach if every dispatch stays below its limit by so much (MW).
CLEAR = 1e-7


@dataclass(frozen=True, eq=False)
class LowerModel:
    """The numbers of one model; see the head of this module."""

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
        """Right-hand sides of the rows at capacities `phi`."""
        found: Floats = self.room + self.factor * phi[self.line]
        return found


@dataclass(frozen=True, eq=False)
class Bilevel:
    """Both levels: the models, and what the upper level is to keep close to."""

    models: tuple[LowerModel, ...]
    goal: Floats
    start: Floats
    low: Floats
    high: Floats
    weight: float

    def objective(self, phi: Floats, costs: Floats) -> float:
        """Put a price on capacities, given the models' costs there."""
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
    targets = as_vector(goal, models.size, "goal", "one a model")
    first, floor, top = (
        as_vector(values, len(limited), name, "one a limited branch")
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
    """An array of so many finite numbers, or an error that says what is needed."""
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
    """Collect one model, with the rows that some dispatch can reach."""
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
    """The largest value of every row over all dispatches that meet demand: a filled knapsack."""
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
