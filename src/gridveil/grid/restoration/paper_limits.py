"""Step 4 of the paper's algorithm for capacities, with the models in the programme (`Embedded`).

Convex-concave steps end in a local optimum, of which there are many: a cost can be raised by
narrowing any line that matters to it, and each has planes of its own. So steps are taken from many
points. Each is the solution of the convex problem with one line, two or three *held down* to a part
of their capacity: the other lines make room for it as cheaply as they can. Then they are let go.
If something better is found, lines are held down again from there.

How many points are tried falls with the size of the programme: of a small network all lines, pairs
and triples, and of a large one those lines that are nearest to their limits.

**Points** know the costs of the models there, and the objective. Costs are turned round where they
are concave in the values (`sign` is -1), so that everything else may take them to be convex.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations, islice, product

import numpy as np
from numpy.typing import NDArray

from gridveil.grid.model.population import Population, take
from gridveil.grid.model.problem import ReleaseProblem
from gridveil.grid.restoration.master import Unsolved
from gridveil.grid.restoration.oracle import Oracle
from gridveil.grid.restoration.paper_models import Embedded, LowerModel, describe

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_CLOSE = 1e-8
_STEPS = 500
# Parts of its capacity that a line is held down to; several at once go all the way.
_PARTS = (0.75, 0.5, 0.25, 0.0)
# Tries of a sweep times the square of the models' columns (so a linear programme's time grows,
# about), and how many tries there are at most.
_WORK, _TRIES = 400_000, 700


class Holding:
    """The restoration of one release; it remembers the numbers of models and the rows they need.

    Parameters
    ----------
    private
        What is released, capacities, with the public network.
    """

    def __init__(self, problem: ReleaseProblem) -> None:
        self._private = problem
        self._lower: list[LowerModel] = []
        self._needed: list[set[int]] = []

    def match(self, ground: Ground, models: Population) -> Matched:
        """Restore: these models, of which the first ones are those of the call before.

        Raises
        ------
        Unsolved
            If no values in the box serve the models, or a solver gave up.
        """
        self._describe(ground, models)
        programme = Embedded(
            self._lower, ground.goals, ground.start, ground.low, ground.high, self._needed
        )
        values, bound = programme.solve(None)
        lowest, _ = ground.look(values)
        if lowest is None:
            raise Unsolved("The solver gave up on a public model.")
        best = _Search(ground, programme, self._lower, bound).run(lowest)
        return Matched(best.values, ground.objective(best), bound)

    def _describe(self, ground: Ground, models: Population) -> None:
        start = np.clip(ground.start, ground.low, ground.high)
        network = self._private.public.with_values(start)
        for term in range(len(self._lower), models.size):
            one = take(models, np.array([term]))
            both = describe(network, one, [0.0], start, ground.low, ground.high, 1.0)
            self._lower += both.models
            self._needed.append(set())


class _Search:
    def __init__(
        self, ground: Ground, programme: Embedded, models: list[LowerModel], bound: float
    ) -> None:
        self._ground, self._programme, self._models = ground, programme, models
        self._bound = bound
        self._taken: set[bytes] = set()

    def run(self, lowest: Point) -> Point:
        """The best point that is found."""
        best = self._best(self._usual(lowest), lowest)
        here: Point | None = None
        while here is not best and not self._proved(best):
            # At first from the convex problem, then from the best point with its planes.
            here, base = best, lowest if here is None else best
            best = self._best(self._held(base, with_planes=base is best), best)
        return best

    def _best(self, points: Iterator[Point], best: Point) -> Point:
        """The best end of steps from some points, or the best that is known."""
        for point in points:
            found = self._walk(point)
            if self._worth(found) < self._worth(best) - _CLOSE * max(1.0, self._worth(best)):
                best = found
        return best

    def _usual(self, lowest: Point) -> Iterator[Point]:
        """The bound's own point, the nearest to the start, and some where costs are higher."""
        ground = self._ground
        yield lowest
        nearest, _ = ground.look(np.clip(ground.start, ground.low, ground.high))
        if nearest is not None:
            yield nearest
        if (lowest.cost < ground.goals).any():
            yield from ground.dearer(lowest)

    def _held(self, base: Point, *, with_planes: bool) -> Iterator[Point]:
        """Points with lines held down below where they are at a base, the most promising first."""
        ground, programme = self._ground, self._programme
        plane = (base.values, base.cost, base.slope) if with_planes else None
        points = []
        for lines, part in self._choices(base):
            ends = ground.low[lines] + part * (base.values[lines] - ground.low[lines])
            programme.hold(lines, ends)
            try:
                values, _ = programme.solve(plane)
            except Unsolved:
                continue
            point, _ = ground.look(values)
            if point is not None:
                points.append(point)
        programme.hold(np.zeros(0, dtype=np.int64), np.zeros(0))
        yield from sorted(points, key=self._worth)

    def _choices(self, base: Point) -> list[tuple[Ints, float]]:
        """Which lines to hold down, and to what part; as many as the size allows."""
        ranked = self._ranked(base)
        columns = sum(len(model.lin) for model in self._models)
        count = min(_WORK // max(columns, 1) ** 2, _TRIES)
        alone = [(np.array([line]), part) for line, part in product(ranked, _PARTS)]
        together = (
            (np.array(lines), 0.0) for several in (2, 3) for lines in combinations(ranked, several)
        )
        return list(islice(chain(alone, together), count))

    def _ranked(self, base: Point) -> list[int]:
        """Lines that can bind, those first whose limits leave the least room at a point."""
        room = np.full(len(base.values), np.inf)
        for model, dispatch in zip(self._models, self._programme.dispatches(), strict=True):
            own = model.factor > 0
            left = model.limits(base.values) - model.rows @ dispatch
            np.minimum.at(room, model.line[own], left[own])
        order = np.argsort(room, kind="stable")
        return [int(line) for line in order if np.isfinite(room[line])]

    def _walk(self, point: Point) -> Point:
        """Convex-concave steps until none improves the point; planes are followed once only."""
        key = np.round(point.slope, 5).tobytes()
        if key in self._taken:
            return point
        self._taken.add(key)
        best = self._worth(point)
        for _ in range(_STEPS):
            values, promised = self._programme.solve((point.values, point.cost, point.slope))
            if best - promised <= _CLOSE * max(1.0, best):
                break
            found, _ = self._ground.look(values)
            if found is None or self._worth(found) >= best:
                break
            point, best = found, self._worth(found)
        return point

    def _worth(self, point: Point) -> float:
        return self._ground.objective(point)

    def _proved(self, best: Point) -> bool:
        worth = self._worth(best)
        return worth - self._bound <= _CLOSE * max(1.0, worth)


_HALVINGS = 12


@dataclass(frozen=True, eq=False)
class Matched:
    """Restored values, what they reach, and the bound on what any values could reach.

    Parameters
    ----------
    values
        One number per entry.
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
class Point:
    """Values that serve all models, with costs and slopes there."""

    values: Floats
    cost: Floats
    slope: Floats


class Ground:
    """The models of one restoration, their goals, and where distances are measured from.

    Parameters
    ----------
    private
        What is released, with the public network.
    models
        Those whose costs are to agree with the goals.
    goals
        One for each model.
    start
        Values to stay near.
    low, high
        The public box.
    """

    def __init__(
        self,
        problem: ReleaseProblem,
        models: Population,
        goals: Floats,
        start: Floats,
        low: Floats,
        high: Floats,
    ) -> None:
        self.sign = float(problem.curvature)
        self.goals = self.sign * goals
        self.start, self.low, self.high = start, low, high
        self._private, self._models = problem, models
        self._costs = Oracle(problem, models)

    def look(self, values: Floats) -> tuple[Point | None, Floats]:
        """The point, or None where not all models are served; and the costs as they are."""
        look = self._costs.at(values)
        if not np.isfinite(look.value).all():
            return None, look.value
        return Point(values, self.sign * look.value, self.sign * look.slope), look.value

    @cached_property
    def shortfalls(self) -> Oracle:
        """How far every model is from being served."""
        return Oracle.of_shortfalls(self._private, self._models)

    def objective(self, point: Point) -> float:
        """The true objective at a point."""
        misses = np.abs(point.cost - self.goals).sum()
        return float(misses + np.abs(point.values - self.start).sum())

    def dearer(self, point: Point) -> Iterator[Point]:
        """Points between this one and corners of the box at which costs are higher."""
        for corner in (self.low, self.high):
            inside, outside = 0.0, 1.0
            best: Point | None = None
            for _ in range(_HALVINGS):
                middle = (inside + outside) / 2
                found, _ = self.look(point.values + middle * (corner - point.values))
                if found is None:
                    outside = middle
                    continue
                if (found.cost > point.cost + 1e-6).any():
                    best = found
                if (found.cost >= self.goals).any():
                    outside = middle
                else:
                    inside = middle
            if best is not None:
                yield best
