"""How the tuned method divides epsilon, from public numbers only.

It predicts, for a nominal spread ``s`` of records about their curve (a public setting on which
only the split depends), the error of the records, of the loss and of the weights for every split,
and takes the split that has the least error of records and loss among those whose loss and weights
are well ahead of WPO's at the same epsilon.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from gridveil.wind.denoise import normal_posterior
from gridveil.wind.queries import huber
from gridveil.wind.regression import Ridge

Floats = NDArray[np.float64]

LOSS_RATIO = 0.38  # predicted deviation of the loss: at most this share of WPO's
WEIGHT_RATIO = 0.47  # predicted error of the weights: at most this share of WPO's
SAMPLING = 0.4  # or this share of the weights' own sampling error, where that is more
LOSS_WEIGHT = 5.0  # what a relative error of the loss counts beside one of the records
RADII = tuple(Fraction(n, 20) for n in (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20))

_STEPS = 1000  # shares of epsilon are whole thousandths


@dataclass(frozen=True)
class Split:
    """The shares of epsilon for records, weights and spread, and the spread query's radius.

    A spread of 0 is not asked for: the noisy records say enough.
    """

    records: Fraction
    weights: Fraction
    spread: Fraction
    radius: Fraction


@dataclass(frozen=True)
class Setting:
    """The public numbers that a split depends on."""

    rows: int
    alpha: float
    epsilon: float
    nominal: float
    from_records: Floats  # covariance of the weights for records of unit variance
    from_query: Floats  # A'A / delta_A^2: precision of the weights query at epsilon 1
    wpo_loss: float  # WPO's deviation of the loss
    wpo_weights: float  # WPO's error of the weights


def plan_split(ridge: Ridge, mix: Floats, *, alpha: float, epsilon: float, nominal: float) -> Split:
    """Choose the split for one turbine's public features."""
    setting = _setting(ridge, mix, alpha, epsilon, nominal)
    shares = np.concatenate([[0.0], np.geomspace(0.005, 0.5, 28)])
    scored = [_score(setting, float(share)) for share in shares]
    _, spread, weights, radius = min(scored, key=lambda option: option[0])
    for_spread = Fraction(round(spread * _STEPS), _STEPS)
    for_weights = Fraction(max(round(weights * _STEPS), 1), _STEPS)
    return Split(1 - for_weights - for_spread, for_weights, for_spread, radius)


def _setting(ridge: Ridge, mix: Floats, alpha: float, epsilon: float, nominal: float) -> Setting:
    W, G = ridge.whitening.W, ridge.whitening.G
    from_records = W @ G @ W.T
    sampling = float(np.trace(from_records))
    # WPO's restoration drags the weights from those of its noisy records (deviation `noise`)
    # towards the asked ones, the further the larger the noise: a rough fit, below what was
    # measured by 10 to 25%, so on the safe side.
    noise = 2 * np.sqrt(2) * alpha / epsilon
    asked = 2 * len(W) * (4 * ridge.delta_beta(alpha) / epsilon) ** 2
    dragged = noise**2 * sampling * (1.15 / (1 + 0.5 * (noise / nominal) ** 2)) ** 2
    return Setting(
        rows=ridge.whitening.rows,
        alpha=alpha,
        epsilon=epsilon,
        nominal=nominal,
        from_records=from_records,
        from_query=mix.T @ mix / ridge.sensitivity(mix, alpha) ** 2,
        wpo_loss=np.sqrt(32) * ridge.delta_loss(alpha) / epsilon,
        wpo_weights=float(np.sqrt(asked + dragged)),
    )


