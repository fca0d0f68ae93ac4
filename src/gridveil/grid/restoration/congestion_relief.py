"""Remove congestion from estimated capacities that is more likely error than real.

Costs are convex in capacities, so errors raise them on average: one line that was estimated far too
small can make all models several percent more expensive. Networks are built for the flows they
carry, so such costs are unlikely. This adds that knowledge to the estimates: congestion costs ``c``
(as a share of the models' costs without line limits) have a prior ``exp(-c/s)``, and the estimates
``m`` with weights ``w`` (one over their variances) are moved to the values ``v`` that minimise

    sum_j w_j (v_j - m_j)^2 / 2  +  c(v) / s

**The scale** ``s`` is learned from the estimates. If they had no error, it would be ``c(m)``. Their
errors add about ``J = E c(m + e) - c(m)``, for errors ``e`` with the estimates' uncertainty, so
``s = c(m) - J``, and at least `LEAST`. On a network that is really congested ``J`` is small
compared to ``c(m)``, ``s`` is large, and almost nothing moves. If congestion is as likely to be
error, ``s`` is `LEAST`, and the few lines that cost most are moved. If the moved values cost much
less than ``s``, most of ``s`` was error too: ``s`` becomes their cost, and they are moved again.

Both parts of ``s`` price broken limits at the price of the most expensive unit. A real network
serves its models, so a limit that estimates break says nothing about real congestion. At the
penalty, broken limits would outweigh all real congestion, ``s`` would be largest for the worst
estimates, and these would not be moved. The function that is minimised does use the penalty.

This reads estimates and public data only. The draws of ``e`` have a public seed: anyone who has the
estimates can repeat them, and they hide nothing.

The function is convex. It is minimised by cutting planes: ``c`` is replaced by the largest of its
tangents so far, one more in each round.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gridveil.grid.model.population import take
from gridveil.grid.model.release_problem import ReleaseProblem
from gridveil.grid.restoration.master import Aim, Cuts, nearest
from gridveil.grid.restoration.oracle import Oracle

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Tangents = list[tuple[Floats, float]]
"""Tangents of congestion costs, as ``slope`` and ``slope @ point - cost`` at a point."""

LEAST = 0.015
"""The least scale of congestion costs, as a share of the models' costs without line limits."""
_MODELS = 60
_DRAWS, _MODELS_A_DRAW = 24, 25
LARGE = 2000
"""With more buses than this, draws have fewer models, and costs have linear pieces."""
# Errors of thousands of lines affect all models much alike: a few models are enough.
_MODELS_A_LARGE_DRAW, _PIECES = 6, 20
_ROUNDS, _ENOUGH = 30, 0.01
# How often the scale may shrink, and the factor by which it must shrink for another turn.
_TURNS, _MUCH_LESS = 4, 0.8
# The linear cost ``c/s`` is written as a square about a point this far below: nearly linear in c.
_BELOW = 10.0


@dataclass(frozen=True, eq=False)
class Relieved:
    """The aim after unlikely congestion was removed, and mean congestion costs before and after."""

    aim: Aim
    before: float
    after: float


def pieces_for(problem: ReleaseProblem) -> int | None:
    """Choose the number of linear pieces of quadratic costs: linear solvers can be warm-started."""
    return _PIECES if len(problem.public.buses) > LARGE else None


def relieve(
    aim: Aim, problem: ReleaseProblem, penalty: float, *, scale: float | None = None
) -> Relieved:
    """Move estimated capacities to their most likely values, given that congestion is rare.

    Parameters
    ----------
    aim
        The estimates, weighted by one over their variances.
    problem
        What is released; it must be capacities alone.
    penalty
        The price of broken limits, $/MWh.
    scale
        The scale of congestion costs, if known; learned by default.
    """
    some = np.arange(min(problem.models.size, _MODELS))
    costs = _Congestion(problem, some, penalty, aim.high)
    before, slope = costs.at(aim.centre)
    if not (np.isfinite(before) and slope.any()):
        return Relieved(aim, before, before)
    tangents = [(slope, float(slope @ aim.centre) - before)]
    if scale is None:
        values = _learned(aim, problem, some, costs, tangents)
    else:
        values = _least(aim, costs, 1 / scale, tangents)
    return Relieved(replace(aim, centre=values), before, costs.at(values)[0])


