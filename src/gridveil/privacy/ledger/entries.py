"""Ledger entries: how they are chained, and what they say.

An `Entry` holds no private values, but names, rationals and times, and a random number of its own,
so that a published hash gives nothing away about the entries it covers. Its hash covers the hash of
the entry before it (`breaks` checks the chain).

Charges name private parameters by keys, which are plain identifiers: no word that is written for
people may decide what is charged. Charges, caps and references have the version of the scheme that
they follow. Entries are never changed: `Reading` translates them into today's form, one of `Said`,
once, as they are read. Nothing that adds them up knows of older versions.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from gridveil.errors import InputError, show_exact
from gridveil.privacy.adjacency import (
    BLOCKS,
    ENTRY,
    RELATIVE,
    Adjacency,
    blocks_in,
    relative_steps,
)
from gridveil.privacy.ledger.names import Sketch, checked_name, old_name_key

VERSION = 2
"""The scheme of keys that this code writes."""

SHARE = "of capacity"
"""The unit of a reference alpha that was given in percent."""

_KEY = re.compile(r"[a-z][a-z0-9_]{0,63}", re.ASCII)
_RATIONAL = re.compile(r"\d{1,400}(/\d{1,400})?", re.ASCII)


def checked_key(key: str) -> str:
    """A parameter's key as the ledger writes it, or `InputError`."""
    if not _KEY.fullmatch(key):
        raise InputError(
            f"{key[:64]!r} can't be a key of the ledger.",
            remedy="Use small letters, digits and underscores, as in generator_limit.",
        )
    return key


# -- the chain --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Entry:
    """One line of the ledger, as it was written."""

    number: int
    time: str
    kind: str
    dataset: str
    body: dict[str, Any]
    previous: str
    hash: str


def read_entry(row: Sequence[Any]) -> Entry | None:
    """An entry from a row of the ledger's file; None if the row can't be one."""
    number, *texts = row
    if type(number) is not int or not all(isinstance(text, str) for text in texts):
        return None
    time, kind, dataset, body, previous, digest = texts
    try:
        checked_name(dataset)
        contents = json.loads(body)
        canonical(contents)
    except (InputError, ValueError, RecursionError):
        return None
    if not isinstance(contents, dict):
        return None
    return Entry(number, time, kind, dataset, contents, previous, digest)


def entry_hash(
    number: int, time: str, kind: str, dataset: str, body: dict[str, Any], previous: str
) -> str:
    """SHA-256 of an entry's canonical text, its predecessor's hash included."""
    return _sha256([number, time, kind, dataset, body, previous])


def first_link(ledger: str) -> str:
    """What the first entry of a ledger has for its predecessor's hash."""
    return _sha256(["gridveil ledger", ledger])


