"""Read what AC power flow needs of a PyPSA network beside what DC does.

Reactive power of loads, storage units and stores is constant, at ``q_set``; links have none. PyPSA
has no limits of the reactive power of generators, so theirs is unlimited. Shunt impedances, which
PyPSA's own ``optimize`` leaves out, are in ``pf``, and in AC here.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gridveil.grid.io.pypsa.read_columns import (
    Snapshot,
    active_ones,
    numbers,
    places,
    static,
    values,
)
from gridveil.grid.model.checks import Problem
from gridveil.grid.model.network import Floats

_LIMITS = {"v_min": ("v_mag_pu_min", 0.9), "v_max": ("v_mag_pu_max", 1.1)}
"""Attributes of a bus that limit its voltage, and what AC takes if they are PyPSA's defaults."""


def reactive_columns(source: Snapshot) -> dict[str, Floats]:
    """Return the columns of the bus table that only AC reads, active power apart."""
    network, buses = source.network, static(source.network, "Bus")
    found = {name: _limit(source, name) for name in _LIMITS}
    none = np.zeros(len(buses))
    more = ("reactive_load", "fixed_reactive_load", "ac_shunt", "reactive_shunt")
    found |= {name: none.copy() for name in more}
    if source.several:
        return found  # AC is refused: see `ac_gaps`
    for component, of in (
        ("Load", "reactive_load"),
        ("StorageUnit", "fixed_reactive_load"),
        ("Store", "fixed_reactive_load"),
    ):
        active = active_ones(network, component)
        if active.any():
            drawn = -values(source, component, "q_set") * values(source, component, "sign")
            at = places(network, component, "bus")
            unsaid = 0.0 if component != "Load" else np.nan
            np.add.at(found[of], at[active], np.nan_to_num(drawn[active], nan=unsaid))
    return found | _shunt_impedances(source)


def _limit(source: Snapshot, which: str) -> Floats:
    """Return the limit of the voltage at every bus."""
    name, usual = _LIMITS[which]
    frame = static(source.network, "Bus")
    if name not in frame:
        return np.full(len(frame), usual)
    given = numbers(frame, "Bus", name)
    return np.where((given > 0) & np.isfinite(given), given, usual)


def _shunt_impedances(source: Snapshot) -> dict[str, Floats]:
    """Return what the shunt impedances of every bus draw and inject at nominal voltage."""
    frame, buses = static(source.network, "ShuntImpedance"), static(source.network, "Bus")
    active = active_ones(source.network, "ShuntImpedance")
    found = {"ac_shunt": np.zeros(len(buses)), "reactive_shunt": np.zeros(len(buses))}
    if active.any():
        at = places(source.network, "ShuntImpedance", "bus")[active]
        square = numbers(buses, "Bus", "v_nom")[at] ** 2
        for column, letter in (("ac_shunt", "g"), ("reactive_shunt", "b")):
            siemens = numbers(frame, "ShuntImpedance", letter)[active]
            np.add.at(found[column], at, siemens * square)
    return found


def reactive_notes(source: Snapshot) -> Iterator[str]:
    """Yield notes for the owner about what AC takes where PyPSA says nothing."""
    yield "PyPSA has no limits of the reactive power of generators: in AC theirs is unlimited"
    frame = static(source.network, "Bus")
    given = np.array([_limit(source, which) == usual for which, (_, usual) in _LIMITS.items()])
    if count := int(given.all(axis=0).sum()):
        yield (
            f"AC keeps the voltages of {count:,} of {len(frame):,} buses between "
            f"{_LIMITS['v_min'][1]:g} and {_LIMITS['v_max'][1]:g} per unit: give others as "
            "v_mag_pu_min and v_mag_pu_max"
        )


def ac_gaps(source: Snapshot) -> list[Problem]:
    """List what AC power flow can't have as it is."""
    if not source.several:
        return []
    return [
        Problem(
            f"{len(source.labels):,} snapshots",
            f"{source.labels[0]} to {source.labels[-1]}",
            "reactive loads of several snapshots are not read",
            "Read one: snapshot=... (--snapshot NAME).",
        )
    ]
