"""Columns of a table as numbers, as text, and in order; text is read here, and only here.

Nothing in this module raises with a value in its text: Arrow's own messages quote what they could
not read, so they are dropped and a position is given instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gridveil.errors import InputError
from gridveil.wind.io.dates import EXAMPLE, read_dates

Vector = NDArray[np.float64]
Kind = str
"""What a column holds, whether it is typed or text: this decides its order.

``"number"``, ``"time"``, ``"zoned time"``, ``"text"``, or the format of times in text, as
``"%d/%m/%Y %H:%M"``.
"""

_MISSING_WORDS = pa.array(
    ["", "-nan", "#n/a", "n/a", "na", "nan", "nat", "none", "null"], pa.large_string()
)
_TARGETS = {
    "number": pa.float64(),
    "time": pa.timestamp("us"),
    "zoned time": pa.timestamp("us", "UTC"),
}
_FIRST = 64
TEXT_KINDS: tuple[Kind, ...] = ("number", "time", "zoned time")
"""What text may hold, in the order in which it is tried."""


def plain(array: pa.Array) -> pa.Array:
    """An array without dictionary, extension or short offsets, so that every kernel takes it."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    target = plain_type(array.type)
    return array if array.type == target else array.cast(target)


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The type that `plain` gives an array of this type."""
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_string(kind) or pa.types.is_string_view(kind):
        return pa.large_string()
    if pa.types.is_binary(kind) or pa.types.is_binary_view(kind):
        return pa.large_binary()
    return pa.float32() if pa.types.is_float16(kind) else kind


def is_text(kind: pa.DataType) -> bool:
    """Whether a plain type is text."""
    return bool(pa.types.is_large_string(kind))


def is_numeric(kind: pa.DataType) -> bool:
    """Whether a plain type is one of numbers."""
    types = pa.types
    return bool(
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_decimal(kind)
        or types.is_boolean(kind)
    )


def is_nested(kind: pa.DataType) -> bool:
    """Whether a plain type holds lists or records, which have no order."""
    return bool(pa.types.is_nested(kind))


def to_numbers(array: pa.Array) -> tuple[Vector, int | None]:
    """Numbers of a plain column, NaN where missing, and the position of the first text.

    A number becomes the nearest float, whatever type or text it came in.
    """
    if pa.types.is_decimal(array.type):
        # By way of text: Arrow's own conversion to floats is off by a rounding or two.
        array = array.cast(pa.large_string())
    if is_text(array.type):
        return _parse(array)
    # An unsafe cast: the safe one refuses integers above 2^53, and quotes them.
    numbers = array.cast(pa.float64(), safe=False)
    return np.asarray(numbers.to_numpy(zero_copy_only=False), dtype=np.float64), None


def to_seconds(array: pa.Array, kind: Kind) -> NDArray[np.int64]:
    """Whole seconds since 1970 of a plain column of times; with a zone by UTC, else as written."""
    times = array
    if is_text(array.type):
        times = _read(_without_missing_words(array), kind)
    # By way of microseconds: Arrow does not round to seconds.
    exact = times.cast(_TARGETS["time"], safe=False).cast(pa.int64())
    return np.asarray(exact.to_numpy(zero_copy_only=False), dtype=np.int64) // 1_000_000


def is_zoned(kind: Kind, stored: pa.DataType) -> bool:
    """Whether times have a zone, in the plain type of their column or in its text."""
    written = kind == "zoned time" or "%z" in kind
    return written or (pa.types.is_timestamp(stored) and stored.tz is not None)


def check_times(
    where: str,
    name: str,
    kind: Kind,
    stored: pa.DataType,
    pieces: Callable[[Sequence[str]], Iterable[Sized]],
) -> None:
    """Raise `InputError` if a column of this kind and plain type does not hold dates and times."""
    if kind in ("number", "text") or pa.types.is_time(stored) or pa.types.is_duration(stored):
        if not any(len(piece) for piece in pieces([name])):
            return  # that there are no rows is said where they are counted
        raise InputError(
            f"Column '{name}' of {where} can't be read as dates and times.",
            remedy="Write them as 2024-01-31 13:50, or 2024-01-31T13:50+01:00 with a zone, or say "
            f'how they are written, as time_format="{EXAMPLE}" (--time-format).',
        )


def missing_in(array: pa.Array, kind: Kind) -> NDArray[np.bool_]:
    """Where a plain column that need not be numbers is missing; blank text counts as missing."""
    if is_text(array.type) and kind != "text":
        return _booleans(_without_missing_words(array).is_null())
    gaps = pc.is_null(array, nan_is_null=pa.types.is_floating(array.type))
    if is_text(array.type):
        gaps = pc.or_(gaps, pc.equal(_trim(array).fill_null(""), ""))
    return _booleans(gaps)


def narrow_kinds(text: pa.Array, kinds: Sequence[Kind]) -> tuple[list[Kind], bool]:
    """Those of the kinds that a column of text can be read as, and whether anything is in it."""
    cleaned = _without_missing_words(text)
    left = list(kinds)
    for some in (cleaned.slice(0, _FIRST), cleaned):  # most kinds are out after a few rows
        left = [kind for kind in left if _read(some, kind) is not None]
    return left, cleaned.null_count < len(cleaned)


def kind_of_type(kind: pa.DataType) -> Kind:
    """What a column of a plain type other than text holds."""
    if is_numeric(kind):
        return "number"
    return "time" if pa.types.is_temporal(kind) else "text"


def order_values(array: pa.Array, kind: Kind) -> list[pa.Array]:
    """Columns that put rows in the order of this one when sorted by, none with missing values.

    Text that holds numbers or times is ordered by those, then by its letters.
    """
    if not is_text(array.type) or kind == "text":
        return _without_nulls(array)
    return [*_without_nulls(_read(_without_missing_words(array), kind)), array]


def compare_neighbours(columns: Sequence[pa.Array]) -> tuple[bool, bool]:
    """Whether rows are in the order of these columns, and whether no two rows are equal in them."""
    size = len(columns[0])
    equal = np.ones(max(size - 1, 0), dtype=np.bool_)
    for column in columns:
        before, after = _neighbours(column)
        if (equal & _booleans(pc.greater(before, after))).any():
            return False, False
        equal &= _booleans(pc.equal(before, after))
    return True, not equal.any()


def equal_neighbours(columns: Sequence[pa.Array]) -> NDArray[np.bool_]:
    """Which rows equal the row before in all these columns."""
    equal = np.ones(len(columns[0]), dtype=np.bool_)
    equal[:1] = False
    for column in columns:
        equal[1:] &= _booleans(pc.equal(*_neighbours(column)))
    return equal


def _neighbours(column: pa.Array) -> tuple[pa.Array, pa.Array]:
    return column.slice(0, max(len(column) - 1, 0)), column.slice(1)


def _without_nulls(array: pa.Array) -> list[pa.Array]:
    if pa.types.is_null(array.type):
        return [pa.repeat(pa.scalar(0), len(array))]
    if not array.null_count:
        return [array]
    filler = array.drop_null()[0] if array.null_count < len(array) else None
    gaps = array.is_null().cast(pa.int8())
    return [gaps] if filler is None else [gaps, array.fill_null(filler)]


def _booleans(array: pa.Array) -> NDArray[np.bool_]:
    return np.asarray(array.to_numpy(zero_copy_only=False), dtype=np.bool_)


def _parse(text: pa.Array) -> tuple[Vector, int | None]:
    numbers = _cast(text, pa.float64())
    if numbers is None:  # only text with gaps, blanks or words needs the slower look
        text = _without_missing_words(text)
        numbers = _cast(text, pa.float64())
    if numbers is None:
        return np.full(len(text), np.nan), _first_text(text)
    return np.asarray(numbers.to_numpy(zero_copy_only=False), dtype=np.float64), None


def _first_text(text: pa.Array) -> int:
    """Position of the first entry that is not a number; by halving, since Arrow does not tell."""
    low, size = 0, len(text)
    while size > 1:
        half = size // 2
        if _cast(text.slice(low, half), pa.float64()) is None:
            size = half
        else:
            low, size = low + half, size - half
    return low


def _trim(text: pa.Array) -> pa.Array:
    return pc.utf8_trim_whitespace(text)


def _without_missing_words(text: pa.Array) -> pa.Array:
    trimmed = _trim(text)
    words = pc.is_in(pc.ascii_lower(trimmed), value_set=_MISSING_WORDS)
    return pc.if_else(words, pa.scalar(None, pa.large_string()), trimmed)


def _read(text: pa.Array, kind: Kind) -> pa.Array | None:
    target = _TARGETS.get(kind)
    return read_dates(text, kind) if target is None else _cast(text, target)


def _cast(text: pa.Array, target: pa.DataType) -> pa.Array | None:
    # None rather than Arrow's own error, whose message quotes the value.
    try:
        return text.cast(target)
    except pa.ArrowException:
        return None


Formulas = Literal["refuse", "keep"]

# Text that a spreadsheet would run as a formula when it opens a released CSV file, such as
# =HYPERLINK(...). It is public text: it is refused or kept, never changed. It is found at the start
# of a cell, or where a spreadsheet with another delimiter would start one. Excel takes the wide
# signs for the narrow ones.
_START = r"(^|[;,\t\r\n])[\s\x00]*[=+\-@\x{FF1D}\x{FF0B}\x{FF0D}\x{FF20}]"
_NUMBER = r"^\s*[+\-]?([0-9]+([.,][0-9]*)?|[.,][0-9]+)([eE][+\-]?[0-9]+)?\s*%?\s*$"
_DASHES = r"^[\s+\-]*$"


def first_formula(text: pa.Array) -> int | None:
    """Position of the first cell that a spreadsheet would run; None if there is none."""
    likely = pc.match_substring_regex(text, _START).fill_null(False)
    if not pc.any(likely).as_py():
        return None
    harmless = pc.or_(
        pc.match_substring_regex(text, _NUMBER), pc.match_substring_regex(text, _DASHES)
    )
    found = np.asarray(pc.and_not(likely, harmless.fill_null(False)).to_numpy(zero_copy_only=False))
    return int(found.argmax()) if found.any() else None


def check_names(where: str, names: Iterable[str]) -> None:
    """Refuse names of columns that a spreadsheet would run.

    Raises
    ------
    InputError
        If there is one.
    """
    found = list(names)
    at = first_formula(pa.array(found, pa.large_string()))
    if at is not None:
        raise InputError(
            f"The name of column '{found[at]}' of {where} begins as a formula does: a spreadsheet "
            "would run it.",
            remedy="Rename the column, or keep it with formulas='keep' (--formulas keep).",
        )


def formula_error(where: str, name: str, row: int) -> InputError:
    """The error that names a cell."""
    return InputError(
        f"Column '{name}' of {where} has text that begins as a formula does (= + - @), the first "
        f"in row {row} (counted from 1 below the header): a spreadsheet would run it.",
        remedy="Mend it, leave the column out, or publish it as it is with formulas='keep' "
        "(--formulas keep).",
    )


class Leftovers:
    """Finds columns that are text only because of rows that are left out.

    A column is read as numbers or times if all of it can be. One stray letter makes text of it,
    which is ordered by letters: 10 comes before 9. If that letter is in a row that is left out, a
    reader of the release sees numbers in an order that is not theirs. Such a key is refused; so is
    another column whose numbers are not all finite, and can't be read back.

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
