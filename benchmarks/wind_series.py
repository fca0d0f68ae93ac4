"""What a release keeps of a wind farm's series: one table, beside what the prior alone would give.

    python benchmarks/wind_series.py SCADA.csv               real records, given by path
    python benchmarks/wind_series.py --simulated 50000       made-up records about a known curve
    options: --runs 20 --epsilon 1 --protect day (without times: record)
             --method synthetic --alpha 100%
             --speed Ws_avg --power P_avg --time Date_time --turbine Wind_turbine_name
             --capacity 2050 --days 180 (the farm's first days)
             --records 1000 (of one turbine, evenly spaced and without times; --timed: the first)

Figures are the mean over seeded runs, with the standard deviation over runs in brackets. The
control is the same method at an epsilon of 1e-6: what public priors say without any answer. A
figure that is no better than its control was not paid for by epsilon.

Curve: root mean square over wind speeds of the error of the mean power in bins of 0.5 m/s, weighted
by their records. Months: mean absolute error of a month's energy. Memory: the largest error of the
autocorrelation of residuals about that curve, lags 1 to 6. Ramps: spread of changes from record to
record, over the real one. Forecasts: error of a linear forecast trained on the first half as
released, tried on the real second half, over that of one trained on the real first half. Loss: of
the regression on bumps every 2.5 m/s. W1: mean distance of the sorted powers. Correlation of
turbines: that of residuals of two turbines at the same time, over the real one.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from gridveil import wind
from gridveil.wind import downstream as use
from gridveil.wind.downstream import Series, Vector

PRIOR = "1e-6"
NAMES = {
    "curve": "curve, rms, of capacity",
    "by_turbine": "curve by turbine, rms",
    "energy": "capacity factor, error",
    "months": "months, mean error",
    "memory": "memory, lags 1 to 6",
    "ramps": "ramps, spread ratio",
    "next": "forecast, one step",
    "hour": "forecast, six steps",
    "loss": "loss of the regression, error",
    "w1": "W1, of capacity",
    "together": "correlation of turbines, of real",
}
SIGNED = {"energy", "loss"}


def main() -> None:
    """Print the table."""
    given = _arguments()
    frame = _simulated(given.simulated) if given.simulated else some_of(read(given), given)
    records = records_of(frame)
    order = frame.sort_values(["turbine", "time" if "time" in frame else "row"], kind="stable")
    series, real = series_of(order)
    print(f"{len(real):,} records of {len(records.groups)} turbines, epsilon {given.epsilon} for a "
          f"{given.protect}, method {given.method}, {given.runs} runs")  # fmt: skip
    asked, seconds = _runs(records, series, real, given, given.epsilon)
    control, _ = _runs(records, series, real, given, PRIOR)
    print(f"{'':32}{'released':>22}{'prior alone':>22}")
    for name, words in NAMES.items():
        if name in asked:
            print(f"{words:32}{shown(name, asked[name]):>22}{shown(name, control[name]):>22}")
    print(f"{seconds:.1f} s of processor time for a run")


def records_of(frame: pd.DataFrame) -> wind.Records:
    """The records of a farm, with power as shares of capacity."""
    return wind.read_records(
        frame,
        speed="speed",
        power="power",
        capacity=dict.fromkeys(frame["turbine"].unique(), 1.0),
        turbine="turbine",
        time="time" if "time" in frame else None,
        key=None if "time" in frame else "row",
        name="benchmark",
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", nargs="?")
    parser.add_argument("--simulated", type=int, default=0)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--epsilon", default="1")
    parser.add_argument("--protect", help="by default a day, or a record if there are no times")
    parser.add_argument("--method", default="synthetic")
    parser.add_argument("--alpha", default=None)
    parser.add_argument("--speed", default="Ws_avg")
    parser.add_argument("--power", default="P_avg")
    parser.add_argument("--time", default="Date_time")
    parser.add_argument("--time-format", help="as pandas reads it")
    parser.add_argument("--turbine", default="Wind_turbine_name", help="'' if there is but one")
    parser.add_argument("--capacity", type=float, default=2050.0)
    parser.add_argument("--days", type=int, default=0)
    parser.add_argument("--records", type=int, default=0)
    parser.add_argument("--timed", action="store_true")
    given = parser.parse_args()
    timeless = given.simulated or (given.records and not given.timed)
    given.protect = given.protect or ("record" if timeless else "day")
    if bool(given.path) == bool(given.simulated):
        parser.error("give a file, or --simulated and a number of records")
    return given


def read(given: argparse.Namespace) -> pd.DataFrame:
    """Records of a farm from a CSV file, by turbine and time."""
    columns = {given.time: "time", given.speed: "speed", given.power: "power"}
    columns |= {given.turbine: "turbine"} if given.turbine else {}
    frame = pd.read_csv(given.path, usecols=list(columns), encoding_errors="replace")
    frame = frame.rename(columns=columns).dropna()
    frame = frame if given.turbine else frame.assign(turbine="A")
    frame["time"] = pd.to_datetime(frame["time"], utc=True, format=given.time_format)
    frame["power"] = np.clip(frame["power"] / given.capacity, 0, 1)
    return frame.sort_values(["turbine", "time"]).drop_duplicates(["turbine", "time"])


def some_of(frame: pd.DataFrame, given: argparse.Namespace) -> pd.DataFrame:
    """The first days of a farm, or some records of its first turbine."""
    if given.days:
        frame = frame[frame["time"] < frame["time"].min() + pd.Timedelta(days=given.days)]
    if given.records:
        own = frame[frame["turbine"] == frame["turbine"].min()]
        if given.timed:
            return own.head(given.records)
        own = own.iloc[np.linspace(0, len(own) - 1, given.records).astype(int)]
        frame = own.drop(columns="time").assign(row=np.arange(given.records))
    return frame


def _simulated(rows: int) -> pd.DataFrame:
    """One turbine, residuals of 10% of capacity at half power, no times."""
    draws = np.random.default_rng([2015, rows])  # not a seed of the noise
    speed = np.clip(draws.weibull(2.0, rows) * 9.0, 0, 25)
    curve = (1 + (2**2.5 - 1) * np.maximum(speed / 8.2, 1e-2) ** (-3.4 * 2.5)) ** (-1 / 2.5)
    spread = 0.1 * 2 * np.sqrt(curve * (1 - curve))
    power = np.clip(curve + spread * draws.standard_normal(rows), 0, 1)
    return pd.DataFrame({"turbine": "A", "row": np.arange(rows), "speed": speed, "power": power})


def series_of(frame: pd.DataFrame) -> tuple[Series, Vector]:
    """The public side of a table, and its power."""
    turbine = np.unique(frame["turbine"], return_inverse=True)[1].astype(np.int64)
    speed, power = frame["speed"].to_numpy(float), frame["power"].to_numpy(float)
    if "time" not in frame:
        return Series(turbine, None, speed), power
    moments = frame["time"].dt.tz_localize(None).to_numpy().astype("datetime64[s]")
    seconds = moments.astype(np.int64)
    step = int(np.median(np.diff(seconds)[np.diff(turbine) == 0]))
    return Series(turbine, seconds, speed, step), power


def _runs(
    records: wind.Records,
    series: Series,
    real: Vector,
    given: argparse.Namespace,
    epsilon: str,
) -> tuple[dict[str, list[float]], float]:
    found: dict[str, list[float]] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        planned = wind.plan(
            records,
            epsilon=epsilon,
            alpha=given.alpha,
            protect=given.protect,
            method=given.method,
        )
        spent = 0.0
        for seed in range(given.runs):
            before = time.process_time()
            made = planned.run(planned.study(seed))
            spent += time.process_time() - before
            released = np.concatenate(list(made.blocks()))
            for name, value in measure(series, real, released).items():
                found.setdefault(name, []).append(value)
    return found, spent / given.runs


def measure(series: Series, real: Vector, released: Vector) -> dict[str, float]:
    """Every figure of the table."""
    found = {
        "curve": use.curve_error(series.bins, real, released),
        "by_turbine": use.curve_error(series.by_turbine, real, released),
        "energy": float(released.sum() / real.sum() - 1),
        "w1": use.distance(real, released),
        "loss": _loss(series.speed, released) / _loss(series.speed, real) - 1,
    }
    if series.seconds is None:
        return found
    spreads = [float(np.std(use.ramps(series, power))) for power in (released, real)]
    apart = use.memory(series, released) - use.memory(series, real)
    skill = [
        use.forecast_error(series, released, real, steps)
        / use.forecast_error(series, real, real, steps)
        for steps in (1, 6)
    ]
    if len(np.unique(series.turbine)) > 1:
        found["together"] = use.together(series, released) / use.together(series, real)
    return {
        **found,
        "months": use.month_error(series, real, released),
        "memory": float(np.abs(apart).max()),
        "ramps": spreads[0] / spreads[1],
        "next": skill[0],
        "hour": skill[1],
    }


def _loss(speed: Vector, power: Vector) -> float:
    X = np.exp(-0.5 * ((speed[:, None] - np.arange(2.5, 25.1, 2.5)) / 2.5) ** 2)
    beta = np.linalg.solve(X.T @ X + 1e-3 * np.eye(X.shape[1]), X.T @ power)
    return float(np.linalg.norm(power - X @ beta))


def shown(name: str, values: list[float]) -> str:
    """A figure's mean and standard deviation over runs."""
    at: Callable[[Any], Any] = (lambda v: np.abs(v)) if name in SIGNED else (lambda v: v)
    mean, spread = float(np.mean(at(np.array(values)))), float(np.std(values))
    return f"{mean:.4f} ({spread:.4f})"


if __name__ == "__main__":
    main()
