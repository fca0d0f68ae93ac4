"""Which queries of a load series are asked, and how they share epsilon.

A query is not asked if its answer would be no better than the guess that is made without it. What
it would reveal is compared with its noise, both in MW: ``typical`` is a public guess of the mean
load, and the shares below say how far loads usually are from what the other answers imply.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

from gridveil.grid.series.queries import Frame, Query

WEIGHTS = {
    "year": Fraction(10),
    "shapes": Fraction(5),
    "totals": Fraction(85),
    "peak": Fraction(4),
    "weeks": Fraction(10),
    "days": Fraction(25),
}
"""Relative shares of epsilon of the queries, chosen with the loads of SimBench's 1-HV-urban."""

TYPICAL = 8
"""The public guess of a mean load, in multiples of alpha, unless the owner gives a better one."""

# How far loads are from what other answers imply, as a share of the mean load.
_DAY, _WEEK, _WAVE, _PEAK = 0.15, 0.1, 0.2, 0.1
_DROWNED = 4.0  # an answer is useless if its noise is this many times what it would reveal


def planned(
    frame: Frame, queries: Mapping[str, Query], typical: float, epsilon: Fraction
) -> dict[str, Fraction]:
    """Choose the epsilon of each query that is asked; they add up to all of it."""
    asked = dict(WEIGHTS)
    # Dropping one leaves more for the others, so the least promising are tried first.
    for name in ("days", "weeks", "peak", "totals", "shapes"):
        part = epsilon * asked[name] / sum(asked.values())
        if not _worth(name, frame, typical, math.sqrt(2) * queries[name].scale(part)):
            del asked[name]
    whole = sum(asked.values())
    return {name: epsilon * weight / whole for name, weight in asked.items()}


def _worth(name: str, frame: Frame, typical: float, noise: float) -> bool:
    """Say whether an answer with noise of this deviation beats the guess without it."""
    clock, loads = frame.clock, frame.loads
    slots, wave = clock.slots, math.sqrt(clock.slots)
    if name == "peak":
        return noise < _PEAK * typical * loads
    if name == "totals":
        # Loads move partly together, and all waves of a day are used together.
        return noise < _DROWNED * _WAVE * typical * loads * wave
    if name == "shapes":
        days = min(int((clock.kind == kind).sum()) or clock.days for kind in (0, 1))
        return noise / days < _DROWNED * _WAVE * typical * wave
    # The part that loads share is found from all answers together, which lowers the noise.
    rows, own = (clock.days, _DAY) if name == "days" else (clock.weeks, _WEEK)
    per = slots if name == "days" else 7 * slots
    return 2 * noise / per * math.sqrt(1 / rows + 1 / loads) < own * typical
