"""Tuned beside WPO at many settings: is tuned ever worse?

    python benchmarks/wind_methods.py [--runs 8] [--rows 200 1000 5000 20000] [--timed no yes]

Made-up records of one turbine about a known curve: 10% of capacity away from it at half power, with
memory and with stops if they have times. For each number of records, step and epsilon: the mean
error of each method over seeded runs, the standard error of that mean in brackets, and a star at
tuned's if it is worse than WPO's by more than two standard errors of the difference. All figures
are errors, 0 being best; wind_series.py says what they are. RMSE is that of single records.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np
import pandas as pd
from scipy.signal import lfilter
from wind_series import measure

from gridveil import wind
from gridveil.wind.downstream import Series, Vector

METHODS = ("tuned", "wpo")
SETTINGS = (  # alpha, epsilon
    ("5%", "1"),
    ("15%", "1"),
    ("30%", "1"),
    ("100%", "1"),
    ("15%", "10"),
    ("100%", "1/144"),
)
AROUND_ONE = ("ramps", "next", "hour")
STEP = 600


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=8)
    parser.add_argument("--rows", type=int, nargs="+", default=[200, 1000, 5000, 20_000])
    parser.add_argument("--timed", nargs="+", default=["no", "yes"], choices=["no", "yes"])
    parser.add_argument("--residual", type=float, default=0.1)
    parser.add_argument("--nominal", type=float, default=None, help="of tuned, if not its own")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    worse = cells = 0
    for timed in (one == "yes" for one in given.timed):
        for rows in given.rows:
            frame = made_up(rows, timed=timed, residual=given.residual)
            for alpha, epsilon in SETTINGS:
                own = {} if given.nominal is None else {"nominal": given.nominal}
                found = {
                    name: study(frame, given.runs, alpha, epsilon, name, **own) for name in METHODS
                }
                times = "times" if timed else "no times"
                print(f"{rows:,} records, {times}, alpha {alpha}, epsilon {epsilon}")
                for figure in found["wpo"]:
                    shown, lost = _row(*(found[name][figure] for name in METHODS))
                    print(f"    {figure:12}{shown}", flush=True)
                    worse, cells = worse + lost, cells + 1
    print(f"tuned is worse in {worse} of {cells} figures")


def made_up(rows: int, *, timed: bool, residual: float) -> pd.DataFrame:
    """Records about a curve; with times also memory, and a stop of an hour every four days."""
    draws = np.random.default_rng([15, rows, timed])  # not a seed of the noise
    normal = _process(draws, rows, 30_000.0) if timed else draws.standard_normal(rows)
    speed = np.clip(7.5 + 3.2 * normal, 0, 25)
    curve = (1 + (2**2.5 - 1) * np.maximum(speed / 8.2, 1e-2) ** (-3.4 * 2.5)) ** (-1 / 2.5)
    away = draws.standard_normal(rows)
    if timed:
        away = 0.8 * _process(draws, rows, 7_000.0) + 0.6 * away
    power = np.clip(curve + residual * 2 * np.sqrt(curve * (1 - curve)) * away, 0, 1)
    frame = pd.DataFrame({"turbine": "A", "speed": speed, "power": power})
    if not timed:
        return frame.assign(row=np.arange(rows))
    frame.loc[np.arange(rows) % 576 < 6, "power"] = 0.0
    times = pd.Timestamp("2015-01-01") + pd.to_timedelta(np.arange(rows) * STEP, unit="s")
    return frame.assign(time=times)


def _process(draws: np.random.Generator, rows: int, memory: float) -> Vector:
    keep = np.exp(-STEP / memory)
    steps = draws.standard_normal(rows) * np.sqrt(1 - keep**2)
    steps[0] = draws.standard_normal()
    return np.asarray(lfilter([1.0], [1.0, -keep], steps))


def study(
    frame: pd.DataFrame, runs: int, alpha: str, epsilon: str, method: str, **options: Any
) -> dict[str, Vector]:
    """The errors of a method, a value for each run."""
    timed = "time" in frame
    records = wind.read_records(
        frame,
        speed="speed",
        power="power",
        capacity=1.0,
        turbine="turbine",
        **{"time": "time"} if timed else {"key": "row"},
        name="benchmark",
    )
    seconds = np.arange(len(frame), dtype=np.int64) * STEP + 1_420_070_400
    speed, power = frame["speed"].to_numpy(), frame["power"].to_numpy()
    who = np.zeros(len(frame), dtype=np.int64)
    series = Series(who, seconds if timed else None, speed, STEP)
    options = options if method == "tuned" else {}
    plan = wind.plan(records, epsilon=epsilon, alpha=alpha, method=method, **options)
    found: dict[str, list[float]] = {}
    for seed in range(runs):
        released = np.concatenate(list(plan.run(plan.study(seed)).blocks()))
        figures = measure(series, power, released)
        figures["rmse"] = float(np.sqrt(np.mean((released - power) ** 2)))
        for name, value in figures.items():
            if name != "by_turbine":
                error = abs(value - 1) if name in AROUND_ONE else abs(value)
                found.setdefault(name, []).append(error)
    return {name: np.array(values) for name, values in found.items()}


def _row(tuned: Vector, wpo: Vector) -> tuple[str, bool]:
    means = [float(one.mean()) for one in (tuned, wpo)]
    errors = [float(one.std(ddof=1) / np.sqrt(len(one))) for one in (tuned, wpo)]
    lost = means[0] - means[1] > 2 * float(np.hypot(*errors))
    texts = [f"{mean:9.4f} ({error:.4f})" for mean, error in zip(means, errors, strict=True)]
    return f"tuned {texts[0]}{'*' if lost else ' '}   wpo {texts[1]}", lost


if __name__ == "__main__":
    main()
