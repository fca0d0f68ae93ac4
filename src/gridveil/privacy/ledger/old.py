"""Entries of version 1, translated into today's form as they are read.

A ledger that was begun with keys of version 2 has none of them, and reads the same without this.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from gridveil.privacy.ledger.entries import Entry
from gridveil.privacy.ledger.meaning import VERSION, Capped, Charged, Said, said
from gridveil.privacy.ledger.names import old_name_key

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
