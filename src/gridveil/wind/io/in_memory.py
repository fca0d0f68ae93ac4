"""Records as a reader hands them over: public rows in blocks, and sealed power. Here in memory.

`Contents` and `Store` are what records in memory and streamed ones have in common.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gridveil.privacy.mechanisms import Blocks
from gridveil.privacy.sealed import Range, Sealed
from gridveil.wind.io.columns import (
    Vector,
    compare_neighbours,
    equal_neighbours,
    plain_type,
    to_numbers,
    to_seconds,
)
from gridveil.wind.io.read_options import Capacity, capacity_of
from gridveil.wind.io.source_rows import (
    Layout,
    Rows,
    Tally,
    normalise,
    read_once,
)
from gridveil.wind.io.sources import BLOCK, Piece, Source

T = TypeVar("T")

Columns = Callable[[], Iterator[dict[str, Vector]]]
"""Public columns of numbers as blocks of rows; each call starts again from the first row."""


@dataclass(frozen=True)
class Span:
    """The rows of one turbine: where they are in the released order, and in the source."""

    name: str
    start: int
    rows: int
    capacity: float
    first: int = 0


@dataclass(frozen=True)
class PublicBlock:
    """Some rows in the released order, without power."""

    columns: dict[str, pa.Array]
    capacity: Vector

    def __len__(self) -> int:
        return len(self.capacity)


class Store(Protocol):
    """The public side of records. Power is in seals beside it, never in it."""

    spans: Sequence[Span]

    def columns(self, span: Span, names: Sequence[str]) -> Iterator[dict[str, Vector]]:
        """Numbers of one span, aligned with the blocks of its power."""

    def times(self, span: Span) -> Iterator[NDArray[np.int64]]:
        """Seconds since 1970 of one span's rows, aligned likewise; needs a column of times."""

    def released(self) -> Iterator[PublicBlock]:
        """All rows, in the released order."""

    def tied(self) -> NDArray[np.bool_] | None:
        """Which rows equal the row before in all that is published; None if none can."""


@dataclass(frozen=True)
class Contents:
    """Records as a reader hands them over: public rows, and sealed power."""

    store: Store
    power: Sealed[Blocks]
    by_span: list[Sealed[Blocks]]
    by_turbine: Sealed[tuple[Blocks, ...]]
    clipped: Sealed[int]


def seal(store: Store, power: Blocks, parts: Sequence[Blocks], clipped: int) -> Contents:
    """Seal power, which must be shares of capacity in [0, 1], and how many values were clipped.

    ``power`` are the blocks of all records, ``parts`` those of each span.
    """
    rows = sum(span.rows for span in store.spans)
    count = Range(0.0, float(rows))
    return Contents(
        store,
        _sealed(power, rows),
        [_sealed(part, span.rows) for part, span in zip(parts, store.spans, strict=True)],
        _sealed(tuple(parts), rows),
        Sealed(clipped, name="clipped values", shape=(), unit="records", range=count),
    )


def _sealed(power: T, rows: int) -> Sealed[T]:
    return Sealed(
        power, name="wind power", shape=(rows,), unit="of capacity", range=Range(0.0, 1.0)
    )


_FIRST_ROWS = 65_536
_MOST_ROWS = 1 << 27  # made room for at once: a damaged file may promise any number


