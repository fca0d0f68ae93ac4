"""Small random restorations of capacities, congested and with goals on both sides of the costs."""

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from grid.reference import random_network
from numpy.typing import NDArray

from gridveil.grid.model.network import Network
from gridveil.grid.model.population import Population
from gridveil.grid.opf.engine import solve_population

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Instance:
    """What a restoration of capacities is given; `cost` is what the goals are noisy versions of."""

    network: Network
    models: Population
    goal: Floats
    start: Floats
    low: Floats
    high: Floats
    cost: Floats

    @property
    def given(self):
        """The arguments of a restoration, in order."""
        return self.network, self.models, self.goal, self.start, self.low, self.high

    def costs(self, phi):
        """The models' costs at capacities."""
        capacity = self.network.branches.capacity.copy()
        capacity[np.isfinite(capacity)] = phi
        return solve_population(self.network, self.models, capacity=capacity).cost

    def objective(self, phi, weight=1.0):
        """The objective at capacities, independently of any restoration."""
        off = np.abs(self.goal - self.costs(phi)).sum()
        return float(off + weight * np.abs(np.asarray(phi) - self.start).sum())


@lru_cache
def random_instance(seed, *, models=None, limited=None):
    """Draw a network of 4 to 10 buses and 1 or 2 models whose costs its capacities decide.

    Capacities are shrunk until some model can't be served, and the last that served all are the
    real ones. The start is these with 15% Laplace noise; the goals are off by a few per cent, up
    in most, down in some. `models` and `limited` set how many models and limited branches
    there are.
    """
    rng = np.random.default_rng([seed, 7])
    buses = int(rng.integers(4, 11))
    network = random_network(seed, buses=buses, extra=buses // 2)
    size = 1 + seed % 2 if models is None else models
    lines, units = len(network.branches), len(network.generators)
    population = Population(
        size,
        load=rng.uniform(0.85, 1.1, (size, buses)),
        p_max=rng.uniform(0.9, 1.1, (size, units)),
        cost=rng.uniform(10, 100, (size, units)),
        capacity=np.ones((size, lines)) * rng.choice([1.0, 0.9], (size, 1)),
    )
    capacity = network.branches.capacity.copy()
    live = np.flatnonzero(network.branches.in_service & np.isfinite(capacity))
    if limited is not None:
        capacity[rng.permutation(live)[limited:]] = np.inf
        capacity[~network.branches.in_service] = np.inf
    while np.isinf(solve_population(network, population, capacity=capacity).cost).any():
        capacity = capacity * 1.1
    while np.isfinite(solve_population(network, population, capacity=capacity * 0.95).cost).all():
        capacity = capacity * 0.95
        if capacity[np.isfinite(capacity)].max() < 1:
            break
    network = network.with_capacity(capacity)
    real = capacity[np.isfinite(capacity)]
    cost = solve_population(network, population).cost
    side = np.where(rng.random(size) < 0.75, 1.0, -1.0)
    return Instance(
        network=network,
        models=replace(population, private="capacity"),
        goal=cost * (1 + side * rng.exponential(0.06, size)),
        start=np.maximum(real + rng.laplace(0, 0.15 * real), 1.0),
        low=np.minimum(1.0, real),
        high=4 * real,
        cost=cost,
    )
