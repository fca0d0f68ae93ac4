"""Make a :class:`~gridveil.grid.model.network.Network` from an XIIDM tree.

Nominal voltages convert impedances in ohm to per unit on 100 MVA, and limits in ampere to MVA. A
line has one capacity, the least of its permanent limits in the selected groups.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import dataclass, replace

import numpy as np

from gridveil.errors import InputError
from gridveil.grid.io import numbered
from gridveil.grid.io.powsybl.branches import BASE_MVA, Limited, branches
from gridveil.grid.io.powsybl.constant_elements import Constants, constants, reactive_limits
from gridveil.grid.io.powsybl.tree import Places, Tree, elements, number
from gridveil.grid.model.checks import with_references
from gridveil.grid.model.network import Buses, Generators, Network

NO_LIMIT_MW = 1e9
"""The limit of a unit without one; the model needs a finite number."""


@dataclass(frozen=True, eq=False)
class Layout:
    """The element of the tree that every row of the model's tables came from."""

    places: Places
    branches: list[Limited]
    generators: list[ET.Element]
    loads: list[tuple[ET.Element, int]]
    """Connected loads and far ends of lines, and their buses."""


@np.errstate(all="ignore")
def build(tree: Tree) -> tuple[Network, Layout]:
    """Read the tree; the network has no ``source`` yet."""
    root = tree.root
    places = Places(root)
    lines, limited = branches(root, places)
    units = elements(root, "generator")
    at = [places.of(unit) for unit in units]
    loads, drawn = _loads(root, places)
    layout = Layout(places, limited, units, loads)
    count = len(places.names)
    if not count:
        raise InputError("The network has no bus.", remedy="Give a network with buses.")
    load, reactive, known = np.zeros(count), np.zeros(count), Constants.none(count)
    for (_, bus), (active, other) in zip(loads, drawn, strict=True):
        load[bus] += active
        reactive[bus] += other
    notes = [*constants(root, places, known)]
    volts = np.array(places.limits).T
    swing = np.array([reactive_limits(unit) for unit in units]).reshape(-1, 2).T
    none = np.zeros(len(units))
    low, high = (
        np.clip([number(unit, name) for unit in units], -NO_LIMIT_MW, NO_LIMIT_MW)
        for name in ("minP", "maxP")
    )
    network = Network(
        "network",
        BASE_MVA,
        Buses(
            name=numbered(places.names),
            load=load,
            reactive_load=reactive,
            shunt=known.shunt,
            reactive_shunt=known.susceptance,
            fixed_load=known.fixed,
            fixed_reactive_load=known.fixed_reactive,
            q_min=known.low,
            q_max=known.high,
            v_min=volts[0],
            v_max=volts[1],
            reference=np.zeros(count, bool),
            in_service=np.ones(count, bool),
        ),
        Generators(
            name=tuple(unit.get("id", "") for unit in units),
            bus=np.array([bus for bus, _ in at], dtype=np.int64),
            p_min=low,
            p_max=high,
            in_service=np.array([connected for _, connected in at], dtype=bool),
            quadratic=none,
            linear=none,
            constant=none,
            points=(None,) * len(units),
            q_min=swing[0],
            q_max=swing[1],
        ),
        lines,
    )
    network, idle = _fed(network)
    if idle:
        notes.append(f"{idle:,} buses are out of service: no generator can feed them")
    notes.append("files of this kind have no costs: they are 0, or those of a population")
    return with_references(replace(network, notes=tuple(notes))), layout


def _fed(network: Network) -> tuple[Network, int]:
    """Take islands without a generator out of service; return the network and number of buses."""
    island, units, lines = network.islands(), network.generators, network.branches
    fed = np.isin(island, island[units.bus[units.in_service]])
    on = lines.in_service & fed[lines.from_bus] & fed[lines.to_bus]
    buses, branches = replace(network.buses, in_service=fed), replace(lines, in_service=on)
    return replace(network, buses=buses, branches=branches), int((~fed).sum())


def _loads(
    root: ET.Element, places: Places
) -> tuple[list[tuple[ET.Element, int]], list[tuple[float, float]]]:
    """List connected loads, then far ends of lines that lead out, with MW and Mvar of each."""
    found, drawn = [], []
    for element in elements(root, "load"):
        bus, on = places.of(element)
        if on:
            found.append((element, bus))
            drawn.append((number(element, "p0", 0.0), number(element, "q0", 0.0)))
    paired = {tie.get(f"danglingLineId{s}") for tie in elements(root, "tieLine") for s in "12"}
    far = {name: place for place, name in enumerate(places.names)}
    for element in elements(root, "danglingLine"):
        name = element.get("id", "")
        if places.of(element)[1] and name not in paired:
            found.append((element, far[f"{name} far end"]))
            drawn.append((number(element, "p0", 0.0), number(element, "q0", 0.0)))
    return found, drawn
