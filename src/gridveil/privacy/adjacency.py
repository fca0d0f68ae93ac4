"""Who counts as a neighbour, and how many steps of one promise make up another.

A step is an amount (30 MW), a share of something public (15% of a turbine's capacity), or relative:
20% of the entry's own value (`RELATIVE`). Neighbours by a relative step ``r`` have one entry that
differs by a factor of at most ``1 + r``; docs/maths/relative-steps.md has the proofs.

Steps may differ by public class (`Adjacency.classes`): lines of 380 kV by 100 MW, others by 20 MW.
Who knows one step alone has the smallest, by which every entry may move for the same epsilon.

Most often one entry differs. If entries have times, all entries of a calendar block may: an hour, a
day or a week of one turbine or load, or all that it has (`ALTOGETHER`). Blocks are *nested*: every
entry is in one hour, every hour in one day, every day in one week, every week in the whole.
`blocks_in` says how many blocks of one kind make up one of another, and `relative_steps` how many
relative steps.

A release protects a step of its own. A larger one is several of these, one after the other, and
epsilon counts once for each (group privacy); a smaller one is protected as it is. `Step.steps` is
that number, and all that the ledger compares charges by.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from gridveil.errors import InputError, show_exact
from gridveil.privacy.exact_numbers import Exact, exact, positive
from gridveil.privacy.sealed import Range

RELATIVE = "of its value"
"""The unit of relative steps."""

ENTRY, ALTOGETHER = "entry", "altogether"
"""The smallest block, an entry by itself, and the largest: all entries of one turbine or load."""

BLOCKS = {ENTRY: 0, "hour": 1, "day": 24, "week": 168, ALTOGETHER: 10**9}
"""Blocks of entries, from small to large, and how many hours each has (the last: any number)."""

_LEAST_SHARE, _MOST_SHARE = Fraction(1, 1000), Fraction(10)


def relative_steps(far: Fraction, step: Fraction) -> int:
    """How many relative steps lead to a factor of ``1 + far``: the least ``k``, exactly.

    >>> [relative_steps(Fraction(far), Fraction("0.2")) for far in ("0.2", "0.44", "19")]
    [1, 2, 17]
    """
    if far <= 0:
        return 0
    # A float is nearly right; the rationals decide.
    count = max(round(math.log1p(far) / math.log1p(step)) - 1, 0)
    reached = (1 + step) ** count
    while reached < 1 + far:
        reached *= 1 + step
        count += 1
    return count


def width_of(low: float, high: float, unit: str) -> Fraction:
    """How far it is from one end of a range to the other, in the unit of alpha."""
    lower, upper = Fraction(low), Fraction(high)
    return upper / lower - 1 if unit == RELATIVE else upper - lower


def steps_over(low: float, high: float, alpha: Fraction, unit: str) -> int:
    """How many steps lead from one end of a range to the other."""
    far = width_of(low, high, unit)
    return relative_steps(far, alpha) if unit == RELATIVE else math.ceil(far / alpha)


def blocks_in(whole: str, part: str, members: Mapping[str, int], *, clocks: int = 1) -> int:
    """How many blocks of one kind, ``part``, hold all entries of a block of another, ``whole``.

    One, if the part is no smaller: blocks are nested. Else as many as there are hours in a day,
    say; of single entries, as many as one block holds at most (``members``; `KeyError` if that is
    not known).

    By two clocks (UTC and a local one) blocks are not nested. A block of ``L`` hours by one is at
    most ``L + 1`` hours by the other, where daylight saving ends, and begins anywhere: it touches
    at most ``ceil((L + 1)/l) + 1`` blocks of ``l`` hours, which is at most ``L/l + 3``, and 3 if
    ``L <= l``. Its entries are those of at most 3 blocks of its own kind.

    How many hours, days and weeks there are altogether is in ``members`` (``"hours"``, ...); by
    another clock they are at most 3 more, since only the ends and daylight saving differ.

    >>> blocks_in("day", "week", {}), blocks_in("week", "day", {})
    (1, 7)
    >>> blocks_in("day", "entry", {"day": 144}), blocks_in("week", "day", {}, clocks=2)
    (144, 10)
    >>> blocks_in("altogether", "day", {"altogether": 8760, "days": 365})
    365
    """
    if BLOCKS[whole] <= BLOCKS[part]:
        return 1 if clocks == 1 or whole == ENTRY or part == ALTOGETHER else 3
    if whole == ALTOGETHER:
        return members[whole] if part == ENTRY else members[f"{part}s"] + 3 * (clocks - 1)
    if part == ENTRY:
        return members[whole] * (1 if clocks == 1 else 3)
    return BLOCKS[whole] // BLOCKS[part] + (0 if clocks == 1 else 3)


@dataclass(frozen=True)
class Adjacency:
    """Neighbours differ in one entry of a parameter, by at most ``alpha``, inside its range.

    Or in all entries of one calendar block, each by at most ``alpha``. Length, order, missing rows
    and everything public are the same in both.

    Parameters
    ----------
    parameter, key
        The private parameter, in the words that people read, and what the ledger knows it by,
        whatever the words: ``"power"``, ``"load"``.
    alpha, unit
        How far an entry may move; the unit is that of the range too, unless it is `RELATIVE`.
    range, entries, each
        The public range of an entry, how many private entries there are, and how many one turbine
        or load has at most (by default: all).
    wholes, measure
        If alpha is a share: of what, by name (the capacity of each turbine), and its unit. The
        ledger compares amounts, not shares.
    block, whose
        What differs as a whole: ``"entry"``, a calendar ``"hour"``, ``"day"`` or ``"week"``, or
        all entries (``"altogether"``), and whose it is: ``"turbine"``, ``"load"``.
    members, clock
        The most entries that an hour, a day and a week hold, if that is known, and whose hours and
        days they are: ``"UTC"``, or ``"as written"``. For a promise about all entries also how
        many there are ``"altogether"``, in how many ``"hours"``, ``"days"`` and ``"weeks"``.
    classes
        If steps differ by public class: the step of each, of which ``alpha`` is the smallest.
    groups
        What people ask about as a whole, in words ("one day of one turbine"), and the most entries
        or blocks that it holds.
    """

    parameter: str
    alpha: Fraction
    unit: str
    range: Range
    entries: int
    wholes: Mapping[str, Fraction] = field(default_factory=dict, hash=False)
    measure: str = ""
    key: str = ""
    block: str = ENTRY
    whose: str = ""
    members: Mapping[str, int] = field(default_factory=dict, hash=False)
    clock: str = ""
    classes: Mapping[str, Fraction] = field(default_factory=dict, hash=False)
    groups: Mapping[str, int] = field(default_factory=dict, hash=False)
    each: int = 0

    def __post_init__(self) -> None:
        if not self.key:
            object.__setattr__(self, "key", self.parameter)

    @classmethod
    def of(
        cls, parameter: str, *, alpha: Exact, unit: str, range: Range, entries: int, **more: Any
    ) -> Adjacency:
        """Check what a user gave and make an adjacency of it."""
        amount = exact(alpha, name="alpha", unit=None if unit.startswith("of ") else unit)
        if unit == RELATIVE:
            _check_relative(parameter, amount, range)
        width = width_of(range.low, range.high, unit)
        if amount > width:
            raise InputError(
                f"alpha is {show_exact(amount)} {unit}, more than the whole range {range} of "
                f"{parameter}.",
                remedy=f"Give alpha {'as a share' if unit.startswith('of ') else 'in'} {unit}, "
                f"at most {float(width):g}{', as 15% or 0.15' if unit.startswith('of ') else ''}.",
            )
        if entries < 1:
            raise InputError(f"There are no values of {parameter} to release.")
        made = cls(parameter, amount, unit, range, entries, **more)
        if made.block not in {ENTRY, *made.members}:
            raise InputError(f"How many entries a {made.block} holds is not known.")
        return made

    @property
    def width(self) -> Fraction:
        """How far it is from one end of the range to the other, in the unit of alpha."""
        return width_of(self.range.low, self.range.high, self.unit)

    @property
    def steps_over_range(self) -> int:
        """How many steps of alpha lead from one end of the range to the other."""
        return steps_over(self.range.low, self.range.high, self.alpha, self.unit)


def _check_relative(parameter: str, amount: Fraction, range: Range) -> None:
    if range.low <= 0:
        high = range.high if range.high > 0 else 5000.0
        low = high / 1e5
        raise InputError(
            f"alpha of {parameter} is a share of each value, and its public range {range} does "
            "not begin above 0.",
            remedy=f"Give a range of values above 0: --range {parameter}={low:g}:{high:g} "
            f"(range=({low:g}, {high:g})), for example. Smaller values are released as if they "
            "were at its lower end.",
        )
    if not _LEAST_SHARE <= amount <= _MOST_SHARE:
        raise InputError(
            f"alpha of {parameter} is {show_exact(100 * amount)}% of each value.",
            remedy="Give a share between 0.1% and 1000%.",
        )


@dataclass(frozen=True)
class Step:
    """How far one entry of a parameter moves, or each entry of a calendar block.

    The fields are those of `Adjacency`, but for ``entries``: the most that one element has, which
    matters only if times are not known. If alpha is a share of something (the capacity of a
    turbine), each element has a step of its own: its share of its whole, by name.
    """

    alpha: Fraction
    unit: str
    wholes: Mapping[str, Fraction] = field(default_factory=dict)
    measure: str = ""
    block: str = ENTRY
    members: Mapping[str, int] = field(default_factory=dict)
    clock: str = ""
    entries: int = field(default=0, compare=False)

    @classmethod
    def of(cls, one: Adjacency) -> Step:
        """The step that a release protects."""
        more = one.wholes, one.measure, one.block, one.members, one.clock, one.each or one.entries
        return cls(one.alpha, one.unit, *more)

    def steps(self, own: Step) -> int:
        """How many of a release's own steps make up this one, for the worst element.

        All entries of this block move: those of each of the release's blocks in it, one block after
        the other, each by as many of its alphas as this alpha needs.

        A day by 30 MW, of a release that protects an hour by 20 MW, is 24 hours, each of which
        moves by 20 MW and then by 10 MW:

        >>> day = Step(Fraction(30), "MW", block="day")
        >>> day.steps(Step(Fraction(20), "MW", block="hour"))
        48
        """
        return math.ceil(self.alphas(own)) * self.blocks(own)

    def alphas(self, own: Step) -> Fraction:
        """How many of a release's own alphas this alpha is, for the worst element.

        An element without a step here could be another under a new name: it has the largest.
        Shares of the entry's own value multiply: 44% is two steps of 20%.
        """
        if self.unit == RELATIVE:
            return Fraction(relative_steps(self.alpha, own.alpha))
        if not own.wholes or not self.wholes:
            return self.alpha / own.alpha
        largest = max(self.wholes.values())
        return max(
            self.alpha * self.wholes.get(name, largest) / (own.alpha * whole)
            for name, whole in own.wholes.items()
        )

    def blocks(self, own: Step) -> int:
        """How many of a release's own blocks hold all entries of a block of this step.

        If the release's times are not known, its entries are taken to lie in the same period as
        those of this step, evenly: if an element has more of them, so has a day.
        """
        members = own.members
        if not members:
            finer = math.ceil(Fraction(own.entries, self.entries)) if self.entries else 1
            members = {block: count * max(finer, 1) for block, count in self.members.items()}
        clocks = len({self.clock, own.clock} - {""})
        return blocks_in(self.block, own.block, members, clocks=max(clocks, 1))

    def widened(self, own: Step) -> Step:
        """The same share of wholes as large as in both, for blocks as full as in both.

        An element that is new may be one that is gone, under another name. So a new one has at
        least the largest whole of before, and one that is gone at least the largest new one.
        """
        largest = max(self.wholes.values(), default=Fraction(0))
        fresh = [whole for name, whole in own.wholes.items() if name not in self.wholes]
        new = max(fresh, default=Fraction(0))
        wholes = {
            name: max(self.wholes.get(name, largest), own.wholes.get(name, new))
            for name in {**self.wholes, **own.wholes}
        }
        members = {
            block: max(self.members.get(block, 0), own.members.get(block, 0))
            for block in {**self.members, **own.members}
        }
        return replace(self, wholes=wholes, members=members)

    def to_json(self) -> dict[str, Any]:
        """The step as a charge holds it."""
        body: dict[str, Any] = {"alpha": str(self.alpha), "unit": self.unit}
        if self.wholes:
            body["wholes"] = {name: str(whole) for name, whole in self.wholes.items()}
            body["measure"] = self.measure
        if self.members:
            body |= {"block": self.block, "members": dict(self.members), "clock": self.clock}
        elif self.entries:
            body["entries"] = self.entries
        return body

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Step:
        """A step from a charge, or an error of Python."""
        wholes = {str(name): positive(whole) for name, whole in body.get("wholes", {}).items()}
        block, members = body.get("block", ENTRY), body.get("members", {})
        entries = body.get("entries", 0)
        counts = [*members.values(), *([entries] if entries != 0 else [])]
        if block not in BLOCKS or not all(type(n) is int and n > 0 for n in counts):
            raise ValueError
        members = {str(kind): count for kind, count in members.items()}
        measure, clock = str(body.get("measure", "")), str(body.get("clock", ""))
        alpha, unit = positive(body["alpha"]), str(body["unit"])
        return cls(alpha, unit, wholes, measure, block, members, clock, entries)

    def __str__(self) -> str:
        whole = ", all entries" if self.block == ALTOGETHER else f", all of a {self.block}"
        share = self.unit == RELATIVE
        amount = f"{show_exact(100 * self.alpha)}%" if share else show_exact(self.alpha)
        return f"{amount} {self.unit}{'' if self.block == ENTRY else whole}"
