"""The public clock of wind records: calendar hours, days and weeks, and what is odd about times.

Times with a zone are by UTC, others as they are written: then an hour is in one day and a day in
one week, always, and daylight saving changes nothing but how many records an hour holds.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gridveil.errors import InputError

Whole = NDArray[np.int64]

SECONDS = {"record": 0, "hour": 3600, "day": 86_400, "week": 604_800}
"""The units of protection, and how long each is."""

_MONDAY = 3 * 86_400  # the first of January 1970 was a Thursday


def check_unit(unit: str, *, timed: bool) -> str:
    """A unit of protection, or `InputError` if there is none of this name or no time for it."""
    if unit not in SECONDS:
        raise InputError(
            f"protect is {str(unit)[:40]!r}.", remedy=f"Use {', '.join(SECONDS)} (--protect)."
        )
    if unit != "record" and not timed:
        raise InputError(
            f"To protect a whole {unit}, the time of each record must be known.",
            remedy="Name the column of times with time=COLUMN (--time).",
        )
    return unit


def calendar(moments: Whole, unit: str) -> Whole:
    """The calendar block of each moment; weeks begin on Monday."""
    return (moments + (_MONDAY if unit == "week" else 0)) // SECONDS[unit]


def begin(moments: Whole, unit: str) -> Whole:
    """The first moment of the block that each moment is in."""
    if unit == "record":
        return moments
    return calendar(moments, unit) * SECONDS[unit] - (_MONDAY if unit == "week" else 0)


def largest_group(times: Sequence[Whole], unit: str) -> int:
    """The most records of one turbine in one calendar block. Times must be in order."""
    if unit == "record":
        return 1
    found = 1
    for moments in times:
        starts = np.flatnonzero(np.diff(calendar(moments, unit), prepend=-(2**62)))
        found = max(found, int(np.diff(starts, append=len(moments)).max()))
    return found


def common_step(times: Sequence[Whole]) -> int:
    """The most common positive difference between neighbouring times, in seconds."""
    differences = [np.diff(moments) for moments in times]
    positive = np.concatenate([one[one > 0] for one in differences])
    if not len(positive):
        raise InputError(
            "No turbine has two different times: how far apart records are can't be found.",
            remedy="Check the column of times.",
        )
    values, counts = np.unique(positive, return_counts=True)
    return int(values[np.argmax(counts)])


def oddities(times: Sequence[Whole], names: Sequence[str]) -> list[str]:
    """What is odd about public times, in words: repeated ones, and steps of another length."""
    step = common_step(times)
    found = []
    repeated = [int((np.diff(moments) == 0).sum()) for moments in times]
    if any(repeated):
        at = int(np.argmax(repeated))
        alike = repeated.count(repeated[at]) == len(names)
        most = (
            f"{repeated[at]:,} of each" if alike else f"most of them {names[at]}: {repeated[at]:,}"
        )
        found.append(
            f"{sum(repeated):,} records have the time of another record of their turbine"
            f"{f' ({most})' if len(names) > 1 else ''}. "
            "Remove duplicates, which count as several records. If a clock was set back, write "
            "times with their zone, as 2024-10-27 02:30+01:00."
        )
    uneven = sum(int((np.diff(moments) % step != 0).sum()) for moments in times)
    if uneven:
        found.append(
            f"{uneven:,} records do not follow the one before by a whole number of steps of "
            f"{step:,} seconds: they count for the nearest step."
        )
    steps = {name: common_step([m]) for name, m in zip(names, times, strict=True) if len(m) > 1}
    other = [name for name, own in steps.items() if own != step]
    if other:
        found.append(
            f"Records are {step:,} seconds apart, but those of {', '.join(other[:4])} "
            f"{steps[other[0]]:,}."
        )
    return found


def span(seconds: int) -> str:
    """A time step for people.

    >>> [span(one) for one in (600, 3600, 90, 60)]
    ['10 minutes', '60 minutes', '90 seconds', '1 minute']
    """
    count, unit = (seconds, "second") if seconds % 60 else (seconds // 60, "minute")
    return f"{count:,} {unit}{'' if count == 1 else 's'}"
