"""Fingerprints of the public part of a dataset: data is known by them under another name too.

Every public row is hashed, and the `SIZE` smallest hashes are kept (a bottom-k sketch): a random
sample of the rows that two datasets draw alike. Below the smaller of their largest hashes both
samples are complete, so the share of common hashes there estimates how much of the smaller dataset
is in the larger one. It never sees a private value: a refusal that depended on one would be an
output. It calls back into the reader that it was given for one block of hashes after the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]

SIZE = 64
"""How many hashes are kept."""

_HASH = re.compile(r"[0-9a-f]{16}", re.ASCII)


@dataclass(frozen=True)
class Sketch:
    """The smallest hashes of a dataset's public rows; only sketches of one kind are compared."""

    kind: str
    hashes: tuple[int, ...]

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


SAME = Fraction(1, 2)
"""From which overlap on two datasets look like one."""


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
