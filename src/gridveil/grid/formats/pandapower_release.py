"""What of a pandapower net may be published, by the parameters that are private."""

from __future__ import annotations

import importlib
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from gridveil.grid.formats import coarse, unlogged
from gridveil.grid.formats.pandapower_columns import (
    BRANCH_TABLES,
    UNLIMITED_MVA,
    column,
    fixed,
    flags,
    net_number,
    text,
)
from gridveil.grid.formats.pandapower_costs import POLYNOMIAL, areas, cost_rows, read_costs
from gridveil.grid.formats.pandapower_trafo import rated_impedance, trafo_values
from gridveil.grid.network import Bools
from gridveil.grid.public import check_parameters

# Columns that are copied as they are. Whatever is not here is not written.
KEPT: dict[str, tuple[str, ...]] = {
    "bus": ("name", "vn_kv", "in_service", "geo"),
    "load": ("name", "bus", "p_mw", "q_mvar", "scaling", "in_service", "controllable"),
    "gen": ("name", "bus", "p_mw", "slack", "in_service", "controllable"),
    "sgen": ("name", "bus", "p_mw", "scaling", "in_service", "controllable"),
    "ext_grid": ("name", "bus", "in_service"),
    "shunt": ("name", "bus", "p_mw", "q_mvar", "vn_kv", "step", "in_service"),
    "line": (
        *("name", "from_bus", "to_bus", "length_km", "r_ohm_per_km", "x_ohm_per_km"),
        *("c_nf_per_km", "g_us_per_km", "parallel", "in_service", "geo"),
        *("max_i_ka", "df", "max_loading_percent"),
    ),
    "trafo": (
        *("name", "hv_bus", "lv_bus", "vn_hv_kv", "vn_lv_kv", "shift_degree", "parallel"),
        *("in_service", "sn_mva", "vk_percent", "vkr_percent", "pfe_kw", "i0_percent", "df"),
        *("max_loading_percent", "leakage_resistance_ratio_hv", "leakage_reactance_ratio_hv"),
        *(f"tap{n}_{what}" for n in ("", "2") for what in ("side", "pos", "neutral")),
        *(f"tap{n}_step_{unit}" for n in ("", "2") for unit in ("percent", "degree")),
        *("tap_changer_type", "tap2_changer_type"),
    ),
    "impedance": (
        *("name", "from_bus", "to_bus", "in_service", "sn_mva"),
        *("rft_pu", "xft_pu", "rtf_pu", "xtf_pu", "gf_pu", "bf_pu", "gt_pu", "bt_pu"),
    ),
    "switch": ("bus", "element", "et", "closed"),
}
LIMITS = ("min_p_mw", "max_p_mw")
UNITS = ("gen", "sgen", "ext_grid", "load")
# What is taken off that list when a parameter is private. Names of the elements that have it go:
# people write ratings into them. Table and index stay, so an element can still be told.
WITHHELD: dict[str, dict[str, tuple[str, ...]]] = {
    "capacity": {
        "line": (
            *("name", "max_i_ka", "df", "max_loading_percent", "parallel"),
            *("length_km", "r_ohm_per_km", "x_ohm_per_km", "c_nf_per_km", "g_us_per_km"),
        ),
        "trafo": (
            *("name", "sn_mva", "vk_percent", "vkr_percent", "pfe_kw", "i0_percent", "df"),
            "parallel",
            *("max_loading_percent", "leakage_resistance_ratio_hv", "leakage_reactance_ratio_hv"),
        ),
        "impedance": ("name", "sn_mva", *KEPT["impedance"][5:]),
    },
    "load": {"load": ("name", "p_mw", "q_mvar", "scaling")},
    "generator_limit": {
        **dict.fromkeys(("gen", "sgen", "ext_grid"), ("name", *LIMITS, "p_mw", "scaling")),
        "load": ("name", *LIMITS),
    },
    "cost": dict.fromkeys(UNITS, ("name",)),
}
# Columns that pandapower insists on, where nothing is said.
NEUTRAL: dict[str, float] = {
    **dict.fromkeys(("vm_pu", "scaling", "df", "parallel", "step", "max_step"), 1),
    **dict.fromkeys(("p_mw", "q_mvar", "va_degree", "pfe_kw", "i0_percent", "z_ohm"), 0.0),
    **{f"const_{z}_{p}_percent": 0.0 for z in "zi" for p in "pq"},
    **dict.fromkeys(("gf_pu", "bf_pu", "gt_pu", "bt_pu", "c_nf_per_km", "g_us_per_km"), 0.0),
    "slack_weight": 1.0,
    "max_i_ka": 99999.0,
}
SHAPES = {"Point", "LineString"}
# Columns that pandapower has no type for until they are used; the others of this kind are numbers.
_OPTIONAL = {name: np.dtype(object) for name in ("tap2_side", "tap2_changer_type")}


@unlogged("pandapower")
def strip(net: Any, parameters: str | Sequence[str]) -> Any:
    """A new net with what all of `parameters` have on their allow-lists, and nothing else."""
    private = check_parameters(parameters)
    pandapower = importlib.import_module("pandapower")
    bare = pandapower.create_empty_network(
        f_hz=net_number(net, "f_hz"), sn_mva=net_number(net, "sn_mva"), add_stdtypes=False
    )
    for table, kept in KEPT.items():
        withheld = {name for one in private for name in WITHHELD[one].get(table, ())}
        limits = LIMITS if table in UNITS else ()
        allowed = [name for name in (*kept, *limits) if name not in withheld]
        bare[table] = _table(net[table], bare[table], allowed)
    _drop_dispatch(net, bare)
    _drop_bounds(net, bare)
    if "capacity" in private:
        _without_ratings(net, bare)
    if "cost" not in private:
        _keep_costs(net, bare, with_points="generator_limit" not in private)
    return bare


