"""What noisy records say: unbiased readings, and the records' posterior mean about a curve.

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
from scipy.special import erfcx, log_ndtr

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


def posterior_mean(
    y0: Floats, f: Floats, s: Floats, b: float, outliers: float
) -> tuple[Floats, Floats]:
    """``E[y | y0]``, and the log likelihood of ``y0`` up to a constant.

    The model: ``y`` is ``f + N(0, s^2)`` cut to the box, or, with probability ``outliers``,
    anywhere in it. Cutting puts weight at 0 and 1. On either side of ``c = clip(y0)`` the
    likelihood ``exp(-|y - c|/b)`` tilts the normal: its centre moves to ``f +- s^2/b``, and weight
    and mean of the piece are those of a truncated normal. The outliers keep far-off records
    (curtailment) where they are; with the normal alone a residual could not pass ``s^2/b``.
    """
    c = np.clip(y0, 0.0, 1.0)
    left, mean_left = _piece(np.zeros_like(c), c, c, f, s, b, 1.0)
    right, mean_right = _piece(c, np.ones_like(c), c, f, s, b, -1.0)
    at_zero = log_ndtr(-f / s) - c / b
    at_one = log_ndtr((f - 1) / s) - (1 - c) / b
    low, high = np.exp(-c / b), np.exp(-(1 - c) / b)
    anywhere = b * (2 - low - high)
    mean_anywhere = b * (c - b + b * low + c + b - (1 + b) * high) / anywhere
    on_curve = np.log1p(-outliers)
    weights = np.stack(
        [
            left + on_curve,
            right + on_curve,
            at_zero + on_curve,
            at_one + on_curve,
            np.log(anywhere) + np.log(outliers),
        ]
    )
    top = weights.max(0)
    weights = np.exp(weights - top)
    total = weights.sum(0)
    means = np.stack([mean_left, mean_right, np.zeros_like(c), np.ones_like(c), mean_anywhere])
    return (weights * means).sum(0) / total, np.log(total) + top


def _piece(
    low: Floats, high: Floats, c: Floats, f: Floats, s: Floats, b: float, sign: float
) -> tuple[Floats, Floats]:
    """Log weight and mean of the normal between ``low`` and ``high``, tilted by the noise."""
    centre = f + sign * s * s / b
    z_low, z_high = (low - centre) / s, (high - centre) / s
    flip = z_low + z_high > 0  # work in the lower tail, where log_ndtr keeps its digits
    near, far = np.where(flip, -z_high, z_low), np.where(flip, -z_low, z_high)
    less, more = log_ndtr(near), log_ndtr(far)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        mass = more + np.log(-np.expm1(np.minimum(less - more, -1e-300)))
        normal = -0.5 * np.log(2 * np.pi)
        ends = np.exp(normal - z_low**2 / 2 - mass) - np.exp(normal - z_high**2 / 2 - mass)
        mean = centre + s * ends
    mean = np.clip(np.where(np.isfinite(mean), mean, (low + high) / 2), low, high)
    return mass + s * s / (2 * b * b) + sign * (f - c) / b, mean
