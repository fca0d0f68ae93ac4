"""What all models of a network share, and the numbers of a batch of them.

A model is `min cost(x)` over the columns of `Columns`, with `sum of an island's x = demand` and
`low <= F x + base <= high` on every branch, where `base` is the flow that demand and phase
shifters put there, `high = min(capacity, angle limit)` and `low` likewise. Each branch has two
one-sided rows, `F x <= room[0]` and `-F x <= room[1]`, which make sense for any limits, also ones
that cross. With line slack each branch has one `v >= 0` in both of its rows, at the slack price.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from gridveil.errors import InputError
from gridveil.grid.model.network import Network
from gridveil.grid.model.population import Population
from gridveil.grid.opf.columns import Bounds, Columns, Slack
from gridveil.grid.opf.flows import Convention, Flows
from gridveil.grid.opf.outages import Contingencies

Floats = NDArray[np.float64]
Model = Literal["strict", "relaxed", "shed", "limits"]
KEPT = (
    "cost",
    "dispatch",
    "flow",
    "line_price",
    "nodal_price",
    "limit_price",
    "shed",
    "overload",
    "room_price",
)
"""The results that a caller can ask to keep for every model."""


@dataclass(frozen=True)
class Settings:
    """The kind of model, and how precisely to solve it; see `solve_population`."""

    model: Model | tuple[Model, ...] = "strict"
    slack_price: float | None = None
    convention: Convention = "series"
    quadratic: Literal["exact"] | int = "exact"
    tolerance: float = 1e-9
    rows: Literal["lazy", "all"] = "lazy"
    contingencies: Contingencies | None = None

    def __post_init__(self) -> None:
        for kind in self.kinds:
            _one_of(kind, get_args(Model), "model")
        _one_of(self.convention, get_args(Convention), "convention")
        _one_of(self.rows, ("lazy", "all"), "rows")
        bought = set(self.kinds) - {"strict"}
        price = self.slack_price
        if bought and (price is None or not (np.isfinite(price) and price > 0)):
            raise InputError(
                f"Model {'+'.join(self.model)} needs a slack price above zero.",
                remedy="Give slack_price (--slack-price) in $/MWh, above every price you expect.",
            )
        if not bought and price is not None:
            raise InputError(
                "The strict model has no slack to put a price on.",
                remedy='Leave slack_price out, or choose model="relaxed", "shed" or "limits".',
            )
        if bought and "strict" in self.kinds:
            raise InputError(
                "A model is strict or has slack, not both.", remedy="Leave strict out."
            )
        self._check_quadratic()

    def _check_quadratic(self) -> None:
        if self.quadratic == "exact":
            return
        if not isinstance(self.quadratic, int) or self.quadratic < 1:
            raise InputError(
                f"quadratic={self.quadratic!r} is neither 'exact' nor a number of pieces.",
                remedy="Use 'exact', or a whole number from 1.",
            )
        if "limits" in self.kinds:
            raise InputError(
                "Pieces of a quadratic cost lie between the limits, which this model may leave.",
                remedy="Use quadratic='exact', or piecewise-linear costs of your own.",
            )

    @property
    def kinds(self) -> tuple[Model, ...]:
        """The kinds of slack of a model ("strict" has none), as a tuple."""
        return (self.model,) if isinstance(self.model, str) else self.model

    @property
    def pieces(self) -> int | None:
        """How many linear pieces replace a quadratic cost, or None to keep it quadratic."""
        return None if self.quadratic == "exact" else self.quadratic

    @property
    def slack(self) -> Slack:
        """The slack that the models can buy."""
        kinds = self.kinds
        return Slack(
            "relaxed" in kinds, "shed" in kinds, "limits" in kinds, self.slack_price or 0.0
        )


def _one_of(value: str, choices: Sequence[str], name: str) -> None:
    if value not in choices:
        raise InputError(
            f"{name}={value!r} is not known.", remedy=f"Use one of {', '.join(choices)}."
        )


def check_keep(keep: Sequence[str]) -> frozenset[str]:
    """Check the names of results to keep."""
    for name in keep:
        _one_of(name, KEPT, "keep")
    return frozenset(keep)


def check_capacity(network: Network, capacity: object) -> Floats:
    """Return the given capacities after checking them, or the network's own if none are given."""
    given = network.branches.capacity if capacity is None else capacity
    values = np.asarray(given, dtype=float)
    if values.shape != (len(network.branches),) or np.isnan(values).any():
        raise InputError(
            f"capacity needs {len(network.branches)} numbers, one for each branch, none missing.",
            remedy="Use inf for a branch without a limit.",
        )
    return values


def check_population(network: Network, population: Population) -> None:
    """Check the shapes of a population's arrays, and that no value is missing."""
    widths = {
        "load": len(network.buses),
        "p_min": len(network.generators),
        "p_max": len(network.generators),
        "cost": len(network.generators),
        "cost_factor": len(network.generators),
        "capacity": len(network.branches),
    }
    for name, width in widths.items():
        values = getattr(population, name)
        if values is None:
            continue
        if values.shape != (population.size, width):
            raise InputError(
                f"The population's {name} has shape {values.shape}, where this network needs "
                f"{(population.size, width)}.",
                remedy="Use a population made for this network.",
            )
        if not np.isfinite(values).all():
            raise InputError(
                f"The population's {name} has missing or infinite values.",
                remedy="Fill them in.",
            )


