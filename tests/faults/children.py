"""Work in child processes: forked, so that nothing has to be imported again."""

import ctypes
import os
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, NoReturn

Work = Callable[[], object]

_NEW_MOUNTS = 0x00020000
_PRIVATE, _READ_ONLY, _REMOUNT, _BIND = 1 << 18 | 1 << 14, 1, 32, 4096


def fork() -> int:
    """Fork; the child has one thread, whatever the parent had."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the other threads only wait
        return os.fork()


def run_in_child(work: Work, screen: BinaryIO | None, ready: Work = int) -> NoReturn:
    """Be the child: call ``ready``, then ``work``, and exit with its code."""
    code: object = 70
    try:
        shown = os.open(os.devnull, os.O_WRONLY) if screen is None else screen.fileno()
        os.dup2(shown, 1)
        os.dup2(shown, 2)
        sys.stdout = os.fdopen(1, "w", closefd=False)
        sys.stderr = os.fdopen(2, "w", closefd=False)
        warnings.simplefilter("default")  # a warning is shown, as it would be to a user
        ready()
        code = work() or 0
    except BaseException:
        traceback.print_exc()
        raise
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(code if isinstance(code, int) else 70)


def run_together(works: list[Work]) -> list[tuple[int, str]]:
    """Run each in a child of its own, all at once: exit codes and what was printed."""
    screens = [tempfile.TemporaryFile() for _ in works]  # noqa: SIM115 - closed by `shown`
    children = []
    for work, screen in zip(works, screens, strict=True):
        child = fork()
        if child == 0:
            run_in_child(work, screen)
        children.append(child)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    return [(code, shown(screen)) for code, screen in zip(codes, screens, strict=True)]


def shown(screen: BinaryIO) -> str:
    """What was printed."""
    with screen:
        screen.seek(0)
        return screen.read().decode(errors="replace")


def can_mount() -> bool:
    """Whether this process may have mounts of its own: for disks that are full or read-only."""
    if not sys.platform.startswith("linux") or os.geteuid() != 0:
        return False
    return run_together([_own_mounts])[0][0] == 0


def on_a_disk_of(size: int, folder: Path, work: Work) -> Work:
    """The work with a disk of so many bytes in place of a folder."""

    def wrapped() -> object:
        _own_mounts()
        _mount(b"tmpfs", folder, b"tmpfs", 0, f"size={size}".encode())
        return work()

    return wrapped


def read_only(folder: Path, work: Work) -> Work:
    """The work with a folder that can't be written."""

    def wrapped() -> object:
        _own_mounts()
        place = os.fsencode(folder)
        _mount(place, folder, b"none", _BIND, None)
        _mount(place, folder, b"none", _BIND | _REMOUNT | _READ_ONLY, None)
        return work()

    return wrapped


def _own_mounts() -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_NEW_MOUNTS) != 0:
        return 1
    _mount(b"none", Path("/"), b"none", _PRIVATE, None)
    return 0


def _mount(what: bytes, where: Path, kind: bytes, flags: int, options: bytes | None) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(what, os.fsencode(where), kind, ctypes.c_ulong(flags), options) != 0:
        raise OSError(ctypes.get_errno(), "mount")
