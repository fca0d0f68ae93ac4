"""Who counts as a neighbour: the notion that epsilon is a promise about."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from gridveil.errors import InputError, show_exact
from gridveil.privacy.budget import Exact, exact
from gridveil.privacy.sealed import Limits


@dataclass(frozen=True)
class Adjacency:
    """Neighbours differ in one entry of a parameter, by at most ``alpha``, inside its range.

    Length, order, missing rows and everything public are the same in both.

    Parameters
    ----------
    parameter
        The private parameter, in the words that people read.
    alpha
        How far the one entry may move.
    unit
        Of alpha and of the range.
    limits
        The public range of an entry.
    entries
        How many private entries there are.
    wholes, measure
        Where alpha is a share: of what, by name (the capacity of each turbine), and its unit. The
        ledger compares amounts, not shares.
    key
        What the ledger knows the parameter by, whatever the words: ``"power"``, ``"load"``.
    """

    parameter: str
    alpha: Fraction
    unit: str
    limits: Limits
    entries: int
    wholes: Mapping[str, Fraction] = field(default_factory=dict, hash=False)
    measure: str = ""
    key: str = ""

    def __post_init__(self) -> None:
        if not self.key:
            object.__setattr__(self, "key", self.parameter)

    @classmethod
    def of(
        cls,
        parameter: str,
        *,
        alpha: Exact,
        unit: str,
        limits: Limits,
        entries: int,
        wholes: Mapping[str, Fraction] | None = None,
        measure: str = "",
        key: str = "",
    ) -> Adjacency:
        """Check what a user gave and make an adjacency of it."""
        amount = exact(alpha, name="alpha", unit=None if unit.startswith("of ") else unit)
        width = Fraction(limits.high) - Fraction(limits.low)
        if amount > width:
            raise InputError(
                f"alpha is {show_exact(amount)} {unit}, more than the whole range {limits} of "
                f"{parameter}.",
                remedy=f"Give alpha {_counted_in(unit)}, at most {float(width):g}.",
            )
        if entries < 1:
            raise InputError(f"There are no values of {parameter} to release.")
        return cls(parameter, amount, unit, limits, entries, wholes or {}, measure, key)

    @property
    def width(self) -> Fraction:
        """How far it is from one end of the range to the other, in the unit of alpha."""
        return Fraction(self.limits.high) - Fraction(self.limits.low)

    @property
    def steps_over_range(self) -> int:
        """How many steps of alpha lead from one end of the range to the other."""
        return math.ceil(self.width / self.alpha)

    def to_json(self, epsilon: Fraction) -> dict[str, Any]:
        """The adjacency as the statement has it."""
        return {
            "parameter": self.parameter,
            "alpha": str(self.alpha),
            "unit": self.unit,
            "range": [self.limits.low, self.limits.high],
            "entries": self.entries,
            "epsilon_over_whole_range": str(epsilon * self.steps_over_range),
        }

    def __str__(self) -> str:
        what = f"one of {self.entries:,} entries of {self.parameter}"
        return f"{what} by {show_exact(self.alpha)} {self.unit}"


def _counted_in(unit: str) -> str:
    return f"as a share {unit}" if unit.startswith("of ") else f"in {unit}"
