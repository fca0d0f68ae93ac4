"""Making the ledger's file in one step: it is there with everything in it, or it is not there.

So an empty file is always one that was emptied, and never one that was about to be filled.
"""

from __future__ import annotations

import errno
import os
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

_ENDING = ".new"
_DEAD = 3600.0  # seconds after which a file that was never finished is surely nobody's
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}


def make_ledger(path: Path, write: Callable[[Path], None]) -> None:
    """Make a file by a function that writes it, unless another process makes it first.

    Parameters
    ----------
    path
        Where it will be.
    write
        Writes the whole file under another name beside it.
    """
    _clear_up(path)
    beside = path.with_name(f".{path.name[:100]}.{uuid.uuid4().hex}{_ENDING}")
    try:
        os.close(os.open(beside, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        write(beside)
        _synchronise(beside)
        with suppress(FileExistsError):  # another process was first: that ledger counts
            _place(beside, path)
        _synchronise(path.parent)
    finally:
        for name in (beside, *_logs(beside)):
            name.unlink(missing_ok=True)


def drop_spare_names(path: Path) -> None:
    """Remove the first name of a ledger that was made by a process killed just after."""
    for left in _left(path):
        with suppress(OSError):
            if left.samefile(path):
                left.unlink()


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


def _clear_up(path: Path) -> None:
    """Remove what a process left that was killed while it made a ledger here."""
    for left in _left(path):
        with suppress(OSError):
            if time.time() - left.stat().st_mtime > _DEAD:
                left.unlink()


def _left(path: Path) -> list[Path]:
    found = path.parent.glob(f".*{_ENDING}")
    return [one for one in found if one.name.startswith(f".{path.name[:100]}.")]


def _logs(path: Path) -> list[Path]:
    return [path.with_name(f"{path.name}{end}") for end in ("-wal", "-shm", "-journal")]
