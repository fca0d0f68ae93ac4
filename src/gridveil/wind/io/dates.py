"""Dates and times in text as people write them: 31/01/2024 13:50, 1/31/2024 1:50 PM, 31.01.2024.

A format is written as for Python's ``strptime``: ``%d/%m/%Y %H:%M``. Text in a format is rewritten
as ISO 8601, which Arrow reads: it knows that there is no 31 February.

Without a format the usual ones are tried on all of a public column, and one is taken only if no
other fits: 02/01/2024 alone may be two days, but with 31/01/2024 in the same column it is one.
"""

from __future__ import annotations

import re
from functools import cache

import pyarrow as pa
import pyarrow.compute as pc

from gridveil.errors import InputError

_DAYS = ("%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d", "%d-%b-%Y")
_HOURS = ("", " %H:%M", " %H:%M:%S", " %H:%M:%S.%f", " %I:%M %p", " %I:%M:%S %p")
USUAL_FORMATS = tuple(day + hour for day in _DAYS for hour in _HOURS)
"""The formats that are tried if none is given, besides ISO 8601."""

EXAMPLE = "%d/%m/%Y %H:%M"

_PARTS = {
    "d": r"\d{1,2}",
    "m": r"\d{1,2}",
    "b": r"[A-Za-z]{3}",
    "Y": r"\d{4}",
    "y": r"\d{2}",
    "H": r"\d{1,2}",
    "I": r"\d{1,2}",
    "M": r"\d{2}",
    "S": r"\d{2}",
    "f": r"\d{1,9}",
    "p": r"[AaPp]\.?[Mm]\.?",
    "z": r"Z|[+-]\d{2}:?\d{2}",
}
_NEEDED = ("d", "mb", "Yy")
_MONTHS = pa.array(
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
    pa.large_string(),
)
_NOON = 12
_CENTURY = 69  # as strptime has it: 69 is 1969, 68 is 2068
# Dates that letters put in another order than days: all but 2024-01-31.
_DATE = re.compile(
    r"\s*(?!\d{4}[./-]\d\d[./-]\d\d)\d{1,4}[./ -](\d{1,2}|[A-Za-z]{3})[./ -]\d{1,4}\b"
)


def check_format(text: object) -> str:
    """A format that can be used, or `InputError`."""
    parts = re.findall("%(.)", text.replace("%%", "")) if isinstance(text, str) else []
    unknown = [part for part in parts if part not in _PARTS]
    once = len(parts) == len(set(parts))
    dated = all(sum(part in parts for part in either) == 1 for either in _NEEDED)
    timed = ("I" in parts) == ("p" in parts) and not ("I" in parts and "H" in parts)
    if unknown or not (once and dated and timed):
        raise InputError(
            f"The format of times {str(text)[:60]!r} can't be used"
            + (f": %{unknown[0]} is not known." if unknown else "."),
            remedy=f'Write day, month and year, each once, as in "{EXAMPLE}" (--time-format). '
            f"Known: {' '.join(f'%{part}' for part in _PARTS)}.",
        )
    return str(text)


def looks_dated(text: str) -> bool:
    """Whether text looks like a date that letters would put in the wrong order."""
    return bool(_DATE.match(text))


def read_dates(text: pa.Array, written: str) -> pa.Array | None:
    """Timestamps of a column of trimmed text in a format; None if some of it is not in it."""
    found = pc.extract_regex(text, _pattern(written))
    if found.null_count > text.null_count:
        return None
    part = {name: found.field(name) for name in _named(written)}
    days = [_year(part), _month(part), pc.utf8_lpad(part["d"], 2, "0")]
    clock = [_hour(part), part.get("M", "00"), part.get("S", "00")]
    iso = _join([_join(days, "-"), _join(clock, ":")], " ")
    if "f" in part:
        iso = _join([iso, pc.utf8_slice_codeunits(part["f"], 0, 6)], ".")
    if "z" in part:
        iso = _join([iso, part["z"]], "")
    # What `extract_regex` says of a null is an empty text.
    iso = pc.if_else(text.is_valid(), iso, pa.scalar(None, pa.large_string()))
    try:
        return iso.cast(pa.timestamp("us", "UTC" if "z" in part else None))
    except pa.ArrowException:
        return None


@cache
def _pattern(written: str) -> str:
    """A regular expression with a name for each part."""
    pieces: list[str] = []
    for piece in re.findall(r"%.|\s+|[^%\s]+", written):
        if piece[0] == "%" and piece != "%%":
            if piece == "%p" and pieces and pieces[-1] == r"\s+":
                pieces[-1] = r"\s*"  # as in 1:50pm
            pieces.append(f"(?P<{piece[1]}>{_PARTS[piece[1]]})")
        else:
            pieces.append(r"\s+" if piece.isspace() else re.escape(piece.replace("%%", "%")))
    return f"^{''.join(pieces)}$"


@cache
def _named(written: str) -> tuple[str, ...]:
    return tuple(re.findall("%(.)", written.replace("%%", "")))


def _year(part: dict[str, pa.Array]) -> pa.Array:
    if "Y" in part:
        return part["Y"]
    century = pc.if_else(pc.less(_numbers(part["y"]), _CENTURY), "20", "19")
    return _join([century.cast(pa.large_string()), part["y"]], "")


def _month(part: dict[str, pa.Array]) -> pa.Array:
    if "m" in part:
        return pc.utf8_lpad(part["m"], 2, "0")
    # One that is not known becomes month 0, which no date has.
    place = pc.index_in(pc.ascii_lower(part["b"]), value_set=_MONTHS)
    return _padded(pc.add(place.fill_null(-1), 1))


def _hour(part: dict[str, pa.Array]) -> pa.Array | str:
    if "I" not in part:
        return pc.utf8_lpad(part["H"], 2, "0") if "H" in part else "00"
    hour = _numbers(part["I"])
    after = pc.starts_with(pc.ascii_lower(part["p"]), "p")
    early = pc.if_else(pc.equal(hour, _NOON), 0, hour)
    # 0 and 13 o'clock become hour 99, which no day has.
    usual = pc.and_(pc.greater(hour, 0), pc.less_equal(hour, _NOON))
    return _padded(pc.if_else(usual, pc.add(early, pc.if_else(after, _NOON, 0)), 99))


def _numbers(text: pa.Array) -> pa.Array:
    # Empty where the whole text is missing.
    return pc.if_else(pc.equal(text, ""), "0", text).cast(pa.int32())


def _padded(numbers: pa.Array) -> pa.Array:
    return pc.utf8_lpad(numbers.cast(pa.large_string()), 2, "0")


def _join(parts: list[pa.Array | str], separator: str) -> pa.Array:
    texts = [pa.scalar(p, pa.large_string()) if isinstance(p, str) else p for p in parts]
    return pc.binary_join_element_wise(*texts, pa.scalar(separator, pa.large_string()))
