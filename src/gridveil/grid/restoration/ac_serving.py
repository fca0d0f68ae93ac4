"""Move values that serve all models in DC until they serve them in AC too.

The values are checked first: if they serve the population and models drawn like it, they stay
exactly as they are. Otherwise the models that fall short give cuts (see `ac_oracle`), and the
values nearest to the aim behind these cuts are checked again, in AC and DC in turn.

**Models outside the population.** There is no margin in AC. Instead, models are drawn like the
population and checked; those that fall short are added, and new ones are drawn, until none of them
falls short or the rounds are used up. The last models drawn did not influence the values, so the
share of them that is not served says what to expect of other models. All draws have a public seed.

**Staying near.** At first every entry must stay within one scale of its noise around its DC value.
A drawn model that needs more is given up. For a model of the population the box is widened.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gridveil.grid.model.population import Population, take
from gridveil.grid.model.release_problem import ReleaseProblem
from gridveil.grid.model.sampling import sample_like
from gridveil.grid.opf.outages import Contingencies
from gridveil.grid.restoration.ac_oracle import AcOracle
from gridveil.grid.restoration.master import Aim
from gridveil.grid.restoration.oracle import Oracle
from gridveil.grid.restoration.project import SERVED, Drawn, InDc, Search, Served

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Public seed of the drawn models.
_SEED = 20_171_117
# Each draw has as many models as the population, but at most this many; and the number of draws.
_DRAWN = 200
_DRAWS = 5
# Cuts are deeper than needed by this many scales of the noise: the real values are likelier there,
# and models similar to those that fall short are served too.
_BEHIND = 0.3
# Half widths of the boxes, in scales of the noise; rounding may add a hundredth of a scale.
_WIDTHS = (0.95, 2.0, 4.0, np.inf)


def serve_in_ac(found: InDc, noise: Floats) -> Served:
    """Continue a search whose values serve all models in DC until they serve them in AC as well.

    Parameters
    ----------
    found
        The search, and the outages that every model's dispatch must survive in AC too.
    noise
        The scale of each entry's noise.
    """
    problem = found.search.problem
    if problem.curvature < 0:
        return found.served
    drawn = _continued(found.search, found.oracle, noise, found.contingencies)
    in_ac = AcOracle(problem, problem.models, found.contingencies)
    return replace(found.outcome(found.asking(problem.models), in_ac), drawn=drawn)


def _continued(
    search: Search, dc: Oracle, noise: Floats, contingencies: Contingencies | None
) -> Drawn:
    """Add cuts of AC and of `dc`, the population's shortfalls with the margin, in turn."""
    own = search.problem.models.size
    models, draws = _drawn(search.problem)
    ac = AcOracle(search.problem, models, contingencies)
    whole, start = search.aim, search.values
    known, widths = np.arange(own), iter(_WIDTHS)
    search.deep, search.lost, search.behind = False, set(), _BEHIND * noise
    search.aim = _around(start, next(widths) * noise, whole, search)
    for draw, some in enumerate(draws, 1):
        while True:
            while search.run(ac, known) and search.run(dc, known[known < own]):
                pass
            tight = {model for model in search.lost if model < own}
            width = next(widths, None) if tight else None
            if width is None:
                break
            search.gone -= tight
            search.lost -= tight
            search.aim = _around(start, width * noise, whole, search)
        look = ac.at(search.released, some)
        short = ~(look.value <= SERVED)
        found = Drawn(len(some), int(short.sum()))
        more = some[short & np.isfinite(look.value)]
        if len(more) == 0 or draw == len(draws):
            break
        known = np.concatenate([known, more])
    return found


def _around(values: Floats, room: Floats, aim: Aim, search: Search) -> Aim:
    """Restrict the aim's box to the neighbourhood of some values, with rounded ends."""
    low = np.maximum(aim.low, search.rounding(values - room))
    high = np.minimum(aim.high, search.rounding(values + room))
    return replace(aim, low=low, high=high)


def _drawn(problem: ReleaseProblem) -> tuple[Population, list[Ints]]:
    """Draw models like the population's; return all models, and the places of each draw."""
    own, public = problem.models, problem.public
    size = min(own.size, _DRAWN)
    drawn = sample_like(own, public, size * _DRAWS, seed=_SEED)
    # Leave out models that public data shows to have too little generation for any capacities.
    short = {found.element for found in drawn.problems(public)}
    kept = np.array([k for k in range(drawn.size) if f"model {k}" not in short], dtype=np.int64)
    drawn = take(drawn, kept)
    arrays = {
        name: np.concatenate([array, drawn.arrays()[name]]) for name, array in own.arrays().items()
    }
    models = Population(own.size + drawn.size, private=own.private, **arrays)
    return models, np.array_split(own.size + np.arange(drawn.size), _DRAWS)
