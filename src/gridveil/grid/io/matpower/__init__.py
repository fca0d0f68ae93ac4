"""Read and write MATPOWER cases (``.m``).

Only plain data is read (see `text`); writing changes single numbers in the original text, so that
reading and writing an unchanged case gives the same bytes. A release is a new text that is built
from an allow-list; nothing else is copied.

`released_columns` says what a release keeps of a case. Of a private cost only the linear term is
released. If generator limits are private, cost curves lose their first and last point, which are
limits of the unit in most cases, and extend to the released limits instead.

What is kept is assumed to be public: owners who derived reactances, angle limits, reactive limits
or inner points from a private parameter must not publish them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from gridveil.grid.io import Protected, Source, protected_elements, read_text, write_text
from gridveil.grid.io.matpower import tables as mt
from gridveil.grid.io.matpower.text import CORE, CaseText, scan
from gridveil.grid.io.released_columns import copied, row_groups
from gridveil.grid.io.substitutes import released_dispatch, without_reactive_copies
from gridveil.grid.model.checks import Problem, readable, with_references
from gridveil.grid.model.costs import clip_points, with_points
from gridveil.grid.model.network import Floats, Generators, Network
from gridveil.grid.model.parameters import PARAMETERS, check_parameters

Data = CaseText | mt.CaseTables


def read(source: str | os.PathLike[str]) -> Network:
    """Read a case.

    Raises
    ------
    InputError
        If the file can't be read, is not plain data, or does not describe a network that can be
        solved: it names every problem of the network.
    """
    path = Path(source)
    case = scan(read_text(path), path.name)
    network = to_network(tables_of(case), path.name)
    return replace(readable(network, path.name), source=Source("matpower", case))


def to_network(tables: mt.CaseTables, what: str) -> Network:
    """Make the network of these tables, with a reference bus in every island."""
    return with_references(mt.to_network(tables, what))


def write(network: Network, path: str | os.PathLike[str]) -> None:
    """Write a network into the text that it came from, changing only numbers that changed.

    A network from another format becomes a new case.

    Raises
    ------
    InputError
        If elements were added or removed since, or a value has no place in the format.
    """
    data = _data(network)
    if data is None:
        text = _rendered(_encoded(network, _blank_tables(network)), Path(path).stem)
    elif isinstance(data, CaseText):
        text = _edited(data, _encoded(network, tables_of(data)))
    else:
        text = _rendered(_encoded(network, data), Path(path).stem)
    write_text(text, path)


def write_release(
    network: Network, path: str | os.PathLike[str] | None, parameters: str | Sequence[str]
) -> mt.CaseTables:
    """Write a network whose `parameters` were released, as a new text from the allow-list.

    Returns the tables; if `path` is None nothing is written.

    Raises
    ------
    InputError
        If a parameter is unknown, or a released value has no place in the format.
    """
    private = check_parameters(parameters)
    network = without_reactive_copies(network, private)
    units = network.generators
    if "generator_limit" in private:
        clipped = clip_points(units, units.p_min, units.p_max)
        hidden = protected_elements(network, "generator_limit", len(units))
        network = replace(network, generators=with_points(units, clipped, hidden))
    if "cost" in private:
        hidden = protected_elements(network, "cost", len(units))
        units = network.generators.with_slopes(units.linear, hidden)
        network = replace(network, generators=units)
    data, source = _data(network), network.source
    if isinstance(source, Source) and source.private and isinstance(data, mt.CaseTables):
        tables = data  # stripped when the network was split
    else:
        tables = strip(_blank_tables(network) if data is None else data, private)
    tables = _encoded(network, tables)
    gen = tables.gen.copy()
    gen[:, mt.PG] = released_dispatch(network)
    tables = replace(tables, gen=gen)
    if "capacity" in private:
        branch = tables.branch.copy()
        hidden = protected_elements(network, "capacity", len(branch))
        ratios = source.limit_ratios if isinstance(source, Source) else {}
        for name, at in _FURTHER.items():
            rate = branch[:, mt.RATE_A] * ratios.get(name, 1.0)
            branch[:, at] = np.where(hidden, rate, branch[:, at])
        tables = replace(tables, branch=branch)
    if path is not None:
        remark = f"{', '.join(private)} as released; release.json lists what else is not as it was."
        write_text(_rendered(tables, Path(path).stem, (remark,)), path)
    return tables


def strip(
    data: Data, parameters: str | Sequence[str], protected: Protected | None = None
) -> mt.CaseTables:
    """Remove the parameters, and all that copies or was computed from them, from a case."""
    names = check_parameters(parameters)
    tables = tables_of(data)
    bare = _stripped(tables, names, _costs(tables, names, protected or {}))
    for table in mt.INPUTS:
        rows = {
            name: rows
            for name, rows in (protected or {}).items()
            if PARAMETERS[name].table == _ELEMENTS[table]
        }
        for private, public in row_groups(names, rows):
            kept = getattr(_stripped(tables, private, bare.gencost), table)
            getattr(bare, table)[public] = kept[public]
    return bare


def limit_names(data: Data) -> tuple[str, ...]:
    """Return the names of the ratings after the first."""
    return tuple(_FURTHER)


_FURTHER = {"B": mt.RATE_B, "C": mt.RATE_C}
_ELEMENTS = {"bus": "buses", "gen": "generators", "branch": "branches"}


def _stripped(tables: mt.CaseTables, names: Sequence[str], costs: Floats) -> mt.CaseTables:
    """Strip the tables with `names` private for all elements; results and texts always go."""
    neutral = {"VM": 1.0, "VG": 1.0, "MBASE": tables.base_mva}
    bare: dict[str, Floats] = {}
    for table, width in mt.INPUTS.items():
        kept, source = copied("matpower", table, names), getattr(tables, table)
        values = np.zeros((len(source), min(source.shape[1], width)))
        for at, column in enumerate(mt.COLUMNS[table][: values.shape[1]]):
            values[:, at] = source[:, at] if column in kept else neutral.get(column, 0.0)
        bare[table] = values
    bare["bus"][:, mt.BUS_TYPE] = _types(tables)
    if "generator_limit" in names:
        for at, side in ((mt.QMAX, 1.0), (mt.QMIN, -1.0)):
            limit = bare["gen"][:, at]
            bare["gen"][:, at] = np.where(np.isinf(limit), limit, side * (side * limit > 0)) + 0.0
    return mt.CaseTables("release", tables.base_mva, gencost=costs, **bare)


def _costs(tables: mt.CaseTables, private: Sequence[str], protected: Protected) -> Floats:
    """Return the rows of costs, with 0 for private costs and for curves that get new ends."""
    count, every = len(tables.gen), np.ones(len(tables.gen), dtype=bool)
    own, limits = (
        protected.get(name, every) if name in private else ~every
        for name in ("cost", "generator_limit")
    )
    # Costs of reactive power follow, if there are any.
    rows = count if own.all() else len(tables.gencost)
    costs = np.zeros((rows, max(tables.gencost.shape[1], mt.COST + 3)))
    costs[: len(tables.gencost), : tables.gencost.shape[1]] = tables.gencost[:rows]
    costs[np.resize(own, rows), :] = 0
    blank, longest = np.resize(own, rows), 3
    for row in costs:
        # Numbers after the last coefficient are not part of the cost.
        used = int(row[mt.NCOST]) * (2 if row[mt.MODEL] == mt.PIECEWISE else 1)
        row[mt.COST + used :] = 0
        longest = max(longest, used)
    # Curves of reactive power end at reactive limits, which reveal the private ones.
    blank |= np.resize(limits, rows) & (costs[:, mt.MODEL] == mt.PIECEWISE)
    costs[blank, mt.COST :] = 0
    costs[blank, mt.MODEL], costs[blank, mt.NCOST] = mt.POLYNOMIAL, 3
    # The width must not reveal how many coefficients a private cost had.
    return costs[:, : mt.COST + longest] if own.any() else costs


def columns(data: Data) -> dict[str, tuple[str, ...]]:
    """List the columns of a case, table by table, as `released_columns` names them."""
    tables = tables_of(data)
    found = {
        table: (*mt.COLUMNS[table][: getattr(tables, table).shape[1]],)
        + ("more",) * (getattr(tables, table).shape[1] > len(mt.COLUMNS[table]))
        for table in mt.INPUTS
    }
    found["gencost"] = mt.COLUMNS["gencost"] + ("reactive",) * (
        len(tables.gencost) > len(tables.gen)
    )
    more = data.fields if isinstance(data, CaseText) else ()
    found["mpc"] = ("name", "comments", *(name for name in more if name not in CORE))
    return found


def tables_of(data: Data) -> mt.CaseTables:
    """Return the tables of a case, from its text if need be."""
    if isinstance(data, mt.CaseTables):
        return data
    values = {table: data.tables[table].values for table in CORE}
    shaped = {
        table: array if len(array) else np.zeros((0, mt.WIDTH[table]))
        for table, array in values.items()
    }
    return mt.CaseTables(data.name, data.base_mva, **shaped)


def bus_facts(data: Data) -> dict[str, Floats]:
    """Return voltages (kV), areas and zones of all buses."""
    columns = {"voltage": mt.BASE_KV, "area": mt.AREA, "zone": mt.ZONE}
    return {name: tables_of(data).bus[:, column] for name, column in columns.items()}


def ac_gaps(data: Data) -> list[Problem]:
    """Return no problem: a case has all that AC power flow needs."""
    return []


def set_points(data: Data) -> Floats:
    """Return the set points of all units, MW."""
    return np.nan_to_num(tables_of(data).gen[:, mt.PG])


def _types(tables: mt.CaseTables) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Choose bus types from public facts: reference, isolated, with a generator or without."""
    known = tables.bus[:, mt.BUS_TYPE]
    running = tables.gen[tables.gen[:, mt.GEN_STATUS] > 0, mt.GEN_BUS]
    kinds = np.where(np.isin(tables.bus[:, mt.BUS_I], running), 2.0, 1.0)
    return np.where(np.isin(known, (mt.REFERENCE, mt.ISOLATED)), known, kinds)


