"""Write published records: files and tables built from the named columns alone.

No metadata of the source is copied. Released power is rounded to a public grid, a millionth of
the capacity, and is always a 64-bit float: the type that it had in the source often follows from
private values (100 alone makes a column of integers, 100.5 does not). CSV has the shortest text
that reads back as the same float.
"""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet
from numpy.typing import NDArray

from gridveil.errors import InputError
from gridveil.wind.io.columns import (
    Vector,
    is_text,
    plain,
    to_numbers,
)
from gridveil.wind.io.growing_columns import Growing
from gridveil.wind.io.layout import Layout
from gridveil.wind.io.read_options import CsvStyle
from gridveil.wind.io.sealed_records import Store
from gridveil.wind.io.sources import BLOCK

Released = Callable[[], Iterator[Vector]]
"""Released power as shares of capacity, in the released order, in blocks of any size."""

STEPS = 1_000_000
"""Released power is a whole number of these parts of the capacity."""

_SPECIAL = '["\r\n]'
_QUOTE = pa.scalar('"', pa.large_string())


def output_schema(layout: Layout) -> pa.Schema:
    """Names and types of the released columns, in the order of the source, without metadata."""
    return pa.schema([pa.field(name, _own_type(kind)) for name, kind in layout.types.items()])


def released_batches(
    store: Store, layout: Layout, schema: pa.Schema, released: Released
) -> Iterator[pa.RecordBatch]:
    """The released rows, block by block.

    Rows that are alike in all that is published are in the order of their released power: the
    order they had in the source would say something about the real one.
    """
    tied = store.tied()
    values = released() if tied is None else _without_trace(released, tied)
    supply = _Supply(values)
    for block in store.released():
        shares = np.clip(supply.take(len(block)), 0.0, 1.0)
        # Adding 0 makes 0 of -0, which would be another text.
        power = np.rint(shares * STEPS) * block.capacity / STEPS + 0.0
        columns = block.columns | {layout.power: pa.array(power)}
        yield pa.record_batch([_restore(columns[f.name], f.type) for f in schema], schema=schema)
    supply.finish()


def write_csv(
    path: Path,
    batches: Iterator[pa.RecordBatch],
    schema: pa.Schema,
    delimiter: str,
    style: CsvStyle,
) -> None:
    """Write rows as CSV in the style of the source; text as it was read, quoted if it must be."""
    with _sink(path) as sink:
        header = io.StringIO()
        csv.writer(header, delimiter=delimiter, lineterminator="\n").writerow(schema.names)
        sink.write(header.getvalue().encode())
        for batch in batches:
            texts = [style.with_points(_as_text(column)) for column in batch.columns]
            fields = [_quoted(text, delimiter) for text in texts]
            lines = _join(fields, delimiter)
            sink.write(("\n".join(lines.to_pylist()) + "\n").encode())


