"""The kinds of ledger entries, and what an entry of each kind says.

Charges name private parameters by keys, which are plain identifiers: no word that is written for
people may decide what is charged. Charges, caps and references have the version of the scheme that
they follow. `said` reads an entry of today's version; `Reading` also translates those of version 1,
so that nothing that adds entries up knows of them. A ledger that was begun with version 2 reads the
same without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from gridveil.privacy.ledger.entries import Entry, old_name_key
from gridveil.privacy.ledger.fingerprints import Sketch
from gridveil.privacy.ledger.group_privacy import Step, positive, rational
from gridveil.privacy.ledger.reference_alphas import Declared

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
