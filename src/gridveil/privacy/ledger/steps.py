"""How many steps of one kind make up a step of another: the arithmetic that charges add up by.

A release protects a step of its own alpha. A larger step is several of these, one after the other,
and epsilon counts once for each (group privacy). A smaller one is protected as it is.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from gridveil.errors import show_exact
from gridveil.privacy.adjacency import (
    ALTOGETHER,
    BLOCKS,
    ENTRY,
    RELATIVE,
    Adjacency,
    blocks_in,
    relative_steps,
)

_RATIONAL = re.compile(r"\d{1,400}(/\d{1,400})?", re.ASCII)


@dataclass(frozen=True)
class Step:
    """How far one entry of a parameter moves, or all entries of a calendar block.

    If alpha is a share of something (the capacity of a turbine), each element has a step of its
    own: its share of its whole, by name. ``block``, ``members`` and ``clock`` are as in
    `Adjacency`, and so is ``entries``, if times are not known.
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
    def of(cls, one: Adjacency, far: Fraction | None = None) -> Step:
        """The step of a release's alpha, or one as far as this."""
        return cls(
            one.alpha if far is None else far,
            one.unit,
            one.wholes,
            one.measure,
            one.block,
            one.members,
            one.clock,
            one.entries,
        )

    def times(self, other: Step) -> Fraction:
        """How many times the other step this one is, for the worst element.

        An element without a step here could be another under a new name: it has the largest.
        Steps that are a share of the entry's own value are counted in factors, in whole steps: 44%
        is two steps of 20%.
        """
        if self.unit == RELATIVE:
            return Fraction(relative_steps(self.alpha, other.alpha))
        if not other.wholes or not self.wholes:
            return self.alpha / other.alpha
        largest = max(self.wholes.values())
        return max(
            self.alpha * self.wholes.get(name, largest) / (other.alpha * whole)
            for name, whole in other.wholes.items()
        )

    def steps(self, other: Step) -> int:
        """How many of the other step make up this one, for the worst element.

        All entries of this block move: those of each of the other's blocks in it, one block after
        the other, each by as many steps as its alpha needs (group privacy).
        """
        return math.ceil(self.times(other)) * self.blocks(other)

    def blocks(self, other: Step) -> int:
        """How many blocks of the other step hold all entries of a block of this one."""
        members = other.members
        if not members:
            # Its times are not known. The period is taken for that of this step, so if it had more
            # entries, a day of it had as many times more.
            finer = math.ceil(Fraction(other.entries, self.entries)) if self.entries else 1
            members = {block: count * max(finer, 1) for block, count in self.members.items()}
        clocks = len({self.clock, other.clock} - {""})
        return blocks_in(self.block, other.block, members, clocks=max(clocks, 1))

    def widened(self, other: Step) -> Step:
        """The same share of wholes as large as in both.

        An element that is new may be one that is gone, under another name. So a new one has at
        least the largest whole of before, and one that is gone at least the largest new one.
        """
        nothing, mine, others = Fraction(0), self.wholes, other.wholes
        largest = max(mine.values(), default=nothing)
        new = max((whole for name, whole in others.items() if name not in mine), default=nothing)
        before = {name: max(whole, others.get(name, new)) for name, whole in mine.items()}
        now = {name: max(whole, mine.get(name, largest)) for name, whole in others.items()}
        members = {
            block: max(count, self.members.get(block, 0)) for block, count in other.members.items()
        }
        return replace(self, wholes={**before, **now}, members={**self.members, **members})

    def raised(self, alpha: Fraction) -> Step:
        """The same with an alpha that is no smaller than this."""
        return replace(self, alpha=max(self.alpha, alpha))

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
        return cls(
            positive(body["alpha"]),
            str(body["unit"]),
            wholes,
            str(body.get("measure", "")),
            block,
            {str(kind): count for kind, count in members.items()},
            str(body.get("clock", "")),
            entries,
        )

    def __str__(self) -> str:
        whole = ", all entries" if self.block == ALTOGETHER else f", all of a {self.block}"
        whole = "" if self.block == ENTRY else whole
        return f"{show_exact(self.alpha)} {self.unit}{whole}"


def positive(text: str) -> Fraction:
    """A rational above 0, as the ledger writes it, or `ValueError`."""
    amount = rational(text)
    if amount <= 0:
        raise ValueError
    return amount


def rational(text: str) -> Fraction:
    """A rational as the ledger writes it: no sign, no exponent that takes a year to expand."""
    if not _RATIONAL.fullmatch(text):
        raise ValueError
    return Fraction(text)
