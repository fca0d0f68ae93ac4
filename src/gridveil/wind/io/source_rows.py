"""From blocks of a source to rows that can be released: numbers read, gaps found and left out.

What is refused here is decided by missing values, by public columns, and by whether every power
that is not missing is a number. A power of any size goes through.

**What is public about the private column**: which of its cells are missing (nothing, null, NaN, or
text such as ``NA``), and that all others are numbers. Anything else in a cell (``12 kW``,
``1,234``, ``-``) is an error that names its row, raised before anything is charged. What number it
is decides nothing, and neither does how it is written or stored: 100, ``1e2``, ``" +100"``, a
Decimal, an integer of 8 bits and a float all become the same 64-bit float, and nothing else of the
column is kept.

`read_once` calls back into the function that it was given for each block of rows, so that an error
of its own is treated as one of the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gridveil.errors import InputError
from gridveil.wind.io.columns import (
    Formulas,
    Vector,
    first_formula,
    formula_error,
    missing_in,
    to_numbers,
)
from gridveil.wind.io.layout import Layout, check_type
from gridveil.wind.io.sources import Piece, Source

Missing = Literal["refuse", "drop"]


@dataclass(frozen=True)
class Rows:
    """The complete rows of a piece.

    Parameters
    ----------
    columns, numbers
        Published columns, as they are in the source; those that are numbers, read.
    power
        Private, in the unit of the source, not clipped yet.
    at
        Position of each row in the source.
    """

    columns: dict[str, pa.Array]
    numbers: dict[str, Vector]
    power: Vector
    at: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.power)


Gaps = dict[str, tuple[int, int]]
"""For each column with missing values: how many, and the row of the first."""


def complete_rows(piece: Piece, layout: Layout) -> tuple[Rows, Gaps]:
    """Read the numbers of a piece and leave out its rows with missing values.

    Raises
    ------
    InputError
        If there is text in a column of numbers, or a public number is infinite.
    """
    numeric = {n: _numbers(piece, n) for n in (*layout.numeric(), layout.power)}
    missing = {name: np.isnan(values) for name, values in numeric.items()}
    for name in (layout.key, layout.turbine):
        if name is not None and name not in missing:
            missing[name] = missing_in(piece.columns[name], layout.kinds[name])
    gaps = {
        n: (int(g.sum()), piece.row + int(g.argmax()) + 1) for n, g in missing.items() if g.any()
    }
    power = numeric.pop(layout.power)
    for name, values in numeric.items():
        _check_finite(piece, name, values)
    columns = {name: piece.columns[name] for name in layout.published}
    at = np.arange(piece.offset, piece.offset + len(piece))
    if not gaps:
        return Rows(columns, numeric, power, at), gaps
    keep = ~np.logical_or.reduce(list(missing.values()))
    chosen = pa.array(keep)
    kept = {name: column.filter(chosen) for name, column in columns.items()}
    return Rows(kept, {n: v[keep] for n, v in numeric.items()}, power[keep], at[keep]), gaps


def read_once(
    source: Source, layout: Layout, tally: Tally, use: Callable[[Piece, Rows], None]
) -> None:
    """Read a source for the first time: count and check it, and hand on its complete rows.

    If a row can't be used, read on before saying so: damage further on is reported instead. A
    reader finds a damaged row some way ahead of the pieces, and how far depends on the width of
    private text: otherwise so would the choice between two errors.

    Raises
    ------
    InputError
        If public input can't be used.
    """
    leftovers = layout.leftovers()
    pieces = source.pieces([*layout.types])
    try:
        for piece in pieces:
            rows, gaps = complete_rows(piece, layout)
            tally.add(piece, rows, gaps, rows.numbers[layout.speed])
            leftovers.add(rows.columns)
            use(piece, rows)
    except InputError:
        for _ in pieces:
            pass
        raise
    tally.check(source.where)
    leftovers.check(source.where, layout.key)


def _numbers(piece: Piece, name: str) -> Vector:
    column = piece.columns[name]
    check_type(piece.where, name, column.type, number=True)  # power's differs from file to file
    values, bad = to_numbers(column)
    if bad is not None:
        raise InputError(
            f"Column '{name}' of {piece.where} is not all numbers: row {piece.row + bad + 1} "
            "(counted from 1 below the header) holds text.",
            remedy="Decimal commas need decimal=',' (--decimal ,), and decimal points need none. "
            "Remove rows of units and codes for errors, and write thousands without a sign.",
        )
    return values


def _check_finite(piece: Piece, name: str, values: Vector) -> None:
    infinite = np.isinf(values)
    if infinite.any():
        raise InputError(
            f"Column '{name}' of {piece.where} has {int(infinite.sum())} infinite values, the "
            f"first in row {piece.row + int(infinite.argmax()) + 1}.",
            remedy="Mend or leave out such rows.",
        )


@dataclass
class Tally:
    """What the first pass over a source counts; all public.

    Parameters
    ----------
    missing, formulas
        What to do with missing values, and with text that a spreadsheet would run.
    text
        The columns of text that will be released as CSV.
    """

    missing: Missing
    formulas: Formulas = "keep"
    text: Sequence[str] = ()
    rows: int = 0
    dropped: int = 0
    low: float = np.inf
    high: float = -np.inf
    total: float = 0.0
    formula: bool = False
    _gaps: dict[tuple[str, str], tuple[int, int]] = field(default_factory=dict)

    def add(self, piece: Piece, rows: Rows, gaps: Gaps, speed: Vector) -> None:
        """Count one piece and what is left of it."""
        self.rows += len(rows)
        self.dropped += len(piece) - len(rows)
        if len(rows):
            self.low = min(self.low, float(speed.min()))
            self.high = max(self.high, float(speed.max()))
            self.total += float(speed.sum())
        for name, (count, first) in gaps.items():
            before, earliest = self._gaps.get((piece.where, name), (0, first))
            self._gaps[piece.where, name] = before + count, earliest
        for name in self.text:
            at = first_formula(rows.columns[name])
            if at is not None and self.formulas == "refuse":
                row = int(rows.at[at]) - piece.offset + piece.row + 1
                raise formula_error(piece.where, name, row)
            self.formula |= at is not None

    def check(self, where: str) -> None:
        """Refuse missing values, if they are to be refused, and sources without rows."""
        if self.missing == "refuse" and self._gaps:
            (file, name), (count, first) = next(iter(self._gaps.items()))
            values = "value" if count == 1 else "values"
            raise InputError(
                f"Column '{name}' of {file} has {count:,} missing {values}, the first in row "
                f"{first} (counted from 1 below the header).",
                remedy='Fill them in, or leave such rows out with missing="drop" (--missing drop).',
            )
        if not self.rows:
            left = f" but {self.dropped} with missing values" if self.dropped else ""
            raise InputError(f"{where} has no rows{left}.", remedy="Give at least one row.")


def normalise(power: Vector, capacity: float | Vector) -> tuple[Vector, int]:
    """Power over capacity, clipped to [0, 1], and how many values were clipped: private both."""
    with np.errstate(all="ignore"):
        share = power / capacity
    outside = int(np.count_nonzero((share < 0) | (share > 1)))
    return np.clip(share, 0.0, 1.0, out=share), outside
