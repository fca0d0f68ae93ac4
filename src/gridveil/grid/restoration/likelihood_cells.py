"""The range of possible values in cells, and how likely noisy values make each of them.

Priors over cells are learned in `covariate_prior`; those of `learned_prior` are over points.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# Cells per scale of the noise; they reach some scales beyond the noisy values.
_CELLS_PER_SCALE, _BEYOND, _FEWEST_CELLS = 5.0, 4.0, 40


@dataclass(frozen=True, eq=False)
class Noisy:
    """Positive values with Laplace noise, the noise's scales, and the public range.

    Parameters
    ----------
    values
        In MW, or logarithms of MW if the noise was added to these.
    scale
        The scale of each value's noise, in the same unit.
    low, high
        The public range of the values, in MW.
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
    """The range of possible values in cells, and how likely some noisy values make each cell.

    Cells have equal widths on the scale ``ln(f + c)``. If noise is on the logarithm, ``c`` is 0. If
    it is in MW, ``c`` is its scale: cells of values below the noise are equally wide in MW, and
    those of values far above it in percent. Inside a cell all values are equally likely.
    Likelihoods and moments are integrals over cells in closed form, not sums over points, so a
    large value whose cell is wider than its noise is still known to the precision of the noise.

    Parameters
    ----------
    noisy
        The values.
    most
        The largest number of cells.
    """

    def __init__(self, noisy: Noisy, most: int) -> None:
        self._noisy = noisy
        typical = float(np.median(noisy.scale))
        low, high = self._ends(typical)
        if noisy.logarithms:
            self.shift, ideal = 0.0, float(noisy.scale.min()) / _CELLS_PER_SCALE
        else:
            # As fine as the noise at the largest value, if the number of cells allows it.
            self.shift, ideal = typical, typical / _CELLS_PER_SCALE / high
        first, last = np.log(low + self.shift), np.log(high + self.shift)
        self.count = int(np.clip((last - first) / ideal, _FEWEST_CELLS, max(most, _FEWEST_CELLS)))
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
        # Cells of zero width would have no density.
        return low, max(high, low * (1 + 1e-9), low + 1e-9 * typical)

    def likelihood(self) -> Floats:
        """Compute the likelihood of each noisy value in each cell, ``(values, cells)``.

        Each row is scaled to a largest likelihood of 1.
        """
        found, _, _ = self._integrals(moments=False)
        return np.asarray(found / found.max(axis=1, keepdims=True))

    def moments(self, posterior: Floats) -> tuple[Floats, Floats]:
        """Compute means and variances (MW) of some values from their cells' posterior."""
        whole, first, second = self._integrals(moments=True)
        some = np.maximum(whole, 1e-300)
        inside, square = first / some, second / some
        mean = (posterior * inside).sum(axis=1)
        # Moments about the mean keep their precision for large values.
        away = (inside - mean[:, None]) ** 2 + np.maximum(square - inside**2, 0.0)
        return mean + self._origin(), (posterior * away).sum(axis=1)

    def _origin(self) -> Floats:
        noisy = self._noisy
        if noisy.logarithms:
            return np.zeros(len(noisy.values))
        return np.clip(noisy.values, self._edges[0], self._edges[-1])

    def _integrals(self, *, moments: bool) -> tuple[Floats, Floats, Floats]:
        """Integrate the likelihood over each cell, and its products with the value and its square.

        Values are measured from `_origin`. A noisy value beyond the cells is moved to their end,
        which changes the likelihoods by one common factor.
        """
        noisy = self._noisy
        scale = noisy.scale[:, None]
        if noisy.logarithms:
            places = np.log(self._edges)
            centre = np.clip(noisy.values[:, None], places[0], places[-1])
            whole = _mass(places - centre, scale)
            # Cells of logarithms are narrow compared to the noise: use their middles.
            middle = np.exp(self.middle)
            return (whole, whole * middle, whole * middle**2) if moments else (whole, whole, whole)
        away = self._edges - self._origin()[:, None]
        # The density inside a cell is constant in MW: divide by the width to get its mean.
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
    """Integrate ``exp(-|x|/scale)`` from each place to the next."""
    return _between(scale * np.exp(-np.abs(away) / scale), away, 2 * scale)


def _between(tails: Floats, away: Floats, whole: Floats) -> Floats:
    """Compute integrals from each place to the next, given the tails beyond every place."""
    one, other = tails[:, :-1], tails[:, 1:]
    across = (away[:, :-1] < 0) & (away[:, 1:] >= 0)
    return np.where(across, whole - one - other, np.abs(other - one))
