"""Make a :class:`~gridveil.grid.model.network.Network` from a PSS/E case."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from gridveil.errors import InputError
from gridveil.grid.io import numbered, over
from gridveil.grid.io.psse.text import Field, RawText, Record, layout
from gridveil.grid.model.checks import Problem, refuse
from gridveil.grid.model.network import Branches, Buses, Generators, Ints, Network
from gridveil.grid.model.reference_buses import with_references

_UNMODELLED = {
    "SWDEV": "system switching devices",
    "VSCDC": "VSC DC lines",
    "MTDC": "multi-terminal DC lines",
    "FACTS": "FACTS devices",
    "GNE": "GNE devices",
    "INDMACH": "induction machines",
}
_LEAST_X = 1e-4
"""The reactance (p.u.) of a branch without one: PSS/E's threshold of zero impedance."""
# The winding that is out of service, by the status of a three-winding transformer.
_OUT = {2: "2", 3: "3", 4: "1"}


class Rows:
    """The records of one section, field by field."""

    def __init__(self, raw: RawText, section: str) -> None:
        self._places = {
            name: (line, at)
            for line, names in enumerate(layout(raw.version)[section])
            for at, name in enumerate(names)
        }
        self.records = raw.sections[section]
        self._what = f"{raw.file}: section {section}"

    def __len__(self) -> int:
        return len(self.records)

    def field(self, record: Record, name: str) -> Field | None:
        """Return the field of a record, or None if it is missing or empty."""
        line, at = self._places[name]
        if line >= len(record) or at >= len(record[line]) or not record[line][at].text:
            return None
        return record[line][at]

    def number(self, record: Record, name: str, default: float) -> float:
        """Return a field as a number."""
        found = self.field(record, name)
        if found is None:
            return default
        try:
            value = float(found.text.lower().replace("d", "e"))  # Fortran writes 1.0D+02
        except ValueError:
            value = math.nan
        if math.isnan(value):
            # The message does not quote the value: it may be private.
            raise InputError(f"{self._what} has a {name} that is not a number.")
        return value

    def whole(self, record: Record, name: str, default: int) -> int:
        """Return a field as a whole number: a bus, a code or a status."""
        value = self.number(record, name, default)
        if math.isinf(value):
            raise InputError(f"{self._what} has a {name} that is not a finite number.")
        return int(value)

    def column(self, name: str, default: float) -> Any:
        """Return one number for every record."""
        return np.array([self.number(record, name, default) for record in self.records])


@dataclass(frozen=True, eq=False)
class Layout:
    """The record that every row of the model's tables came from.

    Branches are the records of BRANCH, then one entry for every winding of TRANSFORMER (one for a
    two-winding transformer): its section, its record and the winding.
    """

    branches: list[tuple[str, Record, str]]
    generators: tuple[Record, ...]
    loads: list[tuple[Record, int]]


