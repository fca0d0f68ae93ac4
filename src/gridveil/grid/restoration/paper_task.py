"""What the paper's algorithm restores: models, the goals of their costs, and values to stay near.

The methods that solve it (`paper_steps`, `paper_capacity`) look at points of it and start from
those of `starts`. If costs are concave in the values (`sign` is -1), their sign is changed, so
that these can assume that they are convex.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gridveil.grid.model.population import Population
from gridveil.grid.model.release_problem import ReleaseProblem
from gridveil.grid.restoration.oracle import Oracle

Floats = NDArray[np.float64]

_HALVINGS = 12


@dataclass(frozen=True, eq=False)
class Matched:
    """Restored values, their objective, and a lower bound of the objective of any values.

    Parameters
    ----------
    values
        One number per entry.
    objective
        Misses of the costs ($/h) plus the distance (MW or $/MWh).
    bound
        No values in the box have a smaller objective.
    solver
        The name of the method that found them.
    """

    values: Floats
    objective: float
    bound: float
    solver: str = "convex-concave steps with HiGHS"

    @property
    def gap(self) -> float:
        """How far the objective may be above the optimum, relatively."""
        return max(self.objective - self.bound, 0.0) / max(1.0, abs(self.objective))


@dataclass(frozen=True, eq=False)
class Point:
    """Values that serve all models, with the models' costs and slopes there."""

    values: Floats
    cost: Floats
    slope: Floats


class MatchingTask:
    """One restoration problem: models, the goals of their costs, and the values to stay near.

    Parameters
    ----------
    problem
        What is released, with the public network.
    models
        The models whose costs should agree with the goals.
    goals
        One cost for each model.
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
        self._problem, self._models = problem, models
        self._costs = Oracle(problem, models)

    def look(self, values: Floats) -> tuple[Point | None, Floats]:
        """Return the point at these values (None if it does not serve all models) and the costs.

        The costs have their true sign.
        """
        look = self._costs.at(values)
        if not np.isfinite(look.value).all():
            return None, look.value
        return Point(values, self.sign * look.value, self.sign * look.slope), look.value

    @cached_property
    def shortfalls(self) -> Oracle:
        """The models' shortfalls as a function of the values."""
        return Oracle.of_shortfalls(self._problem, self._models)

    def objective(self, point: Point) -> float:
        """Compute the true objective at a point."""
        misses = np.abs(point.cost - self.goals).sum()
        return float(misses + np.abs(point.values - self.start).sum())

    def dearer(self, point: Point) -> Iterator[Point]:
        """Yield points with higher costs, between this one and two corners of the box."""
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


def starts(
    task: MatchingTask, lowest: Point, look: Callable[[Floats], Point | None]
) -> Iterator[Point]:
    """Yield points to start from: the convex problem's, the one nearest to the start, dearer ones.

    `look` gives the point at some values, or None if they don't serve all models.
    """
    yield lowest
    nearest = look(np.clip(task.start, task.low, task.high))
    if nearest is not None:
        yield nearest
    if (lowest.cost < task.goals).any():
        yield from task.dearer(lowest)
