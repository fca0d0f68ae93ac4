"""One model of the lower level as a linear programme that can leave limits out.

Every limit of a model (a row, and each end of a column) has a price, which is zero wherever the
limit does not bind. To say that a price is zero is to leave its limit out: the prices that are
left are the optimal ones of the model without it. Limits are numbered: the rows, then the lower
ends of the columns, then the upper ends.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gridveil.grid.restoring.bilevel import LowerModel
from gridveil.grid.restoring.linear import End, Linear

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

# Capacities that a linear programme found miss what a model needs by up to its tolerance (MW).
EASE = 1e-9


@dataclass(frozen=True, eq=False)
class Lowest:
    """The least cost, a dispatch, prices of the islands' balances and of the limits."""

    end: End
    cost: float
    x: Floats
    balance: Floats
    prices: Floats


class LowerSolver:
    """A model, solved at one capacity vector after the other."""

    def __init__(self, model: LowerModel) -> None:
        self.model = model
        self.columns, self.count = len(model.lin), len(model.rows) + 2 * len(model.lin)
        balance = (model.island == np.arange(len(model.demand))[:, None]).astype(float)
        self._open = np.full(len(model.rows), np.inf)
        self._linear = Linear(
            model.lin,
            model.low,
            model.high,
            np.vstack([balance, model.rows]),
            np.concatenate([model.demand, -self._open]),
            np.concatenate([model.demand, self._open]),
        )

    def gaps(self, phi: Floats, x: Floats) -> Floats:
        """How far a dispatch is from each limit (MW)."""
        model = self.model
        room = model.limits(phi) - model.rows @ x
        found: Floats = np.maximum(np.concatenate([room, x - model.low, model.high - x]), 0.0)
        return found

    def solve(self, phi: Floats, left_out: Bools | None = None) -> Lowest:
        """Find the least cost at `phi`, without the limits that are left out."""
        model, rows = self.model, len(self.model.rows)
        out = np.zeros(self.count, dtype=bool) if left_out is None else left_out
        limits = np.where(out[:rows], np.inf, model.limits(phi) + EASE)
        low = np.where(out[rows : rows + self.columns], -np.inf, model.low)
        high = np.where(out[rows + self.columns :], np.inf, model.high)
        self._linear.change_columns(low, high)
        self._linear.change_rows(
            np.concatenate([model.demand, -self._open]), np.concatenate([model.demand, limits])
        )
        found = self._linear.solve()
        islands = len(model.demand)
        # A row `<=` and an upper end have duals below zero in a minimisation.
        duals = -found.row_dual[islands:], found.column_dual, -found.column_dual
        return Lowest(
            found.end,
            found.value + model.constant,
            found.x,
            found.row_dual[:islands],
            np.maximum(np.concatenate(duals), 0.0),
        )
