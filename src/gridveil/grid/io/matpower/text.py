"""Scan the text of a MATPOWER case: its tables, and the position of each number.

A case is a MATLAB program. Only the part of the language that is plain data is read: comments,
``mpc.x = [numbers]``, cell arrays, strings and numbers. Any other statement (a loop, a unit
conversion, an assignment to some columns) could change the tables, so it is refused rather than
skipped. The position of every row is kept, so that single numbers can be changed in the text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from gridveil.errors import InputError
from gridveil.grid.model.network import Floats

CORE = ("bus", "gen", "branch", "gencost")
CHANGES_MODEL = re.compile(r"dc.*|.*dc|storage|switch|A|N")
"""Tables that change the optimal power flow and can't be modelled here."""

# Strings come first: a percent sign inside one does not start a comment.
_STRING = r"""'(?:[^'\n]|'')*' | "(?:[^"\n]|"")*" """
_BLOCK = r"^[ \t]*%\{[ \t\r]*\n .*? ^[ \t]*%\}[ \t\r]*$"
_REST = r"%[^\n]* | \.\.\.[^\n]*\n"
_FLAGS = re.MULTILINE | re.DOTALL | re.VERBOSE
_HIDDEN = re.compile(f"{_STRING} | {_BLOCK} | {_REST}", _FLAGS)
_HIDDEN_IN_LINES = re.compile(f"{_STRING} | {_REST}", _FLAGS)
_BLOCK_END = re.compile(r"^[ \t]*%\}[ \t\r]*$", re.MULTILINE)
_GAP = re.compile(r"[\s;,\ufeff]*")
_FUNCTION = re.compile(r"function\s+(\w+)\s*=\s*(\w+)\s*(?:\(\s*\))?(?=[\s;,]|\Z)")
_ASSIGNMENT = re.compile(r"([A-Za-z]\w*)\.([A-Za-z]\w*(?:\.\w+)*)[ \t]*=[ \t]*")
_SCALAR = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|'_*'|\"_*\"")
_END = re.compile(r"(?:end|endfunction|return)\b[\s;]*\Z")
_SEPARATOR = re.compile(r"[ \t\r]*(?:[;,\n]|\Z)")
_WORDS = re.compile(r"\b(?:Inf|inf|NaN|nan)\b")
_NOT_NUMBER = re.compile(r"[^0-9eE+\-.,;\s]|,\s*,")
_ROW = re.compile(r"[^;\n]+")
_TOKEN = re.compile(r"[^\s,]+")


@dataclass(frozen=True, eq=False)
class TextTable:
    """The numbers of one table, and the position of each row in the text."""

    values: Floats
    rows: tuple[tuple[int, int], ...]


@dataclass(frozen=True, eq=False)
class CaseText:
    """A case file: its text, and the data in it.

    Parameters
    ----------
    file
        Name of the file, for messages.
    text
        The whole text; bytes that are not UTF-8 are escaped.
    plain
        The same text with comments and the contents of strings blanked; positions are the same.
    name
        Name of the case.
    base_mva, base_at
        Base power, and its position.
    tables
        The core tables.
    fields
        The names of all fields that the case assigns.
    """

    file: str
    text: str
    plain: str
    name: str
    base_mva: float
    base_at: tuple[int, int]
    tables: Mapping[str, TextTable]
    fields: tuple[str, ...] = ()

    def token(self, table: str, row: int, column: int) -> tuple[int, int]:
        """Return the position of one number in the text."""
        start, end = self.tables[table].rows[row]
        for place, match in enumerate(_TOKEN.finditer(self.plain, start, end)):
            if place == column:
                return match.span()
        raise InputError(f"{self.file}: mpc.{table} row {row + 1} has no column {column + 1}.")


def scan(text: str, file: str) -> CaseText:
    """Read the text of a case.

    Raises
    ------
    InputError
        If a table is missing or damaged, or a statement is not plain data.
    """
    plain = _blank(text, file)
    name, values = _statements(plain, text, file)
    _refuse_unmodelled(values, plain, file)
    _check_version(values, text, file)
    missing = [f"mpc.{field}" for field in ("baseMVA", *CORE) if field not in values]
    if missing:
        raise InputError(
            f"{file} has no {', '.join(missing)}.",
            remedy="Give a MATPOWER case with all of baseMVA, bus, gen, branch and gencost.",
        )
    base_at = values["baseMVA"]
    tables = {table: _table(plain, values[table], table, file) for table in CORE}
    base = _base(plain, base_at, file)
    return CaseText(file, text, plain, name, base, base_at, tables, tuple(values))


def _blank(text: str, file: str) -> str:
    def hide(match: re.Match[str]) -> str:
        found = match[0]
        if found[0] in "'\"":
            return found[0] + "_" * (len(found) - 2) + found[0]
        if found.count("{") > 1 and re.search(r"\n[ \t]*%\{[ \t\r]*\n", found):
            raise InputError(
                f"{file} has block comments inside block comments.", remedy="Remove them."
            )
        if found.startswith("..."):
            return " " * len(found)
        return re.sub(r"[^\n]", " ", found)

    # After the last end of a block comment none can begin; searching from every line is too slow.
    last = max((match.end() for match in _BLOCK_END.finditer(text)), default=0)
    return _HIDDEN.sub(hide, text[:last]) + _HIDDEN_IN_LINES.sub(hide, text[last:])


