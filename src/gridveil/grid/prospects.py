"""What an owner should know of a case before epsilon is spent on it: for the owner's eyes only.

It solves the real case. Nothing here is published, charged, or asked by a release.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from gridveil.grid.network import Network
from gridveil.grid.opf import solve_population
from gridveil.grid.population import sample_population

PLACEHOLDER = 9000.0
"""Ratings from here on (MW) are mostly placeholders for lines without a limit."""
_MODELS, _FEWER, _LARGE = 100, 20, 500


@dataclass(frozen=True)
class Prospects:
    """Whether a real case, and models sampled about it as a release does, have a solution.

    Parameters
    ----------
    case
        Whether the case has one as it is.
    models, served
        How many models were sampled, and how many of them have one.
    """

    case: bool
    models: int
    served: int

    @property
    def words(self) -> list[str]:
        """What the owner should know, a sentence each."""
        said = []
        if not self.case:
            said.append("The case has no solution as it is: no dispatch keeps to all limits.")
        if self.served == 0:
            said.append(
                f"None of {self.models:,} models that vary loads, limits and costs by 12.5% has a "
                "solution on this network: a release would spend epsilon, and could not be "
                "compared. Correct the case, or give models of your own (--population)."
            )
        else:
            said.append(
                f"{self.served:,} of {self.models:,} models that vary loads, limits and costs by "
                "12.5% have a solution on this network."
            )
        return said

    def to_json(self) -> dict[str, Any]:
        """The figures."""
        return asdict(self)


def prospects(network: Network) -> Prospects:
    """Solve a real case, and models sampled about it."""
    size = _MODELS if len(network.buses) <= _LARGE else _FEWER
    models = sample_population(network, size)
    case = bool(np.isfinite(solve_population(network).cost[0]))
    served = int(np.isfinite(solve_population(network, models).cost).sum())
    return Prospects(case, size, served)


def placeholder_words(network: Network) -> list[str]:
    """A proposal for ratings that are no limits."""
    rated = network.branches.capacity
    count = int((np.isfinite(rated) & (rated >= PLACEHOLDER)).sum())
    if not count:
        return []
    return [
        f"{count:,} branches have ratings of {PLACEHOLDER:,.0f} MW or more, which are often "
        "placeholders. If they are, and it is no secret which lines have one, release with "
        f"--unlimited-above {PLACEHOLDER:.0f}."
    ]
