"""Read what AC power flow needs of a pandapower net beside what DC does; see also `branches`.

Reactive power of loads, shunts, storages and static units is constant, as in ``runpp``. The ends of
DC lines hold their voltage: they inject reactive power within their limits. Voltage limits are
those of buses and of the generators at them. Set points of voltages are starting values, not
limits.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from gridveil.errors import InputError
from gridveil.grid.io.pandapower.other_elements import constant_power, present
from gridveil.grid.io.pandapower.read_columns import (
    NO_LIMIT_MW,
    column,
    fixed,
    fixed_loads,
    flags,
    places,
    rows,
)
from gridveil.grid.model.checks import Problem
from gridveil.grid.model.network import Floats, Generators

_SHARES = tuple(f"const_{z}{of}_percent" for z in "zi" for of in ("_p", "_q", ""))
"""Columns that say how much of a load depends on the voltage, in this pandapower and before 3.0."""
_USUAL = {"v_min": 0.9, "v_max": 1.1}
"""Limits of the voltage where a bus has none, per unit."""
_ENDS = ("from", "to")


def reactive_columns(net: Any, place: pd.Series[int]) -> dict[str, Floats]:
    """Return the columns of the bus table that only AC reads, reactive loads apart."""
    count = len(net.bus)
    reactive, q_min, q_max = np.zeros(count), np.zeros(count), np.zeros(count)
    frame = present(net, "storage")
    frame = frame[flags(frame, "in_service", True)]
    if len(frame):
        scaling = column(frame, "scaling", "storage", 1.0)
        drawn = column(frame, "q_mvar", "storage", 0.0) * scaling
        np.add.at(reactive, places(place, frame, "bus", "storage"), drawn)
    frame = present(net, "dcline")
    frame = frame[flags(frame, "in_service", True)]
    for end in _ENDS if len(frame) else ():
        at = places(place, frame, f"{end}_bus", "dcline")
        np.add.at(q_min, at, column(frame, f"min_q_{end}_mvar", "dcline", -np.inf))
        np.add.at(q_max, at, column(frame, f"max_q_{end}_mvar", "dcline", np.inf))
    return {
        "reactive_shunt": -shunts(net, "q_mvar", place) + 0.0,
        "fixed_load": constant_power(net, place),
        "fixed_reactive_load": reactive,
        "q_min": q_min,
        "q_max": q_max,
        "v_min": _voltage_limit(net, "v_min", place),
        "v_max": _voltage_limit(net, "v_max", place),
    }


def shunts(net: Any, name: str, place: pd.Series[int]) -> Floats:
    """Return what the shunts of every bus draw at nominal voltage: ``p_mw`` or ``q_mvar``."""
    frame = net.shunt[flags(net.shunt, "in_service", True)]
    if flags(frame, "step_dependency_table", False).any():
        raise InputError(
            "Table shunt uses a characteristic table (step_dependency_table).",
            remedy="Write the shunt's power into p_mw and clear step_dependency_table.",
        )
    drawn = np.zeros(len(net.bus))
    at = places(place, frame, "bus", "shunt")
    nominal = column(net.bus, "vn_kv", "bus")[at]
    rated = column(frame, "vn_kv", "shunt", np.nan)
    ratio = np.where(np.isnan(rated), 1.0, nominal / rated) ** 2
    steps = column(frame, "step", "shunt", 1.0)
    unsaid = {} if name == "p_mw" else {"default": 0.0}
    np.add.at(drawn, at, column(frame, name, "shunt", **unsaid) * steps * ratio)
    return drawn


def _voltage_limit(net: Any, which: str, place: pd.Series[int]) -> Floats:
    """Return the tightest limit at every bus: its own, and those of generators at it."""
    name = {"v_min": "min_vm_pu", "v_max": "max_vm_pu"}[which]
    nearest = np.maximum if which == "v_min" else np.minimum
    endless = -np.inf if which == "v_min" else np.inf
    found = np.full(len(net.bus), endless)
    for table in ("bus", "gen"):
        frame = net[table][flags(net[table], "in_service", True)]
        buses = frame if table == "gen" else frame.assign(bus=frame.index)
        nearest.at(found, places(place, buses, "bus", table), column(frame, name, table, endless))
    return np.where(np.isinf(found), _USUAL[which], found)


def reactive_limits(net: Any, table: str) -> tuple[Floats, Floats]:
    """Return the least and the largest reactive injection of every unit of `table`, Mvar."""
    frame = rows(net, table)
    low = column(frame, "min_q_mvar", table, -np.inf)
    high = column(frame, "max_q_mvar", table, np.inf)
    if table == "load":
        low, high = -high, -low
    # pandapower writes large numbers if there is no limit.
    low, high = (
        np.where(low <= -NO_LIMIT_MW, -np.inf, low),
        np.where(high >= NO_LIMIT_MW, np.inf, high),
    )
    if table == "sgen":
        still = fixed(net, table)
        power = column(frame, "q_mvar", table, 0.0) * column(frame, "scaling", table, 1.0)
        low, high = np.where(still, power, low), np.where(still, power, high)
    return low, high


def reactive_notes(net: Any, units: Generators) -> Iterator[str]:
    """Yield notes for the owner about what AC takes where the net says nothing."""
    bus = net.bus[flags(net.bus, "in_service", True)]
    given = [column(bus, name, "bus", np.nan) for name in ("min_vm_pu", "max_vm_pu")]
    if count := int(np.isnan(given).any(axis=0).sum()):
        yield (
            f"{count:,} buses lack a limit of the voltage (min_vm_pu, max_vm_pu): AC takes "
            f"{_USUAL['v_min']:g} and {_USUAL['v_max']:g}"
        )
    free = units.in_service & (np.isinf(units.q_min) | np.isinf(units.q_max))
    if free.any():
        yield (
            f"{int(free.sum()):,} units lack a reactive limit (min_q_mvar, max_q_mvar), and have "
            "none in AC"
        )


def ac_gaps(net: Any) -> list[Problem]:
    """List the elements that AC power flow can't have as they are."""
    found = []
    load = fixed_loads(net)
    for name in _SHARES:
        share = column(load, name, "load", 0.0)
        found += [
            Problem(
                f"load {load.index[at]}",
                f"{name} {share[at]:g}",
                "its power depends on the voltage, which the model does not have",
                "Set it to 0, or write that part as a shunt.",
            )
            for at in np.flatnonzero(share).tolist()
        ]
    frame = net.impedance[flags(net.impedance, "in_service", True)]
    there, back = (
        np.array([column(frame, name, "impedance", 0.0) for name in names])
        for names in (("rft_pu", "xft_pu"), ("rtf_pu", "xtf_pu"))
    )
    found += [
        Problem(
            f"impedance {frame.index[at]}",
            "rft_pu, xft_pu, rtf_pu, xtf_pu",
            "it differs from one end to the other",
            "Give both directions the same impedance.",
        )
        for at in np.flatnonzero((there != back).any(axis=0)).tolist()
    ]
    return found
