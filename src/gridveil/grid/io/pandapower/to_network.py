"""Make a :class:`~gridveil.grid.model.network.Network` from a pandapower net.

The numbers are those that pandapower's own DC-OPF (``rundcopp``) would use, computed here from the
tables, so that no internal function of pandapower is called and the net is never changed.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from gridveil.errors import InputError
from gridveil.grid.io.pandapower.branches import read_branches, with_hanging
from gridveil.grid.io.pandapower.costs import read_costs
from gridveil.grid.io.pandapower.other_elements import (
    OTHERS,
    constant_notes,
    constant_power,
    present,
    refuse_unsupported,
)
from gridveil.grid.io.pandapower.reactive import (
    reactive_columns,
    reactive_limits,
    reactive_notes,
    shunts,
)
from gridveil.grid.io.pandapower.read_columns import (
    BRANCH_TABLES,
    NO_LIMIT_MW,
    UNIT_TABLES,
    column,
    fixed_loads,
    flags,
    labels,
    net_number,
    places,
    rows,
    unit_limits,
)
from gridveil.grid.io.pandapower.transformers import with_stars
from gridveil.grid.model.network import Bools, Branches, Buses, Floats, Generators, Ints, Network

# Tables that every net has, and columns without which an element can't be placed.
NEEDED: dict[str, tuple[str, ...]] = {
    "bus": ("vn_kv",),
    "switch": ("bus", "element", "et"),
    **dict.fromkeys(("load", "gen", "sgen", "ext_grid", "shunt"), ("bus",)),
    **dict.fromkeys(("line", "impedance"), ("from_bus", "to_bus")),
    "trafo": ("hv_bus", "lv_bus"),
    "poly_cost": ("element", "et"),
    "pwl_cost": ("element", "et", "power_type", "points"),
}


# Absurd numbers give infinite or missing results, which the check of the network finds.
@np.errstate(all="ignore")
def build(net: Any) -> Network:
    """Read the tables of `net`; the result has no ``source`` yet."""
    base = net_number(net, "sn_mva")
    _refuse_missing(net)
    if not len(net.bus):
        raise InputError("The pandapower net has no bus.", remedy="Give a net with buses.")
    refuse_unsupported(net)
    _refuse_indices(net)
    place = bus_places(net)
    buses = with_stars(_buses(net, place), len(present(net, "trafo3w")))
    branches, hanging = read_branches(net, place, buses.in_service)
    buses = with_hanging(_with_reach(buses, branches), branches, hanging, base)
    generators = _generators(net, place, buses.in_service)
    reached = buses.in_service[branches.from_bus] & buses.in_service[branches.to_bus]
    branches = replace(branches, in_service=branches.in_service & reached)
    name = net.get("name") if isinstance(net.get("name"), str) else ""
    return Network(
        name or "pandapower net",
        base,
        buses,
        generators,
        branches,
        notes=_notes(net, generators, place),
    )


def limit_loading(net: Any, percent: float) -> None:
    """Set a loading limit for lines and transformers that have none.

    Raises
    ------
    InputError
        If it is not a percentage above 0.
    """
    if not 0 < percent < np.inf:
        raise InputError(
            f"max_loading is {percent}.", remedy="Give a percentage above 0: 100, for example."
        )
    for table in ("line", "trafo"):
        net[table]["max_loading_percent"] = column(
            net[table], "max_loading_percent", table, float(percent)
        )


def why_none(net: Any, parameter: str) -> tuple[str, str] | None:
    """Say what the net lacks if it has no value of a parameter, and the remedy; None if unknown."""
    if parameter != "capacity" or not (count := _unlimited(net)):
        return None
    return (
        f"none of the {count:,} lines and transformers in service has a max_loading_percent, "
        "without which a rating (max_i_ka, sn_mva) limits nothing in pandapower's own OPF",
        "Take full ratings as limits: max_loading=100 (--max-loading 100).",
    )


def _unlimited(net: Any) -> int:
    """Count lines and transformers in service without a loading limit."""
    count = 0
    for table in ("line", "trafo"):
        loading = column(net[table], "max_loading_percent", table, np.nan)
        count += int((np.isnan(loading) & flags(net[table], "in_service", True)).sum())
    return count


def _notes(net: Any, units: Generators, place: pd.Series[int]) -> tuple[str, ...]:
    notes = []
    free = (units.p_max >= NO_LIMIT_MW) | (units.p_min <= -NO_LIMIT_MW)
    if free.any():
        notes.append(
            f"{int(free.sum())} units have no limit (min_p_mw, max_p_mw) and are taken as able to "
            f"run at {NO_LIMIT_MW:g} MW, as in pandapower's own OPF"
        )
    if free_to_load := _unlimited(net):
        notes.append(
            f"{free_to_load:,} lines and transformers have no max_loading_percent and so no limit, "
            "as in pandapower's own OPF; max_loading=100 (--max-loading 100) limits them by their "
            "ratings"
        )
    untold = [p is not None and bool(np.isinf(p[:, 1]).any()) for p in units.points]
    if any(untold):
        notes.append(
            f"the piecewise-linear cost of {units.name[untold.index(True)]} has pieces that do not "
            "follow each other, or numbers too large to add up: let each piece begin where the "
            "last one ends"
        )
    joined = int((place.to_numpy() != np.arange(len(place))).sum())
    if joined:
        notes.append(f"{joined} buses are joined to another one by a closed switch")
    return (*notes, *constant_notes(net), *reactive_notes(net, units))


def _refuse_missing(net: Any) -> None:
    for table, needed in NEEDED.items():
        frame = net.get(table)
        if not isinstance(frame, pd.DataFrame):
            raise InputError(
                f"The pandapower net has no table {table}.",
                remedy="Make nets with pandapower.create_empty_network, which has every table.",
            )
        absent = [name for name in needed if name not in frame.columns]
        if absent:
            raise InputError(
                f"Table {table} of the pandapower net has no column {absent[0]}.",
                remedy="Add it, or update an old net with pandapower.convert_format.",
            )


def _refuse_indices(net: Any) -> None:
    for table in (
        "bus",
        "switch",
        "shunt",
        *UNIT_TABLES,
        *BRANCH_TABLES,
        "poly_cost",
        "pwl_cost",
        *OTHERS,
    ):
        index = present(net, table).index
        if len(index) and not (pd.api.types.is_integer_dtype(index) and index.min() >= 0):
            raise InputError(
                f"The index of table {table} of the pandapower net is not of whole numbers from 0 "
                "on.",
                remedy="Give every row a whole number: pandapower finds elements by it.",
            )
        if index.has_duplicates:
            raise InputError(
                f"Table {table} of the pandapower net has index {index[index.duplicated()][0]} "
                "more than once.",
                remedy="Give every row an index of its own.",
            )


def bus_places(net: Any) -> pd.Series[int]:
    """Return the place of each bus in the bus table; buses joined by a closed switch share one."""
    index = net.bus.index
    switch = net.switch
    joined = switch[(switch["et"] == "b").to_numpy() & flags(switch, "closed", True)]
    if (column(joined, "z_ohm", "switch", 0.0) != 0).any():
        raise InputError(
            "Table switch has a closed bus-bus switch with an impedance (z_ohm).",
            remedy="Set z_ohm to 0, or replace the switch by an impedance.",
        )
    own = pd.Series(np.arange(len(index)), index=index)
    ends = (places(own, joined, "bus", "switch"), places(own, joined, "element", "switch"))
    label = _components(len(index), *ends)
    first = pd.Series(own.to_numpy()).groupby(label).transform("min")
    return pd.Series(first.to_numpy(), index=index)


def _components(count: int, start: Ints, end: Ints) -> Ints:
    graph = coo_array((np.ones(len(start)), (start, end)), shape=(count, count))
    return np.asarray(connected_components(graph, directed=False)[1], dtype=np.int64)


def _buses(net: Any, place: pd.Series[int]) -> Buses:
    count = len(net.bus)
    in_service = flags(net.bus, "in_service", True)
    # Of buses that a closed switch joins, only the first is in service in the model.
    in_service &= place.to_numpy() == np.arange(count)
    load = drawn(net, "p_mw", place)
    return Buses(
        name=labels(net, ("bus",)),
        load=load,
        reactive_load=drawn(net, "q_mvar", place),
        shunt=shunts(net, "p_mw", place) + constant_power(net, place),
        reference=_reference(net, place),
        in_service=in_service,
        **reactive_columns(net, place),
    )


def drawn(net: Any, name: str, place: pd.Series[int]) -> Floats:
    """Return what the loads of every bus that can't move draw: ``p_mw`` or ``q_mvar``."""
    found = np.zeros(len(net.bus))
    still = fixed_loads(net)
    unsaid = {} if name == "p_mw" else {"default": 0.0}
    power = column(still, name, "load", **unsaid) * column(still, "scaling", "load", 1.0)
    np.add.at(found, places(place, still, "bus", "load"), power)
    return found


