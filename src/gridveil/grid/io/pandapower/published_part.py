"""Build the part of a pandapower net that may be published, depending on the private parameters."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from gridveil.grid.io import Protected, coarse, unlogged
from gridveil.grid.io.pandapower.costs import unit_places
from gridveil.grid.io.pandapower.other_elements import OTHERS, present
from gridveil.grid.io.pandapower.read_columns import (
    BRANCH_TABLES,
    UNLIMITED_MVA,
    column,
    fixed,
    flags,
    net_number,
    places,
    rows,
    text,
)
from gridveil.grid.io.pandapower.to_network import build, bus_places
from gridveil.grid.io.pandapower.transformers import stars_on_base
from gridveil.grid.io.released_columns import copied, row_groups
from gridveil.grid.io.released_columns.table import KEPT
from gridveil.grid.model.network import Bools, Branches, Buses, Floats, Generators
from gridveil.grid.model.parameters import check_parameters

TABLES = tuple(name for name in KEPT["pandapower"] if name not in ("poly_cost", "pwl_cost", "net"))
UNITS = ("gen", "sgen", "load")
LIMITS = ("min_p_mw", "max_p_mw")
REACTIVE = {"max_q_mvar": 1.0, "min_q_mvar": -1.0}
"""Reactive limits, and the usual sign of each."""
SERIES = ("r_ohm_per_km", "x_ohm_per_km", "r0_ohm_per_km", "x0_ohm_per_km")
SHUNTS = ("c_nf_per_km", "g_us_per_km", "c0_nf_per_km", "g0_us_per_km")
# The texts that may be in these columns; any other text is not written.
WORDS = {
    "type": re.compile("b|n|m|ol|cs|wye|delta|PV|WP|CHP|sync|async|LS|CB|LBS|DS"),
    "vector_group": re.compile("[YyDdZzNn]{2,4}[0-9]{0,2}"),
    "zone": re.compile(r"[\w -]{1,20}"),
}
# Neutral values for columns that pandapower requires.
NEUTRAL: dict[str, float] = {
    **dict.fromkeys(("vm_pu", "scaling", "df", "parallel", "step", "max_step"), 1),
    **dict.fromkeys(("p_mw", "q_mvar", "va_degree", "pfe_kw", "i0_percent", "z_ohm"), 0.0),
    **{f"const_{z}_{p}_percent": 0.0 for z in "zi" for p in "pq"},
    **dict.fromkeys(("gf_pu", "bf_pu", "gt_pu", "bt_pu", "c_nf_per_km", "g_us_per_km"), 0.0),
    "slack_weight": 1.0,
    "max_i_ka": 99999.0,
}
SHAPES = {"Point", "LineString"}
# Types of optional columns that an empty net lacks; all other such columns are numbers.
_OPTIONAL = {
    **{name: np.dtype(object) for name in ("tap2_side", "tap2_changer_type", "vector_group")},
    **{name: np.dtype(bool) for name in ("controllable", "oltc", "tap_at_star_point")},
}
# Truth values to use if one is missing; True for all others.
_UNSAID = {"slack": False, "oltc": False, "tap_at_star_point": False}


@unlogged("pandapower")
def strip(net: Any, parameters: str | Sequence[str], protected: Protected | None = None) -> Any:
    """Make a new net with only what the allow-lists of all `parameters` contain."""
    private, known = check_parameters(parameters), protected or {}
    bare = _stripped(net, private, known)
    for table, hidden in _rows(net, known).items():
        for names, public in row_groups(private, hidden):
            kept = _stripped(net, names, known)[table]
            frame = bare[table]
            for name in kept.columns:
                own = frame[name] if name in frame else pd.Series(np.nan, frame.index, object)
                mixed = own.where(~public, kept[name])
                bare[table][name] = mixed if name in frame else mixed.astype(kept[name].dtype)
    return bare


def _rows(net: Any, protected: Protected) -> dict[str, dict[str, Bools]]:
    """Mark the rows of every table whose value of a parameter is protected, by parameter."""
    found: dict[str, dict[str, Bools]] = {}
    if "capacity" in protected:
        ends = np.cumsum([len(net[table]) for table in BRANCH_TABLES])
        # The last part is for three-winding transformers, which have no limit to protect.
        parts = np.split(protected["capacity"], ends)[:-1]
        for table, mine in zip(BRANCH_TABLES, parts, strict=True):
            found[table] = {"capacity": mine}
    if "load" in protected:
        at = places(bus_places(net), net.load, "bus", "load")
        both = ("load", "reactive_load")
        found["load"] = {name: protected[name][at] for name in both if name in protected}
    for name in {"generator_limit", "cost"} & set(protected):
        for table, units in unit_places(net).items():
            mine = np.ones(len(net[table]), dtype=bool)
            mine[net[table].index.isin(list(units))] = protected[name][list(units.values())]
            found.setdefault(table, {})[name] = mine
    return found


def _stripped(net: Any, private: Sequence[str], protected: Protected) -> Any:
    """Strip a net with `private` parameters private for all elements (costs: by `protected`)."""
    pandapower = importlib.import_module("pandapower")
    bare = pandapower.create_empty_network(
        f_hz=net_number(net, "f_hz"), sn_mva=net_number(net, "sn_mva"), add_stdtypes=False
    )
    for table in TABLES:
        if table not in OTHERS or len(present(net, table)):
            bare[table] = _table(net[table], bare[table], copied("pandapower", table, private))
    _drop_dispatch(net, bare)
    _drop_bounds(net, bare)
    if "capacity" in private:
        _without_ratings(net, bare)
    if "generator_limit" in private:
        _only_sides(bare)
    _keep_costs(net, bare, private, protected)
    return bare


def columns(net: Any) -> dict[str, tuple[str, ...]]:
    """List the columns of all tables that are not empty, as `released_columns` names them."""
    found: dict[str, tuple[str, ...]] = {}
    rest: list[str] = []
    for name, value in net.items():
        table = isinstance(value, pd.DataFrame)
        if name.startswith("_") or (table and not len(value)):
            continue
        if table and name in KEPT["pandapower"] and name != "net":
            found[name] = tuple(str(column) for column in value.columns)
        else:
            rest.append("res_*" if name.startswith("res_") else name)
    return {**found, "net": tuple(dict.fromkeys(rest))}


def _table(source: pd.DataFrame, template: pd.DataFrame, allowed: Sequence[str]) -> pd.DataFrame:
    optional = [name for name in allowed if name in source.columns and name not in template]
    index = pd.Index(source.index.to_numpy(dtype=np.int64).copy())
    columns: dict[str, Any] = {}
    for name in [*template.columns, *optional]:
        kind = template[name].dtype if name in template else _OPTIONAL.get(name, np.dtype(float))
        if name in allowed and name in source.columns:
            values = _values(source[name], name, kind)
        else:
            values = _neutral(name, kind, source.index)
        # Lists get an explicit type, in case they are empty.
        columns[name] = pd.Series(values, index, object) if isinstance(values, list) else values
    return pd.DataFrame(columns, index=index)


def _values(values: pd.Series[Any], name: str, kind: Any) -> Any:
    """Copy the values of a column that are of its kind: no text among numbers, no other texts."""
    if name == "geo":
        return [_shape(value) for value in values]
    if kind.kind == "b":
        return flags(values.to_frame(name), name, _UNSAID.get(name, True))
    if kind.kind in "fiu":
        nothing = np.nan if kind.kind == "f" else NEUTRAL.get(name, 0)
        numbers = column(values.to_frame(name), name, "", nothing)
        with np.errstate(invalid="ignore"):
            typed = numbers.astype(kind)
        return typed if np.array_equal(typed, numbers, equal_nan=True) else numbers
    words = WORDS.get(name)
    return [
        said if said is not None and (words is None or words.fullmatch(said)) else None
        for said in (text(value) for value in values)
    ]


def _neutral(name: str, kind: Any, index: pd.Index[Any]) -> Any:
    if isinstance(kind, pd.api.extensions.ExtensionDtype):
        return pd.Series(None, index=index, dtype=kind).array
    if kind.kind == "b":
        return np.full(len(index), name == "in_service")
    if kind.kind in "fiu":
        return np.full(len(index), NEUTRAL.get(name, np.nan if kind.kind == "f" else 0), dtype=kind)
    return [None] * len(index)


def _shape(text: Any) -> str | None:
    """Copy the coordinates of a GeoJSON text, and nothing else that it may hold."""
    try:
        found = json.loads(text)
        points = np.array(found["coordinates"], dtype=float)
        if found["type"] not in SHAPES:
            return None
    except (TypeError, ValueError, KeyError, RecursionError):
        return None
    return json.dumps({"type": found["type"], "coordinates": points.tolist()})


def _drop_dispatch(net: Any, bare: Any) -> None:
    """Clear the set power of units that can move: it is a result."""
    moving = {table: ~fixed(net, table) for table in ("gen", "sgen")}
    moving["load"] = flags(net.load, "controllable", False)
    for table, which in moving.items():
        for name, nothing in (("p_mw", 0.0), ("q_mvar", 0.0), ("scaling", 1.0)):
            if name in bare[table].columns:
                bare[table].loc[which, name] = nothing


def _drop_bounds(net: Any, bare: Any) -> None:
    """Clear the limits of loads that can't move: they bound or copy the load."""
    still = ~flags(net.load, "controllable", False)
    for name in LIMITS:
        if name in bare.load.columns:
            bare.load.loc[still, name] = np.nan


