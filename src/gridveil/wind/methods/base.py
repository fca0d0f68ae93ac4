"""What the methods of a wind release have in common.

A method prepares its queries from public data, then takes the private records through mechanisms
and returns, for every turbine, released records as a rule that yields them block by block.
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
from gridveil.privacy.exact import exact
from gridveil.privacy.sealed import Limits
from gridveil.privacy.sensitivity import calibrate_laplace
from gridveil.release.options import Options, Within, option
from gridveil.release.plan import Asked
from gridveil.wind.queries import Query, records_sensitivity, spread_query
from gridveil.wind.records import Records
from gridveil.wind.regression import Fit
from gridveil.wind.restoration.restore import Restoration, restore

Vector = NDArray[np.float64]
Progress = Callable[[str], None]
Shares = tuple[Fraction, Fraction, Fraction]
"""Shares of epsilon: for the records, for the loss or the spread, for the weights."""


@dataclass(frozen=True)
class Guarantee:
    """What is promised: the epsilon of a whole unit, each of its records moving by alpha.

    Parameters
    ----------
    epsilon, alpha
        The promise, exactly.
    unit
        ``"record"``, ``"hour"``, ``"day"`` or ``"week"``.
    group
        The most records that one unit of one turbine holds.
    """

    epsilon: Fraction
    alpha: Fraction
    unit: str = "record"
    group: int = 1


@dataclass(frozen=True, eq=False)
class Released:
    """The released records of one turbine, and how they were restored.

    Parameters
    ----------
    blocks
        Yields them.
    restoration
        Of the solver that restored them, if one did.
    solver
        What restored them, if it has no such account of itself.
    deviations
        Yields error bars, as shares of capacity, if the method knows them.
    """

    blocks: Callable[[], Iterator[Vector]]
    restoration: Restoration | None
    solver: str | None = None
    deviations: Callable[[], Iterator[Vector]] | None = None


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a method made, and the public settings that it chose by itself."""

    turbines: list[Released]
    chosen: dict[str, Any]


@dataclass(frozen=True, eq=False)
class Task:
    """Everything that a method works on; only ``records`` holds private data, sealed.

    ``noisy`` is room for the noisy records, which the bundle holds too: they stay as they were
    drawn. ``room`` is as much again, for what a method makes of them.
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
        """How many records may move at once."""
        return self.guarantee.group

    def part(self, fit: Fit) -> Vector:
        """The noisy records of one turbine."""
        start = fit.group.start
        return self.noisy[start : start + fit.rows]

    def own(self, fit: Fit) -> Vector:
        """The room of one turbine."""
        start = fit.group.start
        return self.room[start : start + fit.rows]

    def epsilons(self, shares: Shares) -> list[Fraction]:
        """What each share of epsilon amounts to."""
        return [self.account.budget.total * share for share in shares]


@dataclass(frozen=True, eq=False)
class Prepared:
    """What a method works out from public data before anything is charged.

    Parameters
    ----------
    shares
        Of epsilon: for the records, for the loss or the spread, for the weights.
    mixes
        For each turbine, the mix of the weights that is asked for.
    weights, loss
        The queries that are known by now.
    radius
        Of the spread query.
    curve
        How far the power curve of the largest turbine should be off, as a share of capacity: an
        estimate; None if there is none.
    """

    shares: Shares
    mixes: Sequence[Vector] = ()
    weights: Query | None = None
    loss: Query | None = None
    radius: Fraction = Fraction(0)
    curve: float | None = None

    def settings(self) -> dict[str, Any]:
        """What was chosen, as the statement has it."""
        # Of the records, of the loss or the spread, of the weights.
        return {"epsilon_shares": [show_exact(share) for share in self.shares]}

    def doubts(self, guarantee: Guarantee) -> list[str]:
        """What public numbers of the method's own predict to go wrong, a sentence each."""
        return []

    def asked(self, fits: Sequence[Fit], guarantee: Guarantee) -> Sequence[Asked]:
        """What will be asked, with the noise that is known by now."""
        alpha, group = guarantee.alpha, guarantee.group
        parts = [guarantee.epsilon * share for share in self.shares]
        width = calibrate_laplace(records_sensitivity(alpha, group), parts[0], Limits(0.0, 1.0))
        found = [Asked("every record", f"{width.scale_in_units:.4g} of capacity", parts[0])]
        queries = [(self.loss, parts[1]), (self.weights, parts[2])]
        if self.loss is None and parts[1]:
            # The curve is not known yet; it changes the scale by no more than rounding errors.
            flat = [np.zeros(fit.features.width) for fit in fits]
            spread = spread_query(fits, flat, self.radius, alpha).of_group(group)
            queries.append((spread, parts[1]))
        for query, part in queries:
            if query is not None and part:
                scale = calibrate_laplace(query.sensitivity, part, query.limits).scale_in_units
                found.append(Asked(query.name, f"{scale:.4g} {query.unit}", part))
        return found

    def check(self, guarantee: Guarantee) -> None:
        """Raise `InputError` now if a query could not be asked later."""
        epsilon = guarantee.epsilon
        moves = records_sensitivity(guarantee.alpha, guarantee.group)
        calibrate_laplace(moves, epsilon * self.shares[0], Limits(0.0, 1.0))
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
        The ridge parameter of the regression whose results the records keep; 0 to 1e6.
    """

    ridge: float = option(
        1e-3, help="ridge parameter of the regression", check=Within(0.0, 1e6), example="0.001"
    )

    @abstractmethod
    def prepare(self, fits: Sequence[Fit], guarantee: Guarantee) -> Prepared:
        """Choose the shares of epsilon and the queries, from public data."""

    @abstractmethod
    def steps(self, task: Task, prepared: Prepared) -> Outcome:
        """Ask the private records, and restore the answers."""


@dataclass(frozen=True, kw_only=True)
class Restoring(Method):
    """The options of a method that restores: see `Method` for ``ridge``.

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
        """Records of one turbine near the aim, with this loss and these weights."""
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
    """The noisy records as they are, but for clipping."""
    np.clip(task.noisy, 0.0, 1.0, out=task.room)
    return Outcome([Released(slices(task.own(fit)), None) for fit in task.fits], chosen)


def slices(values: Vector) -> Callable[[], Iterator[Vector]]:
    """Values as one block."""
    return lambda: iter([values])


def _shares(split: Any) -> Shares:
    shares = [exact(share, name="a share of epsilon") for share in split]
    if len(shares) != 3 or sum(shares) != 1:
        raise InputError(
            "A split needs three shares that add up to 1: records, loss or spread, weights.",
            remedy='For example "1/2", "1/4", "1/4".',
        )
    return shares[0], shares[1], shares[2]
