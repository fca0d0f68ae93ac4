"""Which questions a series is asked, and for how much of epsilon: decided on public numbers alone.

A question is dropped if its answer would be no better than the guess that is made without it. What
it would tell is compared with its noise, both in MW: ``typical`` is a public guess of the mean
load, and the shares below say how far loads usually are from what the other answers tell.
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
"""Parts of epsilon for what is asked; chosen on the loads of SimBench's 1-HV-urban."""

TYPICAL = 8
"""The public guess of a mean load, in alphas, unless the owner has a better one."""

# How far loads are from what other answers tell, as a share of the mean load.
_DAY, _WEEK, _WAVE, _PEAK = 0.15, 0.1, 0.2, 0.1
_DROWNED = 4.0  # noise this many times as wide as what is looked for is worth nothing


def planned(
    frame: Frame, queries: Mapping[str, Query], typical: float, epsilon: Fraction
) -> dict[str, Fraction]:
    """The epsilon of each question that is asked; they add up to all of it."""
    asked = dict(WEIGHTS)
    # What is dropped leaves more for the others: the least promising ones go first.
    for name in ("days", "weeks", "peak", "totals", "shapes"):
        part = epsilon * asked[name] / sum(asked.values())
        if not _worth(name, frame, typical, math.sqrt(2) * queries[name].scale(part)):
            del asked[name]
    whole = sum(asked.values())
    return {name: epsilon * weight / whole for name, weight in asked.items()}


def _worth(name: str, frame: Frame, typical: float, noise: float) -> bool:
    """Whether an answer with this deviation of its noise beats the guess without it."""
    clock, loads = frame.clock, frame.loads
    slots, wave = clock.slots, math.sqrt(clock.slots)
    if name == "peak":
        return noise < _PEAK * typical * loads
    if name == "totals":
        # A sum of loads that move partly together, and the waves of a day together tell most.
        return noise < _DROWNED * _WAVE * typical * loads * wave
    if name == "shapes":
        days = min(int((clock.kind == kind).sum()) or clock.days for kind in (0, 1))
        return noise / days < _DROWNED * _WAVE * typical * wave
    # What loads have in common is found from all answers together: half of them must not drown.
    rows, own = (clock.days, _DAY) if name == "days" else (clock.weeks, _WEEK)
    per = slots if name == "days" else 7 * slots
    return 2 * noise / per * math.sqrt(1 / rows + 1 / loads) < own * typical
