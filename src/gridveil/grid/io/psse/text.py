"""Scan the text of a PSS/E case (RAW): its sections and records, and the position of each field.

Versions 32 to 35 are read. Fields are separated by commas; texts are in single quotes; a slash
outside of a text starts a comment. A section ends with a record that begins with 0. The position of
every field is kept, so that single numbers can be changed in the text. `Rows` reads the records of
a section field by field.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gridveil.errors import InputError

VERSIONS = (32, 33, 34, 35)
WINDING = "AREA TWODC VSCDC IMPCOR MTDC MSLINE ZONE INTERAREA OWNER FACTS SWSHUNT GNE INDMACH"
ORDER = {
    version: (
        *(("SYSTEM",) if version >= 34 else ()),
        *("BUS", "LOAD", "FIXSHUNT", "GEN", "BRANCH"),
        *(("SWDEV",) if version >= 34 else ()),
        "TRANSFORMER",
        *(WINDING.split()[:-1] if version == 32 else WINDING.split()),
        *(("SUBSTATION",) if version >= 35 else ()),
    )
    for version in VERSIONS
}
"""The sections of each version, in their order; the last ones of a file may be missing."""
_RATES = tuple(f"RATE{at}" for at in range(1, 13))
_OWNERS = ("O1", "F1", "O2", "F2", "O3", "F3", "O4", "F4")


def layout(version: int) -> dict[str, tuple[tuple[str, ...], ...]]:
    """Return the fields of every section that is read, for each line of a record."""
    new = version >= 34
    rates = _RATES if new else ("RATEA", "RATEB", "RATEC")
    windings = []
    for w in "123":
        limits = tuple(f"{name}_{w}" for name in rates)
        control = (f"COD{w}", f"CONT{w}", *((f"NODE{w}",) if version >= 35 else ()))
        rest = ("RMA", "RMI", "VMA", "VMI", "NTP", "TAB", "CR", "CX", "CNXA")
        own = (f"WINDV{w}", f"NOMV{w}", f"ANG{w}", *limits, *control)
        windings.append((*own, *(f"{name}{w}" for name in rest)))
    load = ("I", "ID", "STAT", "AREA", "ZONE", "PL", "QL", "IP", "IQ", "YP", "YQ", "OWNER", "SCALE")
    load += ("INTRPT", *(("DGENP", "DGENQ", "DGENM", "LOADTYPE") if new else ()))
    gen = ("I", "ID", "PG", "QG", "QT", "QB", "VS", "IREG", *(("NREG",) if version >= 35 else ()))
    gen += ("MBASE", "ZR", "ZX", "RT", "XT", "GTAP", "STAT", "RMPCT", "PT", "PB")
    gen += ("BASLOD",) if version >= 35 else ()
    vsc = ("IBUS", "TYPE", "MODE", "DCSET", "ACSET", "ALOSS", "BLOSS", "MINLOSS", "SMAX", "IMAX")
    vsc += ("PWF", "MAXQ", "MINQ", "VSREG", *(("NREG",) if version >= 35 else ()), "RMPCT")
    shunts = ("GI", "BI", "GJ", "BJ", "ST", "MET", "LEN")
    return {
        "BUS": (
            ("I", "NAME", "BASKV", "IDE", "AREA", "ZONE", "OWNER", "VM", "VA", "NVHI", "NVLO",
             "EVHI", "EVLO"),
        ),
        "LOAD": (load,),
        "FIXSHUNT": (("I", "ID", "STATUS", "GL", "BL"),),
        "GEN": ((*gen, *_OWNERS, "WMOD", "WPF"),),
        "BRANCH": (
            ("I", "J", "CKT", "R", "X", "B", *(("NAME",) if new else ()), *rates, *shunts,
             *_OWNERS),
        ),
        "TRANSFORMER": (
            ("I", "J", "K", "CKT", "CW", "CZ", "CM", "MAG1", "MAG2", "NMETR", "NAME", "STAT",
             *_OWNERS, "VECGRP"),
            ("R1_2", "X1_2", "SBASE1_2", "R2_3", "X2_3", "SBASE2_3", "R3_1", "X3_1", "SBASE3_1",
             "VMSTAR", "ANSTAR"),
            *windings,
        ),
        "TWODC": (
            ("NAME", "MDC", "RDC", "SETVL", "VSCHD"), ("IPR", "NBR", "ANMXR"),
            ("IPI", "NBI", "ANMXI"),
        ),
        "VSCDC": (
            ("NAME", "MDC", "RDC", *_OWNERS),
            *(tuple(f"{name}_{end}" for name in vsc) for end in "12"),
        ),
        "FACTS": (
            ("NAME", "I", "J", "MODE", "PDES", "QDES", "VSET", "SHMX", "TRMX", "VTMN", "VTMX",
             "VSMX", "IMX", "LINX", "RMPCT", "OWNER", "SET1", "SET2", "VSREF", "FCREG",
             *(("NREG",) if version >= 35 else ()), "MNAME"),
        ),
        "SWSHUNT": (
            ("I", *(("ID",) if version >= 35 else ()), "MODSW", "ADJM", "STAT", "VSWHI", "VSWLO",
             "SWREM", *(("NREG",) if version >= 35 else ()), "RMPCT", "RMIDNT", "BINIT"),
        ),
        "AREA": (("I", "ISW", "PDES", "PTOL", "NAME"),),
        "ZONE": (("I", "NAME"),),
        "OWNER": (("I", "NAME"),),
    }  # fmt: skip


@dataclass(frozen=True)
class Field:
    """One field: its text without quotes, and its position."""

    text: str
    start: int
    end: int

    @property
    def quoted(self) -> bool:
        """Whether it is in quotes: a name may be empty, or 0."""
        return self.end - self.start > len(self.text)


Record = tuple[tuple[Field, ...], ...]
"""The lines of a record."""


@dataclass(frozen=True, eq=False)
class RawText:
    """A case file.

    Parameters
    ----------
    file
        Its name, for messages.
    text
        The whole text; bytes that are not UTF-8 are escaped.
    version, base_mva, frequency
        From its first line.
    sections
        Its records.
    """

    file: str
    text: str
    version: int
    base_mva: float
    frequency: float
    sections: Mapping[str, tuple[Record, ...]]


def scan(text: str, file: str) -> RawText:
    """Read the text of a case.

    Raises
    ------
    InputError
        If it is not a case of a known version, or a section is damaged.
    """
    lines = _lines(text)
    head = next(lines, ())
    version, base = _whole(head, 2), _number(head, 1)
    if version not in VERSIONS or not base > 0:
        raise InputError(
            f"{file} is not a PSS/E case (RAW) of version {', '.join(map(str, VERSIONS))}.",
            remedy="Save it as RAW of version 33, for example.",
        )
    for _ in range(2):  # titles
        next(lines, ())
    sections: dict[str, tuple[Record, ...]] = {}
    for name in ORDER[version]:
        sections[name] = tuple(_records(lines, name, file))
    if not sections["BUS"]:
        raise InputError(f"{file} has no buses.", remedy="Give a case with all of its sections.")
    frequency = _number(head, 5)
    return RawText(file, text, version, base, frequency if frequency > 0 else 60.0, sections)


def _lines(text: str) -> Iterator[tuple[Field, ...]]:
    """Yield the fields of every line, except comment lines (@!)."""
    for match in re.finditer(r"[^\n]*\n?", text):
        if match[0] and not match[0].startswith("@!"):
            yield tuple(_fields(text, match.start(), match.end()))


_FIELD = re.compile(r"[ \t\r]*('(?:[^'\n])*'|[^,/\n']*)[ \t\r]*(,|/|\n|\Z)?")


def _fields(text: str, start: int, end: int) -> Iterator[Field]:
    at = start
    while at < end:
        match = _FIELD.match(text, at, end)
        if match is None:
            return
        found = match[1].rstrip()
        begin = match.start(1)
        yield Field(found.strip("'").strip(), begin, begin + len(found))
        if match[2] != ",":
            return
        at = match.end()


def _records(lines: Iterator[tuple[Field, ...]], name: str, file: str) -> Iterator[Record]:
    for first in lines:
        if not first or (first[0].text in ("0", "Q", "") and not first[0].quoted):
            if len(first) <= 1 and (not first or first[0].text == ""):
                continue  # an empty line
            return
        more = _more_lines(name, first)
        rest = [next(lines, None) for _ in range(more)]
        known = [line for line in rest if line is not None]
        if len(known) < more:
            raise InputError(f"{file} ends inside of section {name}.", remedy="Save it again.")
        yield (first, *known)


def _more_lines(name: str, first: tuple[Field, ...]) -> int:
    """Return how many lines of a record follow its first one."""
    if name == "TRANSFORMER":
        return 3 if len(first) < 3 or first[2].text in ("", "0") else 4
    return 2 if name in ("TWODC", "VSCDC") else 0


def _number(fields: tuple[Field, ...], at: int) -> float:
    try:
        return float(fields[at].text)
    except (IndexError, ValueError):
        return float("nan")


def _whole(fields: tuple[Field, ...], at: int) -> int:
    value = _number(fields, at)
    return int(value) if value == value and abs(value) < 1e9 else -1


class Rows:
    """The records of one section, field by field."""

    def __init__(self, raw: RawText, section: str) -> None:
        self._places = {
            name: (line, at)
            for line, names in enumerate(layout(raw.version)[section])
            for at, name in enumerate(names)
        }
        self.records = raw.sections[section]
        self._what = f"{raw.file}: section {section}"

    def __len__(self) -> int:
        return len(self.records)

    def field(self, record: Record, name: str) -> Field | None:
        """Return the field of a record, or None if it is missing or empty."""
        line, at = self._places[name]
        if line >= len(record) or at >= len(record[line]) or not record[line][at].text:
            return None
        return record[line][at]

    def number(self, record: Record, name: str, default: float) -> float:
        """Return a field as a number."""
        found = self.field(record, name)
        if found is None:
            return default
        try:
            value = float(found.text.lower().replace("d", "e"))  # Fortran writes 1.0D+02
        except ValueError:
            value = math.nan
        if math.isnan(value):
            # The message does not quote the value: it may be private.
            raise InputError(f"{self._what} has a {name} that is not a number.")
        return value

    def whole(self, record: Record, name: str, default: int) -> int:
        """Return a field as a whole number: a bus, a code or a status."""
        value = self.number(record, name, default)
        if math.isinf(value):
            raise InputError(f"{self._what} has a {name} that is not a finite number.")
        return int(value)

    def column(self, name: str, default: float) -> Any:
        """Return one number for every record."""
        return np.array([self.number(record, name, default) for record in self.records])


def bus_of(raw: RawText, rows: Rows, record: Record, name: str, place: dict[int, int]) -> int:
    """Return the place of the bus that a field of a record names."""
    number = abs(rows.whole(record, name, -1))
    if number not in place:
        raise InputError(
            f"{raw.file}: a record is at bus {number}, which section BUS does not have.",
            remedy="Correct the number, or remove the record.",
        )
    return place[number]
