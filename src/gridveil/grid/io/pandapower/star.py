"""Model three-winding transformers of a pandapower net as three branches that meet at a bus.

pandapower's own power flow does the same: the star bus has the nominal voltage of the upper bus,
and the no-load losses are on its side. Star buses come after those of the net, and the branches
after all others: those to the upper buses, to the middle and to the lower ones.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pandas as pd

from gridveil.errors import InputError
from gridveil.grid.io import coarse
from gridveil.grid.io.pandapower.columns import column, flags, places, whole
from gridveil.grid.io.pandapower.trafo import trafo_values
from gridveil.grid.model.network import Bools, Buses, Floats
from gridveil.grid.model.tables import FREE_VOLTAGE

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
