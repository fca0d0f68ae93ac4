"""The noisy entries that a mechanism returns, and relative steps as steps of logarithms."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from gridveil.grid.model.problem import ReleaseProblem

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_LARGEST_LOG = 700.0


@dataclass(frozen=True, eq=False)
class NoisyEntries:
    """Noisy entries with the scale of each one's noise, and the noisy sum if one was asked for.

    Entries with relative steps are stored as logarithms, with the scale of the logarithm's noise.
    """

    values: Floats
    scale: Floats
    total: float | None = None
    total_scale: float = 0.0
    logarithms: Bools = field(default_factory=lambda: np.zeros(0, dtype=bool))

    def __post_init__(self) -> None:
        if len(self.logarithms) != len(self.values):
            object.__setattr__(self, "logarithms", np.zeros(len(self.values), dtype=bool))

    @property
    def amounts(self) -> Floats:
        """The noisy entries, without logarithms."""
        # Noise this wide would be refused; the bound is a safeguard against infinite values.
        large = np.minimum(self.values, _LARGEST_LOG)
        return np.where(self.logarithms, np.exp(np.where(self.logarithms, large, 0.0)), self.values)

    @property
    def deviations(self) -> Floats:
        """The standard deviation of each entry's noise; approximate if it is on the logarithm."""
        return np.asarray(np.sqrt(2) * self.scale * np.where(self.logarithms, self.amounts, 1.0))

    def counted(self, units: Floats, total: float) -> NoisyEntries:
        """Convert to other units: `units` of the entries, `total` of the sum."""
        logs = self.logarithms
        return NoisyEntries(
            np.where(logs, self.values - np.log(units), self.values / units),
            np.where(logs, self.scale, self.scale / units),
            None if self.total is None else self.total / total,
            self.total_scale / total,
            logs,
        )


def log_step(share: Fraction) -> Fraction:
    """Bound how far a logarithm moves if its value moves by a share: ``ln(1 + share)``.

    The float is off by a few units in its last place (2^-53 each); a factor of 1 + 2^-40 covers it.
    """
    return Fraction(math.log1p(share)) * (1 + Fraction(1, 2**40))


def moves_of(problem: ReleaseProblem, name: str, alpha: Fraction) -> list[Fraction]:
    """Bound how far each entry of a parameter moves, or its logarithm if steps are relative."""
    steps = problem.step_of_each(name, alpha)
    if name not in problem.relative:
        return list(steps)
    logs = {step: log_step(step) for step in set(steps)}
    return [logs[step] for step in steps]
