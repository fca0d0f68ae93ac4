"""Choose a method from public numbers alone, and give the reason."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gridveil.errors import show_exact
from gridveil.wind.methods.base import Guarantee, Prepared
from gridveil.wind.regression import Fit

AUTO = "auto"
"""The name that stands for the method that `choose` picks."""

_GOOD = 0.01  # an error of the curve, as a share of capacity
_USELESS = 0.5
_MANY = 500
FEW = 100
"""With fewer records than this nobody expects an accurate curve, so there is no warning."""


def choose(rows: int, guarantee: Guarantee, largest: int) -> tuple[str, str]:
    """Choose the method that suits these public numbers; return its name and the reason.

    Parameters
    ----------
    rows, largest
        The number of all records, and that of the largest turbine.
    guarantee
        The guarantee.
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
    """Return a note for the plan if the other of "tuned" and "synthetic" would suit better."""
    best, why = choose(rows, guarantee, largest)
    if method == best or method not in ("tuned", "synthetic"):
        return None
    return f"{method}, although public numbers favour {best} ({why}); --method auto takes {best}"


def useless(fits: Sequence[Fit], guarantee: Guarantee, prepared: Prepared) -> list[str]:
    """Return a warning if public numbers predict that noise on every record drowns the curve."""
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
    """Predict the curve's error for the largest turbine, as a share of capacity.

    It counts the noise on every record; None for a method that puts no noise on records.
    """
    share = float(prepared.shares[0])
    if not share:
        return None
    fit = max(fits, key=lambda one: one.rows)
    return _error(guarantee, fit.rows, fit.features.width) / share


def _error(guarantee: Guarantee, rows: int, features: int) -> float:
    """Predict the error of a curve with this many features from noise on every record.

    A record's noise has a variance of twice its scale squared, and the curve is an average: the
    variance of the fit, averaged over all records, is that of a record times features over records.
    """
    scale = float(guarantee.alpha * guarantee.group / guarantee.epsilon)
    return float(np.sqrt(2 * features / max(rows, 1))) * scale
