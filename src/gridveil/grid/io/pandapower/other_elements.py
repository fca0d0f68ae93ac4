"""Elements of a pandapower net that the DC model does not have: constant, left out or refused.

DC lines and storages are public and constant, at their set power. Controllers and profiles are
left out. Elements that would have to become loads or generators are refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from gridveil.errors import InputError
from gridveil.grid.io.pandapower.read_columns import column, flags, places
from gridveil.grid.model.checks import Problem, refuse
from gridveil.grid.model.network import Floats

OTHERS: dict[str, tuple[str, ...]] = {
    "trafo3w": ("hv_bus", "mv_bus", "lv_bus"),
    "dcline": ("from_bus", "to_bus"),
    "storage": ("bus",),
}
"""Tables that only some nets have, and their bus columns."""
# Tables whose elements affect the power flow but are not in the DC model, with the remedy.
REFUSED = {
    "ward": "replace it by a load and a shunt",
    "xward": "replace it by a load, a shunt and a generator",
    "motor": "replace it by a load",
    "asymmetric_load": "replace it by a load",
    "asymmetric_sgen": "replace it by an sgen",
    "svc": "take it out of service",
    "ssc": "take it out of service",
    "tcsc": "replace it by an impedance",
    "vsc": "take it out of service",
    "vsc_stacked": "take it out of service",
    "vsc_bipolar": "take it out of service",
    "line_dc": "take it out of service",
}


def present(net: Any, table: str) -> pd.DataFrame:
    """Return a table that only some nets have; empty if this one has none."""
    frame = net.get(table)
    if frame is not None and not isinstance(frame, pd.DataFrame):
        raise InputError(
            f"The pandapower net has a {table} that is not a table.", remedy="Remove it."
        )
    if frame is None or not len(frame):
        return pd.DataFrame(index=pd.Index([], dtype=np.int64))
    absent = [name for name in OTHERS.get(table, ()) if name not in frame.columns]
    if absent:
        raise InputError(
            f"Table {table} of the pandapower net has no column {absent[0]}.",
            remedy="Add it, or update an old net with pandapower.convert_format.",
        )
    return frame


def refuse_unsupported(net: Any) -> None:
    """Raise `InputError` that names all elements in service that can't be in the model."""
    found = []
    for table, remedy in REFUSED.items():
        frame = present(net, table)
        used = frame.index[flags(frame, "in_service", True)]
        if len(used):
            found.append(
                Problem(
                    f"{len(used):,} {table} in service",
                    f"{table} {used[0]}, for example",
                    "the DC model has no such element",
                    f"To go on, {remedy}.",
                )
            )
    refuse("The pandapower net", found)


def constant_power(net: Any, place: pd.Series[int]) -> Floats:
    """Return the power that DC lines and storages draw at buses, MW."""
    drawn = np.zeros(len(net.bus))
    frame = present(net, "dcline")
    frame = frame[flags(frame, "in_service", True)]
    if len(frame):
        power = column(frame, "p_mw", "dcline")
        lost = column(frame, "loss_percent", "dcline", 0.0) / 100
        given = power * (1 - lost) - column(frame, "loss_mw", "dcline", 0.0)
        np.add.at(drawn, places(place, frame, "from_bus", "dcline"), power)
        np.add.at(drawn, places(place, frame, "to_bus", "dcline"), -given)
    frame = present(net, "storage")
    frame = frame[flags(frame, "in_service", True)]
    if len(frame):
        power = column(frame, "p_mw", "storage") * column(frame, "scaling", "storage", 1.0)
        np.add.at(drawn, places(place, frame, "bus", "storage"), power)
    return drawn


def constant_notes(net: Any) -> Iterator[str]:
    """Yield notes for the owner about these elements."""
    words = {
        "dcline": "DC lines are public and constant, at their p_mw",
        "storage": "storages are public and constant, at their p_mw",
        "trafo3w": "three-winding transformers have no limit in the model",
        "controller": "controllers are not run, and left out of a release",
    }
    for table, what in words.items():
        frame = present(net, table)
        if count := int(flags(frame, "in_service", True).sum()):
            yield f"{count:,} {what}"
    if net.get("profiles"):
        yield (
            "profiles over time are left out of a released net: they are models on request "
            "(--snapshots all), and private loads over time are a table (--series FILE)"
        )
