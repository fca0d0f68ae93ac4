"""Values whose costs agree with noisy ones: step 4 of the paper's algorithm, by convex steps.

The problem is ``min sum_t |goal_t - C_t(x)| + |x - start|_1`` over the values ``x`` in their box
that serve the models. ``C_t`` is convex (for costs as private values: concave; then both are
turned round), so a cost above its goal is a convex term and one below it is not.

**Cuts.** ``C_t(x) >= C_t(y) + slope(y)'(x - y)`` for every ``y``: the convex term is replaced by
such planes, one more at every point that was visited, until they meet the cost (Kelley's method).
A model that can't be served gives a plane of its shortfall instead. For capacities on networks
that are not large no planes are needed: see `embedded`.

**Convex-concave steps.** The other term is replaced by its plane at the best point so far, which
is never above the cost, so the true objective at the solution is no worse than promised; then
again from there, until it stops improving. This finds a local optimum, and is done from several
points. Without that term at all the problem is convex and below the true one: its value is a
bound on what any method can reach, and the gap to it is reported.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridveil.grid.parameters import Private
from gridveil.grid.population import Population
from gridveil.grid.restoring.bilevel import LowerModel, describe
from gridveil.grid.restoring.embedded import Embedded
from gridveil.grid.restoring.master import Aim, Cuts, Unsolved, nearest
from gridveil.grid.restoring.oracle import Oracle, take
from gridveil.grid.restoring.programme import Programme

Floats = NDArray[np.float64]

_SPARE = 1e-6
_CLOSE = 1e-8
_LOOKS = 500
# Generators times branches up to which models are written into the programme (see `embedded`).
_DENSE = 100_000
# How far a step may go at first, and at least (MW, $/MWh).
_REACH, _LEAST_REACH = 64.0, 1e-6
_HALVINGS = 24


@dataclass(frozen=True, eq=False)
class Matched:
    """Restored values, what they reach, and the bound on what any values could reach.

    Parameters
    ----------
    values
        One number an entry.
    objective
        Misses of the costs ($/h) and the distance (MW or $/MWh), added up.
    bound
        No values in the box have less.
    solver
        What found them.
    """

    values: Floats
    objective: float
    bound: float
    solver: str = "convex-concave steps with HiGHS"

    @property
    def gap(self) -> float:
        """How far the objective may be above the best, relatively."""
        return max(self.objective - self.bound, 0.0) / max(1.0, abs(self.objective))


@dataclass(frozen=True, eq=False)
class _Point:
    """A point that serves all models, with costs and slopes there."""

    values: Floats
    cost: Floats
    slope: Floats


class Matcher:
    """The restoration of one release; it remembers planes, which stay valid from step to step.

    Parameters
    ----------
    private
        What is released, with the public network.
    low, high
        The public box.
    """

    def __init__(self, private: Private, low: Floats, high: Floats) -> None:
        self._private = private
        self._low, self._high = low, high
        self._sign = float(private.curvature)
        self._planes: list[list[tuple[Floats, float]]] = []
        self._cuts: list[tuple[Floats, float]] = []
        self._goals = np.zeros(0)
        self._programme: Programme | None = None
        self._costs: Oracle | None = None
        self._shortfalls: Oracle | None = None
        self._lower: list[LowerModel] = []
        self._needed: list[set[int]] = []

    def match(self, models: Population, goals: Floats, start: Floats) -> Matched:
        """Restore: these models (the first ones as in the call before), goals and start.

        Raises
        ------
        Unsolved
            Where no values in the box serve the models, or a solver gave up.
        """
        self._costs = Oracle(self._private, models)
        self._shortfalls = Oracle.of_shortfalls(self._private, models)
        self._goals = self._sign * goals
        if self._embeds(models):
            return self._match_embedded(models, start)
        self._planes += [[] for _ in range(models.size - len(self._planes))]
        self._programme = Programme(start, self._goals, self._low, self._high)
        for slope, bound in self._cuts:
            self._programme.cut(slope, bound)
        for term, planes in enumerate(self._planes):
            for slope, constant in planes:
                self._programme.above(term, slope, constant)
        lowest, bound = self._convex(start)
        best = min(
            (self._descend(start, point) for point in self._starts(lowest, start)),
            key=lambda point: self._objective(point, start),
        )
        return Matched(best.values, self._objective(best, start), bound)

    def _embeds(self, models: Population) -> bool:
        """Whether the models can stand in one linear programme with the values."""
        public = self._private.public
        units: Any = public.generators
        linear = models.cost is not None or not units.quadratic.any()
        small = len(units) * len(public.branches) <= _DENSE
        return public.parameters == ("capacity",) and linear and small

    def _match_embedded(self, models: Population, start: Floats) -> Matched:
        """The same with the convex term exact: a step is one linear programme."""
        network = self._private.public.with_values(np.clip(start, self._low, self._high))
        for term in range(len(self._lower), models.size):
            one = take(models, np.array([term]))
            both = describe(network, one, [0.0], start, self._low, self._high, 1.0)
            self._lower += both.models
            self._needed.append(set())
        programme = Embedded(self._lower, self._goals, start, self._low, self._high, self._needed)
        values, bound = programme.solve(None)
        lowest = self._look(values)
        if lowest is None:
            raise Unsolved("The solver gave up on a public model.")
        best: _Point = lowest
        for point in self._starts(lowest, start):
            found = self._walk(programme, point, start)
            if self._objective(found, start) < self._objective(best, start):
                best = found
        return Matched(best.values, self._objective(best, start), bound)

    def _walk(self, programme: Embedded, point: _Point, start: Floats) -> _Point:
        """Convex-concave steps, each a whole one, until none improves the point."""
        best = self._objective(point, start)
        for _ in range(_LOOKS):
            values, promised = programme.solve((point.values, point.cost, point.slope))
            if best - promised <= _CLOSE * max(1.0, best):
                break
            found = self._look(values)
            if found is None or self._objective(found, start) >= best:
                break
            point, best = found, self._objective(found, start)
        return point

    def _descend(self, start: Floats, point: _Point) -> _Point:
        """Convex-concave steps from one point until none improves it.

        Steps stay within a box about the point, which grows where planes predicted well and
        shrinks where they did not: far away they say little, and models are hardly served.
        """
        assert self._programme is not None
        best = self._objective(point, start)
        reach, widest = _REACH, float(np.max(self._high - self._low, initial=_REACH))
        self._programme.below((point.values, point.cost, point.slope))
        for _ in range(_LOOKS):
            self._programme.within(point.values - reach, point.values + reach)
            try:
                values, promised = self._programme.solve()
            except Unsolved:
                # Cuts keep a little spare room: a small box may have none. The point still serves.
                break
            if best - promised <= _CLOSE * max(1.0, best):
                break
            found = self._look(values)
            value = np.inf if found is None else self._objective(found, start)
            if found is None or value > best - 0.1 * (best - promised):
                reach = max(reach / 2, _LEAST_REACH)
            else:
                reach = min(2 * reach, widest)
            if found is not None and value < best:
                point, best = found, value
                self._programme.below((point.values, point.cost, point.slope))
        return point

    def _starts(self, lowest: _Point, start: Floats) -> Iterator[_Point]:
        """Points to take planes at: the bound's own, and some where costs reach their goals."""
        yield lowest
        nearest = self._look(np.clip(start, self._low, self._high))
        if nearest is not None:
            yield nearest
        if (lowest.cost < self._goals).any():
            yield from self._dearer(lowest)

    def _dearer(self, point: _Point) -> Iterator[_Point]:
        """Points between this one and corners of the box at which costs are higher."""
        corners = [self._low, self._high]
        for corner in corners:
            inside, outside = 0.0, 1.0
            best: _Point | None = None
            for _ in range(_HALVINGS):
                middle = (inside + outside) / 2
                found = self._look(point.values + middle * (corner - point.values))
                if found is None:
                    outside = middle
                    continue
                if (found.cost > point.cost + 1e-6).any():
                    best = found
                if (found.cost >= self._goals).any():
                    outside = middle
                else:
                    inside = middle
            if best is not None:
                yield best

    def _objective(self, point: _Point, start: Floats) -> float:
        """The true objective."""
        misses = np.abs(point.cost - self._goals).sum()
        return float(misses + np.abs(point.values - start).sum())

    def _convex(self, start: Floats) -> tuple[_Point, float]:
        """The problem without its concave part: solution, and bound of the whole problem."""
        assert self._programme is not None
        best: _Point | None = None
        least, values = np.inf, self._first(np.clip(start, self._low, self._high))
        self._programme.below(None)
        self._programme.within(self._low, self._high)
        bound = 0.0
        for _ in range(_LOOKS):
            known = len(self._cuts)
            here = self._look(values)
            if here is None and len(self._cuts) == known:
                raise Unsolved("The solver gave up on a public model.")
            if here is not None:
                over = np.maximum(here.cost - self._goals, 0.0).sum()
                value = float(over + np.abs(here.values - start).sum())
                if value < least:
                    best, least = here, value
            values, bound = self._programme.solve()
            if best is not None and least - bound <= _CLOSE * max(1.0, least):
                break
        assert best is not None
        return best, bound

    def _first(self, values: Floats) -> Floats:
        """Values that serve the models, near these.

        By least squares: the linear programme would jump from corner to corner of the box, and
        hundreds of cuts would not lead it to any values that serve.
        """
        aim = Aim(values, np.ones(len(values)), self._low, self._high)
        cuts = Cuts(len(values))
        for _ in range(_LOOKS):
            if self._look(values) is not None:
                return values
            for slope, bound in self._cuts[len(cuts) :]:
                cuts.add(slope, bound, 0)
            found = nearest(aim, cuts)
            if found is None:
                break
            values = found
        raise Unsolved("No values in the public range were found that serve the chosen models.")

    def _look(self, values: Floats) -> _Point | None:
        """Costs at some values, remembered as planes; None (and a cut) where not all are served."""
        assert self._costs is not None
        assert self._shortfalls is not None
        look = self._costs.at(values)
        if np.isfinite(look.value).all():
            cost, slope = self._sign * look.value, self._sign * look.slope
            if self._programme is None:
                return _Point(values, cost, slope)
            for term, planes in enumerate(self._planes):
                constant = float(cost[term] - slope[term] @ values)
                planes.append((slope[term], constant))
                self._programme.above(term, slope[term], constant)
            return _Point(values, cost, slope)
        if self._programme is None:
            return None
        short = self._shortfalls.at(values)
        for term in np.flatnonzero(short.value > 0).tolist():
            if not np.isfinite(look.value[term]):
                bound = float(short.slope[term] @ values - short.value[term]) - _SPARE
                self._cuts.append((short.slope[term], bound))
                self._programme.cut(short.slope[term], bound)
        return None
