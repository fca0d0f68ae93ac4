"""The lines and transformers of a PSS/E case."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from gridveil.grid.io import numbered, over
from gridveil.grid.io.psse.text import RawText, Record, Rows, bus_of
from gridveil.grid.model.element_tables import Branch, Branches, branch_table

_LEAST_X = 1e-4
"""The reactance (p.u.) of a branch without one: PSS/E's threshold of zero impedance."""
_GROUND = ("GI", "BI", "GJ", "BJ")
# The winding that is out of service, by the status of a three-winding transformer.
_OUT = {2: "2", 3: "3", 4: "1"}


def table_of(found: list[Branch], names: list[str], alive: Any) -> Branches:
    """Make the table of the network; branches at buses that are not `alive` are out of service."""
    ends = [f"{names[one.start]}-{names[one.end]}" for one in found]
    made = branch_table(found, numbered(ends))
    reactance = np.where(made.reactance == 0, _LEAST_X, made.reactance)
    on = made.in_service & alive[made.from_bus] & alive[made.to_bus]
    return replace(made, reactance=reactance, in_service=on)


def first_rate(version: int, winding: str = "") -> str:
    """Return the name of the rating that is the capacity of a branch or a winding."""
    name = "RATE1" if version >= 34 else "RATEA"
    return f"{name}_{winding}" if winding else name


def branches(
    raw: RawText, place: dict[int, int], kv: Any, names: list[str]
) -> tuple[list[Branch], list[tuple[str, Record, str]], int]:
    """Return all branches, their records with their windings, and the number of stars.

    It appends the stars' names to `names`.
    """
    found: list[Branch] = []
    rows: list[tuple[str, Record, str]] = []
    table = Rows(raw, "BRANCH")
    for record in table.records:
        start, end = (bus_of(raw, table, record, name, place) for name in ("I", "J"))
        limit = table.number(record, first_rate(raw.version), 0.0) or math.inf
        on = table.number(record, "ST", 1.0) > 0
        numbers = {name: table.number(record, name, 0.0) for name in ("R", "X", "B", *_GROUND)}
        series, near, far = (
            complex(numbers[one], numbers[other])
            for one, other in (("R", "X"), ("GI", "BI"), ("GJ", "BJ"))
        )
        charging = numbers["B"]
        found.append(Branch(start, end, on, series, 1.0, 0.0, near, far, charging, limit))
        rows.append(("BRANCH", record, ""))
    table = Rows(raw, "TRANSFORMER")
    stars = 0
    for record in table.records:
        sides = [bus_of(raw, table, record, name, place) for name in ("I", "J")]
        status = table.whole(record, "STAT", 1)
        three = table.number(record, "K", 0.0) != 0
        if three:
            sides.append(bus_of(raw, table, record, "K", place))
            star = len(place) + stars
            stars += 1
            names.append(f"{'-'.join(names[at] for at in sides)} star {stars}")
        ratios = [winding_ratio(table, record, w, kv[at]) for w, at in zip("123", sides)]  # noqa: B905 - two or three
        legs = _series(raw, table, record, three)
        ground = _magnetising(raw, table, record, kv[sides[0]])
        for w, at, z, ratio in zip("123", sides, legs, ratios):  # noqa: B905 - two have one
            limit = table.number(record, first_rate(raw.version, w), 0.0) or math.inf
            shift = table.number(record, f"ANG{w}", 0.0)
            on = status > 0 and _OUT.get(status) != w if three else status > 0
            # The admittance is at the bus of the first winding; the model has it behind the tap.
            if three:
                own = ground * (ratio * ratio) if w == "1" else 0.0
                found.append(Branch(at, star, on, z, ratio, shift, own, capacity=limit))
            else:
                z *= ratios[1] ** 2
                tap = over(ratio, ratios[1])
                own = ground * (tap * tap)
                found.append(Branch(at, sides[1], on, z, tap, shift, own, capacity=limit))
            rows.append(("TRANSFORMER", record, w))
    return found, rows, stars


def winding_ratio(table: Rows, record: Record, winding: str, base_kv: float) -> float:
    """Compute the off-nominal ratio of a winding, per unit of its bus."""
    code = table.whole(record, "CW", 1)
    value = table.number(record, f"WINDV{winding}", base_kv if code == 2 else 1.0)
    if code == 1 or base_kv <= 0:
        return value
    nominal = table.number(record, f"NOMV{winding}", 0.0) or base_kv
    return value / base_kv if code == 2 else value * nominal / base_kv


def pairs_of(record: Record, table: Rows, base: float) -> Iterator[tuple[str, float, float]]:
    """Yield impedances between windings on the system's base: pair, resistance, reactance."""
    code = table.whole(record, "CZ", 1)
    for pair in ("1_2", "2_3", "3_1"):
        r, x = table.number(record, f"R{pair}", 0.0), table.number(record, f"X{pair}", 0.0)
        own = table.number(record, f"SBASE{pair}", base)
        if code == 3:
            r = r / 1e6 / own if own else 0.0
            x = math.sqrt(max(x * x - r * r, 0.0))
        scale = base / own if code in (2, 3) and own else 1.0
        yield pair, r * scale, x * scale


def _series(raw: RawText, table: Rows, record: Record, three: bool) -> list[complex]:
    found = {pair: complex(r, x) for pair, r, x in pairs_of(record, table, raw.base_mva)}
    if not three:
        return [found["1_2"]]
    a, b, c = found["1_2"], found["2_3"], found["3_1"]
    return [(a + c - b) / 2, (a + b - c) / 2, (b + c - a) / 2]


def _magnetising(raw: RawText, table: Rows, record: Record, base_kv: float) -> complex:
    """Compute the magnetising admittance of a transformer on the system's base."""
    first, second = (table.number(record, name, 0.0) for name in ("MAG1", "MAG2"))
    if table.whole(record, "CM", 1) != 2:
        return complex(first, second)
    # Losses without load in W, and the exciting current on the winding's own base and voltage.
    conductance = first / 1e6 / raw.base_mva
    size = abs(second) * table.number(record, "SBASE1_2", raw.base_mva) / raw.base_mva
    nominal = table.number(record, "NOMV1", 0.0)
    scale = base_kv / nominal if nominal > 0 and base_kv > 0 else 1.0
    # Products, not powers: those of huge numbers would raise an error.
    rest = size * size - conductance * conductance
    return complex(conductance, -math.sqrt(max(rest, 0.0))) * (scale * scale)
