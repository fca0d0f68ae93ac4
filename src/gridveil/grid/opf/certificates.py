"""Prove every cost: a dual bound below it and a repaired solution above it.

For any prices `lam` of the balances and `mu >= 0` of the branch limits, weak duality
gives

    C >= constant + lam'D - mu_along'room_along - mu_against'room_against
         + sum_j min over low_j <= x_j <= high_j of quad_j x_j^2 + (lin_j - pi_j) x_j,

with the nodal price `pi = lam - F'(mu_along - mu_against)`. With line slack it holds if
`mu_along + mu_against <= price`. Nothing here trusts a solver: its prices are clipped into these
sets, its columns into their bounds, and what the balance is short of is added to one column.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from gridveil.grid.opf.formulation import FAR, Batch, Formulation
from gridveil.grid.opf.lazy_rows import Answer

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Certified:
    """Costs, proofs and repaired solutions of some models, one row per model.

    `cost` is the value of `x` after the repair, `bound` the dual bound, `gap` their difference
    relative to the cost (at least 1), `violation` the MW by which the repaired solution still
    misses a limit that can't be bought.
    """

    cost: Floats
    bound: Floats
    gap: Floats
    violation: Floats
    x: Floats
    flow: Floats
    nodal: Floats
    prices: Floats

    def put(self, k: int, other: Certified) -> None:
        """Replace model `k` by the only model of another certificate."""
        for field in fields(self):
            getattr(self, field.name)[k] = getattr(other, field.name)[0]


def certify(form: Formulation, batch: Batch, answers: list[Answer]) -> Certified:
    """Compute bound, repaired value and gap of every answer."""
    prices = _clipped_prices(form, batch, answers)
    balance = np.array([answer.balance for answer in answers])
    nodal = _spread(form, balance) - form.flows.back(prices[:, 0] - prices[:, 1])
    x, missing = _repaired(form, batch, np.array([answer.x for answer in answers]))
    flow = form.flow(x)
    over = overload(batch, flow)
    bounds = batch.bounds
    cost = bounds.constant + (bounds.lin * x + bounds.quad * x * x).sum(1)
    violation = missing
    if form.slack.lines:
        cost = cost + form.slack.price * over.sum(1)
    else:
        violation = np.maximum(missing, over.max(1, initial=0.0))
    bound = _bound(form, batch, (balance, prices, nodal), cost)
    # A solution that exceeds a hard limit by `over` may be cheaper than the bound by up to
    # `mu over`; add that to the gap, or a violation would hide a bad answer.
    unpaid = 0.0 if form.slack.lines else (prices.sum(1) * over).sum(1)
    gap = (cost + unpaid - bound) / np.maximum(1.0, np.abs(cost))
    return Certified(cost, bound, gap, violation, x, flow + batch.base, nodal, prices)


def overload(batch: Batch, flow: Floats) -> Floats:
    """Compute the MW by which branches are over their limits, from the flow of the columns."""
    room = batch.room
    return np.maximum(np.maximum(flow - room[:, 0], -flow - room[:, 1]), 0.0)


def _clipped_prices(form: Formulation, batch: Batch, answers: list[Answer]) -> Floats:
    prices: Floats = np.maximum(np.array([answer.prices for answer in answers]), 0.0)
    prices[np.isinf(batch.room)] = 0.0
    if form.slack.lines:
        prices /= np.maximum(prices.sum(1, keepdims=True) / form.slack.price, 1.0)
    return prices


def _spread(form: Formulation, balance: Floats) -> Floats:
    """Assign every bus the price of its island, 0 if it is out of service."""
    padded = np.hstack([balance, np.zeros((len(balance), 1))])
    return np.asarray(padded[:, form.flows.island])


def _repaired(form: Formulation, batch: Batch, x: Floats) -> tuple[Floats, Floats]:
    """Clip the columns and repair the balances; also return the MW that can't be repaired."""
    low, high = batch.bounds.low, batch.bounds.high
    x = np.minimum(np.maximum(x, low), high)
    models = np.arange(len(x))
    for island in range(form.islands):
        own = np.flatnonzero(form.column_island == island)
        if len(own) == 0:
            continue
        for _ in range(2):
            short = batch.demand[:, island] - x[:, own].sum(1)
            above, below = high[:, own] - x[:, own], x[:, own] - low[:, own]
            # The column furthest inside its bounds: moving it breaks no other limit.
            inside = own[np.minimum(above, below).argmax(1)]
            x[models, inside] += short
        x = np.minimum(np.maximum(x, low), high)
    missing = np.abs(batch.demand - form.balance(x)).max(1, initial=0.0)
    scale = 1e-12 * np.abs(batch.demand).max(1, initial=1.0)
    return x, np.where(missing <= scale, 0.0, missing)


def _bound(
    form: Formulation,
    batch: Batch,
    duals: tuple[Floats, Floats, Floats],
    cost: Floats,
) -> Floats:
    balance, prices, nodal = duals
    rows = (prices * np.where(prices > 0, batch.room, 0.0)).sum(1)
    reduced = batch.bounds.lin - nodal[:, form.columns.bus]
    low, high = _finite(batch, cost)
    quad = batch.bounds.quad
    with np.errstate(divide="ignore", invalid="ignore"):
        # If the cost is linear the least value is at an end of the box.
        best = np.where(quad > 0, -reduced / (2 * quad), np.where(reduced > 0, low, high))
        best = np.minimum(np.maximum(best, low), high)
        least = np.where((reduced == 0) & (quad == 0), 0.0, (quad * best + reduced) * best)
    found = batch.bounds.constant + (balance * batch.demand).sum(1) - rows.sum(1) + least.sum(1)
    return np.where(np.isnan(found), -np.inf, found)


def _finite(batch: Batch, cost: Floats) -> tuple[Floats, Floats]:
    """Bound the columns that have no bound so that no solution as cheap as `cost` is cut off.

    No solution costs less than `base`, with every column at its cheapest, and each MW that an
    open column moves from its finite end costs at least `rate` more. So an optimal solution has
    no column further than `(cost - base) / rate` MW from that end. If moving some open column saves
    money (a slack price below a unit's cost), this says nothing, and the dual bound holds only for
    solutions within `FAR` MW.
    """
    bounds = batch.bounds
    low, high, lin = bounds.low, bounds.high, bounds.lin
    open_up, open_down = np.isposinf(high), np.isneginf(low)
    if not (open_up.any() or open_down.any()):
        return low, high
    rate = np.minimum(np.where(open_up, lin, np.inf), np.where(open_down, -lin, np.inf)).min(1)
    start = np.where(open_up, low, np.where(open_down, high, 0.0))
    start = np.where(np.isfinite(start), start, 0.0)
    # quad x^2 >= 0, so a column costs no less than its linear part.
    closed = np.where(open_up | open_down, start, np.where(lin > 0, low, high))
    base = bounds.constant + (lin * closed).sum(1)
    with np.errstate(divide="ignore", invalid="ignore"):
        room = np.where(rate > 0, np.maximum(cost - base, 0.0) / rate, FAR)[:, None]
    return np.where(open_down, start - room, low), np.where(open_up, start + room, high)
