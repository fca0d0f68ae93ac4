"""What a dataset's entries add up to, and what they allow next.

**Different alphas.** Epsilons add up only for one notion of neighbour. A parameter's first charge
fixes its reference alpha. A release at a smaller alpha protects a step of ``alpha``; a step of
the reference is at most ``ceil(reference/alpha)`` such steps, so the release is charged that
many times its epsilon (group privacy). A larger alpha protects the reference as it is.

Where alpha is a share of something (the capacity of a turbine), the step of each element is what
its share amounts to in the first charge. An element that was not in that one could be another
under a new name, so its step is the largest of them.

**Private and public.** What was once published in clear can't be private later; what is private
in one release must not be published in clear by another.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from gridveil.errors import LedgerRefused, show_exact
from gridveil.privacy.adjacency import Adjacency
from gridveil.privacy.ledger.entries import Entry, read_key

_RATIONAL = re.compile(r"\d{1,400}(/\d{1,400})?", re.ASCII)


@dataclass(frozen=True)
class Reference:
    """The step that a parameter's epsilons add up for, as its first charge fixed it."""

    alpha: Fraction
    unit: str
    wholes: Mapping[str, Fraction] = field(default_factory=dict)
    measure: str = ""

    def steps(self, alpha: Fraction, wholes: Mapping[str, Fraction]) -> int:
        """How many steps of a release's alpha make up this one, for the worst element."""
        if not wholes or not self.wholes:
            return math.ceil(self.alpha / alpha)
        largest = max(self.wholes.values())
        return max(
            math.ceil(self.alpha * self.wholes.get(name, largest) / (alpha * whole))
            for name, whole in wholes.items()
        )

    def __str__(self) -> str:
        return f"{show_exact(self.alpha)} {self.unit}"


@dataclass
class Totals:
    """What the entries of one dataset add up to."""

    dataset: str
    spent: Fraction = Fraction(0)
    cap: Fraction | None = None
    reference: dict[str, Reference] = field(default_factory=dict)
    clear: dict[str, int] = field(default_factory=dict)
    private: dict[str, int] = field(default_factory=dict)
    charges: int = 0
    aborts: int = 0
    unreleased: set[int] = field(default_factory=set)

    @property
    def remaining(self) -> Fraction | None:
        """What the cap leaves, or None without a cap."""
        return None if self.cap is None else max(self.cap - self.spent, Fraction(0))

    @property
    def overspent(self) -> Fraction:
        """What was spent above the cap: more than 0 only where the cap came later."""
        return Fraction(0) if self.cap is None else max(self.spent - self.cap, Fraction(0))

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
                self.reference.setdefault(read_key(name, entry.version), _reference(one))
            for name in body["private"]:
                self.private.setdefault(name, entry.number)
            for name in body["clear"]:
                self.clear.setdefault(name, entry.number)
        elif entry.kind == "release":
            self.unreleased.discard(body["charge"])
        elif entry.kind == "abort":
            self.aborts += 1


def _reference(body: Mapping[str, Any]) -> Reference:
    alpha, wholes = _rational(body["alpha"]), body.get("wholes", {})
    amounts = {str(name): _rational(whole) for name, whole in wholes.items()}
    if alpha <= 0 or not all(amount > 0 for amount in amounts.values()):
        raise ValueError
    return Reference(alpha, str(body["unit"]), amounts, str(body.get("measure", "")))


def _rational(text: str) -> Fraction:
    # Nothing but what the ledger writes: no sign, no exponent that takes a year to expand.
    if not _RATIONAL.fullmatch(text):
        raise ValueError
    return Fraction(text)


def refuse_exposed(totals: Totals, hidden: Sequence[str], clear: Sequence[str]) -> None:
    """Raise `LedgerRefused` where a release would mix private and public."""
    for name in hidden:
        if name in totals.clear:
            raise LedgerRefused(
                f"{name} of {totals.dataset!r} was published in clear by ledger entry "
                f"{totals.clear[name]}, so it can't be private any more.",
                remedy="Release together what must be private together.",
            )
    for name in clear:
        if name in totals.private or name in hidden:
            raise LedgerRefused(
                f"{name} of {totals.dataset!r} is private in this or an earlier release; "
                "publishing it in clear would undo that guarantee.",
                remedy="Make it private in this release too.",
            )


def steps_to_reference(totals: Totals, one: Adjacency) -> int:
    """How many steps of a release's alpha make up the reference alpha."""
    reference = totals.reference.get(one.key)
    if reference is None:
        return 1
    if reference.unit != one.unit:
        raise LedgerRefused(
            f"{one.parameter} of {totals.dataset!r} was charged in {reference.unit} before, and "
            f"this release counts alpha in {one.unit}.",
            remedy=f"Give alpha in {reference.unit} (reference: {reference}).",
        )
    if reference.measure != one.measure:
        raise LedgerRefused(
            f"{one.parameter} of {totals.dataset!r} was in {reference.measure} before, and is in "
            f"{one.measure} in this release.",
            remedy=f"Give it in {reference.measure}.",
        )
    return reference.steps(one.alpha, one.wholes)
