"""What a caller of `read_records` asks for, checked before any file is opened; all public."""

from __future__ import annotations

import codecs
import contextlib
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from gridveil.errors import InputError, wrong_type

Capacity = float | Mapping[str, float]

# Within these no share of a capacity underflows, which the sensitivities rely on.
_LEAST, _MOST = 1e-12, 1e15

_TABS = ("\\t", "tab")
# Encodings are taken if ASCII stays what it is, also what Python's own codecs would make signs of;
# and those in which every sign has several bytes.
_ASCII = bytes(sign for sign in range(128) if sign != ord("\\")) + rb".xn--4ca.\x41\u0041"
_WIDE = {f"utf-{bits}{end}" for bits in (16, 32) for end in ("", "-le", "-be")}
# A number with at most one sign for decimals, whichever of the two it is.
_DECIMAL = r"^\s*[+\-]?(\d+[.,]\d*|[.,]\d+)([eE][+\-]?\d+)?\s*$"


@dataclass(frozen=True)
class CsvStyle:
    """How CSV files are written.

    Parameters
    ----------
    sep
        The sign between fields; by default the most frequent of ``, ; | tab`` in the header.
    decimal
        The sign before decimals: a point or a comma.
    encoding
        How their text is stored, by any of Python's names for it.

    Raises
    ------
    InputError
        If they can't be used, or can't be told apart.
    """

    sep: str | None = None
    decimal: str = "."
    encoding: str = "utf-8"

    def __post_init__(self) -> None:
        if self.sep in _TABS:
            object.__setattr__(self, "sep", "\t")
        sep = self.sep
        if sep is not None and not (
            isinstance(sep, str) and len(sep) == 1 and sep.isascii() and not sep.isalnum()
        ):
            sep = '"'
        if sep is not None and sep in "\"'\r\n\0+-._":
            raise InputError(
                f"The sign between fields is {str(self.sep)[:20]!r}.",
                remedy='Give one sign, as sep=";" (--sep ";"); "tab" for a tab.',
            )
        if self.decimal not in (".", ","):
            raise InputError(
                f"The sign before decimals is {str(self.decimal)[:20]!r}.",
                remedy='Give a point or a comma, as decimal="," (--decimal ",").',
            )
        if self.sep == self.decimal:
            raise InputError(
                "Fields and decimals are both set apart by a comma.",
                remedy='Files with decimal commas have other signs between fields, as sep=";".',
            )
        object.__setattr__(self, "encoding", _known_encoding(self.encoding))

    @property
    def usual(self) -> bool:
        """Whether nothing was said."""
        return self == CsvStyle()

    @property
    def wide(self) -> bool:
        """Whether every sign takes several bytes."""
        return self.encoding in _WIDE

    def with_points(self, text: pa.Array) -> pa.Array:
        """A column with the decimals of its numbers behind a point; and back, by the same step.

        Point and comma change places in cells that are one number with decimals, and nothing else
        is touched: what was written with a point becomes text, and is not read as a number.
        """
        if self.decimal == ".":
            return text
        number = pc.match_substring_regex(text, _DECIMAL)
        comma = pc.match_substring(text, ",")
        swapped = pc.if_else(
            comma, pc.replace_substring(text, ",", "."), pc.replace_substring(text, ".", ",")
        )
        return pc.if_else(number, swapped, text)


def _known_encoding(name: Any) -> str:
    """One name for each encoding, or `InputError` if it is unknown or not one for plain text."""
    found = None
    with contextlib.suppress(LookupError, ValueError, TypeError):
        named = codecs.lookup(name).name.replace("_", "-")
        if named in _WIDE or _ASCII.decode(named) == _ASCII.decode("ascii"):
            found = named
    if found is None:
        raise InputError(
            f"The encoding {str(name)[:20]!r} is not known.",
            remedy='Give encoding="cp1252" (--encoding cp1252) for files of western European '
            'Windows, "latin-1" or "utf-16", for example.',
        )
    return "utf-8" if found == "utf-8-sig" else found


def check_options(
    public: Sequence[str],
    missing: str,
    formulas: str,
    unit: str,
    *,
    speed: str,
    turbine: str | None,
    key: str | None,
) -> None:
    """Raise `InputError` if the words that were given can't be used together."""
    if isinstance(public, str):
        raise InputError("public is one name.", remedy=f"Give a list: public=[{public!r}].")
    if not isinstance(public, Collection):
        raise wrong_type("list of columns as public", public, remedy='Write public=["direction"].')
    if missing not in ("refuse", "drop"):
        raise InputError(f"missing is {missing!r}.", remedy='Use "refuse" or "drop".')
    if formulas not in ("refuse", "keep"):
        raise InputError(f"formulas is {formulas!r}.", remedy='Use "refuse" or "keep".')
    if not isinstance(unit, str):
        raise wrong_type("name of the unit", unit, remedy='Name it, as in unit="kW".')
    if not unit.strip():
        raise InputError("The unit of power is empty.", remedy='Name it, as in unit="kW".')
    if turbine is not None and turbine in (speed, key):
        raise InputError(
            f"Column '{turbine}' is named as the turbine and as something else.",
            remedy="The turbine needs a column of its own.",
        )


def key_or_time(key: str | None, time: str | None, time_format: str | None) -> str | None:
    """The column that orders rows, or `InputError` if there are two, or a format of none."""
    if time is not None and key not in (None, time):
        raise InputError(
            f"Rows can't be ordered by the time '{time}' and by the key '{key}'.",
            remedy="Name the column of times with time= (--time), and leave key out.",
        )
    if time_format is not None and key is None and time is None:
        raise InputError(
            "There is a format of times, but no column of times.",
            remedy="Name it with time= (--time).",
        )
    return key if time is None else time


def check_capacity(capacity: Any, *, turbines: bool) -> Capacity:
    """Check what the user gave, before any file is opened.

    Raises
    ------
    InputError
        If a capacity is not a positive number, or is given by turbine and there are none.
    """
    if not isinstance(capacity, Mapping):
        return _positive(capacity, "The capacity")
    if not turbines:
        raise InputError(
            "The capacity is given by turbine, but no turbine column is named.",
            remedy="Name it: turbine=COLUMN (--turbine COLUMN).",
        )
    return {str(n): _positive(c, f"The capacity of turbine {n}") for n, c in capacity.items()}


def capacity_of(capacity: Capacity, turbine: str) -> float:
    """The capacity of one turbine.

    Raises
    ------
    InputError
        If it is not among those given.
    """
    if not isinstance(capacity, Mapping):
        return capacity
    if turbine not in capacity:
        given = ", ".join(list(capacity)[:10]) or "none"
        raise InputError(
            f"There is no capacity for turbine {turbine}.", remedy=f"Known turbines: {given}."
        )
    return capacity[turbine]


def _positive(value: Any, what: str) -> float:
    number = math.nan
    if isinstance(value, Real) and not isinstance(value, bool):
        with contextlib.suppress(OverflowError):
            number = float(value)
    if _LEAST <= number <= _MOST:
        return number
    raise InputError(
        f"{what} is {number:g}, which no turbine has in any unit."
        if math.isfinite(number) and number > 0
        else f"{what} must be a positive number, not {value!r}.",
        remedy="Give the nameplate capacity, in the unit of the power column.",
    )
