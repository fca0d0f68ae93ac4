"""Estimate weights, loss and records from noisy records and answers, through unbiased readings.

Private records lie in ``[0, 1]``, and Laplace noise has no memory: how far a noisy record lies
outside the box says nothing about the private one, so ``clip(y0)`` has all the information. For
noise of scale ``b`` let

    inside 0 <= y0 <= 1:   yu = y0,      v = 2 b^2
    y0 < 0:                yu = -b,      v = b^2
    y0 > 1:                yu = 1 + b,   v = b^2

Then ``E[yu] = y`` and ``E[v] = Var(yu)`` for every ``y`` in the box: the excess beyond the box, an
exponential variable, is replaced by its mean.

From these readings and the noisy answers this module estimates the weights, the loss and the
records. It reads noisy and public data only, so it costs no epsilon. Each step takes one or two
passes over the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcx, log_ndtr, logsumexp, ndtr

from gridveil.wind.regression import Ridge
from gridveil.wind.row_blocks import Rows, total

Floats = NDArray[np.float64]


def unbias(y0: Floats, b: float) -> tuple[Floats, Floats]:
    """Compute unbiased readings ``yu`` of the records and ``v`` of their variances."""
    outside = (y0 < 0) | (y0 > 1)
    readings = np.where(y0 < 0, -b, np.where(y0 > 1, 1 + b, y0))
    return readings, np.where(outside, b * b, 2 * b * b)


def tail_reading(y0: Floats, f: Floats, b: float, radius: float) -> tuple[Floats, Floats, Floats]:
    """Compute unbiased readings of ``g(y - f) = (|y - f| - R)+^2`` and of their variances.

    Also returns where ``g`` is curved. For Laplace noise ``E[g(r0) - b^2 g''(r0)] = g(r)``. Outside
    the box the reading is
    ``g(E) + b |g'(E)|``, ``E`` the edge's residual. Variances: ``2 b^2 g'^2 + b^4 g''^2`` inside,
    ``b^2 g'(E)^2`` outside. With ``R = 0`` these are readings of the squares.
    """
    c = np.clip(y0, 0.0, 1.0)
    outside = y0 != c
    r = c - f
    over = np.maximum(np.abs(r) - radius, 0.0)
    bends = np.abs(r) > radius
    slope = 2 * np.sign(r) * over
    held = over**2 + b * np.sign(y0 - c) * slope
    reading = np.where(outside, held, over**2 - 2 * b * b * bends)
    variance = np.where(outside, (b * slope) ** 2, 2 * (b * slope) ** 2 + 4 * b**4 * bends)
    return reading, variance, bends.astype(np.float64)


def normal_posterior(r0: Floats, s: float, b: float) -> tuple[Floats, Floats]:
    """Compute ``E[r | r + Lap(b) = r0]`` and the density of ``r0``, for normal ``r``.

    ``r`` has deviation ``s``. With Mills' ratio ``Q(z) = sqrt(pi/2) erfcx(z/sqrt 2)`` at
    ``z = s/b -+ r0/s`` the mean is
    ``(s^2/b) (Q- - Q+)/(Q- + Q+)``, the density ``phi(r0/s) (Q- + Q+)/(2b)``.
    """
    u = r0 / s
    left, right = (np.sqrt(np.pi / 2) * erfcx((s / b + z) / np.sqrt(2)) for z in (-u, u))
    density = np.exp(-u * u / 2) / np.sqrt(2 * np.pi) * (left + right) / (2 * b)
    return s * s / b * (left - right) / (left + right), density


def log_likelihood(y0: Floats, f: Floats, s: Floats, b: float, outliers: float) -> Floats:
    """Compute the log likelihood of noisy records, up to a constant, in the model of `matched`."""
    return np.asarray(logsumexp(_pieces(np.clip(y0, 0.0, 1.0), f, s, b, outliers), axis=0))


def matched(y0: Floats, f: Floats, s: Floats, b: float, outliers: float) -> Floats:
    """Denoise records: keep their order, and give them the distribution of the real ones.

    The model: a record is ``f + N(0, s^2)`` clipped to the box, or, with probability ``outliers``,
    anywhere in it. Each noisy record is mapped to the quantile of the model without noise that it
    has in the model with noise. Outside the box only the noise decides the quantile, which spreads
    such records over what the model allows.
    """
    c = np.clip(y0, 0.0, 1.0)
    pieces = np.exp(_pieces(c, f, s, b, outliers))
    below, over = pieces[0] + pieces[2] + pieces[4], pieces[1] + pieces[3] + pieces[5]
    inside = _model_below(c, f, s, outliers) + (over - below) / 2
    quantile = np.where(
        y0 < 0,
        np.exp(np.minimum(y0, 0) / b) * (over + pieces[2]) / 2,
        np.where(y0 > 1, 1 - np.exp(-np.maximum(y0 - 1, 0) / b) * (below + pieces[3]) / 2, inside),
    )
    return _model_quantile(quantile, f, s, outliers)


def _model_below(y: Floats, f: Floats, s: Floats, outliers: float) -> Floats:
    """Compute the model's share at or below a level inside the box."""
    return np.asarray((1 - outliers) * ndtr((y - f) / s) + outliers * y)


