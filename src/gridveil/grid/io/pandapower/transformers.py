"""Compute the transformers of a pandapower net: with two windings, and with three.

pandapower describes a transformer by its short-circuit voltage on its own rating, its no-load
losses and its tap changer. ``rundcopp`` uses the series branch of the T model, the off-nominal
ratio and the phase shift; so does this. ``runpp`` has the T model's branches to ground as well,
at either end.

A transformer with three windings is three branches that meet at a bus. pandapower's own power flow
does the same: the star bus has the nominal voltage of the upper bus, and the no-load losses are on
its side. Star buses come after those of the net, and the branches after all others: those to the
upper buses, to the middle and to the lower ones.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pandas as pd

from gridveil.errors import InputError
from gridveil.grid.io import coarse
from gridveil.grid.io.pandapower.read_columns import column, flags, places, whole
from gridveil.grid.model.element_tables import FREE_VOLTAGE
from gridveil.grid.model.network import Bools, Buses, Floats

SIDES = ("hv", "mv", "lv")
PAIRS = ((0, 1), (1, 2), (0, 2))
"""The pairs of windings of the short-circuit voltages that a table calls hv, mv and lv."""


def with_stars(buses: Buses, count: int) -> Buses:
    """Add one bus for every three-winding transformer."""
    if not count:
        return buses
    unsaid = {"load": 0.0, "shunt": 0.0, "reference": False, "in_service": True}
    unsaid |= dict(zip(("v_min", "v_max"), FREE_VOLTAGE, strict=True))
    longer = {
        one.name: np.concatenate(
            [
                getattr(buses, one.name),
                np.full(count, unsaid.get(one.name, one.metadata.get("neutral"))),
            ]
        )
        for one in fields(buses)[1:]
    }
    names = (*buses.name, *(f"star of trafo3w {place}" for place in range(count)))
    return replace(buses, name=names, **longer)


def star_names(frame: pd.DataFrame) -> tuple[str, ...]:
    """Return the names of the branches."""
    return tuple(f"trafo3w {index} {side}" for side in SIDES for index in frame.index)


def star_branches(net: Any, place: pd.Series[int]) -> dict[str, Any]:
    """Return the branches of all three-winding transformers, without limits."""
    frame = net.trafo3w
    own = pd.Series(np.arange(len(net.bus)), index=net.bus.index)
    volts = column(net.bus, "vn_kv", "bus")
    bus = [places(place, frame, f"{side}_bus", "trafo3w") for side in SIDES]
    nominal = [volts[places(own, frame, f"{side}_bus", "trafo3w")] for side in SIDES]
    star = len(net.bus) + np.arange(len(frame))
    high = np.concatenate([nominal[0]] * 3)
    low = np.concatenate([nominal[0], nominal[1], nominal[2]])
    cut, upper = _cut(net, frame), np.repeat([True, False, False], len(frame))
    return {
        "from_bus": np.concatenate([bus[0], star, star]),
        "to_bus": np.concatenate([star, bus[1], bus[2]]),
        **trafo_values(_windings(frame), high, low, net.sn_mva),
        "capacity": np.full(3 * len(frame), np.inf),
        "in_service": np.tile(flags(frame, "in_service", True), 3),
        "cut": cut,
        "open_from": cut & upper,
        "open_to": cut & ~upper,
    }


def _cut(net: Any, frame: pd.DataFrame) -> Bools:
    """Mark the windings that an open switch disconnects."""
    switch = net.switch[(net.switch["et"] == "t3").to_numpy(dtype=bool)]
    switch = switch[~flags(switch, "closed", True)]
    opened = set(zip(whole(switch, "element").tolist(), whole(switch, "bus").tolist(), strict=True))
    return np.array(
        [
            (int(index), int(bus)) in opened
            for side in SIDES
            for index, bus in zip(frame.index, whole(frame, f"{side}_bus"), strict=True)
        ],
        dtype=bool,
    )


def _windings(frame: pd.DataFrame) -> pd.DataFrame:
    """Convert three-winding transformers to two-winding ones, side by side."""
    if flags(frame, "tap_dependency_table", False).any():
        raise InputError(
            "Table trafo3w uses a characteristic table (tap_dependency_table).",
            remedy="Write the values at the tap in use into vk_hv_percent and its like.",
        )
    if flags(frame, "tap_at_star_point", False).any():
        raise InputError(
            "Table trafo3w has a tap changer at the star point (tap_at_star_point).",
            remedy="Write the taps as changers at terminals.",
        )
    rating = np.array([column(frame, f"sn_{side}_mva", "trafo3w") for side in SIDES])
    lossy, short = (
        np.array([column(frame, f"{name}_{side}_percent", "trafo3w") for side in SIDES])
        for name in ("vkr", "vk")
    )
    of_pair = rating[0] / np.array([np.minimum(rating[a], rating[b]) for a, b in PAIRS])
    resistance = _star(lossy * of_pair, rating)
    reactance = _star(np.sqrt(np.maximum(short**2 - lossy**2, 0.0)) * of_pair, rating)
    upper, count = np.repeat([1.0, 0.0, 0.0], len(frame)), len(frame)
    shift = [
        np.zeros(count),
        *(column(frame, f"shift_{s}_degree", "trafo3w", 0.0) for s in SIDES[1:]),
    ]
    made = {
        "sn_mva": rating.ravel(),
        "vn_hv_kv": np.tile(column(frame, "vn_hv_kv", "trafo3w"), 3),
        "vn_lv_kv": np.concatenate([column(frame, f"vn_{s}_kv", "trafo3w") for s in SIDES]),
        "vk_percent": (np.sign(reactance) * np.hypot(resistance, reactance)).ravel(),
        "vkr_percent": resistance.ravel(),
        "pfe_kw": np.tile(column(frame, "pfe_kw", "trafo3w", 0.0), 3) * upper,
        "i0_percent": np.tile(column(frame, "i0_percent", "trafo3w", 0.0), 3) * upper,
        "shift_degree": np.concatenate(shift),
    }
    return pd.DataFrame(made | _taps(frame))


def _star(pairs: Floats, rating: Floats) -> Floats:
    """Compute each winding's value on its own rating: half of its two pairs minus the third."""
    a, b, c = pairs
    found: Floats = 0.5 * rating / rating[0] * np.array([a + c - b, a + b - c, b + c - a])
    return found


