"""The XIIDM tree of a network, and the buses of its elements.

pypowsybl reads many formats and converts each to XIIDM of one fixed version: the rest of this
package knows the elements and attributes of that version only.
"""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from gridveil.errors import InputError
from gridveil.grid.model.element_tables import FREE_VOLTAGE

XIIDM = "XIIDM"
VERSION = "1.14"
_SCHEMAS = {
    "STEADY_STATE_HYPOTHESIS": "http://www.powsybl.org/schema/iidm/1_14",
    "EQUIPMENT": "http://www.powsybl.org/schema/iidm/equipment/1_14",
}
"""Schemas by validation level: files with set points, or with equipment alone."""
BRANCHES = ("line", "twoWindingsTransformer", "threeWindingsTransformer", "danglingLine")
"""Elements that become branches of the model, in this order."""
LIMITS = ("currentLimits", "apparentPowerLimits", "activePowerLimits")
_ORDERED = {*BRANCHES, "load", "generator", "battery"}
_INJECTIONS = (
    *("generator", "battery", "load", "shunt", "danglingLine", "staticVarCompensator"),
    *("vscConverterStation", "lccConverterStation"),
)


@dataclass(frozen=True, eq=False)
class Tree:
    """A network as XIIDM, and the format that it was read from.

    Parameters
    ----------
    root
        The element ``network``; tags of XIIDM itself have no namespace.
    origin
        The format of the file, as pypowsybl names it; XIIDM for a network in memory.
    """

    root: ET.Element = field(repr=False)
    origin: str


def parse(text: str) -> ET.Element:
    """Parse an XIIDM text that pypowsybl wrote."""
    root = ET.fromstring(text)
    prefix = root.tag.removesuffix("network")
    for element in root.iter():
        element.tag = element.tag.removeprefix(prefix)
    for element in [*root.iter("voltageLevel"), *root.iter("substation"), root]:
        _order(element)
    return root


_KEYS = (
    *("voltageLevelId1", "bus1", "connectableBus1", "node1", "voltageLevelId2", "bus2"),
    *("connectableBus2", "node2", "voltageLevelId3", "bus3", "connectableBus3", "node3"),
    *("bus", "connectableBus", "node", "r", "x", "g", "b", "g1", "b1", "g2", "b2", "ratedU1"),
    *("ratedU2", "loadType", "energySource", "targetV", "voltageRegulatorOn"),
)


def _order(parent: ET.Element) -> None:
    """Sort the children of an element by public attributes.

    pypowsybl's own order depends on ids, into which people write ratings. Children that have all of
    these attributes in common stay in its order.
    """
    kinds = list(dict.fromkeys(child.tag for child in parent))
    parent[:] = sorted(
        parent,
        key=lambda child: (
            kinds.index(child.tag),
            [child.get(name, "") for name in _KEYS] if child.tag in _ORDERED else [],
        ),
    )


def put_in_order(root: ET.Element, places: Mapping[str, int]) -> None:
    """Sort elements of the same kind by the places of their ids; those without one come last.

    The id of a tie line is those of its two halves; it has the place of the half that comes first.
    """
    last = len(places)

    def place(child: ET.Element) -> int:
        parts = child.get("id", "").split(" + ")
        return min(places.get(part, last) for part in parts)

    for parent in root.iter():
        kinds = list(dict.fromkeys(child.tag for child in parent))
        if len(kinds) < len(parent) and any("id" in child.attrib for child in parent):
            parent[:] = sorted(parent, key=lambda child: (kinds.index(child.tag), place(child)))


def text_of(root: ET.Element) -> str:
    """Write the tree as the text of a file."""
    whole = ET.Element("network", root.attrib)
    whole.extend(root)
    whole = _prefixed(whole)
    level = root.get("minimumValidationLevel", "")
    whole.set("xmlns:iidm", _SCHEMAS.get(level, _SCHEMAS["STEADY_STATE_HYPOTHESIS"]))
    ET.indent(whole, "  ")
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(whole, "unicode") + "\n"


def _prefixed(element: ET.Element) -> ET.Element:
    found = ET.Element(f"iidm:{element.tag}", element.attrib)
    found.text = (element.text or "").strip() or None
    found.extend(_prefixed(child) for child in element if not child.tag.startswith("{"))
    return found