def _learned(
    aim: Aim, problem: ReleaseProblem, some: Ints, costs: _Congestion, tangents: Tangents
) -> Floats:
    """Find the most likely values; learn the scale of congestion costs from the aim."""
    served = _Congestion(problem, some, float(problem.price), aim.high)
    large = len(problem.public.buses) > LARGE
    count = min(len(some), _MODELS_A_LARGE_DRAW if large else _MODELS_A_DRAW)
    scale = max(LEAST, _likely(aim, served, some, count))
    values = aim.centre
    for _ in range(_TURNS):
        values = _least(aim, costs, 1 / scale, tangents)
        smaller = max(LEAST, float(served.each(values, some).mean()))
        if smaller > _MUCH_LESS * scale:
            break
        scale = smaller
    return values


def _least(aim: Aim, costs: _Congestion, rate: float, tangents: Tangents) -> Floats:
    """Minimise the sum of squares plus congestion costs.

    New tangents are appended to `tangents`, whose first is the one at the aim.
    """
    usual = float(np.median(aim.weight))
    # One more entry for the cost, in a unit in which its square has the weight of the others.
    unit = np.sqrt(rate / _BELOW / usual)
    far = 1e6 * _BELOW * unit
    wider = Aim(
        np.append(aim.centre, -_BELOW * unit),
        np.append(aim.weight, usual),
        np.append(aim.low, -far),
        np.append(aim.high, far),
    )
    cuts = Cuts(len(wider.centre))
    for slope, bound in tangents:
        cuts.add(np.append(slope, -1 / unit), bound, 0)
    slope, bound = tangents[0]
    best, least = aim.centre, 2 * rate * (float(slope @ aim.centre) - bound)
    for _ in range(_ROUNDS):
        found = nearest(wider, cuts)
        if found is None:
            break
        values = found[:-1]
        moved = float(aim.weight @ (values - aim.centre) ** 2)
        reached = moved + 2 * rate * float(found[-1]) / unit
        cost, slope = costs.at(values)
        if moved + 2 * rate * cost < least:
            best, least = values, moved + 2 * rate * cost
        if not least - reached > _ENOUGH:
            break
        tangents.append((slope, float(slope @ values) - cost))
        cuts.add(np.append(slope, -1 / unit), tangents[-1][1], 0)
    return best


def _likely(aim: Aim, costs: _Congestion, some: Ints, count: int) -> float:
    """Compute the aim's congestion costs minus what its own errors add to them on average.

    Each draw of errors is evaluated with `count` of the models.
    """
    rng = np.random.default_rng(0)
    width = np.sqrt(1 / aim.weight / 2)
    own = costs.each(aim.centre, some)
    found = []
    for _ in range(_DRAWS):
        drawn = np.sort(rng.choice(some, count, replace=False))
        off = np.clip(aim.centre + rng.laplace(0.0, width), aim.low, aim.high)
        found.append(float((costs.each(off, drawn) - own[drawn]).mean()))
    return float(own.mean() - np.mean(found))


class _Congestion:
    """Mean congestion costs of some models, as a share of their costs without line limits."""

    def __init__(
        self, problem: ReleaseProblem, some: Ints, penalty: float, without: Floats
    ) -> None:
        self._models = take(problem.models, some)
        self._oracle = Oracle(
            problem, self._models, kinds=("relaxed",), price=penalty, pieces=pieces_for(problem)
        )
        self._without = self._oracle.solve(without, self._models, ("cost",)).cost
        self._share = 1 / np.maximum(np.abs(self._without), 1e-9)

    def at(self, values: Floats) -> tuple[float, Floats]:
        """Compute the mean congestion cost at these values, and its slope."""
        look, share = self._oracle.at(values), self._share / len(self._share)
        return float(share @ (look.value - self._without)), np.asarray(share @ look.slope)

    def each(self, values: Floats, some: Ints) -> Floats:
        """Compute the congestion costs of some of the models."""
        cost = self._oracle.solve(values, take(self._models, some), ("cost",)).cost
        return self._share[some] * (cost - self._without[some])
