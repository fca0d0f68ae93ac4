"""Rebuild a series from noisy answers, by shrinking each answer according to its noise.

Nothing here is private: it reads noisy answers, the deviations of their noise and public numbers.
How much each answer counts (the spread of loads' shapes, the covariance of the total's waves, how
they continue from day to day, what loads have in common) is learned from the noisy answers, minus
their known noise.

A rebuilt load follows its typical days and the total, so it changes less from hour to hour than a
real one. Studies of ramps and reserves need realistic changes, though not the real ones: `textured`
adds them on request, and the release says so. What it adds says nothing about the real hours: it is
a mean-reverting random walk of a size that the owner chooses, seeded by the rebuilt loads. It
changes no hour's total and no sum of a load's day, so everything that was asked for stays.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gridveil.grid.series.clock import Clock
from gridveil.grid.series.queries import KINDS, SHAPES, profiles

Floats = NDArray[np.float64]

Answers = Mapping[str, tuple[Floats, float]]
"""Noisy answers in MW by the names of their queries, with the deviations of their noise."""

_LEAST = 0.05  # no estimate is below this share of a load's mean, before clipping to the box
_SMOOTH = 9  # neighbouring frequencies whose powers are averaged
_FACTOR = 5.0  # no correction moves a load by more than this factor
_TURNS = 20  # of the EM algorithm; more change almost nothing
_MEMORY = 0.5  # the correlation of added residuals an hour apart
_PASSES = 3  # over totals of hours and sums of loads, which must both be met


@dataclass(frozen=True, eq=False)
class Box:
    """The public range of every load, MW."""

    low: Floats
    high: Floats

    def clip(self, values: Floats) -> Floats:
        """Clip values to the range; the last axis has the loads."""
        return np.clip(values, self.low, self.high)


def rebuild(clock: Clock, box: Box, answers: Answers, waves: int) -> Floats:
    """Rebuild the series from noisy answers: ``(days, slots, loads)``, within the box."""
    mean = _means(clock, box, answers)
    size = np.maximum(np.abs(mean), 1e-9)
    typical = _typical_days(clock, mean, size, answers)
    values = typical[clock.kind]
    total = values.sum(axis=2)
    if "totals" in answers:
        total = _totals(clock, total, answers, waves)
        values = _scaled_to(values, total)
    if "peak" in answers:
        total = _raised(total, *answers["peak"])
        values = _scaled_to(values, total)
    for name, block in (("weeks", clock.week), ("days", np.arange(clock.days))):
        if name in answers:
            values = _corrected(clock, values, block, *answers[name])
    for _ in range(_PASSES):
        # The most certain comes last: each load's sum, then the box.
        values = _scaled_to(values, total)
        values *= np.divide(mean, values.mean(axis=(0, 1)), out=np.ones_like(mean), where=mean != 0)
    return box.clip(values)


def prior_only(clock: Clock, box: Box, typical: float) -> Floats:
    """Return the series without any answer: every load at the public guess, all the time."""
    return box.clip(np.full((clock.days, clock.slots, len(box.low)), typical))


def _means(clock: Clock, box: Box, answers: Answers) -> Floats:
    """Estimate every load's mean: noisy means are moved towards those of similar loads."""
    sums, noise = answers["year"]
    deviation = noise / clock.size
    inside = box.clip(_gathered(sums / clock.size, deviation / np.sqrt(2), box))
    # A load with a mean near 0 would never move: half the noise is as likely a mean.
    least = np.minimum(np.maximum(box.low, 0.5 * deviation), box.high)
    return np.where(box.low >= 0, np.maximum(inside, least), inside)


