"""Pictures of a load series: total, shapes of day and week, peaks, energy, cost and congestion.

Drawn for one series (the report: released values alone) or for two side by side (the owner's
evaluation).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gridveil.grid.opf.engine import Solutions
from gridveil.grid.series.clock import Clock
from gridveil.grid.series.serve_hours import Served
from gridveil.report.charts import Chart, log_range
from gridveil.report.page import Picture, Section

Floats = NDArray[np.float64]

_POINTS = 400  # per curve; more can't be seen
_WEEK = 7


@dataclass(frozen=True, eq=False)
class Drawn:
    """One series in a picture.

    Parameters
    ----------
    name, colour
        Its name in the legend, and the class of its colour.
    values
        The load of every slot, ``(slots, loads)``, MW.
    solved
        The dispatch of every slot with prices of lines; None if it was not solved.
    """

    name: str
    colour: str
    values: Floats
    solved: Solutions | None = None

    @cached_property
    def total(self) -> Floats:
        """The total of every slot, MW."""
        return np.asarray(self.values.sum(axis=1))


def series_sections(
    clock: Clock, values: Floats, served: Served, rebuilt: Sequence[str]
) -> tuple[Section, ...]:
    """Make the report's section with pictures and figures of a released series."""
    drawn = [Drawn("released", "c1", values, served.solved)]
    total = drawn[0].total
    moved = int(served.moved.sum())
    return (
        Section(
            "The released loads",
            f"{values.shape[1]:,} loads over {clock.days:,} days, {clock.slots} values a day "
            f"(times: {clock.zone}). Values between the sums that were asked for are rebuilt.",
            pictures=year_pictures(clock, drawn),
            figures=(
                ("highest total", f"{total.max():,.1f} MW"),
                ("lowest total", f"{total.min():,.1f} MW"),
                ("mean total", f"{total.mean():,.1f} MW"),
                ("energy", f"{total.sum() * 24 / clock.slots / 1000:,.1f} GWh"),
                ("hours moved so that they can be served", f"{moved:,}"),
            ),
            warnings=[*served.doubts(), *rebuilt],
        ),
    )


def year_pictures(clock: Clock, drawn: Sequence[Drawn]) -> list[Picture]:
    """Draw the pictures of one series, or of several side by side."""
    return [
        _duration(
            drawn,
            [one.total for one in drawn],
            "total load (MW)",
            "Load duration curve: for how much of the time the total is at least so high.",
        ),
        _peak_week(clock, drawn),
        _shape(
            clock,
            drawn,
            24.0,
            "hour of the day",
            "Mean day, from Monday to Friday.",
            lambda total: _workday(clock, total),
        ),
        _shape(
            clock,
            drawn,
            7.0,
            "days from Monday",
            "Mean week.",
            lambda total: _mean_week(clock, total),
        ),
        _days(clock, drawn),
        _energy(clock, drawn),
        *_operation(clock, drawn),
    ]


def _operation(clock: Clock, drawn: Sequence[Drawn]) -> list[Picture]:
    """Draw costs and congestion, if every hour was solved."""
    solved = [one.solved for one in drawn if one.solved is not None]
    costs = [one.cost[np.isfinite(one.cost)] / 1000 for one in solved]
    if len(solved) < len(drawn) or not all(len(one) for one in costs):
        return []
    cost = _duration(
        drawn,
        costs,
        "cost of an hour (1,000 $)",
        "Cost duration curve: for how much of the time an hour's optimal dispatch costs at least "
        "so much.",
    )
    return [cost, _congestion(clock, drawn, solved)]


def _congestion(clock: Clock, drawn: Sequence[Drawn], solved: Sequence[Solutions]) -> Picture:
    full = [one.congested.any(axis=1).reshape(clock.days, clock.slots) for one in solved]
    shares = [100 * one.mean(axis=0) for one in full]
    chart = Chart(
        f"hour of the day ({clock.zone})",
        "congested days (%)",
        x_range=(0.0, 24.0),
        y_range=(0.0, 100.0),
        height=260,
    )
    for one, share in zip(drawn, shares, strict=True):
        chart.line(24 * (np.arange(clock.slots) + 0.5) / clock.slots, share, one.colour)
    hours = "; ".join(
        f"{one.name} {found.sum() * 24 / clock.slots:,.0f} hours"
        for one, found in zip(drawn, full, strict=True)
    )
    caption = "On how many days some line is full, by the hour of the day."
    return Picture(chart.svg(), f"Congestion: {hours}.", caption, legend=_legend(drawn))


def _energy(clock: Clock, drawn: Sequence[Drawn]) -> Picture:
    sums = [one.values.sum(axis=0) * 24 / clock.slots / 1000 for one in drawn]
    order = np.argsort(-sums[0], kind="stable")
    used = order[np.any([one[order] != 0 for one in sums], axis=0)]
    found = [one[used] for one in sums]
    log = log_range(*found)
    chart = Chart(
        "load, from the largest to the smallest",
        "energy (GWh)",
        x_range=(0.0, float(len(used) + 1)),
        y_range=log or _range(found),
        log_y=log is not None,
        height=260,
    )
    for one, energy in zip(drawn, found, strict=True):
        chart.dots(1 + np.arange(len(used)), energy, one.colour, size=5.0)
    words = "; ".join(
        f"{one.name} from {energy.max():,.4g} to {energy.min():,.4g} GWh"
        for one, energy in zip(drawn, found, strict=True)
    )
    caption = "Energy of every load over all days."
    return Picture(chart.svg(), f"Energy by load: {words}.", caption, legend=_legend(drawn))


