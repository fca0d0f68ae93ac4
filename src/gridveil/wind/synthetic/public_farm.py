"""The public side of a farm: wind speeds, a public clock, and the protected blocks.

A *block* is one calendar hour, day or week of one turbine, by a public clock; or a single record.
Everything here is computed from wind speeds and times, which are public: all neighbours have the
same rows in the same blocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gridveil.errors import InputError
from gridveil.wind.clock import SECONDS, begin, calendar, check_unit, common_step

Vector = NDArray[np.float64]
Whole = NDArray[np.int64]

GRID = 0.005
"""Functions of wind speed are tabulated at steps of this, in m/s."""
SPEEDS: Vector = np.arange(8001, dtype=np.float64) * GRID
HOURS = 8
"""The number of parts of the day, of three hours each."""

_CHUNK = 60_000


@dataclass(frozen=True, eq=False)
class Chunk:
    """Some rows of one turbine: whole blocks, so that no block is in two chunks.

    Parameters
    ----------
    turbine
        The turbine's place among the turbines.
    rows
        The turbine's rows in this chunk.
    level
        For each row: the place of its wind speed in `SPEEDS`.
    before, after
        For each row: the place of the wind speed one step earlier and later, or its own if that is
        not known. Rows of the same time and wind speed have the same.
    slot
        For each row: how many steps of the clock it is after the farm's first row.
    hour
        For each row: the part of the day.
    block, month, quarter
        For each row: its block, counted from the chunk's first. For each block: its month, counted
        from the farm's first, and its quarter of the year.
    long
        For each row: its long block, counted from the chunk's first. A long block is a day, or the
        unit if that is longer; it is a whole number of blocks.
    """

    turbine: int
    rows: slice
    level: NDArray[np.uint16]
    before: NDArray[np.uint16]
    after: NDArray[np.uint16]
    slot: Whole
    hour: Whole
    block: Whole
    month: Whole
    quarter: Whole
    long: Whole

    def __len__(self) -> int:
        return len(self.level)

    @property
    def blocks(self) -> int:
        """The number of blocks."""
        return len(self.month)

    @property
    def long_blocks(self) -> int:
        """The number of long blocks."""
        return int(self.long[-1]) + 1

    def later(self, lag: int) -> tuple[Whole, NDArray[np.bool_]]:
        """Find the row ``lag`` slots after each row, and whether it is in the same long block."""
        n = len(self)
        after = np.minimum(np.arange(n) + lag, n - 1)
        found = self.slot[after] == self.slot + lag
        if not found.all():
            missing = np.flatnonzero(~found)
            at = np.searchsorted(self.slot, self.slot[missing] + lag)
            after[missing] = np.minimum(at, n - 1)
            found[missing] = self.slot[after[missing]] == self.slot[missing] + lag
        return after, found & (self.long[after] == self.long)


@dataclass(frozen=True, eq=False)
class Turbine:
    """The public columns of one turbine, in small types to save memory.

    ``alike`` marks rows with the time and wind speed of the row before.
    """

    level: NDArray[np.uint16]
    alike: NDArray[np.bool_]
    slot: NDArray[np.int32]
    hour: NDArray[np.uint8]
    block: NDArray[np.int32]
    long: NDArray[np.int32]
    month: NDArray[np.int32]
    quarter: NDArray[np.uint8]
    cuts: Whole

    def __len__(self) -> int:
        return len(self.level)


class Farm:
    """Wind speeds and times of all turbines, and their blocks.

    Parameters
    ----------
    speeds
        Wind speeds in m/s, one array for each turbine.
    times
        Seconds since 1970 of each row, in order, or None if there is no time: then every record
        is a block.
    unit
        ``"record"``, ``"hour"``, ``"day"`` or ``"week"``.

    Raises
    ------
    InputError
        If a unit needs times, times are not in order, or speeds can't be in m/s.
    """

    def __init__(
        self,
        speeds: Sequence[ArrayLike],
        times: Sequence[ArrayLike] | None,
        unit: str = "record",
    ) -> None:
        self.unit = check_unit(unit, timed=times is not None)
        self.timed = times is not None
        known = [] if times is None else [np.asarray(t, dtype=np.int64) for t in times]
        moments: Sequence[Whole | None] = known or [None] * len(speeds)
        self.step = common_step(known) if known else 0
        self._first = min((int(t[0]) for t in moments if t is not None), default=0)
        self._first_month = _month(np.array([self._first]))[0]
        self.turbines = [self._turbine(v, t) for v, t in zip(speeds, moments, strict=True)]
        self.rows = sum(len(t) for t in self.turbines)
        self.blocks = sum(len(t.month) for t in self.turbines)
        self.months = 1 + max(int(t.month.max()) for t in self.turbines)
        self.slots = 1 + max(int(t.slot.max()) for t in self.turbines)
        self._check_speeds()

    @property
    def size(self) -> int:
        """The number of turbines."""
        return len(self.turbines)

    @property
    def length(self) -> float:
        """The number of records in a full block."""
        return 1.0 if self.unit == "record" else max(SECONDS[self.unit] / self.step, 1.0)

    @property
    def long_length(self) -> float:
        """The number of records in a full long block."""
        if not self.timed:
            return 1.0
        return max(SECONDS["day"] / self.step, self.length)

    @cached_property
    def counts(self) -> Vector:
        """The number of rows at each level of wind speed, for each turbine."""
        counts = [np.bincount(t.level, minlength=len(SPEEDS)) for t in self.turbines]
        return np.array(counts, dtype=np.float64)

    def quantile_of(
        self, table: Vector, share: float, where: NDArray[np.bool_] | None = None
    ) -> float:
        """Compute a quantile of a table over `SPEEDS`, over all rows or those in ``where``."""
        order = np.argsort(table, kind="stable")
        total = self.counts.sum(axis=0) * (1.0 if where is None else where)
        below = np.cumsum(total[order])
        return float(table[order][np.searchsorted(below, share * below[-1])])

    def chunks(self, turbine: int) -> Iterator[Chunk]:
        """Yield the rows of one turbine, in whole long blocks."""
        t = self.turbines[turbine]
        for low, high in zip(t.cuts[:-1], t.cuts[1:], strict=True):
            rows = slice(int(low), int(high))
            first, last = int(t.block[low]), int(t.block[high - 1]) + 1
            yield Chunk(
                turbine,
                rows,
                t.level[rows],
                self._levels(t, rows, -1),
                self._levels(t, rows, 1),
                t.slot[rows].astype(np.int64),
                t.hour[rows].astype(np.int64),
                t.block[rows].astype(np.int64) - first,
                t.month[first:last].astype(np.int64),
                t.quarter[first:last].astype(np.int64),
                t.long[rows].astype(np.int64) - int(t.long[low]),
            )

    def _levels(self, turbine: Turbine, rows: slice, step: int) -> NDArray[np.uint16]:
        """Return the levels of the wind speeds a step away, or a row's own if there is none.

        Rows that are alike have the same neighbours, those of the first or last of them: their
        order depends on the order of the source, and so on power if that is sorted by power.
        """
        own, new = np.arange(rows.start, rows.stop), ~turbine.alike[rows]
        first = np.flatnonzero(new)
        edge = first if step < 0 else np.append(first[1:], len(own)) - 1
        other = np.clip(own[edge[np.cumsum(new) - 1]] + step, 0, len(turbine) - 1)
        known = turbine.slot[other] == turbine.slot[own] + step
        return np.asarray(turbine.level[np.where(self.timed & known, other, own)])

    def every_chunk(self) -> Iterator[Chunk]:
        """Yield the chunks of all turbines."""
        for turbine in range(self.size):
            yield from self.chunks(turbine)

    def _turbine(self, speed: ArrayLike, moments: Whole | None) -> Turbine:
        level = np.rint(np.clip(np.asarray(speed, dtype=np.float64), 0, SPEEDS[-1]) / GRID)
        if moments is None:
            rows = np.arange(len(level), dtype=np.int32)
            calm = np.zeros(len(level), dtype=np.uint8)
            level, alike = level.astype(np.uint16), np.zeros(len(level), dtype=np.bool_)
            return Turbine(level, alike, rows, calm, rows, rows, 0 * rows, calm, _cuts(rows))
        if (np.diff(moments) < 0).any():
            raise InputError(
                "Times of a turbine are not in order.", remedy="Sort its rows by time."
            )
        slot = np.rint((moments - self._first) / self.step)
        long = _numbered(calendar(moments, "week" if self.unit == "week" else "day"))
        rows = np.arange(len(level), dtype=np.int32)
        block = rows if self.unit == "record" else _numbered(calendar(moments, self.unit))
        starts = np.flatnonzero(np.diff(block, prepend=-1))
        # A block has the month and quarter of its beginning.
        begins = begin(moments[starts], self.unit)
        month = _month(begins)
        return Turbine(
            level.astype(np.uint16),
            (np.diff(moments, prepend=-1) == 0) & (np.diff(level, prepend=-1) == 0),
            slot.astype(np.int32),
            (moments % 86_400 * HOURS // 86_400).astype(np.uint8),
            block,
            long,
            np.maximum(month - self._first_month, 0).astype(np.int32),
            (month % 12 // 3).astype(np.uint8),
            _cuts(long),
        )

    def _check_speeds(self) -> None:
        top = self.quantile_of(SPEEDS, 0.99)
        if not 3.0 <= top < SPEEDS[-1]:
            raise InputError(
                f"99% of the wind speeds are at or below {top:g}, which can't be in m/s.",
                remedy="The method synthetic knows power curves in m/s: convert the column.",
            )


def _month(moments: Whole) -> Whole:
    return moments.astype("datetime64[s]").astype("datetime64[M]").astype(np.int64)


def _numbered(calendar: Whole) -> NDArray[np.int32]:
    return np.cumsum(np.diff(calendar, prepend=calendar[:1]) != 0).astype(np.int32)


def _cuts(long: NDArray[np.int32]) -> Whole:
    """Choose where chunks begin and end, at the ends of long blocks."""
    starts = np.flatnonzero(np.diff(long, prepend=-1))
    wanted = np.arange(0, len(long), _CHUNK)
    chosen = starts[np.minimum(np.searchsorted(starts, wanted), len(starts) - 1)]
    return np.unique(np.append(chosen[chosen < len(long)], len(long))).astype(np.int64)
