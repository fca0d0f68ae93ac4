"""What a step leaves an observer to tell of a small, a median and a large entry.

One amount for all drowns small entries in noise and leaves large ones open. The plan page shows it
for a stand-in; `grid info` and the owner's report show it for the real entries, to the owner alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gridveil.privacy.adjacency import RELATIVE, relative_steps
from gridveil.privacy.guarantee_words import certainty, show_certainty

Floats = NDArray[np.float64]

_NAMES = "small", "median", "large"
_PLACES = 0.05, 0.5, 0.95
# An amount fits entries that are less than this many times apart.
_ALIKE = 10.0
_TENTH = Fraction(1, 10)
COLUMNS = "entry", "noise", "sure of a tenth more, at most", "released within a tenth"
"""Of a table of sizes; the last if there is a release."""


@dataclass(frozen=True)
class Size:
    """A small, a median or a large entry.

    Parameters
    ----------
    name, value
        Which of them, and its value.
    noise
        How large the noise on it is on average, as a share of it.
    sure
        Epsilon's bound: how sure an observer can become that it is a tenth larger, or is not.
    known
        The share of entries of its size (quarters, and the half between) that are released within
        a tenth of the real value, if there is a release.
    """

    name: str
    value: float
    noise: float
    sure: float
    known: float | None = None

    def row(self, unit: str) -> tuple[str, ...]:
        """As a row of a table."""
        cells = (
            f"{self.name}: {self.value:,.4g} {unit}",
            f"{self.noise:.0%}" if self.noise >= 0.01 else f"{self.noise:.1%}",
            show_certainty(self.sure),
        )
        return cells if self.known is None else (*cells, f"{self.known:.0%}")


def sizes(
    values: ArrayLike,
    steps: Sequence[Fraction],
    epsilon: Fraction,
    *,
    relative: bool,
    released: ArrayLike | None = None,
) -> tuple[Size, ...]:
    """A small, a median and a large entry (of a twentieth, a half, all but a twentieth).

    Parameters
    ----------
    values, steps
        Of the entries, and how far each may move: an amount, or a share if ``relative``.
    epsilon
        What is spent on the entries.
    released
        Their released values, if there are any.
    """
    real = np.abs(np.asarray(values, dtype=np.float64))
    places = np.flatnonzero(real > 0)
    if len(places) == 0:
        return ()
    order = places[np.argsort(real[places], kind="stable")]
    shares = _shares(values, released, real[order])
    found = []
    for name, place, known in zip(_NAMES, _PLACES, shares, strict=True):
        one = order[round(place * (len(order) - 1))]
        value, step = float(real[one]), steps[one]
        count = (
            relative_steps(_TENTH, step)
            if relative
            else math.ceil(Fraction(str(value)) * _TENTH / step)
        )
        size = math.log1p(step) if relative else float(step) / value
        found.append(Size(name, value, size / float(epsilon), certainty(epsilon * count), known))
    return tuple(found)


def _shares(values: ArrayLike, released: ArrayLike | None, ordered: Floats) -> list[float | None]:
    """How many of the smallest quarter, those between and the largest are within a tenth."""
    if released is None:
        return [None] * 3
    real, shown = np.asarray(values, dtype=np.float64), np.asarray(released, dtype=np.float64)
    near = np.abs(shown - real) <= 0.1 * np.abs(real)
    low, high = np.quantile(ordered, (0.25, 0.75))
    size = np.abs(real)
    small, large = (size > 0) & (size <= low), size >= high
    groups = small, (size > low) & (size < high), large
    return [float(near[some].mean()) if some.any() else None for some in groups]


def misfit(found: Sequence[Size], what: str, unit: str) -> str | None:
    """A warning if one amount is given for entries of very different size."""
    if unit == RELATIVE or not found or found[-1].value < _ALIKE * found[0].value:
        return None
    small, _, large = found
    return (
        f"{what}: one step in {unit} does not fit values from {small.value:,.4g} to "
        f"{large.value:,.4g} {unit}. Noise is {small.noise:.0%} of a small one and "
        f"{large.noise:.1%} of a large one. A share of each value (alpha 20%), or one step for "
        "each public class, fits all of them."
    )