def _peak_week(clock: Clock, drawn: Sequence[Drawn]) -> Picture:
    """Draw seven days around the highest total of the first series, slot by slot."""
    day = int(drawn[0].total.argmax()) // clock.slots
    first = min(max(day - _WEEK // 2, 0), max(clock.days - _WEEK, 0))
    last = min(first + _WEEK, clock.days)
    some = slice(first * clock.slots, last * clock.slots)
    curves = [one.total[some] for one in drawn]
    chart = Chart(
        "day of the series",
        "total load (MW)",
        x_range=(float(first), float(last)),
        y_range=_range(curves),
        height=260,
    )
    for one, curve in zip(drawn, curves, strict=True):
        chart.line(first + (np.arange(len(curve)) + 0.5) / clock.slots, curve, one.colour)
    words = "; ".join(
        f"{one.name} up to {curve.max():,.4g} MW" for one, curve in zip(drawn, curves, strict=True)
    )
    caption = (
        f"The total hour by hour in the week of the highest total of the {drawn[0].name} loads."
    )
    return Picture(chart.svg(), f"Week of the peak: {words}.", caption, legend=_legend(drawn))


def _duration(
    drawn: Sequence[Drawn], values: Sequence[Floats], label: str, caption: str
) -> Picture:
    share = np.linspace(0.0, 1.0, _POINTS)
    curves = [np.quantile(one, 1 - share) for one in values]
    chart = Chart(
        "share of the time (%)",
        label,
        x_range=(0.0, 100.0),
        y_range=_range(curves),
        height=300,
    )
    for one, curve in zip(drawn, curves, strict=True):
        chart.line(100 * share, curve, one.colour)
    words = "; ".join(
        f"{one.name} from {curve[0]:,.4g} down to {curve[-1]:,.4g}"
        for one, curve in zip(drawn, curves, strict=True)
    )
    named = caption.partition(":")[0]
    return Picture(chart.svg(), f"{named}, {label}: {words}.", caption, legend=_legend(drawn))


def _shape(
    clock: Clock,
    drawn: Sequence[Drawn],
    end: float,
    label: str,
    caption: str,
    mean: Callable[[Floats], Floats],
) -> Picture:
    curves = [mean(one.total) for one in drawn]
    chart = Chart(
        f"{label} ({clock.zone})",
        "mean total load (MW)",
        x_range=(0.0, end),
        y_range=_range(curves),
        height=260,
    )
    for one, curve in zip(drawn, curves, strict=True):
        places = end * (np.arange(len(curve)) + 0.5) / len(curve)
        chart.line(places, curve, one.colour)
    words = "; ".join(
        f"{one.name} between {np.nanmin(curve):,.4g} and {np.nanmax(curve):,.4g} MW"
        for one, curve in zip(drawn, curves, strict=True)
    )
    return Picture(chart.svg(), f"{caption[:-1]}: {words}.", caption, legend=_legend(drawn))


def _days(clock: Clock, drawn: Sequence[Drawn]) -> Picture:
    highest = [one.total.reshape(clock.days, clock.slots).max(axis=1) for one in drawn]
    chart = Chart(
        "day of the series",
        "daily peak (MW)",
        x_range=(0.0, float(clock.days)),
        y_range=_range(highest),
        height=260,
    )
    for one, peaks in zip(drawn, highest, strict=True):
        chart.line(np.arange(clock.days) + 0.5, peaks, one.colour)
    words = "; ".join(
        f"{one.name} up to {peaks.max():,.4g} MW on day {int(peaks.argmax()) + 1}"
        for one, peaks in zip(drawn, highest, strict=True)
    )
    return Picture(
        chart.svg(), f"Peaks of days: {words}.", "The peak of every day.", legend=_legend(drawn)
    )


def _workday(clock: Clock, total: Floats) -> Floats:
    some = clock.kind == 0
    return np.asarray(total.reshape(clock.days, clock.slots)[some if some.any() else ~some].mean(0))


def _mean_week(clock: Clock, total: Floats) -> Floats:
    days = total.reshape(clock.days, clock.slots)
    means = [
        days[clock.weekday == day].mean(axis=0)
        if (clock.weekday == day).any()
        else np.full(clock.slots, days.mean())
        for day in range(_WEEK)
    ]
    return np.concatenate(means)


def _range(curves: Sequence[Floats]) -> tuple[float, float]:
    """Choose the y axis: from 0, unless the curves are far above it and would look alike."""
    low = min(float(curve.min()) for curve in curves)
    high = max(float(curve.max()) for curve in curves)
    room = 0.1 * max(high - low, 1e-3 * abs(high), 1e-9)
    return low - room if low < 0 or low > high / 2 else 0.0, high + room


def _legend(drawn: Sequence[Drawn]) -> tuple[tuple[str, str], ...]:
    return tuple((one.colour, one.name) for one in drawn)
