"""Solve the paper's restoration of capacities to proved optimality, for small problems.

    min over phi   sum_t |goal_t - C_t(phi)| + weight ||phi - start||_1
    s.t.           low <= phi <= high, and every model t can be served,

with the optimality of every lower-level model written as complementarity, as in the paper. Costs
are convex in `phi`, so if a goal is above a cost this is as hard as maximising a convex function:
expect proofs on small networks or if few limits matter, and only bounds otherwise. Nothing here
sees private data.

**Branching** is on complementarity, with HiGHS' linear programmes. A dispatch is optimal exactly if
there are prices of its limits that explain all costs, such that each limit binds or has no price
(the conditions of Karush, Kuhn and Tucker). A mixed-integer model has a binary for each of these
choices and needs a bound on the prices, which nothing provides: near capacities that can't serve a
model they are unbounded. So the search branches on the choice itself:

- the limit binds: a bound of the relaxation is set;
- it has no price: it is left out of the lower-level model, whose cost must be the same without it.

Lower bounds come from the relaxation, and from the cost of a lower-level model at the lowest
capacities without the limits left out: no capacities make it more expensive. All other numbers are
exact up to the tolerance of a linear programme.
"""

from __future__ import annotations

import heapq
import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gridveil.errors import GridveilError, InputError
from gridveil.grid.model.network import Network
from gridveil.grid.model.population import Population
from gridveil.grid.opf.engine import solve_population
from gridveil.grid.restoration.paper_bilevel import Bilevel, as_vector, describe
from gridveil.grid.restoration.paper_relaxation import (
    End,
    LowerSolver,
    Lowest,
    Relaxation,
    highs_name,
)

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Found:
    """The best capacities, their objective, and a proved lower bound."""

    phi: Floats
    objective: float
    bound: float

    def within(self, tolerance: float) -> bool:
        """Say whether the relative gap is at most the tolerance."""
        gap = self.objective - self.bound
        return bool(np.isfinite(gap)) and gap <= tolerance * max(1.0, abs(self.objective))


@dataclass(frozen=True, eq=False, order=False)
class Node:
    """One node of the search: which limits of each model bind, and which are left out.

    A limit is left out because it has no price.
    """

    binding: list[Bools]
    left_out: list[Bools]

    def child(self, t: int, limit: int, *, binds: bool) -> Node:
        """Return the node with one more limit decided."""
        changed = list(self.binding if binds else self.left_out)
        changed[t] = changed[t].copy()
        changed[t][limit] = True
        return Node(changed, self.left_out) if binds else Node(self.binding, changed)


@dataclass(eq=False)
class Branching:
    """Branch and bound: the node with the lowest bound first, diving into limits that bind.

    Parameters
    ----------
    problem
        Both levels.
    relaxation
        Their relaxation.
    below
        A solver for each lower-level model.
    tolerance
        Relative gap at which a node is closed.
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
        """Keep capacities if they are the best so far; return the models' costs there."""
        costs = np.array([solver.solve(phi).cost for solver in self.below])
        objective = self.problem.objective(phi, costs)
        if objective < self.objective:
            self.best, self.objective = phi, objective
        return costs

    def search(self, first: Found, left: Callable[[], float]) -> Found:
        """Search until no node or no time is left; the bound of `first` is the relaxation's."""
        bound = first.bound
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
        """Return the best capacities so far; `bound` is that of the nodes not yet explored."""
        return Found(self.best, self.objective, min(bound, self._lost, self.objective))

    def _small(self) -> float:
        return self.tolerance * max(1.0, abs(self.objective))

    def _look(self, node: Node, bound: float) -> tuple[float, tuple[int, int] | None]:
        """Bound a node: return its value and the limit to branch on, or None if it is closed."""
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
                # Without the limits left out no prices explain the costs.
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
        """Choose the undecided limit with the largest price times distance from the dispatch."""
        gaps = self.below[t].gaps(phi, x)
        decided = node.binding[t] | node.left_out[t]
        prices = found.prices if found.end is End.SOLVED else np.ones(len(gaps))
        worth = np.where(decided, 0.0, gaps * prices)
        limit = int(np.argmax(worth))
        return float(worth[limit]), t, limit

    def _off(self, node: Node) -> Floats | None:
        """Bound from below how far each cost is off its goal; None if the node is empty."""
        off, floor = np.zeros(len(self.below)), self.relaxation.floor(self.objective)
        for t in np.flatnonzero(self.relaxation.hard):
            found = self.below[t].solve(floor, node.left_out[t])
            if found.end is End.UNBOUNDED:
                return None
            if found.end is End.SOLVED:
                off[t] = max(0.0, self.problem.goal[t] - found.cost)
        return off