class Growing:
    """A numpy array to which blocks are added at the end.

    Arrow keeps freed blocks for later, so joining a long list of them takes twice the column. Here
    a block is copied into one array that grows in place, and is let go at once. ``rows`` is how
    many are expected, if that is known: the array then never has to grow.
    """

    def __init__(self, dtype: Any, rows: int | None = None) -> None:
        self._values: NDArray[Any] = np.empty(min(rows or _FIRST_ROWS, _MOST_ROWS), dtype=dtype)
        self.size = 0

    def add(self, block: NDArray[Any]) -> None:
        """Add a copy of a block."""
        need = self.size + len(block)
        if need > len(self._values):
            self._values.resize(max(need, len(self._values) * 3 // 2), refcheck=False)
        self._values[self.size : need] = block
        self.size = need

    def finish(self) -> NDArray[Any]:
        """The array. Nothing can be added afterwards."""
        values, self._values = self._values, np.empty(0)
        values.resize(self.size, refcheck=False)
        return values


class FixedWidth:
    """A column of numbers or times, gathered as the bytes that they are."""

    def __init__(self, kind: pa.DataType, rows: int | None = None) -> None:
        self._kind = kind
        self._dtype = np.dtype(f"u{kind.bit_width // 8}")
        self._values = Growing(self._dtype, rows)
        self._gaps: list[NDArray[np.int64]] = []

    def add(self, array: pa.Array) -> None:
        """Add a copy of an array of the column's type."""
        if array.null_count:
            gaps = np.flatnonzero(array.is_null().to_numpy(zero_copy_only=False))
            self._gaps.append(gaps + self._values.size)
        if len(array):
            data = np.frombuffer(array.buffers()[1], dtype=self._dtype)
            self._values.add(data[array.offset : array.offset + len(array)])

    def finish(self) -> pa.Array:
        """The column as one array."""
        values = self._values.finish()
        present = None
        if self._gaps:
            mask = np.ones(len(values), dtype=np.bool_)
            mask[np.concatenate(self._gaps)] = False
            present = pa.array(mask).buffers()[1]
        return pa.Array.from_buffers(self._kind, len(values), [present, pa.py_buffer(values)])


class Chunks:
    """A column of any other type; a dictionary of few values is kept as one."""

    def __init__(self, kind: pa.DataType) -> None:
        self._kind = kind
        self._parts: list[pa.Array] = []

    def add(self, array: pa.Array) -> None:
        """Add an array of the column's type."""
        self._parts.append(array)

    def finish(self) -> pa.Array:
        """The column as one array."""
        joined = pa.chunked_array(self._parts, self._kind)
        self._parts.clear()
        if pa.types.is_dictionary(self._kind):
            joined = joined.unify_dictionaries()
        return joined.combine_chunks()


def gather(kind: pa.DataType, rows: int | None = None) -> FixedWidth | Chunks:
    """A way to put together a column of this type."""
    types = pa.types
    numbers = types.is_integer(kind) or types.is_floating(kind) or types.is_temporal(kind)
    if numbers and not types.is_interval(kind):
        return FixedWidth(kind, rows)
    return Chunks(kind)


class Held:
    """The public columns of records in memory, in the released order.

    The turbine's column is not stored: every span has one value of it.
    """

    def __init__(
        self,
        layout: Layout,
        columns: dict[str, pa.Array],
        numbers: dict[str, Vector],
        turbines: pa.Array | None,
        spans: Sequence[Span],
    ) -> None:
        self._layout = layout
        self._columns = columns
        self._numbers = numbers
        self._turbines = turbines
        self.spans = spans
        self._starts = np.array([span.start for span in spans])
        self._capacities = np.array([span.capacity for span in spans])

    def columns(self, span: Span, names: Sequence[str]) -> Iterator[dict[str, Vector]]:
        """See `Store`."""
        resolved = {name: self._layout.resolve(name) for name in names}
        for low, high in _cuts(span.start, span.rows):
            yield {name: self._number(column, low, high) for name, column in resolved.items()}

    def times(self, span: Span) -> Iterator[NDArray[np.int64]]:
        """See `Store`."""
        name = self._layout.time
        assert name is not None
        for low, high in _cuts(span.start, span.rows):
            yield to_seconds(self._columns[name].slice(low, high - low), self._layout.kinds[name])

    def released(self) -> Iterator[PublicBlock]:
        """See `Store`."""
        for low, high in _cuts(0, sum(span.rows for span in self.spans)):
            spans = self._span_of(low, high)
            columns = {n: c.slice(low, high - low) for n, c in self._columns.items()}
            if self._layout.turbine is not None:
                columns[self._layout.turbine] = pc.take(self._turbines, pa.array(spans))
            yield PublicBlock(columns, self._capacities[spans])

    def tied(self) -> NDArray[np.bool_] | None:
        """See `Store`."""
        key = self._layout.key
        if key is not None and not self._tied_in([key]).any():
            return None
        return self._tied_in([name for name in self._layout.published if name in self._columns])

    def _tied_in(self, names: Sequence[str]) -> NDArray[np.bool_]:
        tied = equal_neighbours(self._layout.order_columns(self._columns, names))
        tied[self._starts] = False
        return tied

    def _number(self, column: str, low: int, high: int) -> Vector:
        if column in self._numbers:
            return self._numbers[column][low:high]
        if column == self._layout.turbine:
            return to_numbers(pc.take(self._turbines, pa.array(self._span_of(low, high))))[0]
        return to_numbers(self._columns[column].slice(low, high - low))[0]

    def _span_of(self, low: int, high: int) -> NDArray[np.int64]:
        return np.searchsorted(self._starts, np.arange(low, high), side="right") - 1


@dataclass(frozen=True, eq=False)
class HeldPower:
    """Private: some rows of power in memory, shares of capacity in [0, 1]; see `Blocks`."""

    power: Vector = field(repr=False)
    start: int
    rows: int

    def __call__(self) -> Iterator[Vector]:
        """The rows, in blocks."""
        return (self.power[low:high] for low, high in _cuts(self.start, self.rows))


def hold(source: Source, layout: Layout, capacity: Capacity, tally: Tally) -> Contents:
    """Read all records into memory, sort them, and seal their power.

    Raises
    ------
    InputError
        If public input can't be used.
    """
    columns, numbers, power = _read(source, layout, tally)
    turbines, codes = _turbines(columns.pop(layout.turbine, None) if layout.turbine else None)
    order = _order(layout, columns, codes)
    if order is not None:
        for name in columns:
            columns[name] = columns[name].take(order)
        positions = order.to_numpy()
        numbers = {name: values[positions] for name, values in numbers.items()}
        power = power[positions]
        del order, positions
    spans = _spans(source, turbines, codes, len(power), capacity)
    clipped = sum(_normalise_in_place(power, span) for span in spans)
    for array in (power, *numbers.values()):
        array.setflags(write=False)
    parts = [HeldPower(power, span.start, span.rows) for span in spans]
    held = Held(layout, columns, numbers, turbines, spans)
    return seal(held, HeldPower(power, 0, len(power)), parts, clipped)


def _read(
    source: Source, layout: Layout, tally: Tally
) -> tuple[dict[str, pa.Array], dict[str, Vector], Vector]:
    types = {name: plain_type(layout.types[name]) for name in layout.published}
    if layout.turbine is not None:
        # Turbines are few: a dictionary is smaller than their names, row by row.
        types[layout.turbine] = pa.dictionary(pa.int32(), types[layout.turbine])
    columns = {name: gather(kind, source.rows) for name, kind in types.items()}
    text_born = [name for name in layout.numeric() if layout.text_born(name)]
    numbers = {name: Growing(np.float64, source.rows) for name in text_born}
    power = Growing(np.float64, source.rows)

    def keep(piece: Piece, rows: Rows) -> None:
        for name, column in columns.items():
            array = rows.columns[name]
            column.add(array.dictionary_encode() if name == layout.turbine else array)
        for name, values in numbers.items():
            values.add(rows.numbers[name])
        power.add(rows.power)

    read_once(source, layout, tally, keep)
    return (
        {name: column.finish() for name, column in columns.items()},
        {name: values.finish() for name, values in numbers.items()},
        power.finish(),
    )


def _turbines(column: pa.Array | None) -> tuple[pa.Array | None, NDArray[np.int32] | None]:
    """The turbines in order, and the place of each row's turbine among them."""
    if column is None:
        return None, None
    order = pc.sort_indices(column.dictionary)
    places = np.empty(len(order), dtype=np.int32)
    places[order.to_numpy()] = np.arange(len(order), dtype=np.int32)
    return column.dictionary.take(order), places[column.indices.to_numpy()]


def _order(
    layout: Layout, columns: dict[str, pa.Array], codes: NDArray[np.int32] | None
) -> pa.Array | None:
    """How to sort rows by turbine, key and all else that is public; None if they are sorted."""
    by_turbine = [] if codes is None else [pa.array(codes)]
    named = [] if layout.key is None else [layout.key]
    if named:
        keys = by_turbine + layout.order_columns(columns, named)
        if all(compare_neighbours(keys)):
            return None
    rest = [name for name in (layout.speed, *layout.published) if name in columns]
    keys = by_turbine + layout.order_columns(columns, list(dict.fromkeys([*named, *rest])))
    if compare_neighbours(keys)[0]:
        return None
    table = pa.record_batch({str(at): column for at, column in enumerate(keys)})
    order = pc.sort_indices(table, sort_keys=[(name, "ascending") for name in table.schema.names])
    return order.cast(pa.uint32()) if len(order) < 2**32 else order  # half the memory


def _spans(
    source: Source,
    turbines: pa.Array | None,
    codes: NDArray[np.int32] | None,
    rows: int,
    capacity: Capacity,
) -> list[Span]:
    if turbines is None or codes is None:
        return [Span(source.name, 0, rows, capacity_of(capacity, source.name))]
    counts = np.bincount(codes, minlength=len(turbines))
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    return [
        Span(name, int(start), int(count), capacity_of(capacity, name))
        for name, start, count in zip(map(str, turbines.to_pylist()), starts, counts, strict=True)
    ]


def _normalise_in_place(power: Vector, span: Span) -> int:
    clipped = 0
    for low, high in _cuts(span.start, span.rows):
        power[low:high], outside = normalise(power[low:high], span.capacity)
        clipped += outside
    return clipped


def _cuts(start: int, rows: int) -> Iterator[tuple[int, int]]:
    stop = start + rows
    return ((low, min(low + BLOCK, stop)) for low in range(start, stop, BLOCK))
