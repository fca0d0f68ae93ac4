"""The queries of a load series, and how far each moves between neighbours.

Every private load is rounded to whole steps of a public grid ``g`` (a power of two near alpha/4096)
when it is opened. Profiles of a day are whole numbers too. So every answer is an exact sum of whole
numbers below 2^53: it does not depend on the order of summation, and a coordinate whose entries are
the same for two neighbours has the same bits. docs/maths/load-series.md proves the bounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from gridveil.errors import InputError
from gridveil.grid.series.clock import Clock
from gridveil.privacy.account import Account
from gridveil.privacy.adjacency import ENTRY
from gridveil.privacy.mechanisms import laplace
from gridveil.privacy.sealed import Range, Sealed
from gridveil.privacy.sensitivity import Sensitivity, calibrate_laplace, power_of_two_below

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

KINDS = 2
"""Kinds of days: from Monday to Friday, and the others."""

_FINE = 2**12  # alpha has at least this many steps of the grid
_PROFILE = 2**10  # profiles are whole numbers of 1/1024
_EXACT = 2**52
_READING = Fraction(16, 2**53)  # relative: eight roundings of each of two values


SHAPES = 7
"""Profiles of a load's day: three waves of two profiles each, and a constant (asked as a sum)."""

MOST_WAVES = 15
"""The most profiles of the total's day: `reach` tries all combinations of their signs."""


