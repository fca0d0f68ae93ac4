"""What is public and constant in an XIIDM tree: shunts, compensators, batteries and HVDC lines."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gridveil.grid.io import over
from gridveil.grid.io.powsybl.tree import Places, elements, number
from gridveil.grid.model.checks import Problem
from gridveil.grid.model.network import Floats


@dataclass(frozen=True, eq=False)
class Constants:
    """What public elements draw and inject at every bus, in MW and Mvar.

    Parameters
    ----------
    shunt
        Active power at nominal voltage, fixed power included.
    susceptance
        Reactive power that shunts inject at nominal voltage.
    fixed, fixed_reactive
        Power that is drawn at any voltage.
    low, high
        Limits of the reactive power that compensators inject.
    """

    shunt: Floats
    susceptance: Floats
    fixed: Floats
    fixed_reactive: Floats
    low: Floats
    high: Floats

    @classmethod
    def none(cls, buses: int) -> Constants:
        """Start with nothing at every bus."""
        return cls(*np.zeros((6, buses)))

    def draw(self, bus: int, active: float, reactive: float) -> None:
        """Add power that is drawn at any voltage."""
        self.shunt[bus] += active
        self.fixed[bus] += active
        self.fixed_reactive[bus] += reactive


def constants(root: ET.Element, places: Places, found: Constants) -> Iterator[str]:
    """Add what is public and constant to `found`; yield a note for each kind of it."""
    for element in elements(root, "shunt"):
        bus, on = places.of(element)
        if on:
            g, b = _admittance(element)
            found.shunt[bus] += g * places.voltages[bus] ** 2
            found.susceptance[bus] += b * places.voltages[bus] ** 2
    for element in elements(root, "staticVarCompensator"):
        bus, on = places.of(element)
        if on and element.get("regulating") == "true":
            _compensator(element, bus, places, found)
    batteries = elements(root, "battery")
    for element in batteries:
        bus, on = places.of(element)
        if on:
            found.draw(bus, -number(element, "targetP", 0.0), -number(element, "targetQ", 0.0))
    if batteries:
        yield f"{len(batteries):,} batteries are public and inject their set power"
    far = [one for one in elements(root, "danglingLine") if one.get("generationTargetP")]
    for element in far:
        bus, on = places.of(element)
        if on:
            found.draw(bus, -number(element, "generationTargetP", 0.0), 0.0)
    if far:
        yield f"generation at the far ends of {len(far):,} lines is public and at its set power"
    stations = {one.get("id", ""): one for one in elements(root, *_STATIONS)}
    lines = elements(root, "hvdcLine")
    for line in lines:
        for station, bus, power in _converters(line, stations, places):
            found.draw(bus, power, _converted(station, bus, power, found))
    if lines:
        yield f"{len(lines):,} HVDC lines are public and carry their set power"


def _compensator(element: ET.Element, bus: int, places: Places, found: Constants) -> None:
    """Add a static var compensator that regulates a voltage, or draws its set power."""
    if element.get("regulationMode") == "REACTIVE_POWER":
        found.draw(bus, 0.0, number(element, "reactivePowerSetpoint", 0.0))
        return
    voltage = places.voltages[bus]
    low, high = (number(element, name, 0.0) * voltage * voltage for name in ("bMin", "bMax"))
    # Half of its range to either side of the middle, at the lowest voltage: more than that it
    # can't promise at every voltage.
    lowest = places.limits[bus][0]
    room = (high - low) / 2 * lowest * lowest
    found.susceptance[bus] += (low + high) / 2
    found.low[bus] -= room
    found.high[bus] += room


def _converted(station: ET.Element, bus: int, power: float, found: Constants) -> float:
    """Return the Mvar that a station draws; one that regulates a voltage has limits instead."""
    if station.tag == "lccConverterStation":
        factor = number(station, "powerFactor", 1.0)
        return abs(power) * over(math.sqrt(max(1 - factor * factor, 0.0)), abs(factor))
    if station.get("voltageRegulatorOn") != "true":
        return -number(station, "reactivePowerSetpoint", 0.0)
    low, high = reactive_limits(station)
    found.low[bus] += low
    found.high[bus] += high
    return 0.0


def reactive_limits(element: ET.Element) -> tuple[float, float]:
    """Read limits of reactive power, Mvar; of a curve those that hold at each of its points."""
    points = [*element.findall("minMaxReactiveLimits"), *element.iter("point")]
    low = max((number(one, "minQ", -math.inf) for one in points), default=-math.inf)
    high = min((number(one, "maxQ", math.inf) for one in points), default=math.inf)
    return low, high


_STATIONS = ("vscConverterStation", "lccConverterStation")


def _admittance(element: ET.Element) -> tuple[float, float]:
    """Compute conductance and susceptance of the sections that are connected, in siemens."""
    sections = int(min(number(element, "sectionCount", 0.0), 1e9))
    linear = element.find("shuntLinearModel")
    if linear is not None:
        g, b = (number(linear, f"{name}PerSection", 0.0) for name in "gb")
        return sections * g, sections * b
    steps = [(number(one, "g", 0.0), number(one, "b", 0.0)) for one in element.iter("section")]
    return steps[sections - 1] if 0 < sections <= len(steps) else (0.0, 0.0)


def _converters(
    line: ET.Element, stations: dict[str, ET.Element], places: Places
) -> Iterator[tuple[ET.Element, int, float]]:
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
    yield known[0], start, drawn
    yield known[1], end, -sent * losses[1]


def ac_gaps(root: ET.Element) -> list[Problem]:
    """List the elements of which AC power flow needs more than is read."""
    return [
        Problem(
            f"danglingLine {element.get('id', '')}",
            "generation",
            "generation at the far end of a line is not read for AC",
            "Subtract it from the line's p0 and q0.",
        )
        for element in elements(root, "danglingLine")
        if number(element, "generationTargetP", 0.0) != 0
        or number(element, "generationTargetQ", 0.0) != 0
        or element.get("generationVoltageRegulationOn") == "true"
    ]
