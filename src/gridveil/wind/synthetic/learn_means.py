"""Learn the means of a turbine's records: the curve, and how turbines, months and hours differ.

Steps A to C of docs/maths/wind-blocks.md. Each step combines its noisy answers with public priors;
the next one uses the curve that is known by then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from gridveil.privacy.mechanisms import Blocks
from gridveil.wind.curve_prior import REFERENCE_PRIOR, REFERENCES, Reference
from gridveil.wind.synthetic.ask_queries import Inquiry
from gridveil.wind.synthetic.block_queries import (
    TERM,
    BlockSums,
    Choice,
    add_by_block,
    masked,
    opened,
    weigh,
)
from gridveil.wind.synthetic.choose_queries import (
    HOUR_SPREAD,
    MONTH_SPREAD,
    RESPONSE,
    RESPONSE_SPREAD,
    TURBINE_SPREAD,
)
from gridveil.wind.synthetic.knots import Flags, Knots, cells, isotonic, posterior
from gridveil.wind.synthetic.public_farm import GRID, HOURS, SPEEDS, Chunk, Farm, Vector, Whole

QUARTERS = 4
_POWERS = 200  # the number of levels of power in the choice of the reference
_REACH = 0.15  # records further than this from a candidate all count the same


@dataclass(frozen=True, eq=False)
class Base:
    """The first estimate of the curve and of the records' spread about it, over `SPEEDS`.

    ``turning`` marks speeds at which the curve is above 3%. ``running`` marks those at which it is
    so far above zero (more than four spreads) that a record near zero means a stopped turbine.
    Without that, scatter that was clipped at zero would count as stops.
    """

    knots: Knots
    curve: Vector
    spread: Vector
    turning: Flags
    running: Flags

    def sizes(self, chunk: Chunk, power: Vector) -> Vector:
        """Compute residuals divided by their spread."""
        return np.asarray((power - self.curve[chunk.level]) / self.spread[chunk.level])

    def turns(self, chunk: Chunk) -> Vector:
        """Compute how far the curve before and after is from the curve now, in spreads.

        It is the mean of one step earlier and later, clipped at 2. An anemometer measures gusts
        that the rotor does not follow, so power lies between the curve now and the curve before and
        after.
        """
        level = chunk.level
        away = (self.curve[chunk.before] + self.curve[chunk.after]) / 2 - self.curve[level]
        return np.asarray(np.clip(away / self.spread[level], -2.0, 2.0) * self.turning[level])

    def odd(self, chunk: Chunk, power: Vector, sizes: Vector) -> tuple[Flags, Flags]:
        """Mark records of a stopped turbine, and records of a derated turbine."""
        running, curve = self.running[chunk.level], self.curve[chunk.level]
        stopped = running & (power <= 0.005)
        return stopped, running & (sizes < -6) & (power < 0.8 * curve) & ~stopped

    def normal(self, chunk: Chunk, power: Vector, sizes: Vector) -> Flags:
        """Mark all other records, except those more than six spreads from the curve."""
        stopped, derated = self.odd(chunk, power, sizes)
        return ~(stopped | derated) & (np.abs(sizes) <= 6)


@dataclass(frozen=True, eq=False)
class Means:
    """Means of residuals over their spread: by turbine and speed, month, part of the day.

    ``response`` says how they follow the wind speeds before and after.
    """

    base: Base
    by_speed: Vector
    by_month: Vector
    by_hour: Vector
    response: float

    def of(self, chunk: Chunk) -> Vector:
        """Compute the mean of each row."""
        month = self.by_month[chunk.turbine, chunk.month]
        mean = self.by_speed[chunk.turbine][chunk.level] + month[chunk.block]
        hour = self.by_hour[chunk.quarter[chunk.block], chunk.hour]
        mean += hour * self.base.turning[chunk.level]
        return np.asarray(mean + self.response * self.base.turns(chunk))


def ask_reference(inquiry: Inquiry) -> Reference:
    """Step A: choose one of the public curves by noisy max.

    A candidate's score is minus the weighted distance of records from it, clipped at 15% of
    capacity: a term between 0 and 1. Records at which candidates agree have little weight.
    """
    farm = inquiry.farm
    coarse = 10  # levels of wind speed in a cell
    met = np.bincount(np.arange(len(SPEEDS)) // coarse, farm.counts.sum(axis=0)) > 0
    speeds = SPEEDS[::coarse][met]
    cell = (np.cumsum(met) - 1).astype(np.int64)  # of wind speeds that records have
    curves = np.array([one(speeds) for one in REFERENCES])
    telling = curves.std(axis=0)
    weights = weigh(farm, lambda chunk: telling[cell[chunk.level // coarse]], 0.8)
    middle = (np.arange(_POWERS) + 0.5) / _POWERS

    def scores(parts: Sequence[Blocks]) -> Whole:
        table = np.zeros(len(speeds) * _POWERS, dtype=np.int64)
        for (chunk, power), weight in zip(opened(farm, parts), weights, strict=True):
            at = np.minimum((power * _POWERS).astype(np.int64), _POWERS - 1)
            at += cell[chunk.level // coarse] * _POWERS
            table += np.bincount(at, weight, minlength=len(table)).astype(np.int64)
        found = []
        for curve in curves:
            away = np.minimum(np.abs(middle[None] - curve[:, None]) / _REACH, 1.0)
            found.append(-int(table @ np.rint(away * TERM).astype(np.int64).ravel()))
        return np.array(found)

    choice = Choice("shape of the power curve", REFERENCE_PRIOR, scores)
    return REFERENCES[inquiry.choose("reference", choice)]


def ask_base(inquiry: Inquiry, knots: Knots, reference: Reference) -> Base:
    """Step B: ask for the curve's distance from the reference, and for the records' spread."""
    farm = inquiry.farm
    known, at_knots = reference(SPEEDS), reference(knots.at)

    def distances(chunk: Chunk, power: Vector) -> Vector:
        return knots.sums(chunk, np.clip(power - known[chunk.level], -0.25, 0.25))

    sums, variance = inquiry.ask(
        "rough",
        BlockSums(
            "distance from that shape",
            inquiry.agenda.radius["rough"],
            len(knots),
            distances,
        ),
    )
    prior = knots.smooth(0.02 + 0.06 * np.sqrt(at_knots * (1 - at_knots)), 2.0)
    found, covariance = posterior(
        gram(farm, knots), sums[0], np.full(len(knots), variance), np.asarray(np.linalg.inv(prior))
    )
    rising = np.maximum.accumulate(np.clip(at_knots + found, 0.0, 1.0))
    error = knots.table(np.sqrt(np.diag(covariance)))
    curve = np.clip(known + knots.table(rising - at_knots), 0.0, 1.0)
    curve = np.where(knots.at[0] > SPEEDS, np.minimum(curve, rising[0]), curve)
    turning = curve > 0.03
    shape = np.maximum(np.sqrt(curve * (1 - curve)), 0.06)
    # The median distance from the curve includes the curve's own error, which is subtracted.
    median = inquiry.choose_median(
        "scale",
        "median distance from the curve",
        lambda chunk, power: np.abs(power - curve[chunk.level]) / shape[chunk.level],
        turning.astype(np.float64),
        np.exp(np.arange(np.log(0.004), np.log(0.6), np.log(1.15))),
        (0.674 * 0.085, 0.7),
    )
    whole = (median / 0.674) ** 2
    own = farm.quantile_of(error / shape, 0.5, turning) ** 2
    typical = float(np.clip(np.sqrt(max(whole - own, 0.15 * whole)), 0.008, 0.5))
    spread = np.sqrt((typical * shape) ** 2 + error**2)
    return Base(knots, curve, spread, turning, turning & (curve > 4 * spread))


def ask_means(inquiry: Inquiry, base: Base) -> Means:
    """Step C: ask for means of residuals over their spread, clipped at 3, in one posterior."""
    farm, agenda, knots = inquiry.farm, inquiry.agenda, base.knots
    turbine_knots = (
        knots.fewer(min(agenda.turbine_knots, len(knots))) if agenda.turbine_knots else knots
    )
    turning = base.turning.astype(np.float64)
    # A month's energy matters, so residuals are weighted by their size in power.
    large = farm.quantile_of(base.spread, 0.98)
    in_power = np.minimum(base.spread / large, 1.0)
    months = farm.months * (farm.size if agenda.months_by_turbine else 1)

    def residuals(chunk: Chunk, power: Vector) -> Vector:
        sizes = base.sizes(chunk, power)
        return masked(np.clip(sizes, -3.0, 3.0), base.normal(chunk, power, sizes))

    def month_of(chunk: Chunk) -> Whole:
        return chunk.month + (farm.months * chunk.turbine if agenda.months_by_turbine else 0)

    def hour_of(chunk: Chunk) -> Whole:
        return chunk.quarter[chunk.block] * HOURS + chunk.hour

    questions = {
        "curve": BlockSums(
            "means of residuals by wind speed",
            agenda.radius["curve"],
            len(knots),
            lambda chunk, power: knots.sums(chunk, residuals(chunk, power)),
        ),
        "turbines": BlockSums(
            "means of residuals by turbine and wind speed",
            agenda.radius["turbines"],
            len(turbine_knots),
            lambda chunk, power: turbine_knots.sums(chunk, residuals(chunk, power)),
            farm.size,
            lambda chunk: np.full(chunk.blocks, chunk.turbine),
        ),
        "months": BlockSums(
            "means of residuals by month",
            agenda.radius["months"],
            1,
            lambda chunk, power: add_by_block(
                chunk, residuals(chunk, power) * in_power[chunk.level], None, 1
            ),
            months,
            month_of,
        ),
        "hours": BlockSums(
            "means of residuals by quarter and part of the day",
            agenda.radius["hours"],
            HOURS,
            lambda chunk, power: add_by_block(
                chunk, residuals(chunk, power) * turning[chunk.level], chunk.hour, HOURS
            ),
            QUARTERS,
            lambda chunk: chunk.quarter,
        ),
        "response": BlockSums(
            "how residuals follow the wind speeds before and after",
            agenda.radius["response"],
            1,
            lambda chunk, power: add_by_block(
                chunk, residuals(chunk, power) * base.turns(chunk), None, 1
            ),
        ),
    }
    asked = {name: one for name, one in questions.items() if agenda.asks(name)}
    answers = {name: inquiry.ask(name, one) for name, one in asked.items()}

    # Each row's share of every sum and of every unknown, as sparse columns.
    def columns(chunk: Chunk) -> tuple[list[sparse.csr_array], list[sparse.csr_array]]:
        hats = knots.matrix(chunk)
        summed, sought = {"curve": hats}, {"curve": hats}
        if "turbines" in asked:
            own = turbine_knots.matrix(chunk, None, chunk.turbine, farm.size)
            summed["turbines"] = sought["turbines"] = own
        if "months" in asked:
            month = month_of(chunk)[chunk.block]
            summed["months"] = cells(month, months, in_power[chunk.level])
            sought["months"] = cells(chunk.month[chunk.block], farm.months, np.ones(len(chunk)))
            if agenda.months_by_turbine:
                sought["own months"] = cells(month, months, np.ones(len(chunk)))
        if "hours" in asked:
            hour = cells(hour_of(chunk), QUARTERS * HOURS, turning[chunk.level])
            summed["hours"] = sought["hours"] = hour
        if farm.timed:
            sought["response"] = sparse.csr_array(base.turns(chunk)[:, None])
        if "response" in asked:
            summed["response"] = sought["response"]
        return list(summed.values()), list(sought.values())

    priors = {"curve": np.linalg.inv(knots.smooth(np.ones(len(knots)), 1.5))}
    if "turbines" in asked:
        priors["turbines"] = np.eye(farm.size * len(turbine_knots)) / TURBINE_SPREAD**2
    if "months" in asked:
        priors["months"] = np.eye(farm.months) / MONTH_SPREAD**2
        if agenda.months_by_turbine:
            priors["own months"] = np.eye(months) / 0.2**2
    if "hours" in asked:
        priors["hours"] = np.eye(QUARTERS * HOURS) / HOUR_SPREAD**2
    if farm.timed:
        priors["response"] = np.eye(1) / RESPONSE_SPREAD**2
    usual = np.zeros(sum(len(prior) for prior in priors.values()))
    usual[-1:] = RESPONSE if farm.timed else 0.0
    products = sum(
        (sparse.hstack(a).T @ sparse.hstack(b)).toarray()
        for a, b in (columns(chunk) for chunk in farm.every_chunk())
    )
    sums = np.concatenate([values.ravel() for values, _ in answers.values()])
    found, covariance = posterior(
        np.asarray(products),
        sums - products @ usual,
        np.concatenate([np.full(values.size, variance) for values, variance in answers.values()]),
        sparse.block_diag(list(priors.values())).toarray(),
    )
    sizes = [len(prior) for prior in priors.values()]
    parts = dict(zip(priors, np.split(usual + found, np.cumsum(sizes)[:-1]), strict=True))
    own = parts.get("turbines", np.zeros(farm.size * len(turbine_knots)))
    by_month = np.broadcast_to(parts.get("months", np.zeros(farm.months)), (farm.size, farm.months))
    if "own months" in parts:
        by_month = by_month + parts["own months"].reshape(farm.size, farm.months)
    return Means(
        base,
        _rising(base, parts["curve"], turbine_knots, own.reshape(farm.size, -1), covariance),
        by_month,
        parts.get("hours", np.zeros(QUARTERS * HOURS)).reshape(QUARTERS, HOURS),
        float(parts.get("response", np.zeros(1))[0]),
    )


def _rising(base: Base, common: Vector, knots: Knots, own: Vector, covariance: Vector) -> Vector:
    """Tabulate means by turbine over `SPEEDS`; no curve falls, so each is made to rise at knots."""
    at = base.knots.at
    levels = np.minimum(np.rint(at / GRID).astype(int), len(SPEEDS) - 1)
    curve, spread = base.curve[levels], base.spread[levels]
    known = 1 / (np.diag(covariance)[: len(at)] * spread**2)
    tables = []
    for turbine in own:
        mean = common + np.interp(at, knots.at, turbine)
        power = curve + spread * mean
        raised = np.clip(isotonic(power, known), 0.0, 1.0)
        shift = base.knots.table(common + (raised - power) / spread)
        tables.append(shift + knots.table(turbine))
    return np.array(tables)


def gram(farm: Farm, knots: Knots) -> Vector:
    """Sum the products of hats over all rows."""
    total = farm.counts.sum(axis=0)
    hats = np.zeros((len(SPEEDS), len(knots)))
    rows = np.arange(len(SPEEDS))
    hats[rows, knots.left] = 1 - knots.share
    hats[rows, knots.left + 1] += knots.share
    return np.asarray(hats.T @ (hats * total[:, None]))
