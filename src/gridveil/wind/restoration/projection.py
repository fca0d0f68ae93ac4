"""Find the records nearest to given ones with a given loss, and weights as close as are known.

    min  1/2 ||y - y0||^2 + 1/2 e'S^-1 e   s.t.  0 <= y <= 1,  Xt'y = z + e,  ||y - f||^2 <= t

``z`` are the wanted weights in the whitened basis, ``f = Xt z`` their curve, and ``S`` says how far
they may be missed: weights that noise has moved to what no records in [0, 1] can produce must not
drag the records along. With the curve fixed, everything is a sum over rows except the ``k + 1``
constraints. Their prices ``nu`` and ``b >= 0`` determine the solution: ``e = -S nu``, and

    y = clip((y0 + b f + Xt nu) / (1 + b), 0, 1)

at the maximum of the dual, which is concave with gradient ``(||y - f||^2 - t)/2`` and
``z - Xt'y - S nu``. Newton's method on it takes one pass over the rows for each evaluation.

The loss of the records is about their own fit, so ``t`` is the wanted loss squared plus what the
curve's miss adds to it; it is corrected a few times.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gridveil.wind.restoration.passes import Point, Restoration, Whitening, wanted_weights
from gridveil.wind.row_blocks import Rows, total

Floats = NDArray[np.float64]

MOST_PASSES = 60
CLOSE = 1e-9  # relative error at which a constraint counts as met
_DEAREST = 1e9  # at this price of the loss, the loss is out of reach


@dataclass(frozen=True, eq=False)
class Goal:
    """The weights and loss that the records should have; ``square`` is the bound ``t``."""

    basis: Whitening
    z: Floats
    slack: Floats
    square: float


@dataclass(frozen=True, eq=False)
class _At:
    """One evaluation of the dual: prices, value, gradient, curvature, and the records' sums."""

    b: float
    nu: Floats
    value: float
    gradient: Floats
    curvature: Floats
    primal: float
    away2: float
    z: Floats


def restore_closely(
    rows: Rows,
    *,
    loss: float,
    weights: ArrayLike,
    slack: ArrayLike,
    whitening: Whitening,
    price: float,
) -> Restoration | None:
    """Restore noisy records to a loss, and to weights as close as they are known.

    This uses least squares instead of the norms of `restore`, and the weights' own uncertainty. The
    objective is half of ``||y - y0||^2 + e'S^-1 e``, where ``e`` is the miss of the weights.

    Parameters
    ----------
    rows
        Public columns with the noisy records, whose loss should exceed the wanted one.
    loss, weights
        The loss and weights that the restored records should have.
    slack
        ``S``, ``(p, p)``: how far the weights may be missed, in squares of records' distance.
    whitening
        The basis of the same rows.
    price
        The start of the search for the price of the loss: 0 or more.

    Returns
    -------
    The restoration, or None if no records in the box have this loss about these weights, or if
    they were not found for numerical reasons.
    """
    bbar = wanted_weights(rows, loss, weights)
    matrix = np.asarray(slack, dtype=np.float64)
    try:
        return project(rows, whitening, loss=loss, weights=bbar, slack=matrix, price=price)
    except np.linalg.LinAlgError:
        return None


def project(
    rows: Rows, basis: Whitening, *, loss: float, weights: Floats, slack: Floats, price: float
) -> Restoration | None:
    """Project; return None if the loss is out of reach, or not met in `MOST_PASSES` passes.

    Parameters are those of `restore_closely`, once they are checked.
    """
    back = np.linalg.pinv(basis.W)
    goal = Goal(basis, back @ weights, back @ slack @ back.T, loss**2)
    at = _evaluate(rows, goal, max(price, 0.0), np.zeros(len(back)))
    passes = 1
    while passes < MOST_PASSES and at.b < _DEAREST:
        if not _met(at, goal):
            at, tries = _step(rows, goal, at)
            passes += tries
            continue
        own = _own_square(at, goal)
        if at.b == 0 or abs(own - loss**2) <= 10 * CLOSE * loss**2:
            return _found(at, goal, own, passes)
        goal = Goal(basis, goal.z, goal.slack, goal.square + loss**2 - own)
        at = _evaluate(rows, goal, at.b, at.nu)
        passes += 1
    return None


