"""Whether a ledger knows of a bundle: what finds a tail that was cut off, or an older copy."""

from __future__ import annotations

from typing import Any

from gridveil.privacy.ledger.entries import Store


def bundle_problems(
    store: Store, recorded: dict[str, Any], statement_sha256: str | None
) -> list[str]:
    """What is wrong between a bundle and a ledger.

    Parameters
    ----------
    store
        Where the ledger is kept.
    recorded
        What the bundle's statement says of the ledger.
    statement_sha256
        The digest of the statement's file, to be compared with the one that was released.
    """
    if recorded.get("ledger") != store.id:
        return ["the bundle was charged to another ledger"]
    number = recorded.get("entry")
    found = store.hash_of(number)
    if found is None:
        return [
            f"entry {number}, which the bundle was charged to, is not in the ledger: its "
            "tail was cut off or an older copy was put back"
        ]
    if found != recorded.get("hash"):
        return [f"entry {number} is not the one that the bundle was charged to"]
    released = [] if store.problems() else _released(store, number)
    if statement_sha256 is not None and released and statement_sha256 not in released:
        return ["its statement is not the one that was released"]
    return []


def _released(store: Store, charge: object) -> list[object]:
    """The digests of the statements that were released for a charge."""
    return [
        entry.body.get("statement")
        for entry in store.entries()
        if entry.kind == "release" and entry.body.get("charge") == charge
    ]
