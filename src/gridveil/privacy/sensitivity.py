"""How far a query moves between neighbours, in its unit and on the grid, and the scale it needs.

**The grid.** Answers are rounded to whole steps of a public grid ``g`` before noise is added.
``g`` is a power of two, so that dividing a floating-point answer by it is exact. Rounding moves
each coordinate by at most half a step, so for answers ``a``, ``b`` of two neighbours

    sum_j |round(a_j/g) - round(b_j/g)|  <=  D/g + k

where ``D`` bounds ``sum_j |a_j - b_j|`` and ``k`` is how many coordinates are *moving*. The left
side is a whole number: it is at most ``floor(D/g) + k``.

**Moving.** Fix two neighbours. A coordinate is moving unless its *computed* value has the same bits
for both: then it rounds to the same step and needs no tolerance. ``moving`` bounds how many are,
for the worst two neighbours. The assumption behind counting fewer than all is that the coordinates
are *separate*: each is computed from entries of its own, by operations whose result depends on no
other entry. The data itself is, and an entry times its own coefficient; a block of a matrix product
is not, since libraries order their sums by the size of the whole. `laplace` refuses a query that
counts fewer coordinates than it has, unless its sensitivity says ``separate=True``.

**Numerical error.** ``D`` bounds the computed answers: a computed moving coordinate may be off by a
public ``tolerance`` for either neighbour, so ``D = value + 2 * k * tolerance``.

**Noisy max.** Each score counts for itself, so ``k = 1``. Scores that all move the same way need
half the noise; but with a tolerance ``t > 0`` the computed scores move by between ``-2t`` and
``value + 2t``. Adding a constant to every score changes no choice, so this is a monotone move
of at most ``floor((value + 2t)/g) + 1`` plus ``floor(2t/g) + 1`` steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from gridveil.errors import InputError
from gridveil.privacy.noise import laplace_epsilon, noisy_max_epsilon
from gridveil.privacy.sealed import Range

_FINENESS = 1000  # a default grid's rounding costs at most 1/1000 of the scale
_LARGEST = 2**52  # steps that a float holds exactly, with room for the sum of two


@dataclass(frozen=True)
class Sensitivity:
    """How far a query's answer can move between two neighbours.

    Parameters
    ----------
    value
        The bound for exact arithmetic: in L1 for a vector, per score for noisy max.
    why
        The reason, in a sentence that goes into the statement.
    moving, tolerance, separate
        As above: the most coordinates that move, how far a computed one may be off, and whether
        each is computed from entries of its own alone.
    proved
        False if the bound is assumed, not proved: the release is then not ``dp_valid``.
    """

    value: Fraction
    why: str
    moving: int = 1
    tolerance: Fraction = Fraction(0)
    proved: bool = True
    separate: bool = False

    def __post_init__(self) -> None:
        if self.value <= 0 or self.tolerance < 0 or self.moving < 1:
            raise InputError(
                "A sensitivity needs a positive value, a tolerance of at least 0 and at least "
                f"one moving coordinate: {self.value}, {self.tolerance}, {self.moving}."
            )

    def check_moving(self, size: int) -> None:
        """Raise `InputError` if a query of this size leaves coordinates out that may move."""
        if self.moving < size and not self.separate:
            raise InputError(
                f"{self.moving} of {size} coordinates count as moving, and nothing says that the "
                "others are computed apart from them.",
                remedy="Count all of them (moving=), or show that each is computed from entries "
                "of its own alone (separate=True).",
            )

    @property
    def bound(self) -> Fraction:
        """How far the *computed* answers of two neighbours can be apart."""
        return self.value + 2 * self.moving * self.tolerance

    def default_grid(self) -> Fraction:
        """The largest power of two at or under ``bound / (1000 moving)``."""
        return power_of_two_below(self.bound / (_FINENESS * self.moving))

    def steps(self, grid: Fraction) -> int:
        """The L1 distance of two neighbours' answers on the grid, at most."""
        return math.floor(self.bound / grid) + self.moving

    def score_steps(self, grid: Fraction, *, monotone: bool) -> int:
        """How many steps a score in noisy max can move, at most."""
        up = math.floor((self.value + 2 * self.tolerance) / grid) + 1
        if not monotone or self.tolerance == 0:
            return up
        return up + math.floor(2 * self.tolerance / grid) + 1


@dataclass(frozen=True)
class Calibration:
    """The noise that a mechanism will draw: public, and known before anything is charged."""

    grid: Fraction
    steps: int
    scale: float
    epsilon: Fraction
    mapped: Fraction

    @property
    def scale_in_units(self) -> float:
        """The noise's scale in the query's own unit."""
        return self.scale * float(self.grid)


def power_of_two_below(value: Fraction) -> Fraction:
    """The largest power of two that is not above ``value``."""
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    power = Fraction(2) ** exponent
    return power if power <= value else power / 2


def calibrate_laplace(
    sensitivity: Sensitivity, epsilon: Fraction, range: Range, grid: Fraction | None = None
) -> Calibration:
    """The scale at which OpenDP's map for vector Laplace stays at or under ``epsilon``."""
    grid = _check_grid(grid or sensitivity.default_grid(), range)
    steps = sensitivity.steps(grid)
    return _calibrate(grid, steps, steps, epsilon, lambda b: laplace_epsilon(b, steps))


def calibrate_noisy_max(
    sensitivity: Sensitivity,
    epsilon: Fraction,
    range: Range,
    *,
    monotone: bool,
    grid: Fraction | None = None,
) -> Calibration:
    """The scale at which OpenDP's map for noisy max stays at or under ``epsilon``."""
    grid = _check_grid(grid or sensitivity.default_grid(), range)
    steps = sensitivity.score_steps(grid, monotone=monotone)
    return _calibrate(
        grid,
        steps,
        steps if monotone else 2 * steps,
        epsilon,
        lambda b: noisy_max_epsilon(b, steps, monotone=monotone),
    )


def _calibrate(
    grid: Fraction, steps: int, first: int, epsilon: Fraction, map_of: Callable[[float], Fraction]
) -> Calibration:
    """The least scale from ``first/epsilon`` on that OpenDP's map agrees to."""
    wanted = first / epsilon
    if wanted > _LARGEST:
        raise InputError(
            f"The noise would be over {_LARGEST:.0e} grid steps wide: epsilon is too small for "
            "this query.",
            remedy="Ask for more epsilon, or a coarser grid.",
        )
    scale = float(wanted)
    for _ in range(64):  # OpenDP rounds its map up: step the scale up until the map agrees
        mapped = map_of(scale)
        if mapped <= epsilon:
            return Calibration(grid, steps, scale, epsilon, mapped)
        scale = math.nextafter(scale, math.inf)
    raise InputError(
        f"OpenDP's privacy map gives no scale with epsilon at or under {float(epsilon):g}.",
        remedy="Ask for an epsilon between 1e-9 and 1e3.",
    )


def _check_grid(grid: Fraction, range: Range) -> Fraction:
    if not 2.0**-900 <= grid <= 2.0**900 or power_of_two_below(grid) != grid:
        raise InputError(f"A grid must be a power of two, such as 1/1024, and {grid} is not.")
    if Fraction(max(abs(range.low), abs(range.high))) / grid > _LARGEST:
        raise InputError(
            f"The range {range} has more steps of {float(grid):g} than a number can hold.",
            remedy="Give a narrower public range, a larger alpha or a coarser grid.",
        )
    return grid
