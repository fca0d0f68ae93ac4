"""The public clock of a load series: whole calendar days in equal steps.

Times with a zone are converted to UTC, others are taken as written. A series starts at the
beginning of a day, ends with the end of one and has no gaps. So every day has the same number of
steps, and every block follows from the first time, the step and the number of days.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gridveil.errors import InputError
from gridveil.privacy.adjacency import ALTOGETHER, BLOCKS, ENTRY

Ints = NDArray[np.int64]

DAY = 86_400
_HOUR = 3600
_MONDAY = 3 * DAY  # the first of January 1970 was a Thursday


@dataclass(frozen=True)
class Clock:
    """The times of a series' entries.

    Parameters
    ----------
    start
        The first time: seconds since 1970, the beginning of a day.
    slots
        Steps in a day.
    days
        Calendar days.
    zone
        ``"UTC"``, or ``"as written"``.
    """

    start: int
    slots: int
    days: int
    zone: str

    @classmethod
    def of(cls, moments: Ints, zone: str, where: str) -> Clock:
        """Make the clock of public times, or raise `InputError` if they are not whole days."""
        apart = np.diff(moments)
        steps = np.unique(apart)
        if len(steps) != 1 or steps[0] <= 0:
            raise InputError(
                f"{_uneven(moments, apart, zone)} in {where}: a series has equal steps.",
                remedy="Give every time once, in UTC if clocks were changed, and fill gaps in.",
            )
        step, first = int(steps[0]), int(moments[0])
        if _HOUR % step:
            raise InputError(
                f"The times of {where} are {step:,} seconds apart.",
                remedy="Give a value for every hour, half hour or quarter of an hour.",
            )
        slots = DAY // step
        if first % DAY or len(moments) % slots:
            raise InputError(
                f"{where} does not begin and end with a calendar day.",
                remedy="Cut it to whole days, from midnight to midnight.",
            )
        return cls(first, slots, len(moments) // slots, zone)

    @property
    def size(self) -> int:
        """The number of entries of each load."""
        return self.slots * self.days

    @property
    def moments(self) -> Ints:
        """The time of every entry, in seconds since 1970."""
        return self.start + (DAY // self.slots) * np.arange(self.size, dtype=np.int64)

    @cached_property
    def week(self) -> Ints:
        """The calendar week of every day, counted from 0; weeks begin on Monday."""
        found = (self.start + DAY * np.arange(self.days) + _MONDAY) // (7 * DAY)
        return np.asarray(found - found[0], dtype=np.int64)

    @cached_property
    def weekday(self) -> Ints:
        """The weekday of every day: 0 is Monday."""
        return np.asarray((self.start // DAY + np.arange(self.days) + 3) % 7, dtype=np.int64)

    @cached_property
    def kind(self) -> Ints:
        """0 for every day from Monday to Friday, 1 for Saturdays and Sundays."""
        return (self.weekday >= 5).astype(np.int64)

    @property
    def weeks(self) -> int:
        """The number of calendar weeks that the days touch."""
        return int(self.week[-1]) + 1

    @property
    def members(self) -> dict[str, int]:
        """The most entries in a block of each kind, and the numbers of blocks; see `Adjacency`."""
        return {
            "hour": self.slots // 24,
            "day": self.slots,
            "week": self.slots * self.days_in("week"),
            ALTOGETHER: self.size,
            "hours": 24 * self.days,
            "days": self.days,
            "weeks": self.weeks,
        }

    def entries_in(self, block: str) -> int:
        """Return the most entries of one load in a block."""
        return 1 if block == ENTRY else self.members[block]

    def days_in(self, block: str) -> int:
        """Return the most days that a block touches."""
        if block == ALTOGETHER:
            return self.days
        return int(np.bincount(self.week).max()) if block == "week" else 1


def check_block(protect: str) -> str:
    """Return the protected block, or raise `InputError` if there is no such block."""
    if not isinstance(protect, str) or protect not in BLOCKS:
        raise InputError(
            f"protect is {str(protect)[:40]!r}.", remedy=f"Use {', '.join(BLOCKS)} (--protect)."
        )
    return protect


def _uneven(moments: Ints, apart: Ints, zone: str) -> str:
    """What is wrong first with times whose steps differ, and after which of them."""
    if not len(apart):
        return "There is only one time"
    steps, counts = np.unique(apart[apart > 0], return_counts=True)
    usual = steps[counts.argmax()] if len(steps) else 0
    place = int((apart != usual).argmax())
    odd = "have a gap" if apart[place] > usual else "have one too many"
    odd = "repeat or are not in order" if apart[place] <= 0 else odd
    after = np.datetime64(int(moments[place]), "s").item()
    return f"The times {odd} after {after}{' UTC' * (zone == 'UTC')}"
