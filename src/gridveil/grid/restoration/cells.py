"""Cells of values that entries may have, and how likely noisy values make each of them.

Cells are even on the scale ``ln(f + c)``. If noise is on the logarithm, ``c`` is 0. If it is in MW,
``c`` is its scale: cells of values that drown in noise are even in MW, and those of values far
above it are even in percent. Inside a cell all values are equally likely, so a large value whose
cell is wider than its noise keeps what the noise leaves of it: likelihoods and moments are
integrals over cells in closed form, not sums over points.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# Cells to each width of the noise.
_FINE = 5.0
# Cells reach this many widths of the noise beyond the noisy values.
_BEYOND = 4.0
_FEWEST = 40


@dataclass(frozen=True, eq=False)
class Noisy:
    """Noisy values above 0 with Laplace noise, and where they come from.

    Parameters
    ----------
    values
        In MW, or their logarithms if the noise was put on these.
    scale
        Of the noise of each, in the same.
    low, high
        The public ends of the values, in MW.
    logarithms
        Whether the noise is on the logarithm.
    """

    values: Floats
    scale: Floats
    low: float
    high: float
    logarithms: bool = False

    def __len__(self) -> int:
        return len(self.values)


class Cells:
    """Cells for some noisy values.

    Parameters
    ----------
    noisy
        The values.
    most
        How many cells there may be.
    """

    def __init__(self, noisy: Noisy, most: int) -> None:
        self._noisy = noisy
        typical = float(np.median(noisy.scale))
        low, high = self._ends(typical)
        if noisy.logarithms:
            self.shift, ideal = 0.0, float(noisy.scale.min()) / _FINE
        else:
            # As fine as the noise at the largest value, if there are cells enough.
            self.shift, ideal = typical, typical / _FINE / high
        first, last = np.log(low + self.shift), np.log(high + self.shift)
        self.count = int(np.clip((last - first) / ideal, _FEWEST, max(most, _FEWEST)))
        places = np.linspace(first, last, self.count + 1)
        self.width = float(places[1] - places[0])
        self.middle: Floats = (places[1:] + places[:-1]) / 2
        self._edges: Floats = np.exp(places) - self.shift

    def _ends(self, typical: float) -> tuple[float, float]:
        noisy = self._noisy
        reach = _BEYOND * noisy.scale
        least, most = float((noisy.values - reach).min()), float((noisy.values + reach).max())
        if noisy.logarithms:
            least, most = float(np.exp(least)), float(np.exp(min(most, 700.0)))
        low = min(max(noisy.low, least, 0.0), noisy.high)
        high = max(min(noisy.high, most), noisy.low)
        # Cells of no width would have no density.
        return low, max(high, low * (1 + 1e-9), low + 1e-9 * typical)

    def likelihood(self) -> Floats:
        """How likely each cell makes each noisy value, up to a factor: ``(values, cells)``."""
        found, _, _ = self._integrals(slice(None), moments=False)
        return np.asarray(found / found.max(axis=1, keepdims=True))

    def moments(self, rows: slice, posterior: Floats) -> tuple[Floats, Floats]:
        """Means and variances in MW of some values, whose cells are as likely as `posterior`."""
        whole, first, second = self._integrals(rows, moments=True)
        some = np.maximum(whole, 1e-300)
        inside, square = first / some, second / some
        mean = (posterior * inside).sum(axis=1)
        # About the mean, so that little is lost of large values.
        away = (inside - mean[:, None]) ** 2 + np.maximum(square - inside**2, 0.0)
        return mean + self._origin(rows), (posterior * away).sum(axis=1)

    def _origin(self, rows: slice) -> Floats:
        noisy = self._noisy
        if noisy.logarithms:
            return np.zeros(len(noisy.values[rows]))
        return np.clip(noisy.values[rows], self._edges[0], self._edges[-1])

    def _integrals(self, rows: slice, *, moments: bool) -> tuple[Floats, Floats, Floats]:
        """Of the likelihood over each cell, and of it times a value from `_origin` and its square.

        Beyond the cells the noisy value is as likely as at their end, but for a factor.
        """
        noisy = self._noisy
        scale = noisy.scale[rows, None]
        if noisy.logarithms:
            places = np.log(self._edges)
            centre = np.clip(noisy.values[rows, None], places[0], places[-1])
            whole = _mass(places - centre, scale)
            # Cells of logarithms are narrow beside the noise: a cell is its middle.
            middle = np.exp(self.middle)
            return (whole, whole * middle, whole * middle**2) if moments else (whole, whole, whole)
        away = self._edges - self._origin(rows)[:, None]
        # Densities are even in MW inside a cell: the share of the cell, not its width, counts.
        wide = np.diff(self._edges)
        whole = _mass(away, scale) / wide
        if not moments:
            return whole, whole, whole
        fall = np.exp(-np.abs(away) / scale)
        side, size = np.where(away < 0, 1.0, -1.0), np.abs(away)
        first = scale * (side * away - scale) * fall
        tail = scale * (size**2 + 2 * scale * size + 2 * scale**2) * fall
        second = _between(tail, away, 4 * scale**3)
        return whole, np.diff(first, axis=1) / wide, second / wide


def _mass(away: Floats, scale: Floats) -> Floats:
    """The integral of ``exp(-|x|/scale)`` from each place to the next."""
    return _between(scale * np.exp(-np.abs(away) / scale), away, 2 * scale)


def _between(tails: Floats, away: Floats, whole: Floats) -> Floats:
    """Integrals from each place to the next, of which the tails beyond every place are known."""
    one, other = tails[:, :-1], tails[:, 1:]
    across = (away[:, :-1] < 0) & (away[:, 1:] >= 0)
    return np.where(across, whole - one - other, np.abs(other - one))
