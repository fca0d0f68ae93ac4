"""Learn how records scatter about their means: stops, spread, shape and order in time.

Step D of docs/maths/wind-blocks.md. The means are already known; each query's answer is combined
with a public prior, which is used alone if the query is not asked.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.special import ndtri

from gridveil.wind.synthetic.ask_queries import Inquiry
from gridveil.wind.synthetic.autocorrelation import (
    CLIP,
    choose_lags,
    fit_shares,
    usual_products,
    usual_shares,
)
from gridveil.wind.synthetic.block_queries import BlockSums, add_by_block, add_by_long_block, masked
from gridveil.wind.synthetic.choose_queries import SPELL, SPELL_SPREAD, STOPPED
from gridveil.wind.synthetic.knots import Flags, cells, posterior
from gridveil.wind.synthetic.learn_means import Base, Means
from gridveil.wind.synthetic.public_farm import SPEEDS, Chunk, Vector, Whole
from gridveil.wind.synthetic.residual_shape import (
    EDGES,
    MEAN_SIZE,
    MEDIAN_SIZE,
    RANKS,
    USUAL,
    estimate_bins,
    quantiles,
)

SPEED_GROUPS = 3
_KINDS = 2  # stopped, derated
_KIND_PRIORS = (0.013, 0.002)


@dataclass(frozen=True, eq=False)
class Stops:
    """How often turbines stand still or are derated although there is enough wind.

    ``group`` is the group of each level of wind speed; ``rates`` are the shares by turbine, group
    and kind; ``length`` is the number of records in a spell.
    """

    group: Whole
    rates: Vector
    length: float


@dataclass(frozen=True, eq=False)
class Scatter:
    """Residuals about their means: spread by turbine and speed, shape, and the lags' processes."""

    means: Means
    spread: Vector
    quantiles: Vector
    shares: Vector

    def scores(self, chunk: Chunk, power: Vector) -> tuple[Vector, Flags]:
        """Return residuals divided by their spread, and mark those of turning, normal turbines."""
        base = self.means.base
        sizes = base.sizes(chunk, power)
        good = base.normal(chunk, power, sizes) & base.turning[chunk.level]
        centred = (sizes - self.means.of(chunk)) / self.spread[chunk.turbine][chunk.level]
        return centred, good


def ask_stops(inquiry: Inquiry, base: Base) -> Stops:
    """Ask for shares of stopped and derated records, and for the length of spells."""
    farm, agenda = inquiry.farm, inquiry.agenda
    middle, high = (farm.quantile_of(SPEEDS, share, base.running) for share in (0.5, 0.85))
    group = np.searchsorted([middle, high], SPEEDS).astype(np.int64)
    counts = farm.counts * base.running
    by_group = np.array([[row[group == g].sum() for g in range(SPEED_GROUPS)] for row in counts])
    rates = np.broadcast_to(np.array(_KIND_PRIORS), (farm.size, SPEED_GROUPS, _KINDS)).copy()

    def kinds(chunk: Chunk, power: Vector) -> Vector:
        stopped, derated = base.odd(chunk, power, base.sizes(chunk, power))
        cell = group[chunk.level] * _KINDS + derated
        odd = (stopped | derated).astype(np.float64)
        return add_by_block(chunk, odd, cell, SPEED_GROUPS * _KINDS)

    if agenda.asks("stops") and agenda.stops == "speed":
        question = BlockSums(
            "stopped and derated records by wind speed",
            agenda.radius["stops"],
            SPEED_GROUPS * _KINDS,
            kinds,
        )
        sums, variance = inquiry.ask("stops", question)
        table = np.maximum(sums.reshape(SPEED_GROUPS, _KINDS), 0.0) / agenda.stops_kept
        of_group = np.maximum(by_group.sum(axis=0), 1.0)
        for g in range(SPEED_GROUPS):
            for kind, prior in enumerate(_KIND_PRIORS):
                error = np.sqrt(variance) / of_group[g]
                rates[:, g, kind] = _shrunk(table[g, kind] / of_group[g], error, prior)
    elif agenda.asks("stops"):
        own = agenda.stops == "turbine"
        question = BlockSums(
            "stopped and derated records by turbine" if own else "stopped and derated records",
            agenda.radius["stops"],
            1,
            lambda chunk, power: kinds(chunk, power).sum(axis=1, keepdims=True),
            farm.size if own else 1,
            lambda chunk: np.full(chunk.blocks, chunk.turbine if own else 0),
            count=True,
        )
        sums, variance = inquiry.ask("stops", question)
        rows = counts.sum(axis=1) if own else counts.sum(keepdims=True)[0]
        share = _rates(sums[:, 0] / agenda.stops_kept, variance, np.maximum(rows, 1.0))
        share = np.broadcast_to(share, farm.size)
        rates = np.array([0.9, 0.1]) * np.broadcast_to(
            share[:, None, None], (farm.size, SPEED_GROUPS, 1)
        )
    odd = float((rates.sum(axis=2) * by_group).sum())
    return Stops(group, rates, _ask_spells(inquiry, base, odd))


