"""How well released values give real ones away, for the owner's report: attack and bound.

The attack is the best that is known and simple: guess the plausible value that is nearest to the
released one. Plausible are the values that the real data has, which is the most that an attacker
could know of them beforehand (a catalogue of standard ratings, say); so what it recovers is an
upper end of what such an attacker could. Beside it stands the bound that epsilon gives: how sure
an attacker can become, at most, who knows everything else and finds two values equally likely.

Everything here is computed from real values. It is the owner's alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from gridveil.privacy.adjacency import RELATIVE, relative_steps
from gridveil.privacy.guarantee_words import certainty
from gridveil.report.certainty_by_size import Size, misfit, sizes

_SEVERAL = (2, 5, 10)
# So many values are a short list, however few entries there are.
_SHORT = 10


@dataclass(frozen=True)
class Inference:
    """What released values of one parameter tell about real ones.

    Parameters
    ----------
    parameter, unit
        What they are.
    entries, distinct
        How many there are, and how many different real values.
    recovered
        Share of entries that the nearest plausible value gives exactly.
    common
        Share that guessing the most common value gives: what is known without a release.
    within
        Share of entries whose released value is within alpha of the real one.
    alpha, spacing
        How far neighbours may be apart; the typical gap between plausible values (median).
    sure_of_alpha, sure_of_spacing
        Epsilon's bound: how sure of one of two equally likely values that are alpha, or one
        spacing, apart. None if there is one value only.
    guessed_within
        Share of entries that a guess from other released data (a regression) has within alpha.
    sizes
        What can be told of a small, a median and a large entry, if they differ in size.
    one_step
        Whether all entries have one step; else alpha is the smallest of the classes.
    """

    parameter: str
    unit: str
    entries: int
    distinct: int
    recovered: float
    common: float
    within: float
    alpha: float
    spacing: float | None
    sure_of_alpha: float
    sure_of_spacing: float | None
    guessed_within: float | None = None
    sizes: tuple[Size, ...] = ()
    one_step: bool = True

    @property
    def listed(self) -> bool:
        """Whether values come from a short list, so that a list can be guessed from."""
        return self.distinct <= max(_SHORT, self.entries // 3)

    @property
    def warnings(self) -> list[str]:
        """What the owner should know if alpha protects little, or does not fit."""
        wrong = misfit(self.sizes, self.parameter, self.unit) if self.one_step else None
        said = self.warning, wrong
        return [one for one in said if one is not None]

    @property
    def warning(self) -> str | None:
        """What the owner should know if alpha is smaller than the gaps of a short list."""
        if not self.listed or self.spacing is None or self.alpha >= self.spacing:
            return None
        return (
            f"{self.parameter} has {self.distinct:,} different values, typically "
            f"{self.spacing:g} {self.unit} apart, which is more than alpha ({self.alpha:g}): who "
            f"knows that list recovers {self.recovered:.0%} of the entries. Choose alpha at or "
            "above the spacing to hide which value an entry has."
        )


def infer(
    parameter: str,
    unit: str,
    real: ArrayLike,
    released: ArrayLike,
    *,
    alpha: Fraction,
    epsilon: Fraction,
    guess: ArrayLike | None = None,
    by_size: bool = False,
    steps: Sequence[Fraction] | None = None,
) -> Inference:
    """Attack released values with the list of real ones, and compute epsilon's bounds.

    If entries have steps by class, ``steps`` are those of each, and alpha is the smallest.

    >>> found = infer("capacity", "MW", [100, 100, 200], [97, 105, 180], alpha=30, epsilon=1)
    >>> found.recovered, found.spacing, round(found.sure_of_spacing, 3)
    (1.0, 100.0, 0.982)
    """
    truth, shown = np.asarray(real, dtype=float), np.asarray(released, dtype=float)
    relative = unit == RELATIVE
    near = float(alpha) * (np.abs(truth) if relative else np.ones(len(truth)))
    values, place, counts = np.unique(truth, return_inverse=True, return_counts=True)
    middles = (values[1:] + values[:-1]) / 2
    guessed = np.searchsorted(middles, shown)
    # As it is shown, in six digits: differences of numbers are off in the last ones.
    apart = np.diff(values) / (np.abs(values[:-1]) if relative else 1.0)
    spacing = float(f"{np.median(apart):g}") if len(values) > 1 else None
    return Inference(
        parameter=parameter,
        unit=unit,
        entries=len(truth),
        distinct=len(values),
        recovered=float((guessed == place).mean()),
        common=float(counts.max() / len(truth)),
        within=float((np.abs(shown - truth) <= near).mean()),
        alpha=float(alpha),
        spacing=spacing,
        sure_of_alpha=certainty(epsilon),
        sure_of_spacing=None
        if spacing is None
        else certainty(epsilon * _steps(Fraction(str(spacing)), alpha, relative)),
        guessed_within=None
        if guess is None
        else float((np.abs(np.asarray(guess) - truth) <= near).mean()),
        sizes=sizes(
            truth, steps or [alpha] * len(truth), epsilon, relative=relative, released=shown
        )
        if by_size
        else (),
        one_step=steps is None,
    )


def _steps(far: Fraction, alpha: Fraction, relative: bool) -> int:
    return relative_steps(far, alpha) if relative else math.ceil(far / alpha)


def of_groups(
    epsilon: Fraction,
    unit: str,
    groups: Sequence[tuple[str, Fraction]],
    spent: tuple[Fraction, str] | None,
) -> list[tuple[str, Fraction, float]]:
    """Epsilon for a unit, for groups of them and for all releases so far: words, sum, certainty.

    Parameters
    ----------
    epsilon, unit
        Of this release, and what it is for, in words.
    groups
        What people ask about as a whole, and epsilon for it; for several entries if there is none.
    spent
        What was spent so far, and the size of the steps that it is about, in words.
    """
    several = groups or [(f"{k} times {unit}, at once", k * epsilon) for k in _SEVERAL]
    rows = [(unit, epsilon), *several]
    if spent is not None:
        total, steps = spent
        rows.append((f"{unit} by {steps}, all releases of this data so far", total))
    return [(words, total, certainty(total)) for words, total in rows]
