"""The distribution of residuals over their spread: Student's t, corrected in bins."""

from __future__ import annotations

import numpy as np
from scipy.special import stdtr, stdtrit

from gridveil.wind.synthetic.public_farm import Vector

EDGES = np.array([-6.0, -3.0, -2.0, -1.2, -0.6, 0.0, 0.6, 1.2, 2.0, 3.0, 6.0])
"""The edges of the bins."""

_DEGREES = 5.0
_UNIT = float(np.sqrt(_DEGREES / (_DEGREES - 2)))  # its standard deviation
_POINTS = 4000
RANKS: Vector = (np.arange(_POINTS) + 0.5) / _POINTS


def usual_distribution(values: Vector) -> Vector:
    """Compute the distribution function for turbines in general, of standard deviation 1."""
    return np.asarray(stdtr(_DEGREES, values * _UNIT))


def usual_quantiles(ranks: Vector) -> Vector:
    """Compute the quantiles for turbines in general."""
    return np.asarray(stdtrit(_DEGREES, ranks) / _UNIT)


_SIZES = np.abs(usual_quantiles((np.arange(20_000) + 0.5) / 20_000))
MEAN_SIZE = float(np.minimum(_SIZES, 3.0).mean())
"""The usual mean size of a residual over its spread, clipped at 3."""
MEDIAN_SIZE = float(np.median(_SIZES))
"""The usual median size of a residual over its spread."""

_bins = np.diff(usual_distribution(EDGES))
USUAL: Vector = _bins / _bins.sum()
"""The usual share of each bin."""


def estimate_bins(excess: Vector, variance: float, rows: float) -> Vector:
    """Estimate the share of each bin from noisy counts minus the usual ones."""
    prior = (0.3 * USUAL) ** 2
    moved = excess / rows * prior / (prior + variance / rows**2)
    bins = np.maximum(USUAL + moved, 0.1 * USUAL)
    return np.asarray(bins / bins.sum())


def quantiles(bins: Vector) -> Vector:
    """Compute the quantile at each of `RANKS`; inside a bin the usual distribution is used."""
    below = np.concatenate([[0.0], np.cumsum(bins)])
    below[-1] = 1.0
    at = np.clip(np.searchsorted(below, RANKS, side="right") - 1, 0, len(bins) - 1)
    inside = (RANKS - below[at]) / bins[at]
    low, high = usual_distribution(EDGES[at]), usual_distribution(EDGES[at + 1])
    return usual_quantiles(low + inside * (high - low))
