"""The noise of the published grid code instead of the paper's mechanisms, for comparison only.

See `published_noise_wind`: no release can use this module, and nothing that it makes is private.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from gridveil.auditing.checks import Sampler
from gridveil.grid.methods.entries_query import Parts
from gridveil.grid.model.population import Population
from gridveil.grid.opf.engine import solve_population
from gridveil.privacy.account import Account
from gridveil.privacy.sealed import Sealed
from gridveil.studies.grid_case import GridWorld, KnownCosts


class PublishedCosts(KnownCosts):
    """The paper's cost queries with the published code's noise in the third step.

    The code divides ``alpha c`` by epsilon and by ``4T``; the paper divides it by
    ``epsilon / 4T``. The noise is too small by a factor of ``16 T^2``. Models are chosen with
    correct noise; the code's own choice is random, since it compares a status with a misspelt word.
    """

    def __init__(
        self, world: GridWorld, alpha: Fraction, epsilon: Fraction, rounds: int, seed: int
    ) -> None:
        super().__init__(world.problem, {"capacity": alpha}, world.case)
        self._scale = published_scale(world, alpha, epsilon, rounds)
        self._noise = np.random.default_rng([seed, 3])

    def cost(
        self, account: Account, sealed: Sealed[Parts], model: Population, epsilon: Fraction
    ) -> float:
        """Return the cost of one model of a public network, with too little noise."""
        price = float(self._problem.price)
        found = solve_population(self.case.network, model, model="relaxed", slack_price=price)
        return float(found.cost[0] + self._noise.laplace(0.0, self._scale))


def published_scale(world: GridWorld, alpha: Fraction, epsilon: Fraction, rounds: int) -> float:
    """Compute the scale of the published code's noise on a cost, $/h."""
    return float(alpha * world.problem.price / epsilon / (4 * rounds))


def published_costs(
    world: GridWorld, alpha: Fraction, epsilon: Fraction, rounds: int, cost: float, seed: int
) -> Sampler:
    """Return a sampler of noisy costs as the published code draws them, for an audit."""
    rng = np.random.default_rng(seed)
    scale = published_scale(world, alpha, epsilon, rounds)
    return lambda count: cost + rng.laplace(0.0, scale, count)