Bools = NDArray[np.bool_]
# The bound put on columns that have none (MW).
FAR = 1e7


@dataclass(frozen=True, eq=False)
class Batch:
    """The numbers of some models, one row per model.

    `room` is the flow that the columns may put on each branch, `(models, 2, branches)`: along the
    branch and against it; flows after outages follow those of the branches. `rated` marks the
    limits that come from a capacity and not from an angle limit.
    """

    bounds: Bounds
    demand: Floats
    base: Floats
    room: Floats
    rated: Bools

    def __len__(self) -> int:
        return len(self.demand)

    def one(self, k: int) -> Batch:
        """Return a batch with model `k` alone."""
        at = slice(k, k + 1)
        return Batch(
            self.bounds.one(k), self.demand[at], self.base[at], self.room[at], self.rated[at]
        )

    def some(self, which: NDArray[np.int64]) -> Batch:
        """Return a batch with some of the models."""
        bounds = Bounds(*(values[which] for values in self.bounds.arrays()))
        return Batch(
            bounds, self.demand[which], self.base[which], self.room[which], self.rated[which]
        )

    def within_reach(self) -> Batch:
        """The same models, with no column further than `FAR` from zero."""
        low, high = np.maximum(self.bounds.low, -FAR), np.minimum(self.bounds.high, FAR)
        return replace(self, bounds=replace(self.bounds, low=low, high=high))

    def without_cost(self) -> Batch:
        """The same limits with zero costs: only line slack costs, so the cost is the overload."""
        near, none = self.within_reach(), np.zeros(self.bounds.lin.shape)
        nothing = np.zeros(len(self))
        free = replace(near.bounds, lin=none, quad=none, constant=nothing, error=nothing)
        return replace(near, bounds=free)


class Formulation:
    """What all models of a network have in common; it holds no result of any solve.

    Parameters
    ----------
    network
        The network; plain arrays, nothing sealed.
    convention
        How susceptances are computed, see `Flows`.
    own_costs, pieces
        See `Columns`.
    slack
        The slack that a model can buy.
    flows
        The flows of an earlier formulation of the same network, to use again.
    contingencies
        Outages after which the limits must hold too.
    """

    def __init__(
        self,
        network: Network,
        convention: Convention,
        *,
        own_costs: bool,
        pieces: int | None,
        slack: Slack,
        flows: Flows | None = None,
        contingencies: Contingencies | None = None,
    ) -> None:
        self.flows = Flows(network, convention, contingencies) if flows is None else flows
        self.columns = Columns(network, own_costs=own_costs, pieces=pieces, slack=slack)
        self.slack = slack
        self._buses = network.buses
        self.column_island = self.flows.island[self.columns.bus]
        self._gather = self._gathering()

    @property
    def islands(self) -> int:
        """The number of islands: each has one balance."""
        return self.flows.islands

    def batch(self, population: Population, capacity: Floats) -> Batch:
        """Compute the numbers of a population's models."""
        flows, size = self.flows, population.size
        load = np.broadcast_to(self._buses.load, (size, flows.buses))
        if population.load is not None:
            load = load * population.load
        drawn = load + self._buses.shunt + flows.shift_injection
        drawn = np.where(flows.island < 0, 0.0, drawn)
        limit = np.broadcast_to(np.where(flows.live, capacity, np.inf), (size, len(flows.b)))
        if population.capacity is not None:
            with np.errstate(invalid="ignore"):
                limit = np.where(np.isinf(limit), limit, limit * population.capacity)
        limit = flows.limits(limit)
        base = flows.after(flows.shift_flow) - flows.of(drawn)
        angle = flows.limits(np.stack([flows.high_angle, -flows.low_angle]), np.inf)
        room = np.minimum(limit[:, None], angle)
        room[:, 0] -= base
        room[:, 1] += base
        return Batch(
            bounds=self.columns.bounds(population),
            demand=self._sum_islands(drawn, flows.island),
            base=base,
            room=room,
            rated=limit[:, None] <= angle,
        )

    def elastic(self) -> Formulation:
        """The same columns with line slack at a price of 1, to measure the least overload."""
        other = copy(self)
        other.slack = replace(self.slack, lines=True, price=1.0)
        return other

    def flow(self, x: Floats) -> Floats:
        """Compute `F x`, one row per model."""
        if self._gather is not None:
            return self.flows.after(np.asarray(x @ self._gather))
        return self.flows.of(self.columns.injection(x, self.flows.buses))

    def balance(self, x: Floats) -> Floats:
        """Add up the columns of each island."""
        return self._sum_islands(x, self.column_island)

    def _sum_islands(self, values: Floats, island: NDArray[np.int64]) -> Floats:
        if self.islands == 1:
            return np.asarray(values[:, island == 0].sum(1, keepdims=True))
        total = np.zeros((len(values), self.islands + 1))
        for k in range(len(values)):
            total[k] = np.bincount(island + 1, values[k], self.islands + 1)
        return total[:, 1:]

    def _gathering(self) -> Floats | None:
        """On a small network, return `F` of the columns, transposed; else None."""
        if self.flows.dense is None:
            return None
        return np.ascontiguousarray(self.flows.dense[:, self.columns.bus].T)
