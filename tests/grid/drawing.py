"""Random small releases: a network, what of it is private, and models with multipliers."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from grid.reference import random_network, with_generators

from gridveil.grid.model.declarations import Declared
from gridveil.grid.model.network import Network
from gridveil.grid.model.parameters import PARAMETERS
from gridveil.grid.model.population import Population
from gridveil.grid.model.public_network import split_parts
from gridveil.grid.model.release_problem import ReleaseProblem
from gridveil.grid.opf.engine import Solutions, solve_population
from gridveil.grid.opf.fallbacks import VIOLATION

SINGLE = ("capacity", "load", "generator_limit", "cost")
TOGETHER = (
    "capacity,load",
    "capacity,generator_limit",
    "load,generator_limit",
    "capacity,load,generator_limit",
    "capacity,cost",
    "load,cost",
    "capacity,load,cost",
)
"""All sets of parameters for which a bound on a cost is known."""


@dataclass(frozen=True)
class Case:
    """A drawn release; `values` are the private entries, not bound to any range."""

    network: Network
    problem: ReleaseProblem
    values: np.ndarray
    rng: np.random.Generator

    def solve(self, values, model=None, **how) -> Solutions:
        """The models' costs at these values; Lipschitz ones by default."""
        slack = self.problem.slack if model is None else model
        price = None if slack in ("strict", ("strict",)) else float(self.problem.price)
        network = self.problem.public.with_values(values)
        return solve_population(network, self.problem.models, model=slack, slack_price=price, **how)

    def kind_of(self, entry):
        """The parameter that an entry belongs to."""
        parts = self.problem.public.parts.items()
        return next(PARAMETERS[name] for name, part in parts if part.start <= entry < part.stop)

    def neighbour(self, alpha):
        """One entry moved by up to alpha, mostly by all of it; and which."""
        entry = int(self.rng.integers(len(self.values)))
        share = self.rng.choice([-1.0, 1.0, self.rng.uniform(-1, 1)])
        values = self.values.copy()
        values[entry] += share * alpha
        return values, entry


def off(found):
    """How far computed costs may be from those that the proof is about (see `cost_query`)."""
    with np.errstate(invalid="ignore"):
        gap = found.cost - found.bound
    return gap + VIOLATION * found.room_price + 1e-12 * np.abs(found.cost)


def difference(there, here):
    """How far the costs are apart, nan where there are none."""
    with np.errstate(invalid="ignore"):
        return there.cost - here.cost


def draw(seed, parameters):
    """Draw a case: must-run units, dispatchable loads, islands, curved costs, odd capacities."""
    rng = np.random.default_rng(seed)
    names = parameters.split(",")
    hard = not {"capacity", "load"} & set(names)  # lines can't be bought: leave them wide
    network = random_network(
        seed,
        buses=int(rng.integers(3, 9)),
        extra=int(rng.integers(0, 5)),
        tight=float(rng.choice([2.0, 5.0] if hard else [0.1, 0.5, 1.0, 3.0])),
        curved="cost" not in names and rng.random() < 0.4,
        pieces="cost" not in names and rng.random() < 0.4,
        islands=1 + int(rng.random() < 0.2),
    )
    units = network.generators
    if rng.random() < 0.3 and not hard:
        must = np.where(rng.random(len(units)) < 0.5, 0.9 * units.p_max, units.p_min)
        network = with_generators(network, p_min=must)
    if rng.random() < 0.3:
        paid = np.array([points is None for points in units.points]) * rng.uniform(0, 50)
        network = with_generators(network, linear=units.linear - paid)
    ranges = {name: (1.0, 2.0) if name == "capacity" else (-1.0, 1.0) for name in names}
    public = split_parts(network, names, ranges, declared=Declared(public_curves=True))[1]
    # Where limits can be bought below the differences of costs, costs have no lower end.
    price = Fraction(int(rng.choice([150, 400] if "generator_limit" in names else [1, 20, 60])))
    models = _models(rng, network, names)
    problem = ReleaseProblem(public, models, price)
    return Case(network, problem, _values(rng, network, public), rng)


def _models(rng, network, names, size=4):
    counts = len(network.buses), len(network.generators), len(network.branches)
    spread = rng.choice([0.1, 0.7])
    arrays = {
        "load": rng.uniform(1 - spread, 1 + spread, (size, counts[0])),
        "p_max": rng.uniform(1.0, 1 + spread, (size, counts[1])),
        "p_min": rng.uniform(1 - spread, 1.0, (size, counts[1])),
        "cost_factor": rng.uniform(1 - spread, 1 + spread, (size, counts[1])),
        "capacity": rng.choice([0.8, 1.0, 1.3], (size, counts[2])),
    }
    kept = {name: array for name, array in arrays.items() if rng.random() < 0.7}
    if "cost" not in names and rng.random() < 0.3:
        kept["cost"] = rng.uniform(-10, 60, (size, counts[1]))
    return Population(size, **kept)


def _values(rng, network, public):
    """The network's own values, some of them odd."""
    tables = network.buses, network.generators, network.branches
    found = []
    for column, mask in public.support.items():
        table = next(table for table in tables if hasattr(table, column))
        values = np.array(getattr(table, column))[mask]
        if column != "linear" and rng.random() < 0.5:
            values = values * rng.choice([1.0, 1.0, 1e-3, 0.0, 3.0], len(values))
        if column == "capacity" and rng.random() < 0.3:
            values = values * rng.choice([1.0, 1.0, -0.5], len(values))
        found.append(values)
    return np.concatenate(found)
