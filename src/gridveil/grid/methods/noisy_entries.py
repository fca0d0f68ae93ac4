"""Noisy entries as a mechanism returns them, and estimates of every entry from them.

Relative steps are steps of logarithms: such entries get their noise on the logarithm.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gridveil.grid.model.covariates import Covariates
from gridveil.grid.model.parameters import Parameter
from gridveil.grid.model.public_network import PublicNetwork
from gridveil.grid.model.release_problem import ReleaseProblem
from gridveil.grid.restoration.covariate_prior import learn
from gridveil.grid.restoration.prior import Estimate, Noisy

if TYPE_CHECKING:
    from gridveil.grid.methods.base import Prepared

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]

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


def estimates(
    problem: ReleaseProblem, prepared: Prepared, noisy: NoisyEntries, catalogue: Sequence[float]
) -> Estimate:
    """Estimate mean and variance of every entry, one group of similar entries at a time.

    Parameters
    ----------
    problem, prepared
        What is released, in the units of `prepared`.
    noisy
        The noisy entries, in the same units.
    catalogue
        For capacities: the only possible ratings in MW; empty if any rating is possible.
    """
    public = problem.public
    mean, variance, doubt = (np.empty(public.entries) for _ in range(3))
    for kind, places in _alike(problem):
        if not kind.alike:
            mean[places] = np.clip(noisy.values, public.low, public.high)[places]
            variance[places] = doubt[places] = 2 * noisy.scale[places] ** 2
            continue
        known = prepared.covariates[kind.name].of(places - public.parts[kind.name].start)
        ratings = catalogue if kind.name == "capacity" else ()
        found = _estimate(public, places, noisy, known, [one / prepared.unit for one in ratings])
        mean[places], variance[places], doubt[places] = found.mean, found.variance, found.doubt
    return Estimate(mean, variance, doubt)


def _estimate(
    public: PublicNetwork,
    places: Ints,
    noisy: NoisyEntries,
    known: Covariates,
    catalogue: Sequence[float],
) -> Estimate:
    """Estimate mean and variance of the entries of one column and one sign."""
    first = places[0]
    sign = float(public.signs[first])
    low, high = sorted((sign * float(public.low[first]), sign * float(public.high[first])))
    logs = bool(noisy.logarithms[first])
    sizes = Noisy(sign * noisy.values[places], noisy.scale[places], low, high, logs)
    found = learn(sizes, known, catalogue).estimate
    return Estimate(sign * found.mean, found.variance, found.doubt)


def _alike(problem: ReleaseProblem) -> list[tuple[Parameter, Ints]]:
    """Group the entries by column and sign: those of a group may have something in common."""
    groups: list[tuple[Parameter, Any]] = []
    start = 0
    for kind in problem.kinds:
        for column in kind.columns:
            count = int(problem.public.support[column].sum())
            places = np.arange(start, start + count)
            signs = problem.public.signs[places]
            groups += [(kind, places[signs == sign]) for sign in (-1.0, 1.0)]
            start += count
    return [(kind, places) for kind, places in groups if len(places)]
