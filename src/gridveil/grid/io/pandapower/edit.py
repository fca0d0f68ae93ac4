"""Write changed values of a network into the pandapower net that it came from."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from gridveil.grid.io import check_sizes
from gridveil.grid.io.pandapower.costs import read_costs, write_costs
from gridveil.grid.io.pandapower.read_columns import (
    BRANCH_TABLES,
    UNIT_TABLES,
    UNLIMITED_MVA,
    column,
    fixed,
    fixed_loads,
    places,
    rows,
)
from gridveil.grid.io.pandapower.to_network import bus_places
from gridveil.grid.model.network import Network


def put(net: Any, old: Network, new: Network) -> None:
    """Write every capacity, load, limit and cost of `new` that differs from `old` into `net`."""
    check_sizes(old, new, "net")
    _put_capacity(net, old, new)
    _put_load(net, old, new)
    _put_limits(net, old, new)
    # A unit that became controllable may have a cost that did not count before.
    write_costs(net, replace(old.generators, **read_costs(net)), new.generators)


def _elements(net: Any, tables: tuple[str, ...]) -> list[tuple[str, Any]]:
    return [(table, index) for table in tables for index in rows(net, table).index]


def _put_capacity(net: Any, old: Network, new: Network) -> None:
    elements = _elements(net, BRANCH_TABLES)
    capacity = new.branches.capacity
    for at in np.flatnonzero(old.branches.capacity != capacity):
        table, index = elements[at]
        {"line": _limit_line, "trafo": _limit_trafo, "impedance": _limit_impedance}[table](
            net, index, float(capacity[at])
        )


def _ensure(frame: pd.DataFrame, name: str) -> None:
    if name not in frame.columns:
        frame[name] = np.nan


def _number(frame: pd.DataFrame, index: Any, name: str, default: float) -> float:
    return float(column(frame.loc[[index]], name, "", default)[0])


def _limit_line(net: Any, index: Any, capacity: float) -> None:
    line = net.line
    _ensure(line, "max_loading_percent")
    if not np.isfinite(capacity):
        line.at[index, "max_loading_percent"] = np.nan
        return
    loading = _number(line, index, "max_loading_percent", 0.0) or 100.0
    factor = _number(line, index, "df", 1.0) * _number(line, index, "parallel", 1.0)
    nominal = float(net.bus.at[line.at[index, "from_bus"], "vn_kv"])
    line.at[index, "max_loading_percent"] = loading
    line.at[index, "max_i_ka"] = capacity / (loading / 100 * factor * nominal * np.sqrt(3))


def _limit_trafo(net: Any, index: Any, capacity: float) -> None:
    # Do not change the rating: the impedance is relative to it.
    trafo = net.trafo
    _ensure(trafo, "max_loading_percent")
    rating = float(trafo.at[index, "sn_mva"]) * _number(trafo, index, "df", 1.0)
    rating *= _number(trafo, index, "parallel", 1.0)
    loading = 100 * capacity / rating if np.isfinite(capacity) else np.nan
    trafo.at[index, "max_loading_percent"] = loading


def _limit_impedance(net: Any, index: Any, capacity: float) -> None:
    # The rating is both the limit and the base of the per-unit values: convert these too.
    rating = capacity if np.isfinite(capacity) else UNLIMITED_MVA
    scale = rating / float(net.impedance.at[index, "sn_mva"])
    net.impedance.at[index, "sn_mva"] = rating
    for name in ("rft_pu", "xft_pu", "rtf_pu", "xtf_pu"):
        net.impedance.at[index, name] *= scale
    for name in ("gf_pu", "bf_pu", "gt_pu", "bt_pu"):
        if name in net.impedance.columns:
            net.impedance.at[index, name] /= scale


def _put_load(net: Any, old: Network, new: Network) -> None:
    """Write changed loads: the first load of a bus takes the change; a bus without one gets one."""
    still = fixed_loads(net)
    at = places(bus_places(net), still, "bus", "load")
    scaling = column(still, "scaling", "load", 1.0)
    for name, ours in (("p_mw", "load"), ("q_mvar", "reactive_load")):
        before, after = getattr(old.buses, ours), getattr(new.buses, ours)
        power = column(still, name, "load", 0.0) * scaling
        for bus in np.flatnonzero(before != after):
            mine = np.flatnonzero((at == bus) & (scaling != 0))
            if not len(mine):
                _add_load(net, net.bus.index[bus], {name: float(after[bus] - before[bus])})
                continue
            several = (at == bus).sum() > 1
            others = float(power[at == bus].sum() - power[mine[0]]) if several else 0.0
            value = (float(after[bus]) - others) / scaling[mine[0]]
            _ensure(net.load, name)
            net.load.at[still.index[mine[0]], name] = value


def _add_load(net: Any, bus: Any, power: dict[str, float]) -> None:
    types = net.load.dtypes
    index = int(net.load.index.max()) + 1 if len(net.load) else 0
    known: dict[str, Any] = {"bus": bus, **power, "scaling": 1.0, "in_service": True}
    known |= {"controllable": False, "sn_mva": np.nan}
    row = {
        name: known.get(str(name), 0.0 if kind.kind == "f" else None)
        for name, kind in types.items()
    }
    added = pd.DataFrame({name: [value] for name, value in row.items()}, index=[index])
    added = added.astype(types)
    net.load = pd.concat([net.load, added]) if len(net.load) else added


def _put_limits(net: Any, old: Network, new: Network) -> None:
    before, after = old.generators, new.generators
    changed = (before.p_min != after.p_min) | (before.p_max != after.p_max)
    elements = _elements(net, UNIT_TABLES)
    still = np.concatenate([fixed(net, table) for table in UNIT_TABLES])
    for at in np.flatnonzero(changed):
        table, index = elements[at]
        low, high = float(after.p_min[at]), float(after.p_max[at])
        if still[at] and low == high:
            _set_power(net[table], index, table, low)
            continue
        frame = net[table]
        if still[at]:
            frame.at[index, "controllable"] = True
            if table == "sgen":
                # Only its active power may move; without limits pandapower would move both.
                for name in ("min_q_mvar", "max_q_mvar"):
                    _ensure(frame, name)
                    frame.at[index, name] = _number(frame, index, "q_mvar", 0.0) * _number(
                        frame, index, "scaling", 1.0
                    )
        if table == "load":
            low, high = -high, -low
        for name, value in (("min_p_mw", low), ("max_p_mw", high)):
            _ensure(frame, name)
            frame.at[index, name] = value


def _set_power(frame: pd.DataFrame, index: Any, table: str, power: float) -> None:
    scaling = _number(frame, index, "scaling", 1.0) if table == "sgen" else 1.0
    if scaling == 0:
        frame.at[index, "scaling"] = scaling = 1.0
    frame.at[index, "p_mw"] = power / scaling
    # rundcopp clips a set power to its limits, so widen them if need be.
    for name, worse in (("min_p_mw", min), ("max_p_mw", max)):
        bound = _number(frame, index, name, np.nan)
        if not np.isnan(bound):
            frame.at[index, name] = worse(bound, power / scaling)
