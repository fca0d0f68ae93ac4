"""The two levels solved exactly, by branching on complementarity with HiGHS' linear programmes.

A dispatch is optimal exactly if there are prices of its limits that explain all costs, such that
each limit binds or has no price (the conditions of Karush, Kuhn and Tucker). A mixed-integer model
has a binary for each of these choices and needs a bound on the prices, which nothing provides: near
capacities that can't be served they have none. So we branch on the choice itself:

- the limit binds: a bound of the relaxation is set;
- it has no price: it is left out of the model below, whose cost must be the same without it.

The lower bounds are those of the relaxation, and of the cost of the model below at the lowest
capacities, without what is left out: no capacities make it dearer. All other numbers are exact up
to the tolerance of a linear programme.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from gridveil.grid.restoring.bilevel import Bilevel
from gridveil.grid.restoring.linear import End
from gridveil.grid.restoring.lower import LowerSolver, Lowest
from gridveil.grid.restoring.relaxation import Relaxation

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Found:
    """The best capacities, their objective, and a proved lower bound."""

    phi: Floats
    objective: float
    bound: float

    def within(self, tolerance: float) -> bool:
        """Whether the relative gap is that small."""
        gap = self.objective - self.bound
        return bool(np.isfinite(gap)) and gap <= tolerance * max(1.0, abs(self.objective))


@dataclass(frozen=True, eq=False, order=False)
class Node:
    """For each model, which limits bind, and which are left out because they have no price."""

    binding: list[Bools]
    left_out: list[Bools]

    def child(self, t: int, limit: int, *, binds: bool) -> Node:
        """Decide one more limit."""
        changed = list(self.binding if binds else self.left_out)
        changed[t] = changed[t].copy()
        changed[t][limit] = True
        return Node(changed, self.left_out) if binds else Node(self.binding, changed)


@dataclass(eq=False)
class Branching:
    """A search over nodes, the one with the lowest bound first, diving into limits that bind.

    Parameters
    ----------
    problem
        Both levels.
    relaxation
        Their relaxation.
    below
        A solver of each model.
    tolerance
        Relative gap at which a node is done with.
    """

    problem: Bilevel
    relaxation: Relaxation
    below: list[LowerSolver]
    tolerance: float
    best: Floats = field(init=False)
    objective: float = field(default=np.inf, init=False)
    _lost: float = field(default=np.inf, init=False)

    def __post_init__(self) -> None:
        self.best = self.problem.high

    def offer(self, phi: Floats) -> Floats:
        """Take capacities if they are the best so far; gives the models' costs there."""
        costs = np.array([solver.solve(phi).cost for solver in self.below])
        objective = self.problem.objective(phi, costs)
        if objective < self.objective:
            self.best, self.objective = phi, objective
        return costs

    def search(self, bound: float, left: Callable[[], float]) -> Found:
        """Search until nothing is left, or the time; `bound` is the relaxation's."""
        none = [np.zeros(solver.count, dtype=bool) for solver in self.below]
        number = itertools.count()
        heap: list[tuple[float, int, Node]] = [(bound, next(number), Node(none, none))]
        while heap:
            bound, _, node = heapq.heappop(heap)
            if bound >= self.objective - self._small():
                break
            current: Node | None = node
            while current is not None:
                if left() <= 0:
                    heapq.heappush(heap, (bound, next(number), current))
                    return self.found(heap[0][0])
                value, split = self._look(current, bound)
                if split is None:
                    break
                bound = value
                heapq.heappush(heap, (value, next(number), current.child(*split, binds=False)))
                current = current.child(*split, binds=True)
            bound = np.inf
        return self.found(bound)

    def found(self, bound: float) -> Found:
        """The best so far, with a bound for what was not looked at."""
        return Found(self.best, self.objective, min(bound, self._lost, self.objective))

    def _small(self) -> float:
        return self.tolerance * max(1.0, abs(self.objective))

    def _look(self, node: Node, bound: float) -> tuple[float, tuple[int, int] | None]:
        """Bound a node: its value, and the limit to branch on, or None where it is done with."""
        off = self._off(node)
        if off is None:
            return np.inf, None
        answer = self.relaxation.solve(node.binding, off)
        if answer.end is End.FAILED:
            self._lost = min(self._lost, bound)
        if answer.end is not End.SOLVED or answer.value >= self.objective - self._small():
            return np.inf, None
        phi = self.relaxation.phi(answer.x)
        costs = self.offer(phi)
        if self.problem.objective(phi, costs) - answer.value <= self._small():
            return np.inf, None
        missing = self.problem.goal - costs - self.relaxation.off(answer.x)
        choices = []
        for t in np.flatnonzero(self.relaxation.hard & (missing > 0)).tolist():
            found = self.below[t].solve(phi, node.left_out[t])
            if found.end is End.UNBOUNDED:
                # No prices explain the costs without what is left out.
                return np.inf, None
            x = self.relaxation.dispatch(answer.x, t)
            choices.append(self._choose(node, t, phi, x, found))
        worth, which, limit = max(choices, default=(0.0, 0, 0))
        if worth <= 0.0:
            self._lost = min(self._lost, answer.value)
            return np.inf, None
        return max(bound, answer.value), (which, limit)

    def _choose(
        self, node: Node, t: int, phi: Floats, x: Floats, found: Lowest
    ) -> tuple[float, int, int]:
        """The limit that has a price and does not bind, and costs the dispatch the most."""
        gaps = self.below[t].gaps(phi, x)
        decided = node.binding[t] | node.left_out[t]
        prices = found.prices if found.end is End.SOLVED else np.ones(len(gaps))
        worth = np.where(decided, 0.0, gaps * prices)
        limit = int(np.argmax(worth))
        return float(worth[limit]), t, limit

    def _off(self, node: Node) -> Floats | None:
        """How far each cost is off its goal at least, or None where the node is empty."""
        off, floor = np.zeros(len(self.below)), self.relaxation.floor(self.objective)
        for t in np.flatnonzero(self.relaxation.hard):
            found = self.below[t].solve(floor, node.left_out[t])
            if found.end is End.UNBOUNDED:
                return None
            if found.end is End.SOLVED:
                off[t] = max(0.0, self.problem.goal[t] - found.cost)
        return off
