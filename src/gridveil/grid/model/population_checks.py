"""Whether the models of a population fit a network, on public data only.

Their shapes, their values, and whether generation can match load.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from gridveil.grid.model.checks import Problem
from gridveil.grid.model.network import Bools, Floats, Network
from gridveil.grid.model.public_network import PublicNetwork


def misshapen(
    arrays: Mapping[str, Floats],
    tables: Mapping[str, str],
    size: int,
    network: Network | PublicNetwork,
) -> Iterator[Problem]:
    """Arrays of a population that do not have a row per model and a column per element."""
    for name, array in arrays.items():
        wanted = (size, len(getattr(network, tables[name])))
        if array.shape != wanted:
            yield Problem(
                name,
                f"shape {array.shape}",
                f"it does not match {wanted[0]} models and {wanted[1]} {tables[name]}",
                "Give one row per model and one column per element.",
            )


def unusable(arrays: Mapping[str, Floats], private: Sequence[str]) -> Iterator[Problem]:
    """Arrays of a population that hold what no model can have."""
    hidden = "load" in private
    for name, array in arrays.items():
        bad = ~np.isfinite(array)
        # A load that is public may be one at some times, and feed in at others.
        signed = name == "cost" or (name == "load" and private and not hidden)
        if not signed:
            bad |= array < 0
        rows = np.unique(np.argwhere(bad)[:, 0])
        if len(rows):
            yield Problem(
                name,
                f"{len(rows)} models, the first is {rows[0]}",
                "it holds numbers that are missing, infinite or negative"
                if not signed
                else "it holds numbers that are missing or infinite",
                "Correct or leave out these models.",
            )


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
        Multipliers of the models, or None if all are 1.
    size
        How many models.
    network
        The network; its loads and generator limits must be public.
    """
    island = _islands(network)
    short, over = _unmatched(load, p_min, p_max, network, network, island)
    for bad, what in (
        (short, "generators can't cover the load"),
        (over, "generators can't go down to the load"),
    ):
        for model, label in np.argwhere(np.broadcast_to(bad, (size, bad.shape[1]))):
            first = network.buses.name[int(np.flatnonzero(island == label)[0])]
            yield Problem(
                f"model {model}",
                f"island of bus {first}",
                what,
                "Leave the model out, or widen it.",
            )


def hopeless(
    load: Floats | None, p_min: Floats | None, p_max: Floats | None, low: Network, high: Network
) -> Bools:
    """Models in which no values between those of two networks let generation match load.

    Parameters
    ----------
    load, p_min, p_max
        Multipliers of the models, or None if all are 1.
    low, high
        The network with every private value at the lower, and at the upper end of its range.

    Returns
    -------
    One answer per model; a single one if all models are alike.
    """
    # Limits may be infinite, and then nothing is hopeless.
    with np.errstate(invalid="ignore"):
        short, over = _unmatched(load, p_min, p_max, low, high, low.islands())
    return np.asarray((short | over).any(axis=1))


def _unmatched(
    load: Floats | None,
    p_min: Floats | None,
    p_max: Floats | None,
    low: Any,
    high: Any,
    island: Any,
) -> tuple[Bools, Bools]:
    """Islands whose generators can't cover the load, or can't go down to it, in each model.

    The least load and lower limits are those of `low`, the most load and upper limits of `high`.
    """
    shunt = _by_island(None, low.buses.shunt, island)
    needed, welcome = (_by_island(load, one.buses.load, island) + shunt for one in (low, high))
    place = np.where(low.generators.in_service, island[low.generators.bus], -1)
    most = _by_island(p_max, high.generators.p_max, place, needed.shape[1])
    least = _by_island(p_min, low.generators.p_min, place, needed.shape[1])
    return (
        most < needed - 1e-9 * (1 + np.abs(needed)),
        least > welcome + 1e-9 * (1 + np.abs(welcome)),
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