def _ask_spells(inquiry: Inquiry, base: Base, odd: float) -> float:
    """Estimate the number of records in a spell: odd records divided by the number of spells."""
    usual = odd / SPELL
    spells = usual
    if inquiry.agenda.asks("spells"):

        def begins(chunk: Chunk, power: Vector) -> Vector:
            stopped, derated = base.odd(chunk, power, base.sizes(chunk, power))
            out = stopped | derated
            after, found = chunk.later(1)
            first = out.copy()
            first[after[found]] &= ~out[found]
            return add_by_long_block(chunk, first.astype(np.float64))[:, None]

        question = BlockSums(
            "spells of stopped and derated records",
            inquiry.agenda.radius["spells"],
            1,
            begins,
            long=True,
            count=True,
        )
        sums, variance = inquiry.ask("spells", question)
        prior = (SPELL_SPREAD * usual + 1) ** 2
        spells = (usual / prior + float(sums[0, 0]) / variance) / (1 / prior + 1 / variance)
    return float(np.clip(odd / max(spells, 1.0), 2.5, 15.0))


def ask_scatter(inquiry: Inquiry, means: Means) -> Scatter:
    """Ask for the spread by turbine and wind speed, the shape of residuals, and their order."""
    spread = _ask_spread(inquiry, means)
    usual = Scatter(means, spread, quantiles(USUAL), usual_shares())
    shaped = Scatter(means, spread, _ask_shape(inquiry, usual), usual.shares)
    if not inquiry.agenda.asks("lags"):
        return shaped
    return Scatter(means, spread, shaped.quantiles, _ask_lags(inquiry, shaped))


def _ask_spread(inquiry: Inquiry, means: Means) -> Vector:
    """Ask for the median size of centred residuals, then for mean sizes by turbine and speed."""
    farm, agenda, base = inquiry.farm, inquiry.agenda, means.base
    turning = base.turning.astype(np.float64)
    ones = np.ones((farm.size, len(SPEEDS)))
    median = inquiry.choose_median(
        "typical",
        "median distance from the means",
        lambda chunk, power: np.abs(base.sizes(chunk, power) - means.of(chunk)),
        turning,
        np.exp(np.arange(np.log(0.05), np.log(4), np.log(1.15))),
        (MEDIAN_SIZE, 0.5),
    )
    first = Scatter(means, median / MEDIAN_SIZE * ones, quantiles(USUAL), usual_shares())
    knots = base.knots.fewer(7)
    size = len(knots)

    def excess(chunk: Chunk, power: Vector) -> Vector:
        sizes, good = first.scores(chunk, power)
        return knots.sums(chunk, masked(np.minimum(np.abs(sizes), 3.0) - MEAN_SIZE, good))

    question = BlockSums(
        "sizes of residuals by turbine and wind speed",
        agenda.radius["spread"],
        size,
        excess,
        farm.size,
        lambda chunk: np.full(chunk.blocks, chunk.turbine),
    )
    sums, variance = inquiry.ask("spread", question)

    def products(chunk: Chunk) -> Vector:
        weight = turning[chunk.level]
        turbine = np.full(len(chunk), chunk.turbine)
        own = knots.matrix(chunk, weight, chunk.turbine, farm.size)
        sought = sparse.hstack([knots.matrix(chunk, weight), cells(turbine, farm.size, weight)])
        return np.asarray((own.T @ sought).toarray())

    prior = np.zeros((size + farm.size, size + farm.size))
    prior[:size, :size] = np.linalg.inv(0.04 + knots.smooth(np.full(size, 0.2), 3.0))
    prior[size:, size:] = np.eye(farm.size) / 0.1**2
    gram = np.sum([products(chunk) for chunk in farm.every_chunk()], axis=0)
    found, _ = posterior(gram, sums.ravel(), np.full(sums.size, variance), prior)
    by_turbine = found[:size] + found[size:, None]
    factor = np.clip(1 + by_turbine / MEAN_SIZE, 0.3, 3.0)
    return np.asarray(first.spread * np.array([knots.table(one) for one in factor]))


