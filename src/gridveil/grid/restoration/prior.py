"""Better estimates than the noisy values themselves, from the noisy values alone.

Entries of one kind resemble each other: a network has a few ratings that many lines share. What
they have in common shows in the noisy values too, whose noise is known. So a prior is learned
from them (the distribution under which they are most likely, by expectation maximisation on a
grid; Kiefer and Wolfowitz 1956), and every entry is replaced by its mean under it. It reads
nothing but noisy values and public numbers: it costs no epsilon.

Where entries have few values the error falls to a half or a third. Where they have nothing in
common the prior has a point near each of them, and the estimates stay near the noisy values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gridveil.grid.opf.blocks import Blocks

Floats = NDArray[np.float64]

# Points of the grid to each width of the noise, and at most.
_FINE, _MOST_POINTS = 8, 100_000
# Entries with nothing between them for so many widths say nothing about each other.
_APART = 30.0
_LEAST_POINTS = 400
_ROUNDS = 400
_ENOUGH = 1e-7
# Weight of a flat prior beside the entries, in entries: it keeps a few of them from collapsing.
_FLAT = 1.0


@dataclass(frozen=True, eq=False)
class Estimate:
    """What is known of some entries after the noise: a mean and a variance each.

    The variance takes the prior for known. ``doubt`` is the variance about the mean with what is
    not known of the prior added, for error bars.
    """

    mean: Floats
    variance: Floats
    doubt: Floats


def doubtful(variance: Floats, noise: Floats) -> Floats:
    """Variances of entries whose prior was learned from these very entries.

    How wide a prior is shows in the squares of ``n`` noisy values. The square of Laplace noise of
    variance ``s`` has the variance ``5 s^2``, so the prior's own variance is known to
    ``s sqrt(5/n)`` at best. So much is added to it: an estimate of variance ``v`` has a prior of
    about ``w = v s/(s - v)``, and gets the variance that one of ``w + s sqrt(5/n)`` would leave.

    Parameters
    ----------
    variance
        Of entries that have something in common, with the prior taken for known.
    noise
        The variance of each one's noise.
    """
    spare = np.maximum(noise - variance, 1e-9 * noise)
    wide = variance * noise / spare + noise * np.sqrt(5 / len(noise))
    return np.asarray(np.maximum(variance, wide * noise / (wide + noise)))


def estimate(
    noisy: Floats, scale: float, low: float, high: float, catalogue: Sequence[float] = ()
) -> Estimate:
    """Mean and variance of every entry under the prior that the entries have in common.

    Parameters
    ----------
    noisy
        Values with Laplace noise.
    scale
        Of the noise.
    low, high
        The public ends of the entries.
    catalogue
        The only values that entries have, where those are public. How common each is, is learned.
    """
    # Below the lowest point all points are as likely as at it, but for a factor: clipping is free.
    inside = np.clip(noisy, low, high)
    if not len(catalogue) and inside.min() == inside.max():
        noise = np.full(len(noisy), 2 * scale**2)
        return Estimate(inside, noise, noise)
    kernel: _Dense | _Even
    if len(catalogue):
        kernel = _Dense(noisy, scale, np.unique(np.asarray(catalogue, dtype=np.float64)))
    else:
        kernel = _Even(inside, scale)
    prior = _learn(kernel, len(noisy))
    weight = kernel.gather(prior)
    # Moments about the middle, so that little is lost where values are large.
    first = kernel.gather(prior * kernel.points) / weight
    middle = float(kernel.points.mean())
    second = kernel.gather(prior * (kernel.points - middle) ** 2) / weight
    variance = second - (first - middle) ** 2
    noise = np.full(len(noisy), 2 * scale**2)
    variance = np.maximum(variance, noise / 100)
    if len(catalogue):
        return Estimate(first, variance, variance)
    return Estimate(np.clip(first, low, high), variance, doubtful(variance, noise))


class _Dense:
    """The likelihood of every point for every entry, as a matrix: for a few points."""

    def __init__(self, noisy: Floats, scale: float, points: Floats) -> None:
        self.points = points
        distance = np.abs(noisy[:, None] - points) / scale
        self._fit = Blocks(np.exp(distance.min(axis=1, keepdims=True) - distance))

    def gather(self, weights: Floats) -> Floats:
        """Sums over the points, weighed by their likelihood: one for each entry."""
        return self._fit.times(weights)

    def spread(self, weights: Floats) -> Floats:
        """Sums over the entries: one for each point."""
        return self._fit.under(weights)


class _Even:
    """The same on evenly spaced points, in a time that grows with entries plus points.

    ``exp(-|x - y|)`` falls by the same factor from point to point on either side of an entry, so
    sums over points are running sums that decay, from the left and from the right. Where entries
    are far apart there are no points between them: the grid stays finer than the noise.
    """

    def __init__(self, noisy: Floats, scale: float) -> None:
        order = np.argsort(noisy)
        ordered = noisy[order]
        # Places on the grid are the values, with every wide gap between two of them shortened.
        place = np.concatenate([[0.0], np.cumsum(np.minimum(np.diff(ordered), _APART * scale))])
        count = int(np.clip(_FINE * place[-1] / scale, _LEAST_POINTS, _MOST_POINTS))
        grid = np.linspace(0.0, place[-1], count)
        # A point is as far from the nearest value as it is on the grid.
        near = np.searchsorted((place[1:] + place[:-1]) / 2, grid)
        self.points = grid + (ordered - place)[near]
        step = float(place[-1]) / (count - 1)
        self._decay = np.exp(-step / scale)
        where = np.empty(len(noisy))
        where[order] = place
        # The point at or to the left of every entry; there is always one to the right.
        self._left = np.clip((where / step).astype(np.int64), 0, count - 2)
        into = np.clip((where - grid[self._left]) / scale, 0.0, step / scale)
        self._to_left, self._to_right = np.exp(-into), np.exp(into - step / scale)

    def gather(self, weights: Floats) -> Floats:
        """Sums over the points, weighed by their likelihood: one for each entry."""
        left, right = self._run(weights), self._run(weights[::-1])[::-1]
        return np.asarray(left[self._left] * self._to_left + right[self._left + 1] * self._to_right)

    def spread(self, weights: Floats) -> Floats:
        """Sums over the entries: one for each point."""
        size = len(self.points)
        left = np.bincount(self._left, weights * self._to_left, size).astype(np.float64)
        right = np.bincount(self._left + 1, weights * self._to_right, size).astype(np.float64)
        return self._run(left[::-1])[::-1] + self._run(right)

    def _run(self, values: Floats) -> Floats:
        from scipy.signal import lfilter  # loads as long as all the rest

        return np.asarray(lfilter([1.0], [1.0, -self._decay], values))


def _learn(kernel: _Dense | _Even, entries: int) -> Floats:
    """The prior under which the entries are most likely, with a flat one beside it."""
    count = len(kernel.points)
    prior = np.full(count, 1 / count)
    before = -np.inf
    for _ in range(_ROUNDS):
        likely = kernel.gather(prior)
        gain = float(np.log(likely).sum())
        if gain - before < _ENOUGH * entries:
            break
        before = gain
        counts = prior * kernel.spread(1 / likely)
        prior = (counts + _FLAT / count) / (entries + _FLAT)
    return prior