def _only_sides(bare: Any) -> None:
    """Keep only the signs of reactive limits (1, -1 or 0); `put_reactive` fills in the sizes."""
    for table in ("ext_grid", *UNITS):
        for name, side in REACTIVE.items():
            if name in bare[table].columns:
                limit = bare[table][name].to_numpy(dtype=float)
                known = np.where(np.isinf(limit), limit, side * (side * limit > 0)) + 0.0
                bare[table][name] = np.where(np.isnan(limit), np.nan, known)


def published_impedance(net: Any) -> tuple[Bools, Branches]:
    """Mark branches whose impedances are relative to ratings; return all branches.

    These are all branches except lines. For a stripped net they have the impedances that a release
    publishes.
    """
    branches = build(net).branches
    rated = np.arange(len(branches)) >= len(net.line)
    return rated, branches


def published_reactive(net: Any) -> tuple[Buses, Generators]:
    """Return buses and units, whose shunts and reactive limits may follow from private numbers.

    For a stripped net they are those that a release publishes: a transformer that is open at one
    end draws its no-load current, and a static unit with a set power has its reactive power.
    """
    network = build(net)
    return network.buses, network.generators


def _without_ratings(net: Any, bare: Any) -> None:
    """Convert public impedances to totals of each branch, on the net's base and not on ratings.

    Lengths, and numbers of circuits or units in parallel, are included in the totals.
    """
    line, base = net.line, float(net.sn_mva)
    length, circuits = column(line, "length_km", "line"), column(line, "parallel", "line", 1.0)
    bare.line["length_km"] = 1.0
    for name in (*SERIES, *SHUNTS):
        if name in line.columns:
            factor = length / circuits if name in SERIES else length * circuits
            bare.line[name] = column(line, name, "line", np.nan) * factor
    _trafo_on_base(net.trafo, bare.trafo, base)
    if len(stars := present(net, "trafo3w")):
        stars_on_base(stars, bare.trafo3w, base)
    bare.impedance["sn_mva"] = UNLIMITED_MVA
    rating = column(net.impedance, "sn_mva", "impedance")
    for name, other in (("rft_pu", "rtf_pu"), ("xft_pu", "xtf_pu")):
        there, back = (column(net.impedance, one, "impedance", 0.0) for one in (name, other))
        first, second = (coarse(series / rating * base) for series in (there, back))
        # AC refuses impedances that differ by direction: a private rating must not round that away.
        second = np.where((there != back) & (first == second), coarse(1.01 * second), second)
        bare.impedance[name] = first / base * UNLIMITED_MVA
        bare.impedance[other] = second / base * UNLIMITED_MVA
    for name in ("gf_pu", "bf_pu", "gt_pu", "bt_pu"):
        shunt = column(net.impedance, name, "impedance", 0.0)
        bare.impedance[name] = coarse(shunt * rating / base, 2) * base / UNLIMITED_MVA


