"""The nearest values that serve every model of a population.

Whether values serve a model is a question about released and public data, so it costs nothing to
ask for all of them. The values are projected onto the set that serves every model: a model that
is not served gives a cut (the slope of its shortfall, see `oracle`), the least-squares problem is
solved again, until all are served. The set is convex, so this ends at the nearest point.

**Margin.** Every line keeps a share of its capacity in reserve while this is done, so that models
which were not in the population are served too. Values that serve a model with smaller capacities
serve it with larger ones, so the population itself is served all the more.

**AC.** If asked for, models must be served in AC too (see `ac`): cuts of both kinds go into one
problem, and looks at DC and AC alternate until neither adds a cut.

**Outages.** If asked for, one dispatch of a model must also survive every listed outage: these are
more limits in the same shortfall (see `opf/outages`), which stays convex.

**Depth.** If weights are certainties (one over variances), values on the very edge of what serves a
model are not the best guess: given that the real values serve it, they lie behind the edge, by how
much is known. Behind one cut, with ``d`` the distance of the aim from it in deviations ``s`` of the
cut's own sum, normal values lie ``s (h(d) - d)`` behind it on average, ``h`` the hazard of the
normal distribution: 0.8 ``s`` for an aim on the edge, less the further it is beyond. Cuts are that
much deeper if `deep` is asked for (but of AC, whose cuts need not hold everywhere). If that leaves
more models without service or margin than cuts on the edge do, these are taken.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_ndtr

from gridveil.grid.model.population import Population
from gridveil.grid.model.problem import ReleaseProblem
from gridveil.grid.opf.fallbacks import PROOF
from gridveil.grid.opf.outages import Contingencies
from gridveil.grid.restoration.ac import AcOracle, AcShortfalls
from gridveil.grid.restoration.master import Aim, Cuts, Total, Unsolved, nearest, unreachable
from gridveil.grid.restoration.oracle import Look, Oracle

Floats = NDArray[np.float64]

FEWEST = 2
"""Released values have at least so many decimals (MW, $/MWh)."""
# Rounding steps are at most this share of the noise's scale.
_FINE = 100


def decimals_for(scale: float) -> int:
    """How many decimals leave a value with noise of this scale as it is, but for a hundredth of it.

    >>> [decimals_for(scale) for scale in (300.0, 1.0, 0.5, 0.001)]
    [2, 2, 3, 5]
    """
    return max(FEWEST, math.ceil(math.log10(_FINE / scale) - 1e-9))


class Rounding:
    """Decimals of every entry, where entries may be counted in units.

    Parameters
    ----------
    decimals
        One number, or one for each entry.
    unit
        What an entry is counted in, a power of two: rounded is the entry times this.
    """

    def __init__(self, decimals: ArrayLike, unit: ArrayLike = 1.0) -> None:
        self._decimals = np.asarray(decimals, dtype=np.int64)
        self._unit = np.asarray(unit, dtype=np.float64)

    def step(self, entries: int) -> Floats:
        """The distance of neighbouring rounded values, in the units of each entry."""
        steps = 10.0 ** -self._decimals.astype(np.float64) / self._unit
        return np.broadcast_to(steps, (entries,))

    def __call__(self, values: Floats) -> Floats:
        """The nearest rounded values."""
        given = values * self._unit
        places = np.broadcast_to(self._decimals, given.shape)
        found = given.copy()
        for decimals in np.unique(places):
            some = places == decimals
            found[some] = np.round(given[some], int(decimals))
        return np.asarray(found / self._unit)


Ints = NDArray[np.int64]
Looks = Callable[[Population, Floats], Oracle | AcOracle]
"""Makes an oracle for models and the share of reserve of each."""

# A model counts as served where it falls short by less than this (MW): the engine proves one that
# falls short by more to be infeasible.
SERVED = PROOF
# Cuts keep this much more than is needed, beside what rounding may take away (MW).
_SPARE = 1e-4
_CUTS_AT_ONCE = 50
# In AC a look at one model takes as long as one at a hundred in DC, and models that are short are
# short of much the same.
_AC_CUTS_AT_ONCE = 8
# Buses up to which it costs little to look at all models, and to cut where it is deepest.
_SMALL = 500
_HALF_LOG_TWO_PI = 0.5 * np.log(2 * np.pi)
_ROUNDS = 500


@dataclass(frozen=True, eq=False)
class Served:
    """Values that serve the models, rounded.

    Parameters
    ----------
    values
        One number per entry.
    without_margin
        How many models are served, but not with the margin.
    unserved
        Models that no values in the public box could serve, alone or together with the others.
    rounds, cuts
        How often the problem was solved, and with how many rows in the end.
    """

    values: Floats
    without_margin: int
    unserved: tuple[int, ...]
    rounds: int
    cuts: int

    @property
    def short(self) -> int:
        """How many models are not served, or not with the margin."""
        return len(self.unserved) + self.without_margin


def serve(
    aim: Aim,
    problem: ReleaseProblem,
    *,
    margin: float,
    decimals: ArrayLike,
    unit: ArrayLike = 1.0,
    deep: bool = False,
    ac: bool = False,
    contingencies: Contingencies | None = None,
    progress: Callable[[str], None] | None = None,
) -> Served:
    """Project the aim onto the values that serve every model.

    Parameters
    ----------
    aim
        Where to start, and what counts how much.
    private
        What is released, with the public network and the population.
    margin
        The share of every capacity that is kept in reserve.
    decimals
        How many decimals released values have: one number, or one for each entry.
    unit
        What the entries are counted in (see `scaling`); the decimals are those of MW and $/MWh.
    deep
        Whether the aim's weights are certainties, so that values behind the edge are likelier.
    ac
        Whether every model must be served in AC too.
    contingencies
        Outages that every model's dispatch must survive, in DC.

    Raises
    ------
    Unsolved
        If a solver gave up on a public problem.
    """
    say = progress or (lambda words: None)
    rounding = Rounding(decimals, unit)
    if problem.curvature < 0:
        # Costs decide nothing about feasibility.
        values = nearest(aim, Cuts(len(aim.centre)))
        assert values is not None
        return Served(_rounded(values, aim, rounding), 0, (), 1, 0)
    looks: list[Looks] = [lambda models, _: Oracle.of_shortfalls(problem, models, contingencies)]
    if ac:
        looks.append(AcShortfalls(problem).oracle)
    found = None
    if deep:
        with suppress(Unsolved):
            found = _served(_Search(aim, problem, looks, rounding, say, deep=True), margin)
        # In AC a margin is often out of reach because of voltages, which no other cuts change.
        if found is not None and not (found.unserved if ac else found.short):
            return found
    plain = _served(_Search(aim, problem, looks, rounding, say, deep=False), margin)
    return plain if found is None or plain.short < found.short else found


def _served(search: _Search, margin: float) -> Served:
    aim, problem, models = search.aim, search.problem, search.problem.models
    reserve = np.full(models.size, margin)
    values = search.run(_with_reserve(models, problem, reserve), reserve, search.first())
    while tight := [model for model in sorted(search.gone) if reserve[model]]:
        # Once more, without the margin for those that can't have it.
        reserve[tight] = 0.0
        search.gone.difference_update(tight)
        values = search.run(_with_reserve(models, problem, reserve), reserve, values)
    values = _rounded(values, aim, search.rounding)
    unserved = search.short(values, sorted(search.gone))
    bare = 0 if margin == 0 else int((reserve == 0).sum()) - len(unserved)
    return Served(values, bare, unserved, search.rounds, len(search.cuts))


class _Search:
    def __init__(
        self,
        aim: Aim,
        problem: ReleaseProblem,
        looks: Sequence[Looks],
        rounding: Rounding,
        say: Callable[[str], None],
        *,
        deep: bool,
    ) -> None:
        self.cuts = Cuts(len(aim.centre))
        self.gone: set[int] = set()
        self.rounds = 0
        self._cut_rounds = 0
        self.aim = aim
        self.problem = problem
        self.rounding = rounding
        self._looks = looks
        self._deep = deep
        self._say = say
        # Rounding moves a value by up to half a step, or a whole one where a total must be met:
        # cuts leave room for it.
        held = any(total.weight is None for total in aim.totals)
        self._slip = (1.0 if held else 0.5) * rounding.step(len(aim.centre))

    def first(self) -> Floats:
        """The values nearest to the aim in the box."""
        values = nearest(self.aim, self.cuts)
        if values is None:
            raise Unsolved("No values in the public range add up to the published total.")
        return values

    def run(self, models: Population, reserve: Floats, values: Floats) -> Floats:
        """Add cuts of these models until all are served, but for those that can't be (`gone`)."""
        first, *others = [look(models, reserve) for look in self._looks]
        while True:
            values = self._run(first, models, values)
            before = self._cut_rounds
            for oracle in others:
                values = self._run(oracle, models, values)
            if self._cut_rounds == before:
                return values

    def short(self, values: Floats, some: list[int]) -> tuple[int, ...]:
        """Those of some models that values do not serve, without a reserve."""
        left: list[int] = []
        models = self.problem.models
        for look in self._looks if some else ():
            found = look(models, np.zeros(models.size)).at(values, np.array(some))
            left += np.array(some)[~(found.value <= SERVED)].tolist()
        return tuple(sorted(set(left)))

    def _run(self, oracle: Oracle | AcOracle, models: Population, values: Floats) -> Floats:
        asked = self._remaining(np.arange(models.size))
        looked = np.zeros(models.size, dtype=np.int64)
        for _ in range(_ROUNDS):
            if len(asked) == 0:
                return values
            self.rounds += 1
            asked, look = self._look(oracle, values, asked)
            looked[asked] = self.rounds
            short = ~(look.value <= SERVED)
            self._say(f"{oracle.words}, round {self.rounds}: {int(short.sum()):,} not served")
            # Where a solver gave up there is nothing to go by.
            self.gone.update(asked[~np.isfinite(look.value)].tolist())
            if short.any():
                self._cut_rounds += 1
                deep = self._deep and isinstance(oracle, Oracle)
                self._cut(values, asked[short], look.value[short], look.slope[short], deep)
                values = self._nearest()
                asked = self._remaining(asked[short])
                if len(asked):
                    continue
            everyone = self._remaining(np.arange(models.size))
            if not short.any() and len(asked) == len(everyone):
                return values
            asked = everyone
            if isinstance(oracle, AcOracle):
                # Those first that were not looked at for longest: the others were served just now.
                asked = everyone[np.argsort(looked[everyone], kind="stable")]
        raise Unsolved(f"Serving every model did not end within {_ROUNDS} rounds.")

    def _look(self, oracle: Oracle | AcOracle, values: Floats, asked: Ints) -> tuple[Ints, Look]:
        """Look at these models; if that takes long, at no more than are needed for some cuts."""
        at = _rounded(values, self.aim, self.rounding)
        dc = isinstance(oracle, Oracle)
        # In AC a point that was found serves on only if capacities alone change.
        many = dc or self.problem.public.parameters != ("capacity",)
        if many and len(self.problem.public.buses) <= _SMALL:
            return asked, oracle.at(at, asked)
        enough = _CUTS_AT_ONCE if dc else _AC_CUTS_AT_ONCE
        looks: list[Look] = []
        short = seen = 0
        while seen < len(asked) and short < enough:
            looks.append(oracle.at(at, asked[seen : seen + enough]))
            seen += len(looks[-1].value)
            short += int((~(looks[-1].value <= SERVED)).sum())
        value = np.concatenate([look.value for look in looks])
        return asked[:seen], Look(value, np.concatenate([look.slope for look in looks]))

    def _remaining(self, models: Ints) -> Ints:
        return models[~np.isin(models, list(self.gone))]

    def _nearest(self) -> Floats:
        """The values nearest to the aim behind the cuts; models are given up until there are."""
        while True:
            found = nearest(self.aim, self.cuts)
            if found is not None:
                return found
            lost = unreachable(self.aim, self.cuts)
            if not lost:
                raise Unsolved("The cuts of the models that can be served have no solution.")
            self.gone.update(lost)
            self.cuts = self.cuts.of(set(self.cuts.model) - self.gone)

    def _cut(self, values: Floats, models: Ints, short: Floats, slope: Floats, deep: bool) -> None:
        # Deepest first: how far the values are from the cut's plane.
        size = np.maximum(np.linalg.norm(slope, axis=1), 1e-12)
        order = np.argsort(-short / size, kind="stable")[:_CUTS_AT_ONCE]
        at = _rounded(values, self.aim, self.rounding)
        for place in order[np.isfinite(short[order])]:
            row = slope[place]
            spare = _SPARE + float(self._slip @ np.abs(row))
            bound = float(row @ at) - float(short[place]) - spare
            bound -= self._depth(row, bound) if deep else 0.0
            self.cuts.add(row, bound, int(models[place]))

    def _depth(self, row: Floats, bound: float) -> float:
        """How far behind a cut values lie on average, given that they lie behind it."""
        width = float(np.sqrt(row**2 @ (1 / self.aim.weight)))
        if width == 0:
            return 0.0
        away = (float(row @ self.aim.centre) - bound) / width
        hazard = float(np.exp(-(away**2) / 2 - _HALF_LOG_TWO_PI - log_ndtr(-away)))
        return width * max(hazard - away, 0.0)


