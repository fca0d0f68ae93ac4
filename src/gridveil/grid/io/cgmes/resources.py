"""Find the resources of a CGMES model that hold a network's numbers, and write into them."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from gridveil.errors import InputError
from gridveil.grid.io import Ratios
from gridveil.grid.io.cgmes.rdf import ID, Graph, schema
from gridveil.grid.io.powsybl.branches import Limited
from gridveil.grid.io.powsybl.to_network import Layout
from gridveil.grid.io.powsybl.tree import number
from gridveil.grid.io.released_columns.cgmes import BRANCHES, LIMITS, LOAD_CLASSES, MACHINES, UNITS
from gridveil.grid.model.network import Bools, Floats

_UNITS, _LIMITS = UNITS.split(), LIMITS.split()
_WITH_LIMITS = {
    **dict.fromkeys(_UNITS, ("minOperatingP", "maxOperatingP")),
    **dict.fromkeys(("ExternalNetworkInjection", "EquivalentInjection"), ("minP", "maxP")),
}


class Unplaced(Exception):
    """An element of the network that can't be written into CGMES files here."""


@dataclass(frozen=True)
class Limit:
    """A limit of a branch: its id, the side and duration that ratios refer to, its unit in MVA."""

    name: str
    side: str
    duration: str
    unit: float


@dataclass(frozen=True, eq=False)
class Places:
    """The ids of the resources that hold a network's numbers, row by row.

    Parameters
    ----------
    branches
        All limits of each branch.
    machines, units
        The machine of each generator, and the resource that has its limits.
    loads
        The resource that has each load.
    """

    branches: tuple[tuple[Limit, ...], ...]
    machines: tuple[str, ...]
    units: tuple[str, ...]
    loads: tuple[str, ...]

    def renamed(self, labels: Mapping[str, str]) -> Places:
        """Return the same for a graph with other ids; limits that it lacks are left out."""
        return Places(
            tuple(
                tuple(
                    Limit(labels[one.name], one.side, one.duration, one.unit)
                    for one in limits
                    if one.name in labels
                )
                for limits in self.branches
            ),
            *(
                tuple(labels[name] for name in names)
                for names in (self.machines, self.units, self.loads)
            ),
        )


def places(graph: Graph, layout: Layout) -> Places:
    """Find the resources of all rows of a network.

    Raises
    ------
    Unplaced
        With the name of a class that can't be written. It depends on classes and references only.
    """
    sets: dict[str, list[str]] = {}
    limits: dict[str, list[str]] = {}
    ends: dict[str, list[str]] = {}
    for name in graph.names():
        kind = graph.kind(name)
        if kind == "OperationalLimitSet":
            sets.setdefault(graph.reference(name, "Terminal", "Equipment"), []).append(name)
        elif kind in _LIMITS:
            limits.setdefault(graph.reference(name, "OperationalLimitSet"), []).append(name)
        elif kind == "Terminal":
            ends.setdefault(graph.reference(name, "ConductingEquipment"), []).append(name)

    def of_branch(branch: Limited) -> Iterator[Limit]:
        name = _known(graph, branch.element.get("id", ""), BRANCHES)
        volts = dict(zip(branch.sides, branch.voltages, strict=True))
        own = {_alias(branch.element, side): side for side in branch.sides}
        three = branch.element.tag == "threeWindingsTransformer"
        for end in ends.get(name, []):
            side = own.get(end)
            if side is None and three:
                continue  # another winding, which is another branch
            label = f"side{side}" if side and len(volts) > 1 else ""
            volt = min(volts.values()) if side is None else volts[side]
            yield from _limits(graph, sets.get(end, []), limits, label, volt)
        if not three:
            yield from _limits(graph, sets.get(name, []), limits, "", min(volts.values()))

    machines = [_known(graph, one.get("id", ""), MACHINES) for one in layout.generators]
    return Places(
        tuple(tuple(of_branch(one)) for one in layout.branches),
        tuple(machines),
        tuple(_with_limits(graph, name) for name in machines),
        tuple(load_id(graph, element) for element, _ in layout.loads),
    )


def load_id(graph: Graph, element: ET.Element) -> str:
    """Find the resource that has the power of a load or of the far end of a line."""
    name = element.get("id", "")
    if element.tag == "danglingLine":
        name = _property(element, "CGMES.EquivalentInjection")
    return _known(graph, name, LOAD_CLASSES)


def check_shared(found: Places, own: Bools) -> None:
    """Refuse private limits that two machines share: these are two entries but one number."""
    shared = Counter(found.units)
    if any(shared[name] > 1 for name, mine in zip(found.units, own, strict=True) if mine):
        raise InputError(
            "Several machines of the CGMES model share one generating unit, and so its limits.",
            remedy="Give each machine a unit of its own, or save the network as XIIDM with "
            "pypowsybl and release that.",
        )


