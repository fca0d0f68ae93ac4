"""What was asked, how far it moves, its noise, and what came of it: all of it public."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridveil.errors import show_exact
from gridveil.privacy.sealed import Range
from gridveil.privacy.sensitivity import Calibration, Sensitivity

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Record:
    """One answer of a mechanism: what was asked, how far it moves, and its noise."""

    query: str
    noise: str
    unit: str
    size: int
    sensitivity: Sensitivity
    calibration: Calibration
    range: Range

    @property
    def epsilon(self) -> Fraction:
        """The epsilon that was spent."""
        return self.calibration.epsilon

    def to_json(self) -> dict[str, Any]:
        """The record as the statement has it."""
        return {
            "query": self.query,
            "noise": self.noise,
            "scale": self.calibration.scale_in_units,
            "unit": self.unit,
            "size": self.size,
            "epsilon": str(self.epsilon),
            "epsilon_of_privacy_map": float(self.calibration.mapped),
            "sensitivity": {
                "value": float(self.sensitivity.value),
                "tolerance": float(self.sensitivity.tolerance),
                "moving": self.sensitivity.moving,
                "grid_steps": self.calibration.steps,
                "why": self.sensitivity.why,
                "proved": self.sensitivity.proved,
            },
            "grid": str(self.calibration.grid),
            "range": [self.range.low, self.range.high],
        }

    def __repr__(self) -> str:
        return (
            f"Record({self.query}: {self.noise}, scale {self.calibration.scale_in_units:.4g} "
            f"{self.unit}, epsilon {show_exact(self.epsilon)})"
        )


@dataclass(frozen=True, eq=False)
class Answer:
    """What a mechanism returned, noise and all: free to publish.

    Parameters
    ----------
    record
        How it came about.
    values
        The noisy numbers; for a choice, the place chosen.
    factors
        Public: the numbers asked for are these over the factors. None if they are as they are.
    """

    record: Record
    values: Vector
    factors: Vector | None = None

    @property
    def choice(self) -> bool:
        """Whether it is a place that was chosen, and no noisy number."""
        return self.record.noise.startswith("noisy max")
