"""Which dataset a release is charged to, if its name is new or missing.

What looks like the data of another name is refused unless the owner says why it is not, and that is
kept. It is an aid against slips: data that was changed enough looks new.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from gridveil.errors import InputError, LedgerRefused
from gridveil.privacy.ledger.names import checked_name, name_key
from gridveil.privacy.ledger.sketch import Sketch

SAME = Fraction(1, 2)
"""From which overlap on two datasets look like one."""

_SHOWN = 5


@dataclass
class Known:
    """What a dataset is known by.

    Attributes
    ----------
    dataset
        Its name.
    sketches
        Fingerprints of the public part of what was charged.
    distinct
        The keys of datasets that look like this one and are others, with their owner's reason.
    """

    dataset: str
    sketches: set[Sketch] = field(default_factory=set)
    distinct: dict[str, str] = field(default_factory=dict)

    def looks_like(self, sketch: Sketch | None) -> bool:
        """Whether data with this sketch looks like what was charged before."""
        return sketch is not None and any(sketch.overlap(one) >= SAME for one in self.sketches)

    def may_be(self, sketch: Sketch | None) -> bool:
        """Whether a new name may have been meant for it: records never are for a network."""
        kinds = {one.kind for one in self.sketches}
        return sketch is None or not kinds or sketch.kind in kinds


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
