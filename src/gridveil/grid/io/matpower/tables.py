"""MATPOWER's tables, the network that they describe, and a network's values in such tables.

Columns are counted from 0, in the order of MATPOWER's manual. Only cells that differ between the
network and the tables it came from are changed, so that a number that was not touched keeps its
digits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gridveil.errors import InputError
from gridveil.grid.io import numbered
from gridveil.grid.model.checks import Problem, refuse
from gridveil.grid.model.network import Branches, Buses, Floats, Generators, Ints, Network

BUS_I, BUS_TYPE, PD, QD, GS, BS, AREA, VM, VA, BASE_KV, ZONE, VMAX, VMIN = range(13)
GEN_BUS, PG, QG, QMAX, QMIN, VG, MBASE, GEN_STATUS, PMAX, PMIN = range(10)
F_BUS, T_BUS, BR_R, BR_X, BR_B, RATE_A, RATE_B, RATE_C, TAP, SHIFT, BR_STATUS = range(11)
ANGMIN, ANGMAX = 11, 12
MODEL, STARTUP, SHUTDOWN, NCOST, COST = range(5)
BUS_COLUMNS = {
    **{"load": PD, "shunt": GS, "reactive_load": QD, "reactive_shunt": BS},
    **{"v_min": VMIN, "v_max": VMAX},
}
GEN_COLUMNS = {"p_min": PMIN, "p_max": PMAX, "q_min": QMIN, "q_max": QMAX}
BRANCH_COLUMNS = {"resistance": BR_R, "reactance": BR_X, "charging": BR_B, "shift": SHIFT}
"""The columns of a network's tables that MATPOWER has in the same form."""

STATUS = {"gen": GEN_STATUS, "branch": BR_STATUS}

COLUMNS: dict[str, tuple[str, ...]] = {
    "bus": (
        *("BUS_I", "BUS_TYPE", "PD", "QD", "GS", "BS", "AREA", "VM", "VA", "BASE_KV", "ZONE"),
        *("VMAX", "VMIN", "LAM_P", "LAM_Q", "MU_VMAX", "MU_VMIN"),
    ),
    "gen": (
        *("GEN_BUS", "PG", "QG", "QMAX", "QMIN", "VG", "MBASE", "GEN_STATUS", "PMAX", "PMIN"),
        *("PC1", "PC2", "QC1MIN", "QC1MAX", "QC2MIN", "QC2MAX"),
        *("RAMP_AGC", "RAMP_10", "RAMP_30", "RAMP_Q", "APF"),
        *("MU_PMAX", "MU_PMIN", "MU_QMAX", "MU_QMIN"),
    ),
    "branch": (
        *("F_BUS", "T_BUS", "BR_R", "BR_X", "BR_B", "RATE_A", "RATE_B", "RATE_C", "TAP", "SHIFT"),
        *("BR_STATUS", "ANGMIN", "ANGMAX"),
        *("PF", "QF", "PT", "QT", "MU_SF", "MU_ST", "MU_ANGMIN", "MU_ANGMAX"),
    ),
    "gencost": ("MODEL", "STARTUP", "SHUTDOWN", "NCOST", "COST"),
}
"""Names of columns, as in the manual; COST stands for all columns from there on."""
INPUTS = {"bus": 13, "gen": 21, "branch": 13}
"""How many columns of each table are data; the others are results."""

WIDTH = {"bus": 13, "gen": 10, "branch": 11, "gencost": 5}
REFERENCE, ISOLATED = 3, 4
PIECEWISE, POLYNOMIAL = 1, 2
UNLIMITED = 1e10
"""MATPOWER treats a rating of this size or more as no limit."""


@dataclass(frozen=True, eq=False)
class CaseTables:
    """The numbers of a case."""

    name: str
    base_mva: float
    bus: Floats
    gen: Floats
    branch: Floats
    gencost: Floats

    @property
    def units(self) -> Floats:
        """The rows of `gencost` for active power; any further rows are for reactive power."""
        return self.gencost[: len(self.gen)]


