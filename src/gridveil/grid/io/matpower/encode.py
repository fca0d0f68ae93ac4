"""Convert a network to MATPOWER's tables, and tables to text.

Only cells that differ between the network and the tables it came from are changed, so that a number
that was not touched keeps its digits.
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from gridveil.errors import InputError
from gridveil.grid.io.matpower import tables as mt
from gridveil.grid.io.matpower.text import CORE, CaseText
from gridveil.grid.model.network import Bools, Floats, Generators, Network


def encode(network: Network, tables: mt.CaseTables, before: Network) -> mt.CaseTables:
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
        bus=_bus(network, tables.bus, before),
        gen=_gen(network, tables.gen, before),
        branch=_branch(network, tables.branch, before),
        gencost=_gencost(network.generators, tables.gencost, before.generators),
    )


def blank_tables(network: Network) -> mt.CaseTables:
    """Make neutral tables for a network that did not come from a MATPOWER case."""
    buses, units, branches = network.buses, network.generators, network.branches
    numbers = _bus_numbers(buses.name)
    bus = np.zeros((len(buses), 13))
    bus[:, mt.BUS_I] = numbers
    bus[:, mt.BUS_TYPE] = _kinds(network)
    bus[:, [mt.AREA, mt.VM, mt.ZONE]] = 1
    bus[:, mt.VMAX], bus[:, mt.VMIN] = 1.1, 0.9
    gen = np.zeros((len(units), 10))
    gen[:, mt.GEN_BUS], gen[:, mt.MBASE], gen[:, mt.VG] = numbers[units.bus], network.base_mva, 1
    gen[:, mt.GEN_STATUS] = units.in_service
    branch = np.zeros((len(branches), 13))
    branch[:, mt.BR_STATUS] = branches.in_service
    branch[:, mt.F_BUS], branch[:, mt.T_BUS] = (
        numbers[branches.from_bus],
        numbers[branches.to_bus],
    )
    branch[:, mt.ANGMIN], branch[:, mt.ANGMAX] = -360, 360
    return mt.CaseTables(network.name, network.base_mva, bus, gen, branch, blank_costs(units))


def blank_costs(units: Generators) -> Floats:
    """Make rows of zero cost, wide enough for the costs of these units."""
    longest = max((len(points) for points in units.points if points is not None), default=0)
    rows = np.zeros((len(units), mt.COST + max(3, 2 * longest)))
    rows[:, mt.MODEL], rows[:, mt.NCOST] = mt.POLYNOMIAL, 3
    return rows


def _bus_numbers(names: tuple[str, ...]) -> Floats:
    if all(re.fullmatch(r"[1-9]\d{0,8}", name) for name in names):
        return np.array([float(name) for name in names])
    return np.arange(1.0, len(names) + 1)


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


def _put(table: Floats, column: int, new: Floats, old: Floats, written: Floats | None) -> None:
    """Write a column's entries that differ from the old ones."""
    changed = ~((new == old) | (np.isnan(new) & np.isnan(old)))
    table[changed, column] = (new if written is None else written)[changed]


def _bus(network: Network, table: Floats, before: Network) -> Floats:
    new, old = network.buses, before.buses
    bus = table.copy()
    _put(bus, mt.PD, new.load, old.load, None)
    _put(bus, mt.GS, new.shunt, old.shunt, None)
    _put(bus, mt.QD, new.reactive_load, old.reactive_load, None)
    _put(bus, mt.BS, new.reactive_shunt, old.reactive_shunt, None)
    _put(bus, mt.VMIN, new.v_min, old.v_min, None)
    _put(bus, mt.VMAX, new.v_max, old.v_max, None)
    changed = (new.reference != old.reference) | (new.in_service != old.in_service)
    bus[changed, mt.BUS_TYPE] = _kinds(network)[changed]
    return bus


def _kinds(network: Network) -> Floats:
    """Return the bus types: 1 without a generator, 2 with one, 3 reference, 4 isolated."""
    kinds = np.ones(len(network.buses))
    kinds[network.generators.bus[network.generators.in_service]] = 2
    kinds[network.buses.reference] = mt.REFERENCE
    kinds[~network.buses.in_service] = mt.ISOLATED
    return kinds


def _gen(network: Network, table: Floats, before: Network) -> Floats:
    new, old = network.generators, before.generators
    gen = table.copy()
    _put(gen, mt.PMIN, new.p_min, old.p_min, None)
    _put(gen, mt.PMAX, new.p_max, old.p_max, None)
    _put(gen, mt.QMIN, new.q_min, old.q_min, None)
    _put(gen, mt.QMAX, new.q_max, old.q_max, None)
    _put_status(gen, mt.GEN_STATUS, new.in_service, old.in_service)
    return gen


