"""Facts for the statement of a release of load series, besides those of its account."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gridveil.errors import show_exact
from gridveil.grid.io.released_columns import CHANGED
from gridveil.grid.model.public_network import PublicNetwork
from gridveil.grid.series.options import Series
from gridveil.grid.series.serve_hours import Served
from gridveil.privacy.account import Account
from gridveil.privacy.adjacency import ALTOGETHER
from gridveil.privacy.statement import Facts, Restoration

if TYPE_CHECKING:
    from gridveil.grid.series.released import Prepared

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