def _known(graph: Graph, name: str, classes: str) -> str:
    kind = graph.kind(name)
    if kind not in classes.split() or not any(
        one.get(ID) is not None for one in graph.described(name)
    ):
        raise Unplaced(kind)
    return name


def _with_limits(graph: Graph, machine: str) -> str:
    unit = graph.reference(machine, "GeneratingUnit")
    name = unit if graph.kind(machine) == "SynchronousMachine" else machine
    if graph.kind(name) not in _WITH_LIMITS:
        raise Unplaced(graph.kind(machine))
    return name


def _alias(element: ET.Element, side: str) -> str:
    kinds = (f"CGMES.Terminal{side}",) if side else ("CGMES.Terminal1", "CGMES.Terminal2")
    found = (one.text or "" for one in element.findall("alias") if one.get("type") in kinds)
    return next(found, "")


def _property(element: ET.Element, name: str) -> str:
    found = (one.get("value", "") for one in element.findall("property") if one.get("name") == name)
    return next(found, "")


def _limits(
    graph: Graph, sets: list[str], limits: dict[str, list[str]], side: str, volt: float
) -> Iterator[Limit]:
    for name in (one for group in sets for one in limits.get(group, [])):
        unit = math.sqrt(3) * volt / 1000 if graph.kind(name) == "CurrentLimit" else 1.0
        kind = graph.reference(name, "OperationalLimitType")
        yield Limit(name, side, _duration(graph, kind), unit)


def _duration(graph: Graph, kind: str) -> str:
    """Return how long a limit may last, as ratios name it; empty if there is no end."""
    lasting = graph.reference(kind, "limitType", "kind").endswith("patl")
    try:
        return "" if lasting else f"{int(float(graph.text(kind, 'acceptableDuration')))}s"
    except (ValueError, OverflowError):
        return ""


# -- values ------------------------------------------------------------------------------------


def put_limits(
    graph: Graph, found: Places, capacity: Floats, changed: Bools, ratios: Ratios
) -> None:
    """Write each `changed` capacity (MW), times ratios, into all limits of its branch."""
    for limits, value, own in zip(found.branches, capacity, changed, strict=True):
        for one in limits if own else ():
            ratio = ratios.get(one.side, 1.0) * ratios.get(one.duration, 1.0)
            for name in ("value", "normalValue"):
                _set(graph, one.name, name, float(value) / one.unit * ratio)


def put_powers(graph: Graph, found: Places, layout: Layout, hidden: Bools | None = None) -> None:
    """Write loads, limits and set points as the XIIDM tree of `layout` has them.

    Limits of `hidden` machines are written even if the files did not have them.
    """
    together: dict[str, float] = {}
    for at, (element, machine, unit) in enumerate(
        zip(layout.generators, found.machines, found.units, strict=True)
    ):
        power, own = number(element, "targetP", 0.0), hidden is not None and bool(hidden[at])
        together[unit] = together.get(unit, 0.0) + power
        _set(graph, machine, "p", -power)
        _set(graph, machine, "q", -number(element, "targetQ", 0.0))
        _set(graph, unit, "initialP", together[unit])
        names = _WITH_LIMITS[graph.kind(unit)]
        for name, theirs in zip(names, ("minP", "maxP"), strict=True):
            _set(graph, unit, name, number(element, theirs), add=own)
        limits = element.find("minMaxReactiveLimits")
        if limits is not None and own:
            for name in ("minQ", "maxQ"):
                _set(graph, machine, name, number(limits, name), add=True)
    for (element, _), name in zip(layout.loads, found.loads, strict=True):
        # An injection at the far end of a line that regulates is generation in the tree.
        held = element.get("generationVoltageRegulationOn") == "true"
        power = number(element, "p0", 0.0) - number(element, "generationTargetP", 0.0)
        reactive = number(element, "q0", 0.0)
        reactive -= 0.0 if held else number(element, "generationTargetQ", 0.0)
        for value, *ours in (
            (power, "p", "pfixed", "activePower"),
            (reactive, "q", "qfixed", "reactivePower"),
        ):
            for column in ours:
                _set(graph, name, column, value)


def _set(graph: Graph, name: str, wanted: str, value: float, *, add: bool = False) -> None:
    """Set a number of a resource in every profile that has it, if it differs."""
    known = graph.properties(name, wanted)
    if add and not known:
        first = next(one for one in graph.described(name) if one.get(ID) is not None)
        owner = "GeneratingUnit" if wanted.endswith("OperatingP") else graph.kind(name)
        known = [ET.SubElement(first, f"{{{schema(first.tag)}}}{owner}.{wanted}")]
    for one in known:
        try:
            same = float(one.text or "") == value
        except ValueError:
            same = False
        if not same:
            one.text = repr(value + 0.0)
