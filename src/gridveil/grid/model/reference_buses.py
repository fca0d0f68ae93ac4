"""What a reader decides on its own, and says so: reference buses, branches without reactance."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gridveil.grid.model.network import Network


def with_references(network: Network) -> Network:
    """The network with a reference bus in every island, and a note where one was chosen.

    The bus of the island's first generator is taken, or its first bus. Which bus it is changes
    angles only, neither flows nor costs.
    """
    island = network.islands()
    buses, units = network.buses, network.generators
    reference = buses.reference & buses.in_service
    without = np.setdiff1d(island[island >= 0], island[reference])
    notes = _without_reactance(network)
    for label in without:
        places = np.flatnonzero(island == label)
        running = units.bus[units.in_service & (island[units.bus] == label)]
        chosen = running[0] if len(running) else places[0]
        reference[chosen] = True
        notes.append(
            f"bus {buses.name[chosen]} is the reference of an island of {len(places):,} "
            "buses that had none"
        )
    return replace(
        network,
        buses=replace(buses, reference=reference),
        notes=(*network.notes, *notes),
    )


def _without_reactance(network: Network) -> list[str]:
    lines = network.branches
    found = np.flatnonzero(lines.in_service & (lines.reactance == 0) & (lines.resistance != 0))
    return [
        f"branch {lines.name[place]} has resistance and no reactance: no power flows on it in the "
        "DC model"
        for place in found
    ]