def number(element: ET.Element, name: str, default: float | None = None) -> float:
    """Read an attribute as a number; without one, use the default or raise `InputError`."""
    text = element.get(name)
    if text is None and default is not None:
        return default
    try:
        value = float(text or "")
    except ValueError:
        value = math.nan
    if math.isnan(value):
        if default is not None:
            return default
        # The message does not quote the value: it may be private.
        raise InputError(f"A {element.tag} of the network has no number for {name}.")
    return value


def elements(root: ET.Element, *tags: str) -> list[ET.Element]:
    """List all elements of these kinds, kind by kind, in the order of the file."""
    return [element for tag in tags for element in root.iter(tag)]


class Places:
    """The buses of the model (connected parts of voltage levels), and the bus of each element."""

    def __init__(self, root: ET.Element) -> None:
        self.names: list[str] = []
        self.voltages: list[float] = []
        self.limits: list[tuple[float, float]] = []
        self._at: dict[tuple[str, str], int] = {}
        self._level: dict[str, str] = {}
        outside: dict[str, list[str]] = {}
        for element in root.iter():
            for side in "123":
                node, level = element.get(f"node{side}"), element.get(f"voltageLevelId{side}")
                if node is not None and level is not None:
                    outside.setdefault(level, []).append(node)
        for one in root.iter("voltageLevel"):
            self._read(one, outside.get(one.get("id", ""), []))

    def _read(self, level: ET.Element, more: list[str]) -> None:
        name, voltage = level.get("id", ""), number(level, "nominalV")
        limits = _voltage_limits(level, voltage)
        self._level |= {one.get("id", ""): name for tag in _INJECTIONS for one in level.iter(tag)}
        parts: dict[str, str] = {}
        bus_breaker = level.get("topologyKind") == "BUS_BREAKER"
        for key in (*_points(level, bus_breaker), *more):
            parts.setdefault(key, key)
        ends = ("bus1", "bus2") if bus_breaker else ("node1", "node2")
        joins = [one for one in level.iter("switch") if one.get("open") != "true"]
        for one in (*joins, *level.iter("internalConnection")):
            a, b = (_top(parts, one.get(end, "")) for end in ends)
            if a != b:
                parts[max(a, b)] = min(a, b)
        numbers: dict[str, int] = {}
        for key in list(parts):
            top = _top(parts, key)
            if top not in numbers:
                numbers[top] = len(self.names)
                self.names.append(top if bus_breaker else f"{name} {top}")
                self.voltages.append(voltage)
                self.limits.append(limits)
            self._at[name, key] = numbers[top]

    def of(self, element: ET.Element, side: str = "") -> tuple[int, bool]:
        """Return the bus that an element is at or could be connected to, and if it is connected."""
        level = element.get(f"voltageLevelId{side}") or self._level[element.get("id", "")]
        node = element.get(f"node{side}")
        key = node or element.get(f"bus{side}") or element.get(f"connectableBus{side}") or ""
        at = self._at.get((level, key))
        if at is None:
            raise InputError(
                f"A {element.tag} of the network is at a bus or node that its voltage level does "
                "not have.",
                remedy="Correct the file.",
            )
        return at, node is not None or element.get(f"bus{side}") is not None

    def add(self, name: str, voltage: float) -> int:
        """Add a bus: the star of a transformer, or the far end of a line."""
        self.names.append(name)
        self.voltages.append(voltage)
        self.limits.append(FREE_VOLTAGE)
        return len(self.names) - 1


def _voltage_limits(level: ET.Element, voltage: float) -> tuple[float, float]:
    """Return the limits of the voltage, per unit: 0.9 and 1.1 if a voltage level has none."""
    low, high = (
        number(level, f"{side}VoltageLimit", math.nan) / voltage if voltage else math.nan
        for side in ("low", "high")
    )
    return 0.9 if math.isnan(low) else low, 1.1 if math.isnan(high) else high


def _points(level: ET.Element, bus_breaker: bool) -> Iterator[str]:
    """Yield the buses or nodes that the elements inside a voltage level name."""
    if bus_breaker:
        yield from (bus.get("id", "") for bus in level.iter("bus"))
        return
    for element in level.iter():
        for name in ("node", "node1", "node2"):
            if name in element.attrib:
                yield element.attrib[name]


def _top(parts: dict[str, str], key: str) -> str:
    parts.setdefault(key, key)
    while parts[key] != key:
        parts[key] = parts[parts[key]]
        key = parts[key]
    return key
