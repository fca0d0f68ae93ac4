"""Take congestion out of estimates that is more likely their own error than the network's.

Costs are convex in capacities, so errors make models dearer on average: one line that was
estimated far too small can make all of them dearer by several percent. Networks are built to carry
what they carry, so such costs are unlikely from the start. How unlikely is what this adds to the
estimates: congestion costs ``c`` (shares of what the models cost without line limits) have a prior
``exp(-c/s)``, and values ``v`` with certainties ``w`` about the estimates ``m`` are moved to the
least of

    sum_j w_j (v_j - m_j)^2 / 2  +  c(v) / s

**The scale** ``s`` is learned from the estimates. If they were right, ``c(m)`` would be it. They
are not, and their errors add about ``J = E c(m + e) - c(m)`` for errors ``e`` of their own
uncertainty: so ``s = c(m) - J``, at least `LEAST`. On a network that is really congested ``J`` is
small beside ``c(m)``, ``s`` is large, and next to nothing is moved. Where congestion is as likely
to be error, ``s`` is `LEAST`, and what is moved are the few lines that would cost most. If values
so moved cost much less than ``s``, most of ``s`` was error too: it becomes what they cost, and
they are moved again.

Both parts of ``s`` are at the price of the dearest unit. A real network serves its models, so a
limit that estimates break says nothing about its congestion; at the penalty it would count for
more than all congestion there is, ``s`` would be large just where estimates are worst, and they
would be left where they are. What is minimised does have the penalty.

It reads estimates and public data only. The draws of ``e`` have a public seed: anyone who has the
estimates can repeat them, and they hide nothing.

The function is convex. It is minimised by cutting planes: ``c`` is replaced by the largest of its
tangents so far, one more in each round.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gridveil.grid.model.population import take
from gridveil.grid.model.problem import ReleaseProblem
from gridveil.grid.restoration.master import Aim, Cuts, nearest
from gridveil.grid.restoration.oracle import Oracle

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Tangents = list[tuple[Floats, float]]
"""Of congestion costs: the slope at a point, and what it makes of the point less the cost there."""

LEAST = 0.015
"""The least scale of congestion costs, as a share of what models cost without limits."""
_MODELS = 60
_DRAWS, _MODELS_A_DRAW = 24, 25
LARGE = 2000
"""Buses beyond which each draw has fewer models, and quadratic costs are in so many pieces."""
# Errors of thousands of lines are much the same to all models: a few of these tell.
_MODELS_A_LARGE_DRAW, _PIECES = 6, 20
_ROUNDS, _ENOUGH = 30, 0.01
# How often the scale may become smaller, and how much smaller is worth another turn.
_TURNS, _MUCH_LESS = 4, 0.8
# A straight cost ``c/s`` is put as a square about a point this far below: its curve is lost on c.
_BELOW = 10.0


@dataclass(frozen=True, eq=False)
class Relieved:
    """The aim with congestion taken out, and the mean congestion costs before and after."""

    aim: Aim
    before: float
    after: float


def pieces_for(problem: ReleaseProblem) -> int | None:
    """Into how many pieces quadratic costs are cut: solvers of linear ones start warm."""
    return _PIECES if len(problem.public.buses) > LARGE else None


def relieve(
    aim: Aim, problem: ReleaseProblem, penalty: float, *, scale: float | None = None
) -> Relieved:
    """Move an aim for capacities to where it is most likely, given that congestion is rare.

    Parameters
    ----------
    aim
        Estimates and their certainties.
    problem
        What is released: capacities alone.
    penalty
        The price of broken limits, $/MWh.
    scale
        Of congestion costs, if it is known; learned by default.
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
    """The most likely values, at a scale of congestion costs that is learned from the aim."""
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
    """The values of the least sum of squares and congestion costs.

    Tangents are added to those that are known; the first is that at the aim.
    """
    usual = float(np.median(aim.weight))
    # One more entry, the cost in a unit that makes its square weigh as much as another's.
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
    """What the aim's congestion costs without what errors of its own uncertainty add on average.

    Each draw of errors is looked at with so many of the models.
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
    """What capacities make some models dearer by, on average, as a share of their cost without."""

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
        """The mean at these values, and its slope."""
        look, share = self._oracle.at(values), self._share / len(self._share)
        return float(share @ (look.value - self._without)), np.asarray(share @ look.slope)

    def each(self, values: Floats, some: Ints) -> Floats:
        """What some of the models are dearer by."""
        cost = self._oracle.solve(values, take(self._models, some), ("cost",)).cost
        return self._share[some] * (cost - self._without[some])
