"""The seeded noise source, for studies and tests only: repeatable, and so not private.

Whoever knows or guesses the seed can subtract the noise. A release made with it says
``"dp_valid": false`` in its statement, and `gridveil verify` fails it.
"""

from __future__ import annotations

import warnings

import numpy as np

from gridveil.errors import NotPrivateWarning
from gridveil.privacy.noise import Integers


class SeededNoise:
    """Noise of the same distribution as `SecureNoise`, from a seed. Carries no guarantee."""

    secure = False

    def __init__(self, seed: int) -> None:
        warnings.warn(
            "Seeded noise gives no privacy: use it for studies on public data only.",
            NotPrivateWarning,
            stacklevel=2,
        )
        self._seed = seed
        self._generator = np.random.default_rng(seed)

    @property
    def name(self) -> str:
        """What the statement calls it."""
        return f"seeded ({self._seed}): for studies, not private"

    def laplace(self, values: Integers, scale: float) -> Integers:
        """Add independent discrete Laplace noise: the difference of two geometric draws."""
        success = -np.expm1(-1.0 / scale)
        plus, minus = self._generator.geometric(success, (2, *values.shape))
        return np.asarray(values + plus - minus, dtype=np.int64)

    def noisy_max(self, scores: Integers, scale: float) -> int:
        """Index of the largest score after exponential noise of this scale."""
        return int(np.argmax(scores + self._generator.exponential(scale, scores.shape)))

    def __repr__(self) -> str:
        return f"SeededNoise({self._seed})"
