"""Power curves on public knots: knots, posteriors, isotonic regression.

A curve is a table over `SPEEDS`. Between knots it is linear: a record's *hats* are its shares of
the two knots next to its wind speed.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from gridveil.wind.synthetic.public_farm import SPEEDS, Chunk, Farm, Vector, Whole

Flags = NDArray[np.bool_]


class Knots:
    """Hats at public knots, tabulated over `SPEEDS`."""

    def __init__(self, at: Vector) -> None:
        self.at = at
        clipped = np.clip(SPEEDS, at[0], at[-1])
        self.left = np.clip(np.searchsorted(at, clipped, side="right") - 1, 0, len(at) - 2)
        self.share = (clipped - at[self.left]) / (at[self.left + 1] - at[self.left])

    def __len__(self) -> int:
        return len(self.at)

    def fewer(self, count: int) -> Knots:
        """Return about ``count`` of the knots, including the first and the last."""
        places = np.round(np.linspace(0, len(self) - 1, count)).astype(int)
        return Knots(self.at[np.unique(places)])

    def table(self, values: Vector) -> Vector:
        """Tabulate the curve with these values at the knots over `SPEEDS`."""
        return np.asarray(values[self.left] * (1 - self.share) + values[self.left + 1] * self.share)

    def sums(self, chunk: Chunk, values: Vector) -> Vector:
        """Sum each block's values by knot, weighted by hats: an array of blocks x knots."""
        left, share = self.left[chunk.level], self.share[chunk.level]
        size = len(self)
        at = chunk.block * size + left
        shape = (chunk.blocks, size)
        sums = np.bincount(at, values * (1 - share), minlength=shape[0] * size)
        sums += np.bincount(at + 1, values * share, minlength=shape[0] * size)
        return np.asarray(sums.reshape(shape), dtype=np.float64)

    def matrix(
        self, chunk: Chunk, weight: Vector | None = None, group: int = 0, groups: int = 1
    ) -> sparse.csr_array:
        """Return the hats of a chunk's rows as a sparse matrix, in the columns of one group."""
        share = self.share[chunk.level]
        scale = np.ones(len(chunk)) if weight is None else weight
        column = self.left[chunk.level] + group * len(self)
        values = np.stack([(1 - share) * scale, share * scale], axis=1).ravel()
        columns = np.stack([column, column + 1], axis=1).ravel()
        ends = np.arange(0, 2 * len(chunk) + 1, 2)
        return sparse.csr_array((values, columns, ends), shape=(len(chunk), groups * len(self)))

    @cached_property
    def distances(self) -> Vector:
        """The distances between all knots, in m/s."""
        return np.asarray(np.abs(self.at[:, None] - self.at[None]))

    def smooth(self, spread: Vector, length: float) -> Vector:
        """Compute the covariance of curves that vary by ``spread`` over about ``length`` m/s."""
        shape = np.exp(-0.5 * (self.distances / length) ** 2) + 1e-3 * np.eye(len(self))
        return np.asarray(spread[:, None] * spread[None] * shape)


# The first knot and the distance of knots (m/s), and the least share of records between two.
_FIRST, _STEP, _LEAST = 2.5, 1.0, 2e-3


def choose_knots(farm: Farm) -> Knots:
    """Place knots every m/s, wider apart if too few records would be between two of them."""
    total = np.cumsum(farm.counts.sum(axis=0))
    highest = farm.quantile_of(SPEEDS, 0.9995)

    def share(low: float, high: float) -> float:
        places = np.minimum(np.searchsorted(SPEEDS, [low, high]), len(SPEEDS) - 1)
        return float((total[places[1]] - total[places[0]]) / total[-1])

    knots = [max(_FIRST, float(np.floor(SPEEDS[np.searchsorted(total, 1)])))]
    while knots[-1] < highest:
        width = _STEP
        while knots[-1] + width < highest and share(knots[-1], knots[-1] + width) < _LEAST:
            width += 0.25
        knots.append(knots[-1] + width)
    if len(knots) < 2:
        knots.append(knots[0] + 1)
    return Knots(np.array(knots))


def cells(place: Whole, count: int, weight: Vector) -> sparse.csr_array:
    """Make a sparse matrix with one entry per row: its weight, in the column of its place."""
    rows = len(place)
    return sparse.csr_array((weight, place, np.arange(rows + 1)), shape=(rows, count))


def posterior(
    gram: Vector, sums: Vector, variance: Vector, precision: Vector
) -> tuple[Vector, Vector]:
    """Compute mean and covariance of ``theta``, given noisy sums ``gram theta``."""
    weighted = gram.T / variance
    covariance = np.asarray(np.linalg.inv(weighted @ gram + precision), dtype=np.float64)
    return covariance @ (weighted @ sums), covariance


def isotonic(values: Vector, weights: Vector) -> Vector:
    """Find the nearest values that never fall, by pooling neighbours that do."""
    pools: list[list[float]] = []
    for value, weight in zip(values, weights, strict=True):
        pools.append([float(value), float(weight), 1.0])
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            v, w, n = pools.pop()
            last = pools[-1]
            last[0] = (last[0] * last[1] + v * w) / (last[1] + w)
            last[1] += w
            last[2] += n
    return np.repeat([pool[0] for pool in pools], [int(pool[2]) for pool in pools])
