"""Serve models in AC too, from values that serve them in DC.

The values are looked at first: if they serve the population and models drawn like it, they stay as
they are, to the bit. Else those models that fall short give cuts (see `ac`), and the values behind
these that are nearest to the aim are looked at again, in AC and DC in turns.

**Models never seen.** There is no margin in AC. Instead, models are drawn like the population and
looked at; those that fall short join it, and new ones are drawn, until none of these does or some
rounds are over. The last ones drawn had no part in the values, so how many of them are not served
says what to expect of others. All draws have a public seed.

**Near.** At first no entry may leave the box of one scale of its noise around where DC put it. A
drawn model that needs more is given up. For a model of the population the box is widened.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gridveil.grid.model.population import Population, sample_like, take
from gridveil.grid.model.problem import ReleaseProblem
from gridveil.grid.restoration.ac import AcOracle
from gridveil.grid.restoration.master import Aim
from gridveil.grid.restoration.oracle import Oracle
from gridveil.grid.restoration.search import SERVED, Search

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Public seed of the drawn models.
_SEED = 20_171_117
# Drawn at once, as many as there are models, but no more than these; and how often.
_DRAWN = 200
_DRAWS = 5
# Cuts lie so many scales of the noise behind the edge: there the real values are likelier, and
# models like those that fall short are served too.
_BEHIND = 0.3
# Boxes for it, in scales of the noise; rounding to a hundredth of a scale comes on top.
_WIDTHS = (0.95, 2.0, 4.0, np.inf)


@dataclass(frozen=True)
class Drawn:
    """The last models that were drawn: how many, and how many of them are not served."""

    models: int
    not_served: int


def serve_in_ac(search: Search, dc: Oracle, noise: Floats) -> Drawn:
    """Go on with a search that serves its models in DC until they are served in AC as well.

    Parameters
    ----------
    search
        Its values serve the population in DC.
    dc
        What the population asks in DC, with its margin.
    noise
        The scale of each entry's noise.
    """
    own = search.problem.models.size
    models, draws = _drawn(search.problem)
    ac, whole, start = AcOracle(search.problem, models), search.aim, search.values
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
    """The aim in a box around values, on the grid of released ones."""
    low = np.maximum(aim.low, search.rounding(values - room))
    high = np.minimum(aim.high, search.rounding(values + room))
    return replace(aim, low=low, high=high)


def _drawn(problem: ReleaseProblem) -> tuple[Population, list[Ints]]:
    """The models of the population and others drawn like it, and the places of each draw."""
    own, public = problem.models, problem.public
    size = min(own.size, _DRAWN)
    drawn = sample_like(own, public, size * _DRAWS, seed=_SEED)
    # Without those in which generation is too little whatever lines can carry, if that is public.
    short = {found.element for found in drawn.problems(public)}
    kept = np.array([k for k in range(drawn.size) if f"model {k}" not in short], dtype=np.int64)
    drawn = take(drawn, kept)
    arrays = {
        name: np.concatenate([array, drawn.arrays()[name]]) for name, array in own.arrays().items()
    }
    models = Population(own.size + drawn.size, private=own.private, **arrays)
    return models, np.array_split(own.size + np.arange(drawn.size), _DRAWS)
