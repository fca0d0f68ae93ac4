"""Records as a reader hands them over: public rows in blocks, and sealed power.

`Contents` and `Store` are what records in memory and streamed ones have in common.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gridveil.privacy.mechanisms import Blocks
from gridveil.privacy.sealed import Range, Sealed
from gridveil.wind.io.columns import Vector

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
