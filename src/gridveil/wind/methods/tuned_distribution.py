"""Estimate the distribution of power at each level of the curve from noisy records.

Records are grouped by the level of the public curve at them, and noisy readings by cells of
``[0, 1]``, with one more cell for all below and one for all above (Laplace noise has no memory: how
far a reading lies outside says nothing). The probability of a cell, for a record of a given power,
is known exactly. So the distribution of power at a level follows from counts of cells by the EM
algorithm, which starts at a model and stays near it if there are few records. It has atoms at 0 and
at full power, which are kept.

A record's *score* is its rank at its level, on the normal scale. Everything here reads noisy and
public data only.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from gridveil.wind.methods.tuned_estimate import Spread

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
Places = tuple[NDArray[np.int32], NDArray[np.float32]]

_MOST = 60  # the most levels
_EACH = 500  # records per level, if there are fewer levels
_HELD = 100.0  # the weight of the model at each level, as a number of records
_TURNS = 400
_STILL = 1e-5  # the EM algorithm ends when no share moves by more
_FINE = 0.04  # noise of a smaller scale needs narrower cells
_REACH = 5.0  # the largest score
_TABLE = np.linspace(-_REACH, _REACH, 401)
_TINY = 1e-12


class Levels:
    """Distributions of power by level of the curve, tabulated.

    Parameters
    ----------
    f
        The curve at every record, inside the box.
    y0
        Noisy records.
    spread
        The model to start from.
    b
        The scale of the noise.
    """

    def __init__(self, f: Floats, y0: Floats, spread: Spread, b: float) -> None:
        count = int(np.clip(len(f) // _EACH, 4, _MOST))
        centres = np.unique(np.quantile(f, np.linspace(0.0, 1.0, count)))
        if len(centres) == 1:
            centres = np.array([centres[0], centres[0] + 1e-6])
        self.centres = np.asarray(centres, dtype=np.float64)
        self.b = b
        self._cells = 100 if b >= _FINE else 200
        chances = self._chances()
        start = _model(self.centres, spread, self._cells)
        self._shares = _fit(self._counts(f, y0), start, chances)
        self._noisy = self._shares @ chances
        below = np.cumsum(self._shares, axis=1)
        edges = np.concatenate([[0.0], np.linspace(0.0, 1.0, self._cells + 1), [1.0]])
        ranks = np.hstack([np.zeros((len(centres), 1)), below / below[:, -1:]])
        self._flat = np.concatenate([np.interp(ndtr(_TABLE), rank, edges) for rank in ranks])
        self._score_tables(ranks, chances)
        self._power_table(chances)

    def _chances(self) -> Floats:
        """Compute the probability of each cell of readings for power at 0, in each cell, and 1."""
        edges = np.linspace(0.0, 1.0, self._cells + 1)
        middles = (edges[1:] + edges[:-1]) / 2
        away = (edges[None] - np.concatenate([[0.0], middles, [1.0]])[:, None]) / self.b
        left = 0.5 * np.exp(np.minimum(away, 0.0))
        below = np.where(away < 0, left, 1 - 0.5 * np.exp(-np.maximum(away, 0.0)))
        return np.hstack([below[:, :1], np.diff(below, axis=1), 1 - below[:, -1:]])

    def _counts(self, f: Floats, y0: Floats) -> Floats:
        """Count readings in each cell at each level; a record counts for its two nearest levels."""
        width = self._cells + 2
        left, share = self._place(f)
        at = left * width + self._cell(y0)
        size = len(self.centres) * width
        counts = np.bincount(at, 1 - share, minlength=size)
        counts += np.bincount(at + width, share, minlength=size)
        return np.asarray(counts.reshape(-1, width), dtype=np.float64)

    def _cell(self, y0: Floats) -> Whole:
        inside = np.minimum((np.clip(y0, 0.0, 1.0) * self._cells).astype(np.int64), self._cells - 1)
        return np.where(y0 < 0, 0, np.where(y0 > 1, self._cells + 1, inside + 1))

    def _place(self, f: Floats) -> tuple[Whole, Floats]:
        """Return the level left of each curve value, and the share of the level right of it."""
        at = np.interp(f, self.centres, np.arange(len(self.centres)))
        left = np.minimum(at.astype(np.int64), len(self.centres) - 2)
        return left, at - left

    def _score_tables(self, ranks: Floats, chances: Floats) -> None:
        """Tabulate mean and variance of a score given its reading's cell, and readings' power.

        The score of a record lies between those of the ends of its atom or cell, where it is
        normal. The last table, `_told`, is the variance of the mean.
        """
        low, high = ranks[:, :-1], ranks[:, 1:]
        z_low, z_high = (ndtri(np.clip(r, _TINY, 1 - _TINY)) for r in (low, high))
        d_low, d_high = (np.exp(-z * z / 2) / np.sqrt(2 * np.pi) for z in (z_low, z_high))
        mass = np.maximum(high - low, 1e-14)
        few = mass < 1e-9
        mean = np.where(few, (z_low + z_high) / 2, (d_low - d_high) / mass)
        square = np.where(few, mean**2, 1 + (z_low * d_low - z_high * d_high) / mass)
        seen = mass @ chances
        self._mean = (mass * mean) @ chances / seen
        self._variance = np.clip((mass * square) @ chances / seen - self._mean**2, 1e-4, None)
        self._told = (seen * self._mean**2).sum(axis=1)

    def _power_table(self, chances: Floats) -> None:
        """Tabulate the standard deviation of power given the cell of its reading."""
        middles = (np.arange(self._cells) + 0.5) / self._cells
        power = np.concatenate([[0.0], middles, [1.0]])
        square = power**2 + np.concatenate([[0.0], np.full(self._cells, self._cells**-2 / 12), [0]])
        mean = (self._shares * power) @ chances / self._noisy
        variance = (self._shares * square) @ chances / self._noisy - mean**2
        self._deviation = np.sqrt(np.maximum(variance, 0.0))

    def deviations(self, f: Floats, y0: Floats) -> Floats:
        """Return the standard deviation of each record's power, given its own reading."""
        (left, share), cell = self._place(f), self._cell(y0)
        here, right = self._deviation[left, cell], self._deviation[left + 1, cell]
        return np.asarray(np.minimum(here * (1 - share) + right * share, np.sqrt(2) * self.b))

    def scores(self, f: Floats, y0: Floats) -> tuple[Floats, Floats, Floats]:
        """Return mean and variance of each record's score given its reading, and readings' power.

        The last is the variance of the mean: 0 if readings at this level say nothing about the
        score, 1 if they determine it.
        """
        (left, share), cell = self._place(f), self._cell(y0)
        mean, variance = (
            table[left, cell] * (1 - share) + table[left + 1, cell] * share
            for table in (self._mean, self._variance)
        )
        return mean, variance, self._told[left] * (1 - share) + self._told[left + 1] * share

    def ranked(self, f: Floats, y0: Floats) -> Floats:
        """Return scores that keep the order of the readings: their ranks among noisy readings."""
        (left, share), cell = self._place(f), self._cell(y0)
        below = np.cumsum(self._noisy, axis=1) - self._noisy
        inside = np.clip(y0, 0.0, 1.0) * self._cells - (cell - 1)
        part = np.where(
            y0 < 0,
            np.exp(np.minimum(y0, 0) / self.b),
            np.where(y0 > 1, 1 - np.exp(-np.maximum(y0 - 1, 0) / self.b), inside),
        )
        both = [below[at, cell] + part * self._noisy[at, cell] for at in (left, left + 1)]
        rank = both[0] * (1 - share) + both[1] * share
        return np.asarray(ndtri(np.clip(rank, 1e-6, 1 - 1e-6)))

    def places(self, f: Floats) -> Places:
        """Return the positions of curve values among the levels, for `power`."""
        left, share = self._place(f)
        return (left * len(_TABLE)).astype(np.int32), share.astype(np.float32)

    def power(self, places: Places, scores: Floats) -> tuple[Floats, Floats]:
        """Return the power of each score, and its derivative by the score."""
        row, share = places
        step, width = float(_TABLE[1] - _TABLE[0]), len(_TABLE)
        at = np.clip((scores + _REACH) / step, 0.0, width - 1.001)
        place = at.astype(np.int32)
        at -= place
        place += row
        low, high = self._flat.take(place), self._flat.take(place + 1)
        place += width
        low += (self._flat.take(place) - low) * share
        high += (self._flat.take(place + 1) - high) * share
        high -= low
        return low + at * high, high / step


