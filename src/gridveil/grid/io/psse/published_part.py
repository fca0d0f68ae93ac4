"""Build the part of a PSS/E case that may be published, depending on the private parameters."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from gridveil.grid.io import Protected, coarse
from gridveil.grid.io.psse.branches import pairs_of
from gridveil.grid.io.psse.text import ORDER, Field, RawText, Record, Rows, layout, scan
from gridveil.grid.io.psse.to_network import build
from gridveil.grid.io.released_columns import copied, private_of_each
from gridveil.grid.io.released_columns.table import KEPT
from gridveil.grid.model.network import Bools, Branches
from gridveil.grid.model.parameters import check_parameters

NUMBERS = ("TWODC", "IMPCOR", "MSLINE", "SWSHUNT")
"""Sections that keep all their numbers; `released_columns` does not name each column."""
_LISTS = ("AREA", "ZONE", "OWNER")
_NAMED = ("TWODC", "VSCDC", "FACTS")
_TEXTS = {"NAME", "ID", "CKT", "VECGRP", "LOADTYPE"}
_LABEL = re.compile(r"[\w #/+&*@-]{0,40}")
_KEY = re.compile(r"[\w&*@-]{1,2}")
_NEUTRAL = {"VM": "1.0", "ZX": "1.0", "GTAP": "1.0", "WMOD": "0", "WPF": "1.0"}
# Those of a series element, which a FACTS device of a release does not have.
_NEUTRAL |= {"TRMX": "9999.0", "VTMN": "0.9", "VTMX": "1.1", "VSMX": "1.0", "LINX": "0.05"}
_NEUTRAL |= {"MNAME": "''", "RMPCT": "100.0"}
_OF_VOLTAGE = 1
"""The code (COD) of a transformer's control that holds a voltage; others hold flows, or nothing."""
_LAST = {"LOAD": "QL", "GEN": "PB"}
_RATE = re.compile(r"RATE[A-C0-9]+(_[123])?")


def strip(
    raw: RawText, parameters: str | Sequence[str], protected: Protected | None = None
) -> RawText:
    """Make a new case with only what the allow-lists of all `parameters` contain."""
    private = check_parameters(parameters)
    network, rows = build(raw)
    branches = (record for _, record, _ in rows.branches)
    known = private, protected or {}
    hidden = private_of_each(*known, branches, rows.loads, rows.generators)
    kinds = _kinds(raw)
    lines = [f"0, {raw.base_mva!r}, {raw.version}, 0, 0, {raw.frequency!r}", "", ""]
    limited: dict[tuple[int, str], bool] = {}
    for (_, record, winding), capacity in zip(
        rows.branches, network.branches.capacity, strict=True
    ):
        limited[id(record), winding] = bool(capacity < float("inf"))
    for section in ORDER[raw.version]:
        for at, record in enumerate(raw.sections[section]):
            if section in NUMBERS:
                lines += [_numbers(line) for line in record]
            elif section in KEPT["psse"]:
                names = hidden.get(id(record), private)
                lines += _record(raw, section, record, names, limited, kinds.get(at, ""))
            # A record that begins with an empty name or with 0 would end the section.
            if section in _NAMED or section in _LISTS:
                name, comma, rest = lines[-len(record)].partition(",")
                if name in ("", "''", "0") and section in _NAMED:
                    lines[-len(record)] = f"'{section} {at + 1}'{comma}{rest}"
                elif name in ("", "''", "0"):
                    del lines[-len(record) :]
        lines.append(f"0 / END OF {section} DATA")
    return scan("\n".join([*lines, "Q", ""]), raw.file)


def columns(raw: RawText) -> dict[str, tuple[str, ...]]:
    """List the fields of a case, section by section, as `released_columns` names them."""
    found: dict[str, tuple[str, ...]] = {}
    rest = ["titles", "comments"]
    known = layout(raw.version)
    for section, records in raw.sections.items():
        if not records:
            continue
        if section in NUMBERS:
            found[section] = ("numbers", "texts")
        elif section in KEPT["psse"]:
            found[section] = tuple(
                dict.fromkeys(
                    name
                    for record in records
                    for names, line in zip(known[section], record, strict=False)
                    for name in names[: len(line)]
                )
            )
        else:
            rest.append(section)
    return {**found, "more": tuple(rest)}


