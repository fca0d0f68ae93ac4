"""Moving a ledger to another place: from a file into a database, or back.

At most one place takes charges at any time. First the old place is closed, by a last entry that
says where the ledger goes; then the new one is made and compared; then another entry in the old
place says that this is done. If it is cut short in between, nothing is lost and nothing can be
charged: doing the same again finishes it. Once it is done the old place can't be moved again, so
a new ledger that was lost never comes back without the charges that were made there.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from gridveil.errors import InputError
from gridveil.privacy.ledger.database_tables import create
from gridveil.privacy.ledger.entries import MOVED, VERSION, Book, Entry, refuse_moved
from gridveil.privacy.ledger.file import made_in_one_step, write_new
from gridveil.privacy.ledger.ledger import Ledger
from gridveil.privacy.ledger.place import Address, ledger_place, refuse_network_file_system
from gridveil.privacy.ledger.reference_alphas import ANY


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
    entries = _to_move(source.entries(), place)
    if not _exists(place, source, entries) and isinstance(place, Address):
        create(place, analysts=analysts, ledger=source.id, entries=entries, keep=False)
    entries = source.write(lambda book: _closed(book, place), closed=True)
    if not _exists(place, source, entries):
        _make(place, source.id, entries, analysts)
        if not _exists(place, source, entries):
            raise InputError(f"The ledger at {place} is not the same as that at {source.place}.")
    source.write(lambda book: _done(book, place), closed=True)
    return Ledger(place)


def _to_move(entries: Sequence[Entry], place: Path | Address) -> list[Entry]:
    """The entries that go to a place: all, or all before the entry that says that they go there."""
    if not (entries and entries[-1].kind == MOVED):
        return list(entries)
    body = entries[-1].body
    if body.get("to") != str(place) or body.get("done"):
        refuse_moved(entries)
    return list(entries[:-1])


def _closed(book: Book, place: Path | Address) -> list[Entry]:
    """Close the old place, unless it was closed for this move already; what is to be moved."""
    entries = _to_move(book.entries, place)
    if len(entries) == len(book.entries):
        book.append(MOVED, ANY, {"version": VERSION, "to": str(place)})
    return entries


def _done(book: Book, place: Path | Address) -> None:
    """Say that the move is done, unless somebody who did the same was first."""
    if not book.entries[-1].body.get("done"):
        book.append(MOVED, ANY, {"version": VERSION, "to": str(place), "done": True})


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
