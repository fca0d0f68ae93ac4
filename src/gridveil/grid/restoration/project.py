"""Find the values nearest to an aim that serve every model of a population, by adding cuts.

Whether values serve a model is a question about released and public data, so asking it for every
model costs no epsilon. A model that is not served gives a cut (from the slope of its shortfall, see
`oracle` and `ac_oracle`), and the least-squares problem is solved again (see `master`), until all
models are served or given up. The set that serves every model is convex, so this ends at the
nearest point of it.

**Margin.** During the projection every line keeps a share of its capacity in reserve, so that
models outside the population are served too. Values that serve a model with smaller capacities
also serve it with larger ones, so the population itself is served as well.

**Outages.** On request, one dispatch of a model must also survive every listed outage: these are
more limits in the same shortfall (see `opf/outages`), which stays convex.

**Depth.** If weights are one over variances, values on the very edge of what serves a model are not
the best estimate: the real values serve the model, so they are likely behind the edge, by a
distance that can be computed. Let ``s`` be the deviation of the cut's sum and ``d`` the distance of
the aim from the cut in units of ``s``. Normal values that meet the cut lie ``s (h(d) - d)`` behind
it on average, where ``h`` is the hazard of the normal distribution: 0.8 ``s`` for an aim on the
edge, less for an aim further away. With `deep`, cuts are deeper by this (except cuts from AC, which
need not hold everywhere). If that leaves more models without service or margin than cuts on the
edge do, the latter are used.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_ndtr

from gridveil.grid.model.population import Population
from gridveil.grid.model.release_problem import ReleaseProblem
from gridveil.grid.opf.fallbacks import PROOF
from gridveil.grid.opf.outages import Contingencies
from gridveil.grid.restoration.ac_oracle import AcOracle
from gridveil.grid.restoration.master import Aim, Cuts, Unsolved, nearest, unreachable
from gridveil.grid.restoration.oracle import LARGE, Look, Oracle
from gridveil.grid.restoration.rounding import Rounding, rounded

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# A model counts as served if its shortfall is at most this (MW): the engine proves a model with a
# larger shortfall infeasible.
SERVED = PROOF
# Cuts are this much deeper than needed, besides the room for rounding (MW).
_SPARE = 1e-4
# On a large network a model that is not served takes fifty times as long as one that is, and the
# cuts of a few serve most others: it begins with so few, and twice as many after so many rounds.
_CUTS_AT_ONCE, _FEWEST_CUTS, _DOUBLED_AFTER = 50, 4, 8
# Checking one model in AC takes as long as a hundred in DC, and models that fall short mostly need
# the same changes.
_AC_CUTS_AT_ONCE = 8
# Up to this many buses it is quick to check all models in DC and cut those furthest off.
_SMALL = 500
_HALF_LOG_TWO_PI = 0.5 * np.log(2 * np.pi)
_ROUNDS = 500


@dataclass(frozen=True)
class Drawn:
    """The last models that were drawn: how many, and how many of them are not served."""

    models: int
    not_served: int


@dataclass(frozen=True, eq=False)
class Served:
    """Rounded values that serve the models, and how many models they do not serve.

    Parameters
    ----------
    values
        One number per entry.
    without_margin
        How many models are served, but not with the margin.
    unserved
        Models that no values in the public box could serve, alone or together with the others.
    rounds, cuts
        How often models were checked, and how many cuts there were at the end.
    drawn
        Models drawn like the population that were checked in AC.
    """

    values: Floats
    without_margin: int
    unserved: tuple[int, ...]
    rounds: int
    cuts: int
    drawn: Drawn | None = None

    @property
    def short(self) -> int:
        """How many models are not served, or not with the margin."""
        return len(self.unserved) + self.without_margin


def in_dc(
    aim: Aim,
    problem: ReleaseProblem,
    *,
    margin: float,
    decimals: ArrayLike,
    unit: ArrayLike = 1.0,
    deep: bool = False,
    contingencies: Contingencies | None = None,
    progress: Callable[[str], None] | None = None,
) -> InDc:
    """Project the aim onto the values that serve every model in DC.

    With deep cuts if asked for, and with cuts on the edge if these serve more models.

    Parameters
    ----------
    aim
        The values to stay near, and how much each counts.
    problem
        What is released, with the public network and the population.
    margin
        The reserve: every capacity is divided by one plus this.
    decimals
        How many decimals released values have: one number, or one for each entry.
    unit
        The unit of the entries (see `scaled`); decimals are those of MW and $/MWh.
    deep
        Whether to deepen cuts: the aim's weights must be one over variances.
    contingencies
        Outages that every model's dispatch must survive.
    progress
        Called with progress messages.

    Raises
    ------
    Unsolved
        If a solver gave up on a public problem.
    """
    rounding, say = Rounding(decimals, unit), progress or (lambda words: None)
    found = None
    if deep:
        with suppress(Unsolved):
            found = InDc(Search(aim, problem, rounding, say, deep=True), contingencies, margin)
    if found is None or found.served.short:
        plain = InDc(Search(aim, problem, rounding, say, deep=False), contingencies, margin)
        if found is None or plain.served.short < found.served.short:
            found = plain
    return found


def serve(aim: Aim, problem: ReleaseProblem, **how: Any) -> Served:
    """Project the aim onto the values that serve every model, and return these; see `in_dc`."""
    return in_dc(aim, problem, **how).served


class InDc:
    """Values that serve the models in DC, with the margin for those that can have it."""

    def __init__(self, search: Search, contingencies: Contingencies | None, margin: float) -> None:
        models = search.problem.models
        self.search = search
        self.contingencies = contingencies
        self._reserve = np.full(models.size, margin)
        self._margin = margin
        if search.problem.curvature < 0:
            # Only costs are released, and these have no influence on feasibility.
            self.served = Served(search.released, 0, (), 1, 0)
            return
        while True:
            self.oracle = self.asking(_with_reserve(models, search.problem, self._reserve))
            search.run(self.oracle, np.arange(models.size))
            # Try again without the margin for the models that can't have it.
            tight = [model for model in sorted(search.gone) if self._reserve[model]]
            if not tight:
                break
            self._reserve[tight] = 0.0
            search.gone.difference_update(tight)
        self.served = self.outcome(self.asking(models))

    def asking(self, models: Population) -> Oracle:
        """The shortfalls of these models, with the outages."""
        return Oracle.of_shortfalls(self.search.problem, models, self.contingencies)

    def outcome(self, *oracles: Oracle | AcOracle) -> Served:
        """The values that were found, and which models these oracles say are not served."""
        search, own = self.search, self.search.problem.models.size
        values = search.released
        # Some models that were given up may be served, since others were given up too.
        gone = np.array(sorted(model for model in search.gone if model < own), dtype=np.int64)
        short = np.zeros(len(gone), dtype=bool)
        for oracle in oracles if len(gone) else ():
            short |= ~(oracle.at(values, gone).value <= SERVED)
        unserved = tuple(gone[short].tolist())
        bare = 0 if self._margin == 0 else int((np.delete(self._reserve, unserved) == 0).sum())
        return Served(values, bare, unserved, search.rounds, len(search.cuts))


def _with_reserve(models: Population, problem: ReleaseProblem, reserve: Floats) -> Population:
    if not reserve.any():
        return models
    lines = len(problem.public.branches)
    capacity = np.ones((models.size, lines)) if models.capacity is None else models.capacity
    return replace(models, capacity=capacity / (1 + reserve[:, None]))


class Search:
    """The values and cuts of one search.

    Parameters
    ----------
    aim
        The values to stay near, and how much each counts.
    problem
        What is released, with the public network and the population.
    rounding
        The decimals of released values.
    say
        Called with progress messages.
    deep
        Whether cuts from DC are deepened (see the module).
    """

    def __init__(
        self,
        aim: Aim,
        problem: ReleaseProblem,
        rounding: Rounding,
        say: Callable[[str], None],
        *,
        deep: bool,
    ) -> None:
        self.cuts = Cuts(len(aim.centre))
        self.gone: set[int] = set()
        """Models that were given up."""
        self.lost: set[int] = set()
        """Those given up because their cuts can't be met in the box; a wider box may help."""
        self.rounds = self.cut_rounds = 0
        self.aim = aim
        self.problem = problem
        self.rounding = rounding
        self.deep = deep
        self.behind = np.zeros(len(aim.centre))
        """For each entry, by how much a cut is deepened if only that entry appears in it."""
        self._say = say
        # Rounding moves a value by up to half a step, or a whole step if a total must be met:
        # cuts leave room for it.
        held = any(total.weight is None for total in aim.totals)
        self._slip = (1.0 if held else 0.5) * rounding.step(len(aim.centre))
        values = nearest(aim, self.cuts)
        if values is None:
            raise Unsolved("No values in the public range add up to the published total.")
        self.values = values

    @property
    def released(self) -> Floats:
        """The values as they would be released."""
        return rounded(self.values, self.aim, self.rounding)

    def run(self, oracle: Oracle | AcOracle, models: Ints) -> bool:
        """Add cuts until all these models are served, except those that can't be (`gone`).

        Returns False if all were served at once, so that the values did not change.
        """
        asked, before = self.remaining(models), self.cut_rounds
        looked = dict.fromkeys(models.tolist(), 0)
        for _ in range(_ROUNDS):
            if len(asked) == 0:
                return self.cut_rounds > before
            self.rounds += 1
            asked, look = self._look(oracle, asked)
            looked.update(dict.fromkeys(asked.tolist(), self.rounds))
            short = ~(look.value <= SERVED)
            self._say(f"{oracle.words}, round {self.rounds}: {int(short.sum()):,} not served")
            # Without a finite shortfall there is no cut to add: give the model up.
            self.gone.update(asked[~np.isfinite(look.value)].tolist())
            if short.any():
                self.cut_rounds += 1
                deep = self.deep and isinstance(oracle, Oracle)
                self._cut(asked[short], look.value[short], look.slope[short], deep)
                self.values = self._nearest()
                asked = self.remaining(asked[short])
                if len(asked):
                    continue
            everyone = self.remaining(models)
            if not short.any() and len(asked) == len(everyone):
                return self.cut_rounds > before
            asked = everyone
            if isinstance(oracle, AcOracle):
                # Start with the models checked longest ago: the others were served just now.
                age = np.array([looked[model] for model in everyone.tolist()])
                asked = everyone[np.argsort(age, kind="stable")]
        raise Unsolved(f"Serving every model did not end within {_ROUNDS} rounds.")

    def remaining(self, models: Ints) -> Ints:
        """Leave out the models that were given up."""
        return models[~np.isin(models, list(self.gone))]

    def _look(self, oracle: Oracle | AcOracle, asked: Ints) -> tuple[Ints, Look]:
        """Compute shortfalls of these models; if that is slow, stop at enough of them for cuts."""
        at = self.released
        dc = isinstance(oracle, Oracle)
        buses = len(self.problem.public.buses)
        if dc and buses <= _SMALL:
            return asked, oracle.at(at, asked)
        enough = _CUTS_AT_ONCE if dc else _AC_CUTS_AT_ONCE
        if dc and buses > LARGE:
            few = _FEWEST_CUTS * 2 ** (self.cut_rounds // _DOUBLED_AFTER)
            enough = min(few, enough)
        looks: list[Look] = []
        short = seen = 0
        while seen < len(asked) and short < enough:
            looks.append(oracle.at(at, asked[seen : seen + enough]))
            seen += len(looks[-1].value)
            short += int((~(looks[-1].value <= SERVED)).sum())
        value = np.concatenate([look.value for look in looks])
        return asked[:seen], Look(value, np.concatenate([look.slope for look in looks]))

    def _nearest(self) -> Floats:
        """Find the nearest values that meet the cuts, giving up models until there are some."""
        while True:
            found = nearest(self.aim, self.cuts)
            if found is not None:
                return found
            lost = self._unreachable()
            if not lost:
                raise Unsolved("The cuts of the models that can be served have no solution.")
            self.gone.update(lost)
            self.lost.update(lost)
            self.cuts = self.cuts.of(set(self.cuts.model) - self.gone)

    def _unreachable(self) -> list[int]:
        """Choose models to give up; drawn models go before models of the population."""
        lost = unreachable(self.aim, self.cuts)
        own = {model for model in self.cuts.model if model < self.problem.models.size}
        drawn = sorted(set(self.cuts.model) - own)
        if own & set(lost) and drawn and nearest(self.aim, self.cuts.of(own)) is not None:
            return [model for model in drawn if model in lost] or drawn
        return lost

    def _cut(self, models: Ints, short: Floats, slope: Floats, deep: bool) -> None:
        # Deepest cuts first, by the distance of the values from the cut's plane.
        size = np.maximum(np.linalg.norm(slope, axis=1), 1e-12)
        order = np.argsort(-short / size, kind="stable")[:_CUTS_AT_ONCE]
        at = self.released
        for place in order[np.isfinite(short[order])]:
            row = slope[place]
            spare = _SPARE + float(self._slip @ np.abs(row) + np.linalg.norm(self.behind * row))
            bound = float(row @ at) - float(short[place]) - spare
            bound -= self._depth(row, bound) if deep else 0.0
            self.cuts.add(row, bound, int(models[place]))

    def _depth(self, row: Floats, bound: float) -> float:
        """Compute how far behind a cut values lie on average, given that they meet it."""
        width = float(np.sqrt(row**2 @ (1 / self.aim.weight)))
        if width == 0:
            return 0.0
        away = (float(row @ self.aim.centre) - bound) / width
        hazard = float(np.exp(-(away**2) / 2 - _HALF_LOG_TWO_PI - log_ndtr(-away)))
        return width * max(hazard - away, 0.0)
