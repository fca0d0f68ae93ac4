"""Figures in words: numbers, bands and tables of a study's summary, all computed from its table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from gridveil.studies.drawing import BAND

if TYPE_CHECKING:
    import pandas as pd


def band(values: ArrayLike, digits: int = 3) -> str:
    """A mean, and the band that holds 90% of the runs.

    >>> band([1.0, 2.0, 3.0], digits=1)
    '2.0 [1.1, 2.9]'
    """
    some = np.asarray(values, dtype=np.float64)
    low, high = np.percentile(some, BAND)
    return f"{some.mean():.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"


def inside(value: float, values: ArrayLike) -> bool:
    """Whether a number lies in the band that holds 90% of the runs."""
    low, high = np.percentile(np.asarray(values, dtype=np.float64), BAND)
    return bool(low <= value <= high)


def percent(share: float, digits: int = 0) -> str:
    """A share with its sign, in percent.

    >>> percent(0.123), percent(-0.5, digits=1)
    ('+12%', '-50.0%')
    """
    return f"{100 * share:+.{digits}f}%"


def of_capacity(share: float) -> str:
    """A share of capacity in percent, as short as it can be.

    >>> of_capacity(0.05), of_capacity(0.125)
    ('5%', '12.5%')
    """
    return f"{100 * share:.10g}%"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def failures(found: pd.DataFrame) -> list[str]:
    """A paragraph about runs of which a restoration failed, if there are any."""
    some = int((found.failed > 0).sum())
    if not some:
        return []
    return [
        f"In {some:,} of {len(found):,} runs the solver found no restoration in some round, and "
        "what the round before it gave stands."
    ]


def listed(words: Sequence[str]) -> str:
    """Words with commas, and an "and" before the last.

    >>> listed(["5%", "10%", "15%"])
    '5%, 10% and 15%'
    """
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} and {words[-1]}"
