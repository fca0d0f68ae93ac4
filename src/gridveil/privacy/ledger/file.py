"""The ledger's file: how entries are stored, read back and checked.

SQLite, written ahead and synchronised, one immediate transaction an entry. Every write first
checks the whole file and its chain: a flipped bit that lowered what was spent would let a dataset
overspend, so a damaged ledger is neither added up nor added to. SQLite drops a damaged log without
a word, so an entry is moved from the log into the file before anything is done that it is for.
All this is done under a lock on the file itself (`lock`), since SQLite's belong to its name.
"""

from __future__ import annotations

import os
import sqlite3
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gridveil.errors import LedgerError, reason
from gridveil.privacy.ledger.entries import (
    Entry,
    breaks,
    canonical,
    entry_hash,
    first_link,
    read_entry,
)
from gridveil.privacy.ledger.lock import locked, refuse_other_names
from gridveil.privacy.ledger.making import FORMAT, made_in_one_step, write_new
from gridveil.privacy.ledger.names import name_key
from gridveil.privacy.ledger.path import refuse_network_file_system

_PATIENCE = 60.0  # seconds to wait for another process's transaction
_READERS = 5.0  # seconds to wait for those that read while an entry goes from the log to the file

Row = Sequence[Any]


class LedgerFile:
    """One file of entries. Opening makes it where it does not exist."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            refuse_network_file_system(path)
            self._prepare()
        except (OSError, ValueError, sqlite3.Error) as problem:
            why = "its name can't be used"
            if not isinstance(problem, ValueError):
                why = reason(problem) if isinstance(problem, OSError) else str(problem)
            raise LedgerError(
                f"The ledger {path} can't be opened: {why}.",
                remedy="Name a file that you may write: --ledger FILE or GRIDVEIL_LEDGER.",
            ) from None
        with self.connect() as connection:
            self._check_format(connection)
            found = connection.execute("SELECT id FROM ledger").fetchone()
        if found is None or not isinstance(found[0], str):
            raise self.damaged("its number is gone")
        self.id: str = found[0]

    @contextmanager
    def connect(self, *, alone: bool = False) -> Iterator[sqlite3.Connection]:
        """A connection for one operation; a damaged file becomes a `LedgerError`."""
        with locked(self.path, alone=alone, patience=_PATIENCE), self._open() as connection:
            yield connection

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        connection: sqlite3.Connection | None = None
        try:
            connection = sqlite3.connect(self.path, timeout=_PATIENCE, isolation_level=None)
            connection.execute("PRAGMA synchronous = FULL")
            yield connection
        except (sqlite3.Error, UnicodeDecodeError) as problem:
            # A damaged schema makes sqlite3 fail to decode its own message.
            why = problem if isinstance(problem, sqlite3.Error) else "its schema is damaged"
            raise LedgerError(
                f"The ledger {self.path} can't be used ({why}).",
                remedy="Nothing was released. If the file is damaged, put its newest backup in "
                "its place and check it against your bundles: gridveil ledger verify --bundle.",
            ) from None
        finally:
            if connection is not None:
                connection.close()

    @contextmanager
    def transaction(self) -> Iterator[tuple[sqlite3.Connection, list[Entry]]]:
        """An immediate transaction on a ledger that was found whole, and its entries so far."""
        with self.connect(alone=True) as connection:
            refuse_other_names(self.path)
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection, self._sound_entries(connection)
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
            _put_log_away(connection)

    def append(
        self, connection: sqlite3.Connection, kind: str, dataset: str, body: dict[str, Any]
    ) -> Entry:
        """Add an entry within a transaction.

        Its body gets a random number, so that nobody who guesses an entry can check the guess by
        a hash that was published.
        """
        last = connection.execute(
            "SELECT number, hash FROM entries ORDER BY number DESC LIMIT 1"
        ).fetchone()
        number, previous = (last[0] + 1, last[1]) if last else (1, first_link(self.id))
        # An older GridVeil would misread what is added from here on.
        connection.execute(f"PRAGMA user_version = {FORMAT}")
        now = datetime.now(UTC).isoformat(timespec="seconds")
        body = {**body, "salt": uuid.uuid4().hex}
        digest = entry_hash(number, now, kind, dataset, body, previous)
        connection.execute(
            "INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (number, now, kind, dataset, name_key(dataset), canonical(body), previous, digest),
        )
        return Entry(number, now, kind, dataset, body, previous, digest)

    def entries(self) -> list[Entry]:
        """All entries, oldest first, or `LedgerError` where the file or its chain is damaged."""
        with self.connect() as connection:
            return self._sound_entries(connection)

    def problems(self) -> list[str]:
        """Everything that is wrong with the file and its chain; empty where all is well."""
        with self.connect() as connection:
            return self._problems(connection, _rows(connection))

    def hash_of(self, number: object) -> str | None:
        """The hash of one entry, whether the rest is whole or not; None where it is not there."""
        with self.connect() as connection:
            return next((str(row[-1]) for row in _rows(connection) if row[0] == number), None)

    def damaged(self, how: str) -> LedgerError:
        """The error that says that the file can't be trusted."""
        return LedgerError(
            f"The ledger {self.path} is damaged: {how}.",
            remedy="Nothing was released. Put its newest backup in its place and check it against "
            "your bundles: gridveil ledger verify --bundle.",
        )

    def _prepare(self) -> None:
        """Make the file if there is none, for its owner alone; refuse one that was emptied."""
        if self.path.is_dir():
            raise LedgerError(f"The ledger {self.path} is a folder.", remedy="Name a file in it.")
        if not self.path.exists():
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with made_in_one_step(Path(os.path.realpath(self.path))) as beside:
                write_new(beside)
        with locked(self.path, alone=False, patience=_PATIENCE):
            os.close(os.open(self.path, os.O_RDWR))
        refuse_other_names(self.path)
        status = self.path.stat()
        if os.name == "posix" and status.st_mode & 0o077:
            self.path.chmod(0o600)
        if status.st_size <= 1:  # SQLite would take it for a new one
            raise LedgerError(
                f"The ledger {self.path} is damaged: "
                + ("only one byte is left of it." if status.st_size else "it is empty."),
                remedy="Put its newest backup in its place and check it against your bundles: "
                "gridveil ledger verify --bundle. If nothing was ever charged to it, remove the "
                "file: a new ledger is made where there is none.",
            )

    def _check_format(self, connection: sqlite3.Connection) -> None:
        found = int(connection.execute("PRAGMA user_version").fetchone()[0])
        if found > FORMAT:
            raise LedgerError(
                f"The ledger {self.path} was written by a newer GridVeil (format {found}; this "
                f"one knows {FORMAT}).",
                remedy="Update GridVeil. The ledger was not changed.",
            )
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        if {name for (name,) in tables} != {"ledger", "entries"}:
            raise LedgerError(
                f"{self.path} is a database, but not a ledger.",
                remedy="Name another file: --ledger FILE or GRIDVEIL_LEDGER.",
            )
        if found == 0:
            raise self.damaged("its format is gone")

    def _problems(self, connection: sqlite3.Connection, rows: Sequence[Row]) -> list[str]:
        check = connection.execute("PRAGMA integrity_check").fetchone()[0]
        if check != "ok":
            return [f"the file is damaged ({check})"]
        entries = [read_entry(row) for row in rows]
        unreadable = [
            f"entry {row[0]} can't be read"
            for row, entry in zip(rows, entries, strict=True)
            if entry is None
        ]
        return unreadable or list(breaks(self.id, [e for e in entries if e is not None]))

    def _sound_entries(self, connection: sqlite3.Connection) -> list[Entry]:
        rows = _rows(connection)
        if problems := self._problems(connection, rows):
            raise self.damaged(problems[0])
        return [entry for entry in map(read_entry, rows) if entry is not None]


def _rows(connection: sqlite3.Connection) -> list[Row]:
    # Never by the index or the key, which the chain does not cover.
    return connection.execute(
        "SELECT number, time, kind, dataset, body, previous, hash FROM entries NOT INDEXED "
        "ORDER BY number"
    ).fetchall()


def _put_log_away(connection: sqlite3.Connection) -> None:
    """Move what was committed from the log into the file, synchronise that, and empty the log.

    The entry is safe in the log already. So where another program reads for long, or a disk is
    full, it stays there.
    """
    connection.execute(f"PRAGMA busy_timeout = {int(1000 * _READERS)}")
    with suppress(sqlite3.OperationalError):
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
