"""Ledgers with changed bytes, and ledgers with a forged entry whose hashes fit."""

import json
import sqlite3
import tempfile
from pathlib import Path

from fuzz.mutations import VALUES, Choose, mutate_binary, mutate_tree
from fuzz.verdicts import wrong_unless
from support.making import adjacency

from gridveil.errors import GridveilError
from gridveil.privacy.ledger import Ledger, Terms

SPENT = {"farm 0": "3/2", "farm 1": "3/2", "farm 2": "1"}
FORGED = b"\1"


def _ledger() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.sqlite"
        ledger = Ledger(path)
        for number in range(8):
            charge = ledger.charge(
                Terms(
                    f"farm {number % 3}",
                    epsilon="1/2",
                    adjacency=[adjacency()],
                    clear=["speed"],
                    purpose="a test",
                )
            )
            ledger.record_release(charge, "0" * 64)
        ledger.set_cap("farm 1", 2, alpha={"power": "0.1"})
        connection = sqlite3.connect(path)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.close()
        return path.read_bytes()


LEDGER = _ledger()


def make_ledger(choose: Choose) -> bytes:
    """A ledger's file, or an entry to forge."""
    if choose(4):
        return b"\0" + mutate_binary(LEDGER, choose, [LEDGER])
    adjacent = {"power": {"alpha": "1", "unit": "MW"}}
    body = {
        "epsilon": "1/2", "charged": "1/2", "adjacency": adjacent, "clear": ["speed"],
        "private": ["power"], "purpose": "x", "cap": "2", "charge": 1, "alpha": adjacent,
        "version": 2,
    }  # fmt: skip
    for _ in range(1 + choose(2)):
        mutate_tree(body, choose)
    kinds = ("charge", "cap", "reference", "release", "abort", str(VALUES[choose(len(VALUES))]))
    kind = kinds[choose(len(kinds))]
    return FORGED + json.dumps([kind, body]).encode()


def check_ledger(data: bytes, folder: Path) -> bool:
    """Open it and add it up: it is refused, or says what it always said."""
    path = folder / "ledger.sqlite"
    for beside in folder.glob("ledger.sqlite*"):
        beside.unlink()
    forged, body = data[:1] == FORGED, data[1:]
    path.write_bytes(LEDGER if forged else body)
    try:
        ledger = Ledger(path)
        if forged:
            _forge(ledger, body)
        all_totals = {one.dataset: one for one in ledger.all_totals()}
    except GridveilError:
        return False
    if not body:
        return True  # an empty file is a new ledger
    for name, spent in SPENT.items():
        wrong_unless(name in all_totals, f"{name} is gone")
        if not (forged and name == "farm 0"):
            wrong_unless(str(all_totals[name].spent) == spent, f"{name} has spent another sum")
    return True


def _forge(ledger: Ledger, data: bytes) -> None:
    try:
        kind, body = json.loads(data)
        kind.encode()
    except (ValueError, TypeError, AttributeError, RecursionError):
        kind, body = "charge", {}
    ledger.write(lambda book: book.append(kind, "farm 0", body))
