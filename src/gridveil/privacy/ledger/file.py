"""The ledger's file: how entries are stored, read back and checked.

SQLite, written ahead and synchronised, one immediate transaction per entry. SQLite drops a damaged
log without a word, so an entry is moved from the log into the file before anything is done that it
is for. All this is done under a lock on the file itself (`lock`): SQLite's belong to its name. With
the lock held, `write` calls back into the ledger, which checks the charge.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from gridveil.errors import LedgerError, reason
from gridveil.privacy.ledger.entries import Entry
from gridveil.privacy.ledger.lock import locked, refuse_other_names
from gridveil.privacy.ledger.making import insert, made_in_one_step, write_new
from gridveil.privacy.ledger.path import refuse_network_file_system
from gridveil.privacy.ledger.store import FORMAT, Book, Row, Store, T

_PATIENCE = 60.0  # seconds to wait for another process's transaction
_READERS = 5.0  # seconds to wait for those that read while an entry goes from the log to the file


class LedgerFile(Store):
    """One file of entries. Opening makes it where it does not exist."""

    def __init__(self, path: Path) -> None:
        self.place = self.path = path
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

    def write(self, work: Callable[[Book], T]) -> T:
        """Do some work on the book, alone; keep what it appended, unless it raised an error."""
        with self.connect(alone=True) as connection:
            refuse_other_names(self.path)
            connection.execute("BEGIN IMMEDIATE")
            try:
                entries = self._sound(*_look(connection))
                result = work(Book(self.id, entries, partial(_insert, connection), []))
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
            _put_log_away(connection)
        return result

    def _look(self) -> tuple[list[Row], list[str]]:
        with self.connect() as connection:
            return _look(connection)

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
            raise self.newer(found)
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        if {name for (name,) in tables} != {"ledger", "entries"}:
            raise LedgerError(
                f"{self.path} is a database, but not a ledger.",
                remedy="Name another file: --ledger FILE or GRIDVEIL_LEDGER.",
            )
        if found == 0:
            raise self.damaged("its format is gone")


def _look(connection: sqlite3.Connection) -> tuple[list[Row], list[str]]:
    # Never by the index or the key, which the chain does not cover.
    rows: list[Row] = connection.execute(
        "SELECT number, time, kind, dataset, body, previous, hash FROM entries NOT INDEXED "
        "ORDER BY number"
    ).fetchall()
    check = connection.execute("PRAGMA integrity_check").fetchone()[0]
    return rows, [] if check == "ok" else [f"the file is damaged ({check})"]


def _insert(connection: sqlite3.Connection, entry: Entry) -> None:
    # An older GridVeil would misread what is added from here on.
    connection.execute(f"PRAGMA user_version = {FORMAT}")
    insert(connection, entry)


def _put_log_away(connection: sqlite3.Connection) -> None:
    """Move what was committed from the log into the file, synchronise that, and empty the log.

    The entry is safe in the log already. So where another program reads for long, or a disk is
    full, it stays there.
    """
    connection.execute(f"PRAGMA busy_timeout = {int(1000 * _READERS)}")
    with suppress(sqlite3.OperationalError):
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
