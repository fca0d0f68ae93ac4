"""What is public and constant in a PSS/E case: DC lines and FACTS devices."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from gridveil.errors import InputError
from gridveil.grid.io import over
from gridveil.grid.io.psse.text import RawText, Record, Rows, bus_of
from gridveil.grid.model.checks import Problem
from gridveil.grid.model.network import Floats

_ENDS = {"TWODC": ("IPR", "IPI"), "VSCDC": ("IBUS_1", "IBUS_2")}
_WORDS = {"TWODC": "DC line", "VSCDC": "VSC DC line"}


@dataclass(frozen=True, eq=False)
class Constants:
    """What DC lines draw at every bus (MW and Mvar), and the Mvar that FACTS devices may inject."""

    active: Floats
    reactive: Floats
    low: Floats
    high: Floats


def constants(
    raw: RawText, place: dict[int, int], alive: Any, lowest: Any
) -> tuple[Constants, list[str]]:
    """Read what is public and constant at every bus, and a note for each kind of it.

    Parameters
    ----------
    raw, place
        The case, and the place of every bus by its number.
    alive, lowest
        Whether a bus is in service, and the lowest voltage that it may have, per unit.
    """
    found, notes = Constants(*np.zeros((4, len(alive)))), []
    lines = 0
    for section, names in _ENDS.items():
        rows = Rows(raw, section)
        for at, record in enumerate(rows.records):
            lines += 1
            ends = [bus_of(raw, rows, record, name, place) for name in names]
            if not alive[ends].all():
                continue
            for side, (bus, power) in enumerate(zip(ends, _drawn(raw, section, at), strict=True)):
                found.active[bus] += power
                if section == "TWODC":
                    share = np.nan_to_num(_reactive_share(rows, record, "RI"[side]))
                    found.reactive[bus] += abs(power) * share
    if lines:
        notes.append(f"{lines:,} DC lines are public and carry their set power")
    devices = Rows(raw, "FACTS")
    for record in devices.records:
        try:
            bus, size = _compensator(raw, devices, record, place)
        except InputError:
            continue  # DC power flow has no use for it; `ac_problems` names it
        found.high[bus] += size * lowest[bus]
        found.low[bus] -= size * lowest[bus]
    if len(devices):
        notes.append(f"{len(devices):,} FACTS devices are public and take part in AC alone")
    return found, notes


def series_devices(raw: RawText) -> list[Problem]:
    """List the FACTS devices in service that control a series element between two buses."""
    rows = Rows(raw, "FACTS")
    return [
        Problem(
            f"FACTS device {rows.whole(record, 'I', 0)}-{rows.whole(record, 'J', 0)}",
            "section FACTS",
            "it is in series between two buses, and the model has no such element",
            "Replace it by a branch or by injections, and set its MODE to 0.",
        )
        for record in rows.records
        if rows.whole(record, "J", 0) and rows.whole(record, "MODE", 1) > 0
    ]


def ac_problems(raw: RawText, place: dict[int, int]) -> Iterator[Problem]:
    """Yield DC lines and FACTS devices of which AC power flow needs what is not read."""
    rows = Rows(raw, "TWODC")
    for at, record in enumerate(rows.records):
        share = [_reactive_share(rows, record, end) for end in "RI"]
        if any(_drawn(raw, "TWODC", at)) and not np.isfinite(share).all():
            yield Problem(
                f"DC line {at + 1}",
                "ANMXR, ANMXI",
                "it has no firing angles, from which its reactive power follows",
                "Give them, or block the line (MDC 0).",
            )
    rows = Rows(raw, "VSCDC")
    for at, record in enumerate(rows.records):
        if _in_service(rows, record):
            yield Problem(
                f"VSC DC line {at + 1}",
                "section VSCDC",
                "the reactive power of its converters is not read",
                "Replace it by loads or generators, or take it out of service (MDC 0).",
            )
    rows = Rows(raw, "FACTS")
    for at, record in enumerate(rows.records):
        try:
            _compensator(raw, rows, record, place)
        except InputError:
            yield Problem(
                f"FACTS device {at + 1}",
                "I, SHMX",
                "its bus or its largest current can't be read",
                "Correct the record.",
            )


def _drawn(raw: RawText, section: str, at: int) -> tuple[float, float]:
    """Return the MW that a DC line draws at its two ends; what it feeds in is below 0."""
    rows = Rows(raw, section)
    record = rows.records[at]
    ends = (_two_terminal if section == "TWODC" else _vsc)(rows, record)
    if ends is None or not all(math.isfinite(power) for power in ends):
        what, reads = (
            ("no power and voltage that can be read", "MDC, RDC, SETVL and VSCHD")
            if section == "TWODC"
            else ("no converter with a set power and one with a voltage", "TYPE and DCSET")
        )
        raise InputError(
            f"{raw.file}: {_WORDS[section]} {at + 1} of section {section} has {what}.",
            remedy=f"Correct its {reads}, or block it (MDC 0).",
        )
    return ends


def _two_terminal(rows: Rows, record: Record) -> tuple[float, float]:
    """Compute what a two-terminal line draws at its rectifier and at its inverter.

    SETVL is MW at the rectifier, MW at the inverter if it is negative, or ampere. The current is
    that at the scheduled voltage VSCHD, and RDC takes its square.
    """
    mode = rows.whole(record, "MDC", 0)
    if mode not in (1, 2):
        return 0.0, 0.0
    value, volts = (rows.number(record, name, math.nan) for name in ("SETVL", "VSCHD"))
    size, ohms = abs(value), rows.number(record, "RDC", 0.0)
    power = size if mode == 1 else size * volts / 1000
    current = over(power, volts) if ohms and power else 0.0
    lost = ohms * current * current
    return (power + lost, -power) if mode == 1 and value < 0 else (power, lost - power)


def _in_service(rows: Rows, record: Record) -> bool:
    """Say whether both converters of a VSC line run."""
    return all(rows.whole(record, name, 1) != 0 for name in ("MDC", "TYPE_1", "TYPE_2"))


def _vsc(rows: Rows, record: Record) -> tuple[float, float] | None:
    """Compute what a VSC line draws at its two ends; None unless one has a set power.

    One converter (TYPE 2) feeds DCSET into its bus, and the other one (TYPE 1) holds the voltage
    of the line and draws this power and all losses: those of both converters in kW, linear in the
    current in ampere, and those of the line's resistance.
    """
    if not _in_service(rows, record):
        return 0.0, 0.0
    kinds = [rows.whole(record, f"TYPE_{end}", 1) for end in "12"]
    if sorted(kinds) != [1, 2]:
        return None
    fed, volts = (rows.number(record, f"DCSET_{kinds.index(k) + 1}", math.nan) for k in (2, 1))
    current = over(abs(fed), volts)
    lost = rows.number(record, "RDC", 0.0) * current * current
    for end in "12":
        fixed, slope, least = (
            rows.number(record, f"{name}_{end}", 0.0) for name in ("ALOSS", "BLOSS", "MINLOSS")
        )
        lost += max(fixed + slope * 1000 * current, least) / 1000
    return (-fed, fed + lost) if kinds[0] == 2 else (fed + lost, -fed)


def _reactive_share(rows: Rows, record: Record, end: str) -> float:
    """Compute the Mvar that a converter draws for each MW; NaN if its angle can't be read.

    A case does not state it. As in pypowsybl the power factor is the mean of the cosines of the
    largest firing angle and of 60 degrees, at which commutation ends.
    """
    try:
        angle = rows.number(record, f"ANMX{end}", math.nan)
    except InputError:
        return math.nan
    factor = (math.cos(math.radians(angle)) + 0.5) / 2 if math.isfinite(angle) else math.nan
    return math.sqrt(1 / factor**2 - 1) if factor > 0 else math.nan


def _compensator(
    raw: RawText, rows: Rows, record: Record, place: dict[int, int]
) -> tuple[int, float]:
    """Return the bus of a FACTS device, and the most Mvar it injects or draws at 1 per unit."""
    bus = bus_of(raw, rows, record, "I", place)
    size = max(rows.number(record, "SHMX", 9999.0), 0.0)
    return bus, size if rows.whole(record, "MODE", 1) > 0 else 0.0
