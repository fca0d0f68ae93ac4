"""Where records come from: files and tables, read as blocks of Arrow columns.

Only the columns that are asked for are read. Whatever a reading library says about a problem is
dropped: its messages quote the rows they stumble over.

How a source is cut into batches follows from private values too: from the width of their text, or
from how the column was put together. So rows are cut again, by their number alone: sums, errors and
written files that go block by block are the same for any cut of the source.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from gridveil.errors import InputError
from gridveil.wind.io.columns import plain
from gridveil.wind.io.files import RecordFile, find_columns, find_files, open_file
from gridveil.wind.io.read_options import CsvStyle

BLOCK = 65_536
"""Rows of a piece, but for the last of a file."""

_NAMES = ("DataFrame", "LazyFrame", "Table", "RecordBatch")


@dataclass(frozen=True)
class Piece:
    """Some rows of a source, as plain columns.

    Parameters
    ----------
    where
        The file they are from.
    row
        How many rows of that file come before.
    offset
        How many rows of the whole source come before.
    columns
        The columns that were asked for.
    """

    where: str
    row: int
    offset: int
    columns: dict[str, pa.Array]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))


class Source(Protocol):
    """Records of one schema that can be read again and again."""

    kind: str
    name: str
    where: str
    names: list[str]
    delimiter: str
    style: CsvStyle
    rows: int | None
    dtypes: Mapping[str, Any] | None

    def types(self, names: Sequence[str], power: str) -> dict[str, pa.DataType]:
        """The types of some columns, in the order of the source.

        Public columns have one type in all files. That of ``power`` is the first file's, and may
        differ from file to file: whether a month of records is all whole numbers is private.

        Raises
        ------
        InputError
            If a column is not there or is there twice, or a public one differs between files.
        """

    def pieces(self, names: Sequence[str], start: int = 0) -> Iterator[Piece]:
        """These columns from a row on, every `BLOCK` rows of a file."""


class Files:
    """One file or many of the same format and schema."""

    dtypes: Mapping[str, Any] | None = None

    def __init__(self, paths: Sequence[Path], name: str, style: CsvStyle) -> None:
        self.name = name
        self.style = style
        self._files = [open_file(path, style) for path in paths]
        kinds = sorted({file.kind for file in self._files})
        if len(kinds) > 1:
            raise InputError(
                f"The files of {name} are of several formats: {', '.join(kinds)}.",
                remedy="Give files of one format.",
            )
        self.kind = kinds[0]
        self.names = self._files[0].names
        self.where = paths[0].name if len(paths) == 1 else name
        self.delimiter = self._files[0].delimiter
        counts = [file.rows for file in self._files]
        known = [count for count in counts if count is not None]
        self.rows = sum(known) if len(known) == len(counts) else None

    def types(self, names: Sequence[str], power: str) -> dict[str, pa.DataType]:
        """See `Source`."""
        first: dict[str, pa.DataType] | None = None
        for file in self._files:
            types = file.types()
            found = {
                c: types[i] for c, i in find_columns(file.path.name, file.names, names).items()
            }
            if first is None:
                first = found
            else:
                public = [name for name in first if name != power]
                _refuse_mixed(self._files[0], file, public, first, found)
        return first or {}

    def pieces(self, names: Sequence[str], start: int = 0) -> Iterator[Piece]:
        """See `Source`."""
        offset = 0
        for file in self._files:
            skip = max(0, start - offset)
            if file.rows is not None and file.rows <= skip:
                offset += file.rows
                continue
            yield from _cut(file.path.name, skip, offset, _batches(file, names, skip))
            offset += file.rows or 0


class Table:
    """An Arrow table or record batch, and what tables of other libraries have in common.

    Columns are converted when they are asked for, not before.
    """

    kind = "pyarrow"
    where = "the table"
    name = "wind records"
    delimiter = ","
    style = CsvStyle()
    rows: int | None = None

    def __init__(self, table: Any) -> None:
        self._table = table
        self.names = [str(name) for name in self._find_names()]
        self._power: str | None = None
        self.dtypes: Mapping[str, Any] | None = self._find_dtypes()

    def types(self, names: Sequence[str], power: str) -> dict[str, pa.DataType]:
        """See `Source`."""
        found = find_columns(self.where, self.names, names)
        self._power = power
        self._choose(list(found))
        return {name: self._column(at).type for name, at in found.items()}

    def pieces(self, names: Sequence[str], start: int = 0) -> Iterator[Piece]:
        """See `Source`."""
        found = find_columns(self.where, self.names, names)
        columns = {name: self._column(at) for name, at in found.items()}
        yield from _cut(self.where, start, 0, pa.table(columns).slice(start).to_batches())

    def _column(self, at: int) -> pa.ChunkedArray:
        name = self.names[at]
        found = _readable(_quietly(lambda: self._converted(at)), f"column '{name}'")
        return found if isinstance(found, pa.ChunkedArray) else pa.chunked_array([found])

    def _find_names(self) -> Iterable[str]:
        return list(self._table.schema.names)

    def _find_dtypes(self) -> dict[str, Any]:
        """The library's own types, which released columns will have too."""
        return {}

    def _choose(self, names: list[str]) -> None:
        """Called once it is known which columns will be asked for."""

    def _converted(self, at: int) -> Any:
        return self._table.column(at)


