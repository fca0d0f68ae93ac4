"""Tuned: WPO's idea with a better use of epsilon; the documentation explains each step.

`tuned_weight_mix` chooses what is asked of the weights, `tuned_budget` the shares of epsilon;
`tuned_estimate` computes the best estimates from the noisy answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gridveil.errors import InputError
from gridveil.release.options import Within, option, share
from gridveil.wind.clock import common_step
from gridveil.wind.curve_prior import weight_prior
from gridveil.wind.methods.base import (
    Guarantee,
    Outcome,
    Prepared,
    Released,
    Restoring,
    Shares,
    Task,
    slices,
)
from gridveil.wind.methods.tuned_budget import (
    Split,
    expected_error,
    plan_split,
    public_setting,
)
from gridveil.wind.methods.tuned_distribution import Levels
from gridveil.wind.methods.tuned_estimate import (
    Spread,
    Weights,
    curve,
    estimate_loss,
    estimate_spread,
    estimate_weights,
    matched,
)
from gridveil.wind.methods.tuned_sums import Cells, Restored, whole
from gridveil.wind.methods.tuned_time_order import (
    Readings,
    SharedDraws,
    draw_scores,
    pieces,
    seed_of,
    shared_draws,
)
from gridveil.wind.methods.tuned_weight_mix import weight_mix
from gridveil.wind.queries import above, ask_records, spread_query, weights_query
from gridveil.wind.regression import Fit
from gridveil.wind.restoration.projection import restore_closely
from gridveil.wind.row_blocks import LocalRows, total

Vector = NDArray[np.float64]

# The restoration can only lower a loss, so its aim must have a loss larger by this factor.
_MARGIN = 1.1
_LONGEST = 64.0
_SLACK = 0.1
_NOISY = 0.02  # noise of a smaller scale hardly changes the records
_MANY = 5000
_SERIES, _SINGLE = 0.05, 0.1  # nominal residuals


@dataclass(frozen=True, kw_only=True)
class Tuned(Restoring):
    """Denoise the records, then restore them to the loss and weights that all answers support.

    Parameters
    ----------
    ridge
        The regression's ridge parameter; 0 to 1e6.
    split
        Shares of epsilon for the records, the spread and the weights; planned from public data by
        default.
    gamma_records, gamma_weights
        The restoration's prices of the records and of the weights. Without a price, the weights
        are met as precisely as they are known.
    nominal
        The typical distance of a record from its curve for which the split is planned, as a share
        of capacity. A public guess; accuracy depends on it a little, privacy not at all. By
        default 5% if the largest turbine has times or 5,000 records, else 10%: a series of SCADA
        records has more information than single records, and with few records these must be
        precise.
    """

    method: ClassVar[str] = "tuned"

    gamma_weights: float | None = option(
        None,
        help="the restoration's price of the weights",
        check=Within(0.0, 1e6),
        example="0.00001",
        default="by how well they are known",
    )
    nominal: float | None = option(
        None,
        help="a public guess of a record's distance from its curve, as a share of capacity",
        check=lambda name, value: _nominal(name, value),
        example="5%",
        read=share,
        default="5% for records with times or 5,000 of a turbine, else 10%",
    )

    def prepare(self, fits: Sequence[Fit], guarantee: Guarantee) -> Prepared:
        """See `Method.prepare`."""
        alpha, epsilon, group = guarantee.alpha, guarantee.epsilon, guarantee.group
        largest = max(fits, key=lambda fit: fit.rows)
        mix = weight_mix(largest.ridge)
        setting = public_setting(
            largest.ridge,
            mix,
            alpha=above(alpha),
            epsilon=float(epsilon / group),
            nominal=self._guess(fits),
        )
        plan = plan_split(setting)
        shares = self.split or (plan.records, plan.spread, plan.weights)
        mixes = [mix] * len(fits)
        radius = _radius(plan, shares)
        if shares[1]:
            # The curves are not known yet, but any curve needs at least the grid of a flat one.
            flat = [np.zeros(fit.features.width) for fit in fits]
            spread_query(fits, flat, radius, alpha).of_group(group).check(epsilon * shares[1])
        weights = weights_query(fits, mixes, alpha).of_group(group)
        off = expected_error(setting, weight_prior(largest)[1], shares)
        return Prepared(shares, mixes, weights, radius=radius, curve=off)

    def steps(self, task: Task, prepared: Prepared) -> Outcome:
        """See `Method.steps`."""
        assert prepared.weights is not None
        account, records, fits, alpha = task.account, task.records, task.fits, task.alpha
        for_records, for_spread, for_weights = task.epsilons(prepared.shares)
        # Step 1: noise on every record.
        task.progress("noise on every record")
        b = ask_records(account, records, alpha, for_records, task.noisy, task.group)
        # Step 2: ask for a mix of the weights, and combine it with estimates from noisy records.
        task.progress("weights")
        asked = prepared.weights.ask(account, records, for_weights)
        joined = [
            estimate_weights(
                fit.with_noisy(task.part(fit)),
                fit.ridge,
                b,
                mix,
                answer,
                scale,
                weight_prior(fit),
            )
            for fit, mix, answer, scale in zip(
                fits, prepared.mixes, asked.values, asked.scales, strict=True
            )
        ]
        # Step 3: ask for the spread about the curve, which is public now; combine it likewise.
        task.progress("spread about the curve")
        spreads, scales = [0.0] * len(fits), [0.0] * len(fits)
        if for_spread:
            curves = [weights.beta for weights in joined]
            query = spread_query(fits, curves, prepared.radius, alpha).of_group(task.group)
            found = query.ask(account, records, for_spread)
            spreads, scales = [float(value[0]) for value in found.values], found.scales
        # Step 4: denoise records, and stretch and move them to that loss and those weights.
        turbines, nominal, seen = [], self._guess(fits), []
        for fit, weights, spread, scale in zip(fits, joined, spreads, scales, strict=True):
            rows = fit.with_noisy(task.part(fit))
            radius = float(prepared.radius) if for_spread else 0.0
            loss = estimate_loss(rows, fit.ridge, weights, b, radius, spread, scale, nominal)
            about = estimate_spread(rows, weights.beta, loss, b)
            straight = np.concatenate(list(rows.map(partial(_straight, beta=weights.beta))))
            levels = Levels(np.clip(straight, 0.0, 1.0), task.part(fit), about, b)
            seen.append((loss, about, straight, levels))
        together = self._together(task, [(one[2], one[3]) for one in seen], b)
        for fit, weights, (loss, about, straight, levels) in zip(fits, joined, seen, strict=True):
            rows = fit.with_noisy(task.part(fit))
            if self._in_order(fit, b):
                made = _restore_sums(task, fit, levels, straight, weights.beta, loss, b, together)
            else:
                _aim(task, fit, rows, weights.beta, about, loss, b)
                made = self._restore_closely(task, fit, loss, weights)
            known = partial(_deviations, levels, fit.with_noisy(task.part(fit)), weights)
            turbines.append(replace(made, deviations=known))
        return Outcome(turbines, {"radius": str(prepared.radius), "nominal": nominal})

    def _guess(self, fits: Sequence[Fit]) -> float:
        """Return the nominal residual, chosen from public numbers if none was given."""
        if self.nominal is not None:
            return self.nominal
        return _SERIES if _is_series(max(fits, key=lambda fit: fit.rows)) else _SINGLE

    def _together(
        self, task: Task, seen: Sequence[tuple[Vector, Levels]], b: float
    ) -> SharedDraws | None:
        """Make draws that turbines share, if the order in time of several turbines is restored."""
        found = [
            Readings(levels, straight, task.part(fit), times)
            for fit, (straight, levels) in zip(task.fits, seen, strict=True)
            if self._in_order(fit, b) and (times := fit.group.times()) is not None
        ]
        return shared_draws(found, seed_of(task.noisy)) if len(found) > 1 else None

    def _in_order(self, fit: Fit, b: float) -> bool:
        """Say from public numbers whether to restore sums and the order in time.

        With little noise, or few records and no times, the noisy records themselves are better.
        """
        return self.gamma_weights is None and b >= _NOISY and _is_series(fit)

    def _restore_closely(self, task: Task, fit: Fit, loss: float, weights: Weights) -> Released:
        """Restore records with this loss, and weights as close as they are known.

        Dividing the weights' covariance by the residuals' variance weights them against the records
        according to their errors; a tenth of it is used, since the aim's own weights carry no
        information.
        """
        gamma = self.gamma_weights
        if gamma is None:
            task.progress(f"restoring {fit.group.name}")
            rows = fit.with_noisy(task.own(fit))
            found = restore_closely(
                rows,
                loss=loss,
                weights=weights.beta,
                slack=_SLACK * weights.covariance * fit.rows / loss**2,
                whitening=fit.ridge.whitening,
                price=_MARGIN - 1,
            )
            if found is not None:
                return Released(lambda: found.records(rows), found)
            # A step of the weights moves the records by at most its length times sqrt(reach).
            reach = np.linalg.eigvalsh(np.linalg.pinv(fit.ridge.factor))[-1]
            gamma = self.gamma_records * float(np.sqrt(reach))
        aim = task.own(fit)
        return self.restore(task, fit, aim, loss=loss, weights=weights.beta, gamma_weights=gamma)


def _is_series(fit: Fit) -> bool:
    """Say whether a turbine has times or many records, and so more information than single ones."""
    return fit.rows >= _MANY or fit.group.times() is not None


def _restore_sums(
    task: Task,
    fit: Fit,
    levels: Levels,
    straight: Vector,
    beta: Vector,
    loss: float,
    b: float,
    together: SharedDraws | None,
) -> Released:
    """Restore records by scores that follow the noisy ones, to the sums that answers support."""
    task.progress(f"restoring {fit.group.name}")
    noisy, made = task.part(fit), task.own(fit)
    times = fit.group.times()
    kinds = [_speed_bins(fit)]
    if times is None or times[0] == times[-1]:
        for some in pieces(fit.rows):
            made[some] = levels.ranked(np.clip(straight[some], 0.0, 1.0), noisy[some])
    else:
        step = common_step([times])
        draw_scores(levels, np.clip(straight, 0.0, 1.0), noisy, times, step, made, together)
        months = times.astype("datetime64[s]").astype("datetime64[M]").astype(np.int64)
        kinds.append(Cells(months))
    restored = Restored(levels, straight, made)
    restored.meet_weights(fit.with_noisy, beta, loss)
    restored.meet_sums([*kinds, whole(fit.rows)], noisy, b, loss)
    restored.finish()
    return Released(slices(made), None, "scores moved to noisy sums")


def _deviations(levels: Levels, rows: LocalRows, weights: Weights) -> Iterator[Vector]:
    """Yield error bars: the standard deviation of released minus real records.

    A released record scatters about its estimate as much as the real one does, so the variance is
    twice that of its power given its reading, plus that of the curve. Readings of neighbours in
    time lower it, so this is on the safe side.
    """
    for X, y0 in rows.blocks():
        own = levels.deviations(curve(X, weights.beta), y0)
        fitted = np.einsum("ij,ij->i", X @ weights.covariance, X)
        yield np.sqrt(2 * own**2 + np.maximum(fitted, 0.0))


def _straight(X: Vector, y0: Vector, beta: Vector) -> Vector:
    return X @ beta


def _speed_bins(fit: Fit) -> Cells:
    speeds = [block["speed"] for block in fit.group.columns()()]
    return Cells(np.concatenate([np.floor(2 * speed).astype(np.int64) for speed in speeds]))


def _nominal(name: str, value: Any) -> float:
    number = Within(1e-4, 1e6)(name, value)
    if number > 1:
        raise InputError(
            f"{name} is {number:g}, more than the whole capacity.",
            remedy="It is a share of capacity: 0.1, for example.",
        )
    return number


def _radius(plan: Split, shares: Shares) -> Fraction:
    # If a user's split asks for a spread and the plan does not, use the whole range as the radius.
    return plan.radius if plan.radius or not shares[1] else Fraction(1)


def _aim(
    task: Task, fit: Fit, rows: LocalRows, beta: Vector, spread: Spread, loss: float, b: float
) -> None:
    """Compute the aim, which the restoration should stay near, from the noisy records.

    Denoised records are ``f + q``. The aim is ``f + k q`` with ``k`` so large that its loss is
    above the wanted one, since the restoration can only lower a loss. A larger ``k`` than needed
    changes only the length of the residuals.
    """
    made = task.own(fit)
    start = 0
    for residual in rows.map(partial(_denoised, beta=beta, spread=spread, b=b)):
        made[start : start + len(residual)] = residual
        start += len(residual)
    aim = fit.with_noisy(made)
    longer = 1.0
    while longer < _LONGEST and _loss_of_aim(aim, fit, beta, longer) < _MARGIN * loss:
        longer *= 1.5
    start = 0
    for goal in aim.map(partial(_stretched, beta=beta, longer=longer)):
        made[start : start + len(goal)] = goal
        start += len(goal)


def _loss_of_aim(rows: LocalRows, fit: Fit, beta: Vector, longer: float) -> float:
    """Compute the loss of ``clip(f + k q)`` in one pass."""
    W = fit.ridge.whitening.W
    z, square = total(rows.map(partial(_aim_moments, W=W, beta=beta, longer=longer)))
    excess = z @ (z + fit.ridge.whitening.E @ z)
    return float(np.sqrt(max(float(square) - float(excess), 0.0)))


def _denoised(X: Vector, y0: Vector, beta: Vector, spread: Spread, b: float) -> Vector:
    f = curve(X, beta)
    return matched(y0, f, spread.at(f), b, spread.outliers) - f


def _stretched(X: Vector, residual: Vector, beta: Vector, longer: float) -> Vector:
    return np.asarray(curve(X, beta) + longer * residual)


def _aim_moments(
    X: Vector, residual: Vector, W: Vector, beta: Vector, longer: float
) -> tuple[Vector, Vector]:
    y = np.clip(_stretched(X, residual, beta, longer), 0.0, 1.0)
    return (X @ W).T @ y, np.array(y @ y)
