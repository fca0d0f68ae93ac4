"""The public nameplate capacity of each turbine."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping
from numbers import Real
from typing import Any

from gridveil.errors import InputError

Capacity = float | Mapping[str, float]

# Within these no share of a capacity underflows, which the sensitivities rely on.
_LEAST, _MOST = 1e-12, 1e15


def check_capacity(capacity: Any, *, turbines: bool) -> Capacity:
    """Check what the user gave, before any file is opened.

    Raises
    ------
    InputError
        Where a capacity is no positive number, or is given by turbine and there are none.
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
        Where it is not among those given.
    """
    if not isinstance(capacity, Mapping):
        return capacity
    if turbine not in capacity:
        given = ", ".join(list(capacity)[:10]) or "none"
        raise InputError(
            f"There is no capacity for turbine {turbine}.", remedy=f"Given are: {given}."
        )
    return capacity[turbine]


def _positive(value: Any, what: str) -> float:
    number = math.nan
    if isinstance(value, Real) and not isinstance(value, bool):
        with contextlib.suppress(OverflowError):
            number = float(value)
    if not (math.isfinite(number) and number > 0):
        raise InputError(
            f"{what} must be a positive number, not {value!r}.",
            remedy="Give the nameplate capacity, in the unit of the power column.",
        )
    if not _LEAST <= number <= _MOST:
        raise InputError(
            f"{what} is {number:g}, which no turbine has in any unit.",
            remedy="Give the nameplate capacity, in the unit of the power column.",
        )
    return number
