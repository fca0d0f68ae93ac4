"""Read columns of pandapower's tables (numbers, truth values, names, buses), with clear errors.

Nothing here changes the net.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from gridveil.errors import InputError
from gridveil.grid.io import real
from gridveil.grid.model.network import Bools, Floats, Ints

BRANCH_TABLES = ("line", "trafo", "impedance")
UNIT_TABLES = ("ext_grid", "gen", "sgen", "load")
# pandapower treats a rating of zero, or of this size or more, as no limit.
UNLIMITED_MVA = 1e10
# The limit that rundcopp uses for a unit without one; the model needs a finite number.
NO_LIMIT_MW = 1e9


def rows(net: Any, table: str) -> pd.DataFrame:
    """Return the rows of `table` that are units or branches: only controllable loads are units."""
    frame: pd.DataFrame = net[table]
    return frame[flags(frame, "controllable", False)] if table == "load" else frame


def fixed_loads(net: Any) -> pd.DataFrame:
    """Return the loads in service that can't move."""
    load: pd.DataFrame = net.load
    return load[~flags(load, "controllable", False) & flags(load, "in_service", True)]


def fixed(net: Any, table: str) -> Bools:
    """Mark the units of `table` that have a set power instead of limits."""
    frame = rows(net, table)
    if table in ("gen", "sgen"):
        return ~flags(frame, "controllable", table == "gen")
    return np.zeros(len(frame), dtype=bool)


def column(frame: pd.DataFrame, name: str, table: str, default: float | None = None) -> Floats:
    """Read one column as floats; missing values become `default`, or an error without one."""
    if name not in frame.columns:
        if default is None:
            raise InputError(
                f"Table {table} of the pandapower net has no column {name}.",
                remedy="Add it, or update an old net with pandapower.convert_format.",
            )
        return np.full(len(frame), default)
    values = real(frame[name], f"Column {name} of table {table} of the pandapower net")
    absent = np.isnan(values)
    if absent.any() and default is None:
        raise InputError(
            f"Column {name} of table {table} has no value for {table} {frame.index[absent][0]}.",
            remedy="Give it a number, or drop the element from the net.",
        )
    values[absent] = 0.0 if default is None else default
    return values


def net_number(net: Any, name: str) -> float:
    """Read a number of the whole net that must be above 0: its base or its frequency."""
    given = net.get(name)
    if not isinstance(given, int | float | np.number) or not 0 < given < np.inf:
        raise InputError(
            f"The pandapower net has no {name}, or one that is not a number above 0.",
            remedy=f"Set net.{name}.",
        )
    return float(given)


def flags(frame: pd.DataFrame, name: str, default: bool) -> Bools:
    """Read one column as truth values; missing ones become `default`."""
    if name not in frame.columns:
        return np.full(len(frame), default)
    said = frame[name].astype(object)
    return np.where(said.isna(), default, said).astype(bool)


def labels(net: Any, tables: tuple[str, ...]) -> tuple[str, ...]:
    """Return the net's names if all are given and differ; otherwise table and index."""
    given: list[str] = []
    plain: list[str] = []
    for table in tables:
        frame = rows(net, table)
        plain += [f"{table} {index}" for index in frame.index]
        names = frame["name"] if "name" in frame.columns else pd.Series(None, index=frame.index)
        given += [text(name) or "" for name in names]
    return tuple(given if all(given) and len(set(given)) == len(given) else plain)


def text(value: Any) -> str | None:
    """Return a name as text; None if there is none."""
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int | float | np.number) and value == value else None


def places(place: pd.Series[int], frame: pd.DataFrame, name: str, table: str) -> Ints:
    """Return the places in the bus table of the buses in one column."""
    buses = whole(frame, name)
    known = np.isin(buses, place.index)
    if not known.all():
        element = frame.index[~known][0]
        raise InputError(
            f"{table} {element} is at bus {frame[name].loc[element]} ({name}), which is not in "
            "the table bus.",
            remedy="Correct the bus, or drop the element.",
        )
    return np.asarray(place.reindex(buses), dtype=np.int64)


def whole(frame: pd.DataFrame, name: str) -> Ints:
    """Read one column as indices of elements; -1 if there is none."""
    return np.array([_index(value) for value in frame[name]], dtype=np.int64)


def _index(value: Any) -> int:
    if not isinstance(value, int | float | np.number) or not 0 <= value < 2**62:
        return -1
    return int(value) if value == int(value) else -1


def unit_limits(net: Any, table: str) -> tuple[Floats, Floats]:
    """Return the least and the largest injection of every unit of `table`, MW."""
    frame = rows(net, table)
    low = column(frame, "min_p_mw", table, -NO_LIMIT_MW)
    high = column(frame, "max_p_mw", table, NO_LIMIT_MW)
    if table == "load":
        return -high, -low
    still = fixed(net, table)
    if not still.any():
        return low, high
    power = column(frame, "p_mw", table)
    if table == "sgen":
        power = np.clip(power, low, high) * column(frame, "scaling", table, 1.0)
    return np.where(still, power, low), np.where(still, power, high)
