"""WPO: algorithm 1 of the paper, with independent noise on every weight and the norm's loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from gridveil.release.options import Within, option
from gridveil.wind.methods.base import Guarantee, Outcome, Prepared, Restoring, Task
from gridveil.wind.queries import ask_records, loss_query, weights_query
from gridveil.wind.regression import Fit

# A noisy loss at or below 0 would leave records on the curve, so the loss is at least that of
# residuals of this size.
_LEAST_RESIDUAL = 0.01  # of capacity


@dataclass(frozen=True, kw_only=True)
class Wpo(Restoring):
    """The paper's algorithm: records restored to a noisy loss and noisy weights.

    Parameters
    ----------
    ridge
        The regression's ridge parameter; 0 to 1e6.
    split
        Shares of epsilon for the records, the loss and the weights; 1/2, 1/4, 1/4 by default.
    gamma_records, gamma_weights
        The restoration's prices of the records and of the weights; the paper's 1e-5 by default.
    """

    method: ClassVar[str] = "wpo"

    gamma_weights: float = option(
        1e-5,
        help="the restoration's price of the weights",
        check=Within(0.0, 1e6),
        example="0.00001",
    )

    def prepare(self, fits: Sequence[Fit], guarantee: Guarantee) -> Prepared:
        """See `Method.prepare`."""
        plain = [np.eye(fit.features.width) for fit in fits]
        return Prepared(
            self.split or (Fraction(1, 2), Fraction(1, 4), Fraction(1, 4)),
            plain,
            weights_query(fits, plain, guarantee.alpha).of_group(guarantee.group),
            loss_query(fits, guarantee.alpha).of_group(guarantee.group),
        )

    def steps(self, task: Task, prepared: Prepared) -> Outcome:
        """Run the paper's three steps; see `Method.steps`."""
        assert prepared.loss is not None
        assert prepared.weights is not None
        account, records, fits, alpha = task.account, task.records, task.fits, task.alpha
        for_records, for_loss, for_weights = task.epsilons(prepared.shares)
        # Step 1: noise on every record.
        task.progress("noise on every record")
        ask_records(account, records, alpha, for_records, task.noisy, task.group)
        # Step 2: the regression's results.
        task.progress("loss and weights")
        losses = prepared.loss.ask(account, records, for_loss)
        weights = prepared.weights.ask(account, records, for_weights)
        # Step 3: restoration.
        turbines = []
        for fit, loss, beta in zip(fits, losses.values, weights.values, strict=True):
            least = _LEAST_RESIDUAL * float(np.sqrt(fit.rows))
            wanted = max(float(loss[0]), least)
            price = self.gamma_weights
            aim = task.part(fit)
            turbines.append(
                self.restore(task, fit, aim, loss=wanted, weights=beta, gamma_weights=price)
            )
        return Outcome(turbines, {"least_residual": _LEAST_RESIDUAL})