def _gathered(noisy: Floats, scale: float, box: Box) -> Floats:
    """Replace each noisy number by its posterior mean under a distribution learned from all.

    The distribution may have any form: it is nearly the one under which the noisy numbers are most
    likely, found by the EM algorithm. With Laplace noise the likelihood is convex between two
    neighbouring numbers, so the best distribution has its points on the numbers themselves. Loads
    of similar size are pulled together; a load unlike all others stays where it is.
    """
    step = scale / 4
    sites = np.unique(np.round(np.clip(noisy, box.low, box.high) / step) * step)
    near = np.exp(-np.abs(noisy[:, None] - sites) / scale) + 1e-300
    chance = np.full(len(sites), 1 / len(sites))
    for _ in range(_TURNS):
        chance *= (1 / (near @ chance)) @ near / len(noisy)
    return np.asarray((near * chance) @ sites / (near @ chance))


def _typical_days(clock: Clock, mean: Floats, size: Floats, answers: Answers) -> Floats:
    """Estimate a workday and a weekend day of every load: ``(kinds, slots, loads)``."""
    found = np.broadcast_to(mean, (KINDS, clock.slots, len(mean))).copy()
    if "shapes" not in answers:
        return found
    sums, noise = answers["shapes"]
    basis = _basis(clock.slots, SHAPES)[1:]
    for kind in range(KINDS):
        days = int((clock.kind == kind).sum())
        if not days:
            continue
        waves, deviation = sums[kind] / days, noise / days
        # The shape that all loads share, in proportion to their size, plus each load's own part
        # as far as it exceeds the noise.
        common = waves.sum(axis=1) / size.sum()
        own = waves - common[:, None] * size
        excess = float((own**2 - deviation**2).sum()) / float((size**2).sum() * len(waves))
        spread = max(excess, 0.0) * size**2
        shrunk = common[:, None] * size + own * spread / (spread + deviation**2)
        found[kind] += basis.T @ shrunk
    least = np.where(mean > 0, _LEAST * mean, -np.inf)
    return np.asarray(np.maximum(found, least))


def _totals(clock: Clock, guess: Floats, answers: Answers, waves: int) -> Floats:
    """Estimate the total load of every slot from the noisy waves of each day's total."""
    noisy, deviation = answers["totals"]
    basis = _basis(clock.slots, waves)
    away = noisy - guess @ _rows(clock.slots, waves).T
    # Turn to the directions in which days differ most; the noise is the same in all directions.
    _, turn = np.linalg.eigh(away.T @ away)
    found = guess + _smoothed(away @ turn, deviation) @ turn.T @ basis
    return np.asarray(np.maximum(found, _LEAST * guess) if (guess > 0).all() else found)


def _smoothed(series: Floats, deviation: float) -> Floats:
    """Filter noisy series over days (one per column): keep each frequency as far as it is signal.

    The power of a frequency is the mean over its neighbours, minus that of the noise. Frequencies
    of the year and of the week are narrow peaks, so they are averaged less.
    """
    days = len(series)
    spectrum = np.fft.rfft(series, axis=0)
    power = np.abs(spectrum) ** 2 / days
    wide = _averaged(power, _SMOOTH)
    near = _averaged(power, 3)
    alone = {0, 1, 2} | {round(days * k / 7) + e for k in (1, 2, 3) for e in (-1, 0, 1)}
    for place in alone & set(range(len(power))):
        wide[place] = (power[place] + near[place]) / 2
    signal = np.maximum(wide - deviation**2, 0.0)
    kept = spectrum * signal / (signal + deviation**2)
    return np.asarray(np.fft.irfft(kept, n=days, axis=0))


