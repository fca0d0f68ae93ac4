"""The best weights, loss and records that the noisy answers support: free of charge.

Everything here sees noisy and public data only. Each step takes a pass or two over the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from gridveil.wind.denoise import log_likelihood, tail_reading, unbias
from gridveil.wind.regression import Ridge
from gridveil.wind.rows import Rows, total

Floats = NDArray[np.float64]

OUTLIERS = (0.001, 0.01, 0.02, 0.04, 0.08, 0.15)
"""Shares of records far off the curve that the denoiser chooses from."""

_BINS = 10
_SAMPLE = 20_000
_LEAST = 0.02  # of the mean square: no part of the curve is taken to be steadier than this


@dataclass(frozen=True, eq=False)
class Weights:
    """Estimated weights, their covariance, and the share of them read off the records."""

    beta: Floats
    covariance: Floats
    share: Floats


@dataclass(frozen=True, eq=False)
class Spread:
    """What the denoiser takes residuals to be: a deviation by curve level, and outliers."""

    profile: Floats
    outliers: float

    def at(self, f: Floats) -> Floats:
        """The deviation where the curve is at ``f``."""
        middles = (np.arange(len(self.profile)) + 0.5) / len(self.profile)
        return np.interp(f, middles, self.profile)


def estimate_weights(
    rows: Rows, ridge: Ridge, b: float, mix: Floats, answer: Floats, scale: float
) -> Weights:
    """Join the weights read off the records and those asked for, by their variances.

    Read off: ``bf = P X'yu`` with covariance ``Cf = P (sum_i v_i x_i x_i') P``. Asked for:
    ``A beta`` with noise of variance ``n = 2 scale^2`` a coordinate. Then
    ``K = Cf A' (A Cf A' + n I)^-1``, ``bhat = bf + K (a - A bf)``, covariance ``(I - K A) Cf``.
    """
    P = ridge.factor
    moment, noise = total(rows.map(partial(_read_weights, b=b)))
    free, covariance = P @ moment, P @ noise @ P
    spread = mix @ covariance @ mix.T + 2 * scale**2 * np.eye(len(mix))
    gain = np.linalg.solve(spread, mix @ covariance).T
    share = np.eye(len(P)) - gain @ mix
    return Weights(free + gain @ (answer - mix @ free), share @ covariance, share)


def estimate_loss(
    rows: Rows, ridge: Ridge, weights: Weights, b: float, radius: float, asked: float, scale: float
) -> float:
    """The posterior mean of the loss, which is always positive: no floor is needed.

    - ``||y - f||^2`` about the clipped curve ``f`` is the asked part (``phi`` of radius ``R``,
      noise of ``scale``) and the tail beyond it, read off the records; with ``R = 0`` all is.
    - About the unclipped curve ``X bhat`` it is larger by ``(f - x'b)(2y - f - x'b)`` where the
      curve was clipped, which is linear in the records: read off them too.
    - That exceeds ``l^2`` by ``||X (bhat - beta)||^2``, on average ``tr(X'X cov)``.
    - ``bhat`` was made from the noisy records too, which lowers what is read off some rows by
      ``2 tr(share P sum_i v_i x_i x_i')`` over these rows.
    """
    beta = weights.beta
    reading, variance, gram, bent = total(
        rows.map(partial(_read_squares, b=b, radius=radius, beta=beta))
    )
    excess = float(np.trace(gram @ weights.covariance))
    shared = 2 * float(np.trace(weights.share @ ridge.factor @ bent))
    square = asked + float(reading) - excess + shared
    return posterior_loss(square, float(variance), scale, ridge.whitening.rows)


def posterior_loss(square: float, variance: float, scale: float, rows: int) -> float:
    """The mean of ``l`` given ``square = l^2 + normal + Laplace``, ``l^2`` flat on ``[0, rows]``.

    By sums on nested grids; the density of the two noises together is in closed form.
    """
    low, high = 0.0, float(np.sqrt(rows))
    deviation = float(np.sqrt(max(variance, 1e-12 * (1 + square * square))))
    for _ in range(4):
        loss = np.linspace(low, high, 4001)
        logs = _log_density(np.abs(square - loss * loss), deviation, scale)
        mass = (loss + 1e-9 * high) * np.exp(logs - logs.max())
        mass /= mass.max()
        kept = np.flatnonzero(mass > 1e-14)
        low, high = loss[max(kept[0] - 1, 0)], loss[min(kept[-1] + 1, 4000)]
    return float(mass @ loss / mass.sum())


def estimate_spread(rows: Rows, beta: Floats, loss: float, b: float) -> Spread:
    """The most likely of a short list of models of the residuals, judged by the noisy records.

    ``s^2 = loss^2/m`` is the mean square of all residuals. Outliers, uniform on the box, have a
    mean square ``u2`` about the curve, so a share ``o`` of them leaves ``(s^2 - o u2)/(1 - o)``
    for the rest. Profiles: flat, and the local one, which pays for its numbers as in BIC.
    """
    parts = list(rows.map(partial(_read_levels, beta=beta, b=b)))
    count, square, noise = total([part[:3] for part in parts])
    s2 = max(loss**2 / count.sum(), 1e-6)
    local = _local_profile(count, square, noise, s2)
    y0, f = _thinned(np.hstack([part[3] for part in parts]))
    far = float(np.mean(1 / 3 - f + f * f))
    found: list[tuple[float, Spread]] = []
    for profile, price in ((np.ones(_BINS), 0.0), (local, 0.5 * _BINS * np.log(len(f)))):
        for share in OUTLIERS:
            rest = (s2 - share * far) / (1 - share)
            if share > OUTLIERS[0] and rest < _LEAST * s2:
                break
            spread = Spread(profile * np.sqrt(max(rest, _LEAST * s2)), share)
            likelihood = log_likelihood(y0, f, spread.at(f), b, share).sum()
            found.append((float(likelihood) - price, spread))
    return max(found, key=lambda one: one[0])[1]


def curve(X: Floats, beta: Floats) -> Floats:
    """The fitted curve at every row, inside the box."""
    return np.clip(X @ beta, 0.0, 1.0)


def _log_density(away: Floats, deviation: float, scale: float) -> Floats:
    """Log density, up to a constant, of a normal plus a Laplace variable at a distance."""
    if scale <= 1e-3 * deviation:
        return -((away / deviation) ** 2) / 2
    z, k = away / deviation, deviation / scale
    both = np.logaddexp(log_ndtr(z - k), 2 * away / scale + log_ndtr(-z - k))
    return np.asarray(-away / scale + k * k / 2 + both)


def _local_profile(count: Floats, square: Floats, noise: Floats, s2: float) -> Floats:
    """Deviations by curve level, as shares of ``s``.

    Turbines scatter most on the steep part. Each level's mean square is shrunk towards the
    common one by the empirical Bayes factor ``t/(t + noise)``, ``t`` the variance between
    levels beyond noise: little is believed where noise is large.
    """
    filled = np.maximum(count, 1.0)
    mean, error = square / filled, noise / filled**2
    between = max(0.0, float(np.sum(count * ((mean - s2) ** 2 - error)) / count.sum()))
    trust = np.where(count > 0, between / np.maximum(between + error, 1e-300), 0.0)
    levels = np.clip(s2 + trust * (mean - s2), _LEAST * s2, 25 * s2)
    return np.asarray(np.sqrt(levels * count.sum() / max(float(count @ levels), 1e-300)))


def _thinned(pairs: Floats) -> Floats:
    keep = np.linspace(0, pairs.shape[1] - 1, min(pairs.shape[1], _SAMPLE)).astype(int)
    return np.asarray(pairs[:, keep])


def _read_weights(X: Floats, y0: Floats, b: float) -> tuple[Floats, Floats]:
    readings, variances = unbias(y0, b)
    return X.T @ readings, (X * variances[:, None]).T @ X


def _read_squares(
    X: Floats, y0: Floats, b: float, radius: float, beta: Floats
) -> tuple[Floats, ...]:
    straight = X @ beta
    f = np.clip(straight, 0.0, 1.0)
    cut = straight != f
    reading, variance, bends = tail_reading(y0, f, b, radius)
    readings, variances = unbias(y0, b)
    square = reading + (f - straight) * (2 * readings - f - straight)
    noise = variance + 4 * (f - straight) ** 2 * variances
    shared = (variances * np.where(cut, 1.0, bends))[:, None]
    return np.array(square.sum()), np.array(noise.sum()), X.T @ X, (X * shared).T @ X


def _read_levels(X: Floats, y0: Floats, beta: Floats, b: float) -> tuple[Floats, ...]:
    f = curve(X, beta)
    level = np.minimum((f * _BINS).astype(np.intp), _BINS - 1)
    square, variance, _ = tail_reading(y0, f, b, 0.0)
    # A few rows of every block are enough to judge the models by.
    some = slice(None, None, max(len(f) // 2048, 1))
    sums = [_binned(level, values) for values in (np.ones_like(f), square, variance)]
    return *sums, np.stack([y0[some], f[some]])


def _binned(level: NDArray[np.intp], values: Floats) -> Floats:
    return np.bincount(level, values, minlength=_BINS).astype(np.float64)
