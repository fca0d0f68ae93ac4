"""Restore the order in time: draw scores given all noisy readings of a turbine together.

The score of a record is a sum of processes with public memories, as in `synthetic.lags`, each with
the autocorrelation ``exp(-t/memory)``, and of one without memory. Their shares are estimated from
products of readings that are a lag apart. A noisy reading is treated as a normal reading of the
score with the same posterior mean and variance; then the scores given all readings are jointly
normal, with a banded matrix, and one draw takes one solve.

A draw has the spread and the memory of real scores; their mean would be too smooth. It is seeded by
the noisy records: post-processing, like everything here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator

import numpy as np
from scipy.linalg import solveh_banded

from gridveil.wind.methods.tuned_levels import Floats, Levels, Whole
from gridveil.wind.synthetic.lags import MEMORIES, memory_factors, usual_shares

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
