"""The wind half of the report: released records, the regression on them, and their series.

`comparison` shows the same beside the real records, for the owner's report alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gridveil.privacy.mechanisms import Blocks
from gridveil.privacy.statement import STATEMENT_FILE
from gridveil.release.bundle import ANSWERS_FILE, DEVIATIONS_FILE
from gridveil.report.charts import Chart
from gridveil.report.page import Picture, Section, Snippet, Table, table_snippets
from gridveil.wind.clock import SECONDS, common_step, span
from gridveil.wind.records import Group, Records
from gridveil.wind.regression import Fit

Vector = NDArray[np.float64]

_DOTS = 4000
_BINS = 25
Made = Literal["restored", "noisy", "drawn"]
_MADE: dict[Made, str] = {
    "restored": "Their regression was made to agree with a noisy one of the real records.",
    "noisy": "They are real records with noise, and nothing else was done to them.",
    "drawn": "They were drawn from a model that was fitted to noisy sums over the real records.",
}
_RAMPS = np.linspace(-0.3, 0.3, 41)  # of capacity
_TURBINES = 20  # in the table; the file has them all


@dataclass(frozen=True, eq=False, repr=False)
class Sample:
    """Evenly spaced records of one turbine, and the regression's power by wind speed.

    Parameters
    ----------
    speed, power
        Of the records; power as a share of capacity.
    curve_speed, curve
        The regression; if it has other inputs than speed, its mean in each bin of speed.
    """

    speed: Vector
    power: Vector
    curve_speed: Vector
    curve: Vector


def take_sample(fit: Fit, blocks: Blocks, beta: Vector) -> Sample:
    """A sample of a turbine's records with weights ``beta`` of their regression."""
    step = max(fit.rows // _DOTS, 1)
    parts = []
    start = 0
    for speed, X, y in fit.speed_and_rows(blocks):
        some = slice(-start % step, None, step)
        parts.append(np.stack([speed[some], y[some], X[some] @ beta]))
        start += len(y)
    speed, power, fitted = np.hstack(parts)
    return Sample(speed, power, *_curve(fit, beta, speed, fitted))


def _curve(fit: Fit, beta: Vector, speed: Vector, fitted: Vector) -> tuple[Vector, Vector]:
    if set(fit.features.inputs) == {"speed"}:
        grid = np.linspace(speed.min(), speed.max(), 200)
        return grid, np.clip(fit.features({"speed": grid}) @ beta, 0.0, 1.0)
    edges = np.linspace(speed.min(), speed.max(), _BINS + 1)
    place = np.clip(np.digitize(speed, edges) - 1, 0, _BINS - 1)
    some = np.unique(place)
    middles = (edges[:-1] + edges[1:]) / 2
    means = [fitted[place == one].mean() for one in some]
    return middles[some], np.clip(means, 0.0, 1.0)


def wind_section(
    blocks: Sequence[Blocks], fits: Sequence[Fit], records: Records, *, made: Made
) -> Section:
    """Released records of one turbine, their regression, and a line for each turbine.

    The turbine is the one with the most records.

    Parameters
    ----------
    blocks
        Released power of each turbine, as shares of capacity.
    fits, records
        The public side of each turbine, and of all.
    made
        How the records came about.
    """
    largest = max(range(len(fits)), key=lambda place: fits[place].rows)
    fit = fits[largest]
    beta, loss = fit.ridge.weights_and_loss(fit.with_blocks(blocks[largest]))
    sample = take_sample(fit, blocks[largest], beta)
    several = len(fits) > 1
    of = f" of {fit.group.name}, one of {len(fits)} turbines" if several else ""
    shown = f", {len(sample.speed):,} of them shown" if len(sample.speed) < fit.rows else ""
    return Section(
        "The released records",
        f"{fit.rows:,} records{of}{shown}. {_MADE[made]}",
        (_scatter(sample, fit, records), _distribution([("released", sample)], fit, records)),
        (
            ("loss of the regression, root of the sum of squares", f"{loss:.4g}"),
            ("typical residual, of capacity", f"{loss / fit.rows**0.5:.4f}"),
            ("weights", ", ".join(f"{weight:.4g}" for weight in beta)),
        ),
        (_turbines(blocks, fits, records),) if several else (),
    )


def loading_snippets(files: Sequence[str], records: Records, *, drawn: bool) -> tuple[Snippet, ...]:
    """Code that loads the released records, their error bars and the noisy answers.

    Parameters
    ----------
    files, records
        The names of the released files, and the public side of the records.
    drawn
        Whether records were drawn from noisy sums; otherwise each has noise of its own.
    """
    power, decimal = records.power_column, records.style.decimal
    signs = {} if records.delimiter == "," else {"sep": records.delimiter}
    signs |= {} if decimal == "." else {"decimal": decimal}
    (table,) = table_snippets([name for name in files if name.startswith("records")], **signs)
    found = [table]
    if DEVIATIONS_FILE in files:
        code = (
            f"{table.code}\n"
            f"errors = pd.read_parquet({DEVIATIONS_FILE!r})  # rows as in the records\n"
            f"low = data[{power!r}] - 2 * errors['deviation']\n"
            f"high = data[{power!r}] + 2 * errors['deviation']"
        )
        found.append(Snippet("pandas, error bars", code))
    return (*found, _answers(drawn))


def _answers(drawn: bool) -> Snippet:
    """Code that makes something of the noisy answers: a mean, or the noise of each sum."""
    load = f"import pandas as pd\n\nanswers = pd.read_parquet({ANSWERS_FILE!r})\n"
    if drawn:
        code = (
            f"import json\n\n{load}"
            f"with open({STATEMENT_FILE!r}, encoding='utf-8') as file:\n"
            "    asked = json.load(file)['mechanisms']\n"
            "answers['query'] = [asked[place]['query'] for place in answers['mechanism']]\n"
            "sums = answers.dropna(subset='scale')  # the others are choices, and have no scale\n"
            "deviation = 2**0.5 * sums['scale']  # of each sum; its noise has mean 0"
        )
    else:
        code = (
            f"{load}"
            "noisy = answers[answers['mechanism'] == 0]  # every record, as a share of capacity\n"
            "mean = noisy['value'].mean()  # noise has mean 0\n"
            "deviation = (2 * noisy['scale'] ** 2).sum() ** 0.5 / len(noisy)"
        )
    return Snippet("pandas, the noisy answers", code)


def comparison(
    real: Sample, released: Sample, fit: Fit, records: Records, *, called: str
) -> Section:
    """Released records of one turbine beside those they were made from.

    For the owner alone, unless these are public: ``called`` says what they are.
    """
    chart = _axes(real, fit, records)
    size = fit.group.capacity
    chart.dots(real.speed, real.power * size, "c0")
    chart.dots(released.speed, released.power * size, "c1")
    chart.line(real.curve_speed, real.curve * size, "c3")
    chart.line(released.curve_speed, released.curve * size, "c2")
    scatter = Picture(
        chart.svg(),
        f"Scatter plot of {called} and released power over wind speed, with the regression on "
        "each.",
        legend=(
            ("c0", f"{called} records"),
            ("c1", "released records"),
            ("c3", f"regression on {called} records"),
            ("c2", "regression on released records"),
        ),
    )
    return Section(
        f"Records of {fit.group.name}",
        f"{called.capitalize()} and released records, and the regression on each.",
        (scatter, _distribution([(called, real), ("released", released)], fit, records)),
    )


def _axes(sample: Sample, fit: Fit, records: Records) -> Chart:
    return Chart(
        f"wind speed, {records.speed} (m/s)",
        f"power ({records.unit})",
        x_range=(float(sample.speed.min()), float(sample.speed.max())),
        y_range=(0.0, 1.03 * fit.group.capacity),
    )


def _scatter(sample: Sample, fit: Fit, records: Records) -> Picture:
    chart = _axes(sample, fit, records)
    chart.dots(sample.speed, sample.power * fit.group.capacity, "c1")
    chart.line(sample.curve_speed, sample.curve * fit.group.capacity, "c2")
    low, high = sample.speed.min(), sample.speed.max()
    return Picture(
        chart.svg(),
        f"Scatter plot of released power over wind speed from {low:.3g} to {high:.3g} metres a "
        f"second. The regression rises from {sample.curve[0] * fit.group.capacity:,.3g} to "
        f"{sample.curve.max() * fit.group.capacity:,.4g} {records.unit}.",
        "Released power over wind speed, and the regression on it.",
        legend=(("c1", "released records"), ("c2", "regression on them")),
    )


def _distribution(samples: Sequence[tuple[str, Sample]], fit: Fit, records: Records) -> Picture:
    edges = np.linspace(0.0, 1.0, _BINS + 1)
    shares = [100 * np.histogram(s.power, edges)[0] / len(s.power) for _, s in samples]
    chart = Chart(
        f"power ({records.unit})",
        "share of records (%)",
        x_range=(0.0, fit.group.capacity),
        y_range=(0.0, 1.05 * float(max(one.max() for one in shares))),
        height=260,
    )
    colours = ("c1",) if len(samples) == 1 else ("c0", "c1")
    for colour, heights in zip(colours, shares, strict=True):
        chart.steps(edges * fit.group.capacity, heights, colour)
    idle = 100 * float(np.mean(samples[-1][1].power < 0.04))
    return Picture(
        chart.svg(),
        f"Histogram of released power; {idle:.0f} percent of the records are below 4 percent of "
        "capacity.",
        "How often each power occurs.",
        legend=[
            (colour, f"{name} records") for colour, (name, _) in zip(colours, samples, strict=True)
        ],
    )


def _turbines(blocks: Sequence[Blocks], fits: Sequence[Fit], records: Records) -> Table:
    rows = []
    for fit, power in list(zip(fits, blocks, strict=True))[:_TURBINES]:
        mean = sum(float(block.sum()) for block in power()) / fit.rows
        size = f"{fit.group.capacity:,g} {records.unit}"
        rows.append((fit.group.name, f"{fit.rows:,}", size, f"{mean:.1%}"))
    rest = len(fits) - len(rows)
    caption = "Turbines; mean of the released power as a share of capacity"
    return Table(
        caption + (f" (the first {len(rows)}, {rest} more in the file)" if rest else ""),
        ("turbine", "records", "capacity", "released mean"),
        rows,
    )


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


def _week(times: Vector, power: Vector, records: Records) -> Picture:
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


def _ramps(times: Vector, power: Vector, group: Group, records: Records, step: int) -> Picture:
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
        f"Ramps over {span(step)}; the outer bins hold all beyond.",
        legend=(("c1", "released records"),),
    )


def _day(times: Vector, power: Vector, records: Records) -> Picture:
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
