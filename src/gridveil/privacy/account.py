"""What one release may spend, and what was bought with it.

An account has a charge in the ledger, its budget and a noise source. A mechanism takes an account,
so a look at private data that no ledger knows of can't be written: an account with secure noise
exists only as the result of a charge. It keeps a `Record` of what each mechanism asked, how far
that moves and its noise, and an `Answer` with what came of it: all of it public.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from numbers import Integral
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridveil.errors import BudgetRefused, InputError, show_exact
from gridveil.privacy.adjacency import Adjacency
from gridveil.privacy.exact_numbers import Exact, exact
from gridveil.privacy.ledger import Charge, Ledger, Terms
from gridveil.privacy.noise import NoiseSource, SecureNoise
from gridveil.privacy.sealed import Range
from gridveil.privacy.seeded import SeededNoise
from gridveil.privacy.sensitivity import Calibration, Sensitivity

Vector = NDArray[np.float64]


class Budget:
    """A total of epsilon, and what of it has been spent, in exact rationals.

    >>> budget = Budget(1)
    >>> budget.spend(Fraction(3, 4))
    >>> budget
    Budget(1: spent 0.75, remaining 0.25)
    """

    def __init__(self, total: Exact) -> None:
        self._total = exact(total, name="epsilon")
        self._spent = Fraction(0)
        self._lock = Lock()

    @property
    def total(self) -> Fraction:
        """All the epsilon there is."""
        return self._total

    @property
    def spent(self) -> Fraction:
        """What has been spent of it."""
        return self._spent

    @property
    def remaining(self) -> Fraction:
        """What is left of it."""
        return self._total - self._spent

    def spend(self, epsilon: Exact) -> None:
        """Take ``epsilon`` out of the budget, or change nothing and raise `BudgetRefused`."""
        amount = exact(epsilon, name="epsilon")
        with self._lock:  # two threads may not both find it enough
            if amount > self.remaining:
                raise BudgetRefused(amount, self.remaining, of="this release")
            self._spent += amount

    def __repr__(self) -> str:
        return (
            f"Budget({show_exact(self._total)}: spent {show_exact(self._spent)}, "
            f"remaining {show_exact(self.remaining)})"
        )


@dataclass(frozen=True)
class Record:
    """One answer of a mechanism: what was asked, how far it moves, and its noise."""

    query: str
    noise: str
    unit: str
    size: int
    sensitivity: Sensitivity
    calibration: Calibration
    range: Range

    @property
    def epsilon(self) -> Fraction:
        """The epsilon that was spent."""
        return self.calibration.epsilon

    def to_json(self) -> dict[str, Any]:
        """The record as the statement has it."""
        return {
            "query": self.query,
            "noise": self.noise,
            "scale": self.calibration.scale_in_units,
            "unit": self.unit,
            "size": self.size,
            "epsilon": str(self.epsilon),
            "epsilon_of_privacy_map": float(self.calibration.mapped),
            "sensitivity": {
                "value": float(self.sensitivity.value),
                "tolerance": float(self.sensitivity.tolerance),
                "moving": self.sensitivity.moving,
                "grid_steps": self.calibration.steps,
                "why": self.sensitivity.why,
                "proved": self.sensitivity.proved,
            },
            "grid": str(self.calibration.grid),
            "range": [self.range.low, self.range.high],
        }

    def __repr__(self) -> str:
        return (
            f"Record({self.query}: {self.noise}, scale {self.calibration.scale_in_units:.4g} "
            f"{self.unit}, epsilon {show_exact(self.epsilon)})"
        )


@dataclass(frozen=True, eq=False)
class Answer:
    """What a mechanism returned, noise and all: free to publish.

    Parameters
    ----------
    record
        How it came about.
    values
        The noisy numbers; for a choice, the place chosen.
    factors
        Public: the numbers asked for are these over the factors. None if they are as they are.
    """

    record: Record
    values: Vector
    factors: Vector | None = None

    @property
    def choice(self) -> bool:
        """Whether it is a place that was chosen, and no noisy number."""
        return self.record.noise.startswith("noisy max")


class Account:
    """The epsilon of one release, where it was charged, and what was bought with it.

    Made by `open_account` or `study_account`.
    """

    def __init__(
        self,
        budget: Budget,
        noise: NoiseSource,
        adjacency: Sequence[Adjacency],
        ledger: Ledger | None,
        charge: Charge | None,
    ) -> None:
        if noise.secure and (ledger is None or charge is None):
            raise InputError("Secure noise needs a charge in a ledger.")
        self.budget = budget
        self.noise = noise
        self.adjacency = tuple(adjacency)
        self.ledger = ledger
        self.charge = charge
        self._records: list[Record] = []
        self._answers: dict[int, Answer] = {}  # by the id of a record: two may be equal

    def spend(self, record: Record) -> None:
        """Take a mechanism's epsilon out of the budget; called before it opens the seal."""
        self.budget.spend(record.epsilon)
        self._records.append(record)

    def answered(self, record: Record, values: Vector) -> None:
        """Note what a mechanism that spent returned, after the noise: published with the release.

        The mechanism calls it; for a column in blocks, the caller that collected its noisy blocks.
        """
        self._answers[id(record)] = Answer(record, values)

    def scaled(self, record: Record, factors: Vector) -> None:
        """Note the public factors that the numbers of an answer were multiplied by."""
        self._answers[id(record)] = replace(self._answers[id(record)], factors=factors)

    @property
    def records(self) -> tuple[Record, ...]:
        """What each mechanism did, in order."""
        return tuple(self._records)

    @property
    def answers(self) -> tuple[Answer, ...]:
        """What the mechanisms returned, in order; one that failed has no answer."""
        return tuple(self._answers[id(one)] for one in self._records if id(one) in self._answers)

    @property
    def dp_valid(self) -> bool:
        """Whether the guarantee holds: secure noise, and every sensitivity proved.

        Without any mechanism there is nothing that it could hold for.
        """
        proved = [record.sensitivity.proved for record in self._records]
        return self.noise.secure and bool(proved) and all(proved)

    def abort(self) -> None:
        """Note in the ledger that this release ended without a result. The charge stays."""
        if self.ledger is not None and self.charge is not None:
            self.ledger.record_abort(self.charge)

    def __repr__(self) -> str:
        where = "no ledger" if self.charge is None else f"ledger entry {self.charge.entry}"
        return f"Account({self.budget!r}, {where}, {self.noise!r})"


def open_account(ledger: Ledger, terms: Terms, *, noise: NoiseSource | None = None) -> Account:
    """Charge a release to the ledger and open its account, with secure noise.

    Call it when every public input has been checked: from here on the epsilon is spent. Audits
    pass in a ``noise`` of their own, to listen to what a release asks and is told.
    """
    if noise is not None and not noise.secure:
        raise InputError(
            "This noise source carries no guarantee, and a charge must not pay for it.",
            remedy="Leave it out: releases draw secure noise. Studies have plan.study(seed).",
        )
    charge = ledger.charge(terms)
    return Account(Budget(terms.epsilon), noise or SecureNoise(), terms.adjacency, ledger, charge)


def study_account(epsilon: Exact, *, adjacency: Sequence[Adjacency], seed: int) -> Account:
    """An account for a study on public data: seeded noise, no ledger, never ``dp_valid``."""
    if isinstance(seed, bool) or not isinstance(seed, Integral) or seed < 0:
        raise InputError(f"A seed is a whole number of 0 or more, not {seed!r}.")
    return Account(Budget(epsilon), SeededNoise(seed), adjacency, None, None)
