"""Records too many for memory: the source is read again, block by block, on every pass.

Rows can't be sorted then, so they must come in the order in which they are released. Private
values are never stored: not in memory beyond a block, and never in a temporary file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gridveil.errors import InputError
from gridveil.wind.io.columns import Vector, compare_neighbours, to_seconds
from gridveil.wind.io.layout import Layout
from gridveil.wind.io.read_options import Capacity, capacity_of
from gridveil.wind.io.sealed_records import Contents, PublicBlock, Span, seal
from gridveil.wind.io.source_rows import Rows, Tally, complete_rows, normalise, read_once
from gridveil.wind.io.sources import Piece, Source


class Streamed:
    """The public columns of records that stay in their files."""

    def __init__(self, source: Source, layout: Layout, spans: Sequence[Span]) -> None:
        self._source = source
        self._layout = layout
        self.spans = spans

    def columns(self, span: Span, names: Sequence[str]) -> Iterator[dict[str, Vector]]:
        """See `Store`."""
        resolved = {name: self._layout.resolve(name) for name in names}
        for _, rows in _walk(self._source, self._layout, [span]):
            yield {name: rows.numbers[column] for name, column in resolved.items()}

    def times(self, span: Span) -> Iterator[NDArray[np.int64]]:
        """See `Store`."""
        name = self._layout.time
        assert name is not None
        for _, rows in _walk(self._source, self._layout, [span]):
            yield to_seconds(rows.columns[name], self._layout.kinds[name])

    def released(self) -> Iterator[PublicBlock]:
        """See `Store`."""
        for span, rows in _walk(self._source, self._layout, self.spans):
            yield PublicBlock(rows.columns, np.full(len(rows), span.capacity))

    def tied(self) -> NDArray[np.bool_] | None:
        """None: keys are strictly increasing."""
        return None


@dataclass(frozen=True, eq=False)
class StreamedPower:
    """Private: the power of spans that stay in their files; see `Blocks`.

    It holds no value. Every pass reads the files again and brings power into [0, 1] of capacity.
    """

    source: Source
    layout: Layout
    spans: Sequence[Span]

    def __call__(self) -> Iterator[Vector]:
        """The rows, in blocks."""
        for span, rows in _walk(self.source, self.layout, self.spans):
            yield normalise(rows.power, span.capacity)[0]


def stream(source: Source, layout: Layout, capacity: Capacity, tally: Tally) -> Contents:
    """Check all records in one pass, and seal a way to read their power again.

    Raises
    ------
    InputError
        If public input can't be used, or rows are not in the order of the public key.
    """
    if layout.key is None:
        raise InputError(
            f"{source.where} is to be streamed, and needs a public key to sort it by.",
            remedy="Name it with key=COLUMN (--key), or read all into memory with stream=False.",
        )
    survey = _Survey(source, layout, capacity)
    read_once(source, layout, tally, survey.add)
    spans = survey.spans
    parts = [StreamedPower(source, layout, [span]) for span in spans]
    everything = StreamedPower(source, layout, spans)
    return seal(Streamed(source, layout, spans), everything, parts, survey.clipped)


class _Survey:
    """The first pass: the order of rows, the spans of turbines, the count of clipped values."""

    def __init__(self, source: Source, layout: Layout, capacity: Capacity) -> None:
        self._source = source
        self._layout = layout
        self._capacity = capacity
        self._last: list[pa.Array] = []
        self.spans: list[Span] = []
        self.clipped = 0

    def add(self, piece: Piece, rows: Rows) -> None:
        if not len(rows):
            return
        by = [name for name in (self._layout.turbine, self._layout.key) if name is not None]
        keys = self._layout.order_columns(rows.columns, by)
        last = self._last or [key.slice(0, 0) for key in keys]
        joined = [pa.concat_arrays(pair) for pair in zip(last, keys, strict=True)]
        if not all(compare_neighbours(joined)):
            self._refuse_order(piece.where)
        self._last = [key.slice(len(key) - 1) for key in keys]
        for name, low, high in self._runs(rows):
            self._extend(name, rows, low, high)

    def _runs(self, rows: Rows) -> Iterator[tuple[str, int, int]]:
        if self._layout.turbine is None:
            yield self._source.name, 0, len(rows)
            return
        runs = pc.run_end_encode(rows.columns[self._layout.turbine])
        low = 0
        for name, high in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
            yield str(name), low, high
            low = high

    def _extend(self, name: str, rows: Rows, low: int, high: int) -> None:
        if self.spans and self.spans[-1].name == name:
            last = self.spans.pop()
            span = Span(name, last.start, last.rows + high - low, last.capacity, last.first)
        else:
            start = self.spans[-1].start + self.spans[-1].rows if self.spans else 0
            limit = capacity_of(self._capacity, name)
            span = Span(name, start, high - low, limit, int(rows.at[low]))
        self.spans.append(span)
        self.clipped += normalise(rows.power[low:high], span.capacity)[1]

    def _refuse_order(self, where: str) -> None:
        key, turbine = self._layout.key, self._layout.turbine
        by = f"'{key}'" if turbine is None else f"'{turbine}', then '{key}'"
        raise InputError(
            f"The rows of {where} are not in the order of {by}, each once: records that are "
            "streamed must be.",
            remedy=f"Sort the file by {by}, or read all into memory with stream=False.",
        )


def _walk(source: Source, layout: Layout, spans: Sequence[Span]) -> Iterator[tuple[Span, Rows]]:
    """Read spans that follow each other, in blocks that do not cross from one to the next."""
    waiting = iter(spans)
    span = next(waiting)
    left = span.rows
    for piece in source.pieces([*layout.types], start=span.first):
        rows, _ = complete_rows(piece, layout)
        while len(rows):
            part, rows = _cut(rows, left)
            yield span, part
            left -= len(part)
            if not left:
                following = next(waiting, None)
                if following is None:
                    return
                span, left = following, following.rows


def _cut(rows: Rows, size: int) -> tuple[Rows, Rows]:
    def part(low: int, high: int | None) -> Rows:
        cut = slice(low, high)
        columns = {n: c[cut] for n, c in rows.columns.items()}
        numbers = {n: v[cut] for n, v in rows.numbers.items()}
        return Rows(columns, numbers, rows.power[cut], rows.at[cut])

    return (rows, part(len(rows), None)) if len(rows) <= size else (part(0, size), part(size, None))
