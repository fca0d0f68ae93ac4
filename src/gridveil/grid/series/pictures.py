"""A year of loads at a glance: duration curve, shapes of day and week, days of the year.

Drawn for one series (the report: released values alone) or for two beside each other (the owner's
evaluation).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gridveil.grid.series.clock import Clock
from gridveil.grid.series.hours import Served
from gridveil.report.charts import Chart
from gridveil.report.parts import Picture, Section

Floats = NDArray[np.float64]

_POINTS = 400  # of a line; more can't be seen
_WEEK = 7


@dataclass(frozen=True, eq=False)
class Drawn:
    """One series in a picture: its name, its colour, and the total of every slot (MW)."""

    name: str
    colour: str
    total: Floats


def series_sections(clock: Clock, values: Floats, served: Served) -> tuple[Section, ...]:
    """Pictures and figures of a released series."""
    total = values.sum(axis=1)
    drawn = [Drawn("released", "c1", total)]
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
            warnings=served.doubts(),
        ),
    )


def year_pictures(clock: Clock, drawn: Sequence[Drawn]) -> list[Picture]:
    """The pictures of one series, or of several beside each other."""
    return [
        _duration(clock, drawn),
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
    ]


def _duration(clock: Clock, drawn: Sequence[Drawn]) -> Picture:
    share = np.linspace(0.0, 1.0, _POINTS)
    curves = [np.quantile(one.total, 1 - share) for one in drawn]
    chart = Chart(
        "share of the time (%)",
        "total load (MW)",
        x_range=(0.0, 100.0),
        y_range=_range(curves),
        height=300,
    )
    for one, curve in zip(drawn, curves, strict=True):
        chart.line(100 * share, curve, one.colour)
    words = "; ".join(
        f"{one.name} from {curve[0]:,.4g} down to {curve[-1]:,.4g} MW"
        for one, curve in zip(drawn, curves, strict=True)
    )
    return Picture(
        chart.svg(),
        f"Load duration curve: {words}.",
        "Load duration curve: for how much of the time the total is at least so high.",
        legend=_legend(drawn),
    )


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
        "highest total of the day (MW)",
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
    low = min(0.0, *(float(curve.min()) for curve in curves))
    high = max(float(curve.max()) for curve in curves)
    return low, 1.05 * max(high, 1e-9)


def _legend(drawn: Sequence[Drawn]) -> tuple[tuple[str, str], ...]:
    return tuple((one.colour, one.name) for one in drawn)
