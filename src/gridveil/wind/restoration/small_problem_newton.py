"""Solve the small problem by Newton's method, to full precision.

Its objective has three kinks: the loss is below, at or above `lp`, and the weights are hit or
missed.  Once these are known the optimality conditions are smooth equations.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gridveil.wind.restoration.passes import length
from gridveil.wind.restoration.small_problem import Answer, Small

Floats = NDArray[np.float64]

# Norms outside this range, in units of the small problem, are at a kink or have diverged.
LEAST, MOST = 1e-13, 1e9
STEPS = 12
# Norms are about 1, so a step longer than this comes from a singular system.
RUNAWAY = 1e6


class Loss(Enum):
    """Whether the loss is below, at or above its target; or has a fixed price and no target."""

    BELOW = "below"
    AT = "at"
    ABOVE = "above"
    PRICED = "priced"


@dataclass(frozen=True)
class Kinks:
    """Which pieces of the objective are active."""

    loss: Loss
    hit: bool


def kinks_of(small: Small, answer: Answer) -> Kinks:
    """Read the active pieces off an approximate answer."""
    s = answer.b * small.reached(answer.tau) / small.price
    if s < 1e-7 and small.reached(answer.tau) < small.lp:
        loss = Loss.BELOW
    else:
        loss = Loss.ABOVE if s > 1 - 1e-6 and small.reached(answer.tau) > small.lp else Loss.AT
    miss = length(small.A @ answer.tau + small.x)
    hit = miss * small.ga < 1e-6 * small.delta(answer.tau) and small.ga > 0
    slack = 1 - length(answer.nu) / small.ga if small.ga else 0.0
    return Kinks(loss, bool(hit and slack > 1e-6))


def polish(small: Small, start: Answer, kinks: Kinks) -> Answer | None:
    """Solve the optimality conditions for the given kinks; `None` if that does not work."""
    tau, b, nu = start.tau, start.b, start.nu
    k, last = len(tau), np.inf
    if not _smooth(small, tau, kinks):
        return None
    for _ in range(STEPS):
        residual = _residual(small, tau, b, nu, kinks)
        matrix = _derivative(small, tau, b, kinks)
        if not np.isfinite(matrix).all():
            return None
        move = _solved(matrix, -residual)
        tau = tau + move[:k]
        if not _smooth(small, tau, kinks):
            return None
        b = b + move[k] / _scale(small) if kinks.loss is Loss.AT else _price(small, tau, b, kinks)
        nu = nu + move[-len(nu) :] if kinks.hit else _pull(small, tau)
        size = np.abs(move[:k]).max(initial=0.0)
        # Steps shrink quadratically, until rounding errors dominate.
        if size <= 1e-10 or (size < 1e-6 and size > last / 2):
            break
        last = size
    return Answer(tau, float(b), nu) if _optimal(small, tau, float(b), nu, kinks) else None


def _solved(matrix: Floats, right: Floats) -> Floats:
    """Solve a linear system; by least squares, which takes six times as long, if it is singular."""
    try:
        move = np.linalg.solve(matrix, right)
        if np.abs(move).max(initial=0.0) < RUNAWAY:
            return np.asarray(move, dtype=np.float64)
    except np.linalg.LinAlgError:
        pass
    return np.asarray(np.linalg.lstsq(matrix, right, rcond=1e-15)[0])


def _residual(small: Small, tau: Floats, b: float, nu: Floats, kinks: Kinks) -> Floats:
    """Return by how much the optimality conditions in `(tau, [b], [nu])` are missed."""
    if kinks.loss is not Loss.AT:
        b = _price(small, tau, b, kinks)
    if not kinks.hit:
        nu = _pull(small, tau)
    stationary = (tau + small.d) / small.delta(tau) + b * small.slope(tau) + small.A.T @ nu
    level = [_level(small, tau)] if kinks.loss is Loss.AT else []
    miss: ArrayLike = small.A @ tau + small.x if kinks.hit else []
    return np.concatenate([stationary, level, np.asarray(miss)])


def _derivative(small: Small, tau: Floats, b: float, kinks: Kinks) -> Floats:
    """Return the derivative of the residual: the Hessian, bordered by what must hold exactly."""
    k, p, at = len(tau), len(small.x), kinks.loss is Loss.AT
    size = k + at + p * kinks.hit
    matrix = np.zeros((size, size))
    moved, delta, slope = tau + small.d, small.delta(tau), small.slope(tau)
    hessian = np.eye(k) / delta - np.outer(moved, moved) / delta**3
    if kinks.loss is not Loss.BELOW:
        b = b if at else _price(small, tau, b, kinks)
        hessian += b * small.H
    if kinks.loss is Loss.ABOVE:
        hessian -= np.outer(slope, b * slope) / small.reached(tau) ** 2
    if small.ga and not kinks.hit:
        x = small.A @ tau + small.x
        rho = length(x)
        pulled = small.A.T @ (x / rho)
        hessian += (small.ga / rho) * (small.A.T @ small.A - np.outer(pulled, pulled))
    matrix[:k, :k] = hessian
    if at:
        matrix[k, :k] = matrix[:k, k] = slope / _scale(small)
    if kinks.hit:
        matrix[k + at :, :k] = small.A
        matrix[:k, k + at :] = small.A.T
    return matrix


def _level(small: Small, tau: Floats) -> float:
    """Return how far the loss is from its target, to first order."""
    return (small.reached(tau) ** 2 - small.lp**2) / (2 * _scale(small))


def _scale(small: Small) -> float:
    """Return what the condition on the loss is divided by, so that small targets count too."""
    return small.lp or 1.0


def _smooth(small: Small, tau: Floats, kinks: Kinks) -> bool:
    """Say whether no norm whose derivative is needed vanishes, and none has diverged."""
    norms = [small.delta(tau)]
    if kinks.loss is Loss.ABOVE:
        norms.append(small.reached(tau))
    if small.ga and not kinks.hit:
        norms.append(length(small.A @ tau + small.x))
    return min(norms) >= LEAST and max(norms) <= MOST


def _price(small: Small, tau: Floats, b: float, kinks: Kinks) -> float:
    if kinks.loss is Loss.ABOVE:
        return small.price / small.reached(tau)
    return b if kinks.loss is Loss.PRICED else 0.0


def _pull(small: Small, tau: Floats) -> Floats:
    x = small.A @ tau + small.x
    return small.ga * x / max(length(x), 1e-300)


def _optimal(small: Small, tau: Floats, b: float, nu: Floats, kinks: Kinks) -> bool:
    """Check that the pieces assumed are the right ones: prices in range, conditions met."""
    residual = _residual(small, tau, b, nu, kinks)
    reached = small.reached(tau)
    fits = {
        Loss.BELOW: reached <= small.lp,
        Loss.AT: 0 <= b * reached <= small.price and abs(_level(small, tau)) <= 1e-9 * small.lp,
        Loss.ABOVE: reached >= small.lp,
        Loss.PRICED: True,
    }[kinks.loss]
    cheap = length(nu) <= small.ga * (1 + 1e-12)
    scale = 1 + b * length(small.slope(tau)) + small.ga
    return bool(fits and cheap and np.abs(residual).max(initial=0.0) <= 1e-8 * scale)
