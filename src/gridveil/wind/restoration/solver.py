"""Solve the restoration: alternate a pass over the rows with the small problem that it leaves.

Each pass tells which rows are clipped; the small problem then says where the free rows should
go.  Once the clipped rows no longer change, the answer is exact, and one more pass certifies it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

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
from gridveil.wind.restoration.small_problem_newton import Kinks, Loss, kinks_of, polish
from gridveil.wind.row_blocks import Rows

Floats = NDArray[np.float64]

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
