"""The paper's restoration of capacities, solved to proved optimality (small problems).

    min over phi   sum_t |goal_t - C_t(phi)| + weight ||phi - start||_1
    s.t.           low <= phi <= high, and every model t can be served,

with the optimality of every model below written as complementarity, as in the paper. Costs are
convex in `phi`, so wherever a goal is above a cost this is as hard as maximising a convex function:
expect proofs on small networks, or where few limits matter, and bounds elsewhere. Nothing here
sees private data.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gridveil.errors import GridveilError, InputError
from gridveil.grid.network import Network
from gridveil.grid.opf import solve_population
from gridveil.grid.population import Population
from gridveil.grid.restoring.bilevel import Bilevel, as_vector, describe
from gridveil.grid.restoring.branching import Branching, Found
from gridveil.grid.restoring.linear import End, highs_name
from gridveil.grid.restoring.lower import LowerSolver
from gridveil.grid.restoring.relaxation import Relaxation
from gridveil.grid.restoring.scip import scip_name, solve_by_scip

Floats = NDArray[np.float64]

# The best capacities often serve a model only just, and rounding decides whether they do. So much
# more (MW) is given to each until they do.
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
        What the bound comes from. HiGHS, whatever was asked for, where its first linear programme
        proves the optimum.
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
    solver: Literal["highs", "scip"] | None = None,
    tolerance: float = 1e-7,
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
        Capacities to stay close to, MW, one a limited branch, also below.
    low, high
        Limits of the capacities.
    weight
        Price of the distance, $/h a MW.
    warm
        Capacities to begin with; clipped to the limits, and not used where a model can't be served.
    time_limit
        Seconds, or None. Whatever was found by then is given back, with its bound.
    solver
        By default SCIP where PySCIPOpt is installed, else HiGHS.
    tolerance
        Relative gap up to which the optimum counts as proved.

    Raises
    ------
    InputError
        Where the input makes no sense, or no capacities in the limits serve all models.
    """
    left = _clock(time_limit)
    problem = describe(network, models, goal, start, low, high, weight)
    chosen = _chosen(solver)
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
    name = highs_name()
    found = branching.found(first.value)
    if not found.within(tolerance):
        if chosen == "scip":
            name = scip_name()
            found = solve_by_scip(relaxation, below, found, tolerance, left())
        else:
            found = branching.search(first.value, left)
    return _verified(network, models, problem, found, name, tolerance)


def _clock(limit: float | None) -> Callable[[], float]:
    """Seconds that are left."""
    if limit is not None and not limit >= 0:
        raise InputError(f"time_limit={limit!r} is no time.", remedy="Give seconds, or None.")
    end = np.inf if limit is None else time.monotonic() + limit
    return lambda: end - time.monotonic()


def _chosen(solver: str | None) -> str:
    installed = find_spec("pyscipopt") is not None
    if solver is None:
        return "scip" if installed else "highs"
    if solver not in ("highs", "scip"):
        raise InputError(f"solver={solver!r} is not known.", remedy="Use highs or scip.")
    if solver == "scip" and not installed:
        raise InputError(
            "SCIP is not installed.", remedy="Install PySCIPOpt, or choose solver='highs'."
        )
    return solver


def _warm(problem: Bilevel, warm: ArrayLike) -> Floats:
    phi = as_vector(warm, len(problem.start), "warm", "one a limited branch")
    return np.clip(phi, problem.low, problem.high)


def _verified(
    network: Network,
    models: Population,
    problem: Bilevel,
    found: Found,
    name: str,
    tolerance: float,
) -> ExactRestoration:
    """Evaluate what was found with the engine, which had no part in finding it."""
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
