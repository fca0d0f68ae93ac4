"""What a release of load series says of itself: before it is charged, and in its statement.

Only public facts decide what a plan takes for granted and what is unusual about it: the clock, the
number of loads, their range, generators and the guarantee.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from gridveil.errors import show_exact
from gridveil.grid.io.released_columns import CHANGED
from gridveil.grid.model.public_network import PublicNetwork
from gridveil.grid.series.options import Series
from gridveil.grid.series.serve_hours import Served
from gridveil.privacy.account import Account
from gridveil.privacy.adjacency import ALTOGETHER, ENTRY
from gridveil.privacy.statement import Facts, Restoration

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


KIND = "grid load series"

_LIMITATIONS = (
    "Loads follow each other, the weather and the calendar: what is known of other days, other "
    "loads and the weather permits inference about a day that epsilon does not bound.",
    "Released values between the sums that were asked for are rebuilt: hours, days and extremes of "
    "one load are estimates, and its noise is not that of single values.",
    "Which loads are always 0, which are ever below 0, and the times are public.",
    "Topology, capacities, generators and costs are published as the file has them: if they were "
    "computed from loads they are evidence about these, outside epsilon.",
)


MEANS_ALONE = (
    "The series could not be rebuilt from all answers: every load is released at its mean, the "
    "same at all times, and no texture was added."
)
"""A warning for readers if rebuilding failed."""


def made_up(texture: float) -> list[str]:
    """Return a warning for readers about model-made spread, if there is any."""
    if not texture:
        return []
    return [
        f"Texture: a model added a spread of {texture:.3g} of each load's level from hour to hour. "
        "It is drawn at random and tells nothing of the real hours; totals of hours and sums of "
        "days were there before it."
    ]


def series_facts(
    account: Account,
    public: PublicNetwork,
    options: Series,
    prepared: Prepared,
    served: Served,
    rebuilt: Sequence[str],
    trouble: Mapping[str, Any],
) -> Facts:
    """Collect the statement's facts of a release, from released and public data.

    ``rebuilt`` has warnings for readers about how the series was rebuilt.
    """
    clock, frame = prepared.frame.clock, prepared.frame
    name = public.name if account.charge is None else account.charge.dataset
    limitations = [*served.doubts(), *rebuilt, *_LIMITATIONS]
    settings: dict[str, Any] = {
        "parameters": ["load"],
        "ranges": {"load": [frame.range.low, frame.range.high]},
        "protect": frame.block,
        "days": clock.days,
        "values_in_a_day": clock.slots,
        "clock": clock.zone,
        "shares": {
            query: show_exact(part / account.budget.total)
            for query, part in prepared.epsilons.items()
        },
        "decimals": {"load": prepared.decimals},
        "hours_moved": int(served.moved.sum()),
        "hours_not_served": int(served.unserved.sum()),
        CHANGED: [one.to_json() for one in public.changes],
        **options.settings(),
        "typical": prepared.typical,
        **trouble,
    }
    hours = "hours as they were rebuilt" if options.hours == "none" else "every hour projected"
    return Facts(
        kind=KIND,
        method=options.method,
        summary=f"loads of network {name} over time: {frame.loads:,} loads, {clock.days:,} days",
        settings=settings,
        public_inputs=[
            "topology, capacities, generators and everything else of the network but its loads",
            "the times of the series, the names of loads, which are always 0 and which ever below",
        ],
        published_in_clear=[
            *("capacity", "generator_limit", "cost", "topology and impedances"),
            "times of the series, and names of loads as its table has them",
        ],
        restoration=Restoration(solver=f"least squares with learned spreads; {hours}", gap=None),
        limitations=limitations,
        adjacency="Which loads are always 0 and which are ever below 0 is the same in both."
        + ("" if frame.block == ALTOGETHER else " Days are calendar days of the series' clock."),
    )
