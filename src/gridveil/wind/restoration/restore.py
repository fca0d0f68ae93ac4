"""Restoration: find records close to the noisy ones that fit the noisy loss and weights.

    min  |lbar - l| + gb ||bbar - beta|| + gy ||y0 - y||
    s.t. 0 <= y <= 1,  beta = (X'X + lam I)^-1 X'y,  ||X beta - y|| <= l

It is post-processing: it sees noisy and public data only.  As `l = max(L(y), lbar)` at the
optimum, `(L - max(lbar, 0))+` takes the place of `|lbar - l|` up to a constant.  The optimum is
`y = clip(v0 r + xt'u, 0, 1)`: `p + 1` numbers, found in a few passes over the rows.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gridveil.wind.restoration.passes import (
    CERTIFIED,
    Point,
    Restoration,
    Whitening,
    wanted_weights,
    whiten,
)
from gridveil.wind.restoration.small_problem import EPS, VERSION, Target, solve_whole
from gridveil.wind.restoration.solver import Found, search
from gridveil.wind.row_blocks import Rows

Floats = NDArray[np.float64]


def restore(
    rows: Rows,
    *,
    loss: float,
    weights: ArrayLike,
    ridge: float = 1e-3,
    gamma_beta: float = 1e-5,
    gamma_y: float = 1e-5,
    whitening: Whitening | None = None,
    fallback_rows: int = 50_000,
) -> Restoration:
    """Restore noisy records.

    Parameters
    ----------
    rows
        Public columns with the noisy records `y0`.
    loss, weights
        The noisy loss `lbar` (any sign) and weights `bbar`.
    ridge
        The regression's ridge parameter `lam`.
    gamma_beta, gamma_y
        Prices `gb >= 0` and `gy > 0`.
    whitening
        The basis of the same rows and ridge, if known: saves a pass.
    fallback_rows
        Up to this many rows, an answer whose gap is not certified at 1e-6 is replaced by that of
        a cone solver, which needs all rows in memory (5 kB each) and up to minutes.  Beyond, the
        streaming answer is returned with its proved gap.  That concerns `loss <= 0` and prices
        that differ by 1e5 or so; clamp `loss` from below by a public floor.

    Raises
    ------
    ValueError
        If a number is not finite or of the wrong shape.

    Examples
    --------
    >>> from gridveil.wind.features import RBF
    >>> from gridveil.wind.row_blocks import ArrayRows
    >>> speed = np.linspace(3, 12, 200)
    >>> rows = ArrayRows({"speed": speed}, RBF(), (speed - 3) / 8)
    >>> restore(rows, loss=0.5, weights=np.zeros(5)).certified
    True
    """
    bbar = wanted_weights(rows, loss, weights)
    _check_prices(gamma_beta, gamma_y)
    basis = whiten(rows, ridge) if whitening is None else whitening
    # L <= ||y|| <= sqrt(m), so a larger target changes nothing.
    lp = min(max(loss, 0.0), math.sqrt(basis.rows))
    target = Target(basis, lp, bbar, float(gamma_beta), float(gamma_y))
    found = search(rows, target)
    passes = found.passes + (basis.passes if whitening is None else 0)
    gap = _relative(found.gap, found.value, target, loss)
    if gap > CERTIFIED and basis.rows <= fallback_rows:
        return _fallback(rows, target, loss, found, passes)
    weights_now = basis.W @ found.sums.z
    objective = found.value + max(-loss, 0.0)
    return Restoration(
        objective, gap, passes, "streaming", found.sums.loss, weights_now, basis.rows, basis.W,
        found.point,
    )  # fmt: skip


def _fallback(rows: Rows, target: Target, loss: float, found: Found, passes: int) -> Restoration:
    """Solve by a cone program; keep the better records, and the better of the two bounds."""
    blocks = list(rows.map(_copy))
    X = np.vstack([X for X, _ in blocks])
    y0 = np.concatenate([y for _, y in blocks])
    whole = solve_whole(X, y0, target)
    proved = found.value - found.gap
    bound = max(whole.bound, proved) if math.isfinite(proved) else whole.bound
    if not whole.value <= found.value:  # also if the cone program has no answer at all
        value, reached, z = found.value, found.sums.loss, found.sums.z
        rule: Point | Floats = found.point
    else:
        value, reached, z, rule = whole.value, whole.loss, whole.z, whole.y
    return Restoration(
        value + max(-loss, 0.0), _relative(value - bound, value, target, loss), passes + 1, VERSION,
        reached, target.W @ z, len(y0), target.W, rule,
    )  # fmt: skip


def _relative(gap: float, value: float, target: Target, loss: float) -> float:
    """Divide the gap by the objective, or by the rounding error if the objective is smaller."""
    fit = float(np.linalg.norm(target.weights))
    noise = 20 * EPS * (max(target.loss, -loss) + target.gy + 5 * target.gb * fit)
    relative = max(gap, 0.0) / max(value, noise / CERTIFIED)
    return relative if math.isfinite(relative) else math.inf


def _check_prices(gamma_beta: float, gamma_y: float) -> None:
    if not (math.isfinite(gamma_beta) and gamma_beta >= 0):
        raise ValueError(f"gamma_beta is {gamma_beta}; give a finite number that is not negative")
    if not (math.isfinite(gamma_y) and gamma_y > 0):
        raise ValueError(f"gamma_y is {gamma_y}; give a positive finite number")


def _copy(X: Floats, y0: Floats) -> tuple[Floats, Floats]:
    return X, y0