def _averaged(values: Floats, width: int) -> Floats:
    """Average over neighbouring rows, over fewer of them at the ends."""
    sums = np.cumsum(np.vstack([np.zeros((1, values.shape[1])), values]), axis=0)
    places = np.arange(len(values))
    first = np.maximum(places - width // 2, 0)
    last = np.minimum(places + width // 2 + 1, len(values))
    return np.asarray((sums[last] - sums[first]) / (last - first)[:, None])


def _raised(total: Floats, noisy: Floats, deviation: float) -> Floats:
    """Move the highest total towards the noisy peak, further if the peak has less noise.

    An estimate is smoother than the truth, and its peak is lower, by about 4%. The day of the peak
    is stretched about its mean.
    """
    day = int(total.max(axis=1).argmax())
    highest, middle = float(total[day].max()), float(total[day].mean())
    if highest <= middle:
        return total
    own = 0.04 * abs(highest)
    aim = highest + (float(noisy[0]) - highest) * own**2 / (own**2 + deviation**2)
    stretched = total.copy()
    stretched[day] = middle + (total[day] - middle) * max((aim - middle) / (highest - middle), 0.1)
    return stretched


def _corrected(
    clock: Clock, values: Floats, block: NDArray[np.int64], noisy: Floats, deviation: float
) -> Floats:
    """Scale every load's weeks or days by the part of the noisy sums that loads share.

    That part is what a matrix of low rank explains beyond the noise.
    """
    have = np.zeros_like(noisy)
    np.add.at(have, block, values.sum(axis=1))
    missing = _low_rank(noisy - have, deviation)
    floor = np.maximum(np.abs(have), 1e-9)
    factor = np.clip(1 + missing / floor, 1 / _FACTOR, _FACTOR)
    return np.asarray(values * factor[block][:, None, :])


def _low_rank(noisy: Floats, deviation: float) -> Floats:
    """Remove noise from a matrix by shrinking its singular values, optimally for squared error.

    This is Gavish and Donoho's shrinkage for noise of a known deviation: singular values that noise
    alone may produce are dropped.
    """
    left, values, right = np.linalg.svd(noisy, full_matrices=False)
    long, short = max(noisy.shape), min(noisy.shape)
    share, unit = short / long, deviation * np.sqrt(long)
    size = values / unit
    inside = np.maximum((size**2 - share - 1) ** 2 - 4 * share, 0.0)
    kept = np.where(size > 1 + np.sqrt(share), np.sqrt(inside) / np.maximum(size, 1e-12), 0.0)
    return np.asarray((left * (kept * unit)) @ right)


def _scaled_to(values: Floats, total: Floats) -> Floats:
    """Scale all loads of a slot by one factor, so that they add up to its total."""
    have = values.sum(axis=2)
    factor = np.divide(total, have, out=np.ones_like(total), where=np.abs(have) > 1e-9)
    return np.asarray(values * np.clip(factor, 0.0, _FACTOR)[:, :, None])


def _rows(slots: int, count: int) -> Floats:
    return np.asarray(profiles(slots, count) / 1024)


def _basis(slots: int, count: int) -> Floats:
    """Return what one unit of each profile's coefficient adds to the slots of a day."""
    return np.asarray(np.linalg.pinv(_rows(slots, count)).T)


def textured(values: Floats, share: float) -> Floats:
    """Add residuals of about ``share`` of their level to rebuilt loads ``(days, slots, loads)``.

    Residuals add up to 0 over the loads of a slot and over the slots of a load's day; so a network
    of one load is not changed.
    """
    days, slots, loads = values.shape
    seed = hashlib.sha256(np.ascontiguousarray(values).tobytes()).digest()
    draws = np.random.default_rng(int.from_bytes(seed, "little"))
    step = _MEMORY ** (24 / slots)
    walk = np.empty((days * slots, loads))
    last = draws.standard_normal(loads)
    for place in range(days * slots):
        last = step * last + np.sqrt(1 - step**2) * draws.standard_normal(loads)
        walk[place] = last
    level = values.mean(axis=1, keepdims=True)
    added = share * level * walk.reshape(values.shape)
    added -= added.mean(axis=1, keepdims=True)
    # Subtract each hour's sum from the loads in proportion to their variances. These are constant
    # over a day, so sums of days stay 0.
    weight = level**2
    whole = np.maximum(weight.sum(axis=2, keepdims=True), 1e-12)
    return np.asarray(values + added - weight / whole * added.sum(axis=2, keepdims=True))
