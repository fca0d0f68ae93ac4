"""Draw records from noisy answers. This is post-processing, so it costs no epsilon.

The draws are seeded by the noisy answers. They do not protect anything: anyone who knows the
answers may know every draw.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from gridveil.wind.synthetic.autocorrelation import (
    LASTING,
    SHARED,
    SLOW,
    VOLATILITY,
    VOLATILITY_MEMORY,
    memory_factors,
    ranks,
)
from gridveil.wind.synthetic.knots import Flags, cells
from gridveil.wind.synthetic.learn_scatter import SPEED_GROUPS, Scatter, Stops
from gridveil.wind.synthetic.public_farm import Chunk, Farm, Turbine, Vector, Whole
from gridveil.wind.synthetic.residual_shape import RANKS

_SPELL_SCATTER = 1.6  # the deviation of the logarithm of a spell's length
_HIDDEN = 2.0  # how much longer a spell is than its part with enough wind
_LONGEST = 1008


def generate(
    farm: Farm, scatter: Scatter, stops: Stops, *, months: bool, seed: int, into: Vector
) -> None:
    """Fill ``into`` with records of all turbines, one after another, as shares of capacity.

    Parameters
    ----------
    farm, scatter, stops
        The public farm, and what was learned about scatter and stops.
    months
        Whether months were asked for: then drawn residuals have a mean of 0 in each month.
    seed
        The seed of the draws.
    into
        An array with a place for every record.
    """
    draws = np.random.default_rng(seed)
    centred = scatter.quantiles - scatter.quantiles.mean()
    tables = _censoring(centred)
    common = _common(farm, scatter.shares, draws) if farm.timed else None
    start = 0
    for place, turbine in enumerate(farm.turbines):
        out = into[start : start + len(turbine)]
        start += len(turbine)
        if common is None:
            out[:] = draws.random(len(turbine))
        else:
            out[:] = ranks(_latent(farm, turbine, scatter.shares, common, draws), scatter.shares)
        out[:] = np.interp(out, RANKS, centred)
        _take_means_out(farm, place, scatter, months, out)
        for chunk in farm.chunks(place):
            out[chunk.rows] = _records(chunk, scatter, tables, out[chunk.rows])
        _add_stops(farm, place, scatter, stops, draws, out)


def _process(factor: float, size: int, draws: np.random.Generator) -> Vector:
    """Draw an autoregressive process of unit variance."""
    from scipy.signal import lfilter  # takes as long to load as everything else

    steps = draws.standard_normal(size)
    if not factor:
        return steps
    steps[1:] *= np.sqrt(1 - factor * factor)
    return np.asarray(lfilter([1.0], [1.0, -factor], steps))


def _common(farm: Farm, shares: Vector, draws: np.random.Generator) -> Vector:
    """Draw the part that turbines share: quick and lasting sums for each slot, and volatility."""
    total = np.zeros((3, farm.slots))
    if farm.size > 1:
        for at, factor in enumerate(memory_factors(farm.step)):
            path = _process(factor, farm.slots, draws)
            total[int(LASTING[at])] += np.sqrt(shares[at] * SHARED[int(SLOW[at])]) * path
        total[2] = np.sqrt(SHARED[1]) * _process(_slowly(farm), farm.slots, draws)
    return total


def _latent(
    farm: Farm, turbine: Turbine, shares: Vector, common: Vector, draws: np.random.Generator
) -> Vector:
    """Draw the sums of the processes for the rows of one turbine."""
    first, last = int(turbine.slot[0]), int(turbine.slot[-1])
    size = last - first + 1
    total = common[:, first : last + 1].copy()
    for at, factor in enumerate(memory_factors(farm.step)):
        own = 1.0 if farm.size == 1 else 1 - SHARED[int(SLOW[at])]
        total[int(LASTING[at])] += np.sqrt(shares[at] * own) * _process(factor, size, draws)
    own = 1.0 if farm.size == 1 else 1 - SHARED[1]
    total[2] += np.sqrt(own) * _process(_slowly(farm), size, draws)
    total[1] *= np.exp(VOLATILITY * total[2] - VOLATILITY**2)
    return np.asarray((total[0] + total[1])[turbine.slot - first])


def _slowly(farm: Farm) -> float:
    """Return the autocorrelation of volatility after one step."""
    return float(np.exp(-farm.step / VOLATILITY_MEMORY))


def _take_means_out(farm: Farm, place: int, scatter: Scatter, months: bool, out: Vector) -> None:
    """Subtract the draws' own means by speed and month, so that the noisy means are released."""
    base = scatter.means.base
    spread = base.spread * scatter.spread[place]

    def columns(chunk: Chunk) -> sparse.csr_array:
        hats = base.knots.matrix(chunk)
        if not months:
            return hats
        month = chunk.month[chunk.block]
        return sparse.hstack([hats, cells(month, farm.months, np.ones(len(chunk)))]).tocsr()

    size = len(base.knots) + (farm.months if months else 0)
    gram, sums = np.zeros((size, size)), np.zeros(size)
    for chunk in farm.chunks(place):
        A = columns(chunk)
        weight = spread[chunk.level]
        gram += (A.T @ A.multiply(weight[:, None])).toarray()
        sums += A.T @ (weight * out[chunk.rows])
    ridge = 1e-6 * np.trace(gram) / size * np.eye(size)
    found = np.linalg.lstsq(gram + ridge, sums, rcond=None)[0]
    for chunk in farm.chunks(place):
        out[chunk.rows] -= columns(chunk) @ found


