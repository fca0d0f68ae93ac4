"""Where the rows come from: arrays, any re-iterable stream of blocks, or Dask partitions.

The regression and the restoration walk over rows in *passes*.  A pass maps every block of rows,
`(X, y)`, to a few small arrays; only those leave the block.  They are joined in block order, so
the answer does not depend on where the rows are kept.

What a pass computes is a callback: whoever starts it hands `map` a function of one block, which is
called here, or by a Dask worker.  So every module that makes passes calls this one and is called
back: `regression`, `restoration` and `methods`.  Nothing else here calls them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gridveil.wind.features import Features

Floats = NDArray[np.float64]
Block = tuple[Floats, Floats]
RawBlock = tuple[Mapping[str, Any], Any]
T = TypeVar("T")

# A block's arrays should fit a processor's cache; larger ones are several times slower a row.
BLOCK = 8_192
# Tables with no more features than this, in total, keep them (8 MB): most passes then read only.
KEPT = 1_000_000


class Rows(Protocol):
    """Anything that can run a function over all blocks of rows, in order."""

    @property
    def features(self) -> Features:
        """The public feature map."""
        ...

    def map(self, function: Callable[[Floats, Floats], T]) -> Iterator[T]:
        """Yield `function(X, y)` for every block, in block order."""
        ...


class LocalRows(ABC):
    """Rows that are read in this process: the only kind that may hold private power."""

    features: Features

    @abstractmethod
    def blocks(self) -> Iterator[Block]:
        """Yield `(X, y)`; `y` is empty if the rows carry no power."""

    def map(self, function: Callable[[Floats, Floats], T]) -> Iterator[T]:
        """Yield `function(X, y)` for every block, in block order."""
        for X, y in self.blocks():
            yield function(X, y)


@dataclass(frozen=True, repr=False)
class ArrayRows(LocalRows):
    """Rows held in memory; features are computed a block at a time (small tables keep them).

    Parameters
    ----------
    columns
        Public columns, by name; each of shape `(m,)`.
    features
        The public feature map.
    y0
        Power of every row, `(m,)`; may be left out if only features are needed.
    block
        Rows in a block.
    """

    columns: Mapping[str, ArrayLike]
    features: Features
    y0: ArrayLike | None = None
    block: int = BLOCK
    _kept: list[Block] = field(default_factory=list, init=False, compare=False)

    def __post_init__(self) -> None:
        """Check shapes once."""
        _check_block_size(self.block)
        object.__setattr__(self, "columns", _as_columns(self.columns))
        power = np.empty(0) if self.y0 is None else _as_power(self.y0, len(self))
        object.__setattr__(self, "y0", power)

    def __len__(self) -> int:
        """Count the rows."""
        return len(next(iter(self.columns.values())))  # type: ignore[arg-type]

    def __repr__(self) -> str:
        return f"ArrayRows({len(self):,} rows, {self.features!r})"

    def blocks(self) -> Iterator[Block]:
        """Yield `(X, y)`; the features of a small table are kept between passes."""
        if len(self) * self.features.width > KEPT:
            return _split(self.columns, self.y0, self.features, self.block)
        if not self._kept:
            self._kept.extend(_split(self.columns, self.y0, self.features, self.block))
        return iter(self._kept)


@dataclass(frozen=True, repr=False)
class BlockRows(LocalRows):
    """Rows read anew in every pass, say from a Parquet file larger than memory.

    Parameters
    ----------
    read
        Called once a pass; returns an iterator of `(columns, y0)`, always in the same order.
        `y0` may be `None` if only features are needed.
    features
        The public feature map.
    block
        Longer blocks are cut into pieces of this many rows.
    """

    read: Callable[[], Iterable[RawBlock]]
    features: Features
    block: int = BLOCK

    def __post_init__(self) -> None:
        """Check settings."""
        _check_block_size(self.block)
        if not callable(self.read):
            raise ValueError(
                "read must be a function that starts a new pass over the blocks; "
                "for a list of blocks give `lambda: blocks`"
            )

    def __repr__(self) -> str:
        return f"BlockRows({getattr(self.read, '__name__', 'read')}, {self.features!r})"

    def blocks(self) -> Iterator[Block]:
        """Yield `(X, y)` of every block read."""
        for raw in self.read():
            yield from _cut(raw, self.features, self.block)


@dataclass(frozen=True, repr=False)
class DaskRows:
    """Rows in Dask partitions, for public columns and *noisy* power only.

    Private power stays in the owner's process, so the regression refuses these rows as a source
    of power; the restoration, which sees noisy data only, takes them.

    Parameters
    ----------
    partitions
        A list of delayed values or futures, or a Dask bag or dataframe.  A partition is a
        `(columns, y0)` pair, a list of such pairs, or a data frame.
    features
        The public feature map.
    power
        Name of the noisy power column in data frames.
    block
        Partitions are cut into blocks of this many rows.
    """

    partitions: Any
    features: Features
    power: str = "y0"
    block: int = BLOCK

    def __post_init__(self) -> None:
        """Turn a collection into its partitions."""
        _check_block_size(self.block)
        parts = self.partitions
        parts = parts.to_delayed() if hasattr(parts, "to_delayed") else parts
        object.__setattr__(self, "partitions", list(parts))

    def __repr__(self) -> str:
        return f"DaskRows({len(self.partitions)} partitions, {self.features!r})"

    def map(self, function: Callable[[Floats, Floats], T]) -> Iterator[T]:
        """Run `function` where the partitions are; only its results come back, in order."""
        from dask.base import compute
        from dask.delayed import delayed

        run = delayed(_map_partition, pure=False)
        tasks = [run(p, self.features, self.power, self.block, function) for p in self.partitions]
        for results in compute(*tasks):  # type: ignore[no-untyped-call]
            yield from results


def total(parts: Iterable[Sequence[Floats]]) -> list[Floats]:
    """Sum the arrays of all blocks, in block order."""
    sums: list[Floats] = []
    for part in parts:
        sums = [a + b for a, b in zip(sums, part, strict=True)] if sums else list(part)
    if not sums:
        raise ValueError("there are no rows: give at least one block with at least one row")
    return sums


def _map_partition(
    partition: Any,
    features: Features,
    power: str,
    block: int,
    function: Callable[[Floats, Floats], T],
) -> list[T]:
    raws = partition if isinstance(partition, list) else [partition]
    return [
        function(X, y) for raw in raws for X, y in _cut(_as_raw_block(raw, power), features, block)
    ]


def _as_raw_block(value: Any, power: str) -> RawBlock:
    """Read a `(columns, y0)` pair or a data frame with a power column."""
    if isinstance(value, tuple):
        return value
    columns = {str(name): value[name].to_numpy() for name in value.columns}
    return columns, columns.pop(power, None)


def _cut(raw: RawBlock, features: Features, block: int) -> Iterator[Block]:
    columns = _as_columns(raw[0])
    rows = len(next(iter(columns.values())))
    y = np.empty(0) if raw[1] is None else _as_power(raw[1], rows)
    yield from _split(columns, y, features, block)


def _split(columns: Any, y: Any, features: Features, block: int) -> Iterator[Block]:
    rows = len(next(iter(columns.values())))
    for start in range(0, rows, block):
        piece = slice(start, start + block)
        yield features({name: column[piece] for name, column in columns.items()}), y[piece]


def _as_columns(columns: Mapping[str, Any]) -> dict[str, Floats]:
    if not columns:
        raise ValueError("no public columns: give at least one, such as {'speed': ...}")
    arrays = {name: np.asarray(values, dtype=np.float64) for name, values in columns.items()}
    shapes = {name: array.shape for name, array in arrays.items()}
    if len(set(shapes.values())) != 1 or any(len(shape) != 1 for shape in shapes.values()):
        raise ValueError(f"public columns must be vectors of one length, not {shapes}")
    return arrays


def _as_power(y: ArrayLike, rows: int) -> Floats:
    power = np.asarray(y, dtype=np.float64)
    if power.shape != (rows,):
        raise ValueError(f"power has shape {power.shape}, but the public columns have {rows} rows")
    return power


def _check_block_size(block: int) -> None:
    if block < 1:
        raise ValueError(f"block is {block}; give a positive number of rows")
