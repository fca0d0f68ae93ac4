"""Sharpen what an interior point finds: solve exactly for the limits that bind in its answer.

An interior point stops close to the optimum, where it is clear which limits bind. With those held
and the others dropped, the optimum solves the linear equations

    2 quad x + lin = E'y  on the free columns,    E x = right-hand sides,

where `E` has the balances and the binding branch rows. The certificate (see `certificates`) then
says whether the right limits were held.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gridveil.grid.opf.formulation import Batch, Formulation
from gridveil.grid.opf.lazy_rows import Answer

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# With more unknowns than this, solving the dense equations takes longer than the programme.
MOST_UNKNOWNS = 3000


def polished(form: Formulation, batch: Batch, answer: Answer) -> Answer:
    """Improve an answer to the batch's first model by solving for the limits that bind in it."""
    lin, quad = batch.bounds.lin[0], batch.bounds.quad[0]
    paid, binding = _branches(form, batch, answer)
    x, free = _columns(form, batch, answer)
    lines = np.flatnonzero(binding)
    if len(free) + len(lines) + form.islands > MOST_UNKNOWNS:
        return answer
    at = form.columns.bus
    balances = form.column_island == np.arange(form.islands)[:, None]
    E = np.vstack([balances.astype(float), form.flows.rows(lines)[:, at]])
    room = batch.room[0]
    limit = np.where(binding > 0, room[0], -room[1])[lines]
    right = np.concatenate([batch.demand[0], limit]) - E @ x
    slope = lin + form.flows.back(paid)[at]
    x[free], y = _equations(quad[free], slope[free], E[:, free], right)
    net = paid.copy()
    net[lines] = -y[form.islands :]
    prices = np.stack([np.maximum(net, 0.0), np.maximum(-net, 0.0)])
    return replace(answer, x=x, balance=y[: form.islands], prices=prices)


def _units(batch: Batch) -> tuple[float, float]:
    """Return a typical power and price, in which large and small are measured."""
    power = float(np.abs(batch.demand).max(initial=1.0))
    return power, float(np.abs(batch.bounds.lin).max(initial=1e-6))


def _branches(form: Formulation, batch: Batch, answer: Answer) -> tuple[Floats, Floats]:
    """Return signed prices of branches that buy overload, and signs of branches at a limit."""
    power, money = _units(batch)
    flow = form.flow(answer.x[None])[0]
    room = batch.room[0] - np.stack([flow, -flow])
    # A limit binds if its price is large and its distance small, each in its own unit.
    tight = answer.prices / money > room / power
    sign = np.where(tight[0], 1.0, 0.0) - np.where(tight[1], 1.0, 0.0)
    if not form.slack.lines:
        return np.zeros(len(sign)), sign
    spare = (form.slack.price - answer.prices.sum(0)) / money
    over = spare < -room.min(0) / power
    return np.where(over, form.slack.price * sign, 0.0), np.where(over, 0.0, sign)


def _columns(form: Formulation, batch: Batch, answer: Answer) -> tuple[Floats, Ints]:
    """Set the columns at a bound to that bound, and find the free ones."""
    power, money = _units(batch)
    bounds, x = batch.bounds, answer.x
    nodal = form.flows.back(answer.prices[0] - answer.prices[1])[form.columns.bus]
    reduced = bounds.lin[0] + 2 * bounds.quad[0] * x - answer.balance[form.column_island] + nodal
    low, high = bounds.low[0], bounds.high[0]
    at_low = reduced / money > (x - low) / power
    at_high = -reduced / money > (high - x) / power
    held = np.where(at_low, low, np.where(at_high, high, 0.0))
    return held, np.flatnonzero(~(at_low | at_high))


def _equations(quad: Floats, slope: Floats, E: Floats, right: Floats) -> tuple[Floats, Floats]:
    count = len(quad)
    matrix = np.block([[np.diag(2 * quad), -E.T], [E, np.zeros((len(E), len(E)))]])
    vector = np.concatenate([-slope, right])
    # The rows differ by orders of magnitude (quad is about 1e-3): scale, solve, refine once.
    size = np.maximum(np.abs(matrix).max(axis=1, initial=0.0), 1e-300)
    scaled, target = matrix / size[:, None], vector / size
    found = np.linalg.lstsq(scaled, target, rcond=None)[0]
    found += np.linalg.lstsq(scaled, target - scaled @ found, rcond=None)[0]
    return found[:count], found[count:]
