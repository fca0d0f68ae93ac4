"""Ledger entries, the keys in them, and the chain of hashes that binds each one to all before it.

An entry holds no private values, but names, rationals and times, and a random number of its own, so
that a published hash gives nothing away about the entries it covers.

**Keys.** Charges name private parameters by keys, which are plain identifiers: no word that is
written for people may decide what is charged. A charge says which scheme its keys follow
(`VERSION`). Entries are never changed, so those of an older scheme are translated as they are read:
version 1 had no number, and keys such as ``"load (total published; two move, ...)"``.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from gridveil.errors import InputError
from gridveil.privacy.ledger.names import checked_name

VERSION = 2
"""The scheme of keys that this code writes."""

_KEY = re.compile(r"[a-z][a-z0-9_]{0,63}", re.ASCII)


def checked_key(key: str) -> str:
    """A parameter's key as the ledger writes it, or `InputError`."""
    if not _KEY.fullmatch(key):
        raise InputError(
            f"{key[:64]!r} can't be a key of the ledger.",
            remedy="Use small letters, digits and underscores, as in generator_limit.",
        )
    return key


def read_key(key: str, version: int) -> str:
    """The key of today for one that was written under a version of the scheme."""
    return key.partition(" (")[0] if version == 1 else key


@dataclass(frozen=True)
class Entry:
    """One line of the ledger."""

    number: int
    time: str
    kind: str
    dataset: str
    body: dict[str, Any]
    previous: str
    hash: str

    def expected_hash(self) -> str:
        """The hash that this entry's contents and predecessor call for."""
        return entry_hash(self.number, self.time, self.kind, self.dataset, self.body, self.previous)

    @property
    def version(self) -> int:
        """The scheme of its keys, or `ValueError` for one that this code does not know."""
        version = self.body.get("version", 1)
        if type(version) is not int or not 1 <= version <= VERSION:
            raise ValueError(version)
        return version


def read_entry(row: Sequence[Any]) -> Entry | None:
    """An entry from a row of the ledger's file; None where it is not what one holds."""
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
    for entry in entries:
        number += 1
        if entry.number != number:
            yield f"entry {number} is missing: the next one found is {entry.number}"
            number = entry.number
        if entry.previous != previous:
            yield f"entry {entry.number} does not follow from the entry before it"
        if entry.hash != entry.expected_hash():
            yield f"entry {entry.number} was changed after it was written"
        previous = entry.hash


def _sha256(value: Any) -> str:
    return hashlib.sha256(canonical(value).encode()).hexdigest()