def write_parquet(path: Path, batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> None:
    """Write rows as Parquet, in row groups of `BLOCK` rows however they come."""
    options = {"store_schema": _needs_arrow_schema(schema), "compression": "zstd"}
    with pyarrow.parquet.ParquetWriter(path, schema, **options) as writer:
        rest = schema.empty_table()
        for batch in batches:
            rest = pa.concat_tables([rest, pa.Table.from_batches([batch], schema)])
            while len(rest) >= BLOCK:
                writer.write_table(_in_one(rest.slice(0, BLOCK)))
                rest = rest.slice(BLOCK)
        if len(rest):
            writer.write_table(_in_one(rest))


def to_frame(table: pa.Table, kind: str, dtypes: Mapping[str, Any] | None) -> Any:
    """A table as the source was one: pandas for pandas and for files, polars, or Arrow.

    ``dtypes`` are the library's own types of the public columns.
    """
    if kind == "pyarrow":
        return table
    if kind == "polars":
        import polars

        frame = polars.DataFrame(polars.from_arrow(table))
        return frame.cast({n: t for n, t in (dtypes or {}).items() if t != frame.schema[n]})
    if kind.startswith("csv"):
        table = pa.table({n: _guessed(table.column(n)) for n in table.column_names})
    frame = table.to_pandas(ignore_metadata=True)
    return frame.astype({n: t for n, t in (dtypes or {}).items() if t.kind != "O"})


def _without_trace(released: Released, tied: NDArray[np.bool_]) -> Iterator[Vector]:
    gathered = Growing(np.float64, len(tied))
    for block in released():
        gathered.add(block)
    values: Vector = gathered.finish()
    if len(values) == len(tied):
        sort_tied(values, tied)
    return iter([values])


def sort_tied(values: Vector, tied: NDArray[np.bool_]) -> None:
    """Put the values of rows that are alike in all that is published in order, in place."""
    if tied.any():
        among = tied | np.append(tied[1:], False)  # all of a run, its first row too
        inside = values[among]
        values[among] = inside[np.lexsort((inside, np.cumsum(~tied[among])))]


class _Supply:
    """Hands out blocks of any size from blocks of another."""

    def __init__(self, blocks: Iterator[Vector]) -> None:
        self._blocks = blocks
        self._rest = np.zeros(0)

    def take(self, size: int) -> Vector:
        parts: list[Vector] = []
        while size:
            if not len(self._rest):
                block = next(self._blocks, None)
                if block is None:
                    raise self._wrong("fewer")
                self._rest = np.asarray(block, dtype=np.float64)
            parts.append(self._rest[:size])
            self._rest = self._rest[size:]
            size -= len(parts[-1])
        joined = np.concatenate(parts)
        if np.isnan(joined).any():
            raise InputError("Released power is not all numbers.")
        return joined

    def finish(self) -> None:
        if len(self._rest) or any(len(block) for block in self._blocks):
            raise self._wrong("more")

    def _wrong(self, how: str) -> InputError:
        return InputError(f"There are {how} released values than records.")


def _own_type(kind: pa.DataType) -> pa.DataType:
    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind


def _restore(array: pa.Array, kind: pa.DataType) -> pa.Array:
    if array.type == kind:
        return array
    if pa.types.is_dictionary(kind):
        encoded = array.cast(kind.value_type).dictionary_encode()
        return encoded.cast(pa.dictionary(kind.index_type, kind.value_type))
    return array.cast(kind, safe=False)


def _in_one(table: pa.Table) -> pa.Table:
    return table.unify_dictionaries().combine_chunks()


def _join(parts: list[Any], separator: str) -> pa.Array:
    return pc.binary_join_element_wise(*parts, pa.scalar(separator, pa.large_string()))


def _as_text(column: pa.Array) -> pa.Array:
    return plain(column).cast(pa.large_string()).fill_null("")


def _quoted(text: pa.Array, delimiter: str) -> pa.Array:
    special = pc.or_(pc.match_substring_regex(text, _SPECIAL), pc.match_substring(text, delimiter))
    if not pc.any(special).as_py():
        return text
    doubled = pc.replace_substring(text, '"', '""')
    return pc.if_else(special, _join([_QUOTE, doubled, _QUOTE], ""), text)


@contextmanager
def _sink(path: Path) -> Iterator[BinaryIO]:
    with path.open("wb") as file:
        if not path.name.endswith(".gz"):
            yield file
            return
        # No file name and no time in the header.
        with gzip.GzipFile("", "wb", compresslevel=6, fileobj=file, mtime=0) as packed:
            yield packed  # type: ignore[misc]


def _needs_arrow_schema(schema: pa.Schema) -> bool:
    """Whether Parquet alone would lose a type: then Arrow's own description goes into the file."""
    return any(
        pa.types.is_dictionary(kind)
        or pa.types.is_duration(kind)
        or (pa.types.is_timestamp(kind) and (kind.unit == "s" or kind.tz not in (None, "UTC")))
        for kind in schema.types
    )


def _guessed(column: pa.ChunkedArray) -> pa.Array:
    """A column of CSV text as numbers, if it is all numbers."""
    array = column.combine_chunks()
    if not is_text(array.type):
        return array
    numbers, bad = to_numbers(array)
    return array if bad is not None or np.isnan(numbers).all() else pa.array(numbers)
