"""The public network of grid studies with its population, and the releases made from it.

Real costs are computed once and sent to every worker. A run starts with new solvers, so that it
does not depend on the runs before it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gridveil.errors import InputError
from gridveil.grid import cases, read_case
from gridveil.grid.methods import PENALTY
from gridveil.grid.methods.cost_query import CostQuery
from gridveil.grid.methods.entries_query import Parts
from gridveil.grid.methods.paper import FAILED
from gridveil.grid.model.network import Network
from gridveil.grid.model.population import Population, take
from gridveil.grid.model.release_problem import ReleaseProblem
from gridveil.grid.model.sampling import sample_population
from gridveil.grid.opf.engine import Solutions, solve_population
from gridveil.grid.release import GridPlan, plan
from gridveil.privacy.exact_numbers import exact
from gridveil.studies.figure_style import BLUE, GREEN, ORANGE, PURPLE
from gridveil.studies.study_plan import Cell, Measures, Study

Floats = NDArray[np.float64]

NAMES = {
    "published": "published noise",
    "paper": "paper, correct noise",
    "certified": "GridVeil, certified",
    "laplace": "Laplace",
}
COLOURS = {"published": PURPLE, "paper": BLUE, "certified": GREEN, "laplace": ORANGE}

RANGE = (1.0, 1e6)
"""The public range of capacities in all studies, MW."""

BUILT_IN = {"rts96": None, "rts96-paper": "paper"}

# A limit counts as broken if the flow is above it by more than this (MW).
_OVER = 1e-6


@dataclass(frozen=True, eq=False)
class Case:
    """A public network with models that it serves, and other such models that no release uses.

    Parameters
    ----------
    network, population, unseen
        The network, its models, and the other models.
    lipschitz, ends
        Costs of the models on the network at the price of the cost queries, and their public range.
    real, unseen_real
        Solutions of both populations on the real network: costs, and prices of buses and lines.
    """

    network: Network
    population: Population
    unseen: Population
    lipschitz: Floats
    ends: tuple[float, float]
    real: Solutions
    unseen_real: Solutions


def make_case(source: str, models: int, seed: int, spread: float = 0.125) -> Case:
    """Read a network, sample models of it, and solve those that it serves.

    Raises
    ------
    InputError
        If the network can't be used, or serves too few of the sampled models.
    """
    network = _network(source)
    population, real = _served(network, models, seed, spread)
    unseen, unseen_real = _served(network, models, seed + 1_000_003, spread)
    problem = plan(network, population, epsilon=1, alpha=1, method="laplace", range=RANGE).problem
    price = float(problem.price)
    lipschitz = solve_population(network, population, model="relaxed", slack_price=price).cost
    limits = CostQuery(problem, {"capacity": Fraction(1)}).range
    ends = limits.low, limits.high
    return Case(network, population, unseen, lipschitz, ends, real, unseen_real)


def _network(source: str) -> Network:
    network = cases.rts96(BUILT_IN[source]) if source in BUILT_IN else read_case(source)
    return replace(network, source=None)


def _served(
    network: Network, models: int, seed: int, spread: float
) -> tuple[Population, Solutions]:
    """Sample models that the network serves; as the data is public, this may decide."""
    costs: tuple[float, float] | float = (
        (80.0, 100.0) if network.name.startswith("rts96") else 0.125
    )
    drawn = sample_population(network, 2 * models, spread=spread, costs=costs, seed=seed)
    found = solve_population(network, drawn, keep=("nodal_price", "line_price"))
    served = np.flatnonzero(np.isfinite(found.cost))[:models]
    if len(served) < models:
        raise InputError(
            f"The network serves {len(served):,} of {2 * models:,} models that were sampled about "
            f"it, too few for a study of {models:,}.",
            remedy="Take a network with more room, or a smaller --spread.",
        )
    kept = {
        name: values[served]
        for name, values in vars(found).items()
        if isinstance(values, np.ndarray)
    }
    return take(drawn, served), Solutions(**kept)


@dataclass(frozen=True, eq=False)
class Released:
    """Released capacities in MW, and the number of rounds whose restoration failed."""

    values: Floats
    failed: int


class KnownCosts(CostQuery):
    """The cost query of a public network, whose real costs are known and not computed again."""

    def __init__(
        self, problem: ReleaseProblem, alphas: dict[str, Fraction], case: Case, *, unit: float = 1.0
    ) -> None:
        self.case = case
        super().__init__(problem, alphas, unit=unit)

    def _range(self) -> tuple[float, float]:
        return self.case.ends

    def _costs(self, parts: Parts, models: Population) -> Floats:
        if models is self._problem.models:
            return self.case.lipschitz
        return super()._costs(parts, models)


class OneCost(KnownCosts):
    """The cost query on data for which every model has one known cost."""

    def __init__(
        self, problem: ReleaseProblem, alphas: dict[str, Fraction], case: Case, cost: float
    ) -> None:
        self.known = cost
        super().__init__(problem, alphas, case)

    def _costs(self, parts: Parts, models: Population) -> Floats:
        return np.array([self.known])


class GridWorld:
    """A case with its plans, which one worker keeps between runs."""

    def __init__(self, case: Case) -> None:
        self.case = case
        planned = plan(
            case.network, case.population, epsilon=1, alpha=1, method="laplace", range=RANGE
        )
        self.sealed, self.problem = planned.sealed, planned.problem
        self.public = self.problem.public
        self.capacity: Floats = case.network.branches.capacity[self.public.support["capacity"]]
        self._plans: dict[tuple[Any, ...], GridPlan] = {}

    def release(self, cell: Cell, seed: int) -> Released:
        """Make a seeded release."""
        method = str(cell["method"])
        alpha, epsilon = (exact(cell[name], name=name) for name in ("alpha", "epsilon"))
        rounds = max(int(cell.get("rounds", 1)), 1)
        planned = self._plan(alpha, epsilon, "paper" if method == "published" else method, rounds)
        if method == "published":
            from gridveil.studies.published_noise_grid import PublishedCosts

            planned = planned.with_costs(PublishedCosts(self, alpha, epsilon, rounds, seed))
        release = planned.run(planned.study(seed))
        return Released(release.values, int(release.statement.body["settings"].get(FAILED, 0)))

    def lipschitz_costs(self, model: int, other: Floats) -> tuple[float, float]:
        """Compute one model's Lipschitz cost at the real capacities and at others."""
        one = take(self.case.population, np.array([model]))
        price = float(self.problem.price)
        here, there = (
            solve_population(
                self.case.network, one, capacity=capacity, model="relaxed", slack_price=price
            ).cost[0]
            for capacity in (None, other)
        )
        return float(here), float(there)

    def compare(self, released: Released, *, unseen: bool = False) -> dict[str, float]:
        """Measure how well released capacities serve the models, and their errors."""
        case, values = self.case, released.values
        infeasible, found = self._solve(values, case.population)
        error = np.abs(found.cost - case.real.cost) / case.real.cost
        measured = {
            "infeasible": infeasible,
            "cost_error": 100 * float(error.mean()),
            "capacity_error": float(np.abs(values - self.capacity).mean()),
            "price_error": float(np.nanmean(np.abs(_prices(found) - _prices(case.real)))),
            "congestion": _agreement(found.congested, case.real.congested),
            "failed": released.failed,
        }
        if unseen:
            measured["unseen_infeasible"], other = self._solve(values, case.unseen)
            missed = np.abs(other.cost - case.unseen_real.cost) / case.unseen_real.cost
            measured["unseen_cost_error"] = 100 * float(missed.mean())
        return measured

    def _solve(self, values: Floats, models: Population) -> tuple[float, Solutions]:
        """Return the percentage of infeasible models, and solutions that may break limits.

        A model that breaks a limit at the penalty may still have an expensive solution that breaks
        none.
        """
        network = self.public.with_values(values)
        keep = ("overload", "nodal_price", "line_price")
        found = solve_population(network, models, model="relaxed", slack_price=PENALTY, keep=keep)
        assert found.overload is not None
        doubtful = np.flatnonzero(found.overload.max(axis=1) > _OVER)
        if not len(doubtful):
            return 0.0, found
        strict = solve_population(network, take(models, doubtful))
        return 100 * float((~np.isfinite(strict.cost)).sum()) / models.size, found

    def _plan(self, alpha: Fraction, epsilon: Fraction, method: str, rounds: int) -> GridPlan:
        """Return the plan of a release, made once for each setting."""
        key = alpha, epsilon, method, rounds
        if key not in self._plans:
            options: dict[str, Any] = {}
            if method == "paper":
                options = {"rounds": rounds, "penalty": PENALTY}
            made = plan(
                self.case.network,
                self.case.population,
                epsilon=epsilon,
                alpha=alpha,
                method=method,
                range=RANGE,
                **options,
            )
            if method == "paper":
                made = made.with_costs(
                    KnownCosts(
                        made.problem, {"capacity": alpha}, self.case, unit=made.prepared.unit
                    )
                )
            self._plans[key] = made.without_warning()
        return self._plans[key]


