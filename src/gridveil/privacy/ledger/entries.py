"""Ledger entries: how they are chained, and what they say.

An `Entry` holds no private values, but names, rationals and times, and a random number of its own,
so that a published hash gives nothing away about the entries it covers. Its hash covers the hash of
the entry before it (`breaks` checks the chain).

Charges name private parameters by keys, which are plain identifiers: no word that is written for
people may decide what is charged. Charges, caps and references have the version of the scheme that
they follow. Entries are never changed. `said` reads one of today's version; `old` translates older
ones, so that nothing that adds entries up knows of them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from gridveil.errors import InputError
from gridveil.privacy.ledger.names import checked_name
from gridveil.privacy.ledger.references import Declared
from gridveil.privacy.ledger.sketch import Sketch
from gridveil.privacy.ledger.steps import Step, positive, rational

VERSION = 2
"""The scheme of keys that this code writes."""

MOVED = "moved"
"""The kind of the last entry of a ledger that is kept in another place now."""

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