def canonical(value: Any) -> str:
    """The one JSON text for a value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def breaks(ledger: str, entries: Iterable[Entry]) -> Iterator[str]:
    """Every place where the chain does not hold, in words."""
    previous = first_link(ledger)
    number = 0
    for e in entries:
        number += 1
        if e.number != number:
            yield f"entry {number} is missing: the next one found is {e.number}"
            number = e.number
        if e.previous != previous:
            yield f"entry {e.number} does not follow from the entry before it"
        if e.hash != entry_hash(e.number, e.time, e.kind, e.dataset, e.body, e.previous):
            yield f"entry {e.number} was changed after it was written"
        previous = e.hash


def _sha256(value: Any) -> str:
    return hashlib.sha256(canonical(value).encode()).hexdigest()


# -- what entries say -------------------------------------------------------------------------


@dataclass(frozen=True)
class Step:
    """How far one entry of a parameter moves, or all entries of a calendar block.

    If alpha is a share of something (the capacity of a turbine), each element has a step of its
    own: its share of its whole, by name. ``block``, ``members`` and ``clock`` are as in
    `Adjacency`.
    """

    alpha: Fraction
    unit: str
    wholes: Mapping[str, Fraction] = field(default_factory=dict)
    measure: str = ""
    block: str = ENTRY
    members: Mapping[str, int] = field(default_factory=dict)
    clock: str = ""

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
        # Charges of single entries may not know of times: then the same data is as it is here.
        members = other.members or self.members
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
        return body

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Step:
        """A step from a charge, or an error of Python."""
        wholes = {str(name): _positive(whole) for name, whole in body.get("wholes", {}).items()}
        block, members = body.get("block", ENTRY), body.get("members", {})
        if block not in BLOCKS or not all(type(n) is int and n > 0 for n in members.values()):
            raise ValueError
        return cls(
            _positive(body["alpha"]),
            str(body["unit"]),
            wholes,
            str(body.get("measure", "")),
            block,
            {str(kind): count for kind, count in members.items()},
            str(body.get("clock", "")),
        )

    def __str__(self) -> str:
        whole = "" if self.block == ENTRY else f", all of a {self.block}"
        return f"{show_exact(self.alpha)} {self.unit}{whole}"


@dataclass(frozen=True)
class Declared:
    """A reference alpha as its owner gave it; without a unit it is in that of the charges."""

    alpha: Fraction
    unit: str = ""

    def fits(self, unit: str) -> bool:
        """Whether this is an alpha of a parameter that is charged in a unit."""
        if self.unit:
            return self.unit == unit or (self.unit, unit) == (SHARE, RELATIVE)
        # More than the whole must be a slip (kW for a share) unless it is written with a %.
        return not (unit.startswith("of ") and self.alpha > 1)

    def __str__(self) -> str:
        return f"{show_exact(self.alpha)} {self.unit}".strip()


@dataclass(frozen=True)
class Charged:
    """A release was charged: its own epsilon and steps, and what the ledger said that it counts.

    The last two are for old charges only. ``raises``: parameters whose reference is raised to this
    charge's alpha. ``least``: what it counts at least, for any step.
    """

    entry: int
    epsilon: Fraction
    charged: Fraction
    steps: Mapping[str, Step]
    clear: tuple[str, ...]
    private: tuple[str, ...]
    sketch: Sketch | None
    distinct: Mapping[str, str]
    raises: frozenset[str] = frozenset()
    least: Fraction = Fraction(0)


@dataclass(frozen=True)
class Capped:
    """The cap was set, or taken away with None."""

    cap: Fraction | None


@dataclass(frozen=True)
class Referenced:
    """Reference alphas were declared, by the keys of their parameters."""

    alphas: Mapping[str, Declared]


@dataclass(frozen=True)
class Released:
    """The charge with this number became a bundle."""

    charge: Any


@dataclass(frozen=True)
class Aborted:
    """A computation on private data failed after a charge."""


Said = Charged | Capped | Referenced | Released | Aborted


class Reading:
    """Reads the entries of one dataset, oldest first, and translates those of version 1.

    Version 1 had no number, and keys with prose in them: ``"load (total published; ...)"``. And
    punctuation in a dataset's name made a difference, so that entries of one dataset may come from
    several. Then the lowest of their caps counts until a new one is set; the first charge under a
    further name raises the reference to its own alpha; and a charge in another unit than the first
    can't be compared with any step, so it counts what it was charged.
    """

    def __init__(self) -> None:
        self._caps: dict[str, Fraction | None] = {}
        self._units: dict[str, tuple[str, str]] = {}
        self._known: set[tuple[str, str]] = set()  # old names, and keys charged under them

    def said(self, entry: Entry) -> Said | None:
        """What an entry says; None for a kind that only version 1 had.

        An entry that can't be understood raises an error of Python: it was damaged.
        """
        body, version = entry.body, entry.body.get("version", 1)
        if type(version) is not int or not 1 <= version <= VERSION:
            raise ValueError(version)
        if entry.kind == "charge":
            return self._charged(entry, old=version == 1)
        if entry.kind == "cap":
            cap = None if body["cap"] is None else _rational(body["cap"])
            self._caps = (
                {**self._caps, old_name_key(entry.dataset): cap} if version == 1 else {"": cap}
            )
            return Capped(min((c for c in self._caps.values() if c is not None), default=None))
        if entry.kind == "reference":
            given = body["alpha"].items()
            return Referenced(
                {k: Declared(_positive(o["alpha"]), str(o["unit"])) for k, o in given}
            )
        if entry.kind == "release":
            return Released(body["charge"])
        if entry.kind == "abort":
            return Aborted()
        if version > 1:
            raise ValueError(entry.kind)
        return None

    def _charged(self, entry: Entry, *, old: bool) -> Charged:
        body, raises = entry.body, set()
        given = {key: Step.from_json(one) for key, one in body["adjacency"].items()}
        if old:
            given = {key.partition(" (")[0]: step for key, step in given.items()}
            under = {(old_name_key(entry.dataset), key) for key in given}
            raises = {key for name, key in under - self._known if key in self._units}
            self._known |= under
        for key, step in given.items():
            self._units.setdefault(key, (step.unit, step.measure))
        steps = {k: s for k, s in given.items() if self._units[k] == (s.unit, s.measure)}
        charged, distinct = _rational(body["charged"]), body.get("distinct", {"from": ()})
        return Charged(
            entry.number,
            _rational(body["epsilon"]),
            charged,
            steps,
            tuple(body["clear"]),
            tuple(body["private"]),
            Sketch.from_json(body["sketch"]) if "sketch" in body else None,
            {str(other): str(distinct["reason"]) for other in distinct["from"]},
            frozenset(raises & steps.keys()),
            charged if len(steps) < len(given) else Fraction(0),
        )


def _positive(text: str) -> Fraction:
    amount = _rational(text)
    if amount <= 0:
        raise ValueError
    return amount


def _rational(text: str) -> Fraction:
    # Nothing but what the ledger writes: no sign, no exponent that takes a year to expand.
    if not _RATIONAL.fullmatch(text):
        raise ValueError
    return Fraction(text)
