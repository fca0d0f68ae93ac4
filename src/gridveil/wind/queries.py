"""What a wind release asks of the private records, and how far each answer can move.

Power is in shares of capacity, `y` in `[0, 1]^m`; neighbours differ in one record by at most
`alpha`. Records of several turbines are asked about together: each query has a block of
coordinates for every turbine, and a record is in one of them. Blocks are scaled so that every
turbine's moves by the same bound, so the one bound serves all. All coordinates count as moving,
those of other turbines too: then rounding is covered even if it is not the same from one
computation to the next.

**Shares are rounded.** A recorded number `x` is read as the nearest float, divided by the capacity
`c`, and clipped. With unit roundoff `u = 2^-53` the quotient is `x/c (1 + d)(1 + e)`, with
`|d|, |e| <= u`. For `x/c` in `[0, 1]` that is off by at most `2u + u^2`. (An `x` or a quotient that
underflows is off by far less, since capacities are at least 1e-12.)
Clipping brings no two numbers further apart. An `x` above `c` is read as a float that is not below
`c`, so its share is exactly 1, and one below 0 has exactly 0. So each share is within
`SHARE_TOLERANCE = 2^-51` of the exact one, and the computed shares of a record that moves by alpha
move by at most `alpha + 2^-50`. Other records are read and divided by the same operations, which
are correctly rounded: their shares are the same to the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from gridveil.privacy.account import Account
from gridveil.privacy.mechanisms import Blocks, laplace, laplace_blocks
from gridveil.privacy.sealed import Range
from gridveil.privacy.sensitivity import Sensitivity, calibrate_laplace
from gridveil.wind.records import Records
from gridveil.wind.regression import RUN, UNIT, UP, Fit, gamma, sum_runs

Vector = NDArray[np.float64]

SHARE_TOLERANCE = Fraction(1, 2**51)
"""How far a computed share of capacity is from the exact one, at most."""


@dataclass(frozen=True)
class Answer:
    """A noisy answer for every turbine, and the scale of its noise, in the turbine's own units."""

    values: list[Vector]
    scales: list[float]


@dataclass(frozen=True, eq=False)
class Query:
    """A question about every turbine's records; public but for what `compute` will be given.

    Parameters
    ----------
    name, unit, sensitivity, range
        As the statement has them; for the answers scaled by ``factors``.
    factors, sizes
        Of each turbine's block: what it is multiplied by, and how many coordinates it has.
    compute
        The answer, from the blocks of every turbine's opened power.
    """

    name: str
    unit: str
    sensitivity: Sensitivity
    range: Range
    factors: Sequence[float]
    sizes: Sequence[int]
    compute: Callable[[Sequence[Blocks]], Vector]

    def of_group(self, group: int) -> Query:
        """The same question, if so many records may move at once.

        They move one after the other, so the answer moves by at most so many times its bound. All
        coordinates count as moving already, and the tolerance is that of two computed answers.
        """
        whole = replace(
            self.sensitivity,
            value=self.sensitivity.value * group,
            why=self.sensitivity.why + (f", for {group:,} records" if group > 1 else ""),
        )
        return replace(self, sensitivity=whole)

    def check(self, epsilon: Fraction) -> None:
        """Raise `InputError` if the query can't be asked at this epsilon; opens nothing."""
        calibrate_laplace(self.sensitivity, epsilon, self.range)

    def ask(self, account: Account, records: Records, epsilon: Fraction) -> Answer:
        """Ask it, for epsilon."""
        noisy = laplace(
            account,
            records.by_turbine,
            query=self.compute,
            name=self.name,
            sensitivity=self.sensitivity,
            epsilon=epsilon,
            size=sum(self.sizes),
            range=self.range,
            unit=self.unit,
        )
        account.scaled(noisy.record, np.repeat(self.factors, self.sizes))
        parts = np.split(noisy.value, np.cumsum(self.sizes)[:-1])
        scale = noisy.record.calibration.scale_in_units
        return Answer(
            [part / factor for part, factor in zip(parts, self.factors, strict=True)],
            [scale / factor for factor in self.factors],
        )


