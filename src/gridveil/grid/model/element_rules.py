"""Rules about elements of a network: ``voltage>=220,kind=line`` chooses some by public facts.

They say which elements are protected and which class a step is for. A rule never reads a private
value.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridveil.errors import InputError

Bools = NDArray[np.bool_]

_TERM = re.compile(r"\s*([a-z_]+)\s*(>=|<=|!=|=|>|<)\s*(\S(?:.*\S)?)\s*")
_ORDER: dict[str, Callable[[Any, Any], Any]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
_REMEDY = (
    "Write a fact, a comparison and a value, several with commas: voltage>=220, kind=line, name=A*."
)


def fits(rule: str, facts: Mapping[str, NDArray[Any]], table: str) -> Bools:
    """Which elements a rule fits, by public facts of them.

    Raises
    ------
    InputError
        If the rule can't be read, or is about something that is not known.
    """
    held = [_holds(term, facts, table) for term in _parts(rule)]
    return np.asarray(np.all(held, axis=0))


def usual_form(rule: Any) -> str:
    """The form in which a rule is kept: sorted, without spaces, its numbers in the usual form.

    Raises
    ------
    InputError
        If it can't be read.
    """
    return ",".join(sorted(_term(part) for part in _parts(rule)))


def _parts(rule: Any) -> list[str]:
    if not isinstance(rule, str):
        raise InputError("A rule of what is protected is a text.", remedy=_REMEDY)
    return rule.split(",")


def _term(text: str) -> str:
    """One comparison as it is kept: without spaces, its number in the usual form."""
    fact, sign, value = _read(text)
    if sign in _ORDER or fact == "voltage":
        value = f"{_number(value, text):.10g}"
    return f"{fact}{sign}{value}"


def _read(text: str) -> tuple[str, str, str]:
    found = _TERM.fullmatch(text)
    if found is None:
        raise InputError(f"The rule {text.strip()[:60]!r} can't be read.", remedy=_REMEDY)
    return found[1], found[2], found[3]


def _number(value: str, text: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = np.nan
    if not np.isfinite(number):
        raise InputError(f"The rule {text.strip()[:60]!r} needs a number.", remedy=_REMEDY)
    return number


def _holds(term: str, facts: Mapping[str, NDArray[Any]], table: str) -> Bools:
    fact, sign, value = _read(term)
    if fact not in facts:
        raise InputError(
            f"The rule {term!r} is about {fact}, which is not known of these {table}.",
            remedy=f"Known of them: {', '.join(facts)}.",
        )
    values = facts[fact]
    if values.dtype.kind == "f":
        number = _number(value, term)
        if sign in _ORDER:
            return np.asarray(_ORDER[sign](values, number), dtype=bool)
        same: Bools = np.asarray(values == number)
    elif sign in _ORDER:
        raise InputError(f"The rule {term!r} compares names.", remedy="Use = or !=.")
    else:
        same = np.array([fnmatchcase(str(one), value) for one in values], dtype=bool)
    return same if sign == "=" else ~same
