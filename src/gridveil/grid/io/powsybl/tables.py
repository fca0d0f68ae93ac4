"""Make a :class:`~gridveil.grid.model.network.Network` from an XIIDM tree.

Nominal voltages convert impedances in ohm to per unit on 100 MVA, and limits in ampere to MVA. A
line has one capacity, the least of its permanent limits in the selected groups.
"""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gridveil.errors import InputError
from gridveil.grid.io import numbered, over
from gridveil.grid.io.powsybl.tree import BRANCHES, LIMITS, Places, Tree, elements, number
from gridveil.grid.model.network import Branches, Buses, Generators, Network
from gridveil.grid.model.reference_buses import with_references

BASE_MVA = 100.0
NO_LIMIT_MW = 1e9
"""The limit of a unit without one; the model needs a finite number."""
_SIDES = {"line": "12", "twoWindingsTransformer": "12", "danglingLine": ("",)}


@dataclass(frozen=True, eq=False)
class Limited:
    """One branch of the model: its element in the tree, and the sides whose limits are its own.

    `voltages` are the nominal voltages of the sides (kV).
    """

    element: ET.Element
    sides: tuple[str, ...]
    voltages: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Layout:
    """The element of the tree that every row of the model's tables came from."""

    places: Places
    branches: list[Limited]
    generators: list[ET.Element]
    loads: list[tuple[ET.Element, int]]
    """Connected loads and far ends of lines, and their buses."""


def limits_of(branch: Limited) -> Iterator[tuple[ET.Element, float, str, bool]]:
    """Yield every set of limits of a branch, its unit in MVA, its side, and whether it is in use.

    The side is empty for a branch with limits at one end only.
    """
    for side, voltage in zip(branch.sides, branch.voltages, strict=True):
        chosen = branch.element.get(f"selectedOperationalLimitsGroupId{side}")
        for group in branch.element.findall(f"operationalLimitsGroup{side}"):
            for kind in LIMITS:
                for found in group.findall(kind):
                    unit = math.sqrt(3) * voltage / 1000 if kind == "currentLimits" else 1.0
                    name = f"side{side}" if len(branch.sides) > 1 else ""
                    yield found, unit, name, group.get("id") == chosen


def duration(limit: ET.Element) -> str:
    """Return how long a temporary limit may last, as ratios name it; empty if there is no end."""
    seconds = limit.get("acceptableDuration")
    return "" if seconds is None else f"{seconds}s"


def _capacity(branch: Limited) -> float:
    found = [
        number(limits, "permanentLimit", math.inf) * unit
        for limits, unit, _, used in limits_of(branch)
        if used
    ]
    return min(found, default=math.inf)


@np.errstate(over="ignore", divide="ignore", invalid="ignore")
def build(tree: Tree) -> tuple[Network, Layout]:
    """Read the tree; the network has no ``source`` yet."""
    root = tree.root
    places = Places(root)
    ends, limited = _branches(root, places)
    units = elements(root, "generator")
    at = [places.of(unit) for unit in units]
    loads, drawn = _loads(root, places)
    layout = Layout(places, limited, units, loads)
    count = len(places.names)
    if not count:
        raise InputError("The network has no bus.", remedy="Give a network with buses.")
    load, reactive, shunt = np.zeros(count), np.zeros(count), np.zeros(count)
    for (_, bus), (active, other) in zip(loads, drawn, strict=True):
        load[bus] += active
        reactive[bus] += other
    notes = [*_constant(root, places, shunt)]
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
            shunt=shunt,
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
        ),
        Branches(
            name=numbered(_name(one) for one in limited),
            capacity=np.array([_capacity(one) for one in limited]),
            angle_min=np.full(len(limited), -np.inf),
            angle_max=np.full(len(limited), np.inf),
            **ends,
        ),
    )
    network, idle = _fed(network)
    if idle:
        notes.append(f"{idle:,} buses are out of service: no generator can feed them")
    notes.append("files of this kind have no costs: they are 0, or those of a population")
    return with_references(replace(network, notes=tuple(notes))), layout


def _name(branch: Limited) -> str:
    name = branch.element.get("id", "")
    three = branch.element.tag == "threeWindingsTransformer"
    return f"{name} {branch.sides[0]}" if three else name


def _fed(network: Network) -> tuple[Network, int]:
    """Take islands without a generator out of service; return the network and number of buses."""
    island, units, lines = network.islands(), network.generators, network.branches
    fed = np.isin(island, island[units.bus[units.in_service]])
    on = lines.in_service & fed[lines.from_bus] & fed[lines.to_bus]
    buses, branches = replace(network.buses, in_service=fed), replace(lines, in_service=on)
    return replace(network, buses=buses, branches=branches), int((~fed).sum())


def _branches(root: ET.Element, places: Places) -> tuple[dict[str, Any], list[Limited]]:
    rows: list[tuple[int, int, float, float, float, float, bool]] = []
    limited: list[Limited] = []
    ties = _tie_ends(root, places)
    for element in elements(root, *BRANCHES):
        if element.tag == "threeWindingsTransformer":
            rows += _legs(element, places, limited)
            continue
        sides = tuple(_SIDES[element.tag])
        (start, on), *rest = [places.of(element, side) for side in sides]
        voltage = places.voltages[start]
        if element.tag == "danglingLine":
            name = element.get("id", "")
            end = ties.get(name)
            if end is None:
                end = places.add(f"{name} far end", voltage)
        else:
            end, there = rest[0]
            on = on and there
        other = places.voltages[end]
        limited.append(Limited(element, sides, (voltage, other)[: len(sides)]))
        if element.tag == "twoWindingsTransformer":
            rows.append((start, end, *_transformer(element, "", voltage, other), on))
        else:
            base = voltage * other / BASE_MVA
            r, x = (over(number(element, name), base) for name in "rx")
            rows.append((start, end, r, x, 1.0, 0.0, on))
    columns = list(zip(*rows, strict=True)) if rows else [()] * 7
    names = ("from_bus", "to_bus", "resistance", "reactance", "tap", "shift", "in_service")
    kinds: tuple[type, ...] = (*(np.int64,) * 2, *(np.float64,) * 4, np.bool_)
    found: dict[str, Any] = {
        name: np.array(column, dtype=kind)
        for name, column, kind in zip(names, columns, kinds, strict=True)
    }
    return found, limited


