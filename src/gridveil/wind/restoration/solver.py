"""Solve the restoration: alternate a pass over the rows with the small problem that it leaves.

Each pass tells which rows are clipped; the small problem then says where the free rows should
go.  Once the clipped rows no longer change, the answer is exact, and one more pass certifies it.

The small problem is solved by Newton's method, to full precision.  Its objective has three kinks:
the loss is below, at or above `lp`, and the weights are hit or missed.  Once these are known the
optimality conditions are smooth equations.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gridveil.wind.restoration.passes import (
    Point,
    Sums,
    audit,
    evaluate,
    length,
    noisy_moments,
)
from gridveil.wind.restoration.small_problem import (
    EPS,
    Answer,
    Small,
    Target,
    optimal_point,
    small_problem,
    solve_small,
)
from gridveil.wind.row_blocks import Rows

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


# The most by which the price of loss, b, may be multiplied in a step: beyond that, too many rows
# change between free and clipped for the small problem to be a guide.
RISE = 10.0
SETTLED = 1e-9
MOST_PASSES = 40


@dataclass(frozen=True, eq=False)
class Found:
    """The search's result; `gap` is absolute and certified."""

    point: Point
    sums: Sums
    value: float
    gap: float
    passes: int


@dataclass(frozen=True, eq=False)
class _Proposal:
    small: Small
    Ru: Floats
    answer: Answer
    kinks: Kinks


def search(rows: Rows, target: Target) -> Found:
    """Solve the restoration by passes over the rows."""
    at, passes = _start(rows, target), 1
    sums, passes = evaluate(rows, target.basis, at), passes + 1
    last: _Proposal | None = None
    while True:
        proposal = _propose(sums, target, at, last)
        if _settled(target, sums, proposal) or passes >= MOST_PASSES:
            break
        moved = _line_search(rows, target, at, sums, proposal)
        if moved is None:
            break
        at, sums, tries = moved
        passes, last = passes + tries, proposal
    sums, gap, extra = _certify(rows, target, at, sums, proposal)
    return Found(at, sums, target.value(sums), gap, passes + extra)


def _settled(target: Target, sums: Sums, proposal: _Proposal) -> bool:
    """Say whether the proposal is to stay; at `y = y0`, a kink of the distance, use the prices."""
    value, small, tau = target.value(sums), proposal.small, proposal.answer.tau
    if sums.distance == 0:
        gap, _ = _norms_gap(target, sums, _prices(target, sums, proposal))
        return gap <= SETTLED * (value + EPS * target.loss)
    stays = small.unit * length(tau) <= SETTLED * sums.distance
    gain = value - target.gy * small.unit * small.value(tau)
    return stays and gain <= SETTLED * value and proposal.kinks.loss is not Loss.PRICED


def _start(rows: Rows, target: Target) -> Point:
    """Start where scaling the noisy residual alone would meet the loss, if that is not far.

    Records that are already in the box may be the answer: start from them.
    """
    c0, size, outside = noisy_moments(rows, target.W)
    loss2 = size**2 - c0 @ (c0 + target.E @ c0)
    kept = 1.0
    if outside and 0.04 * loss2 <= target.loss**2 < loss2:
        kept = target.loss / float(np.sqrt(loss2))
    return Point(c0, kept, 1.0 - kept, c0, np.zeros_like(c0))


def _propose(sums: Sums, target: Target, at: Point, last: _Proposal | None) -> _Proposal:
    """Solve the small problem: by Newton from the last prices, else by a cone program.

    At the start the usual case is tried first: the loss at its target, the weights missed.
    """
    small, Ru = small_problem(sums, target)
    here = np.zeros_like(small.d)
    answer, kinks = None, Kinks(Loss.PRICED, False)
    if last is not None and last.kinks.loss is not Loss.PRICED:
        kinks = last.kinks
        scale = small.unit / last.small.unit
        answer = polish(small, replace(last.answer, tau=here, b=last.answer.b * scale), kinks)
    elif last is None and at.lost > 0:
        kinks = Kinks(Loss.AT, False)
        price = at.lost / at.kept / max(small.delta(here), EPS)
        answer = polish(small, Answer(here, price, np.zeros_like(small.x)), kinks)
    if answer is None:
        rough = solve_small(small)
        kinks = kinks_of(small, rough)
        answer = polish(small, rough, kinks) or rough
    most = RISE * max(at.lost, at.kept) / max(at.kept, EPS**2)
    if answer.b * small.delta(answer.tau) > most:
        start = Answer(here, most / max(small.delta(here), EPS), answer.nu)
        for hit in (kinks.hit, not kinks.hit):
            capped = Kinks(Loss.PRICED, hit)
            priced = polish(small, start, capped)
            if priced is not None:
                return _Proposal(small, Ru, priced, capped)
    return _Proposal(small, Ru, answer, kinks)