def to_network(tables: CaseTables, what: str) -> Network:
    """Make the network that these tables describe, without checking its numbers.

    Raises
    ------
    InputError
        If a table is too narrow, or a row refers to a bus that does not exist.
    """
    _check_widths(tables, what)
    _check_rows(tables, what)
    number = {int(row): place for place, row in enumerate(tables.bus[:, BUS_I])}

    def at(column: Floats) -> Ints:
        return np.array([number[int(n)] for n in column], dtype=np.int64)

    buses = _buses(tables.bus)
    units = _generators(tables, at(tables.gen[:, GEN_BUS]), buses)
    ends = at(tables.branch[:, F_BUS]), at(tables.branch[:, T_BUS])
    branches = _branches(tables.branch, *ends, buses)
    return Network(tables.name, tables.base_mva, buses, units, branches)


def _check_widths(tables: CaseTables, what: str) -> None:
    for table, width in WIDTH.items():
        values = getattr(tables, table)
        if values.shape[1] < width:
            raise InputError(
                f"{what}: mpc.{table} has {values.shape[1]} columns and needs {width}.",
                remedy="Give a case of MATPOWER's format, version 2.",
            )
    if len(tables.gencost) not in (len(tables.gen), 2 * len(tables.gen)):
        raise InputError(
            f"{what}: mpc.gencost has {len(tables.gencost)} rows for {len(tables.gen)} generators.",
            remedy="Give one row for each generator (or two, for reactive power too).",
        )


def _check_rows(tables: CaseTables, what: str) -> None:
    """Raise one error for all rows with an invalid bus number, type, status or cost."""
    known = tables.bus[:, BUS_I]
    found = [
        Problem(
            f"mpc.bus row {row + 1}",
            f"{known[row]:g}",
            "the bus number is not a positive integer",
            "Number buses 1, 2, 3 and so on.",
        )
        for row in np.flatnonzero(~((known >= 1) & (known < 2**53) & (known == np.round(known))))
    ]
    found += [
        Problem("bus " + f"{n:g}", f"{c} times", "the number is not unique", "Renumber them.")
        for n, c in Counter(known.tolist()).items()
        if c > 1
    ]
    columns = {"gen": (GEN_BUS,), "branch": (F_BUS, T_BUS)}
    for table, places in columns.items():
        values = getattr(tables, table)
        for column in places:
            found += [
                Problem(
                    f"mpc.{table} row {row + 1}",
                    f"bus {values[row, column]:g}",
                    "there is no such bus",
                    "Use the number of a bus in mpc.bus.",
                )
                for row in np.flatnonzero(~np.isin(values[:, column], known))
            ]
    refuse(what, [*found, *_kind_problems(tables), *_cost_problems(tables)])


def _kind_problems(tables: CaseTables) -> Iterator[Problem]:
    kinds = tables.bus[:, BUS_TYPE]
    for row in np.flatnonzero(~np.isin(kinds, (1, 2, REFERENCE, ISOLATED))):
        yield Problem(
            f"mpc.bus row {row + 1}",
            f"type {kinds[row]:g}",
            "there is no such type of bus",
            "Use 1 (PQ), 2 (PV), 3 (reference) or 4 (isolated).",
        )
    for table, column in STATUS.items():
        for row in np.flatnonzero(np.isnan(getattr(tables, table)[:, column])):
            yield Problem(f"mpc.{table} row {row + 1}", "NaN", "it has no status", "Use 1 or 0.")


def _cost_problems(tables: CaseTables) -> Iterator[Problem]:
    for place, row in enumerate(tables.units):
        fault = _cost_fault(row)
        if fault:
            yield Problem(
                f"mpc.gencost row {place + 1}", "", fault, "See gencost in MATPOWER's manual."
            )


def _cost_fault(row: Floats) -> str | None:
    model, count = row[MODEL], row[NCOST]
    if model not in (PIECEWISE, POLYNOMIAL):
        return f"the model is {model:g}, and neither 1 (piecewise linear) nor 2 (polynomial)"
    if not (0 <= count <= len(row) and count == round(count)):
        return f"the number of coefficients or points is {count:g}"
    used = int(count) * (2 if model == PIECEWISE else 1)
    if COST + used > len(row):
        return f"it announces {used} numbers and the table has columns for {len(row) - COST}"
    if model == PIECEWISE and count < 2:
        return "a piecewise-linear cost needs two points or more"
    if model == POLYNOMIAL and count > 3:
        # Refused even if they are zeros: their number is public, but they may be private.
        return f"{count:g} coefficients are a polynomial of a degree above 2 (leave out leading 0s)"
    return None


