"""What the methods of a wind release share: base classes, task, prepared queries and outcome.

A method prepares its queries from public data, asks them of the private records through mechanisms,
and returns for every turbine a function that yields the released records block by block.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridveil.errors import InputError, show_exact
from gridveil.privacy.account import Account
from gridveil.privacy.exact_numbers import exact
from gridveil.privacy.sealed import Range
from gridveil.privacy.sensitivity import calibrate_laplace
from gridveil.release.options import Options, Within, option
from gridveil.release.plan import Asked
from gridveil.wind.queries import Query, records_sensitivity, spread_query
from gridveil.wind.records import Records
from gridveil.wind.regression import Fit
from gridveil.wind.restoration.passes import Restoration
from gridveil.wind.restoration.restore import restore

Vector = NDArray[np.float64]
Progress = Callable[[str], None]
Shares = tuple[Fraction, Fraction, Fraction]
"""Shares of epsilon: for the records, for the loss or the spread, for the weights."""

_USELESS = 0.5  # an error of the curve, as a share of capacity
FEW = 100
"""With fewer records than this nobody expects an accurate curve, so there is no warning."""


@dataclass(frozen=True)
class Guarantee:
    """The guarantee: epsilon for a whole unit, each of whose records may move by alpha.

    Parameters
    ----------
    epsilon, alpha
        The exact numbers.
    unit
        ``"record"``, ``"hour"``, ``"day"`` or ``"week"``.
    group
        The most records that one unit of one turbine holds.
    """

    epsilon: Fraction
    alpha: Fraction
    unit: str = "record"
    group: int = 1

    def curve_error(self, rows: int, features: int) -> float:
        """Predict the error of a curve with this many features from noise on every record.

        A record's noise has a variance of twice its scale squared, and the curve is an average: the
        variance of the fit, averaged over all records, is that of a record times features over
        records.
        """
        scale = float(self.alpha * self.group / self.epsilon)
        return float(np.sqrt(2 * features / max(rows, 1))) * scale


@dataclass(frozen=True, eq=False)
class Released:
    """The released records of one turbine, and how they were restored.

    Parameters
    ----------
    blocks
        Yields the records block by block.
    restoration
        The restoration that made them, if one did.
    solver
        The name of what restored them, if there is no `restoration`.
    deviations
        Yields error bars, as shares of capacity, if the method knows them.
    """

    blocks: Callable[[], Iterator[Vector]]
    restoration: Restoration | None
    solver: str | None = None
    deviations: Callable[[], Iterator[Vector]] | None = None


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a method released, and the public settings that it chose by itself."""

    turbines: list[Released]
    chosen: dict[str, Any]


@dataclass(frozen=True, eq=False)
class Task:
    """Everything that a method works on; only ``records`` holds private data, sealed.

    ``noisy`` is an array for the noisy records. The bundle contains them too, so they are not
    changed after they were drawn. ``room`` is another array of the same size, for the records that
    a method makes from them.
    """

    account: Account
    records: Records
    fits: Sequence[Fit]
    guarantee: Guarantee
    noisy: Vector
    room: Vector
    progress: Progress

    @property
    def alpha(self) -> Fraction:
        """How far a record may move."""
        return self.guarantee.alpha

    @property
    def group(self) -> int:
        """The most records that move together."""
        return self.guarantee.group

    def part(self, fit: Fit) -> Vector:
        """Return the noisy records of one turbine."""
        start = fit.group.start
        return self.noisy[start : start + fit.rows]

    def own(self, fit: Fit) -> Vector:
        """Return one turbine's part of ``room``."""
        start = fit.group.start
        return self.room[start : start + fit.rows]

    def epsilons(self, shares: Shares) -> list[Fraction]:
        """Multiply the shares by the total epsilon."""
        return [self.account.budget.total * share for share in shares]


