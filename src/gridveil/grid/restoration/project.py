"""Find the values nearest to an aim that serve every model of a population.

Whether values serve a model is a question about released and public data, so asking it for every
model costs no epsilon. The values are projected onto the set that serves every model (see
`search`). The set is convex, so this ends at the nearest point.

**Margin.** During the projection every line keeps a share of its capacity in reserve, so that
models outside the population are served too. Values that serve a model with smaller capacities
also serve it with larger ones, so the population itself is served as well.

**AC.** On request, models must be served in AC too (see `ac_serving`).

**Outages.** On request, one dispatch of a model must also survive every listed outage: these are
more limits in the same shortfall (see `opf/outages`), which stays convex. In AC too, if both are
asked for.

**Depth.** With `deep`, values go behind the edge of what serves a model (see `search`). If that
leaves more models without service or margin than cuts on the edge do, the latter are used.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gridveil.grid.model.population import Population
from gridveil.grid.model.release_problem import ReleaseProblem
from gridveil.grid.opf.outages import Contingencies
from gridveil.grid.restoration.ac_oracle import AcOracle
from gridveil.grid.restoration.ac_serving import Drawn, serve_in_ac
from gridveil.grid.restoration.master import Aim, Cuts, Unsolved, nearest
from gridveil.grid.restoration.oracle import Oracle
from gridveil.grid.restoration.rounding import Rounding, rounded
from gridveil.grid.restoration.search import SERVED, Search

Floats = NDArray[np.float64]


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


def serve(
    aim: Aim,
    problem: ReleaseProblem,
    *,
    margin: float,
    decimals: ArrayLike,
    unit: ArrayLike = 1.0,
    deep: bool = False,
    ac: Floats | None = None,
    contingencies: Contingencies | None = None,
    progress: Callable[[str], None] | None = None,
) -> Served:
    """Project the aim onto the values that serve every model.

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
        Whether to deepen cuts (see `search`): the aim's weights must be one over variances.
    ac
        The scale of each entry's noise, to serve every model in AC too; None for DC alone.
    contingencies
        Outages that every model's dispatch must survive, in DC and, if asked for, in AC.
    progress
        Called with progress messages.

    Raises
    ------
    Unsolved
        If a solver gave up on a public problem.
    """
    say = progress or (lambda words: None)
    rounding = Rounding(decimals, unit)
    if problem.curvature < 0:
        # Only costs are released, and these have no influence on feasibility.
        values = nearest(aim, Cuts(len(aim.centre)))
        assert values is not None
        return Served(rounded(values, aim, rounding), 0, (), 1, 0)
    found = None
    if deep:
        with suppress(Unsolved):
            found = _InDc(Search(aim, problem, rounding, say, deep=True), contingencies, margin)
    if found is None or found.served.short:
        plain = _InDc(Search(aim, problem, rounding, say, deep=False), contingencies, margin)
        if found is None or plain.served.short < found.served.short:
            found = plain
    return found.served if ac is None else found.served_in_ac(ac)


class _InDc:
    """Values that serve the models in DC, with the margin for those that can have it."""

    def __init__(self, search: Search, contingencies: Contingencies | None, margin: float) -> None:
        models = search.problem.models
        self._search = search
        self._contingencies = contingencies
        self._reserve = np.full(models.size, margin)
        self._margin = margin
        while True:
            self._oracle = self._asking(_with_reserve(models, search.problem, self._reserve))
            search.run(self._oracle, np.arange(models.size))
            # Try again without the margin for the models that can't have it.
            tight = [model for model in sorted(search.gone) if self._reserve[model]]
            if not tight:
                break
            self._reserve[tight] = 0.0
            search.gone.difference_update(tight)
        self.served = self._served(self._asking(models))

    def served_in_ac(self, noise: Floats) -> Served:
        """Continue until the models are served in AC too."""
        problem = self._search.problem
        drawn = serve_in_ac(self._search, self._oracle, noise, self._contingencies)
        in_ac = AcOracle(problem, problem.models, self._contingencies)
        oracles = self._asking(problem.models), in_ac
        return replace(self._served(*oracles), drawn=drawn)

    def _asking(self, models: Population) -> Oracle:
        return Oracle.of_shortfalls(self._search.problem, models, self._contingencies)

    def _served(self, *oracles: Oracle | AcOracle) -> Served:
        search, own = self._search, self._search.problem.models.size
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
