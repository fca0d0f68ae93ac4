"""The small problem that a pass leaves: how the free rows should move, in `p + 1` unknowns.

With the clipped rows held where they are, the free rows move as `dy = [r, xt] dv`, and all three
norms of the restoration are norms of affine functions of `dv`.  In orthonormal coordinates
`tau = R dv`, `J = R'R`, this is a problem in `p + 1` unknowns, whatever the number of rows:

    min  delta + ga rho + price (L - lp)+,
    delta^2 = |tau + d|^2 + away^2,    rho = |A tau + x|,    L^2 = tau'H tau + 2 lean'tau + L0^2,

divided by `gy` and by a unit of length, so that its numbers are about one.  A cone solver
(Clarabel) solves it roughly, and solves the whole restoration as a last resort.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import clarabel  # type: ignore[import-untyped]
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from gridveil.wind.restoration.passes import CERTIFIED, Point, Sums, Whitening, length

Floats = NDArray[np.float64]
EPS = float(np.finfo(float).eps)


@dataclass(frozen=True, eq=False)
class Target:
    """What the restoration should match, and the price of each miss.

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
    """Set up the small problem; also return `Ru`, with `z = z + unit Ru'tau`."""
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

    Along the fit it nearly vanishes, and if the target is near zero its price is huge, so the
    difference would be lost in rounding.  Over all rows `Xt'Xt = I - E`, so over free rows
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
    """Factor `J = R'R` with as many rows as `J` has rank; also return a right inverse of `R`."""
    scale = np.sqrt(np.maximum(np.diag(J), 0.0))
    scale[scale == 0] = 1.0
    values, vectors = np.linalg.eigh(J / np.outer(scale, scale))
    keep = values > len(J) * EPS * max(values[-1], EPS)
    root, vectors = np.sqrt(values[keep]), vectors[:, keep]
    return root[:, None] * vectors.T * scale, vectors / root / scale[:, None]


VERSION = f"clarabel {clarabel.__version__}"
# The whole problem is ill-scaled if prices differ by many orders of magnitude.  Attempts, until
# one is certified: power of gy that multiplies the objective (over gy), solver's tolerance.
ATTEMPTS = ((0.0, 1e-12), (0.5, 1e-12), (1.0, 1e-12), (0.0, 1e-9), (0.5, 1e-9))


@dataclass(frozen=True, eq=False)
class Whole:
    """The whole problem's answer, its objective and a lower bound on every objective."""

    y: Floats
    z: Floats
    loss: float
    value: float
    bound: float

    def joined(self, other: Whole) -> Whole:
        """Take the better records and the better bound of two attempts."""
        better = self if self.value <= other.value else other
        return replace(better, bound=max(self.bound, other.bound))


def solve_small(small: Small) -> Answer:
    """Solve the small problem to about eight digits."""
    k = len(small.d)
    form = np.block([[small.H, small.lean[:, None]], [small.lean, np.array([[small.loss**2]])]])
    values, vectors = np.linalg.eigh(form)
    half = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
    # Unknowns: tau, then delta, rho and by how much the loss exceeds lp.
    apart = np.vstack([np.eye(k), np.zeros(k)])
    norms = [
        _norm(apart, np.append(small.d, small.away), k, k + 3, 0.0),
        _norm(half[:, :k], half[:, k], k + 2, k + 3, small.lp),
    ]
    if small.ga:
        norms.append(_norm(small.A, small.x, k + 1, k + 3, 0.0))
    G = np.vstack([rows for rows, _ in norms] + [-np.eye(k + 3)[k + 1 :]])
    h = np.concatenate([right for _, right in norms] + [np.zeros(2)])
    cones = [clarabel.SecondOrderConeT(len(right)) for _, right in norms]
    price = np.concatenate([np.zeros(k), [1.0, small.ga or 1.0, small.price]])
    x, dual = _run(price, sparse.csc_matrix(G), h, [*cones, clarabel.NonnegativeConeT(2)], 1e-10)
    tau, reached = x[:k], small.reached(x[:k])
    s = min(max(dual[k + 2], 0.0), small.price)
    nu = -dual[2 * k + 5 : -2] if small.ga else np.zeros_like(small.x)
    return Answer(tau, s / reached if reached > 1e-14 else 0.0, nu)


def solve_whole(X: Floats, y0: Floats, target: Target) -> Whole:
    """Solve the whole restoration, all rows in memory, and bound its optimum from below."""
    Xt = X @ target.W
    m, k = Xt.shape
    price, G, h, cones = _whole_program(Xt, y0, target)
    cut = k + 2 * m + 2
    best: Whole | None = None
    for scale, tolerance in ATTEMPTS:
        x, dual = _run(price * target.gy**scale, G, h, cones, tolerance)
        dual = dual * target.gy ** (1 - scale)
        q_d, q_l = -dual[cut + 1 : cut + m + 1], -dual[cut + m + 2 : cut + 2 * m + 2]
        nu = -dual[cut + 2 * m + 3 :] if target.gb else np.zeros_like(target.weights)
        judged = _judge(Xt, y0, np.clip(x[:m], 0.0, 1.0), target, (q_d, q_l, nu))
        best = judged if best is None else best.joined(judged)
        if best.value - best.bound <= CERTIFIED * best.value:
            break
    assert best is not None
    return best


