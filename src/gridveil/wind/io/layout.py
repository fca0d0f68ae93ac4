"""Which column of a source is what: found by the names that an owner gives, before rows are read.

Everything here is public: names, types, and what published columns hold. Text is read for it, power
is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from gridveil.errors import InputError
from gridveil.wind.io.columns import (
    TEXT_KINDS,
    Kind,
    Leftovers,
    is_nested,
    is_numeric,
    is_text,
    kind_of_type,
    narrow_kinds,
    order_values,
    plain_type,
)
from gridveil.wind.io.dates import EXAMPLE, USUAL_FORMATS, looks_dated
from gridveil.wind.io.sources import Source


@dataclass(frozen=True)
class Layout:
    """Which column is what. Everything here is public.

    Parameters
    ----------
    speed, power, key, turbine, time
        Names of columns. The time, if there is one, is the key too.
    time_format
        How the key is written, if the user said so.
    types
        The type of every named column as it is released, in the order of the source. That of power
        is always float64: the one in the source may follow from private values.
    kinds
        What each published column holds.
    """

    speed: str
    power: str
    key: str | None
    turbine: str | None
    types: dict[str, pa.DataType]
    kinds: dict[str, Kind]
    time: str | None = None
    time_format: str | None = None

    @property
    def published(self) -> tuple[str, ...]:
        """The columns that are published in clear, in the order of the source."""
        return tuple(name for name in self.types if name != self.power)

    def numeric(self) -> list[str]:
        """The published columns that are numbers."""
        return [name for name in self.published if self.kinds[name] == "number"]

    def text(self) -> list[str]:
        """The published columns that hold text, and are text in the source."""
        return [n for n in self.published if self.kinds[n] == "text" and self.text_born(n)]

    def leftovers(self) -> Leftovers:
        """A watch on columns of text; turbines are text, whatever they look like."""
        return Leftovers(name for name in self.text() if name != self.turbine)

    def text_born(self, name: str) -> bool:
        """Whether a column is text in the source, whatever it holds."""
        return is_text(plain_type(self.types[name]))

    def resolve(self, name: str) -> str:
        """The column that a name stands for: ``"speed"`` is the wind speed, however it is called.

        Raises
        ------
        InputError
            If it is not a published column of numbers.
        """
        column = self.speed if name == "speed" else name
        if self.kinds.get(column) != "number":
            numeric = ", ".join(f"'{n}'" for n in self.numeric())
            raise InputError(
                f"'{name}' is not a public column of numbers of these records.",
                remedy=f"Such columns: {numeric}. Name others with public=[...].",
            )
        return column

    def order_columns(self, columns: dict[str, pa.Array], names: Sequence[str]) -> list[pa.Array]:
        """What to sort by, to put rows in the order of these columns."""
        return [v for name in names for v in order_values(columns[name], self.kinds[name])]


def read_layout(
    source: Source,
    *,
    speed: str,
    power: str,
    public: Sequence[str],
    key: str | None,
    turbine: str | None,
    time_format: str | None = None,
) -> Layout:
    """Find the named columns in a source, and what they hold.

    ``time_format`` is that of the key, if it is text; without one the usual ones are tried.

    Raises
    ------
    InputError
        If a column is not there, can't be used as what it is named for, or is power again.
    """
    clear = [speed, *public, *(name for name in (key, turbine) if name is not None)]
    if power in clear:
        raise InputError(
            f"Column '{power}' is the private power: it can't be published in clear too.",
            remedy="Name another column as speed, public, key or turbine.",
        )
    types = source.types([*dict.fromkeys([*clear, power])], power)
    for name, kind in types.items():
        check_type(source.where, name, kind, number=name in (speed, power))
    types[power] = pa.float64()
    text = [n for n in types if n not in (speed, power, turbine) and is_text(plain_type(types[n]))]
    kinds = {n: kind_of_type(plain_type(t)) for n, t in types.items() if n != power}
    kinds |= _text_kinds(source, text, key, time_format)
    if time_format is not None and kinds[str(key)] != time_format:
        raise InputError(
            f"Column '{key}' of {source.where} is not text in the format {time_format!r} of times.",
            remedy="Check --time-format (time_format=), or leave it out: dates that can be read in "
            "one way only need none.",
        )
    kinds[speed] = "number"
    return Layout(speed, power, key, turbine, types, kinds, time_format=time_format)


def _text_kinds(
    source: Source, names: list[str], key: str | None, time_format: str | None
) -> dict[str, Kind]:
    """What columns of public text hold: the first kind that all of it can be read as.

    Only the key may hold dates in other formats than ISO 8601.

    Raises
    ------
    InputError
        If its dates can be read in two ways, or in none: letters would put them in another order.
    """
    left: dict[str, list[Kind]] = {name: list(TEXT_KINDS) for name in names}
    if key in left:
        left[key] = [*TEXT_KINDS, *USUAL_FORMATS] if time_format is None else [time_format]
    filled: set[str] = set()
    first = ""
    for piece in source.pieces(names) if names else ():
        for name in names:
            left[name], anything = narrow_kinds(piece.columns[name], left[name])
            filled |= {name} if anything else set()
        if key in left and not first and len(piece):
            first = piece.columns[key][0].as_py() or ""
        if not any(left.values()):
            break
    found = {n: left[n][0] if left[n] and n in filled else "text" for n in names}
    if key in found and time_format is None:
        _check_dates(source.where, key, left[key], dated=looks_dated(first))
    return found


def _check_dates(where: str, key: str, kinds: Sequence[Kind], *, dated: bool) -> None:
    """Raise `InputError` for dates that can be read in two ways, or in none."""
    unsure = len(kinds) > 1 and set(kinds) <= set(USUAL_FORMATS)
    if unsure or (dated and not kinds):
        ways = f"as {kinds[0]} and as {kinds[1]}" if unsure else "in none of the usual ways"
        raise InputError(
            f"The dates in column '{key}' of {where} can be read {ways}; as text they would come "
            "in the order of their letters.",
            remedy="Say how they are written, as "
            f'time_format="{kinds[0] if unsure else EXAMPLE}" (--time-format), or '
            "write them as 2024-01-31 13:50.",
        )


def check_type(where: str, name: str, kind: pa.DataType, *, number: bool) -> None:
    """Raise `InputError` for a column of a type that can't be used."""
    simple = plain_type(kind)
    usable = is_numeric(simple) or is_text(simple) or pa.types.is_null(simple)
    if is_nested(simple) or (number and not usable):
        raise InputError(
            f"Column '{name}' of {where} is of type {kind}, which can't be used here.",
            remedy="Use a column of numbers." if number else "Leave it out.",
        )
