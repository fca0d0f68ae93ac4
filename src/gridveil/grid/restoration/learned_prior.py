"""What noisy values alone say of the values behind them, by a prior that is learned from them.

Entries of one kind resemble each other: a network has a few ratings that many lines share. This
shows in the noisy values too, since the distribution of their noise is known. So a prior is learned
from them (the distribution under which they are most likely, by expectation maximisation on a grid;
Kiefer and Wolfowitz 1956), and every entry is replaced by its posterior mean. This reads only noisy
values and public numbers, so it costs no epsilon.

If the entries share a few values, the error falls to a half or a third. If they have nothing in
common, the prior has a point near each of them, and the estimates stay near the noisy values.

A prior is over points here (`estimate`); those of `covariate_prior` are over `likelihood_cells`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# NumPy's OpenBLAS starts threads if a matrix of 9,216 entries is multiplied by a vector, or if a
# product of two matrices takes 2^18 multiplications: a piece of 64 columns times itself.
_ENTRIES = 2**12
# Grid points per scale of the noise, and the most grid points.
_FINE, _MOST_POINTS = 8, 100_000
# Entries that are further apart than this many scales say nothing about each other.
_APART = 30.0
_LEAST_POINTS = 400
_ROUNDS = 400
_ENOUGH = 1e-7
# The weight of a flat prior, as a number of entries: it keeps the prior of few entries from
# collapsing.
_FLAT = 1.0


@dataclass(frozen=True, eq=False)
class Estimate:
    """Mean and variance of each entry, given the noisy values.

    ``variance`` treats the prior as known. ``doubt`` adds the uncertainty of the prior, for error
    bars.
    """

    mean: Floats
    variance: Floats
    doubt: Floats


def doubtful(variance: Floats, noise: Floats) -> Floats:
    """Widen the variances of entries whose prior was learned from the same entries.

    The width of a prior is learned from the squares of ``n`` noisy values. The square of Laplace
    noise of variance ``s`` has the variance ``5 s^2``, so the prior's variance is known to
    ``s sqrt(5/n)`` at best. This much is added to it: an estimate of variance ``v`` has a prior of
    variance about ``w = v s/(s - v)``, and gets the variance that a prior of ``w + s sqrt(5/n)``
    would give.

    Parameters
    ----------
    variance
        The variance of each entry, with the prior treated as known.
    noise
        The variance of each entry's noise.
    """
    spare = np.maximum(noise - variance, 1e-9 * noise)
    wide = variance * noise / spare + noise * np.sqrt(5 / len(noise))
    return np.asarray(np.maximum(variance, wide * noise / (wide + noise)))


def estimate(
    noisy: Floats, scale: float, low: float, high: float, catalogue: Sequence[float] = ()
) -> Estimate:
    """Estimate mean and variance of every entry under a prior learned from all of them.

    Parameters
    ----------
    noisy
        Values with Laplace noise.
    scale
        The scale of the noise.
    low, high
        The public range of the entries.
    catalogue
        The only values that entries can have, if these are public. How common each one is, is
        learned.
    """
    # Clipping loses nothing: a noisy value outside the range has the same likelihoods as one at
    # its end, up to a common factor.
    inside = np.clip(noisy, low, high)
    if not len(catalogue) and inside.min() == inside.max():
        noise = np.full(len(noisy), 2 * scale**2)
        return Estimate(inside, noise, noise)
    kernel: _Dense | _Even
    if len(catalogue):
        kernel = _Dense(noisy, scale, np.unique(np.asarray(catalogue, dtype=np.float64)))
    else:
        kernel = _Even(inside, scale)
    prior = learned(kernel, len(noisy), len(kernel.points))
    weight = kernel.times(prior)
    # Moments about the middle keep their precision for large values.
    first = kernel.times(prior * kernel.points) / weight
    middle = float(kernel.points.mean())
    second = kernel.times(prior * (kernel.points - middle) ** 2) / weight
    variance = second - (first - middle) ** 2
    noise = np.full(len(noisy), 2 * scale**2)
    variance = np.maximum(variance, noise / 100)
    if len(catalogue):
        return Estimate(first, variance, variance)
    return Estimate(np.clip(first, low, high), variance, doubtful(variance, noise))


class Blocks:
    """A matrix that is multiplied with many vectors, one at a time, or with itself.

    It is cut into pieces so small that BLAS multiplies each of them without starting threads.
    Thousands of products that take microseconds each gain nothing from threads, and on a busy
    machine threads that wait for each other take ten times as long. Products of pieces are also the
    same to the last bit for any number of BLAS threads.
    """

    def __init__(self, matrix: Floats) -> None:
        self._shape = height, width = matrix.shape
        rows = min(max(_ENTRIES // max(width, 1), 1), max(height, 1))
        self._height = -(-height // rows) * rows
        if self._height > height:
            matrix = np.concatenate([matrix, np.zeros((self._height - height, width))])
        self._stack = np.ascontiguousarray(matrix).reshape(-1, rows, width)

    def times(self, vector: Floats) -> Floats:
        """``matrix @ vector``."""
        return np.asarray((self._stack @ vector).ravel()[: self._shape[0]])

    def under(self, vector: Floats) -> Floats:
        """``vector @ matrix``."""
        pieces = self._pieces(vector)[:, None, :] @ self._stack
        return np.asarray(pieces.sum(axis=0)[0])

    def weighed(self, weight: Floats) -> Floats:
        """``matrix.T @ diag(weight) @ matrix``."""
        scaled = self._stack * self._pieces(weight)[:, :, None]
        return np.asarray((scaled.transpose(0, 2, 1) @ self._stack).sum(axis=0))

    def _pieces(self, vector: Floats) -> Floats:
        longer = np.zeros(self._height)
        longer[: len(vector)] = vector
        return longer.reshape(len(self._stack), -1)


class _Dense(Blocks):
    """The likelihood of every entry at every point as a dense matrix, for few points."""

    def __init__(self, noisy: Floats, scale: float, points: Floats) -> None:
        self.points = points
        distance = np.abs(noisy[:, None] - points) / scale
        super().__init__(np.exp(distance.min(axis=1, keepdims=True) - distance))


class _Even:
    """The same on evenly spaced points, in time proportional to entries plus points.

    ``exp(-|x - y|)`` falls by the same factor from point to point on either side of an entry, so
    sums over points are decaying running sums, from the left and from the right. Between entries
    that are far apart there are no points, so that the grid stays finer than the noise.
    """

    def __init__(self, noisy: Floats, scale: float) -> None:
        order = np.argsort(noisy)
        ordered = noisy[order]
        # Places on the grid are the values, with every wide gap between neighbours shortened.
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

    def times(self, weights: Floats) -> Floats:
        """Sums over the points, weighed by their likelihood: one for each entry."""
        left, right = self._run(weights), self._run(weights[::-1])[::-1]
        return np.asarray(left[self._left] * self._to_left + right[self._left + 1] * self._to_right)

    def under(self, weights: Floats) -> Floats:
        """Sums over the entries: one for each point."""
        size = len(self.points)
        left = np.bincount(self._left, weights * self._to_left, size).astype(np.float64)
        right = np.bincount(self._left + 1, weights * self._to_right, size).astype(np.float64)
        return self._run(left[::-1])[::-1] + self._run(right)

    def _run(self, values: Floats) -> Floats:
        from scipy.signal import lfilter  # takes as long to load as everything else

        return np.asarray(lfilter([1.0], [1.0, -self._decay], values))


def learned(
    likely: Blocks | _Even, entries: int, count: int, rounds: int = _ROUNDS, enough: float = _ENOUGH
) -> Floats:
    """Find the prior over ``count`` places that makes entries most likely, mixed with a flat one.

    Parameters
    ----------
    likely
        How likely each place makes each noisy entry.
    rounds, enough
        The most rounds; and the gain of an entry's log-likelihood in a round that ends them.
    """
    prior = np.full(count, 1 / count)
    before = -np.inf
    for _ in range(rounds):
        fit = likely.times(prior)
        gain = float(np.log(fit).sum())
        if gain - before < enough * entries:
            break
        before = gain
        prior = (prior * likely.under(1 / fit) + _FLAT / count) / (entries + _FLAT)
    return prior