@dataclass(frozen=True, eq=False)
class Prepared:
    """What a method prepares from public data before anything is charged.

    Parameters
    ----------
    shares
        Shares of epsilon: for the records, for the loss or the spread, for the weights.
    mixes
        For each turbine, the matrix whose product with the weights is asked for.
    weights, loss
        The queries that can be prepared from public data.
    radius
        The radius of the spread query.
    curve
        The estimated error of the largest turbine's power curve, as a share of capacity; None if
        there is no estimate.
    """

    shares: Shares
    mixes: Sequence[Vector] = ()
    weights: Query | None = None
    loss: Query | None = None
    radius: Fraction = Fraction(0)
    curve: float | None = None

    def settings(self) -> dict[str, Any]:
        """Return the choices in the form of the statement."""
        # Shares for the records, for the loss or the spread, for the weights.
        return {"epsilon_shares": [show_exact(share) for share in self.shares]}

    def curve_error(self, fits: Sequence[Fit], guarantee: Guarantee) -> float | None:
        """Predict the curve's error for the largest turbine, as a share of capacity.

        It counts the noise on every record; None for a method that puts no noise on records.
        """
        share = float(self.shares[0])
        if not share:
            return None
        fit = max(fits, key=lambda one: one.rows)
        return guarantee.curve_error(fit.rows, fit.features.width) / share

    def accuracy(self, fits: Sequence[Fit], guarantee: Guarantee) -> str | None:
        """Return what public numbers say of the accuracy, in words; None if they say nothing."""
        if self.curve is not None:
            return (
                f"the power curve should be off by about {self.curve:.1%} of capacity: an estimate "
                "from the noise of all answers together and public curves, if the features fit"
            )
        error = self.curve_error(fits, guarantee)
        if error is None:
            return None
        share = f"{error:.1%} of capacity"
        if self.shares[0] == 1:
            return f"noise on the records leaves the power curve unknown by about {share}"
        return (
            f"the power curve is unknown by at most about {share}: so much by "
            "noise on the records alone, and the other answers make it better"
        )

    def doubts(self, fits: Sequence[Fit], guarantee: Guarantee) -> list[str]:
        """Return a sentence for each problem that the method predicts from public numbers."""
        error = self.curve_error(fits, guarantee)
        if error is None or error < _USELESS or max(one.rows for one in fits) < FEW:
            return []
        many = guarantee.group > 1
        group = f", for the {guarantee.group:,} records of a {guarantee.unit}" if many else ""
        return [
            f"Noise on every record{group} will leave the power curve unknown by about "
            f"{error:,.0%} of capacity: the release will tell next to nothing. What would work: "
            "the method synthetic (it needs a column of times to protect more than a record), a "
            "smaller alpha or unit, or more epsilon."
        ]

    def asked(self, fits: Sequence[Fit], guarantee: Guarantee) -> Sequence[Asked]:
        """List the queries, with the scale of their noise as far as it is known."""
        alpha, group = guarantee.alpha, guarantee.group
        parts = [guarantee.epsilon * share for share in self.shares]
        width = calibrate_laplace(records_sensitivity(alpha, group), parts[0], Range(0.0, 1.0))
        found = [Asked("every record", f"{width.scale_in_units:.4g} of capacity", parts[0])]
        queries = [(self.loss, parts[1]), (self.weights, parts[2])]
        if self.loss is None and parts[1]:
            # The curve is not known yet; it changes the scale by no more than rounding errors.
            flat = [np.zeros(fit.features.width) for fit in fits]
            spread = spread_query(fits, flat, self.radius, alpha).of_group(group)
            queries.append((spread, parts[1]))
        for query, part in queries:
            if query is not None and part:
                scale = calibrate_laplace(query.sensitivity, part, query.range).scale_in_units
                found.append(Asked(query.name, f"{scale:.4g} {query.unit}", part))
        return found

    def check(self, guarantee: Guarantee) -> None:
        """Raise `InputError` now if a query could not be asked later."""
        epsilon = guarantee.epsilon
        moves = records_sensitivity(guarantee.alpha, guarantee.group)
        calibrate_laplace(moves, epsilon * self.shares[0], Range(0.0, 1.0))
        if self.weights is not None:
            self.weights.check(epsilon * self.shares[2])
        if self.loss is not None:
            self.loss.check(epsilon * self.shares[1])


@dataclass(frozen=True, kw_only=True)
class Method(Options, ABC):
    """The options of a method, and what it does with them.

    Parameters
    ----------
    ridge
        The ridge parameter of the regression whose results the released records keep; 0 to 1e6.
    """

    ridge: float = option(
        1e-3, help="ridge parameter of the regression", check=Within(0.0, 1e6), example="0.001"
    )

    @abstractmethod
    def prepare(self, fits: Sequence[Fit], guarantee: Guarantee) -> Prepared:
        """Choose the shares of epsilon and the queries, from public data."""

    @abstractmethod
    def steps(self, task: Task, prepared: Prepared) -> Outcome:
        """Ask the queries, and restore records from the noisy answers."""


@dataclass(frozen=True, kw_only=True)
class Restoring(Method):
    """The options of a method that restores records; see `Method` for ``ridge``.

    Parameters
    ----------
    split
        Three shares of epsilon that add up to 1: for the records, for the loss (tuned: the
        spread), for the weights. The method's own by default.
    gamma_records
        The restoration's price of the records; 1e-12 to 1e6.
    """

    split: Any = option(
        None,
        help="shares of epsilon for records, loss and weights",
        check=lambda _, value: _shares(value),
        example="1/2,1/4,1/4",
        read=lambda text: _shares(text.split(",")),
        default="the method's own",
    )
    gamma_records: float = option(
        1e-5,
        help="the restoration's price of the records",
        check=Within(1e-12, 1e6),
        example="0.00001",
    )

    def restore(
        self,
        task: Task,
        fit: Fit,
        aim: Vector,
        *,
        loss: float,
        weights: Vector,
        gamma_weights: float,
    ) -> Released:
        """Restore records of one turbine near the aim, with this loss and these weights."""
        task.progress(f"restoring {fit.group.name}")
        rows = fit.with_noisy(aim)
        found = restore(
            rows,
            loss=loss,
            weights=weights,
            ridge=self.ridge,
            gamma_beta=gamma_weights,
            gamma_y=self.gamma_records,
            whitening=fit.ridge.whitening,
        )
        return Released(lambda: found.records(rows), found)


def clipped(task: Task, chosen: dict[str, Any]) -> Outcome:
    """Release the noisy records, clipped to [0, 1]."""
    np.clip(task.noisy, 0.0, 1.0, out=task.room)
    return Outcome([Released(slices(task.own(fit)), None) for fit in task.fits], chosen)


def slices(values: Vector) -> Callable[[], Iterator[Vector]]:
    """Return a function that yields the values as one block."""
    return lambda: iter([values])


def _shares(split: Any) -> Shares:
    shares = [exact(share, name="a share of epsilon") for share in split]
    if len(shares) != 3 or sum(shares) != 1:
        raise InputError(
            "A split needs three shares that add up to 1: records, loss or spread, weights.",
            remedy='For example "1/2", "1/4", "1/4".',
        )
    return shares[0], shares[1], shares[2]