def records_sensitivity(alpha: Fraction, group: int = 1) -> Sensitivity:
    """A record moves by at most alpha, and with it one coordinate; shares are rounded.

    In a group, so many records and coordinates do.
    """
    why = "one record moves by at most alpha" if group == 1 else "each of a group moves by alpha"
    return Sensitivity(alpha * group, why, moving=group, tolerance=SHARE_TOLERANCE)


def share_step(alpha: Fraction) -> Fraction:
    """How far the computed share of the one record that differs can move: for all other queries."""
    return min(alpha + 2 * SHARE_TOLERANCE, Fraction(1))


def ask_records(
    account: Account,
    records: Records,
    alpha: Fraction,
    epsilon: Fraction,
    into: Vector,
    group: int = 1,
) -> float:
    """Fill ``into`` with noisy records and return the noise's scale.

    Rows that are alike in all that is public are in the order of their noisy values: whatever is
    made of them knows nothing of the order that they had in the source, which may be sorted by
    power. Every other query is a sum, to which such rows contribute alike.

    They are an answer that the bundle holds: ``into`` must stay as it is.
    """
    noisy = laplace_blocks(
        account,
        records.power,
        name="every record",
        sensitivity=records_sensitivity(alpha, group),
        epsilon=epsilon,
    )
    start = 0
    for block in noisy.value:
        into[start : start + len(block)] = block
        start += len(block)
    records.without_trace(into)
    account.answered(noisy.record, into)
    return noisy.record.calibration.scale_in_units


def weights_query(fits: Sequence[Fit], mixes: Sequence[Vector], alpha: Fraction) -> Query:
    """``A beta`` of every turbine, ``A`` its public mix of the weights.

    ``beta = M y`` is linear, so ``A beta`` moves by at most ``alpha max_i ||A M e_i||_1`` in L1,
    with the `share_step` for alpha. The computed answer is off by at most ``|A|`` times the
    regression's own tolerance, and the rounding of the product.
    """
    step = above(share_step(alpha))
    bounds = [f.ridge.sensitivity(A, step) for f, A in zip(fits, mixes, strict=True)]
    factors = [max(bounds) / bound for bound in bounds]
    reach = tolerance = 0.0
    for fit, A, factor in zip(fits, mixes, factors, strict=True):
        size = np.abs(A) @ fit.ridge.weights_bound
        slack = np.abs(A) @ fit.ridge.weights_tolerance + gamma(A.shape[1] + 4) * size
        reach = max(reach, factor * float(size.max()))
        tolerance = max(tolerance, factor * float(slack.max()))

    def compute(parts: Sequence[Blocks]) -> Vector:
        answers = [
            factor * (A @ fit.ridge.weights(fit.with_blocks(power)))
            for fit, A, factor, power in zip(fits, mixes, factors, parts, strict=True)
        ]
        return np.concatenate(answers)

    return Query(
        name="weights of the regression",
        unit="of capacity",
        sensitivity=Sensitivity(
            Fraction(max(bounds) * (1 + 1e-12)),
            "weights are linear in the records: alpha times the largest column of their matrix",
            moving=sum(len(A) for A in mixes),
            tolerance=Fraction(tolerance * UP),
        ),
        range=Range(-2 * reach - 1, 2 * reach + 1),
        factors=factors,
        sizes=[len(A) for A in mixes],
        compute=compute,
    )


