"""Exact numbers, as people write them and as the ledger does.

What is read here is what is charged, what the noise is for, and what the statement says.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import TypeAlias

from gridveil.errors import InputError

Exact: TypeAlias = int | float | str | Decimal | Fraction
"""What a user may write for an exact number: ``1``, ``0.1``, ``"1/3"``, ``"15%"``."""

_SHAPE = re.compile(r"\+?(\d{1,30}(\.\d{0,30})?|\.\d{1,30})([eE][+-]?\d{1,2})?(/\d{1,30})?\s*%?")
_RATIONAL = re.compile(r"\d{1,400}(/\d{1,400})?", re.ASCII)


def exact(value: Exact, *, name: str, unit: str | None = None) -> Fraction:
    """Turn what a user wrote into a positive rational number.

    A float is read as the decimal that Python prints for it, so ``0.1`` means one tenth. With a
    unit the number is an amount: a percentage would be read as a hundredth of what was meant.

    Raises
    ------
    InputError
        If the value is not a positive number of reasonable length.
    """
    number = _parse(value)
    share = str(value).strip().endswith("%")
    if number is None or number <= 0 or (share and unit is not None):
        what = "a positive number" if unit is None else f"a positive number of {unit}"
        ways = "1, 0.1, 1/3 or 15%" if unit is None else f"30, 0.5 or 1/3, in {unit}"
        raise InputError(
            f"{name} must be {what}, and {str(value)[:40]!r} is not.",
            remedy=f"Write {name} as {ways}.",
        )
    return number


def _parse(value: Exact) -> Fraction | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, Fraction):
        return value if len(str(value)) <= 400 else None
    if isinstance(value, float) and not math.isfinite(value):
        return None
    text = str(value).strip()
    if not _SHAPE.fullmatch(text):
        return None
    percent = text.endswith("%")
    over, _, under = text.rstrip("%").strip().partition("/")
    try:
        number = Fraction(Decimal(over)) / Fraction(under or 1)
    except (InvalidOperation, ZeroDivisionError):
        return None
    return number / 100 if percent else number


def positive(text: str) -> Fraction:
    """A rational above 0, as the ledger writes it, or `ValueError`."""
    amount = rational(text)
    if amount <= 0:
        raise ValueError
    return amount


def rational(text: str) -> Fraction:
    """A rational as the ledger writes it: no sign, no exponent that takes a year to expand."""
    if not _RATIONAL.fullmatch(text):
        raise ValueError
    return Fraction(text)
