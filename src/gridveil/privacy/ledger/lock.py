"""The one name of a ledger's file, and the lock on it.

SQLite's log and the locks on it belong to a name. Two names of one file (a hard link, a folder that
is mounted twice) have two logs, and each would overwrite what was charged by the other. So a file
with several names is refused, and a lock on the file itself keeps apart those that can't be seen:
one waits until the other's log is in the file.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gridveil.errors import LedgerError, reason
from gridveil.privacy.ledger.making import left_over

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
