"""Moving a ledger to another place: from a file into a database, or back.

There is only one of it at any time. A last entry in the old place says where it went, and from then
on nothing is charged or added up there. The order: under the lock of the old place that entry is
written, the new ledger is made and compared, and only then is the entry kept. If this is cut short
in between, both are there and the same: doing it again finishes it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from gridveil.errors import InputError
from gridveil.privacy.ledger.address import Address
from gridveil.privacy.ledger.entries import MOVED, VERSION, Entry
from gridveil.privacy.ledger.ledger import Ledger
from gridveil.privacy.ledger.making import made_in_one_step, write_new
from gridveil.privacy.ledger.path import ledger_place, refuse_network_file_system
from gridveil.privacy.ledger.references import ANY
from gridveil.privacy.ledger.store import Book
from gridveil.privacy.ledger.tables import create


def move(source: Ledger, target: Path | Address | str, *, analysts: str | None = None) -> Ledger:
    """Move a ledger, with its number, entries and chain; the old place is closed.

    Parameters
    ----------
    source
        The ledger as it is.
    target
        A file that does not exist yet, or a database without a ledger.
    analysts
        In a database: a role whose members may charge and read.

    Raises
    ------
    InputError
        If there is something else at the new place.
    """
    place = ledger_place(target)

    def work(book: Book) -> None:
        entries = list(book.entries)
        book.append(MOVED, ANY, {"version": VERSION, "to": str(place)})
        if not _exists(place, source, entries):
            _make(place, source.id, entries, analysts)
            if not _exists(place, source, entries):
                raise InputError(
                    f"The ledger at {place} is not the same as that at {source.place}."
                )

    source.write(work)
    return Ledger(place)


def _exists(place: Path | Address, source: Ledger, entries: Sequence[Entry]) -> bool:
    """Whether this ledger is at a place already; entries may have been added to it since."""
    if isinstance(place, Path) and not os.path.lexists(place):
        return False
    try:
        found = Ledger(place)
    except InputError:  # a database without a ledger
        return False
    there = found.entries()
    if found.id != source.id or there[: len(entries)] != list(entries):
        raise InputError(
            f"There is another ledger at {place} already.",
            remedy="Name a file that does not exist yet, or a database without a ledger.",
        )
    return True


def _make(
    place: Path | Address, ledger: str, entries: Sequence[Entry], analysts: str | None
) -> None:
    if isinstance(place, Address):
        create(place, analysts=analysts, ledger=ledger, entries=entries)
        return
    refuse_network_file_system(place)
    place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with made_in_one_step(Path(os.path.realpath(place))) as beside:
        write_new(beside, ledger, entries)