def load_places(net: Any) -> dict[str, int]:
    """Return the bus of every load of the model, by its index, and by its name if it is unique."""
    still = fixed_loads(net)
    at = places(bus_places(net), still, "bus", "load").tolist()
    found = dict(zip(map(str, still.index), at, strict=True))
    names = [str(name) for name in still["name"]] if "name" in still else []
    return found | {n: b for n, b in zip(names, at, strict=False) if names.count(n) == 1}


def bus_facts(net: Any) -> dict[str, Floats]:
    """Return the voltages of all buses."""
    return {"voltage": net.bus["vn_kv"].to_numpy(dtype=float)}


def coordinates(net: Any) -> list[tuple[float, float]]:
    """Return the coordinates of all buses."""
    return [_point(text) for text in net.bus["geo"]] if "geo" in net.bus else []


def _point(text: Any) -> tuple[float, float]:
    """Read the coordinates of a GeoJSON point."""
    try:
        x, y = json.loads(text)["coordinates"][:2]
        return float(x), float(y)
    except (TypeError, ValueError, KeyError, RecursionError):
        return np.nan, np.nan


def _reference(net: Any, place: pd.Series[int]) -> Bools:
    reference = np.zeros(len(net.bus), dtype=bool)
    grid = net.ext_grid[flags(net.ext_grid, "in_service", True)]
    slack = net.gen[flags(net.gen, "in_service", True) & flags(net.gen, "slack", False)]
    reference[places(place, grid, "bus", "ext_grid")] = True
    reference[places(place, slack, "bus", "gen")] = True
    return reference


