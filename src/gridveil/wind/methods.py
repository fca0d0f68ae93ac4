"""The three methods of a wind release, step by step.

Each takes the private records through mechanisms (`queries`) and gives back, for every turbine,
released records as a rule that yields them block by block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridveil.errors import GridveilError
from gridveil.privacy.account import Account
from gridveil.privacy.sealed import Limits
from gridveil.privacy.sensitivity import calibrate_laplace
from gridveil.wind.denoise import matched
from gridveil.wind.estimate import (
    Spread,
    Weights,
    curve,
    estimate_loss,
    estimate_spread,
    estimate_weights,
)
from gridveil.wind.fit import Fit
from gridveil.wind.mix import weight_mix
from gridveil.wind.queries import (
    Query,
    above,
    ask_records,
    loss_query,
    records_sensitivity,
    spread_query,
    weights_query,
)
from gridveil.wind.records import Records
from gridveil.wind.restore import Restoration, restore, restore_closely
from gridveil.wind.rows import LocalRows, total
from gridveil.wind.split import Split, plan_split

Vector = NDArray[np.float64]
Progress = Callable[[str], None]

# The restoration can only lower a loss, so what it stays near must have a larger one.
_MARGIN = 1.1
_LONGEST = 64.0
_FLOOR = 0.01
_SLACK = 0.1


@dataclass(frozen=True)
class Settings:
    """The public settings of a release.

    Parameters
    ----------
    method
        ``"tuned"``, ``"wpo"`` or ``"laplace"``.
    ridge
        The regression's ridge parameter.
    split
        Shares of epsilon for records, loss or spread, and weights; None for the method's own.
    gamma_weights, gamma_records
        The restoration's prices; None for the method's own: 1e-5 for wpo; tuned weighs them by
        how well they are known.
    nominal
        Tuned: the typical residual that the split is planned for, in shares of capacity.
    """

    method: str
    ridge: float
    split: tuple[Fraction, Fraction, Fraction] | None
    gamma_weights: float | None
    gamma_records: float
    nominal: float


@dataclass(frozen=True, eq=False)
class Released:
    """The released records of one turbine, and how they were restored."""

    blocks: Callable[[], Iterator[Vector]]
    restoration: Restoration | None


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a method made, and the public settings that it chose by itself."""

    turbines: list[Released]
    chosen: dict[str, Any]


@dataclass(frozen=True, eq=False)
class Task:
    """Everything that a method works on; only ``records`` holds private data, sealed."""

    account: Account
    records: Records
    fits: Sequence[Fit]
    alpha: Fraction
    settings: Settings
    noisy: Vector
    progress: Progress

    def part(self, fit: Fit) -> Vector:
        """The noisy records of one turbine."""
        start = fit.group.start
        return self.noisy[start : start + fit.rows]


@dataclass(frozen=True, eq=False)
class Prepared:
    """What a method works out from public data before anything is charged.

    Parameters
    ----------
    shares
        Of epsilon: for the records, for the loss or the spread, for the weights.
    mixes
        The mix of the weights that is asked for, one a turbine.
    weights, loss
        The queries that are known by now.
    radius
        Of the spread query.
    """

    shares: tuple[Fraction, Fraction, Fraction]
    mixes: Sequence[Vector] = ()
    weights: Query | None = None
    loss: Query | None = None
    radius: Fraction = Fraction(0)

    def check(self, alpha: Fraction, epsilon: Fraction) -> None:
        """Raise `InputError` now where a query could not be asked later."""
        calibrate_laplace(records_sensitivity(alpha), epsilon * self.shares[0], Limits(0.0, 1.0))
        if self.weights is not None:
            self.weights.check(epsilon * self.shares[2])
        if self.loss is not None:
            self.loss.check(epsilon * self.shares[1])


def prepare(
    fits: Sequence[Fit], alpha: Fraction, epsilon: Fraction, settings: Settings
) -> Prepared:
    """Choose the shares of epsilon and the queries from public data, and check them."""
    prepared = _PREPARE[settings.method](fits, alpha, epsilon, settings)
    prepared.check(alpha, epsilon)
    return prepared


def _prepare_laplace(
    fits: Sequence[Fit], alpha: Fraction, epsilon: Fraction, settings: Settings
) -> Prepared:
    return Prepared((Fraction(1), Fraction(0), Fraction(0)))