def _table(source: pd.DataFrame, template: pd.DataFrame, allowed: list[str]) -> pd.DataFrame:
    optional = [name for name in allowed if name in source.columns and name not in template]
    columns: dict[str, Any] = {}
    for name in [*template.columns, *optional]:
        kind = template[name].dtype if name in template else _OPTIONAL.get(name, np.dtype(float))
        if name in allowed and name in source.columns:
            columns[name] = _values(source[name], name, kind)
        else:
            columns[name] = _neutral(name, kind, source.index)
    index = pd.Index(source.index.to_numpy(dtype=np.int64).copy())
    return pd.DataFrame(columns, index=index)


def _values(values: pd.Series[Any], name: str, kind: Any) -> Any:
    """A copy of one column, as its kind of value only: no text among numbers, no notes in a map."""
    if name == "geo":
        return [_shape(value) for value in values]
    if kind.kind == "b" or name == "controllable":
        return flags(values.to_frame(name), name, name != "slack")
    if kind.kind in "fiu":
        nothing = np.nan if kind.kind == "f" else NEUTRAL.get(name, 0)
        numbers = column(values.to_frame(name), name, "", nothing)
        with np.errstate(invalid="ignore"):
            typed = numbers.astype(kind)
        return typed if np.array_equal(typed, numbers, equal_nan=True) else numbers
    return [text(value) for value in values]


def _neutral(name: str, kind: Any, index: pd.Index[Any]) -> Any:
    if isinstance(kind, pd.api.extensions.ExtensionDtype):
        return pd.Series(None, index=index, dtype=kind).array
    if kind.kind == "b":
        return np.full(len(index), name == "in_service")
    if kind.kind in "fiu":
        return np.full(len(index), NEUTRAL.get(name, np.nan if kind.kind == "f" else 0), dtype=kind)
    return [None] * len(index)


def _shape(text: Any) -> str | None:
    """The coordinates of a GeoJSON text, without anything else that it may hold."""
    try:
        found = json.loads(text)
        points = np.array(found["coordinates"], dtype=float)
        if found["type"] not in SHAPES:
            return None
    except (TypeError, ValueError, KeyError, RecursionError):
        return None
    return json.dumps({"type": found["type"], "coordinates": points.tolist()})


def _drop_dispatch(net: Any, bare: Any) -> None:
    """A set power is data only where a unit can't move; elsewhere it is a result."""
    moving = {table: ~fixed(net, table) for table in ("gen", "sgen")}
    moving["load"] = flags(net.load, "controllable", False)
    for table, which in moving.items():
        for name, nothing in (("p_mw", 0.0), ("q_mvar", 0.0), ("scaling", 1.0)):
            if name in bare[table].columns:
                bare[table].loc[which, name] = nothing


def _drop_bounds(net: Any, bare: Any) -> None:
    """Limits of a load are a unit's where it can move; elsewhere they bound or copy the load."""
    still = ~flags(net.load, "controllable", False)
    for name in LIMITS:
        if name in bare.load.columns:
            bare.load.loc[still, name] = np.nan


def rated_branches(net: Any) -> Bools:
    """Which branches have impedances on their ratings: all but the lines."""
    return np.concatenate([np.full(len(net[table]), table != "line") for table in BRANCH_TABLES])


def _without_ratings(net: Any, bare: Any) -> None:
    """Impedances (public) as they are in all, on the net's base instead of on ratings (private).

    How many circuits or units in parallel share one, how long a line is and its capacitance go:
    with the impedance they tell its type and how often it is there, and so its rating.
    """
    each = column(net.line, "length_km", "line") / column(net.line, "parallel", "line", 1.0)
    bare.line["length_km"] = 1.0
    for name in ("r_ohm_per_km", "x_ohm_per_km"):
        bare.line[name] = column(net.line, name, "line") * each
    _, resistance, reactance, _, _ = trafo_values(net)
    bare.trafo["sn_mva"] = float(net.sn_mva)
    bare.trafo["vk_percent"], bare.trafo["vkr_percent"] = rated_impedance(
        net, coarse(resistance), coarse(reactance)
    )
    bare.impedance["sn_mva"] = UNLIMITED_MVA
    rating = column(net.impedance, "sn_mva", "impedance")
    for name in ("rft_pu", "xft_pu", "rtf_pu", "xtf_pu"):
        values = column(net.impedance, name, "impedance", 0.0)
        on_base = coarse(values / rating * float(net.sn_mva))
        bare.impedance[name] = on_base / float(net.sn_mva) * UNLIMITED_MVA


def _keep_costs(net: Any, bare: Any, *, with_points: bool) -> None:
    polynomial = [row for row, _ in cost_rows(net, "poly_cost")]
    source = net.poly_cost.loc[polynomial]
    allowed = ["element", "et", *POLYNOMIAL]
    bare.poly_cost = _table(source, bare.poly_cost, allowed)
    numbers = [name for name in bare.poly_cost.columns if name not in allowed]
    bare.poly_cost[numbers] = 0.0
    if not with_points:
        # Breakpoints end at the limits: the released network has its own.
        return
    pieces = cost_rows(net, "pwl_cost")
    points = read_costs(net)["points"]
    source = net.pwl_cost.loc[[row for row, _ in pieces]]
    bare.pwl_cost = _table(source, bare.pwl_cost, ["element", "et", "power_type"])
    bare.pwl_cost["points"] = pd.Series(
        [areas("", points[unit]) for _, unit in pieces], index=bare.pwl_cost.index, dtype=object
    )
