"""Costs or shortfalls of public models at released values, and their slopes.

A shortfall is the least total of MW by which a model's limits must be broken (lines overloaded,
load shed, power spilled, generator limits exceeded) to serve it. It is zero exactly if the model is
feasible, convex in capacities, loads and generator limits, and always has a value; so its slope
gives a valid cut whenever a model is not served.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridveil.grid.model.population import Population, take
from gridveil.grid.model.release_problem import ReleaseProblem
from gridveil.grid.opf.engine import Engine, Solutions
from gridveil.grid.opf.fallbacks import PROOF
from gridveil.grid.opf.formulation import Model
from gridveil.grid.opf.outages import Contingencies

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


LARGE = 2000
"""With more buses than this solving a model takes long, so few are solved at a time."""
# The solver's gap for a shortfall, relative to at least 1 MW. Cuts use the proved lower bound, so
# it need not be small.
SHORTFALL_GAP = 1e-4
# The relative gap where linear pieces replace quadratic costs: the pieces are off by more. A model
# that misses a smaller gap is solved from scratch, which takes twenty times as long.
PIECES_GAP = 1e-7
# A shortfall up to this counts as zero (MW): half of what counts as served.
SHORTFALL_NONE = PROOF / 2
# How many flows are remembered of models that were served (160 MB).
REMEMBERED = 20_000_000


@dataclass(frozen=True, eq=False)
class Look:
    """Costs or shortfalls of some models at one point, and their slopes."""

    value: Floats
    slope: Floats


class Oracle:
    """Costs or shortfalls of public models as a function of released values.

    It builds its own solver from public and released data. It can't be given a solver that saw
    sealed data: there is no argument for one.

    Parameters
    ----------
    problem
        What is released, with the public network.
    models
        The models.
    kinds
        The slack that models may buy, as for `solve_population`.
    price
        The price of slack; None for the strict model.
    free
        Set all other costs to zero: at a price of 1 the value is then the shortfall.
    pieces
        How many linear pieces replace a quadratic cost; by default costs are exact.
    contingencies
        Outages that every dispatch must survive.
    """

    words = "serving every model"

    def __init__(
        self,
        problem: ReleaseProblem,
        models: Population,
        *,
        kinds: tuple[Model, ...] = ("strict",),
        price: float | None = None,
        free: bool = False,
        pieces: int | None = None,
        contingencies: Contingencies | None = None,
    ) -> None:
        self._problem = problem
        self._models = replace(models, cost=None, cost_factor=None) if free else models
        self._free = free
        self._settings: dict[str, Any] = {
            "model": kinds,
            "slack_price": price,
            "contingencies": contingencies,
        }
        if free:
            self._settings["tolerance"] = SHORTFALL_GAP
        if pieces is not None:
            self._settings |= {"quadratic": pieces, "tolerance": PIECES_GAP}
        # A solver can stay warm if only capacities change.
        self._stays = problem.public.parameters == ("capacity",)
        self._engine: Engine | None = None
        self._flows: dict[int, Floats] = {}

    @classmethod
    def of_shortfalls(
        cls,
        problem: ReleaseProblem,
        models: Population,
        contingencies: Contingencies | None = None,
    ) -> Oracle:
        """Make an oracle of shortfalls, which count limits after outages too if any are given."""
        kinds: list[Model] = ["relaxed", "shed"]
        if "generator_limit" in problem.public.parameters:
            kinds.append("limits")
        return cls(
            problem,
            models,
            kinds=tuple(kinds),
            price=1.0,
            free=True,
            contingencies=contingencies,
        )

    @property
    def size(self) -> int:
        """The number of models."""
        return self._models.size

    def at(self, values: Floats, some: Ints | None = None) -> Look:
        """Compute values and slopes of some of the models (all by default)."""
        asked = np.arange(self.size) if some is None else some
        served = self._surely_served(values, asked)
        value = np.zeros(len(asked))
        slope = np.zeros((len(asked), len(values)))
        if not served.all():
            look = self._solved(values, asked[~served])
            value[~served], slope[~served] = look.value, look.slope
        return Look(value, slope)

    def _surely_served(self, values: Floats, asked: Ints) -> Bools:
        """Mark the models for which a dispatch found earlier serves at these values too.

        If only capacities change, a dispatch that met all other limits still does, and its flows
        are the same: it is enough to compare them with the new capacities.
        """
        found = np.zeros(len(asked), dtype=bool)
        if not self._flows:
            return found
        assert self._engine is not None
        flows = self._engine.flows
        limit = self._problem.public.with_values(values).branches.capacity
        for place, model in enumerate(asked.tolist()):
            if model in self._flows:
                factor = 1.0 if self._models.capacity is None else self._models.capacity[model]
                flow = np.abs(flows.after(self._flows[model]))
                over = np.maximum(flow - flows.limits(limit * factor), 0.0)
                found[place] = over.sum() <= SHORTFALL_NONE
        return found

    def _solved(self, values: Floats, asked: Ints) -> Look:
        models = take(self._models, asked)
        remembers = self._free and self._stays
        keep = (*self._problem.keep, "flow") if remembers else self._problem.keep
        found = self.solve(values, models, keep)
        if remembers:
            assert found.flow is not None
            whole = found.cost <= SHORTFALL_NONE
            room = max(REMEMBERED // found.flow.shape[1] - len(self._flows), 0)
            self._flows |= dict(zip(asked[whole].tolist()[:room], found.flow[whole], strict=False))
        slope = self._problem.slope(found, models)
        if self._free and "cost" in self._problem.public.parts:
            slope[:, self._problem.public.parts["cost"]] = 0.0
        # The proved bound of a shortfall: cuts made from it never cut off too much, and for a
        # served model it is zero, without the rounding errors of thousands of flows.
        return Look(found.bound if self._free else found.cost, slope)

    def solve(self, values: Floats, models: Population, keep: Sequence[str]) -> Solutions:
        """Solve models at these values."""
        network = self._problem.public.with_values(values)
        if self._engine is None or not self._stays:
            if self._free:
                network = network.with_linear_costs(np.zeros(len(network.generators)))
            self._engine = Engine(network, **self._settings)
        return self._engine.solve(models, capacity=network.branches.capacity, keep=keep)
