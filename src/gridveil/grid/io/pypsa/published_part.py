"""Build the part of a PyPSA network that may be published, depending on the private parameters."""

from __future__ import annotations

import importlib
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from gridveil.errors import InputError
from gridveil.grid.io import Protected, coarse, real, unlogged
from gridveil.grid.io.pypsa import snapshot_models
from gridveil.grid.io.pypsa.read_columns import (
    AVAILABILITY,
    BRANCHES,
    SHARES,
    Snapshot,
    flags,
    numbers,
    places,
    static,
    values,
)
from gridveil.grid.io.pypsa.to_network import build, per_unit
from gridveil.grid.io.released_columns import copied, row_groups
from gridveil.grid.io.released_columns.table import KEPT
from gridveil.grid.model.network import Bools, Branches
from gridveil.grid.model.parameters import check_parameters

COMPONENTS = tuple(name for name in KEPT["pypsa"] if name != "network")
# Columns of free text: only short labels are kept.
LABELS = ("carrier", "unit", "location", "nice_name", "color")
LABEL = re.compile(r"[\w #/+-]{0,40}")
META = "gridveil_full_availability"
"""The mark in a released file's meta data that its limits hold at full availability."""


@unlogged("pypsa")
def strip(
    data: Snapshot, parameters: str | Sequence[str], protected: Protected | None = None
) -> Snapshot:
    """Make a new network with only what the allow-lists of all `parameters` contain."""
    private = check_parameters(parameters)
    snapshot_models.check_private(data, private)
    if "generator_limit" in private and not data.several:
        _refuse_availability(data)
    bare = importlib.import_module("pypsa").Network(snapshots=list(data.labels))
    typed = per_unit(data)
    for component in COMPONENTS:
        frame = typed.get(component, static(data.network, component))
        frame = frame[_energy(frame)] if component == "GlobalConstraint" else frame
        if not len(frame):
            continue
        columns = _columns(data, frame, component, private)
        for names, public in row_groups(private, _rows(data, component, protected or {})):
            kept = _columns(data, frame, component, names)
            for name, theirs in kept.items():
                if name not in columns:
                    unsaid = data.network.c[component].defaults.loc[name, "default"]
                    columns[name] = [unsaid] * len(frame)
                both = zip(public, theirs, columns[name], strict=True)
                columns[name] = [new if take else old for take, new, old in both]
        bare.add(component, _distinct(columns.pop("name")), **columns)
    if data.several:
        _keep_series(data, bare, private)
    elif data.full:
        _keep_availability(data, bare)
    return Snapshot(bare, data.labels, data.full)


def _energy(frame: pd.DataFrame) -> Bools:
    """Mark global constraints of primary energy; others bound sizes and may be made from them."""
    known = (frame["type"] == "primary_energy") & frame["sense"].isin(["<=", "==", ">="])
    named = frame["carrier_attribute"].astype(str).str.fullmatch(LABEL)
    return (known & named).to_numpy(dtype=bool)


def _columns(
    data: Snapshot, frame: pd.DataFrame, component: str, private: Sequence[str]
) -> dict[str, Any]:
    """Return the columns of a component that the allow-lists contain, and its names."""
    kept = copied("pypsa", component, private)
    columns = {
        name: _values(data, frame, component, name)
        for name in kept
        if name != "name" and name in frame
    }
    if component == "Transformer" and "capacity" in private:
        columns |= _on_base(frame)
    if component == "Line" and "capacity" in private:
        columns["s_nom"] = np.full(len(frame), np.inf)
    plain = [f"{component.lower()} {place}" for place in range(len(frame))]
    columns["name"] = list(frame.index.astype(str)) if "name" in kept else plain
    return columns


def _rows(data: Snapshot, component: str, protected: Protected) -> dict[str, Bools]:
    """Mark the rows of a component whose value of a parameter is protected, by parameter."""
    network = data.network
    if component in BRANCHES and "capacity" in protected:
        lines, hidden = len(static(network, "Line")), protected["capacity"]
        return {"capacity": hidden[:lines] if component == "Line" else hidden[lines:]}
    if component == "Load" and "load" in protected:
        at, both = places(network, "Load", "bus"), ("load", "reactive_load")
        return {name: protected[name][at] for name in both if name in protected}
    if component == "Generator":
        return {name: protected[name] for name in ("generator_limit", "cost") if name in protected}
    return {}


def _distinct(names: list[str]) -> list[str]:
    """Make names unique: a kept name may equal one that another element was given."""
    seen: set[str] = set()
    for at, name in enumerate(names):
        while name in seen:
            name += "'"
        seen.add(name)
        names[at] = name
    return names


def _refuse_availability(data: Snapshot) -> None:
    """Refuse private limits of units with series of availability, which vary from hour to hour."""
    series = _available(data)
    if len(series) and not data.full:
        raise InputError(
            f"Generator limits are private, and {len(series):,} of "
            f"{len(static(data.network, 'Generator')):,} generators have series of availability "
            f"(p_max_pu, p_min_pu; {series[0]}, for example): at one snapshot a limit is a share "
            "of the nominal power, and none at all at night.",
            remedy="Release limits at full availability: full_availability=True "
            "(--full-availability). The series stay in the released file at the snapshot.",
        )


