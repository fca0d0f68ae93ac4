"""The columns of a model's linear or quadratic programme: everything that injects power.

The cost of a generator is cut into segments in order of power: linear ones, or one quadratic one.

A generator is one column `p_min <= x <= p_max`. With a piecewise-linear cost it is one column for
each segment: the slopes rise, so the cheapest way to fill the segments is in order, and the first
one carries `p_min`. What a model may buy at the slack price is more columns of the same kind: shed
and spill at every bus, or room above and below a generator's limits. So every model is

    min  sum_j lin_j x_j + quad_j x_j^2 + constant,   low <= x <= high,

with one balance for each island and limits on `F (injection - demand)`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gridveil.errors import InputError
from gridveil.grid.model.network import Network
from gridveil.grid.model.population import Population

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
# The slopes of a piecewise-linear cost may fall by this much, relative to the largest slope: the
# breakpoints in the source are rounded.
CONVEX_ENOUGH = 1e-9


@dataclass(frozen=True, eq=False)
class Segments:
    """Segments of the generators' costs; those of one generator are in order of power.

    `left` and `right` are the ends of a segment in MW (infinite on the outer side of a generator's
    first and last segment); `lin` is its slope (at 0 MW if `quad` is not zero). `piece` is its
    number if it is a piece of a quadratic cost, whose ends depend on each model's limits, else -1.
    """

    unit: Ints
    first: Bools
    left: Floats
    right: Floats
    lin: Floats
    quad: Floats
    piece: Ints


def cut_costs(network: Network, alive: Ints, own_costs: bool, pieces: int | None) -> Segments:
    """Cut the costs of the units `alive` into segments; see `Columns` for the arguments."""
    units = network.generators
    rows: list[tuple[float, ...]] = []
    for unit in alive:
        points, q = units.points[unit], float(units.quadratic[unit])
        if not own_costs:
            rows.append((unit, 1, -np.inf, np.inf, 0.0, 0.0, -1))
        elif points is not None:
            rows += _from_points(unit, points, units.name[unit])
        elif q < 0:
            raise _not_convex(units.name[unit])
        elif q > 0 and pieces is not None:
            slope = float(units.linear[unit])
            rows += [(unit, k == 0, 0.0, 0.0, slope, 0.0, k) for k in range(pieces)]
        else:
            rows.append((unit, 1, -np.inf, np.inf, float(units.linear[unit]), q, -1))
    table = np.array(rows, dtype=float).reshape(-1, 7)
    left, right, lin, quad = table[:, 2:6].T
    unit, piece = table[:, 0].astype(np.int64), table[:, 6].astype(np.int64)
    return Segments(unit, table[:, 1] == 1, left, right, lin, quad, piece)


def _from_points(unit: int, points: Floats, name: str) -> list[tuple[float, ...]]:
    width = np.diff(points[:, 0])
    if len(points) < 2 or (width <= 0).any():
        raise InputError(
            f"Unit {name} has cost breakpoints that do not rise.",
            remedy="Give two or more breakpoints (MW, $/h), in order of MW.",
        )
    slope = np.diff(points[:, 1]) / width
    if (np.diff(slope) < -CONVEX_ENOUGH * np.abs(slope).max()).any():
        raise _not_convex(name)
    slope = np.maximum.accumulate(slope)
    edges = np.concatenate([[-np.inf], points[1:-1, 0], [np.inf]])
    return [(unit, k == 0, edges[k], edges[k + 1], slope[k], 0.0, -1) for k in range(len(slope))]


def _not_convex(name: str) -> InputError:
    return InputError(
        f"The cost of unit {name} is not convex: more power would be cheaper at the margin.",
        remedy="Replace it by a convex cost, for example its linear part.",
    )


def value(points: Floats, p: Floats) -> Floats:
    """Compute a piecewise-linear cost; the first and the last segment extend without end."""
    slope = np.diff(points[:, 1]) / np.diff(points[:, 0])
    below = np.minimum(p - points[0, 0], 0.0) * slope[0]
    above = np.maximum(p - points[-1, 0], 0.0) * slope[-1]
    return np.asarray(np.interp(p, points[:, 0], points[:, 1]) + below + above)


@dataclass(frozen=True)
class Slack:
    """Which limits a model may exceed for money (lines, balance at buses, units), and the price.

    The price is in $/MWh.
    """

    lines: bool = False
    buses: bool = False
    limits: bool = False
    price: float = 0.0


@dataclass(frozen=True, eq=False)
class Bounds:
    """The bounds and costs of the columns for some models: one row per model.

    `constant` is the part of the cost that no column carries; `error` is how much too high the cost
    may be because linear pieces replace quadratic costs ($/h).
    """

    low: Floats
    high: Floats
    lin: Floats
    quad: Floats
    constant: Floats
    error: Floats

    def one(self, k: int) -> Bounds:
        """Return the bounds of model `k` alone."""
        return Bounds(*(values[k : k + 1] for values in self.arrays()))

    def arrays(self) -> tuple[Floats, ...]:
        """Return all arrays, in the order of the fields."""
        return self.low, self.high, self.lin, self.quad, self.constant, self.error


class Columns:
    """The columns of one network's models: which bus and which generator each belongs to.

    Parameters
    ----------
    network
        The network.
    own_costs
        Whether to use the network's costs; if not, the population has linear ones.
    pieces
        How many linear pieces replace a quadratic cost, or None to keep it.
    slack
        What a model can buy.
    """

    def __init__(
        self, network: Network, *, own_costs: bool, pieces: int | None, slack: Slack
    ) -> None:
        units, buses = network.generators, network.buses
        self._units, self._slack, self._own, self._pieces = units, slack, own_costs, pieces
        alive = np.flatnonzero(units.in_service & buses.in_service[units.bus])
        self._segments = cut_costs(network, alive, own_costs, pieces)
        self.alive = alive
        seg = self._segments.unit
        parts = [seg, seg, seg] if slack.limits else [seg]
        served = np.flatnonzero(buses.in_service) if slack.buses else np.zeros(0, np.int64)
        self.unit: Ints = np.concatenate([*parts, np.full(2 * len(served), -1)])
        self.bus: Ints = np.concatenate([units.bus[np.concatenate(parts)], served, served])
        self.first = np.zeros(len(self.unit), dtype=bool)
        self.first[: len(seg)] = self._segments.first
        self._served = len(served)

    def __len__(self) -> int:
        return len(self.unit)

    def bounds(self, population: Population) -> Bounds:
        """Compute limits and costs of every column in every model."""
        units, seg, size = self._units, self._segments, population.size
        low = _scaled(units.p_min, population.p_min, size)
        high = _scaled(units.p_max, population.p_max, size)
        factor = _scaled(np.ones(len(units)), population.cost_factor, size)
        self._check_factor(factor)
        crossed = np.zeros(size)
        if self._slack.limits:
            # With p_min > p_max every p between them misses both, by p_min - p_max in total.
            crossed = np.maximum(low - high, 0.0)[:, self.alive].sum(1) * self._slack.price
            low, high = np.minimum(low, high), np.maximum(low, high)
        left, right, lin, error = self._ends(low, high, population)
        f, lo, hi = factor[:, seg.unit], low[:, seg.unit], high[:, seg.unit]
        lin, quad = lin * f, seg.quad * f
        inside = _inside(left, right, lo, hi, seg.first)
        blocks: list[tuple[Floats, ...]] = [(*inside, lin, quad)]
        if self._slack.limits:
            blocks += _outside(left, right, lo, hi, lin, quad, self._slack.price)
        if self._served:
            blocks += _at_buses(size, self._served, self._slack.price)
        start = self._constant(low, lin, factor, population)
        joined = [np.concatenate(arrays, axis=1) for arrays in zip(*blocks, strict=True)]
        low, high, lin, quad = joined
        error = (error * factor[:, self.alive]).sum(1)
        return Bounds(low, high, lin, quad, start + crossed, error)

    def dispatch(self, x: Floats) -> Floats:
        """Sum the columns to the output of each generator (MW), 0 if it is out of service."""
        found = np.zeros((len(self._units), len(x)))
        own = self.unit >= 0
        np.add.at(found, self.unit[own], x.T[own])
        return found.T

    def injection(self, x: Floats, buses: int) -> Floats:
        """Sum the columns to the injection at each bus (MW)."""
        found = np.zeros((buses, len(x)))
        np.add.at(found, self.bus, x.T)
        return found.T

    def shed(self, x: Floats, buses: int) -> Floats:
        """Compute shed load minus spilled power at each bus (MW)."""
        found = np.zeros((buses, len(x)))
        bought = self.unit < 0
        np.add.at(found, self.bus[bought], x.T[bought])
        return found.T

    def limit_prices(self, population: Population, nodal: Floats) -> dict[str, Floats]:
        """Compute how much 1 MW more room above `p_max` and below `p_min` would save ($/MWh).

        A unit at a limit earns the nodal price `pi` and pays its marginal cost there, so more room
        saves `pi - c'(p_max)` above and `c'(p_min) - pi` below, if that is positive. If room can be
        bought, it saves at most the price of the room. With `p_min > p_max` every output must buy
        room, so more room also saves that price.
        """
        units, seg, size = self._units, self._segments, population.size
        low = _scaled(units.p_min, population.p_min, size)
        high = _scaled(units.p_max, population.p_max, size)
        factor = _scaled(np.ones(len(units)), population.cost_factor, size)
        left, right, lin, _ = self._ends(np.minimum(low, high), np.maximum(low, high), population)
        at_low, at_high = np.zeros(low.shape), np.zeros(low.shape)
        for j, unit in enumerate(seg.unit):
            # The last segment that begins below p_max has the slope at p_max.
            reached = left[:, j] < high[:, unit]
            slope = _slope(lin[:, j], seg.quad[j], high[:, unit]) * factor[:, unit]
            at_high[:, unit] = np.where(reached, slope, at_high[:, unit])
        for j, unit in reversed(list(enumerate(seg.unit))):
            # The first segment that ends above p_min has the slope at p_min.
            reached = right[:, j] > low[:, unit]
            slope = _slope(lin[:, j], seg.quad[j], low[:, unit]) * factor[:, unit]
            at_low[:, unit] = np.where(reached, slope, at_low[:, unit])
        price = nodal[:, units.bus]
        most = self._slack.price if self._slack.limits else np.inf
        more = np.where(low > high, self._slack.price, 0.0)
        alive = np.isin(np.arange(len(units)), self.alive)
        return {
            "p_max_price": np.where(alive, np.clip(price - at_high + more, 0.0, most), 0.0),
            "p_min_price": np.where(alive, np.clip(at_low - price + more, 0.0, most), 0.0),
        }

    def _check_factor(self, factor: Floats) -> None:
        seg = self._segments
        curved = np.unique(seg.unit[(seg.quad != 0) | ~seg.first])
        if (factor[:, curved] < 0).any():
            raise InputError(
                "A negative cost factor makes a curved cost concave.",
                remedy="Use factors above zero.",
            )

    def _ends(
        self, low: Floats, high: Floats, population: Population
    ) -> tuple[Floats, Floats, Floats, Floats]:
        """Compute the ends and the slopes of the segments, and the error of the pieces."""
        seg, size = self._segments, population.size
        shape = (size, len(seg.unit))
        left, right = np.broadcast_to(seg.left, shape), np.broadcast_to(seg.right, shape)
        lin = np.broadcast_to(seg.lin, shape)
        error = np.zeros((size, len(self.alive)))
        if population.cost is not None:
            return left, right, population.cost[:, seg.unit], error
        cut = np.flatnonzero(seg.piece >= 0)
        if len(cut) == 0 or self._pieces is None:
            return left, right, lin, error
        left, right, lin = left.copy(), right.copy(), lin.copy()
        unit, k = seg.unit[cut], seg.piece[cut]
        width = (high - low)[:, unit] / self._pieces
        start = low[:, unit] + k * width
        q = self._units.quadratic[unit]
        lin[:, cut] += q * (2 * start + width)
        left[:, cut] = np.where(k == 0, -np.inf, start)
        right[:, cut] = np.where(k == self._pieces - 1, np.inf, start + width)
        # A chord over a width h is above q p^2 by at most q (h/2)^2, in its middle.
        span = (high - low)[:, self.alive] / self._pieces
        curved = np.isin(self.alive, unit)
        error = np.where(curved, self._units.quadratic[self.alive] * span**2 / 4, 0.0)
        return left, right, lin, error

    def _constant(self, low: Floats, lin: Floats, factor: Floats, population: Population) -> Floats:
        """Compute the part of the cost that no column carries: `c(p_min) - lin_first p_min`."""
        if population.cost is not None:
            return np.zeros(population.size)
        units, seg = self._units, self._segments
        total = (factor * units.constant)[:, self.alive].sum(1)
        for j in np.flatnonzero(seg.first):
            unit = seg.unit[j]
            points, p = units.points[unit], low[:, unit]
            if points is not None:
                total += factor[:, unit] * value(points, p) - lin[:, j] * p
            elif seg.piece[j] >= 0:
                true = units.quadratic[unit] * p**2 + units.linear[unit] * p
                total += factor[:, unit] * true - lin[:, j] * p
        return np.asarray(total)


def _scaled(values: Floats, factor: Floats | None, size: int) -> Floats:
    if factor is None:
        return np.broadcast_to(values, (size, len(values)))
    with np.errstate(invalid="ignore"):
        scaled = values * factor
    return np.where(np.isinf(values), values, scaled)


def _slope(lin: Floats, quad: float, output: Floats) -> Floats:
    return lin + 2 * quad * output if quad else lin


def _inside(
    left: Floats, right: Floats, lo: Floats, hi: Floats, first: NDArray[np.bool_]
) -> tuple[Floats, Floats]:
    """Compute the bounds of every segment's part between the limits."""
    # If lo > hi the column keeps lo > hi, and the model is found infeasible.
    top = np.where(np.isposinf(right), hi, np.minimum(np.maximum(right, lo), hi))
    with np.errstate(invalid="ignore"):
        width = top - np.minimum(np.maximum(left, lo), np.maximum(lo, hi))
    return np.where(first, lo, 0.0), np.where(first, top, np.maximum(width, 0.0))