def _trafo_on_base(trafo: pd.DataFrame, bare: pd.DataFrame, base: float) -> None:
    """Write all units of a transformer as one on the net's base, with few digits of impedances.

    A third number with three digits could determine the rating, so the no-load current has two.
    """
    units = column(trafo, "parallel", "trafo", 1.0)
    rating = column(trafo, "sn_mva", "trafo") * units
    short, lossy = column(trafo, "vk_percent", "trafo"), column(trafo, "vkr_percent", "trafo")
    resistance = coarse(lossy / rating * base)
    reactance = coarse(np.sqrt(np.maximum(short**2 - lossy**2, 0.0)) / rating * base)
    bare["sn_mva"] = base
    bare["vkr_percent"] = resistance
    bare["vk_percent"] = np.sign(short) * np.hypot(resistance, reactance)
    bare["pfe_kw"] = column(trafo, "pfe_kw", "trafo", 0.0) * units
    bare["i0_percent"] = coarse(column(trafo, "i0_percent", "trafo", 0.0) * rating / base, 2)


def _keep_costs(net: Any, bare: Any, private: Sequence[str], protected: Protected) -> None:
    """Copy rows of public costs; number them anew if some are private, since gaps reveal those."""
    others = [name for name in private if name != "cost"]
    poly, frame = _public_costs(net, "poly_cost", private, protected), net.pwl_cost
    bare.poly_cost = _table(poly, bare.poly_cost, copied("pandapower", "poly_cost", others))
    # Curves end at the limits, also those of reactive power: the released network makes new ones.
    hidden = protected.get("generator_limit")
    moved = [
        row
        for row, unit in zip(frame.index, _units_of(net, frame), strict=True)
        if "generator_limit" in private and unit is not None and (hidden is None or hidden[unit])
    ]
    known = {
        row: _pieces(frame.at[row, "points"])
        for row in _public_costs(net, "pwl_cost", private, protected).index
        if row not in moved
    }
    source = frame.loc[[row for row, pieces in known.items() if pieces]]
    bare.pwl_cost = _table(source, bare.pwl_cost, ["element", "et", "power_type"])
    bare.pwl_cost["points"] = pd.Series(
        [known[row] for row in source.index], index=bare.pwl_cost.index, dtype=object
    )
    if "cost" in private:
        for table in ("poly_cost", "pwl_cost"):
            bare[table] = bare[table].reset_index(drop=True)


