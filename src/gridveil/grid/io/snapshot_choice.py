"""Choose the snapshots to read from a file with time series."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gridveil.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

_HOW = "all, every 24h, or a file with one snapshot per line"


def chosen(known: pd.Index[Any], asked: str | Path | Sequence[Any], what: str) -> tuple[Any, ...]:
    """Return the snapshots that were asked for, in the order of the file.

    Parameters
    ----------
    known
        All snapshots of the file.
    asked
        ``"all"``; ``"every 24h"``, by time, or ``"every 24"``, by number; a file with one snapshot
        per line; or the snapshots themselves.
    what
        What has the snapshots, for errors: ``"PyPSA network"``.
    """
    if isinstance(asked, str) and asked.strip() == "all":
        return tuple(known)
    if isinstance(asked, str) and asked.split()[:1] == ["every"]:
        return _every(known, asked.split(maxsplit=1)[-1])
    if isinstance(asked, str | Path):
        if not os.path.isfile(asked):  # `Path.is_file` fails on a name that is too long
            raise InputError(
                f"Snapshots are {_HOW}, and there is no file {str(asked)!r}.",
                remedy="Check the path, or write --snapshots all.",
            )
        asked = [line.strip() for line in Path(asked).read_text().splitlines() if line.strip()]
    names = {str(one) for one in asked}
    found = tuple(label for label in known if str(label) in names)
    if not found or len(found) < len(names):
        absent = sorted(names - {str(label) for label in found})
        raise InputError(
            f"The {what} has no snapshot {absent[0] if absent else 'of these'!r}.",
            remedy=f"Use some of its own, one per line, as in {str(known[0])!r}."
            if len(known)
            else "It has none.",
        )
    return found


def _every(snapshots: Any, step: str) -> tuple[Any, ...]:
    import pandas as pd

    try:
        if step.isdecimal() and int(step) > 0:
            return tuple(snapshots[:: int(step)])
        width = pd.Timedelta(step)
        if width > pd.Timedelta(0) and isinstance(snapshots, pd.DatetimeIndex):
            return tuple(snapshots[(snapshots - snapshots[0]) % width == pd.Timedelta(0)])
    except ValueError:
        pass
    raise InputError(
        f"Snapshots can't be taken every {step!r}.",
        remedy="Write every 24h if they are times, or every 24 for each twenty-fourth.",
    )
