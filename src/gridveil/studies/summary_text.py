"""Write the numbers, bands and tables of a study's summary as text, computed from its results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from gridveil.studies.figure_style import BAND

if TYPE_CHECKING:
    import pandas as pd


def band(values: ArrayLike, digits: int = 3) -> str:
    """Write a mean, and the band that contains 90% of the runs.

    >>> band([1.0, 2.0, 3.0], digits=1)
    '2.0 [1.1, 2.9]'
    """
    some = np.asarray(values, dtype=np.float64)
    low, high = np.percentile(some, BAND)
    return f"{some.mean():.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"


def inside(value: float, values: ArrayLike) -> bool:
    """Say whether a number lies in the band that contains 90% of the runs."""
    low, high = np.percentile(np.asarray(values, dtype=np.float64), BAND)
    return bool(low <= value <= high)


def percent(share: float, digits: int = 0) -> str:
    """Write a share with its sign, in percent.

    >>> percent(0.123), percent(-0.5, digits=1)
    ('+12%', '-50.0%')
    """
    return f"{100 * share:+.{digits}f}%"


def of_capacity(share: float) -> str:
    """Write a share of capacity in percent, as short as possible.

    >>> of_capacity(0.05), of_capacity(0.125)
    ('5%', '12.5%')
    """
    return f"{100 * share:.10g}%"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def failures(found: pd.DataFrame) -> list[str]:
    """Return a paragraph about runs with a failed restoration, if there are any."""
    some = int((found.failed > 0).sum())
    if not some:
        return []
    return [
        f"In {some:,} of {len(found):,} runs the solver found no restoration in some round, and "
        "what the round before it gave stands."
    ]


def listed(words: Sequence[str]) -> str:
    """Join words with commas, and "and" before the last.

    >>> listed(["5%", "10%", "15%"])
    '5%, 10% and 15%'
    """
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} and {words[-1]}"
