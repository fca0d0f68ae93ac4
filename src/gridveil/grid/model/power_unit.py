"""Power in units of another size, so that solvers see numbers that their tolerances are made for.

Solvers and restorations have tolerances (1e-6 MW, for example) that are too wide for the 0.1 MW of
a street, and too tight for a continent. They stay as they are, and the network is scaled: powers
are divided by a unit and prices in $/MWh stay, so costs are divided by the unit as well. Units are
powers of two, which makes scaling exact.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np

from gridveil.grid.model.network import Network, Table
from gridveil.privacy.sensitivity import power_of_two_below

T = TypeVar("T", bound=Table)

_POWER: dict[str, tuple[str, ...]] = {
    "buses": (
        *("load", "shunt", "reactive_load", "reactive_shunt"),
        *("fixed_load", "fixed_reactive_load", "q_min", "q_max", "ac_shunt"),
    ),
    "generators": ("p_min", "p_max", "q_min", "q_max", "constant"),
    "branches": ("capacity",),
}
"""Columns that are divided by the unit."""

# Total power (MW) of networks that are solved as they are, and what others are scaled to.
_LEAST, _MOST, _USUAL = 2.0**4, 2.0**20, 2.0**13
# The same for alphas.
_ALPHAS = Fraction(1, 8), 4096, 16


def unit_of(network: Network) -> float:
    """The unit in MW that suits a network, by its loads and its generation in service."""
    units = network.generators
    limits = np.maximum(np.abs(units.p_max), np.abs(units.p_min))[units.in_service]
    load = np.abs(network.buses.load[network.buses.in_service])
    size = max(float(load.sum()), float(limits[np.isfinite(limits)].sum()))
    return 1.0 if size == 0 or _LEAST <= size <= _MOST else 2.0 ** round(math.log2(size / _USUAL))


def unit_for(alpha: Fraction) -> float:
    """The unit in MW that suits the restoration of values with noise of about this size."""
    few, many, usual = _ALPHAS
    return 1.0 if few <= alpha <= many else float(power_of_two_below(alpha / usual))


def scaled(network: Network, unit: float) -> Network:
    """The same network with powers in this unit (MW), and costs in as many $/h.

    It can't be written: it has no source.
    """
    if unit == 1.0:
        return network
    tables: dict[str, Any] = {
        name: scaled_table(getattr(network, name), name, unit) for name in _POWER
    }
    return replace(network, base_mva=network.base_mva / unit, source=None, **tables)


def scaled_table(table: T, name: str, unit: float) -> T:
    """One table of a network with powers in this unit."""
    columns: dict[str, Any] = {column: getattr(table, column) / unit for column in _POWER[name]}
    if name == "generators":
        units: Any = table
        columns["quadratic"] = units.quadratic * unit
        columns["points"] = [None if points is None else points / unit for points in units.points]
    return replace(table, **columns)
