"""Which method when: by public numbers alone, and said so."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gridveil.errors import show_exact
from gridveil.wind.methods.base import Guarantee, Prepared
from gridveil.wind.regression import Fit

AUTO = "auto"
"""Stands for the method that public numbers speak for."""

_GOOD = 0.01  # an error of the curve, as a share of capacity
_USELESS = 0.5
_MANY = 500
FEW = 100
"""With fewer records than this no one expects a curve."""


def choose(rows: int, guarantee: Guarantee, largest: int) -> tuple[str, str]:
    """The name of the method that public numbers speak for, and why.

    Parameters
    ----------
    rows, largest
        How many records there are, and how many the largest turbine has.
    guarantee
        What is promised.
    """
    unit, alpha = guarantee.unit, show_exact(guarantee.alpha)
    if unit != "record":
        if _error(guarantee, largest, 10) < _GOOD:
            why = f"noise on every record for a whole {unit} leaves the curve within {_GOOD:.0%}"
            return "tuned", why
        return "synthetic", f"noise on every record for a whole {unit} would drown the curve"
    if guarantee.alpha == 1 and rows >= _MANY:
        return "synthetic", f"there are {rows:,} records, each protected over its whole range"
    return "tuned", f"there are {rows:,} records, each protected for steps of {alpha} of capacity"


def advice(method: str, rows: int, guarantee: Guarantee, largest: int) -> str | None:
    """What the plan says of tuned or synthetic if public numbers speak for the other one."""
    best, why = choose(rows, guarantee, largest)
    if method == best or method not in ("tuned", "synthetic"):
        return None
    return f"{method}, where public numbers speak for {best} ({why}): --method auto takes that"


def useless(fits: Sequence[Fit], guarantee: Guarantee, prepared: Prepared) -> list[str]:
    """A sentence if public numbers predict that noise on every record drowns the curve."""
    error = curve_error(fits, guarantee, prepared)
    if error is None or error < _USELESS or max(one.rows for one in fits) < FEW:
        return []
    group = f", for the {guarantee.group:,} records of a {guarantee.unit}" * (guarantee.group > 1)
    return [
        f"Noise on every record{group} will leave the power curve unknown by about {error:,.0%} "
        "of capacity: the release will tell next to nothing. What would work: the method "
        "synthetic (it needs a column of times to protect more than a record), a smaller alpha or "
        "unit, or more epsilon."
    ]


def curve_error(fits: Sequence[Fit], guarantee: Guarantee, prepared: Prepared) -> float | None:
    """What noise on every record leaves unknown of the largest turbine's curve, of capacity.

    None for a method that puts no noise on records.
    """
    share = float(prepared.shares[0])
    if not share:
        return None
    fit = max(fits, key=lambda one: one.rows)
    return _error(guarantee, fit.rows, fit.features.width) / share


def _error(guarantee: Guarantee, rows: int, features: int) -> float:
    """The error that noise on every record leaves in a curve with so many features.

    A record's noise has a variance of twice its scale squared, and the curve is an average: the
    mean over all records of the variance of a fit is that of a record times features over records.
    """
    scale = float(guarantee.alpha * guarantee.group / guarantee.epsilon)
    return float(np.sqrt(2 * features / max(rows, 1))) * scale
