"""The noise of the published wind code instead of the paper's mechanisms, for comparison only.

The paper's authors published the code of their experiments. Its noise differs from what the paper
proves. To show the effect on the results, a study can repeat it here, on public data and with
seeded noise. No release can use this module, and nothing that it makes is private.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from gridveil.studies.wind_turbine import GAMMA, RIDGE, WindWorld
from gridveil.wind.restoration.restore import restore

Vector = NDArray[np.float64]
Answers = Callable[[WindWorld, Vector, float, float, np.random.Generator, int], Vector]
"""A function that draws noisy answers for a power, alpha, epsilon, generator and count."""

SHARE = 1 / 3
"""The share of epsilon for each of records, loss and weights in the published wind code."""

_LEAST_LOSS = 1e-3


def published_wind(world: WindWorld, alpha: float, epsilon: float, seed: int) -> Vector:
    """Release power as the published wind code does.

    It differs from the paper in two ways. The loss is squared, and so is the bound on how far the
    loss moves, but the square of that bound does not bound how far the squared loss moves. And one
    draw of noise is added to all weights, so the differences of the weights are released exactly.
    """
    rng = draws(seed)
    power = world.turbine.power
    noisy = power + rng.laplace(0.0, alpha / (epsilon * SHARE), len(power))
    (squared,) = noisy_loss(world, power, alpha, epsilon, rng, 1)
    (weights,) = noisy_weights(world, power, alpha, epsilon, rng, 1)
    # Its restoration matches the squared loss. That gives the same records: either loss meets its
    # target exactly if that is below the noisy records' own loss.
    restored = restore(
        world.fit.with_noisy(noisy),
        loss=float(np.sqrt(max(squared, _LEAST_LOSS**2))),
        weights=weights,
        ridge=RIDGE,
        gamma_beta=GAMMA,
        gamma_y=GAMMA,
        whitening=world.fit.ridge.whitening,
    )
    return np.concatenate(list(restored.records(world.fit.with_noisy(noisy))))


def draws(seed: int) -> np.random.Generator:
    """Return the random generator of the published code's noise."""
    return np.random.default_rng(seed)


def noisy_loss(
    world: WindWorld,
    power: Vector,
    alpha: float,
    epsilon: float,
    rng: np.random.Generator,
    count: int,
) -> Vector:
    """Draw `count` independent noisy squared losses of some power."""
    scale = world.fit.ridge.delta_loss(alpha) ** 2 / (epsilon * SHARE)
    return world.fit.ridge.loss(power) ** 2 + rng.laplace(0.0, scale, count)


def noisy_weights(
    world: WindWorld,
    power: Vector,
    alpha: float,
    epsilon: float,
    rng: np.random.Generator,
    count: int,
) -> Vector:
    """Draw `count` independent noisy weights of some power, one per row; a row shares one draw."""
    scale = world.fit.ridge.delta_beta(alpha) / (epsilon * SHARE)
    return world.fit.ridge.weights(power) + rng.laplace(0.0, scale, (count, 1))


def squared_loss_epsilon(world: WindWorld, alpha: float, epsilon: float) -> float:
    """Compute a lower bound of the epsilon that the published squared loss has on these records.

    Noise of scale ``b`` turns a change of ``D`` between neighbours into epsilon ``D/b``.
    """
    ridge, y = world.fit.ridge, world.turbine.power
    change = abs(ridge.loss(worst_neighbour(world, alpha)) ** 2 - ridge.loss(y) ** 2)
    return change / (ridge.delta_loss(alpha) ** 2 / (epsilon * SHARE))


def worst_neighbour(world: WindWorld, alpha: float) -> Vector:
    """Find the neighbour of the records, in ``[0, 1]``, whose squared loss differs most.

    A record that moves by ``a`` changes ``||T y||^2`` by ``2 a (T^2 y)_i + a^2 ||T e_i||^2``.
    """
    ridge, y = world.fit.ridge, world.turbine.power
    X, W = world.X, ridge.whitening.W
    M = W @ (X @ W).T
    residual = y - X @ (M @ y)
    twice = residual - M.T @ (X.T @ residual)  # T is symmetric: T^2 y = T (T y)
    columns = 1 - 2 * np.einsum("ij,ji->i", X, M) + np.einsum("ij,ij->j", X @ M, X @ M)
    steps = np.array([np.clip(y + sign * alpha, 0, 1) - y for sign in (-1, 1)])
    side, place = np.unravel_index(
        np.abs(2 * steps * twice + steps**2 * columns).argmax(), (2, len(y))
    )
    other = y.copy()
    other[place] += steps[side, place]
    return other
