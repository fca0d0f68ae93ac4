"""Points of the restoration of the paper's method: costs of the models there, and the objective.

Costs are turned round where they are concave in the values (`sign` is -1), so that everything
else may take them to be convex.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gridveil.grid.parameters import Problem
from gridveil.grid.population import Population
from gridveil.grid.restoring.oracle import Oracle

Floats = NDArray[np.float64]

_HALVINGS = 12


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
        One a model.
    start
        Values to stay near.
    low, high
        The public box.
    """

    def __init__(
        self,
        problem: Problem,
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
