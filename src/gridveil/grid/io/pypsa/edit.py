"""Write changed values of a network into the PyPSA network that it came from."""

from __future__ import annotations

from typing import Any

import numpy as np

from gridveil.errors import InputError
from gridveil.grid.io import check_sizes
from gridveil.grid.io.pypsa.read_columns import (
    AVAILABILITY,
    BRANCHES,
    Snapshot,
    flags,
    places,
    shares,
    static,
    values,
)
from gridveil.grid.io.pypsa.to_network import per_unit
from gridveil.grid.model.network import Network


def put(source: Snapshot, old: Network, new: Network) -> None:
    """Write every value of `new` that differs from `old` into `source`.

    A value that is a series in PyPSA is changed at the snapshot only; a rating or a nominal power
    has no series and changes for all snapshots.
    """
    check_sizes(old, new, "PyPSA network")
    _put_capacity(source, old, new)
    _put_load(source, old, new)
    _put_limits(source, old, new)
    _put_costs(source, old, new)


def _set(source: Snapshot, component: str, element: Any, name: str, value: float) -> None:
    series = source.network.c[component].dynamic.get(name)
    # At full availability the limit is the static number, and the series stays as it is.
    kept = source.full and name in AVAILABILITY
    if series is not None and element in series.columns and not kept:
        if source.several:
            raise InputError(
                f"{name} of {component} '{element}' is a series over several snapshots.",
                remedy="Read one snapshot to change it: snapshot=... (--snapshot NAME).",
            )
        series.loc[source.label, element] = value
    else:
        static(source.network, component).loc[element, name] = value


def _put_capacity(source: Snapshot, old: Network, new: Network) -> None:
    capacity = new.branches.capacity
    changed = old.branches.capacity != capacity
    if not changed.any():
        return
    share = np.concatenate([values(source, component, "s_max_pu") for component in BRANCHES])
    tables = per_unit(source)
    lines = len(tables["Line"])
    for at in np.flatnonzero(changed):
        component = BRANCHES[int(at >= lines)]
        table = tables[component]
        place = int(at - lines) if at >= lines else int(at)
        element, limit = table.index[place], float(capacity[at])
        if component == "Transformer":
            # Do not change the rating: the impedance is relative to it.
            rating = float(table["s_nom"].iloc[place])
            _set(source, component, element, "s_max_pu", limit / rating)
            continue
        if not np.isfinite(share[at]) or share[at] <= 0:
            _set(source, component, element, "s_max_pu", 1.0)
            share[at] = 1.0
        static(source.network, component).loc[element, "s_nom"] = limit / share[at]


def _put_load(source: Snapshot, old: Network, new: Network) -> None:
    """Write changed loads: the first load of a bus takes the change; a bus without one gets one."""
    network = source.network
    buses = static(network, "Bus").index
    for name, ours in (("p_set", "load"), ("q_set", "reactive_load")):
        # Read them again: the first pass may have added loads.
        loads, sign = static(network, "Load"), values(source, "Load", "sign")
        active, at = flags(loads, "active"), places(network, "Load", "bus")
        before, after = getattr(old.buses, ours), getattr(new.buses, ours)
        drawn = -values(source, "Load", name) * sign
        for bus in np.flatnonzero(before != after).tolist():
            here = active & (at == bus)
            mine = np.flatnonzero(here & (sign != 0))
            if not len(mine):
                change = {name: float(after[bus] - before[bus])}
                network.add(
                    "Load", _free_name(loads.index, f"load {buses[bus]}"), bus=buses[bus], **change
                )
                continue
            first = mine[0]
            others = float(drawn[here].sum() - drawn[first]) if here.sum() > 1 else 0.0
            power = (float(after[bus]) - others) / -sign[first]
            _set(source, "Load", loads.index[first], name, power)


def _free_name(taken: Any, name: str) -> str:
    while name in taken:
        name += "'"
    return name


def _put_limits(source: Snapshot, old: Network, new: Network) -> None:
    before, after = old.generators, new.generators
    changed = (before.p_min != after.p_min) | (before.p_max != after.p_max)
    share = shares(source, "p_max_pu")
    size = values(source, "Generator", "p_nom")
    fixed = ~np.isnan(values(source, "Generator", "p_set"))
    frame = static(source.network, "Generator")
    for at in np.flatnonzero(changed).tolist():
        element = frame.index[at]
        low, high = float(after.p_min[at]), float(after.p_max[at])
        if fixed[at]:
            # Limits replace the set power.
            _set(source, "Generator", element, "p_set", np.nan)
        nominal = float(size[at])
        if fixed[at] or before.p_max[at] != high or nominal == 0:
            usual = high > 0 and share[at] > 0 and np.isfinite(share[at])
            nominal = high / share[at] if usual else max(abs(low), abs(high))
            frame.loc[element, "p_nom"] = nominal
            if not usual:
                _set(source, "Generator", element, "p_max_pu", high / nominal if nominal else 0.0)
        _set(source, "Generator", element, "p_min_pu", low / nominal if nominal else 0.0)


def _put_costs(source: Snapshot, old: Network, new: Network) -> None:
    units = new.generators
    frame = static(source.network, "Generator")
    held = {"marginal_cost": "linear", "marginal_cost_quadratic": "quadratic"}
    for at in range(len(units)):
        if units.points[at] is not None or units.constant[at]:
            raise InputError(
                f"The cost of generator '{units.name[at]}' has a constant or piecewise part, "
                "which PyPSA has no attribute for.",
                remedy="Use a linear or quadratic cost without a constant.",
            )
        for name, ours in held.items():
            value = float(getattr(units, ours)[at])
            if value != getattr(old.generators, ours)[at]:
                _set(source, "Generator", frame.index[at], name, value)
