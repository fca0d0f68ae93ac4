"""Reading columns of pandapower's tables: numbers, truth values, names and buses, or a clear error.

Everything here leaves the net as it is.
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
# pandapower takes a rating of zero, or from here on, as no limit at all.
UNLIMITED_MVA = 1e10
# What rundcopp takes for a unit without a limit; the model needs a finite one.
NO_LIMIT_MW = 1e9


def rows(net: Any, table: str) -> pd.DataFrame:
    """The rows of `table` that are units or branches: of the loads, only those that can move."""
    frame: pd.DataFrame = net[table]
    return frame[flags(frame, "controllable", False)] if table == "load" else frame


def fixed(net: Any, table: str) -> Bools:
    """Which units of `table` have a set power instead of limits."""
    frame = rows(net, table)
    if table in ("gen", "sgen"):
        return ~flags(frame, "controllable", table == "gen")
    return np.zeros(len(frame), dtype=bool)


def column(frame: pd.DataFrame, name: str, table: str, default: float | None = None) -> Floats:
    """One column as floats: a missing value is `default`, or an error that names the element."""
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
    """A number that a net has one of, above 0: its base or its frequency."""
    given = net.get(name)
    if not isinstance(given, int | float | np.number) or not 0 < given < np.inf:
        raise InputError(
            f"The pandapower net has no {name}, or one that is not a number above 0.",
            remedy=f"Set net.{name}.",
        )
    return float(given)


def flags(frame: pd.DataFrame, name: str, default: bool) -> Bools:
    """One column as truth values, `default` where nothing is said."""
    if name not in frame.columns:
        return np.full(len(frame), default)
    said = frame[name].astype(object)
    return np.where(said.isna(), default, said).astype(bool)


def labels(net: Any, tables: tuple[str, ...]) -> tuple[str, ...]:
    """The source's names where all are given and differ; else table and index."""
    given: list[str] = []
    plain: list[str] = []
    for table in tables:
        frame = rows(net, table)
        plain += [f"{table} {index}" for index in frame.index]
        names = frame["name"] if "name" in frame.columns else pd.Series(None, index=frame.index)
        given += [text(name) or "" for name in names]
    return tuple(given if all(given) and len(set(given)) == len(given) else plain)


def text(value: Any) -> str | None:
    """A name as text; None where there is none."""
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int | float | np.number) and value == value else None


def places(place: pd.Series[int], frame: pd.DataFrame, name: str, table: str) -> Ints:
    """Places in the bus table of the buses named in one column."""
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
    """One column as indices of elements; -1 where there is none."""
    return np.array([_index(value) for value in frame[name]], dtype=np.int64)


def _index(value: Any) -> int:
    if not isinstance(value, int | float | np.number) or not 0 <= value < 2**62:
        return -1
    return int(value) if value == int(value) else -1


def unit_limits(net: Any, table: str) -> tuple[Floats, Floats]:
    """Least and greatest injection of every unit of `table`, MW."""
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
