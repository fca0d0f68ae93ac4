"""Queries about whole blocks of records, in integer arithmetic, and how far their answers move.

**Sums.** Each block has a vector of `q` numbers, computed from its own records, public numbers
and answers that are already noisy. Vectors are clipped to an L1 norm `R`, rounded to whole steps of
a public grid `g`, and summed in public cells: sums of whole numbers below 2^53 are exact, in any
order. If all powers of one block are replaced, every other block's vector stays the
same to the last bit, and one cell's sum moves by the difference of two clipped vectors:

    ||a - b||_1  <=  ||a||_1 + ||b||_1  <=  2 (R (1 + 2^-30) + q g / 2).

The factor covers the rounding of the clipping itself, `q g / 2` that to the grid. If `q = 1` and
the number is never negative, `|a - b| <= R (1 + 2^-30) + g`. See docs/maths/wind-blocks.md.

**Choices.** Candidates have scores that are sums over records of a public weight times a term
between 0 and 1. The weights of a block add up to at most 1, so every score moves by at most 1.
Weights and terms are whole numbers of fine steps, so these sums are exact too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from gridveil.privacy.account import Account
from gridveil.privacy.mechanisms import Blocks, laplace, noisy_max
from gridveil.privacy.sealed import Range, Sealed
from gridveil.privacy.sensitivity import (
    Sensitivity,
    calibrate_laplace,
    power_of_two_below,
)
from gridveil.wind.synthetic.public_farm import Chunk, Farm, Vector, Whole

Power = Sealed[tuple[Blocks, ...]]

WEIGHT = 2**20
"""The steps in a weight of 1; the weights of a block add up to at most this many."""
TERM = 2**8
"""The steps in a term of 1."""

_ROUNDING = Fraction(1, 2**30)


@dataclass(frozen=True, eq=False)
class BlockSums:
    """Sums over blocks of clipped vectors, one for each public cell.

    Parameters
    ----------
    name
        What is asked, for the statement.
    radius
        The L1 norm that a block's vector is clipped to.
    width, cells
        The number of numbers in a block's vector, and the number of cells.
    vectors
        Computes the vectors of a chunk's blocks from its opened power: ``width`` columns.
    cell
        Returns the public cell of each of a chunk's blocks; by default there is one cell.
    long
        Whether the vectors are those of long blocks. A block is inside one long block, so a
        neighbour replaces at most one of them.
    count
        True if each vector is one number that is never negative: then it moves by the radius.
    """

    name: str
    radius: float
    width: int
    vectors: Callable[[Chunk, Vector], Vector]
    cells: int = 1
    cell: Callable[[Chunk], Whole] | None = None
    long: bool = False
    count: bool = False

    @property
    def size(self) -> int:
        """The number of numbers in the answer."""
        return self.cells * self.width

    @property
    def grid(self) -> Fraction:
        """The grid that vectors are rounded to."""
        return power_of_two_below(Fraction(self.radius) / (1024 * self.size))

    @property
    def sensitivity(self) -> Sensitivity:
        """How far the sums move if one block is replaced."""
        R = Fraction(self.radius) * (1 + _ROUNDING)
        if self.count:
            why = "one block's number is replaced, and both are between 0 and the radius"
            return Sensitivity(R + self.grid, why, moving=self.size)
        why = "one block's vector is replaced, and both are clipped to the radius in L1"
        return Sensitivity(2 * R + self.width * self.grid, why, moving=self.size)

    def range(self, farm: Farm) -> Range:
        """Return a range that contains every possible sum."""
        most = float(Fraction(self.radius) * (farm.blocks + 1) * (1 + _ROUNDING)) + 1.0
        return Range(0.0 if self.count else -most, most)

    def scale(self, epsilon: Fraction, farm: Farm) -> float:
        """Compute the scale of the noise at this epsilon; opens nothing."""
        range = self.range(farm)
        return calibrate_laplace(self.sensitivity, epsilon, range, self.grid).scale_in_units

    def steps(self, chunk: Chunk, power: Vector) -> Vector:
        """Compute the clipped vectors of a chunk's blocks, in whole steps of the grid."""
        vectors = self.vectors(chunk, power)
        norms = np.abs(vectors).sum(axis=1)
        factor = np.where(norms > self.radius, self.radius / np.maximum(norms, 1e-300), 1.0)
        return np.rint(vectors * factor[:, None] / float(self.grid))

    def compute(self, farm: Farm, parts: Sequence[Blocks]) -> Vector:
        """Compute the exact sums of all cells, one after another."""
        sums = np.zeros((self.cells, self.width))
        for chunk, power in opened(farm, parts):
            steps = self.steps(chunk, power)
            if self.cell is None:
                sums[0] += steps.sum(axis=0)
            else:
                np.add.at(sums, self.cell(chunk), steps)
        return sums.ravel() * float(self.grid)

    def ask(
        self, account: Account, power: Power, farm: Farm, epsilon: Fraction
    ) -> tuple[Vector, float]:
        """Ask the query; return the noisy sums, one row per cell, and the scale of their noise."""
        noisy = laplace(
            account,
            power,
            query=lambda parts: self.compute(farm, parts),
            name=self.name,
            sensitivity=self.sensitivity,
            epsilon=epsilon,
            size=self.size,
            range=self.range(farm),
            unit="records",
            grid=self.grid,
        )
        values = noisy.value.reshape(self.cells, self.width)
        return values, noisy.record.calibration.scale_in_units


