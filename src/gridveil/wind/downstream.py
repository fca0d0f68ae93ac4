"""What recipients do with wind records, done with real and with released ones.

Power curves by bins of 0.5 m/s (as IEC 61400-12 has them), energy by turbine and month, how power
is distributed, its memory and its ramps, how turbines go together, and forecasts. Owners see these
beside each other in `evaluation`; benchmarks use the same figures. All power is a share of
capacity.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Whole = NDArray[np.int64]

LAGS = 6
_ENOUGH = 0.25  # of the records of the fullest month: shorter months are left out
_FAR = 10**12  # seconds between turbines on one time axis


@dataclass(frozen=True, eq=False)
class Series:
    """Records by turbine and time: everything but power, which is passed to the figures.

    Parameters
    ----------
    turbine
        The place of each record's turbine, from 0.
    seconds
        Since 1970, rising for each turbine; None without times.
    speed
        Wind speed in m/s.
    step
        From record to record, in seconds.
    """

    turbine: Whole
    seconds: Whole | None
    speed: Vector
    step: int = 1

    @cached_property
    def bins(self) -> Whole:
        """The bin of wind speed of each record, 0.5 m/s wide."""
        return np.asarray(np.floor(2 * np.maximum(self.speed, 0.0)), dtype=np.int64)

    @cached_property
    def by_turbine(self) -> Whole:
        """A number for each turbine and bin of wind speed."""
        return np.asarray(self.turbine * (self.bins.max() + 1) + self.bins)

    @cached_property
    def months(self) -> Whole:
        """The calendar month of each record, from 0."""
        assert self.seconds is not None
        found = self.seconds.astype("datetime64[s]").astype("datetime64[M]").astype(np.int64)
        return np.asarray(found - found.min())

    def month_name(self, month: int) -> str:
        """What a month is called, as 2024-01."""
        assert self.seconds is not None
        first = np.datetime64(int(self.seconds.min()), "s").astype("datetime64[M]")
        return str(first + month)

    def pairs(self, steps: int) -> tuple[Whole, Whole]:
        """Records, and those of the same turbine so many steps after them."""
        assert self.seconds is not None
        key = self.turbine * _FAR + self.seconds
        after = np.minimum(np.searchsorted(key, key + steps * self.step), len(key) - 1)
        found = key[after] == key + steps * self.step
        return np.flatnonzero(found), after[found]


def bin_means(bins: Whole, power: Vector) -> Vector:
    """Mean power of each bin; 0 for one without records."""
    return np.asarray(np.bincount(bins, power) / np.maximum(np.bincount(bins), 1))


def curve_error(bins: Whole, real: Vector, released: Vector) -> float:
    """The root mean square of what lies between two curves of means, weighted by records."""
    counts = np.bincount(bins)
    apart = bin_means(bins, released) - bin_means(bins, real)
    return float(np.sqrt(counts @ apart**2 / counts.sum()))


def whole_months(series: Series) -> Whole:
    """The months with at least a quarter of the records of the fullest."""
    counts = np.bincount(series.months)
    return np.flatnonzero(counts > _ENOUGH * counts.max())


def month_error(series: Series, real: Vector, released: Vector) -> float:
    """The mean over months of the error of their energy, as a share of it."""
    some = whole_months(series)
    sums = [np.bincount(series.months, power)[some] for power in (released, real)]
    return float(np.abs(sums[0] / np.maximum(sums[1], 1e-12) - 1).mean())


def memory(series: Series, power: Vector, lags: Sequence[int] = range(1, LAGS + 1)) -> Vector:
    """The autocorrelation of what power is off its own curve by bins."""
    residual = power - bin_means(series.bins, power)[series.bins]
    found = []
    for lag in lags:
        here, after = series.pairs(lag)
        found.append(_correlation(residual[here], residual[after]))
    return np.array(found)


def ramps(series: Series, power: Vector) -> Vector:
    """Changes of power from one record to the next."""
    here, after = series.pairs(1)
    return np.asarray(power[after] - power[here])


def together(series: Series, power: Vector) -> float:
    """The mean correlation of two turbines' residuals at the same time; NaN for a single one."""
    assert series.seconds is not None
    residual = power - bin_means(series.by_turbine, power)[series.by_turbine]
    places = np.flatnonzero(np.diff(series.turbine, prepend=-1, append=-1))
    spans = [slice(low, high) for low, high in pairwise(places)]
    found = []
    for at, one in enumerate(spans):
        for other in spans[at + 1 :]:
            _, left, right = np.intersect1d(
                series.seconds[one], series.seconds[other], return_indices=True
            )
            found.append(_correlation(residual[one][left], residual[other][right]))
    return float(np.mean(found)) if found else float("nan")


def forecast_error(series: Series, trained: Vector, real: Vector, steps: int) -> float:
    """The error of a linear forecast trained on the first half, tried on the real second half.

    It sees power and wind speed now and one step before, and bumps of wind speed.
    """
    assert series.seconds is not None
    here, after = series.pairs(steps)
    before, now = series.pairs(1)
    last = np.full(len(real), -1)
    last[now] = before
    known = last[here] >= 0
    here, after = here[known], after[known]
    early = series.seconds[here] < np.median(series.seconds)
    if not early.any() or early.all():
        return float("nan")

    def columns(power: Vector) -> Vector:
        speed = series.speed[here]
        bumps = np.exp(-0.5 * (speed[:, None] - np.arange(3.0, 16.5)) ** 2)
        parts = [np.ones(len(here)), power[here], power[last[here]], speed]
        return np.column_stack([*parts, series.speed[last[here]], bumps])

    beta = np.linalg.lstsq(columns(trained)[early], trained[after][early], rcond=None)[0]
    guess = np.clip(columns(real)[~early] @ beta, 0, 1)
    return float(np.sqrt(np.mean((guess - real[after][~early]) ** 2)))


def persistence_error(series: Series, real: Vector, steps: int) -> float:
    """The error of the forecast that nothing changes, in the second half."""
    assert series.seconds is not None
    here, after = series.pairs(steps)
    late = series.seconds[here] >= np.median(series.seconds)
    return float(np.sqrt(np.mean((real[after] - real[here])[late] ** 2))) if late.any() else np.nan


def distance(real: Vector, released: Vector) -> float:
    """Wasserstein's distance: the mean distance of the sorted powers."""
    return float(np.abs(np.sort(released) - np.sort(real)).mean())


def _correlation(one: Vector, other: Vector) -> float:
    if len(one) < 2 or min(float(one.std()), float(other.std())) < 1e-12:
        return float("nan")
    return float(np.corrcoef(one, other)[0, 1])
