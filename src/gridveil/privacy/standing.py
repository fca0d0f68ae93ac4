"""What a dataset's entries add up to, and what they allow next.

**Different alphas.** Epsilons add up only for one notion of neighbour. A parameter's first charge
fixes its reference alpha. A release at a smaller alpha protects a step of ``alpha``; a step of
the reference is at most ``ceil(reference/alpha)`` such steps, so the release is charged that
many times its epsilon (group privacy). A larger alpha protects the reference as it is.

**Private and public.** What was once published in clear can't be private later; what is private
in one release must not be published in clear by another.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from gridveil.errors import LedgerRefused, show_exact
from gridveil.privacy.adjacency import Adjacency
from gridveil.privacy.chain import Entry

_RATIONAL = re.compile(r"\d{1,400}(/\d{1,400})?", re.ASCII)


@dataclass
class Standing:
    """What the entries of one dataset add up to."""

    dataset: str
    spent: Fraction = Fraction(0)
    cap: Fraction | None = None
    reference: dict[str, tuple[Fraction, str]] = field(default_factory=dict)
    clear: dict[str, int] = field(default_factory=dict)
    private: dict[str, int] = field(default_factory=dict)
    charges: int = 0
    aborts: int = 0
    unreleased: set[int] = field(default_factory=set)

    @property
    def remaining(self) -> Fraction | None:
        """What the cap leaves, or None without a cap."""
        return None if self.cap is None else max(self.cap - self.spent, Fraction(0))

    def add(self, entry: Entry) -> None:
        """Take the next entry of the dataset into account."""
        body = entry.body
        if entry.kind == "cap":
            self.cap = None if body["cap"] is None else _rational(body["cap"])
        elif entry.kind == "charge":
            self.charges += 1
            self.spent += _rational(body["charged"])
            self.unreleased.add(entry.number)
            for name, one in body["adjacency"].items():
                self.reference.setdefault(name, (_rational(one["alpha"]), str(one["unit"])))
            for name in body["private"]:
                self.private.setdefault(name, entry.number)
            for name in body["clear"]:
                self.clear.setdefault(name, entry.number)
        elif entry.kind == "release":
            self.unreleased.discard(body["charge"])
        elif entry.kind == "abort":
            self.aborts += 1


def _rational(text: str) -> Fraction:
    # Nothing but what the ledger writes: no sign, no exponent that takes a year to expand.
    if not _RATIONAL.fullmatch(text):
        raise ValueError
    return Fraction(text)


def refuse_exposed(standing: Standing, hidden: Sequence[str], clear: Sequence[str]) -> None:
    """Raise `LedgerRefused` where a release would mix private and public."""
    for name in hidden:
        if name in standing.clear:
            raise LedgerRefused(
                f"{name} of {standing.dataset!r} was published in clear by ledger entry "
                f"{standing.clear[name]}, so it can't be private any more.",
                remedy="Release together what must be private together.",
            )
    for name in clear:
        if name in standing.private or name in hidden:
            raise LedgerRefused(
                f"{name} of {standing.dataset!r} is private in this or an earlier release; "
                "publishing it in clear would undo that guarantee.",
                remedy="Make it private in this release too.",
            )


def steps_to_reference(standing: Standing, one: Adjacency) -> int:
    """How many steps of a release's alpha make up the reference alpha."""
    reference, unit = standing.reference.get(one.parameter, (one.alpha, one.unit))
    if unit != one.unit:
        raise LedgerRefused(
            f"{one.parameter} of {standing.dataset!r} was charged in {unit} before, and this "
            f"release counts alpha in {one.unit}.",
            remedy=f"Give alpha in {unit} (reference: {show_exact(reference)} {unit}).",
        )
    return math.ceil(reference / one.alpha)
