"""The bundle: one folder that holds a release, written whole or not at all.

Files are written to a hidden sibling of the folder, synchronised, and renamed into place in one
step. A crash leaves the hidden sibling at most; it is swept away by a later write. For each file
the bundle calls back into the function that it was given to write it.

Two files are the same for all kinds of releases, and written here.

`answers.parquet` has the noisy answers that the release was made of, with the scales of their
noise. They are what mechanisms returned, noted by the mechanisms themselves, and paid for: to
publish them costs nothing more. The file is a function of the answers and of public numbers. A row
is one number of one answer:

- ``mechanism``: its place in the statement's list of mechanisms, from 0;
- ``place``: which number of the answer it is, from 0;
- ``value``: the number, in the unit of the data. For a choice by noisy max, the place chosen;
- ``scale``: of its noise, a discrete Laplace distribution, in the same unit; none for a choice.

`deviations.parquet` has the error bars of released values. A deviation is the standard deviation of
the real value about the released one, by all that the answers tell. It costs nothing, and is not
part of the guarantee. `write_deviations` calls back into whatever computes its parts.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gridveil.errors import InputError, WriteError, reason, wrong_type
from gridveil.privacy.account import Answer, Vector
from gridveil.privacy.statement import STATEMENT_FILE, Statement

Writer = Callable[[Path], None]
"""Writes one file of a bundle at the path it is given."""

OWNER_MARK = "GRIDVEIL OWNER ONLY - NOT FOR PUBLICATION"
"""Stands in everything that compares a release with the real data."""

ANSWERS_FILE = "answers.parquet"
DEVIATIONS_FILE = "deviations.parquet"

_ROWS = 1 << 16  # in a part of answers.parquet
_STALE_AFTER = 3600.0  # seconds
_TRIAL_BYTES = 1 << 20


def check_target(folder: Path | str, *, force: bool = False, keep: Iterable[Path] = ()) -> Path:
    """Check, before anything is charged, that a bundle can be written at ``folder``.

    Parameters
    ----------
    folder, force
        The bundle's folder, and whether a bundle that is there may be replaced.
    keep
        Files that are needed, and may not be lost with an older bundle.

    Raises
    ------
    InputError
        If something is there already (unless ``force`` and it is a bundle), the place can't be
        written, or a file to keep is inside it.
    """
    if not isinstance(folder, (str, os.PathLike)):
        raise wrong_type("folder", folder, remedy='Name the bundle\'s folder, as "out".')
    try:
        target = Path(folder).expanduser().absolute()
        _refuse_taken(target, force=force)
        target.parent.mkdir(parents=True, exist_ok=True)
        _try_to_write(target)
    except InputError:
        raise
    except (OSError, RuntimeError, ValueError) as problem:
        why = reason(problem) if isinstance(problem, OSError) else "the name can't be used"
        raise InputError(
            f"A bundle can't be written at {folder}: {why}.",
            remedy="Name a folder in a place that you may write, with room on the disk.",
        ) from None
    for one in keep:
        if target.resolve() in Path(os.path.realpath(one)).parents:
            raise InputError(
                f"{one} is inside {folder}, and a bundle's folder holds nothing but the bundle.",
                remedy="Name another folder for the bundle.",
            )
    return target


def _refuse_taken(target: Path, *, force: bool) -> None:
    if target.is_symlink() or (target.exists() and not target.is_dir()):
        raise InputError(f"{target} is a file or a link, not a folder.", remedy="Name a folder.")
    if files := [parent for parent in target.parents if parent.is_file()]:
        raise InputError(
            f"{target} can't be made: {files[0]} is a file.",
            remedy="Name a folder in a place that you may write.",
        )
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


def _try_to_write(target: Path) -> None:
    """Write and remove what the smallest bundle needs: a full disk is found before the charge."""
    trial = _sibling(target, "partial")
    try:
        trial.mkdir()
        with (trial / STATEMENT_FILE).open("wb") as stream:
            stream.write(bytes(_TRIAL_BYTES))
            stream.flush()
            os.fsync(stream.fileno())
    finally:
        shutil.rmtree(trial, ignore_errors=True)


def check_owner_file(path: Path | str) -> Path:
    """Check that a file of the owner's can be written at ``path``, outside of any bundle.

    Raises
    ------
    InputError
        If it would be inside a bundle, or the place can't be written.
    """
    target = Path(path).expanduser().absolute()
    inside = [folder for folder in target.resolve().parents if (folder / STATEMENT_FILE).exists()]
    if inside:
        raise InputError(
            f"{target} is inside the bundle {inside[0]}, and what compares with the real data must "
            "never be.",
            remedy="Name a file elsewhere, in a folder that you do not share.",
        )
    if target.is_dir() or not target.parent.is_dir() or not os.access(target.parent, os.W_OK):
        raise InputError(
            f"The owner's report can't be written at {target}.",
            remedy="Name a file in a folder that is there and that you may write.",
        )
    return target


def write_owner_file(path: Path | str, text: str) -> Path:
    """Write a text that is its owner's alone, readable by nobody else.

    Raises
    ------
    InputError
        If the file would be inside a bundle, or can't be written.
    """
    target = check_owner_file(path)
    target.touch(mode=0o600)
    target.chmod(0o600)
    target.write_bytes(text.encode())
    return target


def write_bundle(
    folder: Path | str,
    files: Mapping[str, Writer],
    statement: Statement,
    *,
    force: bool = False,
) -> tuple[Path, Statement]:
    """Write a bundle and return its folder and its statement with the files' digests.

    Should another process take the folder's name in the meantime, the bundle goes to a free name
    beside it: what was paid for is never thrown away.
    """
    target = check_target(folder, force=force)
    _sweep(target)
    partial = _sibling(target, "partial")
    try:
        partial.mkdir()
        digests = []
        for name, write in files.items():
            write(partial / name)
            digests.append(_digest(partial / name))
        complete = statement.with_files(digests)
        (partial / STATEMENT_FILE).write_bytes(complete.to_json().encode())
        for path in (*partial.iterdir(), partial):
            synchronise(path)
        placed = _place(partial, target, force=force)
    except BaseException as problem:
        shutil.rmtree(partial, ignore_errors=True)
        if isinstance(problem, OSError | InputError):
            raise _not_written(target, problem) from None
        raise
    # In its place, whatever happens from here on: at worst a power cut takes it away again.
    with contextlib.suppress(OSError):
        synchronise(placed.parent)
    return placed, complete


def _not_written(target: Path, problem: OSError | InputError) -> WriteError:
    why = problem.what.rstrip(".") if isinstance(problem, InputError) else reason(problem)
    return WriteError(
        f"The bundle could not be written at {target}: {why}. Nothing of it is left there; its "
        "charge stays.",
        remedy="Make room, or name another place. From Python the release is still in memory and "
        "can be written again.",
    )


def read_statement(folder: Path | str) -> Statement:
    """The statement of a bundle, as it was written.

    Raises
    ------
    InputError
        If there is none, or it was changed since.
    """
    try:
        text = (Path(folder) / STATEMENT_FILE).read_bytes()
    except (OSError, ValueError):
        raise InputError(
            f"There is no bundle at {folder}.", remedy="Name the folder that a release wrote."
        ) from None
    statement = Statement.from_json(text)
    if statement.to_json().encode() != text:
        raise InputError(
            f"The statement of the bundle at {folder} was changed after the release.",
            remedy="Take the bundle from where it was written.",
        )
    return statement


def sha256_of(path: Path) -> str:
    """The SHA-256 digest of a released file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _digest(path: Path) -> dict[str, Any]:
    return {"name": path.name, "bytes": path.stat().st_size, "sha256": sha256_of(path)}


