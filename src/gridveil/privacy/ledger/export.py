"""A ledger as one JSON file, for an auditor who has no access to it.

It holds every entry as it was written, so that the chain, the totals and the charges of bundles can
be checked without the ledger: `Export` is a ledger's store that can only be read.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gridveil.errors import InputError, LedgerError, reason
from gridveil.privacy.ledger.entries import Book, Row, Store, T, canonical
from gridveil.privacy.ledger.ledger import Ledger
from gridveil.privacy.ledger.totals import Totals
from gridveil.privacy.schema import read_json

_KIND = "gridveil ledger export"
_FIELDS = ("number", "time", "kind", "dataset", "body", "previous", "hash")


def export_of(ledger: Ledger) -> dict[str, Any]:
    """Everything that a ledger holds, and what it adds up to."""
    entries = ledger.entries()
    return {
        "kind": _KIND,
        "version": 1,
        "ledger": ledger.id,
        "exported": datetime.now(UTC).isoformat(timespec="seconds"),
        "totals": [_summary(one) for one in ledger.all_totals()],
        "entries": [{name: getattr(entry, name) for name in _FIELDS} for entry in entries],
    }


class Export(Store):
    """An exported ledger, from its file."""

    remedy = "Ask for another export."

    def __init__(self, path: Path) -> None:
        self.place = path
        try:
            body = read_json(path.read_bytes())
        except (OSError, ValueError) as problem:
            why = reason(problem) if isinstance(problem, OSError) else "its name can't be used"
            raise InputError(f"The export {path} can't be read: {why}.") from None
        if not isinstance(body, dict) or body.get("kind") != _KIND or body.get("version") != 1:
            raise InputError(
                f"{path} is not an exported ledger.",
                remedy="Name a file that gridveil ledger export wrote.",
            )
        self.id = str(body.get("ledger"))
        self._totals = body.get("totals")
        found = body.get("entries")
        self._rows: list[Row] = [_row(one) for one in found] if isinstance(found, list) else []

    def write(self, work: Callable[[Book], T]) -> T:
        """Refuse: nothing is charged to a copy."""
        raise LedgerError(
            f"{self.place} is an export, and nothing can be charged to it.",
            remedy="Name the ledger itself: --ledger or GRIDVEIL_LEDGER.",
        )

    def wrong_totals(self) -> list[str]:
        """What is wrong with the totals that were written beside the entries."""
        summed = [_summary(one) for one in Ledger(self).all_totals()]
        return [] if summed == self._totals else ["its totals are not what its entries add up to"]

    def _look(self) -> tuple[list[Row], list[str]]:
        return self._rows, []


def _row(one: Any) -> Row:
    if not isinstance(one, dict):
        return (None,) * len(_FIELDS)
    return [canonical(one.get(name)) if name == "body" else one.get(name) for name in _FIELDS]


def _summary(one: Totals) -> dict[str, Any]:
    return {
        "dataset": one.dataset,
        "spent": str(one.spent),
        "cap": None if one.cap is None else str(one.cap),
        "charges": one.charges,
    }
