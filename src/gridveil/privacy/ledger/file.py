"""The ledger's file: how it is made, locked, written and read back.

SQLite, written ahead and synchronised, one immediate transaction per entry. SQLite drops a damaged
log without a word, so an entry is moved from the log into the file before anything is done that it
is for. With the lock held, `write` calls back into the ledger, which checks the charge.

**Made in one step.** The file is there with everything in it, or it is not there. So an empty file
is always one that was emptied, and never one that was about to be filled.

**One name, one writer.** SQLite's log and the locks on it belong to a name. Two names of one file
(a hard link, a folder that is mounted twice) have two logs, and each would overwrite what was
charged by the other. So a file with several names is refused, and a lock on the file itself keeps
apart those that can't be seen: one waits until the other's log is in the file.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from gridveil.errors import LedgerError, reason
from gridveil.privacy.ledger.entries import FORMAT, Book, Entry, Row, Store, T, canonical
from gridveil.privacy.ledger.identity import name_key
from gridveil.privacy.ledger.place import refuse_network_file_system

_PATIENCE = 60.0  # seconds to wait for another process's transaction
_READERS = 5.0  # seconds to wait for those that read while an entry goes from the log to the file


class LedgerFile(Store):
    """One file of entries. Opening makes it if it does not exist."""

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
        if os.path.isdir(self.path):
            raise LedgerError(f"The ledger {self.path} is a folder.", remedy="Name a file in it.")
        if not os.path.exists(self.path):
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
                "file: a new ledger is made if there is none.",
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
    _add_row(connection, entry)


def _put_log_away(connection: sqlite3.Connection) -> None:
    """Move what was committed from the log into the file, synchronise that, and empty the log.

    The entry is safe in the log already. So if another program reads for long, or a disk is
    full, it stays there.
    """
    connection.execute(f"PRAGMA busy_timeout = {int(1000 * _READERS)}")
    with suppress(sqlite3.OperationalError):
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()


# -- how it is made -------------------------------------------------------------------------------

_ENDING = ".new"
_DEAD = 3600.0  # seconds after which a file that was never finished is surely nobody's
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}

_SCHEMA = """
CREATE TABLE ledger (id TEXT NOT NULL);
CREATE TABLE entries (
    number INTEGER PRIMARY KEY, time TEXT NOT NULL, kind TEXT NOT NULL, dataset TEXT NOT NULL,
    key TEXT NOT NULL, body TEXT NOT NULL, previous TEXT NOT NULL, hash TEXT NOT NULL);
CREATE INDEX entries_of_dataset ON entries (key);
CREATE TRIGGER never_change BEFORE UPDATE ON entries
    BEGIN SELECT RAISE(ABORT, 'ledger entries are never changed'); END;
CREATE TRIGGER never_delete BEFORE DELETE ON entries
    BEGIN SELECT RAISE(ABORT, 'ledger entries are never deleted'); END;
