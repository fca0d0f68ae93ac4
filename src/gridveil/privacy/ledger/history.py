"""What a dataset spent when, and the references it is counted at, as people are shown them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from gridveil.privacy.adjacency import Step
from gridveil.privacy.ledger.entries import Capped, Entry, Reading
from gridveil.privacy.ledger.reference_alphas import ANY, Declared
from gridveil.privacy.ledger.totals import Totals


def all_references(totals: Totals) -> dict[str, Step | Declared]:
    """The references of parameters that were charged, and what was declared for others."""
    charged = totals.reference
    waiting = {
        key: one
        for key, one in totals.declared.items()
        if key not in charged
        and not (key == ANY and any(one.fits(step.unit) for step in charged.values()))
    }
    return {**charged, **waiting}


@dataclass(frozen=True)
class Moment:
    """What a charge counted, what was spent by then, and the cap; all at today's references.

    `user` is who wrote it, as the database knows them; a file does not know.
    """

    entry: int
    time: str
    kind: str
    user: str | None
    counted: Fraction
    spent: Fraction
    cap: Fraction | None
    released: bool


def history(totals: Totals, entries: Sequence[Entry]) -> list[Moment]:
    """The charges and caps of one dataset, from its entries, oldest first."""
    found, reading, counted = [], Reading(), totals.counted
    spent, cap = Fraction(0), None
    for entry in entries:
        said = reading.said(entry)
        if isinstance(said, Capped):
            cap = said.cap
        elif entry.number not in counted:
            continue
        own = counted.get(entry.number, Fraction(0))
        spent += own
        user = entry.body.get("user")
        released = entry.number in counted and entry.number not in totals.unreleased
        found.append(Moment(entry.number, entry.time, entry.kind, user, own, spent, cap, released))
    return found