def _line_search(
    rows: Rows, target: Target, at: Point, sums: Sums, proposal: _Proposal
) -> tuple[Point, Sums, int] | None:
    """Step towards the proposal until the objective, or a smooth variant of it, falls enough.

    The variant (`_cousin`) has `(b/2) L^2` in place of `(L - lp)+`; the proposal minimises both.
    It lets a full step overshoot `lp` slightly, where the objective is steep, and the next step
    correct that.
    """
    small, tau = proposal.small, proposal.answer.tau
    scale = target.gy * small.unit
    b = proposal.answer.b * target.gy / small.unit
    before, cousin = target.value(sums), _cousin(target, sums, b)
    over = small.price * max(small.reached(tau) - small.lp, 0.0)
    predicted = before - scale * small.value(tau)
    quadratic = b / 2 * (small.unit * small.reached(tau)) ** 2
    eased = cousin - scale * (small.value(tau) - over) - quadratic
    goal = optimal_point(small, proposal.Ru, sums, proposal.answer, at, target)
    step, tries = 1.0, 0
    while step > 1e-3:
        there = at.towards(goal, step)
        found, tries = evaluate(rows, target.basis, there), tries + 1
        fell = before - target.value(found) >= 1e-4 * step * abs(predicted) - 1e-14 * before
        smooth = proposal.kinks.loss in (Loss.AT, Loss.PRICED)
        if fell or (smooth and cousin - _cousin(target, found, b) >= 1e-4 * step * eased):
            return there, found, tries
        step *= 0.3
    return None


def _cousin(target: Target, sums: Sums, b: float) -> float:
    return target.value(sums) - max(sums.loss - target.loss, 0.0) + b / 2 * sums.loss**2


@dataclass(frozen=True, eq=False)
class _Prices:
    """Dual prices: `s <= 1` of the loss (`cb = s/L`) and `|nu| <= gb` of the weights."""

    s: float
    cb: float
    nu: Floats


def _prices(target: Target, sums: Sums, proposal: _Proposal) -> _Prices:
    """Take the proposal's prices, scaled if they are out of bounds."""
    unit, gy = proposal.small.unit, target.gy
    nu = _into_ball(gy * proposal.answer.nu, target.gb)
    idle = sums.loss <= 1e-13 * unit or (sums.distance == 0 and sums.loss < target.loss)
    s = 0.0 if idle else min(1.0, proposal.answer.b * gy / unit * sums.loss)
    cb = 0.0 if idle else s / sums.loss
    if sums.distance > 0:
        return _Prices(s, cb, nu)
    # At y = y0 the price of distance balances the others, and is at most gy.
    if not proposal.kinks.hit:
        x = target.W @ sums.z - target.weights
        nu = target.gb * x / max(length(x), EPS**2)
    balance = cb * sums.k2 + np.concatenate([[0.0], target.W.T @ nu])
    size = float(np.sqrt(max(balance @ sums.J @ balance, 0.0)))
    shrink = min(1.0, gy / max(size, EPS**2))
    return _Prices(s * shrink, cb * shrink, nu * shrink)


def _into_ball(q: Floats, radius: float) -> Floats:
    return q * min(1.0, radius / max(length(q), EPS**2))


def _norms_gap(target: Target, sums: Sums, prices: _Prices) -> tuple[float, Floats]:
    """Sum the parts of the gap from loss and weights; also return the pull on whitened features."""
    x = target.W @ sums.z - target.weights
    over = sums.loss - target.loss
    gap = max(over, 0.0) - prices.s * over
    gap += target.gb * length(x) - float(prices.nu @ x)
    return gap, prices.cb * sums.k2[1:] + target.W.T @ prices.nu


def _certify(
    rows: Rows, target: Target, at: Point, sums: Sums, proposal: _Proposal
) -> tuple[Sums, float, int]:
    """Bound how far the objective at a point is above the optimum, in one more pass.

    Prices `s <= 1`, `|nu| <= gb` and `ca (y - y0)` of norm at most `gy` give, by weak duality,

        gap = (L - lp)+ - s (L - lp) + gb rho - nu'x + (the box's part of the Lagrangian).

    Loss, weights and distance are computed again from the records, so that nothing relies on the
    algebra of the sums. Errors of the sums change the prices' norms, and the Lagrangian's gradient
    by `cb Xt (I + E) dz`; both are added to the gap.  Returns the corrected sums, the gap, and the
    number of passes.
    """
    prices = _prices(target, sums, proposal)
    gap, push = _norms_gap(target, sums, prices)
    if sums.distance == 0:
        return sums, gap, 0
    slope = target.gy / sums.distance
    found = audit(rows, target.W, at, sums, slope, prices.cb, push)
    true = replace(sums, z=found.z, loss=found.loss, distance=found.distance)
    off = 2 * prices.cb * length(found.z - sums.z) * target.basis.rows**0.5
    off += abs(target.value(true) - target.value(sums))
    off += prices.s * abs(true.loss - sums.loss) + target.gy * abs(true.distance - sums.distance)
    return true, gap + found.box + off, 1
