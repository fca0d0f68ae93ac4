"""A matrix cut into pieces so small that BLAS multiplies each of them without starting threads.

Thousands of products that take microseconds each gain nothing from threads, and on a busy machine
threads that wait for each other take ten times as long. Products of pieces are also the same to the
last bit for any number of BLAS threads.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# NumPy's OpenBLAS starts threads if a matrix of 9,216 entries is multiplied by a vector, or if a
# product of two matrices takes 2^18 multiplications: a piece of 64 columns times itself.
_ENTRIES = 2**12


class Blocks:
    """A matrix that is multiplied with many vectors, one at a time, or with itself."""

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
