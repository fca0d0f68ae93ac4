"""Step 4 of the paper's algorithm for capacities, from many starting points.

The models' dispatches are part of the linear programme (see `Embedded`). Convex-concave steps end
in a local optimum, of which there are many: a cost can be raised by lowering the capacity of any
line that matters to it, and each choice has its own planes. So steps start from many points. Each
is the solution of the convex problem with one, two or three lines *held down* to a part of their
capacity: the other lines adjust as cheaply as they can. Then the held lines are released. If a
better point is found, lines are held down again from there.

The number of starting points falls with the size of the programme: all lines, pairs and triples of
a small network, and the lines nearest to their limits of a large one.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, combinations, islice, product

import numpy as np
from numpy.typing import NDArray

from gridveil.grid.model.population import Population, take
from gridveil.grid.model.release_problem import ReleaseProblem
from gridveil.grid.restoration.master import Unsolved
from gridveil.grid.restoration.paper_bilevel import Embedded, LowerModel, describe
from gridveil.grid.restoration.paper_task import Matched, MatchingTask, Point, starts

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_CLOSE = 1e-8
_STEPS = 500
# Where a line is held down to, as a share of the way from its lower limit to its capacity; for
# several lines only the lower limit is tried.
_PARTS = (0.75, 0.5, 0.25, 0.0)
# The most tries times the square of the models' columns (which is about how a linear programme's
# time grows), and the most tries.
_WORK, _TRIES = 400_000, 700


class Holding:
    """The restoration of one release's capacities; it keeps models and the rows that they needed.

    Parameters
    ----------
    problem
        What is released (capacities), with the public network.
    """

    def __init__(self, problem: ReleaseProblem) -> None:
        self._problem = problem
        self._lower: list[LowerModel] = []
        self._needed: list[set[int]] = []

    def match(self, task: MatchingTask, models: Population) -> Matched:
        """Restore capacities; the first models must be those of the call before.

        Raises
        ------
        Unsolved
            If no values in the box serve the models, or a solver gave up.
        """
        self._describe(task, models)
        programme = Embedded(self._lower, task.goals, task.start, task.low, task.high, self._needed)
        values, bound = programme.solve(None)
        lowest, _ = task.look(values)
        if lowest is None:
            raise Unsolved("The solver gave up on a public model.")
        best = _Search(task, programme, self._lower, bound).run(lowest)
        return Matched(best.values, task.objective(best), bound)

    def _describe(self, task: MatchingTask, models: Population) -> None:
        start = np.clip(task.start, task.low, task.high)
        network = self._problem.public.with_values(start)
        for term in range(len(self._lower), models.size):
            one = take(models, np.array([term]))
            both = describe(network, one, [0.0], start, task.low, task.high, 1.0)
            self._lower += both.models
            self._needed.append(set())


class _Search:
    def __init__(
        self, task: MatchingTask, programme: Embedded, models: list[LowerModel], bound: float
    ) -> None:
        self._task, self._programme, self._models = task, programme, models
        self._bound = bound
        self._taken: set[bytes] = set()

    def run(self, lowest: Point) -> Point:
        """Find the best point."""
        best = self._best(starts(self._task, lowest, self._look), lowest)
        here: Point | None = None
        while here is not best and not self._proved(best):
            # The first time from the convex problem's point, then from the best, with its planes.
            here, base = best, lowest if here is None else best
            best = self._best(self._held(base, with_planes=base is best), best)
        return best

    def _best(self, points: Iterator[Point], best: Point) -> Point:
        """Take steps from some points; return the best end, or `best` if none is better."""
        for point in points:
            found = self._walk(point)
            if self._worth(found) < self._worth(best) - _CLOSE * max(1.0, self._worth(best)):
                best = found
        return best

    def _held(self, base: Point, *, with_planes: bool) -> Iterator[Point]:
        """Yield points with some lines held down below their values at `base`, the best first."""
        task, programme = self._task, self._programme
        plane = (base.values, base.cost, base.slope) if with_planes else None
        points = []
        for lines, part in self._choices(base):
            ends = task.low[lines] + part * (base.values[lines] - task.low[lines])
            programme.hold(lines, ends)
            try:
                values, _ = programme.solve(plane)
            except Unsolved:
                continue
            point = self._look(values)
            if point is not None:
                points.append(point)
        programme.hold(np.zeros(0, dtype=np.int64), np.zeros(0))
        yield from sorted(points, key=self._worth)

    def _choices(self, base: Point) -> list[tuple[Ints, float]]:
        """Choose lines to hold down, and how far; as many choices as the size allows."""
        ranked = self._ranked(base)
        columns = sum(len(model.lin) for model in self._models)
        count = min(_WORK // max(columns, 1) ** 2, _TRIES)
        alone = [(np.array([line]), part) for line, part in product(ranked, _PARTS)]
        together = (
            (np.array(lines), 0.0) for several in (2, 3) for lines in combinations(ranked, several)
        )
        return list(islice(chain(alone, together), count))

    def _ranked(self, base: Point) -> list[int]:
        """List the lines that can bind, those with the least room at `base` first."""
        room = np.full(len(base.values), np.inf)
        for model, dispatch in zip(self._models, self._programme.dispatches(), strict=True):
            own = model.factor > 0
            left = model.limits(base.values) - model.rows @ dispatch
            np.minimum.at(room, model.line[own], left[own])
        order = np.argsort(room, kind="stable")
        return [int(line) for line in order if np.isfinite(room[line])]

    def _walk(self, point: Point) -> Point:
        """Take convex-concave steps until none improves the point; skip planes already used."""
        key = np.round(point.slope, 5).tobytes()
        if key in self._taken:
            return point
        self._taken.add(key)
        best = self._worth(point)
        for _ in range(_STEPS):
            values, promised = self._programme.solve((point.values, point.cost, point.slope))
            if best - promised <= _CLOSE * max(1.0, best):
                break
            found = self._look(values)
            if found is None or self._worth(found) >= best:
                break
            point, best = found, self._worth(found)
        return point

    def _look(self, values: Floats) -> Point | None:
        return self._task.look(values)[0]

    def _worth(self, point: Point) -> float:
        return self._task.objective(point)

    def _proved(self, best: Point) -> bool:
        worth = self._worth(best)
        return worth - self._bound <= _CLOSE * max(1.0, worth)
