"""What a release keeps of a wind farm's series: one table, beside what the prior alone would give.

    python benchmarks/wind_series.py SCADA.csv               real records, given by path
    python benchmarks/wind_series.py --simulated 50000       made-up records about a known curve
    options: --runs 20 --epsilon 1 --protect day --method synthetic --alpha 100%
             --speed Ws_avg --power P_avg --time Date_time --turbine Wind_turbine_name
             --capacity 2050

Figures are the mean over seeded runs, with the standard deviation over runs in brackets. The
control is the same method at an epsilon of 1e-6: what public priors say without any answer. A
figure that is no better than its control was not paid for by epsilon.

Curve: root mean square over wind speeds of the error of the mean power in bins of 0.5 m/s, weighted
by their records. Months: mean absolute error of a month's energy. Memory: the largest error of the
autocorrelation of residuals about that curve, lags 1 to 6. Ramps: spread of changes from record to
record, over the real one. Forecasts: error of a linear forecast trained on the first half as
released, tried on the real second half, over that of one trained on the real first half. Loss: of
the regression on bumps every 2.5 m/s. W1: mean distance of the sorted powers.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gridveil import wind

Vector = NDArray[np.float64]

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
}
SIGNED = {"energy", "loss"}


@dataclass(frozen=True)
class Series:
    """Records in the released order: turbine, seconds since 1970, wind speed, share of capacity."""

    turbine: NDArray[np.int64]
    seconds: NDArray[np.int64]
    speed: Vector
    power: Vector
    timed: bool

    def pairs(self, steps: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Records, and those so many steps after them."""
        key = self.turbine * 10**12 + self.seconds
        step = int(np.median(np.diff(self.seconds)[np.diff(self.turbine) == 0]))
        after = np.minimum(np.searchsorted(key, key + steps * step), len(key) - 1)
        found = key[after] == key + steps * step
        return np.flatnonzero(found), after[found]


def main() -> None:
    """Print the table."""
    given = _arguments()
    frame = _simulated(given.simulated) if given.simulated else _read(given)
    names = sorted(frame["turbine"].unique())
    records = wind.read_records(
        frame,
        speed="speed",
        power="power",
        capacity=dict.fromkeys(names, 1.0),
        turbine="turbine",
        time="time" if "time" in frame else None,
        key=None if "time" in frame else "row",
        name="benchmark",
    )
    order = frame.sort_values(["turbine", "time" if "time" in frame else "row"], kind="stable")
    real = _series(order)
    print(f"{len(real.power):,} records of {len(names)} turbines, epsilon {given.epsilon} for a "
          f"{given.protect}, method {given.method}, {given.runs} runs")  # fmt: skip
    asked, seconds = _runs(records, real, given, given.epsilon)
    control, _ = _runs(records, real, given, PRIOR)
    print(f"{'':32}{'released':>22}{'prior alone':>22}")
    for name, words in NAMES.items():
        if name in asked:
            print(f"{words:32}{_shown(name, asked[name]):>22}{_shown(name, control[name]):>22}")
    print(f"{seconds:.1f} s of processor time for a run")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", nargs="?")
    parser.add_argument("--simulated", type=int, default=0)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--epsilon", default="1")
    parser.add_argument("--protect", default="day")
    parser.add_argument("--method", default="synthetic")
    parser.add_argument("--alpha", default=None)
    parser.add_argument("--speed", default="Ws_avg")
    parser.add_argument("--power", default="P_avg")
    parser.add_argument("--time", default="Date_time")
    parser.add_argument("--turbine", default="Wind_turbine_name")
    parser.add_argument("--capacity", type=float, default=2050.0)
    given = parser.parse_args()
    if bool(given.path) == bool(given.simulated):
        parser.error("give a file, or --simulated and a number of records")
    return given


def _read(given: argparse.Namespace) -> pd.DataFrame:
    columns = {given.turbine: "turbine", given.time: "time"}
    columns |= {given.speed: "speed", given.power: "power"}
    frame = pd.read_csv(given.path, usecols=list(columns)).rename(columns=columns).dropna()
    frame["time"] = pd.to_datetime(frame["time"], utc=True)
    frame["power"] = np.clip(frame["power"] / given.capacity, 0, 1)
    return frame.sort_values(["turbine", "time"]).drop_duplicates(["turbine", "time"])


def _simulated(rows: int) -> pd.DataFrame:
    """One turbine, residuals of 10% of capacity at half power, no times."""
    draws = np.random.default_rng([2015, rows])  # not a seed of the noise
    speed = np.clip(draws.weibull(2.0, rows) * 9.0, 0, 25)
    curve = (1 + (2**2.5 - 1) * np.maximum(speed / 8.2, 1e-2) ** (-3.4 * 2.5)) ** (-1 / 2.5)
    spread = 0.1 * 2 * np.sqrt(curve * (1 - curve))
    power = np.clip(curve + spread * draws.standard_normal(rows), 0, 1)
    return pd.DataFrame({"turbine": "A", "row": np.arange(rows), "speed": speed, "power": power})


