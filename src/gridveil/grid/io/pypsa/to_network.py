"""Make a :class:`~gridveil.grid.model.network.Network` from a PyPSA network at one snapshot.

The numbers are those that PyPSA's own ``optimize`` uses for a lossless linear model of this
snapshot alone, on a base of 1 MVA.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from gridveil.errors import InputError
from gridveil.grid.io import real
from gridveil.grid.io.pypsa.reactive import reactive_columns, reactive_notes
from gridveil.grid.io.pypsa.read_columns import (
    AVAILABILITY,
    BRANCHES,
    Snapshot,
    active_ones,
    farthest,
    flags,
    numbers,
    over_time,
    places,
    shares,
    static,
    values,
)
from gridveil.grid.model.checks import Problem, refuse
from gridveil.grid.model.network import Bools, Branches, Buses, Floats, Generators, Network

ELECTRIC = ("AC", "electricity")
"""Carriers of buses that are in the model."""
# Components that the model has, or that do not matter for power flows.
KNOWN = {
    *("Bus", "Generator", "Load", "Line", "Transformer", "ShuntImpedance", "Carrier"),
    *("SubNetwork", "LineType", "TransformerType", "Shape", "Link", "StorageUnit", "Store"),
    "GlobalConstraint",
}
CONSTANT = {"StorageUnit": "storage units", "Store": "stores", "Link": "links"}
"""Components that are not in the model: public and constant, at their p_set at the snapshot."""
NEEDED: dict[str, tuple[str, ...]] = {
    "Bus": ("carrier",),
    "Load": ("bus", "p_set", "q_set", "sign", "active"),
    "Line": ("bus0", "bus1", "s_nom", "s_max_pu", "active", "type"),
    "Transformer": (
        *("bus0", "bus1", "s_nom", "s_max_pu", "active", "type", "tap_ratio", "phase_shift"),
    ),
    "Generator": (
        *("bus", "control", "p_nom", "p_min_pu", "p_max_pu", "p_set", "active"),
        *("marginal_cost", "marginal_cost_quadratic"),
    ),
}
# Attributes with the only value that the model allows, and the remedy for another.
PLAIN: dict[str, dict[str, tuple[Any, str]]] = {
    "Generator": {
        "committable": (False, "The model has no unit commitment: set it to False."),
        "maintainable": (False, "The model has no maintenance: set it to False."),
        "sign": (1.0, "Use sign 1 and negative limits."),
        "e_sum_min": (-np.inf, "The model has one snapshot: drop the energy limit."),
        "e_sum_max": (np.inf, "The model has one snapshot: drop the energy limit."),
    },
    "Transformer": {
        "phase_shift_min": (0.0, "The model has fixed phase shifts: use phase_shift."),
        "phase_shift_max": (0.0, "The model has fixed phase shifts: use phase_shift."),
    },
}


# Absurd numbers give infinite or missing results, which the check of the network finds.
@np.errstate(all="ignore")
def build(source: Snapshot) -> Network:
    """Read the tables; the result has no ``source`` yet."""
    network = source.network
    _refuse_unsupported(network)
    branches = _branches(source)
    units = _generators(source)
    drawn, shunt, notes = drawn_power(source)
    alive = static(network, "Bus")["carrier"].isin(ELECTRIC).to_numpy(dtype=bool)
    used = branches.in_service & alive[branches.from_bus] & alive[branches.to_bus]
    branches = replace(branches, in_service=used)
    units = replace(units, in_service=units.in_service & alive[units.bus])
    notes += [*_left_out(network, alive), *reactive_notes(source)]
    buses = Buses(
        name=tuple(static(network, "Bus").index.astype(str)),
        load=farthest(drawn),
        shunt=shunt,
        fixed_load=shunt,
        reference=_reference(network, branches, units) & alive,
        in_service=alive,
        **reactive_columns(source),
    )
    name = str(network.name) or "PyPSA network"
    return Network(name, 1.0, buses, units, branches, notes=tuple(notes))


def drawn_power(source: Snapshot) -> tuple[Floats, Floats, list[str]]:
    """Return loads at buses at every snapshot, constant power at buses (MW), and notes.

    Links, storage units and stores are constant at their p_set. If it differs between the
    snapshots that are read, it is added to the loads.
    """
    network = source.network
    buses, times = len(static(network, "Bus")), len(source.labels)
    loads, constant, notes = np.zeros((times, buses)), np.zeros(buses), []
    power = -over_time(source, "Load", "p_set") * values(source, "Load", "sign")
    active = active_ones(network, "Load")
    np.add.at(loads.T, places(network, "Load", "bus")[active], power[:, active].T)
    for component, words in CONSTANT.items():
        active = active_ones(network, component)
        if not active.any():
            continue
        drawn = np.zeros((times, buses))
        power = np.nan_to_num(over_time(source, component, "p_set"))[:, active]
        if component == "Link":
            start, end = (places(network, component, bus)[active] for bus in ("bus0", "bus1"))
            np.add.at(drawn.T, start, power.T)
            factor = -over_time(source, component, "efficiency")[:, active]
        else:
            end = places(network, component, "bus")[active]
            factor = -over_time(source, component, "sign")[:, active]
        np.add.at(drawn.T, end, (power * factor).T)
        moves = bool((drawn != drawn[0]).any())
        loads, constant = (loads + drawn, constant) if moves else (loads, constant + drawn[0])
        when = "over time" if moves else "at the snapshot"
        notes.append(
            f"{int(active.sum()):,} {words} are public and constant, at their p_set {when} (0 "
            "where there is none)"
        )
    return loads, constant, notes


def _left_out(network: Any, alive: Bools) -> Iterator[str]:
    """Yield notes about what is not in the model, or differs from `optimize`."""
    if not alive.all():
        yield (
            f"{int((~alive).sum()):,} buses have another carrier than AC: they and all that is at "
            "them are in the file, and not in the model"
        )
    if count := len(static(network, "GlobalConstraint")):
        yield f"{count:,} global constraints are over all snapshots, and not in the model"
    if len(static(network, "ShuntImpedance")):
        yield "shunt impedances are left out in DC, as in PyPSA's own optimize"
    for component, name in (
        *((one, "s_nom_extendable") for one in BRANCHES),
        ("Generator", "p_nom_extendable"),
    ):
        frame = static(network, component)
        if name not in frame or not (free := _switched(frame, name)).any():
            continue
        size = name.removesuffix("_extendable")
        said = f"{int(free.sum()):,} {component} are extendable, and taken at the size of the file"
        empty = frame.index[free & (real(frame[size], size) == 0)]
        if len(empty):
            said += (
                f": that of {len(empty):,} is 0 ('{empty[0]}', for example), so the model has no "
                f"such unit. Give them {size}, as with n.optimize.fix_optimal_capacities()"
            )
        yield said


def _switched(frame: pd.DataFrame, name: str) -> Bools:
    return np.array([said is True or said == 1 for said in frame[name]], dtype=bool)


def _refuse_unsupported(network: Any) -> None:
    if not len(static(network, "Bus")):
        raise InputError("The PyPSA network has no bus.", remedy="Give a network with buses.")
    for component, needed in NEEDED.items():
        absent = [name for name in needed if name not in static(network, component)]
        if absent:
            raise InputError(
                f"Table {component} of the PyPSA network has no column {absent[0]}.",
                remedy="Add it: n.add gives every attribute its default.",
            )
    for component in network.components:
        frame = component.static
        for index in (frame.index, *(one.columns for one in component.dynamic.values())):
            if index.has_duplicates:
                raise InputError(
                    f"{component.name} '{index[index.duplicated()][0]}' is in the PyPSA network "
                    "more than once.",
                    remedy="Give every element a name of its own.",
                )
    found = [*_foreign(network), *_special(network)]
    carrier = static(network, "Bus")["carrier"]
    if not carrier.isin(ELECTRIC).any():
        found.append(
            Problem(
                f"{len(carrier):,} Bus",
                f"'{carrier.index[0]}', for example",
                "the carrier is not AC",
                "Give electric buses the carrier AC.",
            )
        )
    units = network.c["Generator"]
    if hasattr(units, "has_piecewise") and units.has_piecewise("marginal_cost"):
        found.append(
            Problem(
                *("Generator", "marginal_cost", "it is piecewise"),
                "Use marginal_cost and marginal_cost_quadratic.",
            )
        )
    refuse("The PyPSA network", found)


def _foreign(network: Any) -> Iterator[Problem]:
    """Yield problems of active components that the DC model does not have."""
    for component in network.components:
        frame = component.static
        if component.name in KNOWN or not len(frame):
            continue
        used = frame.index[flags(frame, "active")] if "active" in frame else frame.index
        if len(used):
            yield Problem(
                f"{len(used):,} {component.name}",
                f"'{used[0]}', for example",
                "the DC model has no such component",
                f"Remove them, n.remove('{component.name}', ...), or set active to False.",
            )


def _special(network: Any) -> Iterator[Problem]:
    """Yield problems of attributes that the model does not allow."""
    for component, plain in PLAIN.items():
        frame = static(network, component)
        frame = frame[flags(frame, "active")]
        for name, (allowed, remedy) in plain.items():
            if name in frame:
                other = frame.index[(frame[name] != allowed).to_numpy(dtype=bool)]
                if len(other):
                    what = f"'{other[0]}', for example"
                    yield Problem(
                        f"{len(other):,} {component}", what, f"{name} is not {allowed}", remedy
                    )


def per_unit(source: Snapshot) -> dict[str, pd.DataFrame]:
    """Return tables of lines and transformers with types converted to numbers by PyPSA."""
    for component in BRANCHES:
        frame = static(source.network, component)
        known = {"", *static(source.network, f"{component}Type").index}
        for name, kind in zip(frame.index, frame["type"], strict=True):
            if str(kind) in known:
                continue
            raise InputError(
                f"{component} '{name}' of the PyPSA network has type '{kind}', which the network "
                "does not have.",
                remedy="Add the type, or give x, r and s_nom as numbers.",
            )
    work = source.network.copy()
    try:
        work.calculate_dependent_values()
    except (ValueError, TypeError, KeyError, AttributeError, ArithmeticError) as error:
        raise InputError(
            "PyPSA can't work out the impedances of lines and transformers "
            f"({type(error).__name__}).",
            remedy="Give x, r and s_nom as numbers, or types that the network has.",
        ) from None
    return {component: static(work, component) for component in BRANCHES}


def _branches(source: Snapshot) -> Branches:
    tables = per_unit(source)
    lines, trafos = tables["Line"], tables["Transformer"]
    network = source.network
    ends = {
        f"{end}_bus": np.concatenate([places(network, c, bus) for c in BRANCHES])
        for end, bus in (("from", "bus0"), ("to", "bus1"))
    }
    # PyPSA's x_pu of a transformer includes the T model; optimize uses x without it.
    rating = numbers(trafos, "Transformer", "s_nom")
    limit = [
        numbers(table, component, "s_nom") * values(source, component, "s_max_pu")
        for component, table in tables.items()
    ]
    angle = np.concatenate([_angle(table, component) for component, table in tables.items()])
    shift = values(source, "Transformer", "phase_shift")
    typed = (trafos["type"] != "").to_numpy(dtype=bool)
    shift = np.where(typed, numbers(trafos, "Transformer", "phase_shift"), shift)
    ground = {
        name: np.concatenate(
            [
                numbers(lines, "Line", f"{letter}_pu"),
                numbers(trafos, "Transformer", letter) * rating,
            ]
        )
        for name, letter in (("conductance", "g"), ("charging", "b"))
    }
    plain = np.zeros(len(lines), dtype=bool)
    impedance = {
        name: np.concatenate(
            [
                numbers(lines, "Line", f"{letter}_pu"),
                numbers(trafos, "Transformer", letter) / rating,
            ]
        )
        for name, letter in (("resistance", "r"), ("reactance", "x"))
    }
    return Branches(
        name=_names(network, BRANCHES),
        **ends,
        **impedance,
        tap=np.concatenate([np.ones(len(lines)), numbers(trafos, "Transformer", "tap_ratio")]),
        shift=np.concatenate([np.zeros(len(lines)), shift]),
        capacity=np.concatenate(limit),
        angle_min=-angle,
        angle_max=angle,
        in_service=np.concatenate([active_ones(network, component) for component in BRANCHES]),
        **ground,
        t_model=np.append(plain, (trafos["model"] == "t").to_numpy(dtype=bool)),
        tap_at_end=np.append(plain, _tap_side(trafos) == 1),
    )


def _tap_side(table: pd.DataFrame) -> Floats:
    """Return the side of every transformer's tap, 0 or 1; in DC it makes no difference."""
    if "tap_side" not in table:
        return np.zeros(len(table))
    return numbers(table, "Transformer", "tap_side")