def _score(setting: Setting, share: float) -> tuple[float, float, float, Fraction]:
    """Predict the error of a split; also gives back the shares and the radius."""
    weights = _least_weights(setting, share)
    scale = setting.alpha / (setting.epsilon * (1 - share - weights))
    s, m = setting.nominal, setting.rows
    options = []
    for radius in RADII if share else (Fraction(0),):
        asked = 0.0
        if share:
            move = huber(Fraction(1), radius) - huber(1 - Fraction(setting.alpha), radius)
            asked = 2 * (float(move) / (setting.epsilon * share)) ** 2
        options.append((asked + m * tail_variance(s, scale, float(radius)), radius))
    square, radius = min(options)
    loss = square / (4 * m * s * s)  # variance of the loss, from that of its square
    records = 2 * (1 - residual_correlation(s, scale))
    wanted = (LOSS_RATIO * setting.wpo_loss) ** 2
    penalty = 10 * max(0.0, loss / wanted - 1)
    return records + LOSS_WEIGHT * loss / (m * s * s) + penalty, share, weights, radius


def _least_weights(setting: Setting, spread: float) -> float:
    """The smallest share that makes the weights good enough, the rest going to the records.

    Half of what is left where none does.
    """
    own = SAMPLING * setting.nominal * np.sqrt(np.trace(setting.from_records))
    wanted = max(WEIGHT_RATIO * setting.wpo_weights, own) ** 2
    low, high = 0.0, 0.95 - spread
    if _weight_variance(setting, 1 - spread - high, high) > wanted:
        return min(high, 0.5 * (1 - spread))
    for _ in range(30):
        middle = (low + high) / 2
        good = _weight_variance(setting, 1 - spread - middle, middle) <= wanted
        low, high = (low, middle) if good else (middle, high)
    return max(high, 0.01)


def _weight_variance(setting: Setting, records: float, weights: float) -> float:
    free = np.linalg.pinv(setting.from_records, hermitian=True)
    free = free * (setting.epsilon * records / setting.alpha) ** 2 / 2
    asked = setting.from_query * (setting.epsilon * weights) ** 2 / 2
    return float(np.trace(np.linalg.pinv(free + asked, hermitian=True)))


def residual_correlation(s: float, b: float) -> float:
    """Correlation of a residual ``N(0, s^2)`` with what is left of it after noise ``Lap(b)``.

    ``rho^2 = E[E[r|r0]^2]/s^2`` by quadrature. Linear shrinkage has ``s^2/(s^2 + 2 b^2)``; for
    ``b`` much over ``s`` the posterior mean gets twice that.
    """
    if b < s / 25:
        return float(s / np.sqrt(s * s + 2 * b * b))
    r = np.linspace(0, 8 * s, 4001)
    mean, density = normal_posterior(r, s, b)
    values = mean**2 * density
    inner = 2 * (r[1] - r[0]) * (values.sum() - 0.5 * (values[0] + values[-1]))
    beyond = 2 * mean[-1] ** 2 * density[-1] * b  # constant there, with the density of the noise
    return float(min(1.0, np.sqrt((inner + beyond) / s**2)))


def tail_variance(s: float, b: float, radius: float) -> float:
    """Predicted variance a record of the part of the spread that is read off noisy records.

    Averaged over curve values in ``[0, 1]`` and residuals of ``+-s`` cut to the box.
    """
    middles = (np.arange(16) + 0.5) / 16
    f = np.concatenate([middles, middles])[:, None]
    y = np.clip(f + np.repeat([-s, s], 16)[:, None], 0, 1)
    grid = ((np.arange(400) + 0.5) / 400)[None, :]
    below, above = 0.5 * np.exp(-y / b), 0.5 * np.exp(-(1 - y) / b)
    density = np.exp(-np.abs(grid - y) / b)
    density *= (1 - below - above) / np.maximum(density.sum(1, keepdims=True), 1e-300)
    over = np.maximum(np.abs(grid - f) - radius, 0.0)
    curved = np.abs(grid - f) > radius
    inside = (density * (8 * b**2 * over**2 + 4 * b**4 * curved)).sum(1)
    ends = np.maximum(f - radius, 0) ** 2 * below + np.maximum(1 - f - radius, 0) ** 2 * above
    return float((inside + 4 * b**2 * ends[:, 0]).mean())
