"""The query that every grid release asks of sealed data, with its sensitivity, and its answer.

All private entries of all parameters are asked for in one vector: entry ``j`` times a
public coefficient ``c_j``. Neighbours differ in one entry of one parameter, by at most that
parameter's alpha. With ``c = 1/alpha`` for every parameter, the answers of neighbours are at most 1
apart in L1, whichever parameter differs: several parameters cost no more epsilon than one.

Values are read from decimals and converted to MW, so the entries of exact neighbours may differ by
a few roundings more than alpha: the tolerance of a coordinate has room for `_READING` of them.

**A sum** of one parameter's entries (the total load; for costs, the cost of all units at full
output) is one more coordinate of the same vector, with public weights ``0 <= w_j <= 1``. With a
share ``s`` an entry has the coefficient ``(1 - s w_j)/alpha`` and the sum has ``s/alpha``, so that
an entry that moves by alpha moves the answers by at most ``(1 - s w_j) + s w_j = 1``: an entry with
a small weight in the sum gets little extra noise from it.

**Relative steps.** If a parameter's alpha is a share ``r`` of each value, neighbours differ in one
entry by a factor of at most ``1 + r``. Then the logarithm of an entry is asked for instead of the
entry: it moves by at most ``ln(1 + r)``, which replaces alpha above. A sum moves by ``r`` times
the upper end of the range, so noise would drown it and none is asked for; see
docs/maths/relative-steps.md.

**Steps by class.** If steps differ by public class, entry ``j`` has its own ``alpha_j`` above, and
``c_j = 1/alpha_j``: a neighbour moves the answers by at most 1, whichever class its entry is in.
The sum has the coefficient ``s/max alpha``, and ``w_j alpha_j / max alpha`` replaces ``w_j`` above.

**A published total** is an invariant: neighbours have the same one, so they differ in two loads,
by at most alpha each, and loads need half the coefficient (twice the noise).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from gridveil.grid.model.public_network import PublicNetwork
from gridveil.grid.model.release_problem import ReleaseProblem
from gridveil.privacy.account import Account
from gridveil.privacy.mechanisms import laplace
from gridveil.privacy.sealed import Range, Sealed
from gridveil.privacy.sensitivity import Sensitivity, calibrate_laplace

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Parts = tuple[Floats, ...]

# The most roundings of a value between its file and here: reading decimals, and the products (of
# ampere, volt, parallel circuits, loading) that give MW.
_READING = 8
# The most roundings of a computed logarithm.
_LOGARITHMS = 8
_LOGARITHM = "of ln(MW)"
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


class EntriesQuery:
    """Every private entry, and the sum of one parameter's entries if it gets a share of epsilon.

    Parameters
    ----------
    problem
        What is released.
    alphas
        How far one entry of each parameter may move.
    total_share
        The share of an entry's epsilon that goes to the sum.
    published_total
        Whether the total load is public and the same for neighbours.
    """

    def __init__(
        self,
        problem: ReleaseProblem,
        alphas: Mapping[str, Fraction],
        *,
        total_share: Fraction = Fraction(0),
        published_total: bool = False,
    ) -> None:
        public = problem.public
        kind = problem.summed if total_share else None
        steps = {name: moves_of(problem, name, alpha) for name, alpha in alphas.items()}
        self._logs = np.zeros(public.entries, dtype=bool)
        for name in problem.relative:
            self._logs[public.parts[name]] = True
        self._summed = None if kind is None else public.parts[kind.name]
        self._weights = np.zeros(0) if kind is None else kind.weights(public)
        self._sum = None if kind is None else (kind.summed, kind.unit)
        self._units = {
            kind.name: (
                public.parts[kind.name],
                _LOGARITHM if kind.name in problem.relative else kind.unit,
            )
            for kind in problem.kinds
        }
        most = Fraction(1) if kind is None else max(steps[kind.name])
        self._total = 0.0 if kind is None else float(total_share / most)
        # With one parameter, one step and no sum, entries are asked for without coefficients.
        self._plain = len(alphas) == 1 and kind is None and not problem.steps
        self._coefficients = np.ones(public.entries)
        for name in () if self._plain else public.parameters:
            part = public.parts[name]
            own = Fraction(1, 2) if published_total and name == "load" else Fraction(1)
            shares = [own] * len(steps[name])
            if part == self._summed:
                pairs = zip(self._weights.tolist(), steps[name], strict=True)
                shares = [1 - total_share * Fraction(w) * (step / most) for w, step in pairs]
            parted = zip(shares, steps[name], strict=True)
            self._coefficients[part] = [float(share / step) for share, step in parted]
        self._unit = self._units[problem.kinds[0].name][1] if self._plain else "of alpha"
        self._size = public.entries + (kind is not None)
        self.range = self._range(public.low, public.high)
        self.sensitivity = self._sensitivity(public, steps, published_total)

    def _sensitivity(
        self, public: PublicNetwork, steps: Mapping[str, Sequence[Fraction]], published: bool
    ) -> Sensitivity:
        moves = []
        for name in public.parameters:
            part = public.parts[name]
            # Exact arithmetic with the coefficients as rounded to floats.
            own = [Fraction(c) for c in self._coefficients[part].tolist()]
            if part == self._summed:
                sums = (Fraction(self._total) * Fraction(w) for w in self._weights.tolist())
                own = [c + w for c, w in zip(own, sums, strict=True)]
            each = (c * step for c, step in zip(own, steps[name], strict=True))
            move = max(each, default=Fraction(0))
            moves.append(2 * move if published and name == "load" else move)
        why = "one entry moves by at most its alpha"
        if self._logs.any():
            why = "the logarithm of one entry moves by at most ln(1 + alpha)"
            why += "" if self._logs.all() else ", or another entry by at most its alpha"
        if published:
            why = "the total is public, so two loads move, by at most alpha each"
        elif self._total:
            why += ", and the sum with it; their coefficients add up to 1"
        # The rounding error of products and sums, in units of 2^-52 times the largest coordinate;
        # for a sum, the size of its terms counts, since they may cancel.
        largest = np.maximum(
            np.abs(self._measured(public.low)), np.abs(self._measured(public.high))
        )
        # A relative error of a value is an absolute error of its logarithm.
        largest[self._logs] = np.maximum(largest[self._logs], 1.0)
        reach = float(self._combined(largest).max())
        roundings = 0 if self._plain else 2 * public.entries + 4
        roundings += _LOGARITHMS if self._logs.any() else 0
        off = Fraction(reach) * (roundings + _READING) / 2**52
        return Sensitivity(
            max(moves),
            why,
            moving=2 if published or self._total else 1,
            tolerance=off,
            separate=True,  # an entry times its own coefficient; the total counts as moving
        )

    def _range(self, low: Floats, high: Floats) -> Range:
        lows, highs = self._answer(low), self._answer(high)
        return Range(float(lows.min()), float(highs.max()))

    def check(self, epsilon: Fraction) -> None:
        """Raise `InputError` if the query can't be asked at this epsilon; opens nothing."""
        calibrate_laplace(self.sensitivity, epsilon, self.range)

    def asked(self, epsilon: Fraction) -> list[tuple[str, str]]:
        """Describe what is asked and the noise's scale, for people; opens nothing."""
        scale = calibrate_laplace(self.sensitivity, epsilon, self.range).scale_in_units
        return [(self._words(epsilon), f"{scale:.4g} {self._unit}")]

    def scale(self, epsilon: Fraction) -> Floats:
        """Compute the scale of the noise on every entry, or on its logarithm for relative steps.

        It is public, and known before anything is charged.
        """
        width = calibrate_laplace(self.sensitivity, epsilon, self.range).scale_in_units
        return np.asarray(width / self._coefficients)

    def ask(self, account: Account, sealed: Sealed[Parts], epsilon: Fraction) -> NoisyEntries:
        """Ask the query of the sealed entries at this epsilon."""
        noisy = laplace(
            account,
            sealed,
            query=self._compute,
            name=self._words(epsilon),
            sensitivity=self.sensitivity,
            epsilon=epsilon,
            size=self._size,
            range=self.range,
            unit=self._unit,
        )
        ends = [self._total] if self._total else []
        account.scaled(noisy.record, np.append(self._coefficients, ends))
        scale = noisy.record.calibration.scale_in_units
        total = noisy.value[-1] / self._total if self._total else None
        return NoisyEntries(
            noisy.value[: len(self._coefficients)] / self._coefficients,
            scale / self._coefficients,
            total,
            scale / self._total if self._total else 0.0,
            self._logs,
        )

    def noisy(
        self, values: Floats, scale: Floats, draw: Callable[[Floats], Floats]
    ) -> NoisyEntries:
        """Simulate the answer to this query if these were the values, with drawn noise."""
        measured = self._measured(values)
        return NoisyEntries(measured + draw(scale), scale, logarithms=self._logs)

    def _words(self, epsilon: Fraction) -> str:
        """Describe what is asked, with the noise in the entries' own units if it needs saying."""
        if self._plain:
            return "the logarithm of every entry" if self._logs.any() else "every entry"
        scale = calibrate_laplace(self.sensitivity, epsilon, self.range).scale_in_units
        words = []
        for name, (part, unit) in self._units.items():
            widths = np.unique(np.round(scale / self._coefficients[part], 10))
            wide = " to ".join(f"{width:.4g}" for width in widths[[0, -1]][: len(widths)])
            logs = "the logarithm of " if unit == _LOGARITHM else ""
            words.append(f"{logs}every entry of {name} (noise {wide} {unit})")
        if self._sum is not None:
            words.append(f"{self._sum[0]} ({scale / self._total:.4g} {self._sum[1]})")
        return " and ".join(words)

    def _compute(self, parts: Parts) -> Floats:
        return self._answer(np.concatenate(parts))

    def _answer(self, entries: Floats) -> Floats:
        return self._combined(self._measured(entries))

    def _measured(self, entries: Floats) -> Floats:
        """Replace entries with relative steps by their logarithms."""
        if not self._logs.any():
            return entries
        found = entries.copy()
        found[self._logs] = np.log(entries[self._logs])
        return found

    def _combined(self, entries: Floats) -> Floats:
        scaled = self._coefficients * entries
        if self._summed is None:
            return scaled
        total = self._total * float(self._weights @ entries[self._summed])
        return np.append(scaled, total)
