"""What noisy records say: unbiased readings, and records with the noise taken out.

Private records lie in ``[0, 1]``, and Laplace noise has no memory: how far a noisy record lies
outside the box says nothing about the private one, so ``clip(y0)`` is all there is to know. For
noise of scale ``b`` put

    inside 0 <= y0 <= 1:   yu = y0,      v = 2 b^2
    y0 < 0:                yu = -b,      v = b^2
    y0 > 1:                yu = 1 + b,   v = b^2

Then ``E[yu] = y`` and ``E[v] = Var(yu)`` for every ``y`` in the box: the excess beyond the box, an
exponential variable, is replaced by its mean.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcx, log_ndtr, logsumexp, ndtr

Floats = NDArray[np.float64]


def unbias(y0: Floats, b: float) -> tuple[Floats, Floats]:
    """Unbiased readings ``yu`` of the records, and unbiased readings ``v`` of their variances."""
    outside = (y0 < 0) | (y0 > 1)
    readings = np.where(y0 < 0, -b, np.where(y0 > 1, 1 + b, y0))
    return readings, np.where(outside, b * b, 2 * b * b)


def tail_reading(y0: Floats, f: Floats, b: float, radius: float) -> tuple[Floats, Floats, Floats]:
    """Unbiased readings of ``g(y - f) = (|y - f| - R)+^2``, of their variances, and where g bends.

    For Laplace noise ``E[g(r0) - b^2 g''(r0)] = g(r)``. Beyond the box the reading is held at
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
    """``E[r | r + Lap(b) = r0]`` and the density of ``r0``, for ``r`` normal with deviation ``s``.

    With Mills' ratio ``Q(z) = sqrt(pi/2) erfcx(z/sqrt 2)`` at ``z = s/b -+ r0/s``: the mean is
    ``(s^2/b) (Q- - Q+)/(Q- + Q+)``, the density ``phi(r0/s) (Q- + Q+)/(2b)``.
    """
    u = r0 / s
    left, right = (np.sqrt(np.pi / 2) * erfcx((s / b + z) / np.sqrt(2)) for z in (-u, u))
    density = np.exp(-u * u / 2) / np.sqrt(2 * np.pi) * (left + right) / (2 * b)
    return s * s / b * (left - right) / (left + right), density


def log_likelihood(y0: Floats, f: Floats, s: Floats, b: float, outliers: float) -> Floats:
    """The log likelihood of noisy records, up to a constant, under the model of `matched`."""
    return np.asarray(logsumexp(_pieces(np.clip(y0, 0.0, 1.0), f, s, b, outliers), axis=0))


def matched(y0: Floats, f: Floats, s: Floats, b: float, outliers: float) -> Floats:
    """Records that keep the order of the noisy ones and have the distribution of the real ones.

    The model: a record is ``f + N(0, s^2)`` cut to the box, or, with probability ``outliers``,
    anywhere in it. Each noisy record goes to the same quantile of this model, without noise, that
    it has in the model with noise. Beyond the box the noise alone decides the quantile, and
    spreads such records over what the model allows.
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
    """The share of the model at or below a level inside the box, without what is cut to 1."""
    return np.asarray((1 - outliers) * ndtr((y - f) / s) + outliers * y)


def _model_quantile(share: Floats, f: Floats, s: Floats, outliers: float) -> Floats:
    """The level that has this share of the model at or below it, by bisection."""
    low, high = np.zeros_like(f), np.ones_like(f)
    for _ in range(34):
        middle = (low + high) / 2
        less = _model_below(middle, f, s, outliers) < share
        low, high = np.where(less, middle, low), np.where(less, high, middle)
    return np.asarray((low + high) / 2)


def _pieces(c: Floats, f: Floats, s: Floats, b: float, outliers: float) -> Floats:
    """Log weights of what a record may be, given its noisy reading ``c = clip(y0)``.

    Rows: on the curve's normal left and right of ``c``, cut to 0, cut to 1, anywhere in the box
    left and right of ``c``. A weight is the piece's probability times ``exp(-|y - c|/b)``; on
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
    """Log weight of the normal between ``low`` and ``high``, tilted by the noise."""
    centre = f + sign * s * s / b
    z_low, z_high = (low - centre) / s, (high - centre) / s
    flip = z_low + z_high > 0  # work in the lower tail, where log_ndtr keeps its digits
    less = log_ndtr(np.where(flip, -z_high, z_low))
    more = log_ndtr(np.where(flip, -z_low, z_high))
    mass = more + np.log(-np.expm1(np.minimum(less - more, -1e-300)))
    return np.asarray(mass + s * s / (2 * b * b) + sign * (f - c) / b)
