"""Text that a spreadsheet would take for a formula when it opens a released CSV file.

A note such as ``=HYPERLINK(...)`` in the source would be run by the recipient's spreadsheet. It
is public text that is released as it is, so it is refused or kept, never changed; and what decides
it is public.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gridveil.errors import InputError

Formulas = Literal["refuse", "keep"]

# At the start of a cell, or where a spreadsheet with another delimiter would start one. Excel
# takes the wide signs for the narrow ones.
_START = r"(^|[;,\t\r\n])[\s\x00]*[=+\-@\x{FF1D}\x{FF0B}\x{FF0D}\x{FF20}]"
_NUMBER = r"^\s*[+\-]?([0-9]+([.,][0-9]*)?|[.,][0-9]+)([eE][+\-]?[0-9]+)?\s*%?\s*$"
_DASHES = r"^[\s+\-]*$"


def first_formula(text: pa.Array) -> int | None:
    """Position of the first cell that a spreadsheet would run; None where there is none."""
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
        Where there is one.
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
