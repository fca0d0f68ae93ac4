"""Ledger entries: under which name they are kept, how they are chained, checked and added.

The same data under a second name would have a second budget, so spellings of a dataset's name are
folded (`name_key`).

An `Entry` holds no private values, but names, rationals and times, and a random number of its own,
so that a published hash gives nothing away about the entries it covers. Its hash covers the hash of
the entry before it (`breaks` checks the chain). Entries are never changed.

Entries are kept in a `Store`, a file or a database. Every write first checks the whole chain: a
changed bit that lowered what was spent would let a dataset overspend, so a damaged ledger is
neither added up nor added to. A `Book` is a ledger that was found whole and is held by one writer
alone; what is appended to it is kept when the work on it is done, or not at all. To insert a row it
calls back into its file or database.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from gridveil.errors import InputError, LedgerError
from gridveil.privacy.ledger.place import Address

_KEY = re.compile(r"[a-z][a-z0-9_]{0,63}", re.ASCII)
# Letters and marks that show nothing; the others of their kind are not printable anyway.
_INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0") | {
    chr(code) for code in (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))
}


def checked_name(dataset: str) -> str:
    """A dataset's name as the ledger writes it, or `InputError`."""
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


def checked_key(key: str) -> str:
    """A parameter's key as the ledger writes it, or `InputError`."""
    if not _KEY.fullmatch(key):
        raise InputError(
            f"{key[:64]!r} can't be a key of the ledger.",
            remedy="Use small letters, digits and underscores, as in generator_limit.",
        )
    return key


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