def _model(centres: Floats, spread: Spread, cells: int) -> Floats:
    """Compute shares of power at 0, in each cell and at full power, in the denoiser's model.

    The model's normal is moved until its mean, after clipping to the box, is the curve's.
    """
    s, o = spread.at(centres)[:, None], spread.outliers
    edges = np.linspace(0.0, 1.0, cells + 1)[None]
    low, high = centres[:, None] - 6 * s - 1, centres[:, None] + 6 * s + 1
    for _ in range(50):
        middle = (low + high) / 2
        # The mean of a variable in the box is the integral of the probability to be above.
        above = ndtr((middle - edges) / s)
        mean = ((above[:, 1:] + above[:, :-1]) / 2).mean(axis=1, keepdims=True)
        less = mean < centres[:, None]
        low, high = np.where(less, middle, low), np.where(less, high, middle)
    below = ndtr((edges - (low + high) / 2) / s)
    shares = np.hstack([below[:, :1], np.diff(below, axis=1), 1 - below[:, -1:]])
    anywhere = np.concatenate([[0.0], np.full(cells, 1 / cells), [0.0]])
    return np.asarray((1 - o) * shares + o * anywhere)


def _fit(counts: Floats, start: Floats, chances: Floats) -> Floats:
    """Estimate shares from counts of readings; the start counts as `_HELD` more records."""
    total = counts.sum(axis=1, keepdims=True) + _HELD
    shares = start
    for _ in range(_TURNS):
        seen = np.maximum(shares @ chances, 1e-300)
        after = (shares * ((counts / seen) @ chances.T) + _HELD * start) / total
        moved = float(np.abs(after - shares).max())
        shares = after
        if moved < _STILL:
            break
    return np.asarray(np.maximum(shares, 1e-15) / np.maximum(shares, 1e-15).sum(1, keepdims=True))
