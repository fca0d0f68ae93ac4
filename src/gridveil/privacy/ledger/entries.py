"""Ledger entries: what they say, how they are chained and checked, and how they are added.

An `Entry` holds no private values, but names, rationals and times, and a random number of its own,
so that a published hash gives nothing away about the entries it covers. Its hash covers the hash of
the entry before it (`breaks` checks the chain). Entries are never changed.

**What they say.** Charges name private parameters by keys, which are plain identifiers: no word
that is written for people may decide what is charged. Charges, caps and references have the version
of the scheme that they follow. `said` reads an entry of today's version; `Reading` also translates
those of version 1, so that nothing that adds entries up knows of them. A ledger that was begun with
version 2 reads the same without it.

**Where they are.** Entries are kept in a `Store`, a file or a database. Every write first checks
the whole chain: a changed bit that lowered what was spent would let a dataset overspend, so a
damaged ledger is neither added up nor added to. A `Book` is a ledger that was found whole and is
held by one writer alone; what is appended to it is kept when the work on it is done, or not at all.
To insert a row it calls back into its file or database.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

from gridveil.errors import InputError, LedgerError
from gridveil.privacy.adjacency import Step
from gridveil.privacy.exact_numbers import positive, rational
from gridveil.privacy.ledger.identity import Sketch, checked_name, old_name_key
from gridveil.privacy.ledger.place import Address
from gridveil.privacy.ledger.reference_alphas import Declared

VERSION = 2
"""The scheme of keys that this code writes."""

MOVED = "moved"
"""The kind of the last entry of a ledger that is kept in another place now."""


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


def refuse_moved(entries: Sequence[Entry]) -> None:
    """Raise `LedgerError` if these are the entries of a ledger that is in another place now."""
    if entries and entries[-1].kind == MOVED:
        raise LedgerError(
            f"This ledger is kept in {entries[-1].body.get('to')} now.",
            remedy="Name that one: --ledger or GRIDVEIL_LEDGER. Nothing is charged to the old one.",
        )


def _sha256(value: Any) -> str:
    return hashlib.sha256(canonical(value).encode()).hexdigest()


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

    charge: int


@dataclass(frozen=True)
class Aborted:
    """A computation on private data failed after a charge."""


Said = Charged | Capped | Referenced | Released | Aborted


def said(entry: Entry) -> Said:
    """What an entry of today's version says.

    One that can't be understood raises an error of Python: it was damaged.
    """
    body = entry.body
    match entry.kind:
        case "charge":
            distinct = body.get("distinct", {"from": ()})
            return Charged(
                entry.number,
                rational(body["epsilon"]),
                rational(body["charged"]),
                {key: Step.from_json(one) for key, one in body["adjacency"].items()},
                tuple(body["clear"]),
                tuple(body["private"]),
                Sketch.from_json(body["sketch"]) if "sketch" in body else None,
                {str(other): str(distinct["reason"]) for other in distinct["from"]},
            )
        case "cap":
            return Capped(None if body["cap"] is None else rational(body["cap"]))
        case "reference":
            given = body["alpha"].items()
            return Referenced({k: Declared(positive(o["alpha"]), str(o["unit"])) for k, o in given})
        case "release":
            return Released(body["charge"])
        case "abort":
            return Aborted()
    raise ValueError(entry.kind)


_KINDS = {"charge", "cap", "reference", "release", "abort"}


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
        """What an entry says; None for a kind that only version 1 had."""
        version = entry.body.get("version", 1)
        if type(version) is not int or not 1 <= version <= VERSION:
            raise ValueError(version)
        old = version == 1
        if old and entry.kind not in _KINDS:
            return None
        match said(entry):
            case Charged() as charged:
                return self._charged(charged, old_name_key(entry.dataset) if old else None)
            case Capped(cap):
                # A cap of today is the only one.
                self._caps = {**self._caps, old_name_key(entry.dataset): cap} if old else {"": cap}
                caps = [one for one in self._caps.values() if one is not None]
                return Capped(min(caps, default=None))
            case other:
                return other

    def _charged(self, one: Charged, old_name: str | None) -> Charged:
        given, raises = one.steps, set()
        if old_name is not None:
            given = {key.partition(" (")[0]: step for key, step in given.items()}
            under = {(old_name, key) for key in given}
            raises = {key for name, key in under - self._known if key in self._units}
            self._known |= under
        for key, step in given.items():
            self._units.setdefault(key, (step.unit, step.measure))
        steps = {k: s for k, s in given.items() if self._units[k] == (s.unit, s.measure)}
        return replace(
            one,
            steps=steps,
            raises=frozenset(raises & steps.keys()),
            least=one.charged if len(steps) < len(given) else Fraction(0),
        )


FORMAT = 3
"""A ledger becomes one of this format with the first entry that is added.