def _encoded(network: Network, tables: mt.CaseTables) -> mt.CaseTables:
    return mt.encode(network, tables, to_network(tables, "the case"))


def _data(network: Network) -> Data | None:
    source = network.source
    return source.data if isinstance(source, Source) and source.kind == "matpower" else None


def _blank_tables(network: Network) -> mt.CaseTables:
    """Make neutral tables for a network that did not come from a MATPOWER case."""
    buses, units, branches = network.buses, network.generators, network.branches
    numbers = _bus_numbers(buses.name)
    bus = np.zeros((len(buses), 13))
    bus[:, mt.BUS_I] = numbers
    bus[:, mt.BUS_TYPE] = mt.bus_types(network)
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
    return mt.CaseTables(network.name, network.base_mva, bus, gen, branch, _blank_costs(units))


def _blank_costs(units: Generators) -> Floats:
    """Make rows of zero cost, wide enough for the costs of these units."""
    longest = max((len(points) for points in units.points if points is not None), default=0)
    rows = np.zeros((len(units), mt.COST + max(3, 2 * longest)))
    rows[:, mt.MODEL], rows[:, mt.NCOST] = mt.POLYNOMIAL, 3
    return rows


def _bus_numbers(names: tuple[str, ...]) -> Floats:
    if all(re.fullmatch(r"[1-9]\d{0,8}", name) for name in names):
        return np.array([float(name) for name in names])
    return np.arange(1.0, len(names) + 1)


