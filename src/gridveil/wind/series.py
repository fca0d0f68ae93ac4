"""The released series in the report: a week of it, its ramps, and the shape of its day."""

from __future__ import annotations

import numpy as np

from gridveil.privacy.mechanisms import Blocks
from gridveil.report.charts import Chart
from gridveil.report.parts import Picture, Section
from gridveil.wind.clock import SECONDS, common_step
from gridveil.wind.records import Group, Records
from gridveil.wind.rows import Floats

_RAMPS = np.linspace(-0.3, 0.3, 41)  # of capacity


def series_section(group: Group, blocks: Blocks, records: Records) -> Section | None:
    """Pictures of one turbine's released series; None without times, or with a single one.

    Made from released power and public times alone.
    """
    times = group.times()
    if times is None or times[0] == times[-1]:
        return None
    power = np.concatenate(list(blocks())) * group.capacity
    pictures = [
        _week(times.astype(np.float64), power, records),
        _ramps(times.astype(np.float64), power, group, records, common_step([times])),
        _day(times.astype(np.float64), power, records),
    ]
    return Section(
        "The released series",
        f"{group.name}, by the time in '{records.time}' ({records.clock}).",
        tuple(pictures),
    )


def _week(times: Floats, power: Floats, records: Records) -> Picture:
    middle = times[len(times) // 2]
    some = (times >= middle) & (times < middle + SECONDS["week"])
    days = (times[some] - middle) / SECONDS["day"]
    chart = Chart(
        "days",
        f"power ({records.unit})",
        x_range=(0.0, 7.0),
        y_range=(0.0, 1.03 * max(float(power.max()), 1e-9)),
        height=260,
    )
    chart.line(days, power[some], "c1")
    return Picture(
        chart.svg(),
        f"Released power over a week, from {power[some].min():,.3g} to {power[some].max():,.4g} "
        f"{records.unit}.",
        "A week from the middle of the series.",
        legend=(("c1", "released power"),),
    )


def _ramps(times: Floats, power: Floats, group: Group, records: Records, step: int) -> Picture:
    next_to = np.diff(times) == step
    changes = np.diff(power)[next_to] / group.capacity
    counted = np.histogram(np.clip(changes, _RAMPS[0], _RAMPS[-1]), _RAMPS)[0]
    shares = 100 * counted / max(len(changes), 1)
    chart = Chart(
        "change from one record to the next (% of capacity)",
        "share of records (%)",
        x_range=(100 * float(_RAMPS[0]), 100 * float(_RAMPS[-1])),
        y_range=(0.0, 1.05 * max(float(shares.max()), 1e-9)),
        height=260,
    )
    chart.steps(100 * _RAMPS, shares, "c1")
    spread = float(np.std(changes)) if len(changes) else 0.0
    return Picture(
        chart.svg(),
        f"Histogram of ramps of released power; their standard deviation is {spread:.2%} of "
        "capacity.",
        f"Ramps over {step:,} seconds; the outer bins hold all beyond.",
        legend=(("c1", "released records"),),
    )


def _day(times: Floats, power: Floats, records: Records) -> Picture:
    hour = (times % SECONDS["day"] // SECONDS["hour"]).astype(np.int64)
    counts = np.bincount(hour, minlength=24)
    means = np.bincount(hour, power, minlength=24) / np.maximum(counts, 1)
    chart = Chart(
        f"hour of the day ({records.clock})",
        f"mean power ({records.unit})",
        x_range=(0.0, 24.0),
        y_range=(0.0, 1.1 * max(float(means.max()), 1e-9)),
        height=260,
    )
    chart.steps(np.arange(25.0), means, "c1")
    return Picture(
        chart.svg(),
        f"Mean released power by hour of the day, from {means[counts > 0].min():,.3g} to "
        f"{means.max():,.4g} {records.unit}.",
        "The shape of the day.",
        legend=(("c1", "released power"),),
    )
