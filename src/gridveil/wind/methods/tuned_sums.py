"""Move and stretch scores until the records have the sums that all noisy answers support.

Unbiased readings of the records (`tuned_estimate.unbias`) give their sum and their sums by month
and by wind speed; the answers give the weights and the loss of the regression. Scores are moved by
an amount for each feature, month and bin of wind speed, and stretched by one factor, so that
records stay in the box, and those at 0 and at full power mostly stay there. How much the readings
of a cell count depends on how far all cells of its kind differ beyond noise (empirical Bayes).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from gridveil.wind.methods.tuned_distribution import Floats, Levels, Whole
from gridveil.wind.methods.tuned_estimate import unbias
from gridveil.wind.methods.tuned_time_order import pieces
from gridveil.wind.row_blocks import BLOCK, LocalRows

_SWEEPS = 5
_FURTHEST = 0.5  # a score moves by at most this much in one sweep
_GENTLY = 0.6
_LEAST_SLOPE = 0.02  # of power by score; smaller ones, as at full power, would move scores too far
_TOTAL = 0.005  # public guess: how far the mean is from the regression's, as a share of capacity
_CELL = 0.05  # the most that the mean of a month or a bin of wind speed may be from it


class Cells:
    """A division of the records into public cells: months, bins of wind speed, or a single one."""

    def __init__(self, index: Whole, known: float | None = None) -> None:
        self.index = index - index.min()
        self.counts = np.bincount(self.index).astype(np.float64)
        self.shift = np.zeros(len(self.counts))
        self.target = np.zeros(len(self.counts))
        self._known = known

    def sums(self, some: slice, values: Floats) -> Floats:
        """Sum some rows' values by cell."""
        sums = np.bincount(self.index[some], values, minlength=len(self.counts))
        return np.asarray(sums, dtype=np.float64)

    def aim(self, now: Floats, readings: Floats, variances: Floats) -> None:
        """Set the target sums, between the present ones and the readings."""
        counts = np.maximum(self.counts, 1.0)
        apart, noise = (readings - now) / counts, variances / counts**2
        known = self._known
        if known is None:
            beyond = self.counts @ (apart**2 - noise) / self.counts.sum()
            known = min(float(np.sqrt(max(beyond, 0.0))), _CELL)
        trust = known**2 / np.maximum(known**2 + noise, 1e-300)
        self.target = now + trust * (readings - now)

    def move(self, now: Floats, slopes: Floats) -> None:
        """Take one step of Newton's method, of limited length, towards the target sums."""
        enough = np.maximum(slopes, 1e-3 * self.counts + 1e-12)
        self.shift += np.clip((self.target - now) / enough, -_FURTHEST, _FURTHEST)


def whole(rows: int) -> Cells:
    """Make one cell of all records; their mean is close to the regression's."""
    return Cells(np.zeros(rows, dtype=np.int64), known=_TOTAL)


class Restored:
    """Records of one turbine, as scores that are moved until their sums agree with the answers.

    Parameters
    ----------
    levels, straight
        The distributions by level, and the curve of the weights at every record, not clipped.
    scores
        One for each record; replaced by the records in `finish`.
    """

    def __init__(self, levels: Levels, straight: Floats, scores: Floats) -> None:
        self._levels = levels
        self._straight = straight
        self._places = np.empty(len(scores), np.int32), np.empty(len(scores), np.float32)
        for some in pieces(len(scores)):
            places = levels.places(np.clip(straight[some], 0.0, 1.0))
            for whole_column, column in zip(self._places, places, strict=True):
                whole_column[some] = column
        self._scores = scores
        self._moved = np.zeros(len(scores))  # along the features
        self._stretch = 1.0
        self._kinds: list[Cells] = []

    def _records(self, some: slice) -> tuple[Floats, Floats]:
        scores = self._stretch * self._scores[some] + self._moved[some]
        for cells in self._kinds:
            scores += cells.shift[cells.index[some]]
        row, share = self._places
        return self._levels.power((row[some], share[some]), scores)

    def meet_weights(self, rows: Callable[[Floats], LocalRows], beta: Floats, loss: float) -> None:
        """Move scores along the features until the records have these weights and this loss."""
        p = len(beta)
        move = np.zeros(p)
        for _ in range(_SWEEPS):
            gram, miss, square = np.zeros((p, p)), np.zeros(p), 0.0
            for some, X in _features(rows(self._scores)):
                # Apply the last sweep's move in this pass: each pass computes all features again.
                self._moved[some] += np.clip(X @ move, -_FURTHEST, _FURTHEST)
                power, slope = self._records(some)
                gram += (X * np.maximum(slope, _LEAST_SLOPE)[:, None]).T @ X
                away = self._straight[some] - power
                miss += X.T @ away
                square += float(away @ away)
            ridge = 1e-6 * np.trace(gram) / p + 1e-12
            move = np.linalg.solve(gram + ridge * np.eye(p), miss)
            self._stretch_by(loss / np.sqrt(max(square, 1e-12)))
        for some, X in _features(rows(self._scores)):
            self._moved[some] += np.clip(X @ move, -_FURTHEST, _FURTHEST)

    def meet_sums(self, kinds: list[Cells], y0: Floats, b: float, loss: float) -> None:
        """Move scores of each cell until sums by cell meet their targets, and keep the loss."""
        readings = [np.zeros(len(cells.counts)) for cells in kinds]
        noise, now = ([np.zeros(len(cells.counts)) for cells in kinds] for _ in range(2))
        for some in pieces(len(y0)):
            reading, variance = unbias(y0[some], b)
            power, _ = self._records(some)
            for at, cells in enumerate(kinds):
                for sums, values in ((readings, reading), (noise, variance), (now, power)):
                    sums[at] += cells.sums(some, values)
        for cells, *told in zip(kinds, now, readings, noise, strict=True):
            cells.aim(*told)
        self._kinds = kinds
        for _ in range(_SWEEPS):
            for cells in kinds:
                power_sums, slopes, square = np.zeros(len(cells.counts)), cells.counts * 0, 0.0
                for some in pieces(len(y0), BLOCK):
                    power, slope = self._records(some)
                    power_sums += cells.sums(some, power)
                    slopes = slopes + cells.sums(some, slope)
                    away = power - self._straight[some]
                    square += float(away @ away)
                cells.move(power_sums, slopes)
            self._stretch_by(loss / np.sqrt(max(square, 1e-12)))

    def _stretch_by(self, ratio: float) -> None:
        # Records far from the curve dominate the loss and grow faster than the rest: go slowly.
        step = float(np.clip(ratio, 0.7, 1.4)) ** _GENTLY
        self._stretch = float(np.clip(self._stretch * step, 0.2, 5.0))

    def finish(self) -> None:
        """Replace the scores by the records."""
        for some in pieces(len(self._scores)):
            self._scores[some] = self._records(some)[0]


def _features(rows: LocalRows) -> Iterator[tuple[slice, Floats]]:
    start = 0
    for X, _ in rows.blocks():
        yield slice(start, start + len(X)), X
        start += len(X)
