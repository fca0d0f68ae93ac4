"""Likely slips of whoever charges a release: refused, or warned of. All of it is public.

Data that looks like that of another name is refused, unless the owner says why it is not; the
reason is kept. Data that was changed enough looks new. A new name, and an alpha that is far below
its reference, are warned of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gridveil.errors import InputError, LedgerRefused, show_exact
from gridveil.privacy.adjacency import Adjacency
from gridveil.privacy.ledger.entries import checked_name, name_key
from gridveil.privacy.ledger.fingerprints import Known, Sketch
from gridveil.privacy.ledger.group_privacy import Step
from gridveil.privacy.ledger.totals import Totals

_SHOWN = 5  # names of other datasets
_FAR = 10  # an alpha this many times below its reference looks like a slip


def identify(
    dataset: str | None, sketch: Sketch | None, everyone: Mapping[str, Known], distinct: str | None
) -> tuple[str, list[str]]:
    """The name to charge, and what its owner should know about it.

    Raises
    ------
    InputError
        If no name is given, and the data does not look like that of exactly one dataset.
    LedgerRefused
        If it looks like that of another dataset, and no reason is given why it is not.
    """
    like = {key: one for key, one in everyone.items() if one.looks_like(sketch)}
    if dataset is None:
        if len(like) != 1 or distinct is not None:
            raise unnamed([one.dataset for one in like.values()])
        (found,) = like.values()
        return found.dataset, [
            f"No dataset was named: the data looks like that of {found.dataset!r}, and is charged "
            "to it."
        ]
    name, key = checked_name(dataset), name_key(dataset)
    mine = everyone.get(key)
    if distinct is not None:
        return name, []
    for other, one in like.items():
        if other == key or key in one.distinct or (mine is not None and other in mine.distinct):
            continue
        raise LedgerRefused(
            f"The public part of this data is much the same as that of {one.dataset!r}: under "
            f"another name ({name!r}) it would have a second budget.",
            remedy=f'Charge it to the same: --dataset "{one.dataset}" (dataset=). If it is other '
            'data, say why, and the ledger keeps it: --distinct "REASON" (distinct=).',
        )
    others = [one.dataset for one in everyone.values() if one.may_be(sketch)]
    if mine is None and others:
        some = ", ".join(repr(one) for one in others[:_SHOWN])
        more = f" and {len(others) - _SHOWN} more" if len(others) > _SHOWN else ""
        return name, [
            f"{name!r} is a new name in this ledger, which has {some}{more}. Updated or "
            "overlapping data keeps its name."
        ]
    return name, []


def unnamed(like: list[str] | None = None) -> InputError:
    """The error that asks for a dataset's name."""
    names = ", ".join(repr(name) for name in like or [])
    return InputError(
        "The ledger needs a name for this data, to count under it what is spent"
        + (f"; it looks like that of {names}." if names else "."),
        remedy='Name it with --dataset NAME (dataset="NAME"), the same for every release of it.',
    )


def checked_reason(distinct: str) -> str:
    """Why data is not that of another dataset, as the ledger keeps it; or `InputError`."""
    reason = " ".join(str(distinct).split())
    if not reason or len(reason) > 500 or not reason.isprintable():
        raise InputError(
            "A reason for --distinct has 1 to 500 printable characters.",
            remedy='Say why it is other data: --distinct "another turbine of the same farm".',
        )
    return reason


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