def _evaluate(rows: Rows, goal: Goal, b: float, nu: Floats) -> _At:
    row = partial(_row, W=goal.basis.W, z=goal.z, b=b, nu=nu)
    distance2, away2, moment, curvature = total(rows.map(row))
    pull = goal.slack @ nu
    miss, over = goal.z - moment - pull, float(away2) - goal.square
    value = (float(distance2) + b * over + float(nu @ pull)) / 2 + float(nu @ miss)
    curvature = curvature.copy()
    curvature[1:, 1:] += (1 + b) * goal.slack
    primal = (float(distance2) + float(nu @ pull)) / 2
    gradient = np.concatenate([[over / 2], miss])
    return _At(b, nu, value, gradient, curvature, primal, float(away2), moment)


def _step(rows: Rows, goal: Goal, at: _At) -> tuple[_At, int]:
    """Take Newton's step, shortened until the dual rises enough."""
    direction = _direction(at)
    slope = float(at.gradient @ direction)
    step, tries = 1.0, 0
    while True:
        b = max(at.b + step * direction[0], 0.0)
        there = _evaluate(rows, goal, b, at.nu + step * direction[1:])
        tries += 1
        # Close to the maximum the rise drowns in the rounding of the value.
        rounding = 1e-12 * (abs(at.value) + at.primal)
        if there.value >= at.value + 1e-4 * step * slope - rounding or step < 1e-6:
            return there, tries
        step *= 0.35


def _direction(at: _At) -> Floats:
    """Compute Newton's direction; the price of a loss below its bound stays at 0."""
    held = at.b == 0 and at.gradient[0] <= 0
    free = slice(1, None) if held else slice(None)
    curvature, gradient = at.curvature[free, free], at.gradient[free]
    ground = 1e-12 * max(float(np.trace(curvature)) / len(gradient), 1e-12)
    direction = np.zeros_like(at.gradient)
    matrix = curvature + ground * np.eye(len(gradient))
    direction[free] = np.linalg.solve(matrix, (1 + at.b) * gradient)
    return direction


def _met(at: _At, goal: Goal) -> bool:
    over, miss = at.gradient[0], at.gradient[1:]
    on_target = abs(over) <= CLOSE * goal.square or (at.b == 0 and over <= 0)
    return on_target and float(np.linalg.norm(miss)) <= CLOSE * (1 + float(np.linalg.norm(goal.z)))


def _own_square(at: _At, goal: Goal) -> float:
    """Compute the records' own loss, squared, from ``||y - f||^2`` and ``e = Xt'y - z``.

    ``y - f = (y - Xt z_y) + Xt e`` and ``Xt'(y - Xt z_y) = E z_y``.
    """
    e = at.z - goal.z
    return at.away2 - float(e @ goal.basis.G @ e) - 2 * float(e @ goal.basis.E @ at.z)


def _found(at: _At, goal: Goal, own: float, passes: int) -> Restoration:
    kept = 1 / (1 + at.b)
    u = kept * (at.b * goal.z + at.nu)
    return Restoration(
        objective=at.primal,
        gap=abs(at.primal - at.value) / max(at.primal, 1e-12),
        passes=passes,
        solver="streaming, least squares",
        loss=float(np.sqrt(max(own, 0.0))),
        weights=goal.basis.W @ at.z,
        rows=goal.basis.rows,
        _W=goal.basis.W,
        _rule=Point(np.zeros_like(u), kept, 1 - kept, u, u),
    )


def _row(
    X: Floats, y0: Floats, W: Floats, z: Floats, b: float, nu: Floats
) -> tuple[Floats, Floats, Floats, Floats]:
    """Sum a block: ``||y - y0||^2``, ``||y - f||^2``, ``Xt'y``, and the dual's curvature."""
    xt = X @ W
    f = xt @ z
    h = (y0 + b * f + xt @ nu) / (1 + b)
    y = np.clip(h, 0.0, 1.0)
    free = y == h
    moved, away = y - y0, y - f
    sides = np.column_stack([-away[free], xt[free]])
    return np.array(moved @ moved), np.array(away @ away), xt.T @ y, sides.T @ sides
