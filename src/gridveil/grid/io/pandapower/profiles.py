"""Turn profiles of a pandapower net, as SimBench has them, into the models of a release.

``net.profiles`` has tables of factors over time, with a column ``time``. The column ``profile`` of
``load`` and ``sgen`` names the factors of an element: ``NAME_pload`` in the table ``load``, and
``NAME`` in the table ``renewables``. An element draws or feeds in its ``p_mw`` times its factor;
one without a profile is constant. Loads are then public.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from gridveil.errors import InputError
from gridveil.grid.io import real
from gridveil.grid.io.pandapower.read_columns import UNIT_TABLES, column, fixed_loads, places, rows
from gridveil.grid.io.pandapower.to_network import bus_places
from gridveil.grid.io.snapshot_choice import chosen
from gridveil.grid.model.network import Floats

_WHAT = "pandapower net"
_TABLES = {"load": ("load", "_pload"), "sgen": ("renewables", "")}
_FORMAT = "%d.%m.%Y %H:%M"  # SimBench's own


def models_at(net: Any, asked: str | Path | Sequence[Any]) -> dict[str, Floats]:
    """Return the times that were asked for as arrays of a population, one row each.

    Raises
    ------
    InputError
        If the net has no profiles, or a profile that an element names is missing.
    """
    tables = {table: _factors(net, table, *where) for table, where in _TABLES.items()}
    times = next((one.index for one in tables.values() if len(one.columns)), None)
    if times is None:
        raise InputError(
            "The pandapower net has no profiles, or no load or sgen names one.",
            remedy="Give it net.profiles with a column time, and a column profile in load and "
            "sgen (as SimBench has them), or leave --snapshots out.",
        )
    taken = list(chosen(times, asked, _WHAT))
    shares = {
        table: one.loc[taken] if len(one.columns) else pd.DataFrame(index=pd.Index(taken))
        for table, one in tables.items()
    }
    found = {"load": _loads(net, shares["load"])}
    units = np.concatenate(
        [
            _of_rows(rows(net, table), shares["sgen"])
            if table == "sgen"
            else np.ones((len(taken), len(rows(net, table))))
            for table in UNIT_TABLES
        ],
        axis=1,
    )
    if (units < 0).any():
        raise InputError(
            "A profile of an sgen has factors below 0.", remedy="Let factors be 0 or more."
        )
    return found | {"p_min": units, "p_max": units}


def _factors(net: Any, table: str, name: str, ending: str) -> pd.DataFrame:
    """Read the profiles that elements of a table name: one row per time, one column each."""
    known = net.get("profiles")
    frame = known.get(name) if isinstance(known, dict) else None
    used = net[table]["profile"].dropna().unique() if "profile" in net[table] else ()
    if not isinstance(frame, pd.DataFrame) or not len(frame) or not len(used):
        return pd.DataFrame()
    absent = [one for one in ("time", *(f"{one}{ending}" for one in used)) if one not in frame]
    if absent:
        raise InputError(
            f"net.profiles['{name}'] has no column {absent[0]!r}.",
            remedy=f"Add it, or clear profile of the elements of {table} that name it.",
        )
    found = {one: real(frame[f"{one}{ending}"], f"Profile {one}{ending}") for one in used}
    for one, factors in found.items():
        if not np.isfinite(factors).all():
            raise InputError(f"Profile {one}{ending} has entries that are missing or not finite.")
    times = pd.Index(frame["time"])
    try:
        times = pd.DatetimeIndex(pd.to_datetime(times, format=_FORMAT))
    except (TypeError, ValueError):
        times = times.astype(str)  # labels: 'every 24' counts them
    if times.has_duplicates:
        raise InputError(f"net.profiles['{name}'] has a time twice.", remedy="Correct it.")
    return pd.DataFrame(found, index=times)


def _of_rows(frame: pd.DataFrame, shares: pd.DataFrame) -> Floats:
    """Return the factor of every element at every time; 1 without a profile."""
    found = np.ones((len(shares), len(frame)))
    if "profile" in frame:
        for at, name in enumerate(frame["profile"]):
            if name in shares.columns:
                found[:, at] = shares[name]
    return found


def _loads(net: Any, shares: pd.DataFrame) -> Floats:
    """Return multipliers of buses: the mean of their loads' factors, weighted by size."""
    frame = fixed_loads(net)
    power = column(frame, "p_mw", "load") * column(frame, "scaling", "load", 1.0)
    at = places(bus_places(net), frame, "bus", "load")
    count = len(net.bus) + len(net.get("trafo3w", ()))  # stars of transformers are buses too
    still, moved = np.zeros(count), np.zeros((count, len(shares)))
    np.add.at(still, at, power)
    np.add.at(moved, at, (_of_rows(frame, shares) * power).T)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(still[:, None] != 0, moved / still[:, None], 1.0).T