def _available(data: Snapshot) -> list[Any]:
    dynamic = data.network.c["Generator"].dynamic
    names = [name for column in AVAILABILITY for name in dynamic[column].columns]
    return list(dict.fromkeys(names))


def _keep_availability(data: Snapshot, bare: Any) -> None:
    """Copy public series of availability at the snapshot, for limits at full availability."""
    units = static(data.network, "Generator").index
    named = dict(zip(units, static(bare, "Generator").index, strict=True))
    for column in AVAILABILITY:
        series = data.network.c["Generator"].dynamic[column]
        if len(series.columns):
            now = real(series.loc[data.label], f"Series {column} of Generator")
            names = pd.Index([named[unit] for unit in series.columns], name="name")
            bare.c["Generator"].dynamic[column] = pd.DataFrame([now], bare.snapshots, names)
    bare.meta = {META: True}


def _keep_series(data: Snapshot, bare: Any, private: Sequence[str]) -> None:
    """Copy the series that may be published, at all snapshots read, and the weightings."""
    for component in COMPONENTS:
        kept, frame = copied("pypsa", component, private), static(data.network, component)
        named = dict(zip(frame.index, static(bare, component).index, strict=False))
        for name, series in data.network.c[component].dynamic.items():
            shown = name in kept or (component in ("Generator", "Line") and name in SHARES)
            if len(series.columns) and shown:
                series = series.loc[list(data.labels), [one for one in series if one in named]]
                table = {named[one]: real(series[one], f"Series {name}") for one in series}
                frame = pd.DataFrame(table, bare.snapshots)
                bare.c[component].dynamic[name] = frame.rename_axis(columns="name")
    weights = data.network.snapshot_weightings.loc[list(data.labels)]
    bare.snapshot_weightings = pd.DataFrame(
        {name: real(weights[name], f"Weighting {name}") for name in bare.snapshot_weightings},
        bare.snapshots,
    )
    bare.meta = {snapshot_models.META: True}


def columns(data: Snapshot) -> dict[str, tuple[str, ...]]:
    """List the attributes of components that are not empty, as `released_columns` names them."""
    found: dict[str, tuple[str, ...]] = {}
    rest: list[str] = ["name", "meta", "crs", "snapshot", "objective"]
    series: list[str] = []
    for component in data.network.components:
        if len(component.static):
            if component.name in COMPONENTS:
                found[component.name] = ("name", *(str(name) for name in component.static.columns))
            elif component.name not in ("LineType", "TransformerType"):
                rest.append(component.name)
        for name, frame in component.dynamic.items():
            if len(frame.columns):
                inputs = name in KEPT["pypsa"].get(component.name, "").split()
                series.append("inputs" if inputs else "results")
    if data.several:
        whole = len(data.labels) == len(data.network.snapshots)
        series = [name for name in series if name == "results"] + ["snapshots"] * (not whole)
    return {**found, "series": tuple(dict.fromkeys(series)), "network": tuple(rest)}


def _values(data: Snapshot, frame: pd.DataFrame, component: str, name: str) -> Any:
    own = frame[name]
    if name == "active":
        return flags(frame, name)
    whole = data.several or (data.full and component == "Generator" and name in AVAILABILITY)
    if name in data.network.c[component].dynamic and not whole:
        of_type = name == "phase_shift" and (frame["type"] != "").to_numpy(dtype=bool)
        return np.where(of_type, numbers(frame, component, name), values(data, component, name))
    # Convert to PyPSA's type of the attribute, whatever the column holds.
    kind = data.network.c[component].defaults.loc[name, "type"]
    if kind == "string":
        texts = ["" if text is pd.NA or text != text else str(text) for text in own]
        return [text if name not in LABELS or LABEL.fullmatch(text) else "" for text in texts]
    if kind == "boolean":
        return [said is not pd.NA and (said is True or said == 1) for said in own]
    return numbers(frame, component, name).astype(int if kind == "int" else float)


def published_impedance(data: Snapshot) -> tuple[Bools, Branches]:
    """Mark branches whose impedances are relative to ratings; return all branches.

    For a stripped network they have the impedances that a release publishes.
    """
    sizes = [len(static(data.network, component)) for component in BRANCHES]
    rated = np.repeat([component == "Transformer" for component in BRANCHES], sizes)
    return rated, build(data).branches


def _on_base(frame: pd.DataFrame) -> dict[str, Any]:
    """Convert public impedances from private ratings to 1 MVA, and remove the limit.

    A third number with three digits could determine the rating, so shunt parts have two.
    """
    rating = numbers(frame, "Transformer", "s_nom")
    return {
        "s_nom": np.ones(len(frame)),
        "s_max_pu": np.full(len(frame), np.inf),
        "x": coarse(numbers(frame, "Transformer", "x") / rating),
        "r": coarse(numbers(frame, "Transformer", "r") / rating),
        "b": coarse(numbers(frame, "Transformer", "b") * rating, 2),
        "g": coarse(numbers(frame, "Transformer", "g") * rating, 2),
    }