def _taps(frame: pd.DataFrame) -> dict[str, Any]:
    names = ("tap_pos", "tap_neutral", "tap_step_percent", "tap_step_degree")
    if "tap_side" not in frame.columns or "tap_pos" not in frame.columns:
        return {}
    here = np.concatenate([(frame["tap_side"] == side).to_numpy(dtype=bool) for side in SIDES])
    made: dict[str, Any] = {
        name: np.where(here, np.tile(column(frame, name, "trafo3w", 0.0), 3), 0.0) for name in names
    }
    made["tap_side"] = np.repeat(np.array(["hv", "lv", "lv"], dtype=object), len(frame))
    made["tap_side"][~here] = None
    if "tap_changer_type" in frame.columns:
        made["tap_changer_type"] = np.tile(frame["tap_changer_type"].astype(object).to_numpy(), 3)
    return made


def stars_on_base(frame: pd.DataFrame, bare: pd.DataFrame, base: float) -> None:
    """Convert public impedances from private ratings to the net's base, with few digits.

    Three pairs of windings give six numbers on the same ratings: with more digits, few ratings
    would fit all of them.
    """
    rating = [column(frame, f"sn_{side}_mva", "trafo3w") for side in SIDES]
    for (a, b), side in zip(PAIRS, SIDES, strict=True):
        factor = base / np.minimum(rating[a], rating[b])
        short = column(frame, f"vk_{side}_percent", "trafo3w")
        lossy = column(frame, f"vkr_{side}_percent", "trafo3w")
        resistance = coarse(lossy * factor, 1)
        reactance = coarse(np.sqrt(np.maximum(short**2 - lossy**2, 0.0)) * factor, 2)
        bare[f"vkr_{side}_percent"] = resistance
        bare[f"vk_{side}_percent"] = np.hypot(resistance, reactance)
        bare[f"sn_{side}_mva"] = base
    bare["i0_percent"] = coarse(column(frame, "i0_percent", "trafo3w", 0.0) * rating[0] / base, 2)


# -- two windings -----------------------------------------------------------------------------


def trafo_values(
    frame: pd.DataFrame, nominal_high: Floats, nominal_low: Floats, base: float
) -> dict[str, Floats]:
    """Compute capacity (MW) and the electric columns of the branch table.

    Parameters
    ----------
    frame
        The table trafo, or one with its columns.
    nominal_high, nominal_low
        Nominal voltages of the buses at its ends, kV.
    base
        The net's base, MVA.
    """
    if flags(frame, "tap_dependency_table", False).any():
        raise InputError(
            "Table trafo uses a characteristic table (tap_dependency_table).",
            remedy="Write the values at the tap in use into vk_percent and shift_degree.",
        )
    high, low, shift = _tapped(frame)
    first, second, ground = _t_model(frame, low, nominal_low, base)
    series = first + second + first * second * ground
    # The T model's star as a triangle; a transformer that is open inside has no numbers at all.
    at_start, at_end = ground * second / series, ground * first / series
    loading = column(frame, "max_loading_percent", "trafo", np.nan)
    rating = column(frame, "sn_mva", "trafo") * column(frame, "df", "trafo", 1.0)
    limit = loading / 100 * rating * column(frame, "parallel", "trafo", 1.0)
    tap = (high / low) / (nominal_high / nominal_low)
    none = np.zeros(len(frame))
    return {
        "capacity": limit,
        "resistance": series.real.copy(),
        "reactance": series.imag.copy(),
        "tap": tap,
        "shift": shift,
        "charging": none,
        "conductance": none,
        "charging_from": at_start.imag.copy(),
        "conductance_from": at_start.real.copy(),
        "charging_to": at_end.imag.copy(),
        "conductance_to": at_end.real.copy(),
    }