def _censoring(quantiles: Vector) -> tuple[Vector, Vector, Vector]:
    """Tabulate the mean of a residual clipped at 0 from below and above, by its mean before."""
    sample = quantiles[::20]
    before = np.linspace(-6.0, 40.0, 700)
    above = np.maximum(before[:, None] + sample[None], 0.0).mean(axis=1)
    below = np.maximum(before[:, None] - sample[None], 0.0).mean(axis=1)
    return before, above, below


def _records(
    chunk: Chunk, scatter: Scatter, tables: tuple[Vector, Vector, Vector], residuals: Vector
) -> Vector:
    """Compute clipped records whose means after clipping are the wanted ones."""
    base = scatter.means.base
    spread = (base.spread * scatter.spread[chunk.turbine])[chunk.level]
    wanted = base.curve[chunk.level] + base.spread[chunk.level] * scatter.means.of(chunk)
    wanted = np.clip(wanted, 0.0, 1.0)
    before, above, below = tables
    low, high = wanted / spread, (1 - wanted) / spread
    from_zero = np.where(low > 30, wanted, np.interp(low, above, before) * spread)
    from_full = np.where(high > 30, wanted, 1 - np.interp(high, below, before) * spread)
    centre = np.where(wanted < 0.5, from_zero, from_full)
    centre = np.where(wanted <= 1e-6, -3 * spread, centre)
    centre = np.where(wanted >= 1 - 1e-6, 1 + 3 * spread, centre)
    power = np.clip(centre + spread * residuals, 0.0, 1.0)
    # A running turbine is not at zero if there is enough wind.
    least = np.maximum(0.2 * wanted, 0.006)
    return np.asarray(np.where(base.running[chunk.level], np.maximum(power, least), power))


def _add_stops(
    farm: Farm,
    place: int,
    scatter: Scatter,
    stops: Stops,
    draws: np.random.Generator,
    out: Vector,
) -> None:
    """Add spells of stopped and derated records until each group of wind speeds has its share."""
    turbine = farm.turbines[place]
    running = scatter.means.base.running[turbine.level]
    group = stops.group[turbine.level]
    if not farm.timed:
        share = stops.rates[place].sum(axis=1)[group]
        out[running & (draws.random(len(out)) < share)] = 0.0
        return
    members = [np.flatnonzero(running & (group == g)) for g in range(SPEED_GROUPS)]
    free = running
    for kind in range(stops.rates.shape[2]):
        left = stops.rates[place, :, kind] * [len(one) for one in members]
        for turn in range(4 * len(out)):
            g = int(np.argmax(left)) if turn % 2 else int(draws.integers(SPEED_GROUPS))
            if left.max() < 1:
                break
            if left[g] < 1:
                continue
            first = int(members[g][draws.integers(len(members[g]))])
            scattered = draws.normal(-(_SPELL_SCATTER**2) / 2, _SPELL_SCATTER)
            length = int(np.clip(round(np.exp(scattered) * _HIDDEN * stops.length), 1, _LONGEST))
            window = slice(first, first + length)
            # Rows after a gap belong to another spell; groups that have their share are skipped.
            same = turbine.slot[window] < turbine.slot[first] + length
            rows = first + np.flatnonzero(same & free[window])
            rows = rows[_within(group[rows], left)]
            free[rows] = False
            left -= np.bincount(group[rows], minlength=SPEED_GROUPS)
            out[rows] *= 0.0 if kind == 0 else draws.uniform(0.05, 0.7)


def _within(groups: Whole, left: Vector) -> Flags:
    """Mark the rows of a spell that fit into the rest of each group's share."""
    keep = np.ones(len(groups), dtype=np.bool_)
    for g in range(SPEED_GROUPS):
        at = np.flatnonzero(groups == g)
        keep[at[max(int(left[g]) + 1, 0) :]] = False
    return keep
