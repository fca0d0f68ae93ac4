"""Read loads of a PyPSA network over all its snapshots, and write released ones into it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from gridveil.errors import InputError
from gridveil.grid.io import real
from gridveil.grid.io.pypsa.read_columns import Snapshot, active_ones, places, static


def load_places(data: Snapshot) -> dict[str, int]:
    """Return the bus of every load of the model, by the load's name."""
    network, on = data.network, active_ones(data.network, "Load")
    names = static(network, "Load").index.astype(str)[on]
    return dict(zip(names, places(network, "Load", "bus")[on].tolist(), strict=True))


def load_series(data: Snapshot) -> pd.DataFrame:
    """Return the power of every load (MW): one row per snapshot, one column per load."""
    network, on = data.network, active_ones(data.network, "Load")
    frame, moving = static(network, "Load"), network.c["Load"].dynamic["p_set"]
    if not isinstance(network.snapshots, pd.DatetimeIndex):
        raise InputError(
            "The snapshots of the PyPSA network are not times.",
            remedy="Give it some: n.set_snapshots(pd.date_range(...)).",
        )
    found = {}
    for name in frame.index[on]:
        still = real(frame.loc[[name], "p_set"], "p_set of Load")[0]
        drawn = (
            real(moving[name], "Series p_set of Load")
            if name in moving.columns
            else np.full(len(network.snapshots), still)
        )
        found[str(name)] = -drawn * real(frame.loc[[name], "sign"], "sign of Load")[0]
    return pd.DataFrame(found, index=pd.DatetimeIndex(network.snapshots, name="snapshot"))


def load_names(data: Snapshot) -> tuple[str, ...]:
    """Return the names of all loads, in their order."""
    return tuple(static(data.network, "Load").index.astype(str))


def put_series(
    network: Any, times: pd.DatetimeIndex, loads: pd.DataFrame, names: Sequence[str]
) -> Any:
    """Replace the single snapshot of a released PyPSA network by loads over these times.

    The columns of ``loads`` are the owner's names of loads; ``names`` lists all of these in the
    order of the network, where the loads may have other names.
    """
    released = static(network, "Load").index
    signs = real(static(network, "Load")["sign"], "sign of Load")
    network.set_snapshots(times)
    columns = {
        released[place]: -loads[name].to_numpy() / signs[place]
        for place, name in enumerate(names)
        if name in loads.columns and signs[place] != 0
    }
    frame = pd.DataFrame(columns, index=network.snapshots)
    frame.columns.name = "name"
    network.c["Load"].dynamic["p_set"] = frame
    return network
