"""Search for the nearest values that serve all models, by adding cuts.

A model that is not served gives a cut (from the slope of its shortfall, see `oracle` and
`ac_oracle`), and the least-squares problem is solved again (see `master`), until all models are
served or given up.

**Depth.** If weights are one over variances, values on the very edge of what serves a model are not
the best estimate: the real values serve the model, so they are likely behind the edge, by a
distance that can be computed. Let ``s`` be the deviation of the cut's sum and ``d`` the distance of
the aim from the cut in units of ``s``. Normal values that meet the cut lie ``s (h(d) - d)`` behind
it on average, where ``h`` is the hazard of the normal distribution: 0.8 ``s`` for an aim on the
edge, less for an aim further away. With `deep`, cuts are deeper by this (except cuts from AC, which
need not hold everywhere).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from gridveil.grid.model.release_problem import ReleaseProblem
from gridveil.grid.opf.fallbacks import PROOF
from gridveil.grid.restoration.ac_oracle import AcOracle
from gridveil.grid.restoration.master import Aim, Cuts, Unsolved, nearest, unreachable
from gridveil.grid.restoration.oracle import Look, Oracle
from gridveil.grid.restoration.rounding import Rounding, rounded

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# A model counts as served if its shortfall is at most this (MW): the engine proves a model with a
# larger shortfall infeasible.
SERVED = PROOF
# Cuts are this much deeper than needed, besides the room for rounding (MW).
_SPARE = 1e-4
_CUTS_AT_ONCE = 50
# Checking one model in AC takes as long as a hundred in DC, and models that fall short mostly need
# the same changes.
_AC_CUTS_AT_ONCE = 8
# Up to this many buses it is quick to check all models in DC and cut those furthest off.
_SMALL = 500
_HALF_LOG_TWO_PI = 0.5 * np.log(2 * np.pi)
_ROUNDS = 500


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
        if dc and len(self.problem.public.buses) <= _SMALL:
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
