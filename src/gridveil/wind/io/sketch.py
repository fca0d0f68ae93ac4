"""The sketch of wind power records: a fingerprint of their public part, for the ledger.

It sees keys, wind speeds and the other published columns, and no power.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gridveil.privacy.ledger import Hashes, Sketch, mixed
from gridveil.wind.io.columns import Kind, is_numeric, is_text, order_values, to_numbers
from gridveil.wind.io.layout import Layout
from gridveil.wind.io.sealed_records import PublicBlock, Store

_TIME = pa.timestamp("us")
_TYPES = {"number": pa.float64(), "time": _TIME, "zoned time": pa.timestamp("us", "UTC")}


def sketch_rows(store: Store, layout: Layout) -> Sketch:
    """The fingerprint of records: one hash for each row's key and wind speed, in one pass.

    Without a key a row is known by everything that is published of it, and by how many rows are
    alike: speeds with one decimal are the same few hundred for every turbine, but not equally
    often. Numbers and times count as such, whether a file has them typed or as text.
    """
    if layout.key is not None:
        names = [layout.key, layout.speed]
        return Sketch.of("wind", (_rows(block, layout, names) for block in store.released()))
    names = [layout.speed, *(name for name in layout.published if name != layout.speed)]
    return Sketch.of("wind", _counted(_rows(block, layout, names) for block in store.released()))


def _rows(block: PublicBlock, layout: Layout, names: list[str]) -> Hashes:
    hashes: Hashes | None = None
    for name in names:
        for part in _values(block.columns[name], layout.kinds[name]):
            hashes = mixed(_bits(part, exact=name == layout.key), hashes)
    assert hashes is not None
    return hashes


def _values(array: pa.Array, kind: Kind) -> list[pa.Array]:
    """What a column says, without how it is written."""
    if not is_text(array.type) or kind == "text":
        return order_values(array, kind)
    if kind not in _TYPES:
        return order_values(array, kind)[:-1]
    try:
        return [array.cast(_TYPES[kind])]  # almost always: the other way takes five times as long
    except pa.ArrowException:
        return order_values(array, kind)[:-1]


def _counted(blocks: Iterator[Hashes]) -> Iterator[Hashes]:
    """One hash for each run of equal rows and its length; rows are sorted, so equal ones meet."""
    last: Hashes = np.empty(0, dtype=np.uint64)
    length = 0
    for block in blocks:
        starts = np.flatnonzero(np.concatenate([[True], block[1:] != block[:-1]]))
        lengths = np.diff(np.append(starts, len(block)))
        values = block[starts]
        if len(last) and values[0] == last[0]:
            lengths[0] += length
        elif len(last):
            yield mixed(np.array([length], dtype=np.uint64), last)
        last, length = values[-1:], int(lengths[-1])
        yield mixed(lengths[:-1].astype(np.uint64), values[:-1])
    if len(last):
        yield mixed(np.array([length], dtype=np.uint64), last)


def _bits(array: pa.Array, *, exact: bool) -> Hashes:
    """A column as 64-bit values, the same however it is typed."""
    if is_numeric(array.type):
        numbers = to_numbers(array)[0] + 0.0  # no negative zero
        # Single precision for what was measured: files differ in how many digits they keep.
        return numbers.view(np.uint64) if exact else _widened(numbers.astype(np.float32))
    if pa.types.is_timestamp(array.type) or pa.types.is_date(array.type):
        ticks = array.cast(_TIME, safe=False).cast(pa.int64())
        return np.asarray(ticks.to_numpy(zero_copy_only=False)).view(np.uint64)
    text = array if is_text(array.type) else pc.cast(array, pa.large_string(), safe=False)
    return _text_bits(text)


def _widened(numbers: np.ndarray[tuple[int], np.dtype[np.float32]]) -> Hashes:
    return numbers.view(np.uint32).astype(np.uint64)


def _text_bits(array: pa.Array) -> Hashes:
    """Hashes of text, all of one length at a time."""
    _, offsets, data = array.buffers()
    ends = np.frombuffer(offsets, dtype=np.int64)[array.offset : array.offset + len(array) + 1]
    letters = np.frombuffer(data or b"", dtype=np.uint8)
    lengths = np.diff(ends)
    found: Hashes = np.zeros(len(array), dtype=np.uint64)
    for length in np.unique(lengths):
        rows = np.flatnonzero(lengths == length)
        words = np.zeros((len(rows), 8 * (int(length) // 8 + 1)), dtype=np.uint8)
        words[:, :length] = letters[ends[rows][:, None] + np.arange(length)]
        hashes: Hashes | None = None
        for word in words.view(np.uint64).T:
            hashes = mixed(word, hashes)
        if hashes is not None:
            found[rows] = hashes
    return found