Search = Callable[[Branching, Found, Callable[[], float]], Found]
"""A function that closes the gap between the best capacities and the bound, while there is time."""

# The best capacities often only just serve a model, and rounding decides whether they do. Each is
# raised by these amounts (MW) in turn until they do.
ROUNDING = (0.0, 1e-9, 1e-8, 1e-7, 1e-6)


@dataclass(frozen=True, eq=False)
class ExactRestoration:
    """Restored capacities and what is proved about them.

    Parameters
    ----------
    values
        Capacities of the limited branches, MW.
    objective
        Their objective, with the costs that the engine certifies.
    bound
        No capacities have an objective below this.
    gap
        ``(objective - bound) / max(1, |objective|)``.
    proved
        Whether the gap is within the tolerance.
    solver
        Name and version of the solver that proved the bound.
    """

    values: Floats
    objective: float
    bound: float
    gap: float
    proved: bool
    solver: str

    def __repr__(self) -> str:
        state = "proved" if self.proved else f"gap {self.gap:.2g}"
        return (
            f"<{len(self.values):,} capacities, objective {self.objective:,.6g} "
            f"({state}, {self.solver})>"
        )


def restore_exactly(
    network: Network,
    models: Population,
    goal: ArrayLike,
    start: ArrayLike,
    low: ArrayLike,
    high: ArrayLike,
    *,
    weight: float = 1.0,
    warm: ArrayLike | None = None,
    time_limit: float | None = 60.0,
    tolerance: float = 1e-7,
    search: Search | None = None,
) -> ExactRestoration:
    """Restore capacities exactly.

    Parameters
    ----------
    network
        The network; of its capacities only which are finite is used.
    models
        The models whose costs were released, with linear costs.
    goal
        A cost for each model, $/h.
    start
        Capacities to stay close to, MW: one for each limited branch.
    low, high
        Limits of the capacities, MW: one for each limited branch.
    weight
        Price of the distance, $/h per MW.
    warm
        Capacities to start with; clipped to the limits, and ignored if they don't serve a model.
    time_limit
        Seconds, or None. When the time is up, returns the best found so far with its bound.
    tolerance
        Relative gap up to which the optimum counts as proved.
    search
        What to run if the first linear programme proves nothing; branching by default. Tests pass
        another solver, to compare.

    Raises
    ------
    InputError
        If the input makes no sense, or no capacities in the limits serve all models.
    """
    left = _clock(time_limit)
    problem = describe(network, models, goal, start, low, high, weight)
    below = [LowerSolver(model) for model in problem.models]
    least = np.array([model.solve(problem.high).cost for model in below])
    relaxation = Relaxation(problem, problem.goal > least)
    first = relaxation.root()
    if first.end is End.INFEASIBLE:
        raise InputError(
            "No capacities within the limits serve all models.",
            remedy="Raise the upper limits, or leave models out.",
        )
    if first.end is not End.SOLVED:
        raise GridveilError("HiGHS could not solve the first linear programme.")
    branching = Branching(problem, relaxation, below, tolerance)
    branching.offer(relaxation.phi(first.x))
    if warm is not None:
        branching.offer(_warm(problem, warm))
    found = branching.found(first.value)
    if not found.within(tolerance):
        found = (search or Branching.search)(branching, found, left)
    return _verified(network, models, problem, found, highs_name(), tolerance)


def _clock(limit: float | None) -> Callable[[], float]:
    """Return a function that says how many seconds are left."""
    if limit is not None and not limit >= 0:
        raise InputError(f"time_limit={limit!r} is not a time.", remedy="Give seconds, or None.")
    end = np.inf if limit is None else time.monotonic() + limit
    return lambda: end - time.monotonic()


def _warm(problem: Bilevel, warm: ArrayLike) -> Floats:
    phi = as_vector(warm, len(problem.start), "warm", "one for each limited branch")
    return np.clip(phi, problem.low, problem.high)


def _verified(
    network: Network,
    models: Population,
    problem: Bilevel,
    found: Found,
    name: str,
    tolerance: float,
) -> ExactRestoration:
    """Compute the objective again with the engine, which the search did not use."""
    limited = np.isfinite(network.branches.capacity)
    capacity, objective, phi = np.full(len(limited), np.inf), np.inf, found.phi
    for more in ROUNDING:
        phi = np.minimum(found.phi + more, problem.high)
        capacity[limited] = phi
        objective = problem.objective(
            phi, solve_population(network, models, capacity=capacity).cost
        )
        if np.isfinite(objective):
            break
    else:
        return ExactRestoration(phi, np.inf, found.bound, np.inf, False, name)
    bound = min(found.bound, objective)
    gap = (objective - bound) / max(1.0, abs(objective))
    return ExactRestoration(phi, objective, bound, gap, gap <= tolerance, name)


Bools = NDArray[np.bool_]
