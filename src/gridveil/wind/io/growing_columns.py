"""Columns that are put together block by block, with no more memory than they need."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

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