def _statements(plain: str, text: str, file: str) -> tuple[str, dict[str, tuple[int, int]]]:
    """Return the name of the case, and the position of every field's value."""
    place = _skip(plain, 0)
    name, variable = "case", "mpc"
    function = _FUNCTION.match(plain, place)
    if function:
        variable, name = function.groups()
        place = _skip(plain, function.end())
    found: dict[str, tuple[int, int]] = {}
    while place < len(plain) and not _END.match(plain, place):
        match = _ASSIGNMENT.match(plain, place)
        end = _value_end(plain, match.end()) if match else None
        if match is None or end is None or match[1] != variable:
            raise _not_data(plain, text, place, file)
        field = match[2]
        if field in found or field.split(".")[0] in {*CORE, "baseMVA"} - {field}:
            raise InputError(
                f"{file} line {_line(text, place)} assigns {variable}.{field} again.",
                remedy="Keep one of them.",
            )
        found[field] = (match.end(), end)
        place = _skip(plain, end)
    return name, found


def _skip(plain: str, place: int) -> int:
    match = _GAP.match(plain, place)
    return match.end() if match else place


def _line(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1


def _not_data(plain: str, text: str, place: int, file: str) -> InputError:
    # Digits are hidden: they may be private.
    shown = re.sub(r"\d+(\.\d*)?", "#", plain[place:].split("\n", 1)[0].strip())
    shown = shown if len(shown) <= 60 else f"{shown[:57]}..."
    return InputError(
        f"{file} line {_line(text, place)} is not plain data: {shown!r}. Statements could change "
        "the tables (such as kW to MW), so they are not skipped.",
        remedy="Load the case in MATPOWER and save it with savecase: that writes plain tables.",
    )


def _value_end(plain: str, start: int) -> int | None:
    """Return the end of the value that begins here, or None if it is not plain data."""
    opening = plain[start : start + 1]
    if opening in ("[", "{"):
        end = _closing(plain, start)
    else:
        scalar = _SCALAR.match(plain, start)
        end = scalar.end() if scalar else None
    return end if end is not None and _SEPARATOR.match(plain, end) else None


def _closing(plain: str, start: int) -> int | None:
    closes = {"[": "]", "{": "}", "(": ")"}
    waiting: list[str] = []
    for match in re.compile(r"[\[\](){}=]").finditer(plain, start):
        if match[0] in closes:
            waiting.append(closes[match[0]])
        elif match[0] == "=" or match[0] != waiting.pop():
            return None
        if not waiting:
            return match.end()
    return None


def _refuse_unmodelled(values: Mapping[str, tuple[int, int]], plain: str, file: str) -> None:
    for field, (start, end) in values.items():
        table = plain[start] in "[{" and plain[start:end].strip("[]{} \t\r\n;")
        if table and CHANGES_MODEL.fullmatch(field):
            raise InputError(
                f"{file} has mpc.{field}, which changes the optimal power flow and can't be "
                "modelled here.",
                remedy=f"Remove mpc.{field}, or replace it by injections at its ends.",
            )


def _check_version(values: Mapping[str, tuple[int, int]], text: str, file: str) -> None:
    start, end = values.get("version", (0, 0))
    version = text[start:end].strip("'\"")
    if version not in ("", "1", "2"):
        raise InputError(
            f"{file} is of version {version!r} of the case format.",
            remedy="Save it as version 2 (savecase in MATPOWER).",
        )


def _base(plain: str, span: tuple[int, int], file: str) -> float:
    try:
        return float(plain[slice(*span)])
    except ValueError:
        raise InputError(f"{file}: mpc.baseMVA is not a number.") from None


def _table(plain: str, span: tuple[int, int], table: str, file: str) -> TextTable:
    start, end = span[0] + 1, span[1] - 1
    if plain[span[0]] != "[":
        raise InputError(f"{file}: mpc.{table} is not a table of numbers.")
    body = plain[start:end]
    wrong = _NOT_NUMBER.search(_WORDS.sub(lambda word: "0" * len(word[0]), body))
    if wrong:
        raise _not_number(plain, start + wrong.start(), table, file)
    values, rows = [], []
    for match in _ROW.finditer(plain, start, end):
        numbers = match[0].replace(",", " ").split()
        if not numbers:
            continue
        try:
            values.append([float(number) for number in numbers])
        except ValueError:
            raise _not_number(plain, match.start(), table, file) from None
        rows.append(match.span())
    widths = [len(row) for row in values]
    if len(set(widths)) > 1:
        odd = next(place for place, width in enumerate(widths) if width != widths[0])
        raise InputError(
            f"{file} line {_line(plain, rows[odd][0])}: mpc.{table} row {odd + 1} has "
            f"{widths[odd]} columns and the first row {widths[0]}.",
            remedy="Give every row the same number of columns.",
        )
    array = np.array(values, dtype=np.float64).reshape(len(values), widths[0] if widths else 0)
    array.setflags(write=False)
    return TextTable(array, tuple(rows))


def _not_number(plain: str, place: int, table: str, file: str) -> InputError:
    return InputError(
        f"{file} line {_line(plain, place)}: mpc.{table} has something that is not a number.",
        remedy="Give plain numbers: no names, no arithmetic.",
    )