def _model_quantile(share: Floats, f: Floats, s: Floats, outliers: float) -> Floats:
    """Find the level that has this share of the model at or below it, by bisection."""
    low, high = np.zeros_like(f), np.ones_like(f)
    for _ in range(34):
        middle = (low + high) / 2
        less = _model_below(middle, f, s, outliers) < share
        low, high = np.where(less, middle, low), np.where(less, high, middle)
    return np.asarray((low + high) / 2)


def _pieces(c: Floats, f: Floats, s: Floats, b: float, outliers: float) -> Floats:
    """Compute log weights of the cases a record can be, given its reading ``c = clip(y0)``.

    Rows: from the curve's normal left and right of ``c``, clipped to 0, clipped to 1, an outlier
    left and right of ``c``. A weight is the case's probability times ``exp(-|y - c|/b)``; on
    either side this tilts the normal, whose centre moves to ``f +- s^2/b``.
    """
    on, off = np.log1p(-outliers), np.log(outliers)
    with np.errstate(divide="ignore"):
        return np.stack(
            [
                _tilted(np.zeros_like(c), c, c, f, s, b, 1.0) + on,
                _tilted(c, np.ones_like(c), c, f, s, b, -1.0) + on,
                log_ndtr(-f / s) - c / b + on,
                log_ndtr((f - 1) / s) - (1 - c) / b + on,
                np.log(-b * np.expm1(-c / b)) + off,
                np.log(-b * np.expm1(-(1 - c) / b)) + off,
            ]
        )


def _tilted(
    low: Floats, high: Floats, c: Floats, f: Floats, s: Floats, b: float, sign: float
) -> Floats:
    """Compute the log weight of the normal between ``low`` and ``high``, tilted by the noise."""
    centre = f + sign * s * s / b
    z_low, z_high = (low - centre) / s, (high - centre) / s
    flip = z_low + z_high > 0  # work in the lower tail, where log_ndtr keeps its digits
    less = log_ndtr(np.where(flip, -z_high, z_low))
    more = log_ndtr(np.where(flip, -z_low, z_high))
    mass = more + np.log(-np.expm1(np.minimum(less - more, -1e-300)))
    return np.asarray(mass + s * s / (2 * b * b) + sign * (f - c) / b)


OUTLIERS = (0.001, 0.01, 0.02, 0.04, 0.08, 0.15)
"""The shares of records far from the curve among which the denoiser chooses."""

_BINS = 10
_SAMPLE = 20_000
_LEAST = 0.02  # the least mean square of residuals at any level, as a share of the overall one


@dataclass(frozen=True, eq=False)
class Weights:
    """Estimated weights, their covariance, and the share of them that the records determine."""

    beta: Floats
    covariance: Floats
    share: Floats


@dataclass(frozen=True, eq=False)
class Spread:
    """The denoiser's model of residuals: a deviation by curve level, and a share of outliers."""

    profile: Floats
    outliers: float

    def at(self, f: Floats) -> Floats:
        """Return the deviation at curve levels ``f``."""
        middles = (np.arange(len(self.profile)) + 0.5) / len(self.profile)
        return np.interp(f, middles, self.profile)


def estimate_weights(
    rows: Rows,
    ridge: Ridge,
    b: float,
    mix: Floats,
    answer: Floats,
    scale: float,
    prior: tuple[Floats, Floats] | None = None,
) -> Weights:
    """Combine the weights of the noisy records and those asked for, according to their variances.

    A prior, if given, is a mean and a covariance; it is combined first, in the same way.

    From the records: ``bf = P X'yu`` with covariance ``Cf = P (sum_i v_i x_i x_i') P``. Asked for:
    ``A beta`` with noise of variance ``n = 2 scale^2`` in each coordinate. Then
    ``K = Cf A' (A Cf A' + n I)^-1``, ``bhat = bf + K (a - A bf)``, covariance ``(I - K A) Cf``.
    """
    P = ridge.factor
    moment, noise = total(rows.map(partial(_read_weights, b=b)))
    free, covariance = P @ moment, P @ noise @ P
    kept = np.eye(len(P))
    if prior is not None:
        kept -= np.linalg.solve(covariance + prior[1], covariance).T
        free = prior[0] + kept @ (free - prior[0])
        covariance = kept @ covariance
    spread = mix @ covariance @ mix.T + 2 * scale**2 * np.eye(len(mix))
    gain = np.linalg.solve(spread, mix @ covariance).T
    share = np.eye(len(P)) - gain @ mix
    return Weights(free + gain @ (answer - mix @ free), share @ covariance, share @ kept)


