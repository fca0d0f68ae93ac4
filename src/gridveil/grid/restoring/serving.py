"""The nearest values that serve every model of a population.

Whether values serve a model is a question about released and public data, so it costs nothing to
ask for all of them. The values are projected onto the set that serves every model: a model that
is not served gives a cut (the slope of its shortfall, see `oracle`), the least-squares problem is
solved again, until all are served. The set is convex, so this ends at the nearest point.

**Margin.** Every line keeps a share of its capacity in reserve while this is done, so that models
which were not in the population are served too. Values that serve a model with smaller capacities
serve it with larger ones, so the population itself is served all the more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gridveil.grid.parameters import Problem
from gridveil.grid.population import Population
from gridveil.grid.restoring.master import Aim, Cuts, Total, Unsolved, nearest, unreachable
from gridveil.grid.restoring.oracle import Oracle
from gridveil.grid.restoring.rounding import Rounding
from gridveil.grid.solving.ladder import PROOF

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# A model counts as served where it falls short by less than this (MW): the engine proves one that
# falls short by more to be infeasible.
SERVED = PROOF
# Cuts keep this much more than is needed, beside what rounding may take away (MW).
_SPARE = 1e-4
_CUTS_AT_ONCE = 50
_ROUNDS = 200


@dataclass(frozen=True, eq=False)
class Served:
    """Values that serve the models, rounded.

    Parameters
    ----------
    values
        One number an entry.
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


def serve(
    aim: Aim,
    problem: Problem,
    *,
    margin: float,
    decimals: ArrayLike,
    unit: ArrayLike = 1.0,
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

    Raises
    ------
    Unsolved
        Where a solver gave up on a public problem.
    """
    say = progress or (lambda words: None)
    models, rounding = problem.models, Rounding(decimals, unit)
    if problem.curvature < 0:
        # Costs decide nothing about feasibility.
        values = nearest(aim, Cuts(len(aim.centre)))
        assert values is not None
        return Served(_rounded(values, aim, rounding), 0, (), 1, 0)
    search = _Search(aim, problem, rounding, say)
    reserve = np.full(models.size, margin)
    values = search.run(_with_reserve(models, problem, reserve), search.first())
    while tight := [model for model in sorted(search.gone) if reserve[model]]:
        # Once more, without the margin for those that can't have it.
        reserve[tight] = 0.0
        search.gone.difference_update(tight)
        values = search.run(_with_reserve(models, problem, reserve), values)
    values = _rounded(values, aim, rounding)
    unserved = _short(problem, values, sorted(search.gone))
    bare = 0 if margin == 0 else int((reserve == 0).sum()) - len(unserved)
    return Served(values, bare, unserved, search.rounds, len(search.cuts))


def _short(problem: Problem, values: Floats, some: list[int]) -> tuple[int, ...]:
    """Those of some models that values do not serve."""
    if not some:
        return ()
    look = Oracle.of_shortfalls(problem, problem.models).at(values, np.array(some))
    return tuple(np.array(some)[~(look.value <= SERVED)].tolist())


class _Search:
    def __init__(
        self, aim: Aim, problem: Problem, rounding: Rounding, say: Callable[[str], None]
    ) -> None:
        self.cuts = Cuts(len(aim.centre))
        self.gone: set[int] = set()
        self.rounds = 0
        self._aim = aim
        self._private = problem
        self._rounding = rounding
        self._say = say
        # Rounding moves a value by up to half a step, or a whole one where a total must be met:
        # cuts leave room for it.
        held = any(total.weight is None for total in aim.totals)
        self._slip = (1.0 if held else 0.5) * rounding.step(len(aim.centre))

    def first(self) -> Floats:
        """The values nearest to the aim in the box."""
        values = nearest(self._aim, self.cuts)
        if values is None:
            raise Unsolved("No values in the public range add up to the published total.")
        return values

    def run(self, models: Population, values: Floats) -> Floats:
        """Add cuts of these models until all are served, but for those that can't be (`gone`)."""
        oracle = Oracle.of_shortfalls(self._private, models)
        asked = self._remaining(np.arange(models.size))
        for _ in range(_ROUNDS):
            if len(asked) == 0:
                return values
            self.rounds += 1
            look = oracle.at(_rounded(values, self._aim, self._rounding), asked)
            short = ~(look.value <= SERVED)
            self._say(f"serving every model, round {self.rounds}: {int(short.sum()):,} not served")
            # Where a solver gave up there is nothing to go by.
            self.gone.update(asked[~np.isfinite(look.value)].tolist())
            if short.any():
                self._cut(values, asked[short], look.value[short], look.slope[short])
                values = self._nearest()
                asked = self._remaining(asked[short])
                if len(asked):
                    continue
            everyone = self._remaining(np.arange(models.size))
            if not short.any() and len(asked) == len(everyone):
                return values
            asked = everyone
        raise Unsolved(f"Serving every model did not end within {_ROUNDS} rounds.")

    def _remaining(self, models: Ints) -> Ints:
        return models[~np.isin(models, list(self.gone))]

    def _nearest(self) -> Floats:
        """The values nearest to the aim behind the cuts; models are given up until there are."""
        while True:
            found = nearest(self._aim, self.cuts)
            if found is not None:
                return found
            lost = unreachable(self._aim, self.cuts)
            if not lost:
                raise Unsolved("The cuts of the models that can be served have no solution.")
            self.gone.update(lost)
            self.cuts = self.cuts.of(set(self.cuts.model) - self.gone)

    def _cut(self, values: Floats, models: Ints, short: Floats, slope: Floats) -> None:
        # Deepest first: how far the values are from the cut's plane.
        size = np.maximum(np.linalg.norm(slope, axis=1), 1e-12)
        order = np.argsort(-short / size, kind="stable")[:_CUTS_AT_ONCE]
        at = _rounded(values, self._aim, self._rounding)
        for place in order[np.isfinite(short[order])]:
            row = slope[place]
            spare = _SPARE + float(self._slip @ np.abs(row))
            bound = float(row @ at) - float(short[place]) - spare
            self.cuts.add(row, bound, int(models[place]))


def _with_reserve(models: Population, problem: Problem, reserve: Floats) -> Population:
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
