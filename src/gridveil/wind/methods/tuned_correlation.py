"""Restore the correlation between turbines of a farm, by random draws that they partly share.

Scores of two turbines at the same time have a correlation ``r``, because of wind and weather. Noise
on their readings is independent, so products of readings at the same time estimate ``r`` without a
bias, as products some lags apart estimate the memory. The part of the scores that readings
determine already has its part of the correlation. The part that is drawn uses normal numbers of
which turbines share the part ``r (1 + told)``, which gives a total of ``r``:
``r told^2 + r (1 + told) (1 - told) = r``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gridveil.wind.clock import common_step
from gridveil.wind.methods.tuned_levels import Floats, Levels, Whole
from gridveil.wind.methods.tuned_time_order import READING, pieces
from gridveil.wind.synthetic.lags import MEMORIES, SHARED, SLOW, usual_shares

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
