"""What people are told of a dataset beside its totals. It changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from gridveil.errors import show_exact
from gridveil.privacy.adjacency import Adjacency
from gridveil.privacy.ledger.entries import Entry
from gridveil.privacy.ledger.meaning import Capped
from gridveil.privacy.ledger.old import Reading
from gridveil.privacy.ledger.steps import ANY, Declared, Step
from gridveil.privacy.ledger.totals import Totals

_FAR = 10  # an alpha this many times below its reference looks like a slip


def doubts(totals: Totals, adjacency: Sequence[Adjacency]) -> list[str]:
    """A sentence for every alpha that is far below its reference, or makes a cap's reference.

    And one if what was spent before counts more, since the wholes of shares are larger.
    """
    found = []
    if (spent := totals.facing(adjacency).spent) > totals.spent:
        found.append(
            f"Capacities of {totals.dataset!r} are larger than before (one under a new name may "
            f"be one that is gone): what was spent, {show_exact(totals.spent)}, counts "
            f"{show_exact(spent)} for shares of these."
        )
    for one in adjacency:
        own = Step.of(one)
        reference = totals.in_force(one.key, own)
        if reference.alphas(own) * reference.blocks(own) >= _FAR:
            found.append(
                f"alpha of {one.key} is {show_exact(one.alpha)} {one.unit}, and the reference "
                f"of {totals.dataset!r} is {reference}: epsilon counts "
                f"{reference.steps(own):,} times."
            )
        elif (
            totals.cap is not None
            and one.key not in totals.reference
            and totals.declared_for(one.key, own) is None
        ):
            found.append(
                f"{totals.dataset!r} has a cap, and no reference alpha of {one.key} was "
                f"declared: {reference} becomes it (gridveil ledger reference raises it)."
            )
    return found


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
