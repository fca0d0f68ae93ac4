"""The bundle: one folder that holds a release, written whole or not at all.

Files are written to a hidden sibling of the folder, synchronised, and renamed into place in one
step. A crash leaves the hidden sibling at most; it is swept away by a later write.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from gridveil.errors import InputError
from gridveil.privacy.statement import STATEMENT_FILE, Statement

Writer = Callable[[Path], None]
"""Writes one file of a bundle at the path it is given."""

OWNER_MARK = "GRIDVEIL OWNER ONLY - NOT FOR PUBLICATION"
"""Stands in everything that compares a release with the real data."""

_STALE_AFTER = 3600.0  # seconds


def check_target(folder: Path | str, *, force: bool = False) -> Path:
    """Check, before anything is charged, that a bundle can be written at ``folder``.

    Raises
    ------
    InputError
        Where something is there already (unless ``force`` and it is a bundle), or the place
        can't be written.
    """
    target = Path(folder).expanduser().absolute()
    if target.is_symlink() or (target.exists() and not target.is_dir()):
        raise InputError(f"{target} is a file or a link, not a folder.", remedy="Name a folder.")
    if target.exists() and any(target.iterdir()):
        if not (target / STATEMENT_FILE).is_file():
            raise InputError(
                f"The folder {target} is not empty and is not a bundle.",
                remedy="Name a new folder: --force replaces bundles only.",
            )
        if not force:
            raise InputError(
                f"There is a bundle at {target} already.",
                remedy="Name another folder, or replace it with --force.",
            )
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        trial = _sibling(target, "trial")
        trial.mkdir()
        trial.rmdir()
    except OSError as problem:
        raise InputError(
            f"A bundle can't be written at {target}: {problem.strerror}.",
            remedy="Name a folder in a place that you may write.",
        ) from None
    return target


def write_bundle(
    folder: Path | str,
    files: Mapping[str, Writer],
    statement: Statement,
    *,
    force: bool = False,
) -> tuple[Path, Statement]:
    """Write a bundle and give back its folder and its statement with the files' digests.

    Should another process take the folder's name in the meantime, the bundle goes to a free name
    beside it: what was paid for is never thrown away.
    """
    target = check_target(folder, force=force)
    _sweep(target)
    partial = _sibling(target, "partial")
    partial.mkdir()
    try:
        digests = []
        for name, write in files.items():
            write(partial / name)
            digests.append(_digest(partial / name))
        complete = statement.with_files(digests)
        (partial / STATEMENT_FILE).write_bytes(complete.to_json().encode())
        for path in (*partial.iterdir(), partial):
            _synchronise(path)
        placed = _place(partial, target, force=force)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    _synchronise(placed.parent)
    return placed, complete


def sha256_of(path: Path) -> str:
    """The SHA-256 digest of a released file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _digest(path: Path) -> dict[str, Any]:
    return {"name": path.name, "bytes": path.stat().st_size, "sha256": sha256_of(path)}


def _place(partial: Path, target: Path, *, force: bool) -> Path:
    if force and target.exists():
        replaced = _sibling(target, "replaced")
        target.rename(replaced)
        try:
            partial.rename(target)
        except OSError:
            replaced.rename(target)
            raise
        shutil.rmtree(replaced)
        return target
    for number in range(1, 1000):
        place = target if number == 1 else target.with_name(f"{target.name}-{number}")
        try:
            if os.name == "nt" and place.is_dir():
                place.rmdir()
            partial.rename(place)
            return place
        except OSError:
            if not place.exists():
                raise
    raise InputError(f"There are too many bundles beside {target}.", remedy="Name another folder.")


def _sibling(target: Path, kind: str) -> Path:
    return target.with_name(f".{target.name}.{os.getpid()}-{secrets.token_hex(4)}.{kind}")


def _sweep(target: Path) -> None:
    """Remove what a killed process left behind here, when it is surely dead."""
    for path in target.parent.glob(f"{_escaped('.' + target.name)}.*-*.partial"):
        owner = path.name.split(".")[-2].partition("-")[0]
        try:
            old = time.time() - path.stat().st_mtime > _STALE_AFTER
        except OSError:
            continue
        if old and owner.isdigit() and not _alive(int(owner)):
            shutil.rmtree(path, ignore_errors=True)


def _escaped(name: str) -> str:
    return "".join(f"[{c}]" if c in "*?[" else c for c in name)


def _alive(process: int) -> bool:
    if os.name == "nt":
        return True  # signal 0 would end the process there
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _synchronise(path: Path) -> None:
    if os.name == "nt" and path.is_dir():
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
