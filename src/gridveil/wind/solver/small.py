"""The small problem that a pass leaves behind.

With the clipped rows held where they are, the free rows move as `dy = [r, xt] dv`, and all three
norms of the restoration are norms of affine functions of `dv`.  In orthonormal coordinates
`tau = R dv`, `J = R'R`, that is a problem in `p + 1` unknowns, whatever the number of rows:

    min  delta + ga rho + price (L - lp)+,
    delta^2 = |tau + d|^2 + away^2,    rho = |A tau + x|,    L^2 = tau'H tau + 2 lean'tau + L0^2,

here divided by `gy` and by a unit of length, so that its numbers are about one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gridveil.wind.solver.passes import Point, Sums, length
from gridveil.wind.solver.whitening import Whitening

Floats = NDArray[np.float64]
EPS = float(np.finfo(float).eps)


@dataclass(frozen=True, eq=False)
class Target:
    """What the restoration is asked to match, and the price of each miss.

    `loss` is `lp = max(lbar, 0)`, at price 1; `weights` is `bbar`, at `gb`; the noisy records
    themselves come with the rows, at `gy`.
    """

    basis: Whitening
    loss: float
    weights: Floats
    gb: float
    gy: float

    @property
    def W(self) -> Floats:
        """The basis."""
        return self.basis.W

    @property
    def E(self) -> Floats:
        """`lam W'W`."""
        return self.basis.E

    def value(self, sums: Sums) -> float:
        """Compute the objective at a point, from its sums."""
        miss = length(self.W @ sums.z - self.weights)
        return max(sums.loss - self.loss, 0.0) + self.gb * miss + self.gy * sums.distance


@dataclass(frozen=True, eq=False)
class Small:
    """The small problem's numbers."""

    d: Floats
    away: float
    A: Floats
    x: Floats
    ga: float
    H: Floats
    lean: Floats
    loss: float
    lp: float
    price: float
    unit: float

    def delta(self, tau: Floats) -> float:
        """Compute `||y - y0||`."""
        moved = tau + self.d
        return float(np.sqrt(moved @ moved + self.away**2))

    def slope(self, tau: Floats) -> Floats:
        """Compute half the gradient of `L^2`."""
        return self.H @ tau + self.lean

    def reached(self, tau: Floats) -> float:
        """Compute `L`."""
        square = float(tau @ (self.slope(tau) + self.lean)) + self.loss**2
        return float(np.sqrt(max(square, 0.0)))

    def value(self, tau: Floats) -> float:
        """Compute the objective."""
        miss = length(self.A @ tau + self.x)
        over = max(self.reached(tau) - self.lp, 0.0)
        return self.delta(tau) + self.ga * miss + self.price * over


@dataclass(frozen=True, eq=False)
class Answer:
    """An answer of the small problem and its prices: `b = s/L`, and `nu` with `|nu| <= ga`."""

    tau: Floats
    b: float
    nu: Floats


def small_problem(sums: Sums, target: Target) -> tuple[Small, Floats]:
    """Set up the small problem; also returns `Ru`, with `z = z + unit Ru'tau`."""
    R, inverse = _root(sums.J)
    Ru = R[:, 1:]
    unit = max(sums.distance, sums.loss, EPS)
    small = Small(
        d=R @ sums.kd / unit,
        away=float(np.sqrt(sums.away2)) / unit,
        A=target.W @ Ru.T,
        x=(target.W @ sums.z - target.weights) / unit,
        ga=target.gb / target.gy,
        H=_loss_curvature(sums, Ru, inverse, target.E),
        lean=R @ sums.k2 / unit,
        loss=sums.loss / unit,
        lp=target.loss / unit,
        price=1 / target.gy,
        unit=unit,
    )
    return small, Ru


def optimal_point(
    small: Small, Ru: Floats, sums: Sums, answer: Answer, at: Point, target: Target
) -> Point:
    """Find the point whose free rows are where the answer says, from stationarity.

    `a (y - y0) + b (y - Xt (I + E) z) + Xt W'nu = 0`, solved for `y` and divided by `a + b`.
    """
    a, b = 1 / max(small.delta(answer.tau), EPS**2), answer.b
    z = sums.z + small.unit * (Ru.T @ answer.tau)
    fit = z + target.E @ z
    pull = target.W.T @ answer.nu * small.unit
    moved = (b * (fit - at.c0) - pull) / (a + b)
    u = (b * fit + a * at.c0 - pull) / (a + b)
    return Point(at.c0, a / (a + b), b / (a + b), u, moved)


def _loss_curvature(sums: Sums, Ru: Floats, inverse: Floats, E: Floats) -> Floats:
    """Compute `H = I - Ru (I + E) Ru'`, the loss's curvature over the free rows.

    Along the fit it nearly vanishes, and where the target is near zero its price is huge, so the
    difference would drown in rounding.  Over all rows `Xt'Xt = I - E`, so over free rows
    `Juu = I - E - K` and `I - (I + E) Juu = E^2 + (I + E) K` without any cancellation.
    """
    J, K = sums.J, sums.K
    left = E @ E + K + E @ K
    S = np.empty_like(J)
    S[0, 0] = J[0, 0] - J[0, 1:] @ (J[1:, 0] + E @ J[1:, 0])
    S[0, 1:] = S[1:, 0] = J[0, 1:] @ left
    S[1:, 1:] = J[1:, 1:] @ left
    S[1:, 1:] = (S[1:, 1:] + S[1:, 1:].T) / 2
    if np.abs(inverse).max(initial=0.0) > 1e3:
        return np.eye(len(Ru)) - Ru @ (Ru + Ru @ E).T
    return inverse.T @ S @ inverse


def _root(J: Floats) -> tuple[Floats, Floats]:
    """Factor `J = R'R` with as many rows as `J` has rank; also returns a right inverse of `R`."""
    scale = np.sqrt(np.maximum(np.diag(J), 0.0))
    scale[scale == 0] = 1.0
    values, vectors = np.linalg.eigh(J / np.outer(scale, scale))
    keep = values > len(J) * EPS * max(values[-1], EPS)
    root, vectors = np.sqrt(values[keep]), vectors[:, keep]
    return root[:, None] * vectors.T * scale, vectors / root / scale[:, None]