def loss_query(fits: Sequence[Fit], alpha: Fraction) -> Query:
    """The regression's loss ``l = ||y - X beta||_2`` of every turbine.

    ``l`` is the norm of a linear map ``T y``, so by the triangle inequality it moves by at most
    ``alpha max_i ||T e_i||_2``, with the `share_step` for alpha. (The squared loss has no such
    bound that is free of the data.)
    """
    bounds = [fit.ridge.delta_loss(above(share_step(alpha))) for fit in fits]
    factors = [max(bounds) / bound for bound in bounds]
    reach = max(c * math.sqrt(fit.rows) for c, fit in zip(factors, fits, strict=True))
    tolerance = max(
        c * (fit.ridge.loss_tolerance + 4 * UNIT * math.sqrt(fit.rows))
        for c, fit in zip(factors, fits, strict=True)
    )

    def compute(parts: Sequence[Blocks]) -> Vector:
        losses = [f.ridge.loss(f.with_blocks(y)) for f, y in zip(fits, parts, strict=True)]
        return np.array(losses) * factors

    return Query(
        name="loss of the regression",
        unit="of capacity",
        sensitivity=Sensitivity(
            Fraction(max(bounds) * (1 + 1e-12)),
            "the loss is the norm of a linear map of the records: alpha times its largest column",
            moving=len(fits),
            tolerance=Fraction(tolerance * UP),
        ),
        range=Range(-1.0, 2 * reach + 1),
        factors=factors,
        sizes=[1] * len(fits),
        compute=compute,
    )


def spread_query(
    fits: Sequence[Fit], curves: Sequence[Vector], radius: Fraction, alpha: Fraction
) -> Query:
    """How far the records of every turbine lie from a public curve: ``sum_i phi(y_i - f_i)``.

    ``f = clip(X b)`` for public weights ``b`` (``curves``), made from answers that are already
    noisy. ``phi(r) = r^2`` up to the radius ``R`` and ``2 R |r| - R^2`` beyond (Huber's). The
    curve is fixed, ``y`` and ``f`` are in ``[0, 1]``, and ``phi`` is even, convex and grows with
    ``|r|``, so a record that moves by alpha moves the sum most at the far end:

        phi(1) - phi(1 - alpha)   <=   2 R alpha,

    with the `share_step` for alpha.

    The norm that `loss_query` asks for moves by alpha, that is its square by about ``2 l alpha``,
    and ``l`` grows with the root of the number of records if ``R`` is at most 1: about a
    fixed curve the same epsilon says far more of the spread.
    """
    R = float(radius)
    tolerance = max(
        2 * R * gamma(len(b) + 4) * float(fit.ridge.feature_sums @ np.abs(b))
        + (gamma(RUN + 8) + 8 * UNIT) * fit.rows
        for fit, b in zip(fits, curves, strict=True)
    )

    def compute(parts: Sequence[Blocks]) -> Vector:
        spreads = [_spread(f, y, b, R) for f, y, b in zip(fits, parts, curves, strict=True)]
        return np.array(spreads)

    return Query(
        name="spread about the noisy curve",
        unit="of capacity squared",
        sensitivity=Sensitivity(
            huber(Fraction(1), radius) - huber(1 - share_step(alpha), radius),
            "one term of the sum moves, by at most phi(1) - phi(1 - alpha)",
            moving=len(fits),
            tolerance=Fraction(tolerance * UP),
        ),
        range=Range(-1.0, 2.0 * max(fit.rows for fit in fits)),
        factors=[1.0] * len(fits),
        sizes=[1] * len(fits),
        compute=compute,
    )


def huber(r: Fraction, radius: Fraction) -> Fraction:
    """Huber's function, exactly."""
    return r * r if abs(r) <= radius else 2 * radius * abs(r) - radius * radius


def above(value: Fraction) -> float:
    """A float that is not below an exact number."""
    near = float(value)
    return near if Fraction(near) >= value else math.nextafter(near, math.inf)


def _spread(fit: Fit, power: Blocks, b: Vector, R: float) -> float:
    runs: list[float] = []
    for X, y in fit.with_blocks(power).blocks():
        away = np.abs(y - np.clip(X @ b, 0.0, 1.0))
        runs.extend(sum_runs(np.where(away <= R, away * away, 2 * R * away - R * R)))
    return math.fsum(runs)
