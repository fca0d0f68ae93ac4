"""One file of records: CSV, compressed or not, and Parquet."""

from __future__ import annotations

import codecs
import csv
import glob
import gzip
import os
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from gridveil.errors import InputError, no_headings
from gridveil.wind.io.read_options import CsvStyle

SUFFIXES = (".csv", ".csv.gz", ".parquet", ".pq")
"""What the name of a file of records ends in."""

_HEADER_BYTES = 1 << 20
_CSV_BLOCK = 1 << 20  # bytes; bounds what a pass over a CSV file holds
_PARQUET_BLOCK = 65_536  # rows
_PROBLEMS = (pa.ArrowException, OSError, EOFError, UnicodeError, zlib.error, csv.Error)

_WRONG_FIELDS = re.compile(r"CSV parse error: Row #(\d+): Expected (\d+) columns, got (\d+)")

T = TypeVar("T")


class EncodingError(InputError):
    """A CSV file is not text in the encoding that it is read in."""


class RecordFile(Protocol):
    """A file with columns."""

    kind: str
    path: Path
    names: list[str]
    delimiter: str
    rows: int | None

    def types(self) -> list[pa.DataType]:
        """The type of each column."""

    def batches(self, names: Sequence[str], skip: int) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Batches of rows with their position; may start before row ``skip``, never after."""


def open_file(path: Path, style: CsvStyle) -> RecordFile:
    """Open a file of records by what its name ends in.

    Raises
    ------
    InputError
        If it is not there, can't be opened, or is of another format.
    """
    name = path.name.lower()
    if os.path.isdir(path):
        raise InputError(
            f"{path} is a folder, and files are expected beside it.",
            remedy=f'Give one folder alone, or its files by a pattern, as "{path}/*.csv".',
        )
    if not os.path.isfile(path):  # `Path.is_file` fails on a name that is too long
        raise InputError(f"There is no file {path}.", remedy="Check the path.")
    if not name.endswith(SUFFIXES):
        raise InputError(
            f"The format of {path.name} is not known.",
            remedy=f"Files of records end in {', '.join(SUFFIXES)}; save a workbook as CSV.",
        )
    _check_access(path)
    if name.endswith((".csv", ".csv.gz")):
        return CsvFile(path, style)
    if not style.usual:
        raise InputError(
            f"{path.name} is a Parquet file, which has no signs between fields and none before "
            "decimals, and one encoding.",
            remedy="Leave out sep, decimal and encoding (--sep, --decimal, --encoding): they are "
            "for CSV files.",
        )
    return ParquetFile(path)


class CsvFile:
    """A CSV file; every column is read as text, so that public ones can be written verbatim."""

    def __init__(self, path: Path, style: CsvStyle) -> None:
        self.path = path
        self._style = style
        self._compressed = path.name.lower().endswith(".gz")
        self.kind = "csv.gz" if self._compressed else "csv"
        self.rows: int | None = None
        self._version = _version(path)
        line = self._first_line()
        # A tie, also at zero, goes to the comma.
        self.delimiter = style.sep or max(",;\t|", key=line.count)
        names = _attempt(lambda: next(csv.reader([line], delimiter=self.delimiter)))
        self.names = names if names is not None else [line]
        if style.wide and len(self.names) == 1:
            # Other text read in pairs of bytes is one line: rows and all, and nothing to be shown.
            raise self._not_text()

    def types(self) -> list[pa.DataType]:
        """Text, all of them."""
        return [pa.large_string()] * len(self.names)

    def batches(self, names: Sequence[str], skip: int) -> Iterator[tuple[int, pa.RecordBatch]]:
        """All rows from the first: a CSV file has no index."""
        _check_version(self.path, self._version)
        reader, complaint = _listen(lambda: self._open(names))
        row = 0
        while reader is not None:
            batch, complaint = _listen(lambda: _following(reader))
            if batch is None:
                break
            if batch is False:
                return
            columns = [self._style.with_points(column) for column in batch.columns]
            yield row, pa.record_batch(columns, schema=batch.schema)
            row += len(batch)
        self._refuse(complaint)

    def _open(self, names: Sequence[str]) -> Any:
        stream = pa.input_stream(str(self.path), compression="gzip" if self._compressed else None)
        if self._style.encoding != "utf-8":
            stream = pa.transcoding_input_stream(stream, self._style.encoding, "utf-8")
        csv_module = pyarrow.csv
        return csv_module.open_csv(
            stream,
            # One thread: only then does Arrow know the number of a bad row.
            read_options=csv_module.ReadOptions(use_threads=False, block_size=_CSV_BLOCK),
            parse_options=csv_module.ParseOptions(
                delimiter=self.delimiter, newlines_in_values=True
            ),
            convert_options=csv_module.ConvertOptions(
                include_columns=list(names),
                column_types={name: pa.large_string() for name in names},
                strings_can_be_null=False,
            ),
        )

    def _first_line(self) -> str:
        start = _attempt(self._start)
        if start is None:
            raise InputError(
                f"{self.path.name} is damaged: it can't be unpacked.",
                remedy="Write or copy the file again.",
            )
        recoded = self._style.encoding != "utf-8"
        if recoded:  # bytes that do not decode are refused here only if they are in the header
            decoder = codecs.getincrementaldecoder(self._style.encoding)("replace")
            head = _attempt(partial(decoder.decode, start))
            if head is None:  # UTF-16 without a mark of its order of bytes
                raise self._not_text()
            start = head.encode()
        lines = [line for line in start.splitlines() if line.strip()]
        if not lines:
            raise InputError(f"{self.path.name} is empty.", remedy="Give a file with a header.")
        text = _attempt(lambda: lines[0].decode("utf-8-sig"))
        if text is None or "\0" in text or (recoded and "\ufffd" in text):
            raise self._not_text()
        return text

    def _start(self) -> bytes:
        with gzip.open(self.path) if self._compressed else self.path.open("rb") as stream:
            return stream.read(_HEADER_BYTES)

    def _not_text(self) -> EncodingError:
        return EncodingError(
            f"{self.path.name} is not {self._style.encoding.upper()} text.",
            remedy='Name its encoding, as encoding="cp1252" (--encoding cp1252) for files of '
            'western European Windows, "latin-1" or "utf-16", or save it as UTF-8.',
        )

    def _refuse(self, complaint: str) -> None:
        # First what holds for the whole file: which part of it Arrow has seen by now follows from
        # the width of private text.
        if not _attempt(self._decodes):
            raise self._not_text()
        # Of Arrow's words only the numbers of rows and fields are used: the rest quotes the row.
        if found := _WRONG_FIELDS.match(complaint):
            number, expected, actual = map(int, found.groups())
            raise InputError(
                f"Row {number - 1} of {self.path.name} has {actual} fields where the header has "
                f"{expected}.",
                remedy="Mend the row, or quote fields that hold the delimiter.",
            )
        raise InputError(
            f"{self.path.name} can't be read as CSV: it is damaged, or a quote is not closed.",
            remedy="Write the file again.",
        )

    def _decodes(self) -> bool:
        decoder = codecs.getincrementaldecoder(self._style.encoding)()
        with gzip.open(self.path) if self._compressed else self.path.open("rb") as stream:
            while part := stream.read(_HEADER_BYTES):
                decoder.decode(part)
        decoder.decode(b"", final=True)
        return True


class ParquetFile:
    """A Parquet file; passes can start at any of its row groups."""

    kind = "parquet"
    delimiter = ","

    def __init__(self, path: Path) -> None:
        self.path = path
        self._version = _version(path)
        file = _attempt(self._open)
        if file is None:
            raise self._damaged()
        self._schema = file.schema_arrow
        self.names = [str(name) for name in self._schema.names]
        groups = range(file.metadata.num_row_groups)
        self._groups = [file.metadata.row_group(i).num_rows for i in groups]
        if any(size < 0 for size in self._groups):
            raise self._damaged()
        self.rows: int | None = sum(self._groups)

    def types(self) -> list[pa.DataType]:
        """The types as Arrow reads them."""
        return list(self._schema.types)

    def batches(self, names: Sequence[str], skip: int) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Rows from the row group that holds row ``skip`` on."""
        _check_version(self.path, self._version)
        file = _attempt(self._open)
        if file is None:
            raise self._damaged()
        row = 0
        for group, size in enumerate(self._groups):
            # One row group at a time: Arrow holds on to all that one call has read.
            if row + size <= skip:
                row += size
                continue
            for batch in self._group(file, group, names):
                yield row, batch
                row += len(batch)

    def _group(self, file: Any, group: int, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        batches: Any = _attempt(
            lambda: file.iter_batches(_PARQUET_BLOCK, row_groups=[group], columns=[*names])
        )
        while batches is not None:
            batch = _attempt(lambda: _following(batches))
            if batch is None:
                break
            if batch is False:
                return
            yield batch
        raise self._damaged()

    def _open(self) -> Any:
        return pyarrow.parquet.ParquetFile(self.path, buffer_size=1 << 20)

    def _damaged(self) -> InputError:
        return InputError(
            f"{self.path.name} can't be read as Parquet: it is damaged or cut short.",
            remedy="Write or copy the file again.",
        )


def find_files(source: Any) -> tuple[list[Path], str] | None:
    """The files that a path, a folder, a pattern or a list of paths stands for, and their name.

    None if ``source`` is none of these.

    Raises
    ------
    InputError
        If there are no files, one is listed twice, or a folder can't be opened.
    """
    if isinstance(source, (str, os.PathLike)):
        path = Path(source).expanduser()
        if os.path.isdir(path):
            return _checked(_inside(path) or _deeper(path), f"the folder {path}")
        if glob.has_magic(str(path)) and not os.path.exists(path):
            return _checked(sorted(map(Path, glob.glob(str(path)))), f"the pattern {path}")
        return [path], _stem(path)
    if isinstance(source, (list, tuple)):
        paths = [Path(p).expanduser() for p in source if isinstance(p, (str, os.PathLike))]
        if len(paths) == len(source):
            return _checked(paths, "the list of files")
    return None


def find_columns(where: str, present: Sequence[str], wanted: Sequence[str]) -> dict[str, int]:
    """The positions of the wanted columns, in the order of the table.

    Raises
    ------
    InputError
        If one is not there, or is there twice.
    """
    for name in wanted:
        count = list(present).count(name)
        if count == 0:
            there = ", ".join(f"'{c}'" for c in present) or "none"
            remedy = no_headings(present) or f"Its columns: {there}."
            if len(present) == 1:
                remedy += (
                    " If that is no heading, remove what is above the headings, or name the sign "
                    'between fields, as sep=";" (--sep ";").'
                )
            raise InputError(f"{where} has no column '{name}'.", remedy=remedy)
        if count > 1:
            raise InputError(
                f"{where} has {count} columns named '{name}'.", remedy="Give each its own name."
            )
    return {name: at for at, name in enumerate(present) if name in wanted}


def _inside(folder: Path) -> list[Path]:
    try:
        names = sorted(os.listdir(folder))
    except OSError as problem:
        why = problem.strerror
    else:
        return [folder / n for n in names if n.lower().endswith(SUFFIXES) and n[0] != "."]
    raise InputError(
        f"The folder {folder} can't be opened: {why}.", remedy="Ask for the right to read it."
    )


def _deeper(folder: Path) -> list[Path]:
    """No paths, or `InputError` with the pattern that finds the files of a folder's folders."""
    for path in map(Path, sorted(glob.glob(f"{glob.escape(str(folder))}/*/*"))):
        if path.name.lower().endswith(SUFFIXES):
            raise InputError(
                f"There are no files in the folder {folder}, but in {path.parent.name} inside it.",
                remedy=f'Name them by a pattern, as "{folder}/*/*{path.suffix}". What names of '
                "folders say, such as a turbine, must be a column of the files.",
            )
    return []


def _checked(paths: list[Path], what: str) -> tuple[list[Path], str]:
    if not paths:
        raise InputError(
            f"There are no files in {what}.",
            remedy=f"Expected files ending in {', '.join(SUFFIXES)}.",
        )
    # One measurement read twice would count as two records, which adjacency does not allow for.
    resolved = [path.resolve() for path in paths]
    twice = sorted({p.name for p in resolved if resolved.count(p) > 1})
    if twice:
        raise InputError(f"{twice[0]} is listed twice in {what}.", remedy="List every file once.")
    return paths, _stem(paths[0]) if len(paths) == 1 else resolved[0].parent.name


def _stem(path: Path) -> str:
    name = path.name
    return next((name[: -len(s)] for s in SUFFIXES if name.lower().endswith(s)), name)


def _attempt(read: Callable[[], T]) -> T | None:
    # None rather than the reader's own error, whose message may quote a row.
    return _listen(read)[0]


def _listen(read: Callable[[], T]) -> tuple[T | None, str]:
    try:
        return read(), ""
    except _PROBLEMS as problem:
        return None, str(problem)


def _following(batches: Any) -> Any:
    return next(batches, False)


def _check_access(path: Path) -> None:
    try:
        with path.open("rb"):
            return
    except OSError as problem:
        why = problem.strerror
    raise InputError(f"{path} can't be opened: {why}.", remedy="Ask for the right to read it.")


def _version(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns


def _check_version(path: Path, known: tuple[int, int]) -> None:
    # Passes must see the same rows, or public and private columns would no longer match.
    if not path.is_file() or _version(path) != known:
        raise InputError(
            f"{path.name} was changed while it was being read.", remedy="Read it again."
        )
