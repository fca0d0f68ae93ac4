"""Steps: how far something private moves, and how many of one kind make up another.

A release protects a step of its own. A larger one is several of these, one after the other, and
epsilon counts once for each (group privacy); a smaller one is protected as it is. `Step.steps` is
that number, and all that charges are compared by.
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
        return f"{show_exact(self.alpha)} {self.unit}{'' if self.block == ENTRY else whole}"


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