def _prepare_wpo(
    fits: Sequence[Fit], alpha: Fraction, epsilon: Fraction, settings: Settings
) -> Prepared:
    plain = [np.eye(fit.features.width) for fit in fits]
    return Prepared(
        settings.split or (Fraction(1, 2), Fraction(1, 4), Fraction(1, 4)),
        plain,
        weights_query(fits, plain, alpha),
        loss_query(fits, alpha),
    )


def _prepare_tuned(
    fits: Sequence[Fit], alpha: Fraction, epsilon: Fraction, settings: Settings
) -> Prepared:
    largest = max(fits, key=lambda fit: fit.rows)
    mix = weight_mix(largest.ridge)
    plan = plan_split(
        largest.ridge,
        mix,
        alpha=above(alpha),
        epsilon=float(epsilon),
        nominal=settings.nominal,
    )
    shares = settings.split or (plan.records, plan.spread, plan.weights)
    mixes = [mix] * len(fits)
    if shares[1]:
        # Its curves are not known yet, but any curve needs at least the grid of this one.
        flat = [np.zeros(fit.features.width) for fit in fits]
        spread_query(fits, flat, _radius(plan, shares), alpha).check(epsilon * shares[1])
    return Prepared(shares, mixes, weights_query(fits, mixes, alpha), radius=_radius(plan, shares))


def run(task: Task, prepared: Prepared) -> Outcome:
    """Run the method on the private records.

    Private computations fail inside mechanisms, which abort. Any other failure is numerical
    trouble with noisy and public data: what was paid for is released without a restoration.
    """
    try:
        return _RUN[task.settings.method](task, prepared)
    except GridveilError:
        raise
    except (ArithmeticError, ValueError):
        if not np.isfinite(task.noisy).all():
            raise
    return _clipped(task, {"restoration": "it failed: the records are noisy ones, clipped"})


def _clipped(task: Task, chosen: dict[str, Any]) -> Outcome:
    np.clip(task.noisy, 0.0, 1.0, out=task.noisy)
    return Outcome([Released(_slices(task.part(fit)), None) for fit in task.fits], chosen)


def _laplace(task: Task, prepared: Prepared) -> Outcome:
    """Noise on every record, then clipping."""
    task.progress("noise on every record")
    ask_records(task.account, task.records, task.alpha, task.account.budget.total, task.noisy)
    return _clipped(task, {})


def _wpo(task: Task, prepared: Prepared) -> Outcome:
    """Algorithm 1 of the paper, with independent noise on every weight and the norm's loss."""
    assert prepared.loss is not None
    assert prepared.weights is not None
    account, records, fits, alpha = task.account, task.records, task.fits, task.alpha
    for_records, for_loss, for_weights = _epsilons(account, prepared)
    # Step 1: noise on every record.
    task.progress("noise on every record")
    ask_records(account, records, alpha, for_records, task.noisy)
    # Step 2: the regression's results.
    task.progress("loss and weights")
    losses = prepared.loss.ask(account, records, for_loss)
    weights = prepared.weights.ask(account, records, for_weights)
    # Step 3: restoration. A noisy loss at or below 0 would leave a bare fit, so it is raised to
    # that of residuals of 1% of capacity.
    floors = [_FLOOR * float(np.sqrt(fit.rows)) for fit in fits]
    gamma = task.settings.gamma_weights
    turbines = []
    for fit, loss, floor, beta in zip(fits, losses.values, floors, weights.values, strict=True):
        turbines.append(
            _restored(
                task,
                fit,
                loss=max(float(loss[0]), floor),
                weights=beta,
                gamma_weights=1e-5 if gamma is None else gamma,
            )
        )
    return Outcome(turbines, {"least residual, of capacity": _FLOOR})