def profiles(slots: int, count: int) -> Ints:
    """Return public profiles of a day: a constant, then waves of one, two, ... periods a day.

    They are whole numbers, and up to rounding they are orthogonal and have length 1024.
    """
    angle = 2 * np.pi * (np.arange(slots) + 0.5) / slots
    rows = [np.full(slots, math.sqrt(1 / slots))]
    for wave in range(1, count // 2 + 1):
        rows += [f(wave * angle) * math.sqrt(2 / slots) for f in (np.cos, np.sin)]
    return np.asarray(np.rint(_PROFILE * np.array(rows[:count])), dtype=np.int64)


def reach(profile: Ints) -> int:
    """Compute how far the profiles' coefficients move in L1 if every slot moves by up to one unit.

    This is ``max over |d_s| <= 1 of sum_j |sum_s p_js d_s|``. A convex function of ``d`` is largest
    if every ``d_s`` is 1 or -1, and swapping the two maxima leaves one over signs of the profiles,
    ``max over signs of sum_s |sum_j sign_j p_js|``. All signs are tried; the first may be +.
    """
    count = len(profile)
    signs = 1 - 2 * ((np.arange(2 ** (count - 1))[:, None] >> np.arange(count - 1)) & 1)
    signed = np.column_stack([np.ones(len(signs), dtype=np.int64), signs])
    return int(np.abs(signed @ profile).sum(axis=1).max())


@dataclass(frozen=True, eq=False)
class Frame:
    """The public facts of a series: its clock, number of loads, range, and what neighbours are.

    Parameters
    ----------
    clock, loads
        The public shape.
    range
        The public range of an entry, MW.
    alpha, block
        How far an entry moves, and which entries of one load move together.
    """

    clock: Clock
    loads: int
    range: Range
    alpha: Fraction
    block: str

    @property
    def grid(self) -> Fraction:
        """The grid that entries are rounded to (MW)."""
        return power_of_two_below(self.alpha / _FINE)

    @property
    def steps(self) -> int:
        """The most steps of the grid that a rounded entry moves between neighbours.

        Values are read from decimals, so those of exact neighbours may be a few roundings further
        apart than alpha.
        """
        ends = Fraction(max(abs(self.range.low), abs(self.range.high)))
        return math.floor((self.alpha + _READING * ends) / self.grid) + 1

    @property
    def largest(self) -> int:
        """The largest size of an entry, in steps of the grid."""
        ends = max(abs(self.range.low), abs(self.range.high))
        return math.ceil(Fraction(ends) / self.grid)

    def counted(self, values: Floats) -> Ints:
        """Round opened entries to whole steps: ``(days, slots, loads)``."""
        steps = np.rint(values / float(self.grid)).astype(np.int64)
        return steps.reshape(self.clock.days, self.clock.slots, self.loads)

    def moved(self, profile: Ints) -> int:
        """Bound how far one day's coefficients move in L1 if each entry of a block moves by 1."""
        if self.block == ENTRY:
            return int(np.abs(profile).sum(axis=0).max())
        if self.block == "hour":
            hours = np.split(profile, 24, axis=1)
            return max(reach(one) for one in hours)
        return reach(profile)


@dataclass(frozen=True, eq=False)
class Query:
    """One query: whole numbers computed from a series, and how far they move.

    Parameters
    ----------
    name
        The key of the query in shares and answers.
    words
        What is asked, for the plan and the statement.
    shape
        The shape of the answer.
    unit
        The MW of one whole number.
    moves
        The most that the answer moves in L1, in whole numbers, if a block of entries moves.
    moving
        The most coordinates that move.
    largest
        The largest size of a coordinate, in whole numbers.
    why
        Why it moves no further, for the statement.
    ask
        Computes the answer from rounded entries ``(days, slots, loads)``.
    """

    name: str
    words: str
    shape: tuple[int, ...]
    unit: Fraction
    moves: int
    moving: int
    largest: int
    why: str
    ask: Callable[[Ints], Ints]

    @property
    def sensitivity(self) -> Sensitivity:
        """The sensitivity: how far the answer moves between neighbours, in MW."""
        return Sensitivity(self.moves * self.unit, why=self.why, moving=self.moving, separate=True)

    @property
    def range(self) -> Range:
        """The public range of every coordinate of the answer."""
        end = float(self.largest * self.unit)
        return Range(-end, end)

    def scale(self, epsilon: Fraction) -> float:
        """Compute the scale of the noise (MW)."""
        return calibrate_laplace(self.sensitivity, epsilon, self.range).scale_in_units

    def check(self) -> None:
        """Raise `InputError` if the numbers are too large to be exact."""
        if self.largest > _EXACT:
            raise InputError(
                f"Sums of the loads' public range are too large for alpha ({self.words}).",
                remedy="Give a narrower range (--range load=0:500), or a larger alpha.",
            )

    def answer(
        self, account: Account, sealed: Sealed[Floats], frame: Frame, epsilon: Fraction
    ) -> tuple[Floats, float]:
        """Ask the query; return the noisy answer in MW and its noise's standard deviation."""

        def opened(values: Floats) -> Floats:
            return np.asarray(self.ask(frame.counted(values)).ravel() * float(self.unit))

        noisy = laplace(
            account,
            sealed,
            query=opened,
            name=self.words,
            sensitivity=self.sensitivity,
            epsilon=epsilon,
            size=math.prod(self.shape),
            range=self.range,
            unit="MW",
        )
        deviation = math.sqrt(2) * noisy.record.calibration.scale_in_units
        return noisy.value.reshape(self.shape), deviation


def all_queries(frame: Frame, waves: int) -> dict[str, Query]:
    """Return every query of a series by name.

    ``waves`` is the number of daily profiles asked for the total load.
    """
    clock, loads, block = frame.clock, frame.loads, frame.block
    days, slots, step = clock.days, clock.slots, frame.steps
    entries, touched = clock.entries_in(block), clock.days_in(block)
    shapes, totals = profiles(slots, SHAPES)[1:], profiles(slots, waves)
    fine = frame.grid / _PROFILE
    first = np.flatnonzero(np.diff(clock.week, prepend=-1))
    weeks_touched = clock.weeks if block == "altogether" else 1

    def shape(x: Ints) -> Ints:
        sums = [x[clock.kind == kind].sum(axis=0) for kind in range(KINDS)]
        return np.array([shapes @ one for one in sums])

    what = (
        f"{step} steps of {float(frame.grid):.3g} MW a {'value' if entries == 1 else 'value each'}"
    )
    found = [
        Query(
            "year", "sum of each load over all days", (loads,), frame.grid,
            step * entries, 1, frame.largest * clock.size,
            f"{entries:,} values of one load move by at most {what}",
            lambda x: x.sum(axis=(0, 1)),
        ),
        Query(
            "weeks", "sum of each load over each week", (clock.weeks, loads), frame.grid,
            step * entries, weeks_touched, frame.largest * 7 * slots,
            f"{entries:,} values of one load move by at most {what}",
            lambda x: np.add.reduceat(x.sum(axis=1), first, axis=0),
        ),
        Query(
            "days", "sum of each load over each day", (days, loads), frame.grid,
            step * entries, touched, frame.largest * slots,
            f"{entries:,} values of one load move by at most {what}",
            lambda x: x.sum(axis=1),
        ),
        Query(
            "shapes", "waves of each load's day, summed over workdays and over weekends",
            (KINDS, SHAPES - 1, loads), fine,
            step * frame.moved(shapes) * touched,
            (SHAPES - 1) * min(KINDS, touched), frame.largest * int(np.abs(shapes).sum(1).max())
            * days,
            f"{touched:,} days of one load move, and the waves of each by at most "
            f"{frame.moved(shapes):,}/{_PROFILE} of {what}",
            shape,
        ),
        Query(
            "totals", "waves of each day's total load", (days, waves), fine,
            step * frame.moved(totals) * touched, waves * touched,
            frame.largest * loads * int(np.abs(totals).sum(1).max()),
            f"{touched:,} days of one load move, and the waves of each by at most "
            f"{frame.moved(totals):,}/{_PROFILE} of {what}",
            lambda x: x.sum(axis=2) @ totals.T,
        ),
        Query(
            "peak", "highest total load", (1,), frame.grid,
            step, 1, frame.largest * loads,
            f"the highest of some totals moves no further than each of them: {what}",
            lambda x: np.atleast_1d(x.sum(axis=2).max()),
        ),
    ]  # fmt: skip
    return {one.name: one for one in found}
