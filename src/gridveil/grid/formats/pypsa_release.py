"""What of a PyPSA network may be published, by the parameters that are private."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from gridveil.grid.formats import coarse, unlogged
from gridveil.grid.formats.pypsa_tables import (
    BRANCHES,
    Snapshot,
    flags,
    numbers,
    per_unit,
    static,
    values,
)
from gridveil.grid.network import Bools
from gridveil.grid.public import check_parameters

# Attributes that are copied, at the snapshot. Whatever is not here is not written.
KEPT: dict[str, tuple[str, ...]] = {
    "Bus": ("v_nom", "x", "y"),
    "Line": (
        *("bus0", "bus1", "x", "r", "b", "g", "length", "v_ang_max", "active"),
        *("s_nom", "s_max_pu"),
    ),
    "Transformer": (
        *("bus0", "bus1", "x", "r", "b", "g", "tap_ratio", "phase_shift", "v_ang_max", "active"),
        *("s_nom", "s_max_pu"),
    ),
    "Load": ("bus", "p_set", "q_set", "sign", "active"),
    "Generator": (
        *("bus", "control", "active", "p_nom", "p_min_pu", "p_max_pu", "p_set"),
        *("marginal_cost", "marginal_cost_quadratic"),
    ),
}
# What is taken off that list when a parameter is private. The elements that have it lose their
# names too, since people write ratings into them; their order stays.
WITHHELD: dict[str, dict[str, tuple[str, ...]]] = {
    "capacity": {
        # With x they tell how many circuits a line has: b / x goes with the square of that.
        "Line": ("s_nom", "s_max_pu", "length", "b", "g"),
        "Transformer": ("s_nom", "s_max_pu", "x", "r", "b", "g"),
    },
    "load": {"Load": ("p_set", "q_set", "sign")},
    "generator_limit": {"Generator": ("p_nom", "p_min_pu", "p_max_pu", "p_set")},
    "cost": {"Generator": ("marginal_cost", "marginal_cost_quadratic")},
}
SERIES = {
    *("s_max_pu", "p_set", "q_set", "phase_shift", "p_min_pu", "p_max_pu"),
    *("marginal_cost", "marginal_cost_quadratic"),
}


@unlogged("pypsa")
def strip(data: Snapshot, parameters: str | Sequence[str]) -> Snapshot:
    """A new network with what all of `parameters` have on their allow-lists, and nothing else."""
    private = check_parameters(parameters)
    bare = importlib.import_module("pypsa").Network()
    typed = per_unit(data)
    for component, kept in KEPT.items():
        frame = typed.get(component, static(data.network, component))
        if not len(frame):
            continue
        withheld = {name for one in private for name in WITHHELD[one].get(component, ())}
        columns = {
            name: _values(data, frame, component, name)
            for name in kept
            if name not in withheld and name in frame
        }
        if component == "Transformer" and "capacity" in private:
            columns |= _on_base(frame)
        if component == "Line" and "capacity" in private:
            columns["s_nom"] = np.full(len(frame), np.inf)
        plain = [f"{component.lower()} {place}" for place in range(len(frame))]
        bare.add(component, plain if withheld else list(frame.index.astype(str)), **columns)
    return Snapshot(bare, bare.snapshots[0])


def _values(data: Snapshot, frame: pd.DataFrame, component: str, name: str) -> Any:
    if name.startswith("bus"):
        return [str(bus) for bus in frame[name]]
    if name == "control":
        # Which unit is the slack is topology; other kinds of control are about voltages.
        return ["Slack" if kind == "Slack" else "PQ" for kind in frame[name]]
    if name == "active":
        return flags(frame, name)
    of_type = name == "phase_shift" and (frame["type"] != "").to_numpy(dtype=bool)
    own = numbers(frame, component, name)
    return np.where(of_type, own, values(data, component, name)) if name in SERIES else own


def rated_branches(data: Snapshot) -> Bools:
    """Which branches have impedances on their ratings: the transformers."""
    sizes = [len(static(data.network, component)) for component in BRANCHES]
    return np.repeat([component == "Transformer" for component in BRANCHES], sizes)


def _on_base(frame: pd.DataFrame) -> dict[str, Any]:
    """Impedances (public) on 1 MVA instead of on ratings (private), and no limit."""
    rating = numbers(frame, "Transformer", "s_nom")
    return {
        "s_nom": np.ones(len(frame)),
        "s_max_pu": np.full(len(frame), np.inf),
        "x": coarse(numbers(frame, "Transformer", "x") / rating),
        "r": coarse(numbers(frame, "Transformer", "r") / rating),
    }
