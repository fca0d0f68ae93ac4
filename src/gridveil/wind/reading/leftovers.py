"""Columns that are text only because of rows that are left out.

A column is read as numbers or times where all of it can be. One stray letter makes text of it,
which is ordered by letters: 10 comes before 9. If that letter is in a row that is left out, whoever
reads the release sees numbers, in an order that is not theirs. Such a key is refused, since nobody
asked for that order; so is another column whose numbers are not all finite, and can't be read back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pyarrow as pa

from gridveil.errors import InputError
from gridveil.wind.reading.columns import TEXT_KINDS, Kind, narrow_kinds, to_numbers


class Leftovers:
    """What columns of text hold in the rows that stay.

    Parameters
    ----------
    names
        The columns that are text in the whole source.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._kinds: dict[str, list[Kind]] = {name: list(TEXT_KINDS) for name in names}
        self._filled: set[str] = set()
        self._unusable: set[str] = set()

    def add(self, columns: Mapping[str, pa.Array]) -> None:
        """Look at rows that stay."""
        for name, kinds in self._kinds.items():
            if not kinds:
                continue
            self._kinds[name], anything = narrow_kinds(columns[name], kinds)
            self._filled |= {name} if anything else set()
            if "number" in self._kinds[name] and not _all_finite(columns[name]):
                self._unusable.add(name)

    def check(self, where: str, key: str | None) -> None:
        """Refuse a column that would be read otherwise without the rows that were left out.

        Raises
        ------
        InputError
            Which column it is, and what it holds.
        """
        for name, kinds in self._kinds.items():
            unusable = name in self._unusable and "number" in kinds
            if kinds and name in self._filled and (name == key or unusable):
                held = "numbers" if kinds[0] == "number" else "times"
                raise InputError(
                    f"Column '{name}' of {where} is text only in rows that are left out, and holds "
                    f"{held} in all others: a reader of the release would take it for {held}.",
                    remedy="Mend the column in those rows, or take them out of the source.",
                )


def _all_finite(column: pa.Array) -> bool:
    values, _ = to_numbers(column)
    return bool(np.isfinite(values).all())
