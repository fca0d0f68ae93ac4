"""Tables of pandas, polars and Arrow, column by column as Arrow arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from numbers import Real
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from gridveil.errors import InputError


class Adapter(Protocol):
    """A table of some library."""

    names: list[str]

    def choose(self, names: Sequence[str], power: str) -> None:
        """Say which columns will be asked for, and which of them is the private power."""

    def column(self, at: int) -> pa.ChunkedArray:
        """One column, by position."""

    def dtypes(self) -> dict[str, Any]:
        """The library's own types, to be given back to released columns."""


class Arrow:
    """An Arrow table or record batch."""

    def __init__(self, table: Any) -> None:
        self._table = table
        self.names = [str(name) for name in table.schema.names]

    def choose(self, names: Sequence[str], power: str) -> None:
        """Nothing to do: columns are taken one by one, and all as they are."""

    def column(self, at: int) -> pa.ChunkedArray:
        """One column, by position."""
        return _chunked(self._table.column(at))

    def dtypes(self) -> dict[str, Any]:
        """None: Arrow's types are those of the records."""
        return {}


class Pandas:
    """A pandas DataFrame. Its index is no column and is left out."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame
        self.names = [str(name) for name in getattr(frame, "columns", [])]
        self._power: str | None = None

    def choose(self, names: Sequence[str], power: str) -> None:
        """Note which column is power: its objects are read as numbers."""
        self._power = power

    def column(self, at: int) -> pa.ChunkedArray:
        """One column, by position; objects of several types become text."""
        series = self._frame.iloc[:, at].copy()  # Arrow would share it with whoever changes it
        found = _quietly(lambda: pa.array(series, from_pandas=True))
        if found is None:
            found = _quietly(lambda: self._as_text(series, number=self.names[at] == self._power))
        return _chunked(_readable(found, f"column '{self.names[at]}'"))

    @staticmethod
    def _as_text(series: Any, *, number: bool) -> pa.Array:
        # pandas fails on a signalling NaN, which compares with nothing.
        cells = [None if isinstance(v, Decimal) and v.is_nan() else v for v in series]
        blank = type(series)(cells, dtype=object).isna()
        return _texts(
            (None if gap else v for v, gap in zip(cells, blank, strict=True)), number=number
        )

    def dtypes(self) -> dict[str, Any]:
        """The dtypes of pandas."""
        return dict(zip(self.names, self._frame.dtypes, strict=True))


class Polars:
    """A polars DataFrame, or a LazyFrame, of which only the wanted columns are collected."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame
        self._lazy = hasattr(frame, "collect")
        self._types = _readable(_quietly(lambda: dict(frame.collect_schema())), "schema")
        self.names = list(self._types)
        self._power: str | None = None

    def column(self, at: int) -> pa.ChunkedArray:
        """One column, by position."""
        name = self.names[at]
        found = _quietly(lambda: self._converted(name))
        return _chunked(_readable(found, f"column '{name}'"))

    def _converted(self, name: str) -> Any:
        import polars

        series, kind = self._frame.get_column(name), self._types[name]
        if kind == polars.Object:  # Arrow would get the addresses of the objects
            return _texts(series, number=True) if name == self._power else None
        if name == self._power and kind in (polars.Int128, polars.UInt128):
            series = series.cast(polars.Float64)  # Arrow has no such integers
        return series.to_arrow()

    def dtypes(self) -> dict[str, Any]:
        """The data types of polars."""
        return dict(self._types)

    def choose(self, names: Sequence[str], power: str) -> None:
        """Collect a lazy frame; once, since a plan may give its rows in another order again."""
        self._power = power
        if self._lazy:
            frame = self._frame
            self._frame = _readable(_quietly(lambda: frame.select(names).collect()), "schema")
            self._lazy = False


TABLES: dict[str, Callable[[Any], Adapter]] = {
    "pyarrow": Arrow,
    "pandas": Pandas,
    "polars": Polars,
}
_NAMES = ("DataFrame", "LazyFrame", "Table", "RecordBatch")


def library_of(table: object) -> str | None:
    """The library that a table belongs to; found by name, so that none is imported for it."""
    for base in type(table).__mro__:
        library = base.__module__.partition(".")[0]
        if library in TABLES and base.__name__ in _NAMES:
            return library
    return None


def find_columns(where: str, present: Sequence[str], wanted: Sequence[str]) -> dict[str, int]:
    """The positions of the wanted columns, in the order of the table.

    Raises
    ------
    InputError
        Where one is not there, or is there twice.
    """
    for name in wanted:
        count = list(present).count(name)
        if count == 0:
            there = ", ".join(f"'{c}'" for c in present) or "none"
            raise InputError(f"{where} has no column '{name}'.", remedy=f"Its columns: {there}.")
        if count > 1:
            raise InputError(
                f"{where} has {count} columns named '{name}'.", remedy="Give each its own name."
            )
    return {name: at for at, name in enumerate(present) if name in wanted}


def _chunked(array: Any) -> pa.ChunkedArray:
    return array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])


def _texts(values: Iterable[Any], *, number: bool) -> pa.Array:
    """Objects of several types as text; numbers so that they read as the nearest float."""
    text = _number_text if number else str
    return pa.array([None if v is None else text(v) for v in values], pa.large_string())


def _number_text(value: Any) -> str:
    # What else is in the column must not change a number: `str` cuts a 32-bit float short, writes
    # True for 1, and refuses integers of thousands of digits.
    number: Any = value
    if not isinstance(value, (Real, Decimal, np.bool_)):
        return str(value)
    try:
        return repr(float(number))
    except OverflowError:
        return "inf" if number > 0 else "-inf"
    except ValueError:  # a signalling NaN
        return "nan"


def _quietly(read: Callable[[], Any]) -> Any:
    try:
        return read()
    except Exception:  # noqa: BLE001 - whatever it is, its text may quote private values
        return None


def _readable(found: Any, name: str) -> Any:
    if found is None:
        raise InputError(
            f"The {name} of the table can't be read.",
            remedy="Use a column of numbers, text or times.",
        )
    return found
