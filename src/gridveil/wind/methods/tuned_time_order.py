"""Restore the order in time: draw scores given all noisy readings of a turbine together.

The score of a record is a sum of processes with public memories (`synthetic.autocorrelation`), each
with the autocorrelation ``exp(-t/memory)``, and of one without memory. Their shares are estimated
from products of readings that are a lag apart. A noisy reading is treated as a normal reading of
the score with the same posterior mean and variance; then the scores given all readings are jointly
normal, with a banded matrix, and one draw takes one solve.

A draw has the spread and the memory of real scores; their mean would be too smooth. It is seeded by
the noisy records: post-processing, like everything here.

**Several turbines.** The correlation between turbines of a farm is restored by random draws that
they partly share. Scores of two turbines at the same time have a correlation ``r``, because of wind
and weather. Noise on their readings is independent, so products of readings at the same time
estimate ``r`` without a bias, as products some lags apart estimate the memory. The part of the
scores that readings determine already has its part of the correlation. The part that is drawn uses
normal numbers of which turbines share the part ``r (1 + told)``, which gives a total of ``r``:
``r told^2 + r (1 + told) (1 - told) = r``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solveh_banded

from gridveil.wind.clock import common_step
from gridveil.wind.methods.tuned_distribution import Floats, Levels, Whole
from gridveil.wind.synthetic.autocorrelation import (
    MEMORIES,
    SHARED,
    SLOW,
    memory_factors,
    usual_shares,
)

Normals = Callable[[int, Whole], Floats]
"""Standard normal numbers for the steps of a process, or for readings, at these times."""
READING = -1

_LAGS = np.array([1, 2, 3, 4, 5, 6, 9, 12, 18, 36, 72, 144])
_FIRM = 0.1  # the prior's deviation of shares from those of turbines in general
_CHUNK = 1 << 17
_LEAST_QUICK = 1e-3
_LEAST = 1e-4  # processes with a smaller share are left out


def seed_of(y0: Floats) -> int:
    """Make a seed from noisy records."""
    digest = hashlib.sha256()
    for some in pieces(len(y0)):
        digest.update(np.ascontiguousarray(y0[some]).tobytes())
    return int.from_bytes(digest.digest(), "little")


def pieces(rows: int, size: int = _CHUNK) -> Iterator[slice]:
    """Yield slices that cover the rows, to be processed one after another."""
    return (slice(start, min(start + size, rows)) for start in range(0, rows, size))


def estimate_shares(levels: Levels, f: Floats, y0: Floats, times: Whole, step: int) -> Floats:
    """Estimate the processes' shares from products of readings some lags apart.

    Let ``r`` and ``r'`` be the variances of the scores' means given two readings. The product of
    these means is on average ``r r'`` times the scores' correlation, with a variance of about
    ``r r'``.
    """
    from scipy.optimize import nnls  # slow to load

    products, weights = np.zeros(len(_LAGS)), np.zeros(len(_LAGS))
    for some in pieces(len(f)):
        mean, _, told = levels.scores(f[some], y0[some])
        slots = np.rint((times[some] - times[some][0]) / step).astype(np.int64)
        for place, lag in enumerate(_LAGS):
            after = np.minimum(np.searchsorted(slots, slots + lag), len(slots) - 1)
            here = np.flatnonzero(slots[after] == slots + lag)
            there = after[here]
            products[place] += float(mean[here] @ mean[there])
            weights[place] += float(told[here] @ told[there])
    error = 1 / np.sqrt(np.maximum(weights, 1e-9)) + 0.01
    curves = memory_factors(step)[None] ** _LAGS[:, None]
    count = len(MEMORIES)
    rows = np.vstack([curves / error[:, None], np.eye(count) / _FIRM, np.full((1, count), 1e4)])
    wanted = products / np.maximum(weights, 1e-9) / error
    shares, _ = nnls(rows, np.concatenate([wanted, usual_shares() / _FIRM, [1e4]]))
    return np.asarray(shares / shares.sum())


def draw_scores(
    levels: Levels,
    f: Floats,
    y0: Floats,
    times: Whole,
    step: int,
    into: Floats,
    normals: Normals | None = None,
) -> Floats:
    """Fill ``into`` with scores drawn given all readings; return the processes' shares.

    ``normals`` makes normal numbers that turbines share; by default each turbine has its own.
    """
    shares = estimate_shares(levels, f, y0, times, step)
    draws = np.random.default_rng(seed_of(y0))
    normals = normals or (lambda process, moments: draws.standard_normal(len(moments)))
    for some in pieces(len(f)):
        mean, variance, _ = levels.scores(f[some], y0[some])
        # Given a normal reading of precision t, a standard normal score has variance 1/(1 + t).
        precision = np.clip(1 / variance - 1, 1e-6, None)
        reading = mean / variance / precision
        into[some] = _draw(reading, 1 / precision, times[some], step / 2, shares, normals)
    return shares


def _draw(
    reading: Floats,
    variance: Floats,
    times: Whole,
    least: float,
    shares: Floats,
    normals: Normals,
) -> Floats:
    """Draw scores given readings of them with these variances.

    With the precision ``L`` of all processes given the readings and ``n ~ N(0, L)``, the solution
    of ``L x = (weighted readings) + n`` is a draw. ``n`` is made from one normal number for each
    reading and each step of a process, since ``L`` is a sum of squares, one for each of them.
    """
    rows, gaps = len(reading), np.maximum(np.diff(times), least)
    quick = max(float(shares[0]), _LEAST_QUICK)
    used = [at for at in range(1, len(shares)) if shares[at] > _LEAST]
    total = np.zeros(rows)
    if used:
        size = len(used)
        weight = 1 / (variance + quick)
        told = weight * reading + np.sqrt(weight) * normals(READING, times)
        band = np.zeros((size + 1, rows * size))
        right = np.empty((rows, size))
        for column, at in enumerate(used):
            keep = np.exp(-gaps / MEMORIES[at])
            fresh = 1 / (shares[at] * np.concatenate([[1.0], -np.expm1(-2 * gaps / MEMORIES[at])]))
            steps = np.sqrt(fresh) * normals(at, times)
            right[:, column] = told + steps
            right[:-1, column] -= keep * steps[1:]
            for other in range(column, size):
                band[size - (other - column), other::size] = weight
            band[size, column::size] += fresh
            band[size, column : (rows - 1) * size : size] += keep**2 * fresh[1:]
            band[0, size + column :: size] = -keep * fresh[1:]
        solved = solveh_banded(band, right.ravel(), overwrite_ab=True, overwrite_b=True)
        total = solved.reshape(rows, size).sum(axis=1)
    rest = 1 / (1 / quick + 1 / variance)
    mean = rest / variance * (reading - total)
    return np.asarray(total + mean + np.sqrt(rest) * normals(0, times))


_SPREAD = 0.15  # a guess of the correlations' deviation from farm to farm
_MOST = 0.95
_SPARSE = 10  # the most slots of the clock per record


@dataclass(frozen=True, eq=False)
class Readings:
    """The noisy records of one turbine: their levels, the curve at them, and their times."""

    levels: Levels
    straight: Floats
    y0: Floats
    times: Whole


class SharedDraws:
    """Normal numbers for the draws of several turbines, as `draw_scores` takes them.

    Parameters
    ----------
    turbines
        The turbines whose order in time is restored.
    seed
        A seed made from noisy records.
    """

    def __init__(self, turbines: Sequence[Readings], seed: int) -> None:
        self._own = np.random.default_rng([seed, 1])
        self._start, self._step, size = _clock(turbines)
        correlation, told = self._estimate(turbines, size)
        shape = np.where(SLOW, SHARED[1], SHARED[0])
        level = correlation * (1 + told) / float(usual_shares() @ shape)
        self._part = np.minimum(level * shape, _MOST)
        draws = np.random.default_rng([seed, 2])
        self._common = draws.standard_normal((len(MEMORIES) + 1, size))

    def __call__(self, process: int, times: Whole) -> Floats:
        """See `Normals`."""
        own = self._own.standard_normal(len(times))
        part = float(self._part.min() if process == READING else self._part[process])
        common = self._common[process][self._slots(times)]
        return np.asarray(np.sqrt(part) * common + np.sqrt(1 - part) * own)

    def _slots(self, times: Whole) -> Whole:
        """Return the slot of each time on the farm's clock."""
        return np.asarray((times - self._start + self._step // 2) // self._step)

    def _estimate(self, turbines: Sequence[Readings], size: int) -> tuple[float, float]:
        """Estimate the correlation of scores at the same time, and the mean of ``told``.

        The sum of products over all pairs is half of the squared sum minus the sum of squares.
        """
        sums, squares = np.zeros((2, size)), np.zeros((2, size))
        for one in turbines:
            for some in pieces(len(one.y0)):
                mean, _, told = one.levels.scores(
                    np.clip(one.straight[some], 0.0, 1.0), one.y0[some]
                )
                slots = self._slots(one.times[some])
                for at, values in enumerate((mean, told)):
                    sums[at] += np.bincount(slots, values, minlength=size)
                    squares[at] += np.bincount(slots, values**2, minlength=size)
        products, weight = ((sums**2 - squares).sum(axis=1) / 2).tolist()
        shape = np.where(SLOW, SHARED[1], SHARED[0])
        usual = float(usual_shares() @ shape)
        # The variance of products is about their weight; 10 counts for correlation in time.
        trust = _SPREAD**2 / (_SPREAD**2 + 10 / max(weight, 1e-9))
        found = usual + trust * (products / max(weight, 1e-9) - usual)
        rows = sum(len(one.y0) for one in turbines)
        return float(np.clip(found, 0.0, 0.9)), float(sums[1].sum()) / rows


def shared_draws(turbines: Sequence[Readings], seed: int) -> SharedDraws | None:
    """Make draws that turbines share; None for a single turbine, or if times have huge gaps."""
    if len(turbines) < 2 or all(one.times[0] == one.times[-1] for one in turbines):
        return None
    rows = sum(len(one.times) for one in turbines)
    return SharedDraws(turbines, seed) if _clock(turbines)[2] <= _SPARSE * rows else None


def _clock(turbines: Sequence[Readings]) -> tuple[int, int, int]:
    """Return the first time, the step and the number of slots of all turbines together."""
    start = min(int(one.times[0]) for one in turbines)
    step = common_step([one.times for one in turbines])
    return start, step, (max(int(one.times[-1]) for one in turbines) - start) // step + 2
