"""Ledger entries as they are written, and how they are chained.

An `Entry` holds no private values, but names, rationals and times, and a random number of its own,
so that a published hash gives nothing away about the entries it covers. Its hash covers the hash of
the entry before it (`breaks` checks the chain). Entries are never changed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from gridveil.errors import InputError, LedgerError
from gridveil.privacy.ledger.names import checked_name

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
