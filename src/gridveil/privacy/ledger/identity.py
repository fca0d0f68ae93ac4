"""Which dataset data belongs to: by its name, and by what its public part looks like.

**Names.** The same data under a second name would have a second budget, so spellings of a dataset's
name are folded (`name_key`).

**Fingerprints.** Data is known by them under another name too. Every public row is hashed, and the
`SIZE` smallest hashes are kept (a bottom-k sketch): a random sample of the rows that two datasets
draw alike. Below the smaller of their largest hashes both samples are complete, so the share of
common hashes there estimates how much of the smaller dataset is in the larger one. It never sees a
private value: a refusal that depended on one would be an output. `Sketch.of` calls back into the
reader that it was given for one block of hashes after the other.

**Slips.** Data that looks like that of another name is refused, unless the owner says why it is
not; the reason is kept. Data that was changed enough looks new. A new name is warned of.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridveil.errors import InputError, LedgerRefused, wrong_type

Hashes = NDArray[np.uint64]

SIZE = 64
"""How many hashes are kept."""
SAME = Fraction(1, 2)
"""From which overlap on two datasets look like one."""

_HASH = re.compile(r"[0-9a-f]{16}", re.ASCII)
# Letters and marks that show nothing; the others of their kind are not printable anyway.
_INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0") | {
    chr(code) for code in (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))
}
_SHOWN = 5  # names of other datasets


def checked_name(dataset: str) -> str:
    """A dataset's name as the ledger writes it, or `InputError`."""
    if not isinstance(dataset, str):
        raise wrong_type("name of a dataset", dataset, remedy='Write "north farm", for example.')
    name = " ".join(unicodedata.normalize("NFC", dataset).split())
    if not name or len(name) > 200 or not name.isprintable() or _INVISIBLE & set(name):
        raise InputError(
            "A dataset needs a name of 1 to 200 printable characters.",
            remedy="Name it with --dataset NAME.",
        )
    return name


def name_key(dataset: str) -> str:
    """What a name is found by.

    Spellings that differ in case, spaces, punctuation or the width of letters share one budget: a
    slip must not double it. Letters of different scripts that look alike are different letters.

    >>> name_key("North_Farm") == name_key("\uff2eorth farm")
    True
    """
    folded = old_name_key(dataset)
    words = "".join(" " if unicodedata.category(one)[0] in "PSZ" else one for one in folded)
    return " ".join(words.split()) or folded


def old_name_key(dataset: str) -> str:
    """What a name was found by before keys had a version: punctuation made a difference."""
    wide = unicodedata.normalize("NFKC", checked_name(dataset)).casefold()
    return " ".join(unicodedata.normalize("NFKC", wide).split())


@dataclass(frozen=True)
class Sketch:
    """The smallest hashes of a dataset's public rows; only sketches of one kind are compared."""

    kind: str
    hashes: tuple[int, ...] = field(repr=False)

    @classmethod
    def of(cls, kind: str, blocks: Iterable[Hashes]) -> Sketch:
        """The sketch of rows whose hashes come in blocks, in any order."""
        kept: Hashes = np.empty(0, dtype=np.uint64)
        for block in blocks:
            small = block if len(kept) < SIZE else block[block < kept[-1]]
            if len(small):
                kept = np.unique(np.concatenate([kept, small]))[:SIZE]
        return cls(kind, tuple(int(one) for one in kept))

    def overlap(self, other: Sketch) -> Fraction:
        """How much of the smaller dataset is in the larger one, estimated."""
        if self.kind != other.kind:
            return Fraction(0)
        ends = [one.hashes[-1] for one in (self, other) if len(one.hashes) == SIZE]
        end = min(ends, default=1 << 64)
        mine, others = ({h for h in one.hashes if h <= end} for one in (self, other))
        fewer = min(len(mine), len(others))
        return Fraction(len(mine & others), fewer) if fewer else Fraction(0)

    def to_json(self) -> dict[str, Any]:
        """The sketch as an entry holds it."""
        return {"kind": self.kind, "hashes": "".join(f"{one:016x}" for one in self.hashes)}

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Sketch:
        """A sketch from an entry, or `ValueError`."""
        text = str(body["hashes"])
        parts = [text[at : at + 16] for at in range(0, len(text), 16)]
        if len(parts) > SIZE or not all(_HASH.fullmatch(part) for part in parts):
            raise ValueError
        hashes = tuple(int(part, 16) for part in parts)
        if list(hashes) != sorted(set(hashes)):
            raise ValueError
        return cls(str(body["kind"]), hashes)


def mixed(values: Hashes, before: Hashes | None = None) -> Hashes:
    """Hashes of 64-bit values, each with one that came before it (the finaliser of SplitMix64)."""
    hashes = values * np.uint64(0x9E3779B97F4A7C15)
    hashes += np.uint64(0x9E3779B97F4A7C15)
    if before is not None:
        hashes ^= before
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        hashes ^= hashes >> np.uint64(shift)
        hashes *= np.uint64(factor)
    hashes ^= hashes >> np.uint64(31)
    return hashes


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
