"""The lines and transformers of an XIIDM tree, and their limits."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from gridveil.grid.io import numbered, over
from gridveil.grid.io.powsybl.tree import BRANCHES, LIMITS, Places, elements, number
from gridveil.grid.model.element_tables import Branch, Branches, branch_table

BASE_MVA = 100.0
_SIDES = {"line": "12", "twoWindingsTransformer": "12", "danglingLine": ("",)}


@dataclass(frozen=True, eq=False)
class Limited:
    """One branch of the model: its element in the tree, and the sides whose limits are its own.

    `voltages` are the nominal voltages of the sides (kV).
    """

    element: ET.Element
    sides: tuple[str, ...]
    voltages: tuple[float, ...]


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


def branches(root: ET.Element, places: Places) -> tuple[Branches, list[Limited]]:
    """Make the table of branches, and list their elements in the tree."""
    rows: list[Branch] = []
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
            rows.append(Branch(start, end, on, *_transformer(element, "", voltage, other)))
        else:
            rows.append(_line(element, start, end, on, voltage, other))
    made = branch_table(rows, numbered(_name(one) for one in limited))
    return replace(made, capacity=np.array([_capacity(one) for one in limited], float)), limited


def _line(
    element: ET.Element, start: int, end: int, on: bool, voltage: float, other: float
) -> Branch:
    """Compute the numbers of a line; one that leads out has all of its shunt at its near end."""
    base = voltage * other / BASE_MVA
    series = complex(*(over(number(element, name), base) for name in "rx"))
    out = element.tag == "danglingLine"
    near, far = (
        complex(number(element, f"g{side}", 0.0), number(element, f"b{side}", 0.0)) * (kv * kv)
        for side, kv in (("" if out else "1", voltage), ("2", other))
    )
    near, far = near / BASE_MVA, 0.0 if out else far / BASE_MVA
    if voltage != other and series:
        # The impedance in ohm is the same at both ends; per unit of two voltages it is not.
        near += (over(voltage, other) - 1) / series
        far += (over(other, voltage) - 1) / series
    return Branch(start, end, on, series, at_start=near, at_end=far)


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


def _legs(element: ET.Element, places: Places, limited: list[Limited]) -> list[Branch]:
    """Make the three branches from a transformer's sides to its star, at the voltage ratedU0."""
    star_kv = number(element, "ratedU0")
    star = places.add(f"{element.get('id', '')} star", star_kv)
    found = []
    for side in "123":
        bus, on = places.of(element, side)
        voltage = places.voltages[bus]
        limited.append(Limited(element, (side,), (voltage,)))
        found.append(Branch(bus, star, on, *_transformer(element, side, voltage, star_kv)))
    return found


def _transformer(
    element: ET.Element, leg: str, voltage: float, other: float
) -> tuple[complex, float, float, complex]:
    """Compute series impedance, tap, shift and shunt; all impedances are behind the tap."""
    ratio = over(
        number(element, "ratedU0" if leg else "ratedU2"), number(element, f"ratedU{leg or 1}")
    )
    r, x, alpha = number(element, f"r{leg}"), number(element, f"x{leg}"), 0.0
    g, b = number(element, f"g{leg}", 0.0), number(element, f"b{leg}", 0.0)
    for kind in ("ratioTapChanger", "phaseTapChanger"):
        changer = element.find(f"{kind}{leg}")
        step = None if changer is None else _step(changer)
        if step is not None:
            ratio *= number(step, "rho", 1.0)
            r *= 1 + number(step, "r", 0.0) / 100
            x *= 1 + number(step, "x", 0.0) / 100
            g *= 1 + number(step, "g", 0.0) / 100
            b *= 1 + number(step, "b", 0.0) / 100
            alpha += number(step, "alpha", 0.0)
    base = other**2 / BASE_MVA
    tap = over(other, ratio * voltage)
    return complex(over(r, base), over(x, base)), tap, -alpha, complex(g, b) * base


def _step(changer: ET.Element) -> ET.Element | None:
    steps = changer.findall("step")
    place = number(changer, "tapPosition", math.nan) - number(changer, "lowTapPosition", 0.0)
    return steps[int(place)] if 0 <= place < len(steps) else None


def _name(branch: Limited) -> str:
    name = branch.element.get("id", "")
    three = branch.element.tag == "threeWindingsTransformer"
    return f"{name} {branch.sides[0]}" if three else name
