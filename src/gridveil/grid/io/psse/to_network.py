"""Make a :class:`~gridveil.grid.model.network.Network` from a PSS/E case."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gridveil.errors import InputError
from gridveil.grid.io import numbered
from gridveil.grid.io.psse.branches import branches, table_of
from gridveil.grid.io.psse.constant_elements import ac_problems, constants, series_devices
from gridveil.grid.io.psse.text import RawText, Record, Rows, bus_of
from gridveil.grid.model.checks import Problem, refuse, with_references
from gridveil.grid.model.element_tables import FREE_VOLTAGE
from gridveil.grid.model.network import Buses, Generators, Network

_UNMODELLED = {
    "SWDEV": "system switching devices",
    "MTDC": "multi-terminal DC lines",
    "GNE": "GNE devices",
    "INDMACH": "induction machines",
}
_LIMITS = {"v_min": ("NVLO", 0.9), "v_max": ("NVHI", 1.1)}


@dataclass(frozen=True, eq=False)
class Layout:
    """The record that every row of the model's tables came from.

    Branches are the records of BRANCH, then one entry for every winding of TRANSFORMER (one for a
    two-winding transformer): its section, its record and the winding.
    """

    branches: list[tuple[str, Record, str]]
    generators: tuple[Record, ...]
    loads: list[tuple[Record, int]]


@np.errstate(all="ignore")
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
    found, rows, stars = branches(raw, place, kv, names)
    count = len(bus) + stars
    alive = np.concatenate([kind != 4, np.ones(stars, dtype=bool)])
    load, reactive, shunt = np.zeros(count), np.zeros(count), np.zeros(count)
    loads = []
    table = Rows(raw, "LOAD")
    for record in table.records:
        at = bus_of(raw, table, record, "I", place)
        if table.number(record, "STAT", 1.0) > 0:
            loads.append((record, at))
            load[at] += sum(table.number(record, name, 0.0) for name in ("PL", "IP", "YP"))
            reactive[at] += sum(table.number(record, name, 0.0) for name in ("QL", "IQ"))
            reactive[at] -= table.number(record, "YQ", 0.0)  # positive if it is a capacitor
            if raw.version >= 34 and table.number(record, "DGENM", 0.0) > 0:
                load[at] -= table.number(record, "DGENP", 0.0)
                reactive[at] -= table.number(record, "DGENQ", 0.0)
    susceptance = np.zeros(count)
    table = Rows(raw, "FIXSHUNT")
    for record in table.records:
        if table.number(record, "STATUS", 1.0) > 0:
            at = bus_of(raw, table, record, "I", place)
            shunt[at] += table.number(record, "GL", 0.0)
            susceptance[at] += table.number(record, "BL", 0.0)
    for there, power in _switched(raw, place):
        if there is not None:
            susceptance[there] += power
    volts = {
        column: np.concatenate([bus.column(name, usual), np.full(stars, free)])
        for (column, (name, usual)), free in zip(_LIMITS.items(), FREE_VOLTAGE, strict=True)
    }
    fixed, notes = constants(raw, place, alive, volts["v_min"])
    units = Rows(raw, "GEN")
    where = np.array([bus_of(raw, units, one, "I", place) for one in units.records], dtype=np.int64)
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
            shunt=shunt + fixed.active,
            reference=np.concatenate([kind == 3, np.zeros(stars, dtype=bool)]),
            in_service=alive,
            reactive_load=reactive,
            reactive_shunt=susceptance,
            fixed_load=fixed.active,
            fixed_reactive_load=fixed.reactive,
            q_min=fixed.low,
            q_max=fixed.high,
            **volts,
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
        table_of(found, names, alive),
        notes=(*notes, "files of this kind have no costs: they are 0, or those of a population"),
    )
    return with_references(network), Layout(rows, units.records, loads)


def _switched(raw: RawText, place: dict[int, int]) -> Iterator[tuple[int | None, float]]:
    """Yield the bus and the present Mvar at nominal voltage of every switched shunt.

    The bus is None if the record can't be read: DC power flow has no use for it.
    """
    table = Rows(raw, "SWSHUNT")
    for record in table.records:
        try:
            on = table.number(record, "STAT", 1.0) > 0
            power = table.number(record, "BINIT", 0.0)
            yield bus_of(raw, table, record, "I", place), power if on else 0.0
        except InputError:
            yield None, 0.0


def ac_gaps(raw: RawText) -> list[Problem]:
    """List elements of which AC power flow needs what is not read."""
    bus = Rows(raw, "BUS")
    place = {bus.whole(record, "I", 0): at for at, record in enumerate(bus.records)}
    found = [*ac_problems(raw, place)]
    found += [
        Problem(
            f"switched shunt {row + 1}",
            "",
            "its bus, status or BINIT can't be read",
            "Correct the record.",
        )
        for row, (at, _) in enumerate(_switched(raw, place))
        if at is None
    ]
    table = Rows(raw, "TRANSFORMER")
    for record in table.records:
        known = [f"TAB{w}" for w in "123"[: len(record) - 2]]
        if any(table.number(record, name, 0.0) != 0 for name in known):
            ends = "-".join(str(table.whole(record, end, 0)) for end in "IJ")
            found.append(
                Problem(
                    f"transformer {ends}",
                    "TAB",
                    "its table of impedance corrections is not read",
                    "Write the corrected impedance, and 0 for TAB.",
                )
            )
    return found


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
        ]
        + series_devices(raw),
    )
