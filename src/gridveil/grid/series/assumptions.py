"""The assumptions of a planned release of load series, and warnings about unusual ones.

Only public facts decide both: the clock, the number of loads, their range, generators and the
guarantee.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np

from gridveil.errors import show_exact
from gridveil.grid.model.public_network import PublicNetwork
from gridveil.grid.series.options import Series
from gridveil.privacy.adjacency import ALTOGETHER, ENTRY

if TYPE_CHECKING:
    from gridveil.grid.series.released import Prepared

_LITTLE = 0.005  # alpha, as a share of a typical load
_MUCH = 0.5  # texture, as a share of a load

_LEFT_OUT = {
    "days": "sums of single loads' days",
    "weeks": "sums of single loads' weeks",
    "peak": "the highest total",
    "totals": "each day's total load",
    "shapes": "each load's typical day",
}


def assumed(prepared: Prepared, options: Series) -> dict[str, str]:
    """Return the assumptions of the release, by a short name each."""
    frame, clock = prepared.frame, prepared.frame.clock
    first = datetime.fromtimestamp(clock.start, UTC).date()
    moving = {ENTRY: "one value", ALTOGETHER: "all values of one load"}.get(
        frame.block, f"all values of one load in one calendar {frame.block}"
    )
    zero = len(prepared.series.names) - frame.loads
    left = [words for name, words in _LEFT_OUT.items() if name not in prepared.epsilons]
    found = {
        "private load": f"{frame.loads:,} loads in MW{f'; {zero:,} more are always 0' * bool(zero)}"
        f"; protected are {moving}, each by {show_exact(frame.alpha)} MW; values outside "
        f"[{frame.range.low:g}, {frame.range.high:g}] count as the nearer end",
        "times": f"{clock.days:,} whole days of {clock.slots} values from {first} ({clock.zone})",
        "typical load": f"about {prepared.typical:,.4g} MW, which decides what is asked (--typical)"
        + (f"; not asked, since noise would drown it: {', '.join(left)}" if left else ""),
        "accuracy of load": f"the mean of a load is off by about {_mean_error(prepared):,.3g} MW"
        + _total_error(prepared, options.waves),
        "hours": "each is moved to the nearest loads that the network can serve"
        if options.hours == "all"
        else "not checked: the network may not be able to serve them",
    }
    if options.texture:
        found["texture"] = f"a model adds a spread of {options.texture:.3g} of each load's level"
    return found


def unusual(public: PublicNetwork, prepared: Prepared, options: Series) -> Iterator[str]:
    """Yield a warning for each thing that looks like a mistake; reads no private value."""
    frame = prepared.frame
    error = _mean_error(prepared)
    if error >= prepared.typical:
        yield (
            f"Noise of about {error:,.4g} MW drowns the mean of a load, which is guessed to be "
            f"{prepared.typical:,.4g} MW: the release will tell next to nothing. Protect a shorter "
            "time with --protect, or give a smaller --alpha or more --epsilon."
        )
    units = public.generators
    total = float(np.nan_to_num(units.p_max[units.in_service], posinf=0.0).sum())
    share = total / frame.loads
    if float(frame.alpha) < _LITTLE * share:
        yield (
            f"alpha is {show_exact(frame.alpha)} MW, and loads are about {share:,.4g} MW by the "
            "generation and their number: such small steps hide next to nothing. Give a larger "
            "--alpha, and check its unit."
        )
    if options.texture > _MUCH:
        yield (
            f"Texture of {options.texture:.3g} makes up most of what a load does. Give the share "
            "of its level by which it really varies, as --texture 10%."
        )


def _mean_error(prepared: Prepared) -> float:
    """Compute the mean error of a load's mean, MW: that of Laplace noise is its scale."""
    scale = prepared.queries["year"].scale(prepared.epsilons["year"])
    return scale / prepared.frame.clock.size


def _total_error(prepared: Prepared, waves: int) -> str:
    """Describe how far noise alone moves the total of an hour: every wave adds its noise."""
    if "totals" not in prepared.epsilons:
        return ""
    scale = prepared.queries["totals"].scale(prepared.epsilons["totals"])
    error = math.sqrt(2 * waves / prepared.frame.clock.slots) * scale
    return f", the total of an hour by about {error:,.3g} MW before smoothing, by noise alone"
