"""The ledger: the durable record of how much epsilon each dataset has spent.

One append-only SQLite table, written ahead and synchronised, one immediate transaction an entry,
each entry chained by hash to all before it. Everything else (what is spent, the cap, the
reference alpha, what is public) follows from the entries, so there is nothing to fall out of
step. A release is charged before it draws noise; a charge without a release stays spent.

What the entries of a dataset add up to, and the rules for the next one, are in `standing`.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

from gridveil.errors import BudgetRefused, InputError, LedgerError
from gridveil.privacy.adjacency import Adjacency
from gridveil.privacy.budget import Exact, exact
from gridveil.privacy.chain import Entry, breaks, canonical, entry_hash, first_link
from gridveil.privacy.location import ledger_path, refuse_network_file_system
from gridveil.privacy.standing import (
    Standing,
    checked_name,
    name_key,
    refuse_exposed,
    steps_to_reference,
)

_FORMAT = 1
_PATIENCE = 60.0  # seconds to wait for another process's transaction

_SCHEMA = """
CREATE TABLE IF NOT EXISTS ledger (id TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS entries (
    number INTEGER PRIMARY KEY, time TEXT NOT NULL, kind TEXT NOT NULL, dataset TEXT NOT NULL,
    key TEXT NOT NULL, body TEXT NOT NULL, previous TEXT NOT NULL, hash TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS entries_of_dataset ON entries (key);
CREATE TRIGGER IF NOT EXISTS never_change BEFORE UPDATE ON entries
    BEGIN SELECT RAISE(ABORT, 'ledger entries are never changed'); END;
CREATE TRIGGER IF NOT EXISTS never_delete BEFORE DELETE ON entries
    BEGIN SELECT RAISE(ABORT, 'ledger entries are never deleted'); END;
"""


@dataclass(frozen=True)
class Charge:
    """A charge that the ledger accepted."""

    ledger: str
    entry: int
    hash: str
    dataset: str
    epsilon: Fraction
    charged: Fraction
    spent: Fraction
    earlier_aborts: int


class Ledger:
    """The ledger in one file. Opening makes it where it does not exist.

    Parameters
    ----------
    path
        The file; see `gridveil.privacy.location.ledger_path` for the default.
    """

    def __init__(self, path: Path | str | None = None) -> None:
        self.path = ledger_path(path)
        refuse_network_file_system(self.path)
        self._create()
        with self._connect() as connection:
            self.id = str(connection.execute("SELECT id FROM ledger").fetchone()[0])

    # -- writing ------------------------------------------------------------------------------

    def charge(
        self,
        dataset: str,
        *,
        epsilon: Exact,
        adjacency: Sequence[Adjacency],
        clear: Sequence[str] = (),
        private: Sequence[str] | None = None,
        purpose: str,
    ) -> Charge:
        """Charge a release, or change nothing and raise `LedgerRefused`.

        Parameters
        ----------
        dataset
            The owner's name for the data. Updated or overlapping data keeps its name.
        epsilon
            The release's guarantee for one entry that moves by ``alpha``.
        adjacency
            The private parameters with their alphas.
        clear
            What the release will publish as it is: parameters of a network, columns of a table.
        private
            What it keeps private, in the same words; the names of the parameters by default.
        purpose
            What is released, in a few public words.
        """
        amount = exact(epsilon, name="epsilon")
        if not adjacency:
            raise InputError("A charge needs at least one private parameter.")
        with self._transaction() as connection:
            standing = self._standing(connection, dataset)
            hidden = [one.parameter for one in adjacency] if private is None else private
            refuse_exposed(standing, hidden, clear)
            factor = max(steps_to_reference(standing, one) for one in adjacency)
            charged = amount * factor
            remaining = standing.remaining
            if remaining is not None and charged > remaining:
                raise BudgetRefused(charged, remaining, of=f"dataset {standing.dataset!r}")
            body = {
                "epsilon": str(amount),
                "charged": str(charged),
                "adjacency": {
                    one.parameter: {"alpha": str(one.alpha), "unit": one.unit} for one in adjacency
                },
                "clear": sorted(clear),
                "private": sorted(hidden),
                "purpose": purpose,
            }
            entry = self._append(connection, "charge", standing.dataset, body)
        return Charge(
            self.id,
            entry.number,
            entry.hash,
            standing.dataset,
            amount,
            charged,
            standing.spent + charged,
            standing.aborts,
        )

    def record_release(self, charge: Charge, statement_sha256: str) -> None:
        """Note that a charge became a bundle, by the digest of its published statement."""
        self._note("release", charge, {"charge": charge.entry, "statement": statement_sha256})

    def record_abort(self, charge: Charge) -> None:
        """Note that a computation on private data failed after this charge."""
        self._note("abort", charge, {"charge": charge.entry})

    def set_cap(self, dataset: str, cap: Exact | None) -> None:
        """Set the most that a dataset may ever spend, or take the cap away with None."""
        amount = None if cap is None else str(exact(cap, name="the cap"))
        with self._transaction() as connection:
            standing = self._standing(connection, dataset)
            self._append(connection, "cap", standing.dataset, {"cap": amount})

    # -- reading ------------------------------------------------------------------------------

    def standing(self, dataset: str) -> Standing:
        """What a dataset has spent, its cap, its reference alphas and what is public of it."""
        with self._connect() as connection:
            return self._standing(connection, dataset)

    def standings(self) -> list[Standing]:
        """The standing of every dataset, in the order of their first entries."""
        found: dict[str, Standing] = {}
        for entry in self.entries():
            found.setdefault(name_key(entry.dataset), Standing(entry.dataset)).add(entry)
        return list(found.values())

    def entries(self, dataset: str | None = None) -> list[Entry]:
        """All entries, or those of one dataset, oldest first."""
        with self._connect() as connection:
            return list(self._entries(connection, dataset))

    def problems(self) -> list[str]:
        """Everything that is wrong with the file and its chain; empty where all is well."""
        with self._connect() as connection:
            check = connection.execute("PRAGMA integrity_check").fetchone()[0]
            found = [] if check == "ok" else [f"the file is damaged ({check})"]
            return found + list(breaks(self.id, self._entries(connection, None)))

    def bundle_problems(self, recorded: dict[str, Any]) -> list[str]:
        """What is wrong between a bundle's ledger record and this ledger."""
        if recorded.get("ledger") != self.id:
            return ["the bundle was charged to another ledger"]
        number = recorded.get("entry")
        found = [entry for entry in self.entries() if entry.number == number]
        if not found:
            return [
                f"entry {number}, which the bundle was charged to, is not in the ledger: its "
                "tail was cut off or an older copy was put back"
            ]
        if found[0].hash != recorded.get("hash"):
            return [f"entry {number} is not the one that the bundle was charged to"]
        return []

    def __repr__(self) -> str:
        return f"Ledger({str(self.path)!r}, {len(self.standings())} datasets)"

    # -- the file -----------------------------------------------------------------------------

    def _create(self) -> None:
        if self.path.is_dir():
            raise LedgerError(f"The ledger {self.path} is a folder.", remedy="Name a file in it.")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
        except OSError as problem:
            raise LedgerError(
                f"The ledger {self.path} can't be opened: {problem.strerror}.",
                remedy="Name a file that you may write: --ledger FILE or GRIDVEIL_LEDGER.",
            ) from None
        if os.name == "posix" and self.path.stat().st_mode & 0o077:
            self.path.chmod(0o600)
        with self._connect() as connection:
            if self._format(connection) == _FORMAT:
                return
            _switch_to_wal(connection)
            connection.execute("BEGIN IMMEDIATE")
            for statement in _split(_SCHEMA):
                connection.execute(statement)
            connection.execute(
                "INSERT INTO ledger SELECT ? WHERE NOT EXISTS (SELECT * FROM ledger)",
                (str(uuid.uuid4()),),
            )
            connection.execute(f"PRAGMA user_version = {_FORMAT}")
            connection.execute("COMMIT")

    def _format(self, connection: sqlite3.Connection) -> int:
        found = int(connection.execute("PRAGMA user_version").fetchone()[0])
        if found > _FORMAT:
            raise LedgerError(
                f"The ledger {self.path} was written by a newer GridVeil (format {found}; this "
                f"one knows {_FORMAT}).",
                remedy="Update GridVeil. The ledger was not changed.",
            )
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        if found == 0 and {name for (name,) in tables} - {"ledger", "entries"}:
            raise LedgerError(
                f"{self.path} is a database, but not a ledger.",
                remedy="Name another file: --ledger FILE or GRIDVEIL_LEDGER.",
            )
        return found

    @contextmanager
    def _connect(self) -> Iterator[sqlite3.Connection]:
        """A connection for one operation; a damaged file becomes a `LedgerError`."""
        connection: sqlite3.Connection | None = None
        try:
            connection = sqlite3.connect(self.path, timeout=_PATIENCE, isolation_level=None)
            connection.execute("PRAGMA synchronous = FULL")
            yield connection
        except sqlite3.Error as problem:
            raise LedgerError(
                f"The ledger {self.path} can't be used ({problem}).",
                remedy="Nothing was charged. If the file is damaged, put its newest backup in "
                "its place and check it against your bundles: gridveil ledger verify --bundle.",
            ) from None
        finally:
            if connection is not None:
                connection.close()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._connect() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")

    def _append(
        self, connection: sqlite3.Connection, kind: str, dataset: str, body: dict[str, Any]
    ) -> Entry:
        last = connection.execute(
            "SELECT number, hash FROM entries ORDER BY number DESC LIMIT 1"
        ).fetchone()
        number, previous = (last[0] + 1, last[1]) if last else (1, first_link(self.id))
        now = datetime.now(UTC).isoformat(timespec="seconds")
        digest = entry_hash(number, now, kind, dataset, body, previous)
        connection.execute(
            "INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (number, now, kind, dataset, name_key(dataset), canonical(body), previous, digest),
        )
        return Entry(number, now, kind, dataset, body, previous, digest)

    def _note(self, kind: str, charge: Charge, body: dict[str, Any]) -> None:
        with self._transaction() as connection:
            self._append(connection, kind, charge.dataset, body)

    def _entries(self, connection: sqlite3.Connection, dataset: str | None) -> Iterator[Entry]:
        where, values = ("", ()) if dataset is None else ("WHERE key = ?", (name_key(dataset),))
        rows = connection.execute(
            "SELECT number, time, kind, dataset, body, previous, hash FROM entries "
            f"{where} ORDER BY number",
            values,
        )
        for number, at, kind, name, body, previous, digest in rows:
            yield Entry(number, at, kind, name, json.loads(body), previous, digest)

    def _standing(self, connection: sqlite3.Connection, dataset: str) -> Standing:
        standing = Standing(checked_name(dataset))
        for entry in self._entries(connection, dataset):
            standing.dataset = entry.dataset
            standing.add(entry)
        return standing


def _switch_to_wal(connection: sqlite3.Connection) -> None:
    # SQLite does not wait for this lock by itself.
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _split(script: str) -> list[str]:
    statements, current = [], ""
    for line in script.strip().splitlines():
        current += line + "\n"
        if sqlite3.complete_statement(current):
            statements.append(current)
            current = ""
    return statements
