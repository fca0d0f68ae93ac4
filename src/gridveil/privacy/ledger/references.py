"""Reference alphas: the step that a dataset's epsilons add up for, declared by its owner.

A reference is declared for a parameter, or for every parameter in a unit (`ANY`). If none is, a
parameter's first charge has it. It can be raised at any time, and lowered only before the first
charge that counts at it.

Where alpha is a share of something (the capacity of a turbine), the step of each element is what
its share amounts to at the largest capacity that it was ever charged with. An element that was not
charged before could be another under a new name, so its step is no smaller than the largest of
those that were.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

from gridveil.errors import InputError, show_exact
from gridveil.privacy.budget import Exact, exact
from gridveil.privacy.ledger.entries import checked_key

ANY = "*"
"""Stands for every parameter in the unit of a declared alpha."""

SHARE = "of capacity"

Alphas = Exact | Mapping[str, Exact]


@dataclass(frozen=True)
class Reference:
    """A step of a parameter: how far one entry moves."""

    alpha: Fraction
    unit: str
    wholes: Mapping[str, Fraction] = field(default_factory=dict)
    measure: str = ""

    def steps(self, alpha: Fraction, wholes: Mapping[str, Fraction]) -> int:
        """How many steps of a release's alpha make up this one, for the worst element."""
        return math.ceil(self.times(alpha, wholes))

    def times(self, alpha: Fraction, wholes: Mapping[str, Fraction]) -> Fraction:
        """How many times a release's alpha this one is, for the worst element."""
        if not wholes or not self.wholes:
            return self.alpha / alpha
        largest = max(self.wholes.values())
        return max(
            self.alpha * self.wholes.get(name, largest) / (alpha * whole)
            for name, whole in wholes.items()
        )

    def comparable(self, other: Reference) -> bool:
        """Whether both are counted in the same unit."""
        return (self.unit, self.measure) == (other.unit, other.measure)

    def joined(self, other: Reference) -> Reference:
        """A step as large as both, for every element; this one if they can't be compared."""
        if not self.comparable(other):
            return self
        most = {
            name: max(one.get(name, Fraction(0)) for one in (self.wholes, other.wholes))
            for name in (*self.wholes, *other.wholes)
        }
        return Reference(max(self.alpha, other.alpha), self.unit, most, self.measure)

    def widened(self, other: Reference) -> Reference:
        """The same share of wholes as large as both have; this one if they can't be compared.

        An element that is new in the other has at least the largest of these wholes.
        """
        if not self.comparable(other):
            return self
        largest = max(self.wholes.values(), default=Fraction(0))
        most = {
            name: max(self.wholes.get(name, largest), whole) for name, whole in other.wholes.items()
        }
        return replace(self, wholes={**self.wholes, **most})

    def __str__(self) -> str:
        return f"{show_exact(self.alpha)} {self.unit}"


@dataclass(frozen=True)
class Declared:
    """A reference alpha as its owner gave it; without a unit it is in that of the charges."""

    alpha: Fraction
    unit: str = ""

    def fits(self, unit: str) -> bool:
        """Whether this is an alpha of a parameter that is charged in a unit."""
        if self.unit:
            return self.unit == unit
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