def _buses(bus: Floats) -> Buses:
    return Buses(
        name=tuple(str(int(number)) for number in bus[:, BUS_I]),
        reference=bus[:, BUS_TYPE] == REFERENCE,
        in_service=bus[:, BUS_TYPE] != ISOLATED,
        **{name: bus[:, column] for name, column in BUS_COLUMNS.items()},
    )


def _generators(tables: CaseTables, bus: Ints, buses: Buses) -> Generators:
    costs = [_cost(row) for row in tables.units]
    quadratic, linear, constant = np.array([c[0] for c in costs]).reshape(-1, 3).T
    return Generators(
        name=numbered(f"g{buses.name[place]}" for place in bus),
        bus=bus,
        in_service=(tables.gen[:, GEN_STATUS] > 0) & buses.in_service[bus],
        quadratic=quadratic,
        linear=linear,
        constant=constant,
        points=tuple(c[1] for c in costs),
        **{name: tables.gen[:, column] for name, column in GEN_COLUMNS.items()},
    )


def _cost(row: Floats) -> tuple[Floats, Floats | None]:
    count = int(row[NCOST])
    if row[MODEL] == PIECEWISE:
        return np.zeros(3), row[COST : COST + 2 * count].reshape(count, 2)
    known = row[COST : COST + count][-3:]
    return np.concatenate([np.zeros(3 - len(known)), known]), None


def _branches(branch: Floats, start: Ints, end: Ints, buses: Buses) -> Branches:
    rating = branch[:, RATE_A]
    narrow = branch.shape[1] <= ANGMAX
    low, high = np.zeros((2, len(branch))) if narrow else branch[:, [ANGMIN, ANGMAX]].T
    free = (low == 0) & (high == 0)
    same: Any = {name: branch[:, column] for name, column in BRANCH_COLUMNS.items()}
    return Branches(
        name=numbered(f"{buses.name[a]}-{buses.name[b]}" for a, b in zip(start, end, strict=True)),
        from_bus=start,
        to_bus=end,
        tap=np.where(branch[:, TAP] == 0, 1.0, branch[:, TAP]),
        capacity=np.where((rating == 0) | (rating >= UNLIMITED), np.inf, rating),
        angle_min=np.where(free | (low <= -360), -np.inf, low),
        angle_max=np.where(free | (high >= 360), np.inf, high),
        in_service=(branch[:, BR_STATUS] > 0) & buses.in_service[start] & buses.in_service[end],
        **same,
    )


def encode(network: Network, tables: CaseTables, before: Network) -> CaseTables:
    """Change the tables where `network` differs from `before`.

    Parameters
    ----------
    network
        The network to write.
    tables
        The tables to start from.
    before
        The network that these tables describe.

    Raises
    ------
    InputError
        If elements were added, removed or moved, or a value has no place in the format.
    """
    _check_same_elements(network, before)
    return replace(
        tables,
        base_mva=network.base_mva,
        bus=_encoded_bus(network, tables.bus, before),
        gen=_encoded_gen(network, tables.gen, before),
        branch=_encoded_branch(network, tables.branch, before),
        gencost=_encoded_costs(network.generators, tables.gencost, before.generators),
    )


def _check_same_elements(network: Network, before: Network) -> None:
    columns: dict[str, tuple[str, ...]] = {
        "buses": (),
        "generators": ("bus",),
        "branches": ("from_bus", "to_bus"),
    }
    same = all(
        len(getattr(network, table)) == len(getattr(before, table))
        and all(
            np.array_equal(getattr(getattr(network, table), c), getattr(getattr(before, table), c))
            for c in ends
        )
        for table, ends in columns.items()
    )
    if not same:
        raise InputError(
            "The network no longer has the elements of the case that it came from.",
            remedy="Write it as a new case: dataclasses.replace(network, source=None).",
        )


def _put(table: Floats, column: int, new: Any, old: Any, written: Any) -> None:
    """Write a column's entries that differ from the old ones."""
    changed = ~((new == old) | ((new != new) & (old != old)))
    table[changed, column] = written[changed]