def _tie_ends(root: ET.Element, places: Places) -> dict[str, int]:
    """Add a bus for the common far end of the two halves of every tie line."""
    halves = {one.get("id", ""): one for one in elements(root, "danglingLine")}
    found: dict[str, int] = {}
    for tie in elements(root, "tieLine"):
        pair = [tie.get(f"danglingLineId{side}", "") for side in "12"]
        if all(name in halves for name in pair):
            # Use the lower voltage: which half comes first depends on ids.
            voltage = min(places.voltages[places.of(halves[name])[0]] for name in pair)
            found |= dict.fromkeys(pair, places.add(f"{tie.get('id', '')} border", voltage))
    return found


def _legs(
    element: ET.Element, places: Places, limited: list[Limited]
) -> list[tuple[int, int, float, float, float, float, bool]]:
    """Make the three branches from a transformer's sides to its star, at the voltage ratedU0."""
    star_kv = number(element, "ratedU0")
    star = places.add(f"{element.get('id', '')} star", star_kv)
    found = []
    for side in "123":
        bus, on = places.of(element, side)
        voltage = places.voltages[bus]
        limited.append(Limited(element, (side,), (voltage,)))
        found.append((bus, star, *_transformer(element, side, voltage, star_kv), on))
    return found


def _transformer(
    element: ET.Element, leg: str, voltage: float, other: float
) -> tuple[float, float, float, float]:
    """Compute resistance, reactance, tap and shift; impedances are on the second side."""
    ratio = over(
        number(element, "ratedU0" if leg else "ratedU2"), number(element, f"ratedU{leg or 1}")
    )
    r, x, alpha = number(element, f"r{leg}"), number(element, f"x{leg}"), 0.0
    for kind in ("ratioTapChanger", "phaseTapChanger"):
        changer = element.find(f"{kind}{leg}")
        step = None if changer is None else _step(changer)
        if step is not None:
            ratio *= number(step, "rho", 1.0)
            r *= 1 + number(step, "r", 0.0) / 100
            x *= 1 + number(step, "x", 0.0) / 100
            alpha += number(step, "alpha", 0.0)
    base = other**2 / BASE_MVA
    tap = over(other, ratio * voltage)
    return over(r, base), over(x, base), tap, -alpha


def _step(changer: ET.Element) -> ET.Element | None:
    steps = changer.findall("step")
    place = number(changer, "tapPosition", math.nan) - number(changer, "lowTapPosition", 0.0)
    return steps[int(place)] if 0 <= place < len(steps) else None


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


def _constant(root: ET.Element, places: Places, shunt: np.ndarray[Any, Any]) -> Iterator[str]:
    """Add public and constant power to `shunt` (MW drawn); yield a note for each kind."""
    for element in elements(root, "shunt"):
        bus, on = places.of(element)
        if on:
            shunt[bus] += _conductance(element) * places.voltages[bus] ** 2
    batteries = elements(root, "battery")
    for element in batteries:
        bus, on = places.of(element)
        shunt[bus] -= number(element, "targetP", 0.0) if on else 0.0
    if batteries:
        yield f"{len(batteries):,} batteries are public and inject their set power"
    far = [one for one in elements(root, "danglingLine") if one.get("generationTargetP")]
    for element in far:
        bus, on = places.of(element)
        shunt[bus] -= number(element, "generationTargetP", 0.0) if on else 0.0
    if far:
        yield f"generation at the far ends of {len(far):,} lines is public and at its set power"
    stations = {one.get("id", ""): one for one in elements(root, *_STATIONS)}
    lines = elements(root, "hvdcLine")
    for line in lines:
        for bus, power in _converters(line, stations, places):
            shunt[bus] += power
    if lines:
        yield f"{len(lines):,} HVDC lines are public and carry their set power"


_STATIONS = ("vscConverterStation", "lccConverterStation")


def _conductance(element: ET.Element) -> float:
    sections = int(min(number(element, "sectionCount", 0.0), 1e9))
    linear = element.find("shuntLinearModel")
    if linear is not None:
        return sections * number(linear, "gPerSection", 0.0)
    steps = [number(one, "g", 0.0) for one in element.iter("section")]
    return steps[sections - 1] if 0 < sections <= len(steps) else 0.0


def _converters(
    line: ET.Element, stations: dict[str, ET.Element], places: Places
) -> Iterator[tuple[int, float]]:
    """Yield what an HVDC line draws at its two ends; losses are subtracted at the far one."""
    ends = [stations.get(line.get(f"converterStation{side}", "")) for side in "12"]
    if any(end is None for end in ends):
        return
    known = [end for end in ends if end is not None]
    if line.get("convertersMode") == "SIDE_1_INVERTER_SIDE_2_RECTIFIER":
        known.reverse()
    (start, one), (end, two) = (places.of(station) for station in known)
    if not (one and two):
        return
    losses = [1 - number(station, "lossFactor", 0.0) / 100 for station in known]
    drawn = number(line, "activePowerSetpoint", 0.0)
    sent = drawn * losses[0]
    sent -= number(line, "r", 0.0) * over(sent, number(line, "nominalV")) ** 2
    yield start, drawn
    yield end, -sent * losses[1]
