"""Downstream figures of a release beside the real ones: a table and pictures for the owner alone.

The third column is the control: the same release at an epsilon of a millionth, which says what
public priors alone would give. A figure that is no better than its control was not paid for.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from gridveil.errors import NotPrivateWarning
from gridveil.privacy.mechanisms import Blocks
from gridveil.report.charts import Chart
from gridveil.report.page import Picture, Section, Table
from gridveil.wind.clock import common_step, span
from gridveil.wind.downstream import (
    LAGS,
    Series,
    Vector,
    bin_means,
    curve_error,
    distance,
    forecast_error,
    memory,
    month_error,
    persistence_error,
    ramps,
    together,
)
from gridveil.wind.features import Features
from gridveil.wind.records import Records
from gridveil.wind.release import plan

PRIOR = "1e-6"
_BARE = ("wpo", "laplace")  # methods without priors: at this epsilon they release noise
_FULL = 0.99  # of capacity
_RAMPS = np.linspace(-0.3, 0.3, 41)
_LAGS = range(1, 37)
_MONTHS = 36  # in the table


@dataclass(frozen=True)
class Figure:
    """One row of the table; None for what there is not."""

    name: str
    real: float | None
    released: float | None
    prior: float | None

    def texts(self) -> tuple[str, ...]:
        """The row as it is shown."""
        return (self.name, *(_shown(one) for one in (self.real, self.released, self.prior)))


COLUMNS = ("", "real", "released", "prior alone")


@dataclass(frozen=True, eq=False, repr=False)
class Downstream:
    """What recipients would find with real, released and prior-only records.

    Parameters
    ----------
    figures
        The table.
    section
        Table and pictures for the owner's report.
    """

    figures: tuple[Figure, ...]
    section: Section


def series_of(records: Records) -> Series:
    """The public side of records, in the released order."""
    turbine = np.repeat(np.arange(len(records.groups)), [group.rows for group in records.groups])
    blocks = [block["speed"] for group in records.groups for block in group.columns()()]
    times = [one for one in (group.times() for group in records.groups) if one is not None]
    if not any(len(one) and one[0] != one[-1] for one in times):
        return Series(turbine, None, np.concatenate(blocks))
    return Series(turbine, np.concatenate(times), np.concatenate(blocks), common_step(times))


def prior_only(
    records: Records, method: str, *, alpha: str, protect: str, features: Features
) -> Vector | None:
    """Power that the method releases at an epsilon of a millionth; None if it has no priors."""
    if method in _BARE:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPrivateWarning)
        planned = plan(
            records, epsilon=PRIOR, alpha=alpha, protect=protect, method=method, features=features
        )
        made = planned.run(planned.study(0))
    return np.concatenate(list(made.blocks()))


def look_downstream(
    records: Records, real: Sequence[Blocks], released: Sequence[Blocks], prior: Vector | None
) -> Downstream:
    """Compare what recipients would find.

    Parameters
    ----------
    records
        The real records.
    real, released
        Power of each turbine as shares of capacity, in the same order.
    prior
        That of the control, of all turbines.
    """
    series = series_of(records)
    powers = [np.concatenate([b for part in parts for b in part()]) for parts in (real, released)]
    figures = _figures(series, powers[0], powers[1], prior, [g.name for g in records.groups])
    pictures = [_curves(series, *powers), _histogram(*powers)]
    tables = [Table("What recipients find", COLUMNS, [one.texts() for one in figures])]
    if series.seconds is not None:
        pictures += [_months(series, *powers), _memories(series, *powers), _ramps(series, *powers)]
        tables.append(_month_table(series, *powers))
    section = Section(
        "What recipients find",
        "Shares of capacity, but for errors of energy, correlations and counts. Forecasts are "
        "trained on the first half of the records in their column, and tried on the real second "
        f"half. The prior alone is the same method at an epsilon of {PRIOR}: what is no better "
        "than it was not paid for.",
        tuple(pictures),
        tables=tuple(tables),
    )
    return Downstream(tuple(figures), section)


def _figures(
    series: Series, real: Vector, released: Vector, prior: Vector | None, names: Sequence[str]
) -> list[Figure]:
    found: list[Figure] = []

    def same(name: str, figure: Callable[[Vector], float], *, error: bool = False) -> None:
        # An error has no real value beside it.
        powers = (None if error else real, released, prior)
        found.append(Figure(name, *(None if power is None else figure(power) for power in powers)))

    off = partial(same, error=True)
    off("curve in bins of 0.5 m/s, rms error", lambda p: curve_error(series.bins, real, p))
    if len(names) > 1:
        own = series.by_turbine
        off("curve of each turbine, rms error", lambda p: curve_error(own, real, p))
    same("capacity factor", lambda p: float(p.mean()))
    if len(names) > 1:
        for at, name in enumerate(names):
            same(f"capacity factor, {name}", partial(_factor, series, at))
    off("distribution of power, mean distance", lambda p: distance(real, p))
    same("share of records at 0", lambda p: float(np.mean(p < 1e-6)))
    same("share of records at full power", lambda p: float(np.mean(p > _FULL)))
    if series.seconds is None:
        return found
    off("energy of a month, mean error", lambda p: month_error(series, real, p))
    for lag in (1, LAGS):
        same(f"autocorrelation, lag {lag}", partial(_memory_at, series, lag))
    same("ramps, standard deviation", lambda p: float(np.std(ramps(series, p))))
    if len(names) > 1:
        same("correlation of turbines", partial(together, series))
    for steps in (1, LAGS):
        word = "step" if steps == 1 else "steps"
        same(f"forecast {steps} {word} ahead, error", partial(_forecast, series, steps, real))
        still = persistence_error(series, real, steps)
        found.append(Figure(f"the same by persistence, {steps} {word}", still, None, None))
    return found


def _memory_at(series: Series, lag: int, power: Vector) -> float:
    return float(memory(series, power, [lag])[0])


def _factor(series: Series, turbine: int, power: Vector) -> float:
    return float(power[series.turbine == turbine].mean())


def _forecast(series: Series, steps: int, real: Vector, power: Vector) -> float:
    return forecast_error(series, power, real, steps)


def _shown(value: float | None) -> str:
    return "" if value is None or math.isnan(value) else f"{value:.4f}"


def _legend() -> tuple[tuple[str, str], ...]:
    return ("c0", "real records"), ("c1", "released records")


def _curves(series: Series, real: Vector, released: Vector) -> Picture:
    counts = np.bincount(series.bins)
    some = np.flatnonzero(counts > 0)
    middles = (some + 0.5) / 2
    chart = Chart(
        "wind speed (m/s)",
        "mean power (of capacity)",
        x_range=(0.0, float(middles.max())),
        y_range=(0.0, 1.05),
    )
    for power, colour in ((real, "c0"), (released, "c1")):
        chart.line(middles, bin_means(series.bins, power)[some], colour)
    apart = curve_error(series.bins, real, released)
    return Picture(
        chart.svg(),
        f"Mean power in bins of wind speed of real and released records; they differ by "
        f"{apart:.2%} of capacity.",
        "Power curves in bins of 0.5 m/s, all turbines.",
        legend=_legend(),
    )


def _histogram(real: Vector, released: Vector) -> Picture:
    edges = np.linspace(0.0, 1.0, 41)
    return _steps(
        edges,
        [100 * np.histogram(power, edges)[0] / len(power) for power in (real, released)],
        "power (of capacity)",
        "share of records (%)",
        "How often each power occurs, all turbines.",
    )


def _months(series: Series, real: Vector, released: Vector) -> Picture:
    counts = np.maximum(np.bincount(series.months), 1)
    means = [100 * np.bincount(series.months, power) / counts for power in (real, released)]
    return _steps(
        np.arange(len(counts) + 1.0),
        means,
        f"months from {series.month_name(0)}",
        "capacity factor (%)",
        "Capacity factor by month, all turbines.",
    )


def _ramps(series: Series, real: Vector, released: Vector) -> Picture:
    changes = [np.clip(ramps(series, p), _RAMPS[0], _RAMPS[-1]) for p in (real, released)]
    shares = [100 * np.histogram(one, _RAMPS)[0] / max(len(one), 1) for one in changes]
    return _steps(
        100 * _RAMPS,
        shares,
        "change from one record to the next (% of capacity)",
        "share of records (%)",
        f"Ramps over {span(series.step)}; the outer bins hold all beyond.",
    )


def _steps(edges: Vector, heights: Sequence[Vector], x: str, y: str, caption: str) -> Picture:
    top = max(float(one.max()) for one in heights)
    chart = Chart(
        x,
        y,
        x_range=(float(edges[0]), float(edges[-1])),
        y_range=(0.0, 1.05 * max(top, 1e-9)),
        height=260,
    )
    for values, colour in zip(heights, ("c0", "c1"), strict=True):
        chart.steps(edges, values, colour)
    return Picture(chart.svg(), f"{caption} Real and released.", caption, legend=_legend())


def _memories(series: Series, real: Vector, released: Vector) -> Picture:
    both = [np.nan_to_num(memory(series, power, _LAGS)) for power in (real, released)]
    chart = Chart(
        f"lag (steps of {series.step:,} seconds)",
        "autocorrelation",
        x_range=(0.0, float(_LAGS[-1])),
        y_range=(min(0.0, float(min(one.min() for one in both))), 1.0),
        height=260,
    )
    for values, colour in zip(both, ("c0", "c1"), strict=True):
        chart.line(np.array(_LAGS, dtype=float), values, colour)
    return Picture(
        chart.svg(),
        f"Autocorrelation by lag; at lag 1 real {both[0][0]:.2f}, released {both[1][0]:.2f}.",
        "Autocorrelation of what power is off its curve.",
        legend=_legend(),
    )


def _month_table(series: Series, real: Vector, released: Vector) -> Table:
    counts = np.bincount(series.months)
    sums = [np.bincount(series.months, power) for power in (real, released)]
    rows = []
    for month in np.flatnonzero(counts)[:_MONTHS]:
        means = [one[month] / counts[month] for one in sums]
        error = f"{means[1] / means[0] - 1:+.1%}" if means[0] > 0 else ""
        name = series.month_name(int(month))
        rows.append((name, f"{counts[month]:,}", *(f"{one:.4f}" for one in means), error))
    rest = len(np.flatnonzero(counts)) - len(rows)
    caption = "Capacity factor by month" + (f" (the first {_MONTHS}, {rest} more)" if rest else "")
    return Table(caption, ("month", "records", "real", "released", "error"), rows)
