"""How a ledger's file is made: in one step.

The file is there with everything in it, or it is not there. So an empty file is always one that was
emptied, and never one that was about to be filled.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from gridveil.privacy.ledger.entries import Entry, canonical
from gridveil.privacy.ledger.names import name_key
from gridveil.privacy.ledger.store import FORMAT

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


def insert(connection: sqlite3.Connection, entry: Entry) -> None:
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
            insert(connection, entry)
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
