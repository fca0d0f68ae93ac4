"""What a release of wind records says of itself: before it is charged, and in its statement.

A plan says what it takes for granted and what is unusual about it; public facts alone decide both:
columns, keys, wind speeds, capacities and the guarantee. The statement says, besides the guarantee,
the settings and the limitations.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Protocol

import numpy as np

from gridveil.errors import show_exact
from gridveil.privacy.statement import Facts, Restoration
from gridveil.wind.clock import oddities
from gridveil.wind.features import Features, uncovered
from gridveil.wind.methods import Method, Synthetic
from gridveil.wind.methods.base import Guarantee, Outcome, Prepared, Task
from gridveil.wind.records import Records
from gridveil.wind.regression import Fit

_TURBINE = re.compile(r"turbine|wtg|\bwea|asset|machine|windmill|anlage", re.IGNORECASE)
_TIME = re.compile(r"time|date|stamp|datum|zeit", re.IGNORECASE)
_KILOWATTS = {"w": 1e-3, "kw": 1.0, "mw": 1e3, "gw": 1e6}
# kW: no turbine in a wind farm is smaller; none is larger than 30 MW, and no farm than 10 GW.
_LEAST, _TURBINES_MOST, _FARMS_MOST = 10.0, 50e3, 10e6
_STORM = 60.0  # m/s, more than any turbine's anemometer reports on average
_WINDY = 15.0  # m/s, more than the mean of any site that turbines stand at
# What headings say of units, as in power_mw or Speed [km/h].
_POWER_UNIT = re.compile(r"(?:^|[^a-z])([kmg]w)(h?)(?:[^a-z]|$)", re.IGNORECASE)
_SHARE_UNIT = re.compile(
    r"(%|(?:^|[^a-z])(?:per ?cent|pct|prozent)(?:[^a-z]|$))|(?:^|[^a-z])p\.?u\.?(?:[^a-z]|$)",
    re.IGNORECASE,
)
_FULL = {"%": 100.0, "pu": 1.0}  # full power in shares of capacity
_SPEED_UNIT = re.compile(
    r"(?:^|[^a-z])(km/?h|kph|mph|knots?|kts?|kn|ft/?s|fps)(?:[^a-z]|$)", re.IGNORECASE
)
_LEAST_ALPHA = Fraction(1, 100)  # of capacity
_MANY = 0.5  # of all rows
_POOLED = 0.1  # of all rows: no clock is set back that often
_SHOWN = 6


def assumed(
    records: Records, fits: Sequence[Fit], guarantee: Guarantee, prepared: Prepared
) -> dict[str, str]:
    """What the release takes for granted, by a short name each."""
    low, high = records.speed_range
    sizes = sorted({group.capacity for group in records.groups})
    size = " to ".join(dict.fromkeys(f"{one:,g}" for one in (sizes[0], sizes[-1])))
    alpha = float(guarantee.alpha)
    step = " to ".join(dict.fromkeys(f"{alpha * one:,.4g}" for one in (sizes[0], sizes[-1])))
    unit = "one record" if guarantee.unit == "record" else f"all records of a {guarantee.unit}"
    dropped = f"{records.dropped:,} more left out, since values are missing"
    count = len(records.groups)
    named = f"{count:,}, by '{records.turbine}'" if count > 1 else f"one, by '{records.turbine}'"
    found = {
        "private": f"'{records.power_column}' in {records.unit}, from 0 to the capacity {size} "
        f"{records.unit}; values outside count as the nearer end",
        "protected": f"{unit}, by {show_exact(100 * guarantee.alpha)}% of capacity ({step} "
        f"{records.unit}){' each' if guarantee.unit != 'record' else ''}",
        "wind speed": f"'{records.speed}' from {low:g} to {high:g}, taken as m/s",
        "order of rows": _order(records),
        "rows": f"{records.rows:,}; {dropped if records.dropped else 'none left out'}",
        "turbines": named if records.turbine else "all rows count as one turbine",
    }
    accuracy = prepared.accuracy(fits, guarantee)
    if accuracy is not None:
        found["accuracy"] = accuracy
    return found


def unusual(
    records: Records,
    features: Features,
    fits: Sequence[Fit],
    guarantee: Guarantee,
    prepared: Prepared,
) -> tuple[str, ...]:
    """What looks like a slip, a sentence each; no power decides it."""
    return (
        *_order_doubts(records),
        *_pooled(records),
        *_times(records),
        *_units(records),
        *_sizes(records),
        *_speeds(records),
        *_step(guarantee),
        *_features(records, features),
        *prepared.doubts(fits, guarantee),
    )


def _order(records: Records) -> str:
    turbine = "by turbine, then " if records.turbine is not None and records.key else ""
    if records.time is not None:
        zone = "with zones, by UTC" if records.clock == "UTC" else "as written, without a zone"
        return f"{turbine}by the time '{records.time}', {zone}; that in the source is not kept"
    if records.key is not None:
        return f"{turbine}by the key '{records.key}'; that in the source is not kept"
    return f"by {', '.join(records.published)}: no column orders them"


def _order_doubts(records: Records) -> Iterator[str]:
    if records.key is None and records.unread:
        others = [*filter(_TIME.search, records.unread), *records.unread]
        some = ", ".join(f"'{name}'" for name in [*dict.fromkeys(others)][:_SHOWN])
        yield (
            f"No column orders the rows: they will be released in the order of "
            f"{', '.join(records.published)}, and which came first is lost. Name the column of "
            f"times with --time (time=), or another key with --key (key=). Columns that were not "
            f"named: {some}."
        )
    if records.time is None and (repeated := records.repeated_keys()):
        again = f"{repeated:,} of {records.rows:,} rows have the key '{records.key}' of another row"
        if repeated >= _MANY * records.rows and records.turbine is None:
            yield f"{again}: are these several turbines? Name their column with --turbine."
        else:
            yield f"{again} of their turbine. Check for duplicates, which count as several records."


def _pooled(records: Records) -> Iterator[str]:
    if records.turbine is not None:
        return
    for name in (*records.published, *records.unread):
        if _TURBINE.search(name) and name not in (records.speed, records.key):
            yield (
                f"Column '{name}' looks like the name of a turbine, but all rows count as one. If "
                f"there are several turbines, add --turbine {name}."
            )
            return


def _times(records: Records) -> list[str]:
    times = [one for one in (group.times() for group in records.groups) if one is not None]
    if not times:
        return []
    again = sum(int((np.diff(moments) == 0).sum()) for moments in times)
    if records.turbine is None and again >= _POOLED * records.rows:
        return [
            f"{again:,} of {records.rows:,} records have the time of another one: are these "
            "several turbines? Name their column with --turbine; files without one need it added."
        ]
    return oddities(times, [group.name for group in records.groups])


def _units(records: Records) -> Iterator[str]:
    """Headings that name other units than those that values are taken in."""
    said = _POWER_UNIT.search(records.power_column)
    if said:
        unit = said[1][:-1].replace("m", "M").replace("g", "G").replace("K", "k") + "W"
        if said[2]:
            yield (
                f"The heading '{records.power_column}' names {unit}h, an energy, and power in "
                f"{records.unit} is expected. Divide it by the hours of an interval."
            )
        elif records.unit.strip().lower() in _KILOWATTS.keys() - {unit.lower()}:
            yield (
                f"The heading '{records.power_column}' names {unit}, and values and --capacity are "
                f"taken as {records.unit}. Give the capacity in {unit}, and --unit {unit}."
            )
    share = None if said else _share(records.power_column)
    if share is not None and share != _share(records.unit):
        yield (
            f"The heading '{records.power_column}' names {share} of capacity, and values and "
            f"--capacity are taken as {records.unit}. Give --capacity {_FULL[share]:g}, and --unit "
            f"{share}."
        )
    said = _SPEED_UNIT.search(records.speed)
    if said:
        yield (
            f"The heading '{records.speed}' names {said[1]}, and m/s are expected. Convert the "
            "wind speeds."
        )


def _share(text: str) -> str | None:
    """The kind of share of capacity that a heading or a unit names, if it does."""
    found = _SHARE_UNIT.search(text)
    return None if found is None else "%" if found[1] else "pu"


def _sizes(records: Records) -> Iterator[str]:
    factor, share = _KILOWATTS.get(records.unit.strip().lower()), _share(records.unit)
    if share is not None:
        wrong = [one.capacity for one in records.groups if one.capacity != _FULL[share]]
        if wrong:
            yield (
                f"Power in {share} of capacity has a capacity of {_FULL[share]:g}, and "
                f"{wrong[0]:,g} was given. Give --capacity {_FULL[share]:g}, or name the unit that "
                "power has."
            )
    elif factor is None:
        yield (
            f"'{records.unit}' is not known to be a unit of power, so --capacity can't be checked. "
            "Name the unit that power and capacity have: W, kW, MW, GW, % or pu."
        )
    if factor is None:
        return
    most = _FARMS_MOST if records.turbine is None else _TURBINES_MOST
    for group in records.groups:
        size = factor * group.capacity
        if not _LEAST <= size <= most:
            yield (
                f"A capacity of {group.capacity:,g} {records.unit} is "
                f"{'small' if size < _LEAST else 'large'} for wind power: values above it are cut "
                "off, and the step is a share of it. Check --capacity against the unit of the "
                "column of power, and name that unit with --unit (kW, MW; pu for shares)."
            )
            return


def _speeds(records: Records) -> Iterator[str]:
    low, high = records.speed_range
    if low < 0 or high > _STORM:
        yield (
            f"Wind speeds go from {low:g} to {high:g}, and m/s are expected. Convert other units, "
            "and leave out codes for missing values, such as -999."
        )
    elif records.speed_mean > _WINDY:
        yield (
            f"Wind speeds are {records.speed_mean:.3g} on average, and m/s are expected: no "
            "site is so windy. Convert other units, such as km/h."
        )


def _step(guarantee: Guarantee) -> Iterator[str]:
    if guarantee.alpha < _LEAST_ALPHA:
        share = f"{show_exact(100 * guarantee.alpha)}%"
        yield (
            f"alpha is {share} of capacity: records that differ by more are hardly protected from "
            "being told apart. Give a step as large as what is to be hidden, as --alpha 15%."
        )


def _features(records: Records, features: Features) -> Iterator[str]:
    low, high = records.speed_range
    for column in {"speed": None, records.speed: None}:
        for problem in uncovered(features, column, low, high):
            yield (
                f"Public wind speeds go from {low:g} to {high:g}, but {problem}: the regression "
                "can't tell speeds beyond from each other. Give features that cover the speeds "
                "(--features), or leave them out."
            )


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
    "not a noisy copy of what was measured at its time.",
    "The model's power curve never falls as the wind gets stronger: storms, in which turbines "
    "stop, may look like full power.",
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
        found += _DRAWN
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
