"""Tables of pandas, polars and Arrow, column by column as Arrow arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import pyarrow as pa

from gridveil.errors import InputError


class Adapter(Protocol):
    """A table of some library."""

    names: list[str]

    def choose(self, names: Sequence[str]) -> None:
        """Say which columns will be asked for."""

    def column(self, at: int) -> pa.ChunkedArray:
        """One column, by position."""

    def dtypes(self) -> dict[str, Any]:
        """The library's own types, to be given back to released columns."""


class Arrow:
    """An Arrow table or record batch."""

    def __init__(self, table: Any) -> None:
        self._table = table
        self.names = [str(name) for name in table.schema.names]

    def choose(self, names: Sequence[str]) -> None:
        """Nothing to do: columns are taken one by one."""

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

    def choose(self, names: Sequence[str]) -> None:
        """Nothing to do: columns are taken one by one."""

    def column(self, at: int) -> pa.ChunkedArray:
        """One column, by position; objects of several types become text."""
        series = self._frame.iloc[:, at].copy()  # Arrow would share it with whoever changes it
        found = _quietly(lambda: pa.array(series, from_pandas=True))
        if found is None:
            blank = series.isna()
            found = _quietly(
                lambda: pa.array(
                    [None if gap else str(v) for v, gap in zip(series, blank, strict=True)],
                    pa.large_string(),
                )
            )
        return _chunked(_readable(found, f"column '{self.names[at]}'"))

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

    def column(self, at: int) -> pa.ChunkedArray:
        """One column, by position."""
        name = self.names[at]
        found = _quietly(lambda: self._frame.get_column(name).to_arrow())
        return _chunked(_readable(found, f"column '{name}'"))

    def dtypes(self) -> dict[str, Any]:
        """The data types of polars."""
        return dict(self._types)

    def choose(self, names: Sequence[str]) -> None:
        """Collect a lazy frame; once, since a plan may give its rows in another order again."""
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
