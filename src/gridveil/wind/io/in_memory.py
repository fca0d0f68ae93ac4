"""Records in memory: read as a whole, sorted, and their power sealed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gridveil.wind.io.columns import (
    Vector,
    compare_neighbours,
    equal_neighbours,
    plain_type,
    to_numbers,
    to_seconds,
)
from gridveil.wind.io.growing_columns import Growing, gather
from gridveil.wind.io.layout import Layout
from gridveil.wind.io.read_options import Capacity, capacity_of
from gridveil.wind.io.sealed_records import Contents, PublicBlock, Span, seal
from gridveil.wind.io.source_rows import Rows, Tally, normalise, read_once
from gridveil.wind.io.sources import BLOCK, Piece, Source


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
