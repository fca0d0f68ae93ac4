"""Restoration: find records close to the noisy ones that fit the noisy loss and weights.

    min  |lbar - l| + gb ||bbar - beta|| + gy ||y0 - y||
    s.t. 0 <= y <= 1,  beta = (X'X + lam I)^-1 X'y,  ||X beta - y|| <= l

It is post-processing: it sees noisy and public data only.  As `l = max(L(y), lbar)` at the
optimum, `(L - max(lbar, 0))+` takes the place of `|lbar - l|` up to a constant.  The optimum is
`y = clip(v0 r + xt'u, 0, 1)`: `p + 1` numbers, found in a few passes over the rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gridveil.wind.restoration.passes import Point, Whitening, whiten
from gridveil.wind.restoration.projection import project
from gridveil.wind.restoration.small_problem import CERTIFIED, EPS, VERSION, Target, solve_whole
from gridveil.wind.restoration.solver import Found, search
from gridveil.wind.rows import Rows

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Restoration:
    """Restored records, as a rule that yields them block by block, and how good they are.

    Attributes
    ----------
    objective
        Value of the restoration's objective.
    gap
        Proved: no feasible records have an objective lower by more than this share of it (of
        `objective - max(-lbar, 0)`, the part that records can change).
    passes
        Passes over the rows.
    solver
        `"streaming"`, or `"clarabel ..."` if the fallback was needed.
    loss, weights
        Regression loss and weights of the restored records.
    rows
        Number of records.
    """

    objective: float
    gap: float
    passes: int
    solver: str
    loss: float
    weights: Floats
    rows: int
    _W: Floats = field(repr=False)
    _rule: Point | Floats = field(repr=False)

    @property
    def certified(self) -> bool:
        """Whether the proved gap is at most 1e-6."""
        return self.gap <= CERTIFIED

    def __repr__(self) -> str:
        return (
            f"Restoration({self.rows:,} rows, objective {self.objective:.6g}, gap {self.gap:.1e}, "
            f"loss {self.loss:.6g}, {self.passes} passes, {self.solver})"
        )

    def records(self, rows: Rows) -> Iterator[Floats]:
        """Yield the restored power of every block of the rows that were restored, in order."""
        if isinstance(self._rule, Point):
            yield from rows.map(partial(_records, W=self._W, point=self._rule))
            return
        start = 0
        for length in rows.map(_length):
            yield self._rule[start : start + length]
            start += length


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
    >>> from gridveil.wind.rows import ArrayRows
    >>> speed = np.linspace(3, 12, 200)
    >>> rows = ArrayRows({"speed": speed}, RBF(), (speed - 3) / 8)
    >>> restore(rows, loss=0.5, weights=np.zeros(5)).certified
    True
    """
    bbar = _check(rows, loss, weights, gamma_beta, gamma_y)
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
    bbar = _check(rows, loss, weights, 0.0, 1.0)
    matrix = np.asarray(slack, dtype=np.float64)
    try:
        found = project(rows, whitening, loss=loss, weights=bbar, slack=matrix, price=price)
    except np.linalg.LinAlgError:
        found = None
    if found is None:
        return None
    reached = whitening.W @ found.z
    return Restoration(
        found.objective, found.gap, found.passes, "streaming, least squares", found.loss, reached,
        whitening.rows, whitening.W, found.point,
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


def _check(
    rows: Rows, loss: float, weights: ArrayLike, gamma_beta: float, gamma_y: float
) -> Floats:
    if not math.isfinite(loss):
        raise ValueError(f"loss is {loss}; give a finite number")
    bbar = np.asarray(weights, dtype=np.float64)
    if bbar.shape != (rows.features.width,):
        raise ValueError(
            f"weights have shape {bbar.shape}, but there are {rows.features.width} features"
        )
    if not np.isfinite(bbar).all():
        raise ValueError("weights are not all finite")
    if not (math.isfinite(gamma_beta) and gamma_beta >= 0):
        raise ValueError(f"gamma_beta is {gamma_beta}; give a finite number that is not negative")
    if not (math.isfinite(gamma_y) and gamma_y > 0):
        raise ValueError(f"gamma_y is {gamma_y}; give a positive finite number")
    return bbar


def _records(X: Floats, y0: Floats, W: Floats, point: Point) -> Floats:
    return point.records(X @ W, y0)


def _length(X: Floats, y0: Floats) -> int:
    return len(X)


def _copy(X: Floats, y0: Floats) -> tuple[Floats, Floats]:
    return X, y0