@dataclass(frozen=True, eq=False)
class Choice:
    """A choice among public candidates, by noisy max.

    Parameters
    ----------
    name
        What is asked, for the statement.
    prior
        The public logarithm of each candidate's prior weight.
    scores
        Computes the candidates' scores in whole steps of ``1 / (WEIGHT TERM)``; each moves by at
        most 1.
    """

    name: str
    prior: Vector
    scores: Callable[[Sequence[Blocks]], Whole]

    @property
    def sensitivity(self) -> Sensitivity:
        """How far a score moves; the tolerance covers the rounding of its sum with its prior."""
        why = "the public weights of a block add up to at most 1"
        return Sensitivity(Fraction(1), why, tolerance=Fraction(1, 2**20))

    def ask(self, account: Account, power: Power, farm: Farm, epsilon: Fraction) -> int:
        """Ask the query; return the place of the chosen candidate."""
        grid = self.sensitivity.default_grid()
        # The same constant for all neighbours, in whole steps of the grid.
        prior = np.rint(self.prior * 2 / float(epsilon) / float(grid)) * float(grid)
        reach = float(np.abs(prior).max())
        chosen = noisy_max(
            account,
            power,
            query=lambda parts: self.scores(parts) / (WEIGHT * TERM) + prior,
            name=self.name,
            sensitivity=self.sensitivity,
            epsilon=epsilon,
            size=len(prior),
            range=Range(-farm.blocks - reach - 1.0, reach + 1.0),
            unit="blocks",
            monotone=False,
            grid=grid,
        )
        return chosen.value


def opened(farm: Farm, parts: Sequence[Blocks]) -> Iterator[tuple[Chunk, Vector]]:
    """Yield every chunk with its opened power."""
    for turbine, blocks in enumerate(parts):
        source, held = blocks(), np.empty(0)
        for chunk in farm.chunks(turbine):
            while len(held) < len(chunk):
                held = np.concatenate([held, next(source)])
            yield chunk, held[: len(chunk)]
            held = held[len(chunk) :]


def weigh(farm: Farm, weight: Callable[[Chunk], Vector], share: float) -> list[NDArray[np.int32]]:
    """Compute public whole weights of all records; those of a block add up to at most `WEIGHT`.

    The weights of a block are divided by their sum, or by the quantile ``share`` of all blocks'
    sums if that is larger, so that blocks with little information count less.
    """
    sums = [
        np.bincount(chunk.block, weight(chunk), minlength=chunk.blocks)
        for chunk in farm.every_chunk()
    ]
    cap = max(float(np.quantile(np.concatenate(sums), share)), 1e-9)
    return [
        (weight(chunk) * (WEIGHT * (1 - 1e-9) / np.maximum(total, cap))[chunk.block]).astype(
            np.int32
        )
        for chunk, total in zip(farm.every_chunk(), sums, strict=True)
    ]


def add_by_block(chunk: Chunk, values: Vector, place: Whole | None, width: int) -> Vector:
    """Sum numbers of rows by block and by their place in the block's vector."""
    at = chunk.block if place is None else chunk.block * width + place
    sums = np.bincount(at, values, minlength=chunk.blocks * width)
    return np.asarray(sums.reshape(chunk.blocks, width), dtype=np.float64)


def add_by_long_block(chunk: Chunk, values: Vector) -> Vector:
    """Sum numbers of rows by long block."""
    return np.asarray(
        np.bincount(chunk.long, values, minlength=chunk.long_blocks), dtype=np.float64
    )


def masked(values: Vector, where: NDArray[np.bool_]) -> Vector:
    """Replace values by 0 where the condition is false."""
    return np.where(where, values, 0.0)
