"""Find values whose costs agree with noisy costs: step 4 of the paper's algorithm.

The problem is ``min sum_t |goal_t - C_t(x)| + |x - start|_1`` over the values ``x`` in their box
that serve the models. ``C_t`` is convex (if costs are the private values, it is concave; then the
signs of costs and goals are changed), so a cost above its goal is a convex term and one below it is
not.

**Cuts.** ``C_t(x) >= C_t(y) + slope(y)'(x - y)`` for every ``y``: the convex term is replaced by
such planes, one more at every point that was visited, until they meet the cost (Kelley's method).
A model that can't be served gives a plane of its shortfall instead. For capacities on networks
that are not large no planes are needed: see `paper_capacity`.

**Convex-concave steps.** The other term is replaced by its plane at the best point so far, which
is never above the cost, so the true objective at the solution is no worse than promised. This is
repeated from the solution until it stops improving. It finds a local optimum, so it is done from
several points. Without that term the problem is convex and below the true one: its value is a
bound on what any method can reach, and the gap to it is reported.

**The linear programme** stays in HiGHS, and rows are added. Columns are the values ``x``, their
distances ``u`` from the start and the misses ``r`` of the terms. Rows are ``|x - start| <= u``,
cuts, and planes ``r >= cost - goal`` and ``r >= goal - cost``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridveil.grid.model.population import Population
from gridveil.grid.model.release_problem import ReleaseProblem
from gridveil.grid.restoration.master import Aim, Cuts, Unsolved, nearest
from gridveil.grid.restoration.paper_capacity import Holding
from gridveil.grid.restoration.paper_programme import GrowingProgramme
from gridveil.grid.restoration.paper_task import Matched, MatchingTask, Point, starts

Floats = NDArray[np.float64]

_SPARE = 1e-6
_CLOSE = 1e-8
_LOOKS = 500
# Up to this many generators times branches, models are part of the programme (see
# `paper_capacity`).
_DENSE = 100_000
# How far the first step may go, and the smallest such limit (MW, $/MWh).
_REACH, _LEAST_REACH = 64.0, 1e-6


class Matcher:
    """The restoration of one release; it keeps planes, which stay valid from call to call.

    Parameters
    ----------
    problem
        What is released, with the public network.
    low, high
        The public box.
    """

    def __init__(self, problem: ReleaseProblem, low: Floats, high: Floats) -> None:
        self._problem = problem
        self._low, self._high = low, high
        self._planes: list[list[tuple[Floats, float]]] = []
        self._cuts: list[tuple[Floats, float]] = []
        self._holding = Holding(problem)

    def match(self, models: Population, goals: Floats, start: Floats) -> Matched:
        """Restore values; the first models must be those of the call before.

        Raises
        ------
        Unsolved
            If no values in the box serve the models, or a solver gave up.
        """
        task = MatchingTask(self._problem, models, goals, start, self._low, self._high)
        if self._embeds(models):
            return self._holding.match(task, models)
        self._planes += [[] for _ in range(models.size - len(self._planes))]
        return _Steps(task, self._planes, self._cuts).match()

    def _embeds(self, models: Population) -> bool:
        """Say whether the models' dispatches can be part of the programme."""
        public = self._problem.public
        units: Any = public.generators
        linear = models.cost is not None or not units.quadratic.any()
        small = len(units) * len(public.branches) <= _DENSE
        return public.parameters == ("capacity",) and linear and small