def _with_reach(buses: Buses, branches: Branches) -> Buses:
    """Take buses that no reference bus can reach out of service, as pandapower does."""
    used = branches.in_service
    label = _components(len(buses), branches.from_bus[used], branches.to_bus[used])
    anchors = label[buses.reference & buses.in_service]
    if not len(anchors):
        raise InputError(
            "The pandapower net has no reference bus in service.",
            remedy="Add an ext_grid, or set slack to True for one gen.",
        )
    if len(set(anchors.tolist())) < len(anchors):
        raise InputError(
            "One island of the pandapower net has more than one reference bus (tables ext_grid "
            "and gen.slack), which would fix the angle between them.",
            remedy="Keep one: turn the others into gen with slack=False "
            "(pandapower.toolbox.replace_ext_grid_by_gen).",
        )
    in_service = buses.in_service & np.isin(label, anchors)
    return replace(buses, reference=buses.reference & in_service, in_service=in_service)


def _generators(net: Any, place: pd.Series[int], alive: Bools) -> Generators:
    bus = np.concatenate([places(place, rows(net, t), "bus", t) for t in UNIT_TABLES])
    limits = [unit_limits(net, table) for table in UNIT_TABLES]
    reactive = [reactive_limits(net, table) for table in UNIT_TABLES]
    used = np.concatenate([flags(rows(net, t), "in_service", True) for t in UNIT_TABLES])
    return Generators(
        name=labels(net, UNIT_TABLES),
        bus=bus,
        p_min=np.concatenate([low for low, _ in limits]),
        p_max=np.concatenate([high for _, high in limits]),
        in_service=used & alive[bus],
        q_min=np.concatenate([low for low, _ in reactive]),
        q_max=np.concatenate([high for _, high in reactive]),
        **read_costs(net),
    )
