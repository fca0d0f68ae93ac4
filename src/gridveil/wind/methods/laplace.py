"""Laplace: noise on every record, then clipping. The baseline for the other methods."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from gridveil.wind.methods.base import Guarantee, Method, Outcome, Prepared, Task, clipped
from gridveil.wind.queries import ask_records
from gridveil.wind.regression import Fit


@dataclass(frozen=True, kw_only=True)
class Laplace(Method):
    """Noise on every record, then clipping: all epsilon goes to the records.

    Parameters
    ----------
    ridge
        The ridge parameter of the regression that the report shows; 0 to 1e6.
    """

    method: ClassVar[str] = "laplace"

    def prepare(self, fits: Sequence[Fit], guarantee: Guarantee) -> Prepared:
        """See `Method.prepare`."""
        return Prepared((Fraction(1), Fraction(0), Fraction(0)))

    def steps(self, task: Task, prepared: Prepared) -> Outcome:
        """See `Method.steps`."""
        task.progress("noise on every record")
        total = task.account.budget.total
        ask_records(task.account, task.records, task.alpha, total, task.noisy, task.group)
        return clipped(task, {})
