"""Reference alphas as their owner declares them: by a parameter's key, or for all of a unit."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from gridveil.errors import InputError, show_exact
from gridveil.privacy.adjacency import RELATIVE
from gridveil.privacy.exact_numbers import Exact, exact

ANY = "*"
"""Stands for every parameter in the unit of a declared alpha."""

SHARE = "of capacity"
"""The unit of a declared alpha that was given in percent."""

Alphas = Exact | Mapping[str, Exact]

_KEY = re.compile(r"[a-z][a-z0-9_]{0,63}", re.ASCII)


def checked_key(key: str) -> str:
    """A parameter's key as the ledger writes it, or `InputError`."""
    if not _KEY.fullmatch(key):
        raise InputError(
            f"{key[:64]!r} can't be a key of the ledger.",
            remedy="Use small letters, digits and underscores, as in generator_limit.",
        )
    return key


@dataclass(frozen=True)
class Declared:
    """A reference alpha as its owner gave it; without a unit it is in that of the charges."""

    alpha: Fraction
    unit: str = ""

    def fits(self, unit: str) -> bool:
        """Whether this is an alpha of a parameter that is charged in a unit."""
        if self.unit:  # 15% is of what the parameter's shares are of
            return self.unit == unit or (self.unit, unit) == (SHARE, RELATIVE)
        # More than the whole must be a slip (kW for a share) unless it is written with a %.
        return not (unit.startswith("of ") and self.alpha > 1)

    def __str__(self) -> str:
        return f"{show_exact(self.alpha)} {self.unit}".strip()


def read_alphas(given: Alphas) -> dict[str, Declared]:
    """Reference alphas as a user gives them, or `InputError`.

    >>> read_alphas("15%")["*"].unit, read_alphas({"load": 10})["load"].unit
    ('of capacity', '')
    """
    if isinstance(given, Mapping):
        if not given:
            raise InputError("No reference alpha is given.", remedy="Write --alpha capacity=30.")
        return {checked_key(str(key)): _declared(one) for key, one in given.items()}
    one = _declared(given)
    if not one.unit and one.alpha <= 1:
        raise InputError(
            f"A reference alpha of {show_exact(one.alpha)} may be a share or an amount.",
            remedy="Write it in percent (15%), or name its parameter (power=0.15, load=0.5).",
        )
    return {ANY: one if one.unit else Declared(one.alpha, "MW")}


def _declared(given: Exact) -> Declared:
    percent = isinstance(given, str) and given.strip().endswith("%")
    return Declared(exact(given, name="the reference alpha"), SHARE if percent else "")
