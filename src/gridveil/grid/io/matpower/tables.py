"""MATPOWER's tables, and the network that they describe.

Columns are counted from 0, in the order of MATPOWER's manual.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

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
        load=bus[:, PD],
        shunt=bus[:, GS],
        reference=bus[:, BUS_TYPE] == REFERENCE,
        in_service=bus[:, BUS_TYPE] != ISOLATED,
        reactive_load=bus[:, QD],
        reactive_shunt=bus[:, BS],
        v_min=bus[:, VMIN],
        v_max=bus[:, VMAX],
    )


def _generators(tables: CaseTables, bus: Ints, buses: Buses) -> Generators:
    costs = [_cost(row) for row in tables.units]
    quadratic, linear, constant = np.array([c[0] for c in costs]).reshape(-1, 3).T
    return Generators(
        name=numbered(f"g{buses.name[place]}" for place in bus),
        bus=bus,
        p_min=tables.gen[:, PMIN],
        p_max=tables.gen[:, PMAX],
        in_service=(tables.gen[:, GEN_STATUS] > 0) & buses.in_service[bus],
        quadratic=quadratic,
        linear=linear,
        constant=constant,
        points=tuple(c[1] for c in costs),
        q_min=tables.gen[:, QMIN],
        q_max=tables.gen[:, QMAX],
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
    return Branches(
        name=numbered(f"{buses.name[a]}-{buses.name[b]}" for a, b in zip(start, end, strict=True)),
        from_bus=start,
        to_bus=end,
        resistance=branch[:, BR_R],
        reactance=branch[:, BR_X],
        tap=np.where(branch[:, TAP] == 0, 1.0, branch[:, TAP]),
        shift=branch[:, SHIFT],
        capacity=np.where((rating == 0) | (rating >= UNLIMITED), np.inf, rating),
        angle_min=np.where(free | (low <= -360), -np.inf, low),
        angle_max=np.where(free | (high >= 360), np.inf, high),
        in_service=(branch[:, BR_STATUS] > 0) & buses.in_service[start] & buses.in_service[end],
        charging=branch[:, BR_B],
    )
