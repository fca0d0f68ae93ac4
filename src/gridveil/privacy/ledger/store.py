"""What keeps the entries of a ledger, whether a file or a database: how they are added and checked.

Every write first checks the whole chain: a changed bit that lowered what was spent would let a
dataset overspend, so a damaged ledger is neither added up nor added to. A `Book` is a ledger that
was found whole and is held by one writer alone; what is appended to it is kept when the work on it
is done, or not at all. To insert a row it calls back into its file or database.
"""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from gridveil.errors import LedgerError
from gridveil.privacy.ledger.address import Address
from gridveil.privacy.ledger.entries import Entry, breaks, entry_hash, first_link, read_entry

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
