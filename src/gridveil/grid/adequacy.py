"""Whether generation can match load in every model of a population, on public data only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from gridveil.grid.checks import Problem
from gridveil.grid.network import Floats, Network
from gridveil.grid.public import PublicNetwork


def inadequate(
    load: Floats | None,
    p_min: Floats | None,
    p_max: Floats | None,
    size: int,
    network: Network | PublicNetwork,
) -> Iterator[Problem]:
    """Models in which the generators of an island can't match its load, line limits aside.

    Parameters
    ----------
    load, p_min, p_max
        Multipliers of the models, or None where all are 1.
    size
        How many models.
    network
        The network; its loads and generator limits must be public.
    """
    whole: Any = network
    island = _islands(whole)
    buses, units = whole.buses, whole.generators
    demand = _by_island(load, buses.load, island)
    demand += _by_island(None, buses.shunt, island)
    place = np.where(units.in_service, island[units.bus], -1)
    most = _by_island(p_max, units.p_max, place, demand.shape[1])
    least = _by_island(p_min, units.p_min, place, demand.shape[1])
    slack = 1e-9 * (1 + np.abs(demand))
    for bad, what in (
        (most < demand - slack, "generators can't cover the load"),
        (least > demand + slack, "generators can't go down to the load"),
    ):
        for model, label in np.argwhere(np.broadcast_to(bad, (size, bad.shape[1]))):
            first = buses.name[int(np.flatnonzero(island == label)[0])]
            yield Problem(
                f"model {model}",
                f"island of bus {first}",
                what,
                "Leave the model out, or widen it.",
            )


def _islands(network: Any) -> Any:
    if isinstance(network, Network):
        return network.islands()
    blank = np.zeros(network.entries)
    return network.with_values(blank).islands()


def _by_island(
    factors: Floats | None, values: Floats, island: Any, count: int | None = None
) -> Floats:
    """Sums over islands, ``(models, islands)``; a single row where all models are alike."""
    width = int(island.max(initial=-1)) + 1 if count is None else count
    on = island >= 0
    member = np.zeros((int(on.sum()), width))
    member[np.arange(len(member)), island[on]] = 1
    scaled = values[on] if factors is None else factors[:, on] * values[on]
    total: Floats = np.atleast_2d(scaled @ member)
    return total
