"""Read and write PSS/E cases (``.raw``), versions 32 to 35.

What is read:

- **buses**, and one more for the star of every transformer with three windings;
- **loads**: constant power, current and admittance at nominal voltage, less distributed generation;
- **generators**: ``PT`` and ``PB``. There are no costs.
- **shunts**: fixed ones, and switched ones as they are (``BINIT``);
- **branches**: BRANCH, then windings of TRANSFORMER (one entry for a transformer with two, three
  for one with three). The capacity is the first rating; 0 is no limit.

DC lines are public and carry their set power, less the losses that `constant_elements` computes. In
AC power flow two-terminal ones draw the reactive power of their firing angles, VSC lines are
refused, and FACTS devices at one bus inject Mvar within their SHMX at the lowest voltage of the
bus. Series FACTS devices, switching devices, multi-terminal DC lines, GNE devices and induction
machines are refused.

Writing changes single numbers in the original text. A release is a new text from the allow-list of
`released_columns`: all ratings of a line are its released capacity (times public ratios), and
transformers' impedances relative to ratings are converted to the system's base.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridveil.errors import InputError
from gridveil.grid.io import (
    Source,
    check_sizes,
    protected_elements,
    read_text,
    source_of,
    write_text,
)
from gridveil.grid.io.psse.published_part import columns, published_impedance, strip
from gridveil.grid.io.psse.text import Field, RawText, Record, Rows, layout, scan
from gridveil.grid.io.psse.to_network import Layout, ac_gaps, build
from gridveil.grid.io.substitutes import released_dispatch, without_reactive_copies
from gridveil.grid.model.checks import readable
from gridveil.grid.model.network import Bools, Floats, Network
from gridveil.grid.model.parameters import check_parameters

__all__ = [
    "ac_gaps",
    "bus_facts",
    "columns",
    "published_impedance",
    "read",
    "strip",
    "why_none",
    "write",
    "write_release",
]
Edits = Iterator[tuple[Field, str]]


def read(source: str | os.PathLike[str]) -> Network:
    """Read a case.

    Raises
    ------
    InputError
        If the file can't be read, or does not describe a network that can be solved.
    """
    path = Path(source)
    raw = scan(read_text(path), path.name)
    network = replace(build(raw)[0], name=path.name)
    return replace(readable(network, path.name), source=Source("psse", raw))


def write(network: Network, path: str | os.PathLike[str]) -> None:
    """Write a network into the text that it came from, changing only numbers that changed.

    Raises
    ------
    InputError
        If elements were added or removed, or a value can't be written in the format.
    """
    raw: RawText = source_of(network, "psse").data
    before, rows = build(raw)
    write_text(_edited(raw, _put(raw, rows, before, network)), path)


def write_release(
    network: Network, path: str | os.PathLike[str] | None, parameters: str | Sequence[str]
) -> RawText:
    """Write a network whose `parameters` were released, as a new text from the allow-list.

    If the path is None it makes the text and writes nothing.
    """
    private = check_parameters(parameters)
    network = without_reactive_copies(network, private)
    source = source_of(network, "psse")
    bare: RawText = source.data if source.private else strip(source.data, private)
    before, rows = build(bare)
    own = protected_elements(network, "capacity", len(network.branches))
    edits = [*_put(bare, rows, before, network, own if "capacity" in private else None)]
    units = Rows(bare, "GEN")
    for record, power in zip(rows.generators, released_dispatch(network), strict=True):
        edits.append((_field(units, record, "PG"), _number(power)))
    text = _edited(bare, iter(edits))
    if path is not None:
        write_text(text, path)
    return scan(text, bare.file)


def set_points(raw: RawText) -> Floats:
    """Return the set points of all units, MW."""
    units, records = Rows(raw, "GEN"), build(raw)[1].generators
    return np.nan_to_num([units.number(record, "PG", 0.0) for record in records])


def bus_facts(raw: RawText) -> dict[str, NDArray[Any]]:
    """Return public facts of buses, for rules about protected elements.

    A star has the facts of its transformer's first side.
    """
    network, rows = build(raw)
    buses = Rows(raw, "BUS")
    found = {
        fact: buses.column(name, 0.0)
        for fact, name in (("voltage", "BASKV"), ("area", "AREA"), ("zone", "ZONE"))
    }
    first = network.branches.from_bus[[w == "1" for _, _, w in rows.branches]]
    three = [len(record) == 5 for _, record, w in rows.branches if w == "1"]
    stars = first[np.array(three, dtype=bool)]
    return {fact: np.concatenate([one, one[stars]]) for fact, one in found.items()}


def why_none(raw: RawText, parameter: str) -> tuple[str, str] | None:
    """Say what the file lacks if it has no value of a parameter, and the remedy."""
    if parameter == "cost":
        return "PSS/E cases have no costs", "Choose another parameter."
    if parameter == "capacity":
        return "the first rating of every branch is 0, which is no limit", "Give ratings."
    return None


def _put(
    raw: RawText, rows: Layout, old: Network, new: Network, released: Bools | None = None
) -> Edits:
    """Yield the changes of the text of `old` that make it the text of `new`.

    For branches with `released` capacities all ratings change.
    """
    check_sizes(old, new, "case")
    tables = {name: Rows(raw, name) for name in ("BRANCH", "TRANSFORMER", "LOAD", "GEN")}
    known = layout(raw.version)
    capacity = new.branches.capacity
    ratios = {} if released is None else new.source.limit_ratios
    changed = old.branches.capacity != capacity
    if released is not None:
        changed |= released & np.isfinite(capacity)
    for at in np.flatnonzero(changed):
        section, record, winding = rows.branches[at]
        limit = float(capacity[at]) if np.isfinite(capacity[at]) else 0.0
        if capacity[at] == 0:
            raise InputError("A capacity of 0 can't be written: in PSS/E 0 means no limit.")
        names = [name for line in known[section] for name in line if name.startswith("RATE")]
        mine = [name for name in names if name.endswith(f"_{winding}")] if winding else names
        for name in mine[:1] if released is None else mine:
            field = tables[section].field(record, name)
            if field is not None:
                yield field, _number(limit * ratios.get(_rating(name), 1.0))
    yield from _put_load(tables["LOAD"], rows, old, new)
    units, before = new.generators, old.generators
    for name, ours in (("PB", "p_min"), ("PT", "p_max"), ("QB", "q_min"), ("QT", "q_max")):
        values = getattr(units, ours)
        for at in np.flatnonzero(values != getattr(before, ours)):
            yield _field(tables["GEN"], rows.generators[at], name), _number(values[at])
    if any(getattr(units, name).any() for name in ("quadratic", "linear", "constant")) or any(
        points is not None for points in units.points
    ):
        raise InputError(
            "The network has costs, which PSS/E has no place for.",
            remedy="Give costs by a population instead.",
        )


def _put_load(table: Rows, rows: Layout, old: Network, new: Network) -> Edits:
    """Yield changes of loads: the first load of a bus takes the change."""
    first: dict[int, Record] = {}
    for record, bus in rows.loads:
        first.setdefault(bus, record)
    for name, column in (("PL", "load"), ("QL", "reactive_load")):
        before, after = getattr(old.buses, column), getattr(new.buses, column)
        for bus in np.flatnonzero(after != before).tolist():
            if bus not in first:
                raise InputError(
                    f"Bus {new.buses.name[bus]} has no load in its file that could take a new "
                    "value.",
                    remedy="Change loads only where there are some.",
                )
            power = table.number(first[bus], name, 0.0)
            alone = power == before[bus]
            value = after[bus] if alone else power + (after[bus] - before[bus])
            yield _field(table, first[bus], name), _number(value)


def _field(table: Rows, record: Record, name: str) -> Field:
    found = table.field(record, name)
    if found is None:
        raise InputError(
            f"A record of the case has no {name} that could take a new value.",
            remedy="Write all fields of loads and generators.",
        )
    return found


def limit_names(raw: RawText) -> tuple[str, ...]:
    """Return the names of the ratings after the first."""
    (names,) = layout(raw.version)["BRANCH"]
    return tuple(_rating(name) for name in names if name.startswith("RATE"))[1:]


def _rating(name: str) -> str:
    """Return the name of a rating without its winding: B for RATEB_1."""
    return name.removeprefix("RATE").partition("_")[0]


def _number(value: Any) -> str:
    return repr(float(value))


def _edited(raw: RawText, edits: Edits) -> str:
    pieces, at = [], 0
    for field, value in sorted(edits, key=lambda one: one[0].start):
        pieces += [raw.text[at : field.start], value]
        at = field.end
    return "".join([*pieces, raw.text[at:]])
