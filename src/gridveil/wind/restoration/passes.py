"""Passes over the rows for the restorations: a basis, sums at a point, and the records there.

**The basis.** In it ridge regression is a projection: `beta = W z`, `z = W'X'y`. With
`W'(X'X + lam I)W = I` the weights of `y` are `W (XW)'y` and the residual is `y - XW z`.
Everything else needs only `E = lam W'W` and `G = (XW)'(XW) = I - E`.  Both are kept: along a strong
direction `E` is tiny and `1 - G` would have no digits left, along a weak one it is the reverse.

**A point.** Candidate records have the form `y = clip(v0 r + xt'u, 0, 1)`, where `xt = W'x` are
whitened features and `r = y0 - xt'c0`, `c0 = Xt'y0`, the residual of the noisy records.  At an
optimum of the restoration every free row satisfies

    a (y - y0) + b (T^2 y) + xt'W'nu = 0,      T = I - Xt Xt',   T^2 y = y - Xt (I + E) z,

`a = gy/||y - y0||`, `b = s/L`, `nu` the price of the weights; solved for `y`, that is this form.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gridveil.wind.row_blocks import Rows, total

Floats = NDArray[np.float64]

# Below this ratio of eigenvalues, or this share of data in a direction, the Gram matrix has lost
# too many digits: form it again in the new basis, where it is nearly diagonal.
POOR, WEAK = 1e-7, 1e-4
# Below this share of data a direction is a rounding error: a zero or exactly collinear feature.
EMPTY = 1e-20

CERTIFIED = 1e-6
"""At most this gap counts as proved."""


@dataclass(frozen=True, eq=False)
class Whitening:
    """The basis, and the numbers of rows and passes it was computed from.

    Attributes
    ----------
    W
        Basis, `(p, k)`; `k < p` only if features are zero or collinear.
    E, G
        `lam W'W` and `(XW)'(XW)`, `(k, k)`.
    rows
        Number of rows, `m`.
    passes
        Passes over the rows it took: 1, or 2 if features are badly scaled.
    """

    W: Floats
    E: Floats
    G: Floats
    rows: int
    passes: int


def whiten(rows: Rows, ridge: float) -> Whitening:
    """Find the basis in one pass over public features, or two if the numbers need it."""
    if not (np.isfinite(ridge) and ridge >= 0):
        raise ValueError(f"ridge is {ridge}; give a finite number that is not negative")
    p = rows.features.width
    count, gram = total(rows.map(partial(_gram, W=np.eye(p))))
    if not np.isfinite(gram).all():
        raise ValueError("the features are not finite or overflow when squared: rescale them")
    m = int(count)
    diagonal = np.diag(gram) + ridge
    W = np.diag(1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0)))
    W, spread = _orthonormal(W, W @ gram @ W, ridge, m)
    if ridge == 0 and W.shape[1] < p:
        # Of all weights that fit equally well take the smallest: those in the span of X'(XW).
        W = np.asarray(np.linalg.pinv(gram @ W, rcond=1e-15).T, dtype=np.float64)
    W = W @ np.linalg.eigh(W.T @ W)[1]  # strong directions first, weak ones last
    gram = W.T @ gram @ W
    passes = 1
    if W.shape[1] and (spread < POOR or np.diag(gram).min() < WEAK):
        _, gram = total(rows.map(partial(_gram, W=W)))
        full = np.diag(gram) > EMPTY
        W, gram = W[:, full], gram[np.ix_(full, full)]
        # Nearly the identity: its triangular root does not mix strong and weak directions.
        root = np.linalg.inv(np.linalg.cholesky(gram + ridge * W.T @ W))
        W, gram = W @ root.T, root @ gram @ root.T
        passes = 2
    return Whitening(W, ridge * W.T @ W, gram, m, passes)


def _gram(X: Floats, y: Floats, W: Floats) -> tuple[Floats, Floats]:
    xt = X @ W
    return np.array(float(len(X))), xt.T @ xt


def _orthonormal(W: Floats, gram: Floats, ridge: float, m: int) -> tuple[Floats, float]:
    """Turn a basis in which `X'X` is `gram` into one in which `X'X + lam I` is the identity.

    Directions that are zero up to rounding are dropped.  Also returns the smallest over the
    largest eigenvalue kept.
    """
    values, vectors = np.linalg.eigh(gram + ridge * W.T @ W)
    noise = len(values) if ridge else max(m, len(values))
    keep = values > noise * np.finfo(float).eps * values.max(initial=0.0)
    values = values[keep]
    W = W @ (vectors[:, keep] / np.sqrt(values))
    return W, float(values[0] / values[-1]) if values.size else 1.0


def length(x: Floats) -> float:
    """Return `||x||`; several times faster on short vectors than the general norm."""
    return math.sqrt(x @ x)


@dataclass(frozen=True, eq=False)
class Point:
    """Candidate records: `p + 1` numbers.

    `kept = v0` and `lost = 1 - v0`, `u` and `moved = u - c0` are both carried, so that neither
    `y - y0` nor `y - Xt u` is ever the difference of two nearly equal numbers.
    """

    c0: Floats
    kept: float
    lost: float
    u: Floats
    moved: Floats

    def towards(self, other: Point, step: float) -> Point:
        """Return the point `step` of the way to another."""
        rest = 1 - step
        return Point(
            self.c0,
            rest * self.kept + step * other.kept,
            rest * self.lost + step * other.lost,
            rest * self.u + step * other.u,
            rest * self.moved + step * other.moved,
        )

    def records(self, xt: Floats, y0: Floats) -> Floats:
        """Compute `y` of a block from its whitened features."""
        return np.clip(self.kept * (y0 - xt @ self.c0) + xt @ self.u, 0.0, 1.0)


@dataclass(frozen=True, eq=False)
class Sums:
    """The sums of one pass at a point, and what follows from them without another pass.

    Attributes
    ----------
    J
        `sum over free rows of [r, xt][r, xt]'`.
    K
        `sum over clipped rows of xt xt'`.
    away2
        `sum of (y - y0)^2` over clipped rows.
    distance, loss
        `||y - y0||`, `L = ||y - Xt z||`.
    z
        `Xt'y`; the weights are `W z`.
    kd, k2
        On free rows `y - y0 = [r, xt]'kd` and `T^2 y = [r, xt]'k2`.
    """

    J: Floats
    K: Floats
    away2: float
    distance: float
    loss: float
    z: Floats
    kd: Floats
    k2: Floats


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
        for size in rows.map(_length):
            yield self._rule[start : start + size]
            start += size


def wanted_weights(rows: Rows, loss: float, weights: ArrayLike) -> Floats:
    """Check the loss and the weights that records should have, and return the weights."""
    if not math.isfinite(loss):
        raise ValueError(f"loss is {loss}; give a finite number")
    bbar = np.asarray(weights, dtype=np.float64)
    if bbar.shape != (rows.features.width,):
        raise ValueError(
            f"weights have shape {bbar.shape}, but there are {rows.features.width} features"
        )
    if not np.isfinite(bbar).all():
        raise ValueError("weights are not all finite")
    return bbar


def noisy_moments(rows: Rows, W: Floats) -> tuple[Floats, float, bool]:
    """Compute `c0 = Xt'y0`, `||y0||` and whether any of `y0` is outside the box, in one pass."""
    c0, square, outside = total(rows.map(partial(_noisy_moments, W=W)))
    if not (np.isfinite(c0).all() and np.isfinite(square)):
        raise ValueError("y0 has missing or infinite values: the noisy records must be complete")
    return c0, float(np.sqrt(square)), bool(outside > 0)


def evaluate(rows: Rows, basis: Whitening, at: Point) -> Sums:
    """Run one pass at a point."""
    J, K, away2, off2, off = total(rows.map(partial(_row_sums, W=basis.W, at=at)))
    u, E, G = at.u, basis.E, basis.G
    # e = y - Xt u is v0 r on free rows; zeta = Xt'e, and T y = e + Xt h.
    zeta = at.kept * J[1:, 0] + off
    z = zeta + G @ u
    h = E @ u - zeta
    loss2 = at.kept**2 * J[0, 0] + off2 + 2 * zeta @ h + h @ (G @ h)
    kd = np.concatenate([[-at.lost], at.moved])
    k2 = np.concatenate([[at.kept], E @ (E @ u) - zeta - E @ zeta])
    distance = np.sqrt(max(kd @ J @ kd + away2, 0.0))
    return Sums(J, K, float(away2), float(distance), float(np.sqrt(max(loss2, 0.0))), z, kd, k2)


@dataclass(frozen=True, eq=False)
class Audit:
    """The sums that the certifying pass computes from the records themselves.

    `box` is the part of the duality gap from the box, `max(g,0) y + max(-g,0) (1-y)` summed over
    rows; the others are `||y - y0||`, `||y - Xt z||` with the `z` given, and `Xt'y`.
    """

    box: float
    distance: float
    loss: float
    z: Floats


def audit(
    rows: Rows, W: Floats, at: Point, sums: Sums, slope: float, pull: float, push: Floats
) -> Audit:
    """Certify in one pass; `g = slope (y - y0) + pull (y - Xt u) + xt'push` by rows."""
    row = partial(_audit, W=W, at=at, z=sums.z, slope=slope, pull=pull, push=push)
    box, away2, loss2, z = total(rows.map(row))
    return Audit(float(box), float(np.sqrt(away2)), float(np.sqrt(loss2)), z)


def _noisy_moments(X: Floats, y0: Floats, W: Floats) -> tuple[Floats, Floats, Floats]:
    if len(y0) != len(X):
        raise ValueError("these rows carry no noisy power: give y0 with the public columns")
    outside = np.count_nonzero((y0 < 0) | (y0 > 1))
    return W.T @ (X.T @ y0), np.array(y0 @ y0), np.array(float(outside))


@dataclass(frozen=True, eq=False)
class _Block:
    """A block at a point: columns `[r, xt]`, `f = xt'u`, records, and which rows are clipped."""

    columns: Floats
    f: Floats
    y: Floats
    clipped: NDArray[np.intp]

    @property
    def r(self) -> Floats:
        return self.columns[:, 0]

    @property
    def xt(self) -> Floats:
        return self.columns[:, 1:]


def _block(X: Floats, y0: Floats, W: Floats, at: Point) -> _Block:
    columns = np.empty((len(X), W.shape[1] + 1))
    columns[:, 1:] = X @ W
    columns[:, 0] = y0 - columns[:, 1:] @ at.c0
    f = columns[:, 1:] @ at.u
    h = at.kept * columns[:, 0] + f
    y = np.clip(h, 0.0, 1.0)
    return _Block(columns, f, y, np.flatnonzero(h != y))


def _row_sums(X: Floats, y0: Floats, W: Floats, at: Point) -> tuple[Floats, ...]:
    block = _block(X, y0, W, at)
    clipped, y = block.clipped, block.y[block.clipped]
    away, off, held = y - y0[clipped], y - block.f[clipped], block.xt[clipped]
    block.columns[clipped] = 0.0
    return (
        block.columns.T @ block.columns,
        held.T @ held,
        np.array(away @ away),
        np.array(off @ off),
        held.T @ off,
    )


def _audit(
    X: Floats,
    y0: Floats,
    W: Floats,
    at: Point,
    z: Floats,
    slope: float,
    pull: float,
    push: Floats,
) -> tuple[Floats, ...]:
    block = _block(X, y0, W, at)
    xt, y, clipped = block.xt, block.y, block.clipped
    d = xt @ at.moved - at.lost * block.r
    e = at.kept * block.r
    d[clipped] = y[clipped] - y0[clipped]
    e[clipped] = y[clipped] - block.f[clipped]
    g = slope * d + pull * e + xt @ push
    left = y - xt @ z
    box = np.where(g > 0, g * y, g * (y - 1)).sum()
    return np.array(box), np.array(d @ d), np.array(left @ left), xt.T @ y


def _records(X: Floats, y0: Floats, W: Floats, point: Point) -> Floats:
    return point.records(X @ W, y0)


def _length(X: Floats, y0: Floats) -> int:
    return len(X)