def _branch(network: Network, table: Floats, before: Network) -> Floats:
    new, old = network.branches, before.branches
    branch = table.copy()
    if not (new.capacity > 0).all():
        raise InputError(
            "A capacity of 0 or less can't be written: in MATPOWER 0 means that there is no limit.",
            remedy="Use a small positive capacity, or put the branch out of service.",
        )
    rating = np.where(np.isinf(new.capacity), 0.0, new.capacity)
    _put(branch, mt.RATE_A, new.capacity, old.capacity, rating)
    _put(branch, mt.BR_R, new.resistance, old.resistance, None)
    _put(branch, mt.BR_X, new.reactance, old.reactance, None)
    _put(branch, mt.BR_B, new.charging, old.charging, None)
    _put(branch, mt.TAP, new.tap, old.tap, None)
    _put(branch, mt.SHIFT, new.shift, old.shift, None)
    _put_status(branch, mt.BR_STATUS, new.in_service, old.in_service)
    low, high = np.maximum(new.angle_min, -360), np.minimum(new.angle_max, 360)
    if ((low == 0) & (high == 0)).any():
        raise InputError(
            "Angle limits of 0 and 0 can't be written: in MATPOWER they mean that there are none.",
            remedy="Leave a small angle between them.",
        )
    if branch.shape[1] > mt.ANGMAX:
        # Write both columns: a new 0 next to an old 0 would mean that there is no limit.
        moved = (new.angle_min != old.angle_min) | (new.angle_max != old.angle_max)
        branch[moved, mt.ANGMIN], branch[moved, mt.ANGMAX] = low[moved], high[moved]
    elif np.isfinite(new.angle_min).any() or np.isfinite(new.angle_max).any():
        raise InputError("mpc.branch has no columns for angle limits.")
    return branch


def _put_status(table: Floats, column: int, new: Bools, old: Bools) -> None:
    changed = new != old
    table[changed, column] = new[changed]


def _gencost(new: Generators, table: Floats, old: Generators) -> Floats:
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
            held = int(row[mt.NCOST]) if row[mt.MODEL] == mt.POLYNOMIAL else 3
            count = held if held >= 3 or not numbers[: 3 - held].any() else 3
            numbers = np.concatenate([np.zeros(max(count - 3, 0)), numbers[3 - min(count, 3) :]])
            model = mt.POLYNOMIAL
        else:
            numbers, count, model = points.ravel(), len(points), mt.PIECEWISE
        if mt.COST + len(numbers) > len(row):
            raise InputError(
                f"The cost of generator {new.name[place]} needs {len(numbers)} columns and "
                f"mpc.gencost has {len(row) - mt.COST}.",
                remedy="Write it as a new case: dataclasses.replace(network, source=None).",
            )
        row[mt.MODEL], row[mt.NCOST] = model, count
        row[mt.COST :] = 0
        row[mt.COST : mt.COST + len(numbers)] = numbers
    return costs


def _same_points(one: Floats | None, other: Floats | None) -> bool:
    if one is None or other is None:
        return one is other
    return np.array_equal(one, other)


def edited(case: CaseText, tables: mt.CaseTables) -> str:
    """Return the text of a case with only those numbers changed that differ in these tables."""
    changes = []
    if tables.base_mva != case.base_mva:
        changes.append((case.base_at, tables.base_mva))
    for table in CORE:
        old, new = case.tables[table].values, getattr(tables, table)
        if old.size:
            differs = ~((new == old) | (np.isnan(new) & np.isnan(old)))
            for row, column in np.argwhere(differs):
                place = case.token(table, int(row), int(column))
                changes.append((place, float(new[row, column])))
    pieces, at = [], 0
    for (start, end), value in sorted(changes):
        pieces += [case.text[at:start], number(value)]
        at = end
    return "".join([*pieces, case.text[at:]])


def number(value: float) -> str:
    """Write a number as MATLAB reads it, with all its digits."""
    if np.isnan(value):
        return "NaN"
    if np.isinf(value):
        return "Inf" if value > 0 else "-Inf"
    whole = value == int(value) and abs(value) < 1e15
    return str(int(value)) if whole else repr(float(value))


def rendered(tables: mt.CaseTables, name: str, remarks: tuple[str, ...] = ()) -> str:
    """Write a new case with these tables and nothing else."""
    lines = [f"function mpc = {identifier(name)}", *(f"% {remark}" for remark in remarks)]
    lines += ["mpc.version = '2';", f"mpc.baseMVA = {number(tables.base_mva)};"]
    for table in CORE:
        rows = getattr(tables, table).tolist()
        lines += ["", f"mpc.{table} = ["]
        lines += ["\t" + "\t".join(number(value) for value in row) + ";" for row in rows]
        lines += ["];"]
    return "\n".join(lines) + "\n"


def identifier(name: str) -> str:
    """Turn a name into one that MATLAB accepts for a function."""
    plain = re.sub(r"[^A-Za-z0-9_]", "_", name)
    return plain if re.match(r"[A-Za-z]", plain) else f"case_{plain}"