@np.errstate(over="ignore", divide="ignore", invalid="ignore")
def build(raw: RawText) -> tuple[Network, Layout]:
    """Read the sections; the network has no ``source`` yet."""
    _refuse_unmodelled(raw)
    bus = Rows(raw, "BUS")
    numbers = [bus.whole(record, "I", 0) for record in bus.records]
    place = {number: at for at, number in enumerate(numbers) if number}
    if len(place) < len(bus):
        raise InputError(
            f"{raw.file}: section BUS has a number twice, or none.", remedy="Renumber the buses."
        )
    kv = bus.column("BASKV", 0.0)
    kind = bus.column("IDE", 1.0)
    names = [str(number) for number in place]
    ends, rows, stars = _branches(raw, place, kv, names)
    count = len(bus) + stars
    alive = np.concatenate([kind != 4, np.ones(stars, dtype=bool)])
    load, reactive, shunt = np.zeros(count), np.zeros(count), np.zeros(count)
    loads = []
    table = Rows(raw, "LOAD")
    for record in table.records:
        at = _at(raw, table, record, "I", place)
        if table.number(record, "STAT", 1.0) > 0:
            loads.append((record, at))
            load[at] += sum(table.number(record, name, 0.0) for name in ("PL", "IP", "YP"))
            reactive[at] += sum(table.number(record, name, 0.0) for name in ("QL", "IQ"))
            if raw.version >= 34 and table.number(record, "DGENM", 0.0) > 0:
                load[at] -= table.number(record, "DGENP", 0.0)
    susceptance = np.zeros(count)
    table = Rows(raw, "FIXSHUNT")
    for record in table.records:
        if table.number(record, "STATUS", 1.0) > 0:
            at = _at(raw, table, record, "I", place)
            shunt[at] += table.number(record, "GL", 0.0)
            susceptance[at] += table.number(record, "BL", 0.0)
    notes = [*_dc_lines(raw, place, shunt)]
    units = Rows(raw, "GEN")
    where = np.array([_at(raw, units, one, "I", place) for one in units.records], dtype=np.int64)
    none = np.zeros(len(units))
    low, high = (
        np.clip(units.column(name, d), -1e9, 1e9) for name, d in (("PB", -9999.0), ("PT", 9999.0))
    )
    network = Network(
        "network",
        raw.base_mva,
        Buses(
            name=tuple(names),
            load=load,
            shunt=shunt,
            reference=np.concatenate([kind == 3, np.zeros(stars, dtype=bool)]),
            in_service=alive,
            reactive_load=reactive,
            reactive_shunt=susceptance,
        ),
        Generators(
            name=numbered(f"g{names[at]}" for at in where),
            bus=where,
            p_min=low,
            p_max=high,
            in_service=(units.column("STAT", 1.0) > 0) & alive[where],
            quadratic=none,
            linear=none,
            constant=none,
            points=(None,) * len(units),
            q_min=units.column("QB", -9999.0),
            q_max=units.column("QT", 9999.0),
        ),
        _table(ends, names, alive),
        notes=(*notes, "files of this kind have no costs: they are 0, or those of a population"),
    )
    return with_references(network), Layout(rows, units.records, loads)


def _table(ends: list[tuple[Any, ...]], names: list[str], alive: Any) -> Branches:
    start, end, r, x, tap, shift, rating, on, b = zip(*ends, strict=True) if ends else [()] * 9
    ends_at: list[Ints] = [np.array(one, dtype=np.int64) for one in (start, end)]
    limit = np.array(rating, dtype=float)
    reactance = np.array(x, dtype=float)
    used = np.array(on, dtype=bool) & alive[ends_at[0]] & alive[ends_at[1]]
    return Branches(
        name=numbered(f"{names[i]}-{names[j]}" for i, j in zip(*ends_at, strict=True)),
        from_bus=ends_at[0],
        to_bus=ends_at[1],
        resistance=np.array(r, dtype=float),
        reactance=np.where(reactance == 0, _LEAST_X, reactance),
        tap=np.array(tap, dtype=float),
        shift=np.array(shift, dtype=float),
        capacity=np.where(limit == 0, np.inf, limit),
        angle_min=np.full(len(limit), -np.inf),
        angle_max=np.full(len(limit), np.inf),
        in_service=used,
        charging=np.array(b, dtype=float),
    )


def _at(raw: RawText, rows: Rows, record: Record, name: str, place: dict[int, int]) -> int:
    number = abs(rows.whole(record, name, -1))
    if number not in place:
        raise InputError(
            f"{raw.file}: a record is at bus {number}, which section BUS does not have.",
            remedy="Correct the number, or remove the record.",
        )
    return place[number]


def first_rate(version: int, winding: str = "") -> str:
    """Return the name of the rating that is the capacity of a branch or a winding."""
    name = "RATE1" if version >= 34 else "RATEA"
    return f"{name}_{winding}" if winding else name


