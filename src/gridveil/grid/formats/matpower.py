"""MATPOWER cases (``.m``).

Reading takes plain data only (`matpower_text`); writing changes single numbers in the original
text, so that a plain round trip is byte for byte the same. A release is a new text that is built
from an allow-list; nothing is copied that is not on it.

============  ============  ============  ===============  ============
column        capacity      load          generator_limit  cost
============  ============  ============  ===============  ============
bus number    kept          kept          kept             kept
bus type      recomputed    recomputed    recomputed       recomputed
PD            kept          **released**  kept             kept
QD            kept          0             kept             kept
GS, BS        kept          kept          kept             kept
area, zone    kept          kept          kept             kept
base kV       kept          kept          kept             kept
VMAX, VMIN    kept          kept          kept             kept
VM, VA, VG    1, 0, 1       1, 0, 1       1, 0, 1          1, 0, 1
PG, QG        0             0             0                0
QMAX, QMIN    kept          kept          0                kept
PMAX, PMIN    kept          kept          **released**     kept
MBASE         base power    base power    base power       base power
status        kept          kept          kept             kept
r, x, b       kept          kept          kept             kept
RATE_A        **released**  kept          kept             kept
RATE_B, C     as RATE_A     kept          kept             kept
tap, shift    kept          kept          kept             kept
angle limits  kept          kept          kept             kept
polynomials   kept          kept          kept             **released**
cost points   kept          kept          new ends         dropped
startup etc.  0             0             0                0
============  ============  ============  ===============  ============

Several at once: whatever any of them drops or releases; a dropped curve stays dropped. Of a private
cost only the linear term is released. Where generator limits are private, cost curves lose their
first and last point, which are limits of the unit in most cases, and go on to the released limits
instead; their inner points stay.

Dropped always: results (columns after those above, among them flows and multipliers), ramps and
capability curves, costs of reactive power, every other field of ``mpc`` (names, areas, reserves),
comments, and the name of the case. What is kept is taken to be public: whoever derived reactances,
angle limits or inner points from a private parameter must not publish them.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from gridveil.errors import InputError
from gridveil.grid.checks import problems, refuse
from gridveil.grid.costs import clip_points
from gridveil.grid.formats import Source
from gridveil.grid.formats import matpower_encode as me
from gridveil.grid.formats import matpower_tables as mt
from gridveil.grid.formats.matpower_text import CORE, CaseText, scan
from gridveil.grid.network import Network
from gridveil.grid.public import check_parameters
from gridveil.grid.references import with_references

Data = CaseText | mt.CaseTables


def read(source: str | os.PathLike[str]) -> Network:
    """Read a case.

    Raises
    ------
    InputError
        Where the file can't be read, is not plain data, or describes no network that can be
        solved: every problem of the network is named.
    """
    path = Path(source)
    case = scan(_text(path), path.name)
    network = to_network(tables_of(case), path.name)
    refuse(path.name, problems(network))
    return replace(network, source=Source("matpower", case))


def to_network(tables: mt.CaseTables, what: str) -> Network:
    """The network of these tables, with a reference bus in every island."""
    return with_references(mt.to_network(tables, what))


def write(network: Network, path: str | os.PathLike[str]) -> None:
    """Write a network: in the text that it came from, with only changed numbers changed.

    A network of another origin becomes a new case.

    Raises
    ------
    InputError
        Where elements were added or removed since, or a value has no place in the format.
    """
    data = _data(network)
    if data is None:
        text = me.rendered(_encoded(network, me.blank_tables(network)), Path(path).stem)
    elif isinstance(data, CaseText):
        text = me.edited(data, _encoded(network, tables_of(data)))
    else:
        text = me.rendered(_encoded(network, data), Path(path).stem)
    _save(text, path)


def write_release(
    network: Network, path: str | os.PathLike[str] | None, parameters: str | Sequence[str]
) -> mt.CaseTables:
    """Write a network whose `parameters` were released: a new text, from the allow-list alone.

    It gives back the tables; where `path` is None that is all.

    Raises
    ------
    InputError
        Where a parameter is unknown, or a released value has no place in the format.
    """
    private = check_parameters(parameters)
    units = network.generators
    if "generator_limit" in private:
        network = replace(network, generators=clip_points(units, units.p_min, units.p_max))
    if "cost" in private:
        network = network.with_linear_costs(units.linear)
    data = _data(network)
    tables = strip(me.blank_tables(network) if data is None else data, private)
    tables = replace(tables, gencost=me.blank_costs(network.generators))
    tables = _encoded(network, tables)
    if "capacity" in private:
        branch = tables.branch.copy()
        branch[:, [mt.RATE_B, mt.RATE_C]] = branch[:, [mt.RATE_A]]
        tables = replace(tables, branch=branch)
    if path is not None:
        remark = f"{', '.join(private)} as released; columns not on the allow-list are neutral."
        _save(me.rendered(tables, Path(path).stem, (remark,)), path)
    return tables


def strip(data: Data, parameters: str | Sequence[str]) -> mt.CaseTables:
    """The tables of a case without the parameters and all that copies or was computed from them."""
    names = check_parameters(parameters)
    tables = tables_of(data)
    bus = tables.bus[:, :13].copy()
    bus[:, mt.VM], bus[:, mt.VA] = 1, 0
    bus[:, mt.BUS_TYPE] = _types(tables)
    gen = tables.gen[:, :10].copy()
    gen[:, mt.PG], gen[:, mt.QG], gen[:, mt.VG], gen[:, mt.MBASE] = 0, 0, 1, tables.base_mva
    branch = tables.branch[:, :13].copy()
    private = {
        "capacity": (branch, [mt.RATE_A, mt.RATE_B, mt.RATE_C]),
        "load": (bus, [mt.PD, mt.QD]),
        "generator_limit": (gen, [mt.PMAX, mt.PMIN, mt.QMAX, mt.QMIN]),
    }
    for name in names:
        if name in private:
            table, columns = private[name]
            table[:, columns] = 0
    # Costs are written from the network: here they could only be copies.
    gencost = np.zeros((len(gen), mt.COST + 3))
    gencost[:, mt.MODEL], gencost[:, mt.NCOST] = mt.POLYNOMIAL, 3
    return mt.CaseTables("release", tables.base_mva, bus, gen, branch, gencost)


def tables_of(data: Data) -> mt.CaseTables:
    """The numbers of a case, whatever is kept of it."""
    if isinstance(data, mt.CaseTables):
        return data
    values = {table: data.tables[table].values for table in CORE}
    shaped = {
        table: array if len(array) else np.zeros((0, mt.WIDTH[table]))
        for table, array in values.items()
    }
    return mt.CaseTables(data.name, data.base_mva, **shaped)


def _types(tables: mt.CaseTables) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Types of buses from what is public: reference, isolated, with a generator or without."""
    known = tables.bus[:, mt.BUS_TYPE]
    running = tables.gen[tables.gen[:, mt.GEN_STATUS] > 0, mt.GEN_BUS]
    kinds = np.where(np.isin(tables.bus[:, mt.BUS_I], running), 2.0, 1.0)
    return np.where(np.isin(known, (mt.REFERENCE, mt.ISOLATED)), known, kinds)


def _encoded(network: Network, tables: mt.CaseTables) -> mt.CaseTables:
    return me.encode(network, tables, to_network(tables, "the case"))


def _data(network: Network) -> Data | None:
    source = network.source
    return source.data if isinstance(source, Source) and source.kind == "matpower" else None


def _text(path: Path) -> str:
    try:
        # Not all cases are UTF-8: what is not is carried through, byte by byte.
        return path.read_bytes().decode("utf-8", "surrogateescape")
    except OSError as error:
        raise InputError(
            f"{path} can't be read: {error.strerror}.", remedy="Check the path."
        ) from None


def _save(text: str, path: str | os.PathLike[str]) -> None:
    try:
        Path(path).write_bytes(text.encode("utf-8", "surrogateescape"))
    except OSError as error:
        raise InputError(
            f"{Path(path)} can't be written: {error.strerror}.", remedy="Check the path."
        ) from None