def _public_costs(
    net: Any, table: str, private: Sequence[str], protected: Protected
) -> pd.DataFrame:
    """Return the rows of a cost table whose cost is not private."""
    frame: pd.DataFrame = net[table]
    if "cost" not in private:
        return frame
    known = protected.get("cost")
    units = _units_of(net, frame)
    kept = [unit is not None and known is not None and not known[unit] for unit in units]
    return frame[np.array(kept, dtype=bool)]


def _units_of(net: Any, frame: pd.DataFrame) -> list[int | None]:
    """Return the place of the unit of each row of a cost table; None if there is no such unit."""
    found = unit_places(net)
    rows_of = zip(frame["et"], frame["element"], strict=True)
    return [found.get(str(kind), {}).get(element) for kind, element in rows_of]


def _pieces(given: Any) -> list[list[float]]:
    """Return the pieces of a cost if they are numbers; unused costs may hold anything."""
    try:
        pieces: list[list[float]] = np.array(given, dtype=float).reshape(-1, 3).tolist()
    except (TypeError, ValueError):
        return []
    return pieces


def put_reactive(net: Any, reach: Floats, hidden: Bools) -> None:
    """Write reactive limits (Mvar) of `hidden` units, with the signs that `strip` kept."""
    start = 0
    for table in ("ext_grid", *UNITS):
        frame = net.ext_grid if table == "ext_grid" else rows(net, table)
        mine = np.where(hidden, reach, 1.0)[start : start + len(frame)]
        for name in REACTIVE:
            if name in net[table].columns:
                sides = net[table].loc[frame.index, name].to_numpy(dtype=float)
                filled = np.where(np.isinf(sides), 1.0, mine) * sides
                net[table].loc[frame.index, name] = filled
        start += len(frame)


def set_points(net: Any) -> Floats:
    """Return the set points of all units (MW, in the model's order); 0 for external grids."""
    found = [np.zeros(len(net.ext_grid))]
    for table in UNITS:
        frame = rows(net, table)
        power = column(frame, "p_mw", table, 0.0) * column(frame, "scaling", table, 1.0)
        found.append(-power if table == "load" else power)
    return np.concatenate(found)


def put_dispatch(net: Any, output: Floats) -> None:
    """Write the set points of the units that can move (MW, in the model's order)."""
    start = len(net.ext_grid)
    for table in UNITS:
        frame = rows(net, table)
        mine = output[start : start + len(frame)]
        moving = ~fixed(net, table)
        net[table].loc[frame.index[moving], "p_mw"] = mine[moving] * (
            -1.0 if table == "load" else 1.0
        )
        start += len(frame)
