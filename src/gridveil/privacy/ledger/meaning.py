"""What the entries of the ledger say, whoever wrote them.

Charges name private parameters by keys, which are plain identifiers: no word that is written for
people may decide what is charged. Charges, caps and references have the version of the scheme that
they follow. `said` reads an entry of today's version; `old` translates older ones, so that nothing
that adds entries up knows of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from gridveil.privacy.ledger.entries import Entry
from gridveil.privacy.ledger.sketch import Sketch
from gridveil.privacy.ledger.steps import Declared, Step, positive, rational

VERSION = 2
"""The scheme of keys that this code writes."""


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
