"""What is public of the elements of a network, by which an owner selects some of them.

Names, voltages, areas, whether a branch is a transformer: nothing is made from a private value.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridveil.grid.io import Source, module_of


def public_facts(network: Any, table: str) -> dict[str, NDArray[Any]]:
    """What is public of every element: nothing that is or was made from a private value.

    It takes a `Network`, or a `PublicNetwork`: both have the columns that are read.
    """
    names = np.array(network.buses.name, dtype=object)
    found: dict[str, NDArray[Any]] = {"name": np.array(getattr(network, table).name, dtype=object)}
    buses = _of_buses(network)
    if table == "branches":
        lines = network.branches
        ends = lines.from_bus, lines.to_bus
        found |= {"from": names[ends[0]], "to": names[ends[1]]}
        changes = (lines.tap != 1) | (lines.shift != 0)
        if "voltage" in buses:
            one, other = (buses["voltage"][end] for end in ends)
            # A transformer by its higher side.
            found["voltage"] = np.maximum(one, other)
            changes = changes | (one != other)
        found["kind"] = np.where(changes, "transformer", "line").astype(object)
        return found
    if table == "generators":
        place = network.generators.bus
        return found | {"bus": names[place]} | {name: one[place] for name, one in buses.items()}
    return found | buses


def _of_buses(network: Any) -> dict[str, NDArray[Any]]:
    """Voltages (kV), areas and zones, if the source of the network has them."""
    source = network.source
    if not isinstance(source, Source):
        return {}
    found = module_of(source.kind).bus_facts(source.data)
    return {name: one for name, one in found.items() if len(one) == len(network.buses)}