def _t_model(
    frame: pd.DataFrame, low: Floats, nominal_low: Floats, base: float
) -> tuple[Any, Any, Any]:
    """Compute the T model in per unit on `base`: both impedances, and the admittance between."""
    rating = column(frame, "sn_mva", "trafo")
    parallel = column(frame, "parallel", "trafo", 1.0)
    scale = (low / nominal_low) ** 2 * base / rating / parallel / 100
    short = column(frame, "vk_percent", "trafo")
    lossy = column(frame, "vkr_percent", "trafo")
    if (np.abs(lossy) > np.abs(short)).any():
        element = frame.index[np.abs(lossy) > np.abs(short)][0]
        raise InputError(
            f"trafo {element} has a greater vkr_percent than vk_percent.",
            remedy="Correct them: the resistive part is never above the whole.",
        )
    resistance = lossy * scale
    reactance = np.sign(short) * np.sqrt(short**2 - lossy**2) * scale
    share_r = column(frame, "leakage_resistance_ratio_hv", "trafo", 0.5)
    share_x = column(frame, "leakage_reactance_ratio_hv", "trafo", 0.5)
    first = resistance * share_r + 1j * reactance * share_x
    second = resistance * (1 - share_r) + 1j * reactance * (1 - share_x)
    return first, second, _magnetising(frame, low, nominal_low, base)


def _magnetising(frame: pd.DataFrame, low: Floats, nominal_low: Floats, base: float) -> Any:
    iron = column(frame, "pfe_kw", "trafo", 0.0) * 1e-3
    apparent = column(frame, "i0_percent", "trafo", 0.0) / 100 * column(frame, "sn_mva", "trafo")
    reactive = -np.sqrt(np.maximum(apparent**2 - iron**2, 0.0))
    parallel = column(frame, "parallel", "trafo", 1.0)
    return (iron + 1j * reactive) * (nominal_low / low) ** 2 / base * parallel


def _tapped(frame: pd.DataFrame) -> tuple[Floats, Floats, Floats]:
    """Compute rated voltages (kV) and shift (degrees) at the present tap position."""
    volts = {
        "hv": column(frame, "vn_hv_kv", "trafo"),
        "lv": column(frame, "vn_lv_kv", "trafo"),
    }
    shift = column(frame, "shift_degree", "trafo", 0.0)
    for changer in ("tap", "tap2"):
        if f"{changer}_pos" not in frame.columns:
            continue
        needed = (f"{changer}_changer_type", f"{changer}_side")
        if absent := [name for name in needed if name not in frame.columns]:
            if column(frame, f"{changer}_pos", "trafo", 0.0).any():
                raise InputError(
                    f"Table trafo has {changer}_pos but no column {absent[0]}.",
                    remedy="Update the old net with pandapower.convert_format.",
                )
            continue
        kind = frame[f"{changer}_changer_type"].astype(object)
        for side, sign in (("hv", 1.0), ("lv", -1.0)):
            here = (frame[f"{changer}_side"] == side).to_numpy(dtype=bool, na_value=False)
            ideal = here & (kind == "Ideal").to_numpy(dtype=bool)
            shift = shift + sign * _ideal_shift(frame, changer, ideal)
            moved = here & kind.isin(["Ratio", "Symmetrical"]).to_numpy(dtype=bool)
            along, across = _added(frame, changer, moved, volts[side])
            shift = shift + np.rad2deg(np.arctan(sign * across / (volts[side] + along)))
            volts[side] = np.hypot(volts[side] + along, across)
    return volts["hv"], volts["lv"], shift


def _steps(frame: pd.DataFrame, changer: str) -> Floats:
    position = column(frame, f"{changer}_pos", "trafo", 0.0)
    return position - column(frame, f"{changer}_neutral", "trafo", 0.0)


def _ideal_shift(frame: pd.DataFrame, changer: str, which: Bools) -> Floats:
    degree = column(frame, f"{changer}_step_degree", "trafo", 0.0)
    percent = column(frame, f"{changer}_step_percent", "trafo", 0.0)
    steps = np.where(which, _steps(frame, changer), 0.0)
    turned = np.clip(steps * percent / 200, -1.0, 1.0)
    return np.where(degree != 0, steps * degree, 2 * np.rad2deg(np.arcsin(turned)))


def _added(frame: pd.DataFrame, changer: str, which: Bools, volts: Floats) -> tuple[Floats, Floats]:
    """Compute the voltage that the tap adds, in phase with the winding's and across it, kV."""
    percent = column(frame, f"{changer}_step_percent", "trafo", 0.0)
    angle = np.deg2rad(column(frame, f"{changer}_step_degree", "trafo", 0.0))
    added = np.where(which, volts * percent * _steps(frame, changer) / 100, 0.0)
    return added * np.cos(angle), added * np.sin(angle)
