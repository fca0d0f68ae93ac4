"""Coordinates of buses, from files of pandapower and PyPSA."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridveil.grid.io import Source

Floats = NDArray[np.float64]


def file_places(source: Any, buses: int) -> Floats | None:
    """Return the coordinates of every bus, ``(buses, 2)``, in the file's units; NaN if missing.

    None for a network without a file, and for formats without coordinates. Anything that is not a
    coordinate counts as missing: a picture is not worth refusing a network.
    """
    if not isinstance(source, Source) or source.kind not in _READERS:
        return None
    found = np.full((buses, 2), np.nan)
    read = np.array(_READERS[source.kind](source.data), dtype=float).reshape(-1, 2)[:buses]
    found[: len(read)] = read
    found[~np.isfinite(found).all(axis=1)] = np.nan
    return found


def _of_pandapower(net: Any) -> list[tuple[float, float]]:
    texts = net.bus["geo"] if "geo" in net.bus else [None] * len(net.bus)
    return [_point(text) for text in texts]


def _point(text: Any) -> tuple[float, float]:
    """Read the coordinates of a GeoJSON point."""
    try:
        x, y = json.loads(text)["coordinates"][:2]
        return float(x), float(y)
    except (TypeError, ValueError, KeyError, RecursionError):
        return np.nan, np.nan


def _of_pypsa(snapshot: Any) -> list[tuple[float, float]]:
    table = snapshot.network.c["Bus"].static
    if not {"x", "y"} <= set(table.columns):
        return [(np.nan, np.nan)] * len(table)
    # PyPSA writes 0, 0 for a bus without coordinates.
    pairs = [(_number(x), _number(y)) for x, y in zip(table["x"], table["y"], strict=True)]
    return [(np.nan, np.nan) if pair == (0, 0) else pair for pair in pairs]


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return np.nan


_READERS = {"pandapower": _of_pandapower, "pypsa": _of_pypsa}
