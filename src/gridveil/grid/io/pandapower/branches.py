"""Read the branches of a pandapower net: lines, transformers and impedances, and stars of three.

A line or transformer that an open switch disconnects at one end carries no power in DC. In AC the
other end still draws its charging or its no-load losses, as in pandapower's ``runpp``; so does a
line to a bus that is out of service.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from gridveil.grid.io.pandapower.other_elements import present
from gridveil.grid.io.pandapower.read_columns import (
    BRANCH_TABLES,
    UNLIMITED_MVA,
    column,
    flags,
    labels,
    net_number,
    places,
    whole,
)
from gridveil.grid.io.pandapower.transformers import star_branches, star_names, trafo_values
from gridveil.grid.model.network import Bools, Branches, Buses, Floats
from gridveil.grid.model.two_ports import two_ports

_ENDS = {"line": ("from_bus", "to_bus"), "trafo": ("hv_bus", "lv_bus")}
_SWITCH_LETTER = {"line": "l", "trafo": "t", "impedance": ""}
_Columns = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Hanging:
    """Which branches are connected at their first end alone, and which at their second."""

    first: Bools
    second: Bools


def read_branches(net: Any, place: pd.Series[int], alive: Bools) -> tuple[Branches, Hanging]:
    """Return all branches, and those that are connected at one end alone.

    Parameters
    ----------
    net
        The net.
    place
        The place of each bus in the bus table.
    alive
        Which buses are in service.
    """
    parts = [_branch_part(net, table, place) for table in BRANCH_TABLES]
    if len(stars := present(net, "trafo3w")):
        parts.append(star_branches(net, place))
    joined = {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
    at_start, at_end = alive[joined["from_bus"]], alive[joined["to_bus"]]
    opened = joined.pop("open_from"), joined.pop("open_to")
    # A line to a dead bus is still charged; anything else there is off.
    dead = np.arange(len(at_start)) < len(net.line)
    used = joined["in_service"]
    hanging = Hanging(
        used & at_start & ~opened[0] & (opened[1] | (dead & ~at_end)),
        used & at_end & ~opened[1] & (opened[0] | (dead & ~at_start)),
    )
    joined["in_service"] = used & ~joined.pop("cut") & at_start & at_end
    count = len(used)
    branches = Branches(
        name=(*labels(net, BRANCH_TABLES), *star_names(stars)),
        angle_min=np.full(count, -np.inf),
        angle_max=np.full(count, np.inf),
        **joined,
    )
    return branches, hanging


def with_hanging(buses: Buses, branches: Branches, hanging: Hanging, base: float) -> Buses:
    """Add what branches that are connected at one end alone draw there in AC."""
    ports = two_ports(branches)
    ac_shunt, reactive = buses.ac_shunt.copy(), buses.reactive_shunt.copy()
    across = ports.across_start * ports.across_end
    for which, bus, own, other in (
        (hanging.first, branches.from_bus, ports.own_start, ports.own_end),
        (hanging.second, branches.to_bus, ports.own_end, ports.own_start),
    ):
        drawn = (own[which] - across[which] / other[which]) * base
        np.add.at(ac_shunt, bus[which], drawn.real)
        np.add.at(reactive, bus[which], drawn.imag)
    return replace(buses, ac_shunt=ac_shunt, reactive_shunt=reactive)


def _branch_part(net: Any, table: str, place: pd.Series[int]) -> _Columns:
    frame = net[table]
    ends = _ENDS.get(table, ("from_bus", "to_bus"))
    values = {"line": _line_values, "trafo": _trafo_values, "impedance": _impedance_values}[table]
    found = values(net)
    limit = found["capacity"]
    found["capacity"] = np.where(~(limit < UNLIMITED_MVA) | (limit == 0), np.inf, limit)
    switch = net.switch[(net.switch["et"] == _SWITCH_LETTER[table]).to_numpy()]
    switch = switch[~flags(switch, "closed", True)]
    opened = set(zip(whole(switch, "element").tolist(), whole(switch, "bus").tolist(), strict=True))
    pairs = [zip(frame.index.tolist(), whole(frame, end).tolist(), strict=True) for end in ends]
    sides = [np.array([pair in opened for pair in one], dtype=bool) for one in pairs]
    return {
        "from_bus": places(place, frame, ends[0], table),
        "to_bus": places(place, frame, ends[1], table),
        **found,
        "in_service": flags(frame, "in_service", True),
        "cut": np.isin(frame.index, whole(switch, "element")),
        "open_from": sides[0],
        "open_to": sides[1],
    }


def _line_values(net: Any) -> _Columns:
    line = net.line
    own = pd.Series(np.arange(len(net.bus)), index=net.bus.index)
    nominal = column(net.bus, "vn_kv", "bus")[places(own, line, "from_bus", "line")]
    length = column(line, "length_km", "line")
    parallel = column(line, "parallel", "line", 1.0)
    scale = length * net.sn_mva / nominal**2 / parallel
    # A line without a loading limit is unlimited, whatever max_i_ka says, as in rundcopp.
    loading = column(line, "max_loading_percent", "line", np.nan)
    derating = column(line, "df", "line", 1.0)
    current = column(line, "max_i_ka", "line", np.nan)
    ground = length * parallel * nominal**2 / net.sn_mva
    farads = column(line, "c_nf_per_km", "line", 0.0) * 1e-9
    return {
        **_plain(len(line)),
        "capacity": loading / 100 * current * derating * parallel * nominal * np.sqrt(3),
        "resistance": column(line, "r_ohm_per_km", "line") * scale,
        "reactance": column(line, "x_ohm_per_km", "line") * scale,
        "charging": 2 * np.pi * net_number(net, "f_hz") * farads * ground,
        "conductance": column(line, "g_us_per_km", "line", 0.0) * 1e-6 * ground,
    }


def _trafo_values(net: Any) -> _Columns:
    own = pd.Series(np.arange(len(net.bus)), index=net.bus.index)
    volts = column(net.bus, "vn_kv", "bus")
    ends = [volts[places(own, net.trafo, end, "trafo")] for end in ("hv_bus", "lv_bus")]
    return trafo_values(net.trafo, ends[0], ends[1], net.sn_mva)


def _impedance_values(net: Any) -> _Columns:
    frame = net.impedance
    rating = column(frame, "sn_mva", "impedance")
    ground = {
        f"{name}_{end}": column(frame, f"{letter}{end[0]}_pu", "impedance", 0.0)
        * rating
        / net.sn_mva
        for name, letter in (("conductance", "g"), ("charging", "b"))
        for end in ("from", "to")
    }
    return {
        **_plain(len(frame)),
        "capacity": rating,
        "resistance": column(frame, "rft_pu", "impedance") / rating * net.sn_mva,
        "reactance": column(frame, "xft_pu", "impedance") / rating * net.sn_mva,
        **ground,
    }


def _plain(count: int) -> dict[str, Floats]:
    """Return the columns of branches without a tap, and without shunts."""
    zero = dict.fromkeys(
        (
            *("charging", "conductance", "charging_from", "conductance_from"),
            *("charging_to", "conductance_to", "shift"),
        ),
        np.zeros(count),
    )
    return {**zero, "tap": np.ones(count)}
