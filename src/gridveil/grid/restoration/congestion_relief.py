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

**Tails.** The weights are those of normal errors. Real ones have longer tails, since a learned
prior is wrong for a few entries: a line of 254 MW is taken for one of 120 MW, give or take 9, as
most lines like it are. In sums of squares such an error can't be mended. So an error of ``z > 1``
deviations counts as in Student's distribution, ``(k + 1)/2 ln((k + z^2)/(k + 1)) + 1/2`` instead of
``z^2/2``, with ``k = _TAIL``. This is concave in ``z^2``, so it lies below its tangent, which is a
sum of squares with smaller weights. Minimising with these, again and again, never raises the sum.

This reads estimates and public data only. The draws of ``e`` have a public seed: anyone who has the
estimates can repeat them, and they hide nothing.

The function is convex. It is minimised by cutting planes: ``c`` is replaced by the largest of its
tangents so far, one more in each round. Solving a model of a large network takes long, and its own
tangents say more than those of the mean: there each model has tangents of its own, and a round
looks at a fifth of the models, until these cost about what their tangents say.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gridveil.grid.model.population import take
from gridveil.grid.model.release_problem import ReleaseProblem
from gridveil.grid.restoration.master import Aim, Cuts, nearest
from gridveil.grid.restoration.oracle import LARGE, Oracle

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
LEAST = 0.015
"""The least scale of congestion costs, as a share of the models' costs without line limits."""
_MODELS = 60
_DRAWS, _MODELS_A_DRAW = 24, 25
# On a large network draws have fewer models, costs have linear pieces, and the minimum is looked
# for model by model and less precisely: errors of thousands of lines affect all models alike.
_MODELS_A_LARGE_DRAW, _PIECES = 6, 20
_ROUNDS, _ENOUGH = 30, 0.01
# On a large network the minimum is found to this share of it: for the release, and for imagined
# releases, which only show the size of an error. A round looks at so few of the models.
_NEAR, _ROUGHLY, _FEWEST, _FIFTH = 0.02, 0.1, 5, 5
# The scale is surely below `LEAST` if it is by so many standard errors after so many draws.
_SURELY, _FEW_DRAWS = 4.0, 6
# How often the scale may shrink, and the factor by which it must shrink for another turn.
_TURNS, _MUCH_LESS = 4, 0.8
# The degrees of freedom of errors: of PGLib's capacities estimated with noise of 30 MW, up to 0.5%
# are more than four deviations above their estimates. With five degrees of freedom it is 0.5%, with
# eight 0.2%, normally 0.003%. How often weights are changed, and by how much they must change.
_TAIL, _REWEIGHED, _ALIKE = 5.0, 8, 0.1
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
    if not (np.isfinite(before).all() and slope.any()):
        return Relieved(aim, float(before.mean()), float(before.mean()))
    tangents = _Tangents(float(before.mean()))
    tangents.add(costs.groups, before, slope, aim.centre)
    if scale is None:
        values = _learned(aim, problem, some, costs, tangents)
    else:
        values = _least(aim, costs, 1 / scale, tangents, _ROUGHLY)
        values = _with_tails(aim, costs, 1 / scale, tangents, _ROUGHLY, values)
    after = float(costs.at(values)[0].mean())
    return Relieved(replace(aim, centre=values), float(before.mean()), after)


def _learned(
    aim: Aim, problem: ReleaseProblem, some: Ints, costs: _Congestion, tangents: _Tangents
) -> Floats:
    """Find the most likely values; learn the scale of congestion costs from the aim."""
    served = _Congestion(problem, some, float(problem.price), aim.high)
    large = len(problem.public.buses) > LARGE
    count = min(len(some), _MODELS_A_LARGE_DRAW if large else _MODELS_A_DRAW)
    scale = max(LEAST, _likely(aim, served, some, count))
    values = aim.centre
    for _ in range(_TURNS):
        values = _least(aim, costs, 1 / scale, tangents, _NEAR)
        smaller = max(LEAST, float(served.each(values, some).mean()))
        if smaller > _MUCH_LESS * scale:
            break
        scale = smaller
    return _with_tails(aim, costs, 1 / scale, tangents, _NEAR, values)


def _with_tails(
    aim: Aim, costs: _Congestion, rate: float, tangents: _Tangents, share: float, values: Floats
) -> Floats:
    """Go on from the minimum with squares to one with errors whose tails are longer."""
    factor = np.ones(len(values))
    for _ in range(_REWEIGHED):
        square = aim.weight * (values - aim.centre) ** 2
        new = np.minimum(1.0, (_TAIL + 1) / (_TAIL + square))
        if (np.abs(new - factor) <= _ALIKE * factor).all():
            break
        factor = new
        lighter = replace(aim, weight=aim.weight * factor)
        values = _least(lighter, costs, rate, tangents, share)
    return values


