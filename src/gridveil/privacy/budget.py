"""Exact epsilon: numbers that add up, and a refusal that explains.

Epsilons are rationals. A budget of 1 that is split in 1/2, 1/4 and 1/4 is spent to exactly 0,
which binary fractions can promise only by luck (0.1 + 0.2 is not 0.3 in floating point).
"""

from __future__ import annotations

from fractions import Fraction
from threading import Lock

from gridveil.errors import BudgetRefused, show_exact
from gridveil.privacy.exact import Exact, exact


class Budget:
    """A total of epsilon, and what of it has been spent.

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