def _edited(case: CaseText, tables: mt.CaseTables) -> str:
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
        pieces += [case.text[at:start], _number(value)]
        at = end
    return "".join([*pieces, case.text[at:]])


def _number(value: float) -> str:
    """Write a number as MATLAB reads it, with all its digits."""
    if np.isnan(value):
        return "NaN"
    if np.isinf(value):
        return "Inf" if value > 0 else "-Inf"
    whole = value == int(value) and abs(value) < 1e15
    return str(int(value)) if whole else repr(float(value))


def _rendered(tables: mt.CaseTables, name: str, remarks: tuple[str, ...] = ()) -> str:
    """Write a new case with these tables and nothing else."""
    lines = [f"function mpc = {_identifier(name)}", *(f"% {remark}" for remark in remarks)]
    lines += ["mpc.version = '2';", f"mpc.baseMVA = {_number(tables.base_mva)};"]
    for table in CORE:
        rows = getattr(tables, table).tolist()
        lines += ["", f"mpc.{table} = ["]
        lines += ["\t" + "\t".join(_number(value) for value in row) + ";" for row in rows]
        lines += ["];"]
    return "\n".join(lines) + "\n"


def _identifier(name: str) -> str:
    """Turn a name into one that MATLAB accepts for a function."""
    plain = re.sub(r"[^A-Za-z0-9_]", "_", name)
    return plain if re.match(r"[A-Za-z]", plain) else f"case_{plain}"
