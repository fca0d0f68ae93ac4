"""The order in time of one turbine's records: a sum of processes with five public memories.

A record's *score* is its residual, by rank, on the normal scale. Products of clipped scores that
are a lag apart give the autocorrelation; the processes' shares are fitted to it.

Large residuals last longer than small ones (ice, wakes, derating). So the lasting processes are
multiplied by a volatility that varies slowly, `exp(s g - s^2)` with `g` standard normal: their sum
with the quick ones is then a mixture of normal distributions, with lasting tails.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr, ndtri

from gridveil.wind.synthetic.public_farm import Vector, Whole

CLIP = 1.25
"""Scores are clipped here before they are multiplied."""
MEMORIES = np.array([0.0, 900.0, 3600.0, 18_000.0, 180_000.0])
"""The memories of the processes, in seconds."""
SLOW = MEMORIES >= 18_000
"""The processes of which turbines of a farm share a larger part."""
SHARED = (0.2, 0.7)
"""The parts of quick and of slow processes that all turbines of a farm share; a guess.

That of slow processes holds for the volatility too."""

LASTING = MEMORIES >= 3600
"""The processes that are multiplied by a volatility."""
VOLATILITY = 0.9
"""The standard deviation of the volatility's logarithm; a guess."""
VOLATILITY_MEMORY = 36_000.0
"""The memory of the volatility, in seconds."""

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(9)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
_SQUARES = np.exp(2 * (VOLATILITY * _NODES - VOLATILITY**2))
_SQUARES = _SQUARES / (_WEIGHTS @ _SQUARES)
_TABLE = np.linspace(-12.0, 12.0, 2401)
_USUAL = np.array([0.2, 0.27, 0.2, 0.13, 0.2])
_LAGS = np.array([600.0, 1200.0, 3600.0, 10_800.0, 28_800.0, 86_400.0])
_AT_LAGS = np.array([0.64, 0.53, 0.38, 0.27, 0.2, 0.15])
_CORRELATIONS = np.linspace(-0.6, 1.0, 161)


def _clipped_products() -> Vector:
    """Compute the mean product of two clipped standard normal numbers at each correlation."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    weights = weights / weights.sum()
    joint = weights[:, None] * weights[None]
    clipped = np.clip(nodes, -CLIP, CLIP)[:, None]
    means = []
    for r in _CORRELATIONS:
        other = r * nodes[:, None] + np.sqrt(max(1 - r * r, 0.0)) * nodes[None]
        means.append(float((joint * clipped * np.clip(other, -CLIP, CLIP)).sum()))
    rising = np.array(means) + 1e-12 * np.arange(len(means))
    return np.asarray(np.maximum.accumulate(rising))


_PRODUCTS = _clipped_products()


def usual_products(lags: Whole, step: int) -> Vector:
    """Return the mean products of clipped scores at these lags, for turbines in general."""
    usual = np.interp(np.log(lags * step), np.log(_LAGS), _AT_LAGS)
    return np.asarray(np.interp(usual, _CORRELATIONS, _PRODUCTS))


def choose_lags(step: int, long_length: float) -> Whole:
    """Choose the lags to ask: at most an eighth of a long block, and always the first."""
    lags = np.unique(np.maximum(np.rint(_LAGS / step), 1)).astype(np.int64)
    return np.asarray(lags[(lags <= max(long_length // 8, 1)) | (lags == lags[0])])


def memory_factors(step: int) -> Vector:
    """Return the autocorrelation of each process after one step."""
    return np.where(MEMORIES > 0, np.exp(-step / np.maximum(MEMORIES, 1e-9)), 0.0)


def usual_shares() -> Vector:
    """Return the processes' shares for turbines in general."""
    return _USUAL.copy()


def fit_shares(lags: Whole, step: int, products: Vector, covariance: Vector) -> Vector:
    """Fit the processes' shares to noisy mean products of clipped scores."""
    shares = _fit(lags, step, products, covariance)
    for _ in range(2):  # products of a mixture differ from those of normal scores: correct them
        joint = memory_factors(step)[None] ** lags[:, None] @ shares
        normal = np.interp(joint, _CORRELATIONS, _PRODUCTS)
        moved = products + normal - _mixed_products(lags, step, shares)
        shares = _fit(lags, step, moved, covariance)
    return shares


def ranks(latent: Vector, shares: Vector) -> Vector:
    """Compute the distribution function of the processes' sum."""
    return np.asarray(np.interp(latent, _TABLE, _distribution(_TABLE, shares)))


def _distribution(values: Vector, shares: Vector) -> Vector:
    spreads = np.sqrt(shares[~LASTING].sum() + shares[LASTING].sum() * _SQUARES)
    return np.asarray(ndtr(values[..., None] / spreads) @ _WEIGHTS)


def _mixed_products(lags: Whole, step: int, shares: Vector) -> Vector:
    """Compute the mean products of clipped scores of the processes' sum at these lags."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    joint = (weights[:, None] * weights[None]) / weights.sum() ** 2
    distribution = np.clip(_distribution(_TABLE, shares), 1e-12, 1 - 1e-12)
    scores = np.clip(ndtri(distribution), -CLIP, CLIP)
    factors = memory_factors(step)
    found = []
    for lag in lags:
        after = shares * factors**lag
        mean = 0.0
        for square, weight in zip(_SQUARES, _WEIGHTS, strict=True):
            variance = shares[~LASTING].sum() + square * shares[LASTING].sum()
            r = (after[~LASTING].sum() + square * after[LASTING].sum()) / variance
            other = r * nodes[:, None] + np.sqrt(max(1 - r * r, 0.0)) * nodes[None]
            first = np.interp(np.sqrt(variance) * nodes, _TABLE, scores)[:, None]
            second = np.interp(np.sqrt(variance) * other, _TABLE, scores)
            mean += weight * float((joint * first * second).sum())
        found.append(mean)
    return np.array(found)


def _fit(lags: Whole, step: int, products: Vector, covariance: Vector) -> Vector:
    from scipy.optimize import nnls  # slow to load

    correlation = np.interp(products, _PRODUCTS, _CORRELATIONS)
    A = memory_factors(step)[None] ** lags[:, None]
    # A product changes by about 0.6 of the change of its correlation.
    spread = covariance / 0.36 + 1e-4 * np.eye(len(lags))
    S = np.linalg.inv(np.linalg.cholesky(spread))
    rows = np.vstack([S @ A, np.eye(len(MEMORIES)) / 0.1, np.full((1, len(MEMORIES)), 1e4)])
    shares, _ = nnls(rows, np.concatenate([S @ correlation, _USUAL / 0.1, [1e4]]))
    return np.asarray(shares / shares.sum())