def _branches(
    raw: RawText, place: dict[int, int], kv: Any, names: list[str]
) -> tuple[list[tuple[Any, ...]], list[tuple[str, Record, str]], int]:
    found: list[tuple[Any, ...]] = []
    rows: list[tuple[str, Record, str]] = []
    table = Rows(raw, "BRANCH")
    for record in table.records:
        start, end = (_at(raw, table, record, name, place) for name in ("I", "J"))
        rating = table.number(record, first_rate(raw.version), 0.0)
        on = table.number(record, "ST", 1.0) > 0
        r, x, b = (table.number(record, name, 0.0) for name in ("R", "X", "B"))
        b += table.number(record, "BI", 0.0) + table.number(record, "BJ", 0.0)
        found.append((start, end, r, x, 1.0, 0.0, rating, on, b))
        rows.append(("BRANCH", record, ""))
    table = Rows(raw, "TRANSFORMER")
    stars = 0
    for record in table.records:
        sides = [_at(raw, table, record, name, place) for name in ("I", "J")]
        status = table.whole(record, "STAT", 1)
        three = table.number(record, "K", 0.0) != 0
        if three:
            sides.append(_at(raw, table, record, "K", place))
            star = len(place) + stars
            stars += 1
            names.append(f"{'-'.join(names[at] for at in sides)} star {stars}")
        ratios = [winding_ratio(table, record, w, kv[at]) for w, at in zip("123", sides)]  # noqa: B905 - two or three
        series = _series(raw, table, record, three)
        for w, at, (r, x), ratio in zip("123", sides, series, ratios):  # noqa: B905 - two have one
            rating = table.number(record, first_rate(raw.version, w), 0.0)
            shift = table.number(record, f"ANG{w}", 0.0)
            on = status > 0 and _OUT.get(status) != w if three else status > 0
            if three:
                found.append((at, star, r, x, ratio, shift, rating, on, 0.0))
            else:
                scale = ratios[1] ** 2
                tap = over(ratio, ratios[1])
                found.append((at, sides[1], r * scale, x * scale, tap, shift, rating, on, 0.0))
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


def _series(raw: RawText, table: Rows, record: Record, three: bool) -> list[tuple[float, float]]:
    found = {pair: complex(r, x) for pair, r, x in pairs_of(record, table, raw.base_mva)}
    if not three:
        return [(found["1_2"].real, found["1_2"].imag)]
    a, b, c = found["1_2"], found["2_3"], found["3_1"]
    legs = [(a + c - b) / 2, (a + b - c) / 2, (b + c - a) / 2]
    return [(leg.real, leg.imag) for leg in legs]


def _dc_lines(raw: RawText, place: dict[int, int], shunt: Any) -> Iterator[str]:
    """Add the set power of two-terminal DC lines to `shunt`, drawn at one end and fed in at one."""
    lines = raw.sections["TWODC"]
    for record in lines:
        try:
            mode, value, volts = (float(record[0][at].text) for at in (1, 3, 4))
            kind = int(mode)
            ends = [place[int(float(record[line][0].text))] for line in (1, 2)]
        except (IndexError, ValueError, KeyError, OverflowError):
            raise InputError(
                f"{raw.file}: section TWODC has a record that can't be read.", remedy="Correct it."
            ) from None
        power = {0: 0.0, 1: abs(value), 2: abs(value) * volts / 1000}.get(kind, 0.0)
        shunt[ends[0]] += power
        shunt[ends[1]] -= power
    if lines:
        yield f"{len(lines):,} DC lines are public and carry their set power, without losses"


def _refuse_unmodelled(raw: RawText) -> None:
    refuse(
        raw.file,
        [
            Problem(
                f"{len(raw.sections[section]):,} {words}",
                f"section {section}",
                "the model has no such element",
                "Replace them by injections, or remove them.",
            )
            for section, words in _UNMODELLED.items()
            if raw.sections.get(section)
        ],
    )
