"""The records of a section of a PSS/E case, field by field."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gridveil.errors import InputError
from gridveil.grid.io.psse.text import Field, RawText, Record, layout


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