class _Steps:
    """Kelley's method and convex-concave steps, for any parameters.

    Parameters
    ----------
    task
        The models, goals and start.
    planes, cuts
        Those of earlier calls; new ones are appended in place.
    """

    def __init__(
        self,
        task: MatchingTask,
        planes: list[list[tuple[Floats, float]]],
        cuts: list[tuple[Floats, float]],
    ) -> None:
        self._task, self._planes, self._cuts = task, planes, cuts
        self._programme = Programme(task.start, task.goals, task.low, task.high)
        for slope, bound in cuts:
            self._programme.cut(slope, bound)
        for term, known in enumerate(planes):
            for slope, constant in known:
                self._programme.above(term, slope, constant)

    def match(self) -> Matched:
        """Return the best point of searches from several points, and the bound."""
        task = self._task
        lowest, bound = self._convex()
        found = (self._descend(point) for point in starts(task, lowest, self._look))
        best = min(found, key=task.objective)
        return Matched(best.values, task.objective(best), bound)

    def _descend(self, point: Point) -> Point:
        """Take convex-concave steps from one point until none improves it.

        Steps stay within a box about the point, which grows if planes predicted well and shrinks
        if they did not: far away planes say little, and few values serve the models.
        """
        task = self._task
        best = task.objective(point)
        reach, widest = _REACH, float(np.max(task.high - task.low, initial=_REACH))
        self._programme.below((point.values, point.cost, point.slope))
        for _ in range(_LOOKS):
            self._programme.within(point.values - reach, point.values + reach)
            try:
                values, promised = self._programme.solve()
            except Unsolved:
                # Cuts are slightly too deep, so a small box may have no solution. The point still
                # serves the models.
                break
            if best - promised <= _CLOSE * max(1.0, best):
                break
            found = self._look(values)
            value = np.inf if found is None else task.objective(found)
            if found is None or value > best - 0.1 * (best - promised):
                reach = max(reach / 2, _LEAST_REACH)
            else:
                reach = min(2 * reach, widest)
            if found is not None and value < best:
                point, best = found, value
                self._programme.below((point.values, point.cost, point.slope))
        return point

    def _convex(self) -> tuple[Point, float]:
        """Solve the problem without its concave part; its value bounds the whole problem."""
        task = self._task
        best: Point | None = None
        least, values = np.inf, self._first(np.clip(task.start, task.low, task.high))
        self._programme.below(None)
        self._programme.within(task.low, task.high)
        bound = 0.0
        for _ in range(_LOOKS):
            known = len(self._cuts)
            here = self._look(values)
            if here is None and len(self._cuts) == known:
                raise Unsolved("The solver gave up on a public model.")
            if here is not None:
                over = np.maximum(here.cost - task.goals, 0.0).sum()
                value = float(over + np.abs(here.values - task.start).sum())
                if value < least:
                    best, least = here, value
            values, bound = self._programme.solve()
            if best is not None and least - bound <= _CLOSE * max(1.0, least):
                break
        assert best is not None
        return best, bound

    def _first(self, values: Floats) -> Floats:
        """Find values near these that serve the models.

        This uses least squares: the linear programme would jump from corner to corner of the box,
        and would not find such values even after hundreds of cuts.
        """
        aim = Aim(values, np.ones(len(values)), self._task.low, self._task.high)
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

    def _look(self, values: Floats) -> Point | None:
        """Compute the point at some values and store its planes; None (and cuts) if not served."""
        point, costs = self._task.look(values)
        if point is None:
            self._cut(values, costs)
            return None
        for term, planes in enumerate(self._planes):
            slope = point.slope[term]
            constant = float(point.cost[term] - slope @ values)
            planes.append((slope, constant))
            self._programme.above(term, slope, constant)
        return point

    def _cut(self, values: Floats, costs: Floats) -> None:
        short = self._task.shortfalls.at(values)
        for term in np.flatnonzero(short.value > 0).tolist():
            if not np.isfinite(costs[term]):
                bound = float(short.slope[term] @ values - short.value[term]) - _SPARE
                self._cuts.append((short.slope[term], bound))
                self._programme.cut(short.slope[term], bound)


_NEGLIGIBLE = 1e-11


class Programme(GrowingProgramme):
    """The linear programme that minimises distances and misses; added rows stay, except `below`."""

    def __init__(self, start: Floats, goals: Floats, low: Floats, high: Floats) -> None:
        self._low, self._high, self._goals = low, high, goals
        self._n, self._terms = len(start), len(goals)
        n, more = self._n, self._n + self._terms
        super().__init__(
            np.concatenate([low, np.zeros(more)]),
            np.concatenate([high, np.full(more, np.inf)]),
            range(n, n + more),
        )
        for k in range(n):
            self._add(np.array([k, n + k]), np.array([1.0, -1.0]), -np.inf, start[k])
            self._add(np.array([k, n + k]), np.array([-1.0, -1.0]), -np.inf, -start[k])

    def cut(self, slope: Floats, bound: float) -> None:
        """Add the cut ``slope @ x <= bound``."""
        self._put(slope, bound, None)

    def above(self, term: int, slope: Floats, constant: float) -> None:
        """Add the plane of a term: its cost is at least ``constant + slope @ x``."""
        self._put(slope, float(self._goals[term]) - constant, term)

    def below(self, plane: tuple[Floats, Floats, Floats] | None) -> None:
        """Replace costs below their goals by their planes at a point (values, costs, slopes)."""
        self._replace_planes(0 if plane is None else self._terms)
        if plane is None:
            return
        values, costs, slopes = plane
        for term in range(self._terms):
            bound = costs[term] - slopes[term] @ values - self._goals[term]
            self._put(-slopes[term], float(bound), term)

    def within(self, low: Floats, high: Floats) -> None:
        """Restrict the values to these limits, within the box."""
        places = np.arange(self._n, dtype=np.int32)
        ends = np.maximum(low, self._low), np.minimum(high, self._high)
        self._highs.changeColsBounds(self._n, places, *ends)

    def solve(self) -> tuple[Floats, float]:
        """Find the best values and the least sum.

        Raises
        ------
        Unsolved
            If no values meet the cuts.
        """
        found, value = self._solved()
        return np.clip(found[: self._n], self._low, self._high), value

    def _put(self, slope: Floats, bound: float, term: int | None) -> None:
        places = np.flatnonzero(np.abs(slope) > _NEGLIGIBLE)
        values = slope[places]
        if term is not None:
            places = np.append(places, 2 * self._n + term)
            values = np.append(values, -1.0)
        self._add(places, values, -np.inf, bound)
