"""The ledger's file on disk: where it is, how it is made, its one name and its lock.

**Place.** Never on a network file system, whose locks can't be trusted.

**Making.** In one step: the file is there with everything in it, or it is not there. So an empty
file is always one that was emptied, and never one that was about to be filled.

**Name and lock.** SQLite's log and the locks on it belong to a name. Two names of one file (a hard
link, a folder that is mounted twice) have two logs, and each would overwrite what was charged by
the other. So a file with several names is refused, and a lock on the file itself keeps apart those
that can't be seen: one waits until the other's log is in the file.
"""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gridveil.errors import LedgerError, reason

_NETWORK = {
    "9p", "afp", "afpfs", "afs", "beegfs", "ceph", "cifs", "coda", "drvfs", "fuse.ceph",
    "fuse.glusterfs", "fuse.rclone", "fuse.s3fs", "fuse.sshfs", "glusterfs", "gpfs", "lustre",
    "ncpfs", "nfs", "nfs4", "ocfs2", "orangefs", "smb3", "smbfs", "webdav",
}  # fmt: skip
_OCTAL = re.compile(r"\\([0-7]{3})")
_ENDING = ".new"
_DEAD = 3600.0  # seconds after which a file that was never finished is surely nobody's
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}
_PAUSE = 0.005  # seconds between two tries to get the lock

# -- where it is ------------------------------------------------------------------------------


def ledger_path(given: Path | str | None = None) -> Path:
    """The ledger's file: as given, else ``GRIDVEIL_LEDGER``, else in the user's data folder."""
    if given is not None:
        return _expanded(given)
    if from_environment := os.environ.get("GRIDVEIL_LEDGER"):
        return _expanded(from_environment)
    import platformdirs

    return Path(platformdirs.user_data_dir("gridveil", appauthor=False)) / "ledger.sqlite"


def _expanded(path: Path | str) -> Path:
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise LedgerError(
            f"The ledger {path} is in the home of a user who is not known here.",
            remedy="Write out its folder: --ledger FILE or GRIDVEIL_LEDGER.",
        ) from None


def refuse_network_file_system(path: Path) -> None:
    """Raise `LedgerError` where file locks can't be trusted: two releases could overspend."""
    kind = file_system(path)
    if kind in _NETWORK:
        raise LedgerError(
            f"The ledger {path} is on a network file system ({kind}), whose locks can't be "
            "trusted to keep two releases from overspending.",
            remedy="Put it on a local disk: --ledger FILE or GRIDVEIL_LEDGER.",
        )


def file_system(path: Path) -> str:
    """The type of the file system that holds a path, or ``"unknown"``."""
    place = path.resolve()
    while not place.exists() and place != place.parent:
        place = place.parent
    if sys.platform == "win32":
        return _windows(place)
    mounts = _linux_mounts() if sys.platform.startswith("linux") else _bsd_mounts()
    holding = [(len(str(at)), kind) for at, kind in mounts if place == at or at in place.parents]
    # The last mount on a folder hides the earlier ones.
    return (
        max(enumerate(holding), key=lambda item: (item[1][0], item[0]))[1][1]
        if holding
        else "unknown"
    )


def _linux_mounts() -> list[tuple[Path, str]]:
    try:
        raw = Path("/proc/self/mountinfo").read_bytes()
    except OSError:
        return []
    mounts = []
    for line in os.fsdecode(raw).split("\n")[:-1]:
        before, _, after = line.partition(" - ")
        # Spaces and backslashes are written in octal, everything else as it is.
        at = _OCTAL.sub(lambda code: chr(int(code[1], 8)), before.split(" ")[4])
        mounts.append((Path(at), after.split(" ")[0]))
    return mounts


def _bsd_mounts() -> list[tuple[Path, str]]:
    # macOS and the BSDs print: DEVICE on FOLDER (TYPE, options)
    listed = subprocess.run(["mount"], capture_output=True, text=True, check=False).stdout
    mounts = []
    for line in listed.splitlines():
        where, _, options = line.partition(" on ")[2].rpartition(" (")
        mounts.append((Path(where), options.split(",")[0].rstrip(")")))
    return mounts


def _windows(place: Path) -> str:
    import ctypes

    remote = 4  # DRIVE_REMOTE
    kind = ctypes.windll.kernel32.GetDriveTypeW(place.anchor)  # type: ignore[attr-defined,unused-ignore]
    return "cifs" if kind == remote or place.anchor.startswith("\\\\") else "local"


# -- making it --------------------------------------------------------------------------------


@contextmanager
def made_in_one_step(path: Path) -> Iterator[Path]:
    """Write a whole file under another name beside ``path``; it gets its name at the end.

    If another process was first, that file counts.
    """
    for left in _left(path):  # by a process that was killed here
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


def _left(path: Path) -> list[Path]:
    found = path.parent.glob(f".*{_ENDING}")
    return [one for one in found if one.name.startswith(f".{path.name[:100]}.")]


# -- its one name and its lock ----------------------------------------------------------------

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
    for left in _left(path):
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