def _place(partial: Path, target: Path, *, force: bool) -> Path:
    if force and target.exists():
        replaced = _sibling(target, "replaced")
        os.utime(target)  # its age from here on, for `_sweep`
        target.rename(replaced)
        try:
            partial.rename(target)
        except OSError:
            replaced.rename(target)
            raise
        shutil.rmtree(replaced, ignore_errors=True)
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
    """Clear up what a killed process left behind here, when it is surely dead.

    A half-made bundle goes. A bundle that was about to be replaced comes back if nothing came
    in its place.
    """
    for path in target.parent.glob(f"{_escaped('.' + target.name)}.*-*.*"):
        owner, kind = path.name.split(".")[-2].partition("-")[0], path.suffix
        try:
            old = time.time() - path.stat().st_mtime > _STALE_AFTER
        except OSError:
            continue
        if not (old and owner.isdecimal() and not _alive(int(owner))):
            continue
        if kind == ".partial" or (kind == ".replaced" and target.exists()):
            shutil.rmtree(path, ignore_errors=True)
        elif kind == ".replaced":
            with contextlib.suppress(OSError):
                path.rename(target)


def _escaped(name: str) -> str:
    return "".join(f"[{c}]" if c in "*?[" else c for c in name)


def _alive(process: int) -> bool:
    if os.name == "nt":
        return True  # signal 0 would end the process there
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def synchronise(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk; on Windows a file only."""
    if os.name == "nt" and path.is_dir():
        return
    handle = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


# -- files that every kind of release may have ---------------------------------------------------


def write_answers(path: Path, answers: Sequence[Answer]) -> None:
    """Write the noisy answers of a release, in the order of its mechanisms."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema(
        [
            pa.field("mechanism", pa.int32(), nullable=False),
            pa.field("place", pa.int64(), nullable=False),
            pa.field("value", pa.float64(), nullable=False),
            pa.field("scale", pa.float64()),
        ]
    )
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for number, answer in enumerate(answers):
            start = 0
            for values in _pieces(answer):
                factors = np.ones(len(values))
                if answer.factors is not None:
                    factors = answer.factors[start : start + len(values)]
                scale = answer.record.calibration.scale_in_units / factors
                columns = [
                    np.full(len(values), number, dtype=np.int32),
                    np.arange(start, start + len(values), dtype=np.int64),
                    values / factors,
                    pa.nulls(len(values), pa.float64()) if answer.choice else scale,
                ]
                writer.write_table(pa.table(columns, schema=schema), row_group_size=_ROWS)
                start += len(values)


def _pieces(answer: Answer) -> Iterator[Vector]:
    values = answer.values
    for start in range(0, len(values), _ROWS):
        yield np.asarray(values[start : start + _ROWS], dtype=np.float64)


def write_deviations(path: Path, parts: Iterable[Mapping[str, Any]]) -> None:
    """Write a table from its parts, which have the same columns of the same types."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    writer = None
    try:
        for part in parts:
            table = pa.table(dict(part))
            writer = writer or pq.ParquetWriter(path, table.schema, compression="zstd")
            writer.write_table(table)
    finally:
        if writer is not None:
            writer.close()