def _whole_program(Xt: Floats, y0: Floats, target: Target) -> tuple[Floats, Any, Floats, list[Any]]:
    """Write the whole problem, over `gy`, as a cone program.

    Unknowns: `y`, `z`, then `||y - y0||`, `||W z - bbar||` and by how much the loss exceeds `lp`.
    """
    W, ga = target.W, target.gb / target.gy
    (m, k), p = Xt.shape, len(W)
    n = m + k + 3
    one = sparse.identity(m)
    fit = sparse.hstack([sparse.csc_matrix(Xt.T), -sparse.identity(k), _nought(k, 3)])
    box = sparse.hstack([one, _nought(m, k + 3)])
    away = sparse.vstack([-_unit(n, m + k), -box])
    lost = sparse.hstack([one, -sparse.csc_matrix(Xt), _nought(m, 3)])
    lost = sparse.vstack([-_unit(n, n - 1), -lost])
    signs = sparse.vstack([-_unit(n, m + k + 1), -_unit(n, n - 1)])
    blocks = [fit, -box, box, signs, away, lost]
    right = [np.zeros(k), np.zeros(m), np.ones(m), np.zeros(2), np.append(0.0, -y0)]
    right.append(np.append(target.loss, np.zeros(m)))
    cones = [clarabel.ZeroConeT(k), clarabel.NonnegativeConeT(2 * m + 2)]
    cones += [clarabel.SecondOrderConeT(m + 1)] * 2
    if ga:
        miss = sparse.hstack([_nought(p, m), sparse.csc_matrix(W), _nought(p, 3)])
        blocks.append(sparse.vstack([-_unit(n, m + k + 1), -miss]))
        right.append(np.append(0.0, -target.weights))
        cones.append(clarabel.SecondOrderConeT(p + 1))
    price = np.concatenate([np.zeros(m + k), [1.0, ga or 1.0, 1 / target.gy]])
    return price, sparse.csc_matrix(sparse.vstack(blocks)), np.concatenate(right), cones


def _judge(
    Xt: Floats, y0: Floats, y: Floats, target: Target, duals: tuple[Floats, Floats, Floats]
) -> Whole:
    """Evaluate records in the box, and the dual bound with prices scaled into their balls.

    For `|q_d| <= gy`, `|q_l| <= s <= 1`, `|nu| <= gb` and `g = q_d + T q_l + Xt W'nu`, weak
    duality bounds every objective by `sum min(g, 0) - q_d'y0 - s lp - nu'bbar`.
    """
    W = target.W
    z = Xt.T @ y
    loss = float(np.linalg.norm(y - Xt @ z))
    miss = float(np.linalg.norm(W @ z - target.weights))
    far = float(np.linalg.norm(y - y0))
    value = max(loss - target.loss, 0.0) + target.gb * miss + target.gy * far
    q_d, q_l, nu = (
        _into_ball(q, radius) for q, radius in zip(duals, (target.gy, 1.0, target.gb), strict=True)
    )
    g = q_d + q_l - Xt @ (Xt.T @ q_l) + Xt @ (W.T @ nu)
    s = float(np.linalg.norm(q_l))
    bound = np.minimum(g, 0.0).sum() - q_d @ y0 - s * target.loss - nu @ target.weights
    return Whole(y, z, loss, value, float(bound))


def _into_ball(q: Floats, radius: float) -> Floats:
    size = float(np.linalg.norm(q))
    return q * (radius / size) if size > radius else q


def _norm(A: Floats, b: Floats, column: int, width: int, offset: float) -> tuple[Floats, Floats]:
    """Return rows and right-hand side of the cone `|A tau + b| <= x[column] + offset`."""
    rows = np.zeros((len(A) + 1, width))
    rows[0, column] = -1.0
    rows[1:, : A.shape[1]] = -A
    return rows, np.append(offset, b)


def _unit(width: int, column: int) -> Any:
    return sparse.csc_matrix(([1.0], ([0], [column])), shape=(1, width))


def _nought(rows: int, columns: int) -> Any:
    return sparse.csc_matrix((rows, columns))


def _run(
    price: Floats, G: Any, h: Floats, cones: list[Any], tolerance: float
) -> tuple[Floats, Floats]:
    """Minimise `price'x` subject to `h - G x` in the cones; return `x` and the multipliers."""
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tolerance
    answer = clarabel.DefaultSolver(
        _nought(len(price), len(price)), price, G, h, cones, settings
    ).solve()
    return np.array(answer.x), np.array(answer.z)