def _series(frame: pd.DataFrame) -> Series:
    turbine = np.unique(frame["turbine"], return_inverse=True)[1].astype(np.int64)
    timed = "time" in frame
    moments = (
        frame["time"].dt.tz_localize(None).to_numpy().astype("datetime64[s]").astype(np.int64)
        if timed
        else frame["row"].to_numpy()
    )
    speed, power = frame["speed"].to_numpy(float), frame["power"].to_numpy(float)
    return Series(turbine, moments, speed, power, timed)


def _runs(
    records: wind.Records, real: Series, given: argparse.Namespace, epsilon: str
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
            for name, value in measure(real, np.concatenate(list(made.blocks()))).items():
                found.setdefault(name, []).append(value)
    return found, spent / given.runs


def measure(real: Series, released: Vector) -> dict[str, float]:
    """Every figure of the table."""
    bins = (real.speed * 2).astype(np.int64)
    own = real.turbine * (bins.max() + 1) + bins
    found = {
        "curve": _curve_error(bins, real.power, released),
        "by_turbine": _curve_error(own, real.power, released),
        "energy": float(released.sum() / real.power.sum() - 1),
        "w1": float(np.abs(np.sort(released) - np.sort(real.power)).mean()),
        "loss": _loss(real.speed, released) / _loss(real.speed, real.power) - 1,
    }
    if not real.timed:
        return found
    month = real.seconds.astype("datetime64[s]").astype("datetime64[M]").astype(np.int64)
    month -= month.min()
    whole = np.bincount(month) > 0.25 * np.bincount(month).max()
    energies = [np.bincount(month, power)[whole] for power in (released, real.power)]
    here, after = real.pairs(1)
    ramps = [float(np.std(power[after] - power[here])) for power in (released, real.power)]
    return {
        **found,
        "months": float(np.abs(energies[0] / energies[1] - 1).mean()),
        "memory": _memory_error(real, bins, released),
        "ramps": ramps[0] / ramps[1],
        "next": _forecast(real, released, 1),
        "hour": _forecast(real, released, 6),
    }


def _means(bins: NDArray[np.int64], power: Vector) -> Vector:
    return np.asarray(np.bincount(bins, power) / np.maximum(np.bincount(bins), 1))


def _curve_error(bins: NDArray[np.int64], real: Vector, released: Vector) -> float:
    counts = np.bincount(bins)
    apart = _means(bins, released) - _means(bins, real)
    return float(np.sqrt(counts @ apart**2 / counts.sum()))


def _memory_error(real: Series, bins: NDArray[np.int64], released: Vector) -> float:
    worst = 0.0
    for lag in range(1, 7):
        here, after = real.pairs(lag)
        both = []
        for power in (released, real.power):
            residual = power - _means(bins, power)[bins]
            both.append(np.corrcoef(residual[here], residual[after])[0, 1])
        worst = max(worst, abs(both[0] - both[1]))
    return float(worst)


def _forecast(real: Series, released: Vector, steps: int) -> float:
    here, after = real.pairs(steps)
    before, now = real.pairs(1)
    last = np.full(len(real.power), -1)
    last[now] = before
    known = last[here] >= 0
    here, after = here[known], after[known]
    early = real.seconds[here] < np.median(real.seconds)

    def columns(power: Vector) -> Vector:
        speed = real.speed[here]
        bumps = np.exp(-0.5 * (speed[:, None] - np.arange(3.0, 16.5)) ** 2)
        parts = [np.ones(len(here)), power[here], power[last[here]], speed, real.speed[last[here]]]
        return np.column_stack([*parts, bumps])

    def error(power: Vector) -> float:
        beta = np.linalg.lstsq(columns(power)[early], power[after][early], rcond=None)[0]
        guess = np.clip(columns(real.power)[~early] @ beta, 0, 1)
        return float(np.sqrt(np.mean((guess - real.power[after][~early]) ** 2)))

    return error(released) / error(real.power)


def _loss(speed: Vector, power: Vector) -> float:
    X = np.exp(-0.5 * ((speed[:, None] - np.arange(2.5, 25.1, 2.5)) / 2.5) ** 2)
    beta = np.linalg.solve(X.T @ X + 1e-3 * np.eye(X.shape[1]), X.T @ power)
    return float(np.linalg.norm(power - X @ beta))


def _shown(name: str, values: list[float]) -> str:
    at: Callable[[Any], Any] = (lambda v: np.abs(v)) if name in SIGNED else (lambda v: v)
    mean, spread = float(np.mean(at(np.array(values)))), float(np.std(values))
    return f"{mean:.4f} ({spread:.4f})"


if __name__ == "__main__":
    main()
