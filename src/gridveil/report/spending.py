"""Who spent how much of a ledger, and when: sums, and a picture of spent and left over time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from pathlib import Path
from typing import Literal

from gridveil.errors import InputError
from gridveil.privacy.ledger import Ledger, Moment, history
from gridveil.report.picture_style import BLUE, GREY, new_figure

UNKNOWN = "not known"
"""Who wrote the entries of a file."""

_HEIGHT = 2.4  # of the picture of one dataset


@dataclass(frozen=True)
class Spent:
    """What one group charged to a dataset, and what the dataset had spent by its last charge.

    The group is a user, a month (``2026-01``) or the dataset. All epsilons count for steps of
    today's reference alphas; those of different datasets do not add up.
    """

    group: str
    user: str | None
    dataset: str
    charges: int
    released: int
    charged: Fraction
    spent: Fraction
    cap: Fraction | None

    @property
    def left(self) -> Fraction | None:
        """What the cap left at that time; None without a cap."""
        return None if self.cap is None else max(self.cap - self.spent, Fraction(0))


def spent_by(
    ledger: Ledger, by: Literal["user", "dataset", "month"] | str, dataset: str | None = None
) -> list[Spent]:
    """What was charged to each dataset, or to one, by user, month or in all."""
    rows = []
    for name, moments in _histories(ledger, dataset).items():
        groups: dict[str, list[Moment]] = {}
        for one in moments:
            if one.kind == "charge":
                key = {"user": one.user or UNKNOWN, "month": one.time[:7], "dataset": name}[by]
                groups.setdefault(key, []).append(one)
        for group, members in groups.items():
            last = members[-1] if by == "month" else moments[-1]
            rows.append(
                Spent(
                    group,
                    members[0].user,
                    name,
                    len(members),
                    sum(one.released for one in members),
                    sum((one.counted for one in members), Fraction(0)),
                    last.spent,
                    _cap_after(moments, last),
                )
            )
    return sorted(rows, key=lambda row: row.group) if by != "dataset" else rows


def draw_spending(ledger: Ledger, dataset: str | None, path: Path) -> None:
    """Draw what every dataset, or one, had spent over time, and its cap, into a file."""
    found = {name: moments for name, moments in _histories(ledger, dataset).items() if moments}
    if not found:
        raise InputError("There is nothing to draw: nothing was charged.")
    figure, first = new_figure(height=_HEIGHT * len(found) + 0.4)
    first.remove()
    panels = figure.subplots(len(found), 1, sharex=True, squeeze=False)[:, 0]
    for axes, (name, moments) in zip(panels, found.items(), strict=True):
        times = [datetime.fromisoformat(one.time) for one in moments]
        spent = [float(one.spent) for one in moments]
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25, linewidth=0.6)
        axes.step(times, spent, where="post", color=BLUE, label="spent")
        axes.plot(times, spent, "o", color=BLUE, markersize=3)
        if any(one.cap is not None for one in moments):
            caps = [float("nan") if one.cap is None else float(one.cap) for one in moments]
            axes.step(times, caps, where="post", color=GREY, linestyle="--", label="cap")
            axes.plot(times[-1:], caps[-1:], "_", color=GREY)
            axes.fill_between(times, spent, caps, step="post", color=GREY, alpha=0.15, label="left")
        axes.set_ylim(bottom=0)
        axes.set_ylabel("epsilon")
        axes.set_title(name.replace("$", r"\$"), loc="left", fontsize=10)
        axes.legend(frameon=False, fontsize=8, ncols=3, loc="lower right", bbox_to_anchor=(1, 1))
    figure.autofmt_xdate()
    figure.savefig(path)


def _histories(ledger: Ledger, dataset: str | None) -> dict[str, list[Moment]]:
    wanted = ledger.all_totals() if dataset is None else [ledger.totals(dataset)]
    return {one.dataset: history(one, ledger.entries(one.dataset)) for one in wanted}


def _cap_after(moments: list[Moment], last: Moment) -> Fraction | None:
    """The cap at the end of the month of a charge, or today's."""
    later = [one for one in moments if one.time[:7] <= last.time[:7]]
    return later[-1].cap
