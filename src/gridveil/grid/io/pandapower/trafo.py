"""Compute impedance, tap ratio and phase shift of a pandapower net's two-winding transformers.

pandapower describes a transformer by its short-circuit voltage on its own rating, its no-load
losses and its tap changer. ``rundcopp`` uses the series branch of the T model, the off-nominal
ratio and the phase shift; so does this. ``runpp`` has the T model's branches to ground as well,
at either end.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from gridveil.errors import InputError
from gridveil.grid.io.pandapower.columns import column, flags
from gridveil.grid.model.network import Bools, Floats


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
    first, second, ground = _windings(frame, low, nominal_low, base)
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


def _windings(
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