def estimate_loss(
    rows: Rows,
    ridge: Ridge,
    weights: Weights,
    b: float,
    radius: float,
    asked: float,
    scale: float,
    nominal: float | None = None,
) -> float:
    """Compute the posterior mean of the loss, which is always positive and needs no floor.

    - ``||y - f||^2`` about the clipped curve ``f`` is the asked part (``phi`` of radius ``R``,
      noise of ``scale``) plus the tail beyond it, from readings of the records; with ``R = 0`` all
      of it is from readings.
    - About the unclipped curve ``X bhat`` it is larger by ``(f - x'b)(2y - f - x'b)`` in rows whose
      curve was clipped; this is linear in the records, and also from their readings.
    - That exceeds ``l^2`` by ``||X (bhat - beta)||^2``, on average ``tr(X'X cov)``.
    - ``bhat`` was computed from the noisy records too, which lowers the readings of some rows by
      ``2 tr(share P sum_i v_i x_i x_i')`` over these rows.
    """
    beta = weights.beta
    reading, variance, gram, bent = total(
        rows.map(partial(_read_squares, b=b, radius=radius, beta=beta))
    )
    excess = float(np.trace(gram @ weights.covariance))
    shared = 2 * float(np.trace(weights.share @ ridge.factor @ bent))
    square = asked + float(reading) - excess + shared
    return posterior_loss(square, float(variance), scale, ridge.whitening.rows, nominal)


def posterior_loss(
    square: float, variance: float, scale: float, rows: int, nominal: float | None = None
) -> float:
    """Compute the mean of ``l`` given ``square = l^2 + normal + Laplace``.

    The prior of ``l^2`` is flat on ``[0, rows]``. With a public guess of the typical residual,
    ``log l`` is instead normal about the logarithm of the guessed loss, with a standard deviation
    of 1 (a factor of e).

    The mean is a sum on nested grids; the density of the two noises together has a closed form.
    """
    low, high = 0.0, float(np.sqrt(rows))
    deviation = float(np.sqrt(max(variance, 1e-12 * (1 + square * square))))
    for _ in range(4):
        loss = np.linspace(low, high, 4001)
        logs = _log_density(np.abs(square - loss * loss), deviation, scale)
        away = loss + 1e-9 * high
        if nominal is None:
            logs += np.log(away)
        else:
            logs -= np.log(away) + 0.5 * np.log(away / (nominal * np.sqrt(rows))) ** 2
        mass = np.exp(logs - logs.max())
        mass /= mass.max()
        kept = np.flatnonzero(mass > 1e-14)
        low, high = loss[max(kept[0] - 1, 0)], loss[min(kept[-1] + 1, 4000)]
    return float(mass @ loss / mass.sum())


def estimate_spread(rows: Rows, beta: Floats, loss: float, b: float) -> Spread:
    """Choose the model of the residuals under which the noisy records are most likely.

    ``s^2 = loss^2/m`` is the mean square of all residuals. Outliers, uniform on the box, have a
    mean square ``u2`` about the curve, so a share ``o`` of them leaves ``(s^2 - o u2)/(1 - o)``
    for the rest. The profile is flat or local; the local one has a penalty for its parameters, as
    in BIC.
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
    """Compute the fitted curve at every row, clipped to the box."""
    return np.clip(X @ beta, 0.0, 1.0)


def _log_density(away: Floats, deviation: float, scale: float) -> Floats:
    """Compute the log density (up to a constant) of normal plus Laplace noise at a distance."""
    if scale <= 1e-3 * deviation:
        return -((away / deviation) ** 2) / 2
    z, k = away / deviation, deviation / scale
    both = np.logaddexp(log_ndtr(z - k), 2 * away / scale + log_ndtr(-z - k))
    return np.asarray(-away / scale + k * k / 2 + both)


def _local_profile(count: Floats, square: Floats, noise: Floats, s2: float) -> Floats:
    """Estimate deviations by curve level, as shares of ``s``.

    Turbines scatter most on the steep part. Each level's mean square is shrunk towards the
    common one by the empirical Bayes factor ``t/(t + noise)``, where ``t`` is the variance between
    levels beyond noise: levels with much noise are shrunk most.
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
    # A few rows of every block are enough to compare the models.
    some = slice(None, None, max(len(f) // 2048, 1))
    sums = [_binned(level, values) for values in (np.ones_like(f), square, variance)]
    return *sums, np.stack([y0[some], f[some]])


def _binned(level: NDArray[np.intp], values: Floats) -> Floats:
    return np.bincount(level, values, minlength=_BINS).astype(np.float64)