Format 1 had keys without a version. Format 2 knew no blocks of time and no shares of a value: who
reads a charge for a whole day as one for a record counts the next record once, not 144 times.
"""

Row = Sequence[Any]
T = TypeVar("T")


class Book:
    """The entries of a ledger that was found whole, and a way to add to them.

    Parameters
    ----------
    ledger
        Its number.
    entries
        What was written so far.
    insert
        Writes one more.
    ids
        Random numbers of the entries to come, one for each. Whoever tries again after an answer
        was lost gives the same, so that what was written is known.
    more
        What the store itself says of every entry: who writes it.
    """

    def __init__(
        self,
        ledger: str,
        entries: list[Entry],
        insert: Callable[[Entry], object],
        ids: list[str],
        more: Mapping[str, str] | None = None,
    ) -> None:
        self.entries = entries
        self._ledger, self._insert, self._ids, self._more = ledger, insert, ids, more or {}
        self._added = 0

    def append(self, kind: str, dataset: str, body: Mapping[str, Any]) -> Entry:
        """Add an entry.

        Its body gets a random number, so that nobody who guesses an entry can check the guess by
        a hash that was published.
        """
        if self._added == len(self._ids):
            self._ids.append(uuid.uuid4().hex)
        last = self.entries[-1] if self.entries else None
        number, previous = (last.number + 1, last.hash) if last else (1, first_link(self._ledger))
        now = datetime.now(UTC).isoformat(timespec="seconds")
        full = {**body, **self._more, "salt": self._ids[self._added]}
        digest = entry_hash(number, now, kind, dataset, full, previous)
        entry = Entry(number, now, kind, dataset, full, previous, digest)
        self._insert(entry)
        self.entries.append(entry)
        self._added += 1
        return entry


class Store(ABC):
    """Where entries are kept."""

    place: Path | Address
    id: str
    remedy = (
        "Nothing was released. Put its newest backup in its place and check it against your "
        "bundles: gridveil ledger verify --bundle."
    )

    @abstractmethod
    def write(self, work: Callable[[Book], T]) -> T:
        """Do some work on the book, alone; keep what it appended, unless it raised an error."""

    @abstractmethod
    def _look(self) -> tuple[list[Row], list[str]]:
        """The rows of all entries in order, and what is wrong with where they are kept."""

    def entries(self) -> list[Entry]:
        """All entries, oldest first, or `LedgerError` if they are damaged."""
        return self._sound(*self._look())

    def problems(self) -> list[str]:
        """Everything that is wrong with the entries; empty if all is well."""
        return self._problems(*self._look())

    def hash_of(self, number: object) -> str | None:
        """The hash of one entry, whether the rest is whole or not; None if it is not there."""
        return next((str(row[-1]) for row in self._look()[0] if row[0] == number), None)

    def damaged(self, how: str) -> LedgerError:
        """The error that says that the ledger can't be trusted."""
        return LedgerError(f"The ledger {self.place} is damaged: {how}.", remedy=self.remedy)

    def newer(self, found: int) -> LedgerError:
        """The error that says that this code does not know the ledger's format."""
        return LedgerError(
            f"The ledger {self.place} was written by a newer GridVeil (format {found}; this one "
            f"knows {FORMAT}).",
            remedy="Update GridVeil. The ledger was not changed.",
        )

    def _problems(self, rows: Sequence[Row], wrong: Sequence[str]) -> list[str]:
        if wrong:
            return list(wrong)
        entries = [read_entry(row) for row in rows]
        unreadable = [
            f"entry {row[0]} can't be read"
            for row, entry in zip(rows, entries, strict=True)
            if entry is None
        ]
        return unreadable or list(breaks(self.id, [e for e in entries if e is not None]))

    def _sound(self, rows: Sequence[Row], wrong: Sequence[str]) -> list[Entry]:
        if problems := self._problems(rows, wrong):
            raise self.damaged(problems[0])
        return [entry for entry in map(read_entry, rows) if entry is not None]