class PandasTable(Table):
    """A pandas DataFrame. Its index is not a column and is left out."""

    kind = "pandas"

    def _find_names(self) -> Iterable[str]:
        return getattr(self._table, "columns", [])

    def _find_dtypes(self) -> dict[str, Any]:
        return dict(zip(self.names, self._table.dtypes, strict=True))

    def _converted(self, at: int) -> Any:
        series = self._table.iloc[:, at].copy()  # Arrow would share it with whoever changes it
        found = _quietly(lambda: pa.array(series, from_pandas=True))
        if found is not None:
            return found
        # Objects of several types become text. pandas fails on a signalling NaN, which compares
        # with nothing.
        cells = [None if isinstance(v, Decimal) and v.is_nan() else v for v in series]
        blank = type(series)(cells, dtype=object).isna()
        kept = (None if gap else v for v, gap in zip(cells, blank, strict=True))
        return _texts(kept, number=self.names[at] == self._power)


class PolarsTable(Table):
    """A polars DataFrame, or a LazyFrame, of which only the wanted columns are collected."""

    kind = "polars"

    def _find_names(self) -> Iterable[str]:
        frame = self._table
        self._types = _readable(_quietly(lambda: dict(frame.collect_schema())), "schema")
        return list(self._types)

    def _find_dtypes(self) -> dict[str, Any]:
        return dict(self._types)

    def _choose(self, names: list[str]) -> None:
        # A lazy frame is collected once: a plan may give its rows in another order again.
        frame = self._table
        if hasattr(frame, "collect"):
            self._table = _readable(_quietly(lambda: frame.select(names).collect()), "schema")

    def _converted(self, at: int) -> Any:
        import polars

        name = self.names[at]
        series, kind = self._table.get_column(name), self._types[name]
        if kind == polars.Object:  # Arrow would get the addresses of the objects
            return _texts(series, number=True) if name == self._power else None
        if name == self._power and kind in (polars.Int128, polars.UInt128):
            series = series.cast(polars.Float64)  # Arrow has no such integers
        return series.to_arrow()


_TABLES = {kind.kind: kind for kind in (Table, PandasTable, PolarsTable)}


def _open_table(source: Any) -> Table | None:
    """A table of a known library, found by name so that none is imported for it.

    A table of any other library is read if it offers its columns by Arrow's PyCapsule interface.
    """
    for base in type(source).__mro__:
        library = base.__module__.partition(".")[0]
        if library in _TABLES and base.__name__ in _NAMES:
            return _TABLES[library](source)
    if hasattr(source, "__arrow_c_stream__"):
        return Table(_readable(_quietly(lambda: pa.table(source)), "columns"))
    return None


def open_source(source: Any, style: CsvStyle = CsvStyle()) -> Source:  # noqa: B008 - frozen
    """Open files, CSV written in a style, or a table for reading.

    Raises
    ------
    InputError
        If there is nothing to read, or its kind is not known.
    """
    table = _open_table(source)
    if table is not None:
        if not style.usual:
            raise InputError(
                "A table in memory has no signs between fields, none before decimals, and no "
                "encoding.",
                remedy="Leave out sep, decimal and encoding: they are for CSV files.",
            )
        return table
    try:
        found = find_files(source)
        if found is not None:
            return Files(*found, style)
    except InputError:
        raise
    except (OSError, RuntimeError, ValueError):  # too long, a home that is not there, a NUL
        pass
    if isinstance(source, (str, os.PathLike)):
        raise InputError(f"{os.fspath(source)!r} can't be opened.", remedy="Check the path.")
    raise InputError(
        f"Records can't be read from an object of type {type(source).__name__}.",
        remedy="Give a path, a list of paths, or a pandas, polars or Arrow table.",
    )


def _batches(file: RecordFile, names: Sequence[str], skip: int) -> Iterator[pa.RecordBatch]:
    """A file's batches from row ``skip`` on; its number of rows is known after the last one."""
    row = 0
    for row, batch in file.batches(names, skip):
        yield batch.slice(min(max(0, skip - row), len(batch)))
        row += len(batch)
    file.rows = row


def _cut(where: str, row: int, offset: int, batches: Iterable[pa.RecordBatch]) -> Iterator[Piece]:
    """Batches of any sizes as pieces of `BLOCK` rows; the first batch begins at ``row``."""
    waiting: list[dict[str, pa.Array]] = []
    size = 0
    for batch in batches:
        at = 0
        while at < len(batch):
            part = batch.slice(at, BLOCK - size)
            waiting.append(_checked_columns(where, part))
            at, size = at + len(part), size + len(part)
            if size == BLOCK:
                yield Piece(where, row, offset + row, _joined(waiting))
                row, size = row + size, 0
                waiting.clear()
    if waiting:
        yield Piece(where, row, offset + row, _joined(waiting))


def _joined(parts: list[dict[str, pa.Array]]) -> dict[str, pa.Array]:
    if len(parts) == 1:
        return parts[0]
    return {name: pa.concat_arrays([part[name] for part in parts]) for name in parts[0]}


def _checked_columns(where: str, batch: pa.RecordBatch) -> dict[str, pa.Array]:
    try:
        batch.validate(full=True)
        return {n: plain(c) for n, c in zip(batch.schema.names, batch.columns, strict=True)}
    except pa.ArrowException:
        pass  # its own message may quote a value
    raise InputError(
        f"{where} is damaged: a column holds what its type can't.",
        remedy="Write it again; text must be UTF-8.",
    )


def _refuse_mixed(
    first: RecordFile,
    other: RecordFile,
    names: Sequence[str],
    expected: dict[str, pa.DataType],
    found: dict[str, pa.DataType],
) -> None:
    differing = [n for n in names if expected[n] != found[n]]
    if differing:
        name = differing[0]
        raise InputError(
            f"Column '{name}' is {expected[name]} in {first.path.name} and {found[name]} in "
            f"{other.path.name}.",
            remedy="Give files of one schema.",
        )


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
