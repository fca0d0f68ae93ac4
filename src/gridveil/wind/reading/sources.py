"""Where records come from: files and tables, read as blocks of Arrow columns.

Only the columns that are asked for are read. Whatever a reading library says about a problem is
dropped: its messages quote the rows they stumble over.

How a source is cut into batches follows from private values too: from the width of their text, or
from how the column was put together. So rows are cut again, by their number alone: sums, errors and
written files that go block by block are the same for any cut of the source.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from gridveil.errors import InputError
from gridveil.wind.reading.columns import plain
from gridveil.wind.reading.files import SUFFIXES, RecordFile, open_file
from gridveil.wind.reading.tables import TABLES, find_columns, library_of

BLOCK = 65_536
"""Rows of a piece, but for the last of a file."""


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
    delimiter: str
    rows: int | None
    dtypes: Mapping[str, Any] | None

    def types(self, names: Sequence[str], power: str) -> dict[str, pa.DataType]:
        """The types of some columns, in the order of the source.

        Public columns have one type in all files. That of ``power`` is the first file's, and may
        differ from file to file: whether a month of records is all whole numbers is private.

        Raises
        ------
        InputError
            Where a column is not there or is there twice, or a public one differs between files.
        """

    def pieces(self, names: Sequence[str], start: int = 0) -> Iterator[Piece]:
        """These columns from a row on, every `BLOCK` rows of a file."""


class Files:
    """One file or many of the same format and schema."""

    dtypes: Mapping[str, Any] | None = None

    def __init__(self, paths: Sequence[Path], name: str) -> None:
        self.name = name
        self._files = [open_file(path) for path in paths]
        kinds = sorted({file.kind for file in self._files})
        if len(kinds) > 1:
            raise InputError(
                f"The files of {name} are of several formats: {', '.join(kinds)}.",
                remedy="Give files of one format.",
            )
        self.kind = kinds[0]
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
    """A table in memory; its columns are converted when they are asked for, not before."""

    where = "the table"
    name = "wind records"
    delimiter = ","

    def __init__(self, original: Any, library: str) -> None:
        self.kind = library
        self._adapter = TABLES[library](original)
        self.rows: int | None = None
        self.dtypes: Mapping[str, Any] | None = self._adapter.dtypes()

    def types(self, names: Sequence[str], power: str) -> dict[str, pa.DataType]:
        """See `Source`."""
        found = find_columns(self.where, self._adapter.names, names)
        self._adapter.choose(list(found), power)
        return {name: self._adapter.column(at).type for name, at in found.items()}

    def pieces(self, names: Sequence[str], start: int = 0) -> Iterator[Piece]:
        """See `Source`."""
        found = find_columns(self.where, self._adapter.names, names)
        columns = {name: self._adapter.column(at) for name, at in found.items()}
        yield from _cut(self.where, start, 0, pa.table(columns).slice(start).to_batches())


def open_source(source: Any) -> Source:
    """Open files or a table for reading.

    Raises
    ------
    InputError
        Where there is nothing to read, or nothing known how.
    """
    library = library_of(source)
    if library is not None:
        return Table(source, library)
    try:
        found = _open_paths(source)
    except InputError:
        raise
    except (OSError, RuntimeError, ValueError):  # too long, a home that is not there, a NUL
        found = None
    else:
        if found is not None:
            return found
    if isinstance(source, (str, os.PathLike)):
        raise InputError(f"{os.fspath(source)!r} can't be opened.", remedy="Check the path.")
    raise InputError(
        f"Records can't be read from an object of type {type(source).__name__}.",
        remedy="Give a path, a list of paths, or a pandas, polars or Arrow table.",
    )


@contextmanager
def damage_first(pieces: Iterator[Piece]) -> Iterator[None]:
    """If a row can't be used, read on before saying so: damage further on is reported instead.

    A reader finds a damaged row some way ahead of the pieces, and how far depends on the width of
    private text: without this, so would the choice between two errors.
    """
    try:
        yield
    except InputError:
        for _ in pieces:
            pass
        raise


def _open_paths(source: Any) -> Source | None:
    if isinstance(source, (str, os.PathLike)):
        return _open_path(Path(source).expanduser())
    if isinstance(source, (list, tuple)):
        paths = [Path(p).expanduser() for p in source if isinstance(p, (str, os.PathLike))]
        if len(paths) == len(source):
            return _open_many(paths, "the list of files")
    return None


def _open_path(path: Path) -> Source:
    if path.is_dir():
        return _open_many(_inside(path), f"the folder {path}")
    if glob.has_magic(str(path)) and not path.exists():
        return _open_many(sorted(map(Path, glob.glob(str(path)))), f"the pattern {path}")
    return Files([path], _stem(path))


def _inside(folder: Path) -> list[Path]:
    try:
        names = sorted(os.listdir(folder))
    except OSError as problem:
        why = problem.strerror
    else:
        found = [n for n in names if n.lower().endswith(SUFFIXES) and not n.startswith(".")]
        return [folder / name for name in found]
    raise InputError(
        f"The folder {folder} can't be opened: {why}.", remedy="Ask for the right to read it."
    )


def _open_many(paths: list[Path], what: str) -> Source:
    if not paths:
        raise InputError(
            f"There are no files in {what}.",
            remedy=f"Files end in {', '.join(SUFFIXES)}.",
        )
    # One measurement read twice would count as two records, which adjacency does not allow for.
    resolved = [path.resolve() for path in paths]
    twice = sorted({p.name for p in resolved if resolved.count(p) > 1})
    if twice:
        raise InputError(f"{twice[0]} is listed twice in {what}.", remedy="List every file once.")
    return Files(paths, _stem(paths[0]) if len(paths) == 1 else resolved[0].parent.name)


def _stem(path: Path) -> str:
    name = path.name
    return next((name[: -len(s)] for s in SUFFIXES if name.lower().endswith(s)), name)


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
            waiting.append(_readable(where, part))
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


def _readable(where: str, batch: pa.RecordBatch) -> dict[str, pa.Array]:
    columns = _columns(batch)
    if columns is None:
        raise InputError(
            f"{where} is damaged: a column holds what its type can't.",
            remedy="Write it again; text must be UTF-8.",
        )
    return columns


def _columns(batch: pa.RecordBatch) -> dict[str, pa.Array] | None:
    # None rather than Arrow's own error, whose message may quote a value.
    try:
        batch.validate(full=True)
        return {n: plain(c) for n, c in zip(batch.schema.names, batch.columns, strict=True)}
    except pa.ArrowException:
        return None


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