def _put_columns(table: Floats, columns: Mapping[str, int], new: Any, old: Any) -> None:
    for name, column in columns.items():
        _put(table, column, getattr(new, name), getattr(old, name), getattr(new, name))


def _encoded_bus(network: Network, table: Floats, before: Network) -> Floats:
    new, old = network.buses, before.buses
    bus = table.copy()
    _put_columns(bus, BUS_COLUMNS, new, old)
    changed = (new.reference != old.reference) | (new.in_service != old.in_service)
    bus[changed, BUS_TYPE] = bus_types(network)[changed]
    return bus


def bus_types(network: Network) -> Floats:
    """Return the bus types: 1 without a generator, 2 with one, 3 reference, 4 isolated."""
    kinds = np.ones(len(network.buses))
    kinds[network.generators.bus[network.generators.in_service]] = 2
    kinds[network.buses.reference] = REFERENCE
    kinds[~network.buses.in_service] = ISOLATED
    return kinds


def _encoded_gen(network: Network, table: Floats, before: Network) -> Floats:
    new, old = network.generators, before.generators
    gen = table.copy()
    _put_columns(gen, GEN_COLUMNS, new, old)
    _put(gen, GEN_STATUS, new.in_service, old.in_service, new.in_service)
    return gen


def _encoded_branch(network: Network, table: Floats, before: Network) -> Floats:
    new, old = network.branches, before.branches
    branch = table.copy()
    if not (new.capacity > 0).all():
        raise InputError(
            "A capacity of 0 or less can't be written: in MATPOWER 0 means that there is no limit.",
            remedy="Use a small positive capacity, or put the branch out of service.",
        )
    rating = np.where(np.isinf(new.capacity), 0.0, new.capacity)
    _put(branch, RATE_A, new.capacity, old.capacity, rating)
    _put_columns(branch, {**BRANCH_COLUMNS, "tap": TAP}, new, old)
    _put(branch, BR_STATUS, new.in_service, old.in_service, new.in_service)
    low, high = np.maximum(new.angle_min, -360), np.minimum(new.angle_max, 360)
    if ((low == 0) & (high == 0)).any():
        raise InputError(
            "Angle limits of 0 and 0 can't be written: in MATPOWER they mean that there are none.",
            remedy="Leave a small angle between them.",
        )
    if branch.shape[1] > ANGMAX:
        # Write both columns: a new 0 next to an old 0 would mean that there is no limit.
        moved = (new.angle_min != old.angle_min) | (new.angle_max != old.angle_max)
        branch[moved, ANGMIN], branch[moved, ANGMAX] = low[moved], high[moved]
    elif np.isfinite(new.angle_min).any() or np.isfinite(new.angle_max).any():
        raise InputError("mpc.branch has no columns for angle limits.")
    return branch


def _encoded_costs(new: Generators, table: Floats, old: Generators) -> Floats:
    costs = table.copy()
    changed = (
        (new.quadratic != old.quadratic)
        | (new.linear != old.linear)
        | (new.constant != old.constant)
        | [not _same_points(a, b) for a, b in zip(new.points, old.points, strict=True)]
    )
    for place in np.flatnonzero(changed):
        row, points = costs[place], new.points[place]
        if points is None:
            numbers = np.array([new.quadratic[place], new.linear[place], new.constant[place]])
            # A row with fewer coefficients keeps its form if they are enough.
            held = int(row[NCOST]) if row[MODEL] == POLYNOMIAL else 3
            count = held if held >= 3 or not numbers[: 3 - held].any() else 3
            numbers = np.concatenate([np.zeros(max(count - 3, 0)), numbers[3 - min(count, 3) :]])
            model = POLYNOMIAL
        else:
            numbers, count, model = points.ravel(), len(points), PIECEWISE
        if COST + len(numbers) > len(row):
            raise InputError(
                f"The cost of generator {new.name[place]} needs {len(numbers)} columns and "
                f"mpc.gencost has {len(row) - COST}.",
                remedy="Write it as a new case: dataclasses.replace(network, source=None).",
            )
        row[MODEL], row[NCOST] = model, count
        row[COST:] = 0
        row[COST : COST + len(numbers)] = numbers
    return costs


def _same_points(one: Floats | None, other: Floats | None) -> bool:
    if one is None or other is None:
        return one is other
    return np.array_equal(one, other)