def _angle(table: pd.DataFrame, component: str) -> Floats:
    if "v_ang_max" not in table:
        return np.full(len(table), np.inf)
    return numbers(table, component, "v_ang_max")


def _names(network: Any, components: tuple[str, ...]) -> tuple[str, ...]:
    """Return names, with the component in front if a line and a transformer share one."""
    names = [(c, str(name)) for c in components for name in static(network, c).index]
    plain = tuple(name for _, name in names)
    return plain if len(set(plain)) == len(plain) else tuple(f"{c} {name}" for c, name in names)


def _generators(source: Snapshot) -> Generators:
    network = source.network
    size = values(source, "Generator", "p_nom")
    fixed = values(source, "Generator", "p_set")
    # A share of 0 is 0 MW, even of an infinite power.
    of = [shares(source, name) for name in AVAILABILITY]
    with np.errstate(over="ignore", invalid="ignore"):
        low, high = (np.where((one == 0) & np.isinf(size), 0.0, size * one) for one in of)
    still = ~np.isnan(fixed)
    count = len(size)
    return Generators(
        name=_names(network, ("Generator",)),
        bus=places(network, "Generator", "bus"),
        p_min=np.where(still, fixed, low),
        p_max=np.where(still, fixed, high),
        in_service=active_ones(network, "Generator"),
        quadratic=values(source, "Generator", "marginal_cost_quadratic"),
        linear=values(source, "Generator", "marginal_cost"),
        constant=np.zeros(count),
        points=(None,) * count,
    )


def _reference(network: Any, branches: Branches, units: Generators) -> Bools:
    """Mark one bus per island: that of its slack unit, or its first unit, or its first bus."""
    count = len(static(network, "Bus"))
    used = branches.in_service
    ends = (branches.from_bus[used], branches.to_bus[used])
    graph = coo_array((np.ones(int(used.sum())), ends), shape=(count, count))
    island = connected_components(graph, directed=False)[1]
    slack = (static(network, "Generator")["control"] == "Slack").to_numpy(dtype=bool)
    chosen: dict[int, int] = {}
    for some in (units.bus[slack & units.in_service], units.bus[units.in_service], range(count)):
        for place in some:
            chosen.setdefault(int(island[place]), int(place))
    reference = np.zeros(count, dtype=bool)
    reference[list(chosen.values())] = True
    return reference