def _tuned(task: Task, prepared: Prepared) -> Outcome:
    """WPO's idea with the epsilon used better: see the documentation for the why of each step."""
    assert prepared.weights is not None
    account, records, fits, alpha = task.account, task.records, task.fits, task.alpha
    for_records, for_spread, for_weights = _epsilons(account, prepared)
    # Step 1: noise on every record.
    task.progress("noise on every record")
    b = ask_records(account, records, alpha, for_records, task.noisy)
    # Step 2: a mix of the weights, joined with what the noisy records say of them.
    task.progress("weights")
    asked = prepared.weights.ask(account, records, for_weights)
    joined = [
        estimate_weights(fit.with_noisy(task.part(fit)), fit.ridge, b, mix, answer, scale)
        for fit, mix, answer, scale in zip(
            fits, prepared.mixes, asked.values, asked.scales, strict=True
        )
    ]
    # Step 3: the spread about the curve, which is public by now; joined likewise.
    task.progress("spread about the curve")
    spreads, scales = [0.0] * len(fits), [0.0] * len(fits)
    if for_spread:
        curves = [weights.beta for weights in joined]
        query = spread_query(fits, curves, prepared.radius, alpha)
        found = query.ask(account, records, for_spread)
        spreads, scales = [float(value[0]) for value in found.values], found.scales
    # Step 4: denoised records, stretched and moved until they have that loss and those weights.
    turbines = []
    for fit, weights, spread, scale in zip(fits, joined, spreads, scales, strict=True):
        rows = fit.with_noisy(task.part(fit))
        radius = float(prepared.radius) if for_spread else 0.0
        loss = estimate_loss(rows, fit.ridge, weights, b, radius, spread, scale)
        _aim(task, fit, rows, weights.beta, loss, b)
        turbines.append(_restored_closely(task, fit, loss, weights))
    return Outcome(turbines, {"radius of the spread query": str(prepared.radius)})


def _aim(task: Task, fit: Fit, rows: LocalRows, beta: Vector, loss: float, b: float) -> None:
    """Replace the noisy records by what the restoration should stay near.

    The records with the noise taken out are ``f + q``. The aim is ``f + k q`` with a loss above
    the wanted one, from where the restoration comes down. ``k`` beyond what is needed changes
    nothing but the length.
    """
    noisy = task.part(fit)
    spread = estimate_spread(rows, beta, loss, b)
    start = 0
    for residual in rows.map(partial(_denoised, beta=beta, spread=spread, b=b)):
        noisy[start : start + len(residual)] = residual
        start += len(residual)
    aim = fit.with_noisy(noisy)
    longer = 1.0
    while longer < _LONGEST and _loss_of_aim(aim, fit, beta, longer) < _MARGIN * loss:
        longer *= 1.5
    start = 0
    for goal in aim.map(partial(_stretched, beta=beta, longer=longer)):
        noisy[start : start + len(goal)] = goal
        start += len(goal)


def _loss_of_aim(rows: LocalRows, fit: Fit, beta: Vector, longer: float) -> float:
    """The loss of ``clip(f + k q)``, in one pass."""
    W = fit.ridge.whitening.W
    z, square = total(rows.map(partial(_aim_moments, W=W, beta=beta, longer=longer)))
    excess = z @ (z + fit.ridge.whitening.E @ z)
    return float(np.sqrt(max(float(square) - float(excess), 0.0)))


def _restored_closely(task: Task, fit: Fit, loss: float, weights: Weights) -> Released:
    """Meet the loss, and the weights as well as they are known.

    The weights' covariance over the residuals' variance weighs them against the records as their
    errors do; a tenth of it, since the aim's own weights say nothing.
    """
    gamma = task.settings.gamma_weights
    if gamma is None:
        task.progress(f"restoring {fit.group.name}")
        rows = fit.with_noisy(task.part(fit))
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
        # A step of the weights moves the records by at most its length times this.
        reach = np.linalg.eigvalsh(np.linalg.pinv(fit.ridge.factor))[-1]
        gamma = task.settings.gamma_records * float(np.sqrt(reach))
    return _restored(task, fit, loss=loss, weights=weights.beta, gamma_weights=gamma)


def _restored(
    task: Task, fit: Fit, *, loss: float, weights: Vector, gamma_weights: float
) -> Released:
    task.progress(f"restoring {fit.group.name}")
    rows = fit.with_noisy(task.part(fit))
    found = restore(
        rows,
        loss=loss,
        weights=weights,
        ridge=task.settings.ridge,
        gamma_beta=gamma_weights,
        gamma_y=task.settings.gamma_records,
        whitening=fit.ridge.whitening,
    )
    return Released(lambda: found.records(rows), found)


def _epsilons(account: Account, prepared: Prepared) -> list[Fraction]:
    return [account.budget.total * share for share in prepared.shares]


def _radius(plan: Split, shares: tuple[Fraction, Fraction, Fraction]) -> Fraction:
    # A user's own split may ask for a spread that the plan did not: then ask for all of it.
    return plan.radius if plan.radius or not shares[1] else Fraction(1)


def _slices(values: Vector) -> Callable[[], Iterator[Vector]]:
    return lambda: iter([values])


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


_PREPARE = {"laplace": _prepare_laplace, "wpo": _prepare_wpo, "tuned": _prepare_tuned}
_RUN = {"laplace": _laplace, "wpo": _wpo, "tuned": _tuned}