def published_impedance(raw: RawText) -> tuple[Bools, Branches]:
    """Mark branches whose impedances may be relative to ratings; return all branches.

    For a stripped case they have the impedances that a release publishes.
    """
    import numpy as np

    network, rows = build(raw)
    rated = np.array([section == "TRANSFORMER" for section, _, _ in rows.branches], dtype=bool)
    return rated, network.branches


def _kinds(raw: RawText) -> dict[int, str]:
    """Choose bus types from public facts: reference, isolated, with a unit or without."""
    units, buses = Rows(raw, "GEN"), Rows(raw, "BUS")
    running = {
        units.number(record, "I", 0.0)
        for record in units.records
        if units.number(record, "STAT", 1.0) > 0
    }
    found = {}
    for at, record in enumerate(buses.records):
        known = buses.whole(record, "IDE", 1)
        kind = 2 if buses.number(record, "I", 0.0) in running else 1
        found[at] = str(known if known in (3, 4) else kind)
    return found


def _record(
    raw: RawText,
    section: str,
    record: Record,
    private: Sequence[str],
    limited: Mapping[tuple[int, str], bool],
    kind: str,
) -> list[str]:
    """Write the lines of a record, field by field."""
    kept = set(copied("psse", section, private))
    rows = Rows(raw, section)
    two = section == "TRANSFORMER" and len(record) == 4
    new: dict[str, str] = {}
    if section == "TRANSFORMER":
        new = _uncontrolled(rows, record)
        new |= _rated(raw, rows, record) if "capacity" in private else {}
    found = []
    for place, (names, line) in enumerate(zip(layout(raw.version)[section], record, strict=False)):
        count = len(line)
        if section in _LAST:
            count = max(count, names.index(_LAST[section]) + 1)
        if two and place in (1, 3):
            count = min(count, 3 if place == 1 else 2)
        shown = []
        for at, name in enumerate(names[:count]):
            own = line[at] if at < len(line) else None
            rate = _RATE.fullmatch(name)
            if name in new:
                shown.append(new[name])
            elif name == "IDE":
                shown.append(kind)
            elif name in kept:
                shown.append(_shown(own, name))
            elif rate is not None:
                own_limit = limited.get((id(record), (rate[1] or "").strip("_")), False)
                shown.append(str(float(own_limit)))
            elif name in _TEXTS:
                shown.append("''")
            elif name == "MBASE":
                shown.append(repr(raw.base_mva))
            else:
                shown.append(_NEUTRAL.get(name, "0.0"))
        found.append(", ".join(shown))
    return found


def _uncontrolled(rows: Rows, record: Record) -> dict[str, str]:
    """Turn off controls of flows: what they hold (VMI to VMA, MW or Mvar) is a limit or a result.

    Transformers without a control may still have such numbers.
    """
    found: dict[str, str] = {}
    for winding in "123"[: len(record) - 2]:
        code = rows.whole(record, f"COD{winding}", 0)
        if abs(code) != _OF_VOLTAGE:
            found |= {f"COD{winding}": "0", f"VMA{winding}": "1.1", f"VMI{winding}": "0.9"}
    return found


def _rated(raw: RawText, rows: Rows, record: Record) -> dict[str, str]:
    """Convert a transformer's impedances from ratings to the system's base, with few digits."""
    code = rows.whole(record, "CZ", 1)
    found = {"CZ": "1"}
    for pair, r, x in pairs_of(record, rows, raw.base_mva):
        found[f"SBASE{pair}"] = repr(raw.base_mva)
        if code != 1:
            found[f"R{pair}"], found[f"X{pair}"] = (repr(float(v)) for v in coarse([r, x]))
    if rows.whole(record, "CM", 1) != 1:
        found |= {"CM": "1", "MAG1": "0.0", "MAG2": "0.0"}
    return found


def _shown(own: Field | None, name: str) -> str:
    """Write a field if it is of its kind: no text among numbers, no long texts."""
    text = "" if own is None else own.text
    if name in ("ID", "CKT"):
        return f"'{text}'" if _KEY.fullmatch(text) else "'1'"
    if name in _TEXTS:
        return f"'{text}'" if _LABEL.fullmatch(text) else "''"
    return text if not text or _is_number(text) else "0"


def _numbers(line: tuple[Field, ...]) -> str:
    show: Callable[[Field], str] = lambda one: (  # noqa: E731 - a choice of one line
        one.text if not one.text or _is_number(one.text) else _shown(one, "NAME")
    )
    return ", ".join(show(one) for one in line)


def _is_number(text: str) -> bool:
    return re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eEdD][+-]?\d+)?", text) is not None