"""


@contextmanager
def made_in_one_step(path: Path) -> Iterator[Path]:
    """Write a whole file under another name beside ``path``; it gets its name at the end.

    If another process was first, that file counts.
    """
    for left in left_over(path):  # by a process that was killed here
        with suppress(OSError):
            if time.time() - left.stat().st_mtime > _DEAD:
                left.unlink()
    beside = path.with_name(f".{path.name[:100]}.{uuid.uuid4().hex}{_ENDING}")
    try:
        os.close(os.open(beside, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        yield beside
        _synchronise(beside)
        with suppress(FileExistsError):
            _place(beside, path)
        _synchronise(path.parent)
    finally:
        for end in ("", "-wal", "-shm", "-journal"):
            beside.with_name(f"{beside.name}{end}").unlink(missing_ok=True)


def _place(beside: Path, path: Path) -> None:
    """Give the file its name. Never by a rename over what is there, which may hold charges."""
    if os.name == "nt":
        os.rename(beside, path)  # refuses to replace
        return
    try:
        os.link(beside, path)
    except OSError as problem:
        if problem.errno not in _NO_LINKS:
            raise
        # A file system without links: what a crash leaves half written is refused as damaged.
        with os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as made:
            made.write(beside.read_bytes())
            made.flush()
            os.fsync(made.fileno())


def _synchronise(path: Path) -> None:
    if os.name == "nt":
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def left_over(path: Path) -> list[Path]:
    """Files beside a ledger that were never finished, or are its first name."""
    found = path.parent.glob(f".*{_ENDING}")
    return [one for one in found if one.name.startswith(f".{path.name[:100]}.")]


def _add_row(connection: sqlite3.Connection, entry: Entry) -> None:
    """Write one entry, as it is."""
    connection.execute(
        "INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (
            entry.number,
            entry.time,
            entry.kind,
            entry.dataset,
            name_key(entry.dataset),
            canonical(entry.body),
            entry.previous,
            entry.hash,
        ),
    )


def write_new(path: Path, ledger: str | None = None, entries: Sequence[Entry] = ()) -> None:
    """Write a ledger to a file that nobody else knows of: a new one, or one that moves here."""
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.execute("PRAGMA journal_mode = MEMORY")
        connection.execute("BEGIN IMMEDIATE")
        for statement in _split(_SCHEMA):
            connection.execute(statement)
        connection.execute("INSERT INTO ledger VALUES (?)", (ledger or str(uuid.uuid4()),))
        for entry in entries:
            _add_row(connection, entry)
        connection.execute(f"PRAGMA user_version = {FORMAT}")
        connection.execute("COMMIT")
        connection.execute("PRAGMA journal_mode = WAL")
    finally:
        connection.close()


def _split(script: str) -> list[str]:
    statements, current = [], ""
    for line in script.strip().splitlines():
        current += line + "\n"
        if sqlite3.complete_statement(current):
            statements.append(current)
            current = ""
    return statements


# -- one name, one writer -------------------------------------------------------------------------

_PAUSE = 0.005  # seconds between two tries to get the lock

# Closing any handle of a file drops all locks that its process has on it through SQLite: only one
# thread at a time may have the file open.
_one_thread = threading.RLock()


def _renew() -> None:
    """In a forked process: the thread that held the lock is not there to let go of it."""
    global _one_thread
    _one_thread = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)


def refuse_other_names(path: Path) -> None:
    """Raise `LedgerError` if a ledger has another name; what a killed process left is removed."""
    if path.stat().st_nlink > 1:
        _drop_spare_names(Path(os.path.realpath(path)))
    if (names := path.stat().st_nlink) > 1:
        raise LedgerError(
            f"The ledger {path} has {names} names (hard links). Charges under one would be lost "
            "under another.",
            remedy="Keep one name and remove the others; a backup is a copy, not a link. Then "
            "check it against your bundles: gridveil ledger verify --bundle.",
        )


def _drop_spare_names(path: Path) -> None:
    """Remove the first name of a ledger that was made by a process killed just after."""
    for left in left_over(path):
        with suppress(OSError):
            if left.samefile(path):
                left.unlink()


@contextmanager
def locked(path: Path, *, alone: bool, patience: float) -> Iterator[None]:
    """Hold the lock of a ledger's file.

    Parameters
    ----------
    path
        The file, by any of its names.
    alone
        Whether nobody else may read it meanwhile.
    patience
        Seconds to wait for others.
    """
    with _one_thread:
        if sys.platform != "linux":
            # Elsewhere such a lock stands in the way of SQLite's own.
            yield
            return
        import fcntl

        try:
            handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as problem:
            raise _unusable(path, reason(problem)) from None
        try:
            _wait(path, handle, fcntl.LOCK_EX if alone else fcntl.LOCK_SH, patience)
            try:
                yield
            finally:
                # Not by closing alone: a process forked meanwhile has the handle too.
                fcntl.flock(handle, fcntl.LOCK_UN)
        finally:
            os.close(handle)


def _wait(path: Path, handle: int, kind: int, patience: float) -> None:
    import fcntl

    end = time.monotonic() + patience
    while True:
        try:
            return fcntl.flock(handle, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > end:
                raise _unusable(path, "another process keeps it locked") from None
        except OSError as problem:
            raise _unusable(path, reason(problem)) from None
        time.sleep(_PAUSE)


def _unusable(path: Path, why: str) -> LedgerError:
    return LedgerError(
        f"The ledger {path} can't be used ({why}).",
        remedy="Nothing was released. Try again when nothing else uses it, and keep it on a local "
        "disk: --ledger FILE or GRIDVEIL_LEDGER.",
    )