def _ask_shape(inquiry: Inquiry, scatter: Scatter) -> Vector:
    """Ask for counts of residuals in bins; return quantiles of residuals over their spread."""
    bins = len(USUAL)

    def excess(chunk: Chunk, power: Vector) -> Vector:
        sizes, good = scatter.scores(chunk, power)
        weight = good.astype(np.float64)
        at = np.clip(np.searchsorted(EDGES, sizes) - 1, 0, bins - 1)
        return add_by_block(chunk, weight, at, bins) - add_by_block(chunk, weight, None, 1) * USUAL

    question = BlockSums("distribution of residuals", inquiry.agenda.radius["shape"], bins, excess)
    sums, variance = inquiry.ask("shape", question)
    rows = float((inquiry.farm.counts * scatter.means.base.turning).sum())
    return quantiles(estimate_bins(sums[0], variance, max(rows, 1.0)))


def _ask_lags(inquiry: Inquiry, scatter: Scatter) -> Vector:
    """Ask for products of scores at public lags; return the processes' shares.

    Products at neighbouring lags are similar, so their differences inside a block have a smaller
    norm: the differences are asked for, and summed again.
    """
    farm, turning = inquiry.farm, scatter.means.base.turning
    lags = choose_lags(farm.step, farm.long_length)
    usual = usual_products(lags, farm.step)

    def differences(chunk: Chunk, power: Vector) -> Vector:
        sizes, good = scatter.scores(chunk, power)
        ranks = np.interp(sizes, scatter.quantiles, RANKS)
        scores = masked(np.clip(ndtri(np.clip(ranks, 1e-4, 1 - 1e-4)), -CLIP, CLIP), good)
        sums = []
        for lag, level in zip(lags, usual, strict=True):
            after, found = chunk.later(int(lag))
            both = found & good & good[after]
            sums.append(add_by_long_block(chunk, masked(scores * scores[after] - level, both)))
        table = np.column_stack(sums)
        table[:, :-1] -= table[:, 1:].copy()
        return table

    question = BlockSums(
        "products of residuals at several lags",
        inquiry.agenda.radius["lags"],
        len(lags),
        differences,
        long=True,
    )
    sums, variance = inquiry.ask("lags", question)
    counts = np.zeros(len(lags))
    for chunk in farm.every_chunk():
        on = turning[chunk.level]
        for at, lag in enumerate(lags):
            after, found = chunk.later(int(lag))
            counts[at] += float((found & on & on[after]).sum())
    counts = np.maximum(counts, 1.0)
    joined = np.triu(np.ones((len(lags), len(lags))))
    covariance = variance * (joined @ joined.T) / counts[:, None] / counts[None]
    return fit_shares(lags, farm.step, usual + joined @ sums[0] / counts, covariance)


def _shrunk(share: float, error: float, prior: float) -> float:
    """Compute the posterior mean of a share whose prior is exponential with mean `prior`."""
    grid = np.linspace(0.0, 0.6, 6001)
    error = max(error, 1e-6)
    logs = -0.5 * ((share - grid) / error) ** 2 - (grid / prior if error > 0.1 * prior else 0.0)
    weights = np.exp(logs - logs.max())
    return float((grid * weights).sum() / weights.sum())


def _rates(odd: Vector, variance: float, rows: Vector) -> Vector:
    """Compute the posterior mean of each turbine's share: the farm's first, then turbines'."""
    whole = rows.sum()
    farm = _shrunk(odd.sum() / whole, float(np.sqrt(variance * len(rows))) / whole, STOPPED)
    about = (0.5 * farm) ** 2 + 1e-12
    own = odd / rows
    return np.asarray(np.maximum(farm + (own - farm) * about / (about + variance / rows**2), 0.0))