def _outside(
    left: Floats,
    right: Floats,
    lo: Floats,
    hi: Floats,
    lin: Floats,
    quad: Floats,
    price: float,
) -> list[tuple[Floats, ...]]:
    """Compute the room above and below the limits, at the cost's own slope plus the price."""
    # c(hi + u) = c(hi) + (lin + 2 quad hi) u + quad u^2, and the same below.
    none = np.zeros(lo.shape)
    with np.errstate(invalid="ignore"):
        up = np.maximum(right, hi) - np.maximum(left, hi)
        down = np.minimum(right, lo) - np.minimum(left, lo)
    edge_up = np.where(quad > 0, 2 * quad * np.where(np.isfinite(hi), hi, 0.0), 0.0)
    edge_down = np.where(quad > 0, 2 * quad * np.where(np.isfinite(lo), lo, 0.0), 0.0)
    return [
        (none, np.nan_to_num(up, nan=0.0, posinf=np.inf), lin + edge_up + price, quad),
        (-np.nan_to_num(down, nan=0.0, posinf=np.inf), none, lin + edge_down - price, quad),
    ]


def _at_buses(size: int, buses: int, price: float) -> list[tuple[Floats, ...]]:
    none = np.zeros((size, buses))
    ever = np.full((size, buses), np.inf)
    return [(none, ever, none + price, none), (-ever, none, none - price, none)]
