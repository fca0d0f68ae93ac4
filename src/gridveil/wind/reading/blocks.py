"""What records in memory and streamed records have in common: spans of rows, block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gridveil.privacy.mechanisms import Blocks
from gridveil.privacy.sealed import Limits, Sealed
from gridveil.wind.reading.columns import Vector

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

    def released(self) -> Iterator[PublicBlock]:
        """All rows, in the released order."""

    def tied(self) -> NDArray[np.bool_] | None:
        """Which rows equal the row before in all that is published; None where none can."""


@dataclass(frozen=True)
class Contents:
    """Records as a reader hands them over: public rows, and sealed power."""

    store: Store
    power: Sealed[Blocks]
    by_span: list[Sealed[Blocks]]
    by_turbine: Sealed[tuple[Blocks, ...]]
    clipped: Sealed[int]


def seal_turbines(parts: Sequence[Blocks], rows: int) -> Sealed[tuple[Blocks, ...]]:
    """Seal the blocks of every turbine together, for queries about all of them."""
    return Sealed(
        tuple(parts), name="wind power", shape=(rows,), unit="of capacity", limits=Limits(0.0, 1.0)
    )


def seal_power(blocks: Blocks, rows: int) -> Sealed[Blocks]:
    """Seal blocks of power, which must be shares of capacity in [0, 1]."""
    return Sealed(
        blocks, name="wind power", shape=(rows,), unit="of capacity", limits=Limits(0.0, 1.0)
    )


def seal_clipped(count: int, rows: int) -> Sealed[int]:
    """Seal how many values were clipped: for the owner alone."""
    return Sealed(
        count, name="clipped values", shape=(), unit="records", limits=Limits(0.0, float(rows))
    )
