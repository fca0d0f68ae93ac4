"""Round released values to their decimals, within the box and with the total that must be met."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gridveil.grid.restoration.master import Aim, Total

Floats = NDArray[np.float64]

FEWEST = 2
"""The least number of decimals of released values (MW, $/MWh)."""
# Rounding steps are at most this share of the noise's scale.
_FINE = 100


def decimals_for(scale: float) -> int:
    """Choose decimals whose step is at most a hundredth of the noise's scale.

    >>> [decimals_for(scale) for scale in (300.0, 1.0, 0.5, 0.001)]
    [2, 2, 3, 5]
    """
    return max(FEWEST, math.ceil(math.log10(_FINE / scale) - 1e-9))


class Rounding:
    """Rounding of every entry to its decimals in MW or $/MWh.

    Parameters
    ----------
    decimals
        One number, or one for each entry.
    unit
        The unit of the entries, a power of two: the entry times this is rounded.
    """

    def __init__(self, decimals: ArrayLike, unit: ArrayLike = 1.0) -> None:
        self._decimals = np.asarray(decimals, dtype=np.int64)
        self._unit = np.asarray(unit, dtype=np.float64)

    def step(self, entries: int) -> Floats:
        """Return the distance of neighbouring rounded values, in the unit of each entry."""
        steps = 10.0 ** -self._decimals.astype(np.float64) / self._unit
        return np.broadcast_to(steps, (entries,))

    def __call__(self, values: Floats) -> Floats:
        """Return the nearest rounded values."""
        given = values * self._unit
        places = np.broadcast_to(self._decimals, given.shape)
        found = given.copy()
        for decimals in np.unique(places):
            some = places == decimals
            found[some] = np.round(given[some], int(decimals))
        return np.asarray(found / self._unit)


def rounded(values: Floats, aim: Aim, rounding: Rounding) -> Floats:
    """Round values within the aim's box, so that they add up to a total that must be met."""
    found = np.clip(rounding(values), aim.low, aim.high)
    for total in aim.totals:
        if total.weight is None:
            found = _met(total, found, values, aim, rounding)
    return found


def _met(total: Total, rounded: Floats, values: Floats, aim: Aim, rounding: Rounding) -> Floats:
    """Round some entries the other way, so that the sum is as near to the total as it can be."""
    steps = rounding.step(len(values))
    # The entries of a total are of one parameter, so they all have the same decimals.
    step = float(steps[total.row == 1].min(initial=np.inf))
    short = round((total.goal - float(total.row @ rounded)) / step)
    other = rounding(rounded + np.sign(short) * steps)
    possible = (other >= aim.low) & (other <= aim.high) & (total.row == 1)
    # First those that rounding moved furthest in the other direction.
    order = np.argsort((rounded - values) * np.sign(short), kind="stable")
    chosen = order[possible[order]][: abs(short)]
    found = rounded.copy()
    found[chosen] = other[chosen]
    return found
