"""Files that a command writes: in place of an older one of their kind, never of anything else."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from gridveil.errors import InputError, reason
from gridveil.privacy.statement import STATEMENT_FILE

_HEAD_BYTES = 512


@dataclass(frozen=True)
class Kind:
    """A kind of file that commands write.

    Parameters
    ----------
    name
        What it is called, with its article.
    starts
        How its name may end, and what a file of such a name begins with, in lower case.
    """

    name: str
    starts: dict[str, tuple[bytes, ...]]

    def holds(self, path: Path) -> bool:
        """Whether a file that is there is of this kind; one that is empty is of any."""
        with path.open("rb") as stream:
            head = stream.read(_HEAD_BYTES).removeprefix(b"\xef\xbb\xbf").lstrip().lower()
        return not head or head.startswith(self.starts[path.suffix.lower()])


_PAGE = (b"<!doctype html", b"<html")
REPORT = Kind("an HTML report", {".html": _PAGE, ".htm": _PAGE})
PARQUET = Kind("a Parquet file", {".parquet": (b"par1",)})
PICTURE = Kind("a picture", {".png": (b"\x89png",), ".svg": (b"<?xml", b"<svg")})
EXPORT = Kind(
    "an exported ledger", {".json": (b'{\n  "kind": "gridveil', b'{\r\n  "kind": "gridveil')}
)
VERDICTS = Kind("a file of verdicts", {".json": (b'{\n  "gridveil":', b'{\r\n  "gridveil":')})


def check_output(path: Path | None, kind: Kind, inputs: Iterable[Path | str | None] = ()) -> None:
    """Check, before any work is done, that a file can be written and takes no other's place.

    Parameters
    ----------
    path
        The file; None if none is wanted.
    kind
        What the command writes there.
    inputs
        What the command reads: files, folders, or names of built-in cases.

    Raises
    ------
    InputError
        If it can't be written, is an input, is inside a bundle, or is there and of another kind.
    """
    if path is None:
        return
    target = _expanded(path)
    _refuse_inputs(target, inputs)
    endings = " or ".join(kind.starts)
    if target.suffix.lower() not in kind.starts:
        raise InputError(
            f"{path} is not a name for {kind.name}.", remedy=f"Choose a name ending in {endings}."
        )
    folder = target.parent
    if os.path.isdir(target) or not os.path.isdir(folder) or not os.access(folder, os.W_OK):
        raise InputError(
            f"{path} can't be written.",
            remedy="Name a file in a folder that is there and that you may write.",
        )
    _refuse_bundled(target)
    _refuse_other(target, kind)


def _refuse_inputs(target: Path, inputs: Iterable[Path | str | None]) -> None:
    for one in inputs:
        if one is not None and _same(target, _expanded(one)):
            raise InputError(
                f"{target} is an input of this command, and would be lost.",
                remedy="Name another file to write.",
            )


def _expanded(path: Path | str) -> Path:
    # Not Path.expanduser, which raises if there is no such user.
    return Path(os.path.expanduser(path)).absolute()


def _same(one: Path, other: Path) -> bool:
    try:
        return os.path.samefile(one, other)
    except (OSError, ValueError):
        return False  # one of them is not there


def _refuse_bundled(target: Path) -> None:
    inside = [folder for folder in target.resolve().parents if (folder / STATEMENT_FILE).exists()]
    if inside:
        raise InputError(
            f"{target} is inside the bundle {inside[0]}, which must stay as it was released.",
            remedy="Name a file elsewhere, in a folder that you do not share.",
        )


def _refuse_other(target: Path, kind: Kind) -> None:
    try:
        if target.is_file() and kind.holds(target):
            return
        target.stat()
    except FileNotFoundError:
        return
    except OSError as problem:
        raise InputError(
            f"{target} can't be written over: {reason(problem)}.", remedy="Name another file."
        ) from None
    raise InputError(
        f"{target} is there already, and is not {kind.name}.",
        remedy="Name another file: nothing but an older file of the same kind is replaced.",
    )