MEASURES = {
    "infeasible": pa.float64(),
    "cost_error": pa.float64(),
    "capacity_error": pa.float64(),
    "price_error": pa.float64(),
    "congestion": pa.float64(),
    "failed": pa.int64(),
}
"""The measures of `GridWorld.compare`: percent, percent, MW, $/MWh, percent, and rounds."""

UNSEEN_MEASURES = {"unseen_infeasible": pa.float64(), "unseen_cost_error": pa.float64()}


class GridStudy(Study):
    """Releases of the paper's network and models; other models are measured if it names them."""

    measures: ClassVar = MEASURES

    models: int
    data_seed: int

    def prepare(self) -> Case:
        """Make the paper's network and models."""
        return make_case("rts96-paper", self.models, self.data_seed)

    def world(self, shared: Case) -> GridWorld:
        """Prepare the case for releases."""
        return GridWorld(shared)

    def run(self, world: GridWorld, cell: Cell, seed: int) -> Measures:
        """Make one release, and measure it."""
        return world.compare(world.release(cell, seed), unseen=self.measures != MEASURES)


def _prices(found: Solutions) -> Floats:
    assert found.nodal_price is not None
    return found.nodal_price


def _agreement(one: NDArray[np.bool_], other: NDArray[np.bool_]) -> float:
    """Compute the percentage of lines congested in either that are congested in both."""
    either = int((one | other).sum())
    return 100.0 * int((one & other).sum()) / either if either else 100.0
