"""Read columns of a PyPSA network's tables, at the snapshots that are read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from gridveil.errors import InputError
from gridveil.grid.io import real
from gridveil.grid.model.network import Bools, Floats, Ints

BRANCHES = ("Line", "Transformer")
AVAILABILITY = ("p_min_pu", "p_max_pu")
SHARES = (*AVAILABILITY, "s_max_pu")
"""Attributes that are shares of a size; their series are public."""


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A PyPSA network, and the snapshots of it that are read, one or more.

    With `full`, limits of generators are those at full availability, whatever their series of
    p_max_pu and p_min_pu say about the snapshot.

    With several snapshots the model has the base values of `values`, and the snapshots are
    multipliers of these (see `snapshot_models.models`).
    """

    network: Any = field(repr=False)
    labels: tuple[Any, ...]
    full: bool = False

    @property
    def several(self) -> bool:
        """Whether more than one snapshot is read."""
        return len(self.labels) > 1

    @property
    def label(self) -> Any:
        """The first snapshot."""
        return self.labels[0]


def static(network: Any, component: str) -> pd.DataFrame:
    """Return the table of a component."""
    frame: pd.DataFrame = network.c[component].static
    return frame


def bus_facts(source: Snapshot) -> dict[str, Floats]:
    """Return the voltages of all buses."""
    return {"voltage": static(source.network, "Bus")["v_nom"].to_numpy(dtype=float)}


def coordinates(source: Snapshot) -> list[tuple[float, float]]:
    """Return the coordinates of all buses."""
    table = static(source.network, "Bus")
    if not {"x", "y"} <= set(table.columns):
        return []
    # PyPSA writes 0, 0 for a bus without coordinates.
    pairs = [(_number(x), _number(y)) for x, y in zip(table["x"], table["y"], strict=True)]
    return [(np.nan, np.nan) if pair == (0, 0) else pair for pair in pairs]


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return np.nan


def over_time(source: Snapshot, component: str, name: str) -> Floats:
    """Read one attribute of all elements at the snapshots read, ``(snapshots, elements)``."""
    frame = static(source.network, component)
    found = np.tile(numbers(frame, component, name), (len(source.labels), 1))
    series = source.network.c[component].dynamic.get(name)
    if series is not None and len(series.columns):
        absent = [label for label in source.labels if label not in series.index]
        if absent:
            raise InputError(
                f"Series {name} of {component} has no value at snapshot {absent[0]!r}.",
                remedy="Give every series a value at every one of n.snapshots.",
            )
        here = frame.index.isin(series.columns)
        now = series.loc[list(source.labels), frame.index[here]]
        words = f"Series {name} of {component} of the PyPSA network"
        if not source.several:
            found[0, here] = real(now.iloc[0], words)
        elif here.any():
            found[:, here] = np.column_stack([real(now[one], words) for one in now.columns])
    return found


def values(source: Snapshot, component: str, name: str) -> Floats:
    """Read one attribute of every element at the snapshot, from its series if it has one.

    With several snapshots this is the base of the multipliers over time. A share of a size that has
    a series is 1 (or -1), so that the model has the size itself; anything else is the value
    farthest from 0.
    """
    found = over_time(source, component, name)
    base = farthest(found)
    if source.several and name in SHARES:
        series = source.network.c[component].dynamic[name]
        varies = static(source.network, component).index.isin(series.columns)
        unused = 0.0 if name == "p_min_pu" else 1.0
        base = np.where(varies, np.where(base == 0, unused, np.sign(base)), base)
    return base


def farthest(table: Floats) -> Floats:
    """Return the value farthest from 0 in every column of a table; NaN if it has a NaN."""
    place = np.abs(np.nan_to_num(table, nan=np.inf)).argmax(axis=0)
    found: Floats = table[place, np.arange(table.shape[1])]
    return found


def numbers(frame: pd.DataFrame, component: str, name: str) -> Floats:
    """Read one column as floats."""
    return real(frame[name], f"Attribute {name} of {component} of the PyPSA network")


def flags(frame: pd.DataFrame, name: str) -> Bools:
    """Read one column as truth values; missing ones are True, as in PyPSA."""
    said = frame[name].astype(object)
    return np.where(said.isna(), True, said).astype(bool)


def active_ones(network: Any, component: str) -> Bools:
    """Mark the active elements of a component."""
    return flags(static(network, component), "active")


def shares(source: Snapshot, name: str) -> Floats:
    """Read the generators' limits as shares of the nominal power."""
    if not source.full:
        return values(source, "Generator", name)
    frame = static(source.network, "Generator")
    varies = frame.index.isin(source.network.c["Generator"].dynamic[name].columns)
    # PyPSA ignores the static number of an attribute that has a series.
    at_full = 1.0 if name == "p_max_pu" else 0.0
    return np.where(varies, at_full, numbers(frame, "Generator", name))


def places(network: Any, component: str, end: str) -> Ints:
    """Return the places in the bus table of the buses in one column."""
    frame = static(network, component)
    known = {str(bus): at for at, bus in enumerate(static(network, "Bus").index)}
    at = np.array([known.get(str(bus), -1) for bus in frame[end]], dtype=np.int64)
    if (at < 0).any():
        element = frame.index[at < 0][0]
        raise InputError(
            f"{component} '{element}' is at bus '{frame[end].loc[element]}' ({end}), which is not "
            "in the PyPSA network.",
            remedy="Correct the bus, or remove the element.",
        )
    return at