def _with_reserve(models: Population, problem: ReleaseProblem, reserve: Floats) -> Population:
    if not reserve.any():
        return models
    lines = len(problem.public.branches)
    capacity = np.ones((models.size, lines)) if models.capacity is None else models.capacity
    return replace(models, capacity=capacity / (1 + reserve[:, None]))


def _rounded(values: Floats, aim: Aim, rounding: Rounding) -> Floats:
    """The values with so many decimals, in the box, and with the total that must be met."""
    found = np.clip(rounding(values), aim.low, aim.high)
    for total in aim.totals:
        if total.weight is None:
            found = _met(total, found, values, aim, rounding)
    return found


def _met(total: Total, rounded: Floats, values: Floats, aim: Aim, rounding: Rounding) -> Floats:
    """Round some entries the other way, so that the sum is as near to the total as it can be."""
    steps = rounding.step(len(values))
    # Those of one parameter, which all have the same decimals.
    step = float(steps[total.row == 1].min(initial=np.inf))
    short = round((total.goal - float(total.row @ rounded)) / step)
    other = rounding(rounded + np.sign(short) * steps)
    possible = (other >= aim.low) & (other <= aim.high) & (total.row == 1)
    # Those first that rounding moved furthest away from it.
    order = np.argsort((rounded - values) * np.sign(short), kind="stable")
    chosen = order[possible[order]][: abs(short)]
    found = rounded.copy()
    found[chosen] = other[chosen]
    return found