def _least(aim: Aim, costs: _Congestion, rate: float, tangents: _Tangents, share: float) -> Floats:
    """Minimise the sum of squares plus congestion costs; of large networks to a share of the sum.

    New tangents are appended to `tangents`, which begin with those at the aim.
    """
    usual = float(np.median(aim.weight))
    # One more entry for the cost of each group, in a unit in which its square weighs like others.
    count = len(costs.groups)
    unit = np.sqrt(rate / count / _BELOW / usual)
    far = np.full(count, 1e6 * _BELOW * unit)
    wider = Aim(
        np.concatenate([aim.centre, np.full(count, -_BELOW * unit)]),
        np.concatenate([aim.weight, np.full(count, usual)]),
        np.concatenate([aim.low, -far]),
        np.concatenate([aim.high, far]),
    )
    best, least = aim.centre, 2 * rate * tangents.at_aim
    parts = max(1, min(_FIFTH, count // _FEWEST))
    rounds, whole = _ROUNDS * parts, parts == 1
    cuts = Cuts(len(wider.centre))
    for turn in range(rounds):
        tangents.cut(cuts, count, unit)
        found = nearest(wider, cuts)
        if found is None:
            break
        values, told = found[: len(aim.centre)], found[len(aim.centre) :] / unit
        moved = float(aim.weight @ (values - aim.centre) ** 2)
        reached = moved + 2 * rate * float(told.mean())
        some = costs.groups if whole else costs.groups[turn % parts :: parts]
        cost, slope = costs.at(values, some)
        missing = 2 * rate * float((cost - told[some]).mean())
        enough = max(_ENOUGH, share * (reached + missing)) if costs.large else _ENOUGH
        if whole:
            if reached + missing < least:
                best, least = values, reached + missing
            if not least - reached > enough:
                break
        tangents.add(some, cost, slope, values)
        # The last round, and one after which it may end, look at all models.
        whole = parts == 1 or missing <= enough or turn == rounds - 2
    return best


def _likely(aim: Aim, costs: _Congestion, some: Ints, count: int) -> float:
    """Compute the aim's congestion costs minus what its own errors add to them on average.

    Each draw of errors is evaluated with `count` of the models.
    """
    rng = np.random.default_rng(0)
    width = np.sqrt(1 / aim.weight / 2)
    own = costs.each(aim.centre, some)
    found = []
    for draw in range(_DRAWS):
        drawn = np.sort(rng.choice(some, count, replace=False))
        off = np.clip(aim.centre + rng.laplace(0.0, width), aim.low, aim.high)
        found.append(float((costs.each(off, drawn) - own[drawn]).mean()))
        if draw + 1 >= _FEW_DRAWS:
            doubt = _SURELY * float(np.std(found, ddof=1)) / np.sqrt(len(found))
            if own.mean() - np.mean(found) + doubt < LEAST:
                break
    return float(own.mean() - np.mean(found))


class _Tangents:
    """Tangents of the congestion costs of groups, ``slope @ values - bound``.

    `at_aim` is the mean congestion cost at the aim, where the first of them touch.
    """

    def __init__(self, at_aim: float) -> None:
        self.at_aim = at_aim
        self._rows: list[tuple[int, Floats, float]] = []

    def add(self, groups: Ints, cost: Floats, slope: Floats, values: Floats) -> None:
        """Add one of each of these groups, whose costs and slopes at some values are given."""
        bound = slope @ values - cost
        self._rows += zip(groups.tolist(), slope, bound.tolist(), strict=True)

    def cut(self, cuts: Cuts, count: int, unit: float) -> None:
        """Append what `cuts` lack; of `count` groups, each has its cost behind the values."""
        for group, slope, bound in self._rows[len(cuts) :]:
            own = np.zeros(count)
            own[group] = -1 / unit
            cuts.add(np.concatenate([slope, own]), bound, 0)


class _Congestion:
    """Congestion costs of some models, as a share of their costs without line limits.

    On a large network each model is a group of its own; on others all models are one group.
    """

    def __init__(
        self, problem: ReleaseProblem, some: Ints, penalty: float, without: Floats
    ) -> None:
        self.large = len(problem.public.buses) > LARGE
        self._models = take(problem.models, some)
        self.groups = np.arange(len(some) if self.large else 1)
        self._oracle = Oracle(
            problem, self._models, kinds=("relaxed",), price=penalty, pieces=pieces_for(problem)
        )
        self._without = self._oracle.solve(without, self._models, ("cost",)).cost
        self._share = 1 / np.maximum(np.abs(self._without), 1e-9)

    def at(self, values: Floats, groups: Ints | None = None) -> tuple[Floats, Floats]:
        """Compute the mean congestion costs of groups (all by default), and their slopes."""
        if self.large:
            some = self.groups if groups is None else groups
            look, share = self._oracle.at(values, some), self._share[some]
            return share * (look.value - self._without[some]), share[:, None] * look.slope
        look, share = self._oracle.at(values), self._share / len(self._share)
        cost = float(share @ (look.value - self._without))
        return np.array([cost]), np.asarray(share @ look.slope)[None]

    def each(self, values: Floats, some: Ints) -> Floats:
        """Compute the congestion costs of some of the models."""
        cost = self._oracle.solve(values, take(self._models, some), ("cost",)).cost
        return self._share[some] * (cost - self._without[some])
