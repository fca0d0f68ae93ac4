"""What the statement of a wind release says, besides its guarantee: settings and limitations."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from gridveil.privacy.statement import Facts, Restoration
from gridveil.wind.features import Features
from gridveil.wind.methods import Method, Synthetic
from gridveil.wind.methods.base import Guarantee, Outcome, Prepared, Task
from gridveil.wind.records import Records

_LIMITATIONS = (
    "Records close in time resemble each other: what many of them say together is bounded by the "
    "figure for several entries, not by epsilon for one.",
    "Wind speeds are public, and power follows from them to a large part.",
    "Duplicates of one measurement count as several entries.",
)

_NEXT = (
    "{unit}s that follow each other, and turbines side by side, resemble each other: what several "
    "of them say together is bounded by the figure for several, not by epsilon for one."
)

_DRAWN = (
    "Records are drawn from a model: sums, averages, scatter and memory are kept, but a record is "
    "not a noisy copy of what was measured at its time."
)

_FORMULAS = (
    "Some of its text begins as a spreadsheet's formula does, and is published as it was: load the "
    "file as data, and do not open it in a spreadsheet."
)


class Planned(Protocol):
    """What is asked of a plan here."""

    records: Records
    method: Method
    guarantee: Guarantee
    why: str | None
    features: Features
    prepared: Prepared


def make_facts(plan: Planned, task: Task, outcome: Outcome) -> Facts:
    """What the statement says of a release, besides its guarantee and its ledger."""
    records, method, prepared = plan.records, plan.method, plan.prepared
    # The owner's name for the data: that of a file may tell about it.
    name = records.name if task.account.charge is None else task.account.charge.dataset
    turbines = f" of {len(records.groups)} turbines" if records.turbine else ""
    encoding = records.style.encoding
    known = {
        "speed": records.speed,
        "power": records.power_column,
        "capacity": records.capacity,
        "unit": records.unit,
        "public": [
            n for n in records.published if n not in (records.speed, records.key, records.turbine)
        ],
        "key": records.key,
        "turbine": records.turbine,
        "missing": records.missing,
        "rows_dropped": records.dropped,
        "features": plan.features.describe(),
        **({} if plan.guarantee.unit == "record" else {"protect": plan.guarantee.unit}),
        **({} if plan.why is None else {"method_chosen_because": plan.why}),
        **({} if records.time is None else {"time": records.time}),
        **({} if records.time_format is None else {"time_format": records.time_format}),
        **({} if records.style.usual else {"sep": records.style.sep}),
        **({} if records.style.usual else {"decimal": records.style.decimal}),
        # The release is UTF-8: this is for whoever reads the original again.
        **({} if encoding == "utf-8" else {"source_encoding": encoding}),
        **method.settings(),
        **prepared.settings(),
    }
    return Facts(
        kind="wind power records",
        method=method.method,
        summary=f"{records.rows:,} wind power records{turbines} ({name})",
        settings={**known, **outcome.chosen},
        public_inputs=[f"column {name!r}" for name in records.published]
        + ["which rows are missing, and the number of rows", "the nameplate capacity"],
        published_in_clear=list(records.published),
        restoration=_restoration(outcome),
        limitations=_limitations(plan),
    )


def _limitations(plan: Planned) -> list[str]:
    found = list(_LIMITATIONS)
    if plan.guarantee.unit != "record":
        found[0] = _NEXT.format(unit=plan.guarantee.unit.capitalize())
    if isinstance(plan.method, Synthetic):
        found.append(_DRAWN)
    return [*found, *([_FORMULAS] if plan.records.formulas else [])]


def _restoration(outcome: Outcome) -> Restoration | None:
    found = [one.restoration for one in outcome.turbines if one.restoration is not None]
    others = [one.solver for one in outcome.turbines if one.solver is not None]
    if not found and not others:
        return None
    gap = max((one.gap for one in found), default=np.inf)
    passes = {"passes": max(one.passes for one in found)} if found else {}
    return Restoration(
        solver=", ".join(sorted({*(one.solver for one in found), *others})),
        gap=gap if np.isfinite(gap) else None,
        settings=passes,
    )
