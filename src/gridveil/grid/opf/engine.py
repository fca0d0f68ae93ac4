"""Solve populations of DC optimal power flow models, fast and exactly.

Every cost comes with a proof (a dual bound and a repaired solution) and a status. The engine takes
plain arrays and knows nothing of seals. A mechanism that opens a seal calls it in its own process,
without workers, and keeps no `Engine`: a solver's memory (basis, rows) reveals what it solved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gridveil.errors import InputError
from gridveil.grid.model.network import Network, scaled, unit_of
from gridveil.grid.model.population import Population
from gridveil.grid.opf.fallbacks import Ladder, Status
from gridveil.grid.opf.flows import Convention, Flows
from gridveil.grid.opf.formulation import (
    Formulation,
    Model,
    Settings,
    check_capacity,
    check_keep,
    check_population,
)
from gridveil.grid.opf.outages import Contingencies
from gridveil.grid.opf.workers import (
    Chunk,
    Part,
    Progress,
    chunk_size,
    cut,
    formulate,
    pack,
    processes,
    solve_by_workers,
    solve_part,
)

__all__ = ["Engine", "Solutions", "Status", "solve_population"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

CONGESTED = 1e-4
"""A line is congested if 1 MW more of its limit would save more than this, $/MWh."""
_POWERS = ("cost", "bound", "violation", "error", "dispatch", "flow", "shed", "overload")


@dataclass(frozen=True, eq=False, repr=False)
class Solutions:
    """Solutions of a population's models, one row per model; None for what was not kept.

    Parameters
    ----------
    cost
        $/h; infinite if the model is infeasible.
    status
        A `Status` for each model.
    bound, gap
        A proved lower bound of the cost, and how far the cost is above it, relatively.
    violation
        MW by which the solution misses a limit that can't be bought; at most 1e-6 if certified (in
        `unit`, which is not 1 MW for very small and very large networks).
    error
        How much too high the cost may be, in $/h, because of linear pieces of quadratic costs.
    dispatch
        MW of each generator.
    flow
        MW of each branch, from its first bus to its second.
    line_price
        What 1 MW more of the model's own limit of a branch would save, $/MWh, never below 0.
        With capacity multipliers, `dC/df = -multiplier * line_price`.
    nodal_price
        What 1 MW more load at each bus would cost, $/MWh; NaN if the bus is out of service.
    reactive_price
        What 1 Mvar more load at each bus would cost; only in AC.
    p_max_price, p_min_price
        What 1 MW more room would save above `p_max` and below `p_min`, $/MWh.
    shed
        MW shed at each bus, below zero if power is spilled.
    overload
        MW by which each branch is over its limit.
    room_price
        The most that 1 MW more room in every branch limit and balance at once could save, $/h; one
        number per model.
    """

    cost: Floats
    status: Ints
    bound: Floats
    gap: Floats
    violation: Floats
    error: Floats
    dispatch: Floats | None = None
    flow: Floats | None = None
    line_price: Floats | None = None
    nodal_price: Floats | None = None
    reactive_price: Floats | None = None
    p_max_price: Floats | None = None
    p_min_price: Floats | None = None
    shed: Floats | None = None
    overload: Floats | None = None
    room_price: Floats | None = None

    def __len__(self) -> int:
        return len(self.cost)

    def __repr__(self) -> str:
        counts = {s: int((self.status == s).sum()) for s in Status}
        found = ", ".join(f"{count:,} {s.name.lower()}" for s, count in counts.items() if count)
        finite = self.cost[np.isfinite(self.cost)]
        costs = f", ${finite.min():,.2f} to ${finite.max():,.2f} an hour" if len(finite) else ""
        return f"<{len(self):,} solutions: {found}{costs}>"

    @property
    def certified(self) -> NDArray[np.bool_]:
        """Which costs are proved; a proved infeasible model counts."""
        return np.asarray((self.status <= Status.TIGHT) | (self.status == Status.INFEASIBLE))

    @property
    def congested(self) -> NDArray[np.bool_]:
        """Which branches are congested in which models; none in a model without a solution."""
        if self.line_price is None:
            raise InputError(
                "Prices of lines were not kept, and they tell which lines are congested.",
                remedy='Solve with keep=("line_price",).',
            )
        return np.asarray(np.nan_to_num(self.line_price) > CONGESTED)


class Engine:
    """A solver for one network that stays warm between calls.

    What it learned in one call (basis, branch rows) speeds up the next one, and can change which of
    several equally good solutions the next one finds. An engine that saw private data must be
    thrown away; `solve_population` uses a new solver for every chunk of models.

    Parameters are those of `solve_population`.
    """

    def __init__(
        self,
        network: Network,
        *,
        model: Model | tuple[Model, ...] = "strict",
        slack_price: float | None = None,
        convention: Convention = "series",
        quadratic: Literal["exact"] | int = "exact",
        tolerance: float = 1e-9,
        rows: Literal["lazy", "all"] = "lazy",
        unit: float | None = None,
        contingencies: Contingencies | None = None,
    ) -> None:
        self._unit = unit_of(_plain(network)) if unit is None else unit
        self._network = scaled(network, self._unit)
        self._settings = Settings(
            model, slack_price, convention, quadratic, tolerance, rows, contingencies
        )
        self._forms: dict[bool, Formulation] = {}
        self._ladders: dict[bool, Ladder] = {}

    def solve(
        self,
        population: Population | None = None,
        *,
        capacity: ArrayLike | None = None,
        keep: Sequence[str] = ("cost",),
        chunk: int | None = None,
        progress: Progress | None = None,
        fresh: bool = False,
    ) -> Solutions:
        """Solve a population in this process.

        With `fresh` every chunk starts with a new solver, and the answers equal those of
        `solve_population` to the last bit; otherwise solvers stay warm.
        """
        models = Population(1) if population is None else population
        check_population(self._network, models)
        given = capacity if capacity is None else _in_units(capacity, self._unit)
        limits, kept = check_capacity(self._network, given), check_keep(keep)
        size = _chunk(chunk, self._network, self._settings)
        parts: list[Part] = []
        done = 0
        for some in cut(models, size):
            ladder = self._ladder(own_costs=models.cost is None, fresh=fresh)
            parts.append(solve_part(ladder, some, limits, kept))
            done += some.size
            if progress is not None:
                progress(done, models.size)
        return _joined(parts, self._unit)

    @property
    def flows(self) -> Flows:
        """Flows of the network; available after the first solve."""
        return next(iter(self._forms.values())).flows

    def _ladder(self, *, own_costs: bool, fresh: bool) -> Ladder:
        if own_costs not in self._forms:
            like = self._forms.get(not own_costs)
            self._forms[own_costs] = formulate(self._network, self._settings, own_costs, like)
        if fresh or own_costs not in self._ladders:
            self._ladders[own_costs] = Ladder(
                self._forms[own_costs],
                tolerance=self._settings.tolerance,
                all_rows=self._settings.rows == "all",
            )
        return self._ladders[own_costs]


def solve_population(
    network: Network,
    population: Population | None = None,
    *,
    capacity: ArrayLike | None = None,
    model: Model | tuple[Model, ...] = "strict",
    slack_price: float | None = None,
    convention: Convention = "series",
    quadratic: Literal["exact"] | int = "exact",
    keep: Sequence[str] = ("cost",),
    tolerance: float = 1e-9,
    rows: Literal["lazy", "all"] = "lazy",
    unit: float | None = None,
    executor: Any = None,
    workers: int | None = None,
    chunk: int | None = None,
    progress: Progress | None = None,
    contingencies: Contingencies | None = None,
) -> Solutions:
    """Solve every model of a population.

    Parameters
    ----------
    network
        The network: plain arrays, nothing sealed.
    population
        The models; by default one, the network as it is.
    capacity
        Capacities in MW, one for each branch, in place of the network's; any sign, `inf` for none.
    model
        "strict": the cost is infinite if limits can't be met. "relaxed": flows may exceed their
        limits at `slack_price` per MW, so every capacity vector has a cost. "shed": load may be
        shed and power spilled at every bus at that price. "limits": generators may leave their
        limits at that price. A tuple allows several of these.
    slack_price
        $/MWh.
    convention
        "series" for PowerModels' DC model, "matpower" for MATPOWER's; see `Flows`. Limits of
        angle differences are kept in both, as limits of the flow.
    quadratic
        "exact", or the number of linear pieces that replace each quadratic cost; `error` in the
        solutions says how much that can matter.
    keep
        What to keep of every model besides cost, status and certificate: "dispatch", "flow",
        "line_price", "nodal_price", "limit_price" (of generators), "shed", "overload",
        "room_price".
    tolerance
        Relative gap up to which a cost counts as certified.
    rows
        "lazy": a branch limit is added when a solution breaks it; "all": all at once, for small
        networks.
    unit
        MW, a power of two: the solvers' tolerances are in this unit. By default chosen from the
        size of the network; 1 for most.
    executor
        Any `concurrent.futures.Executor`, or a Dask `Client`. Public data only.
    workers
        Start this many processes. Public data only.
    chunk
        How many models one warm solver solves; by default chosen from the network's size.
    progress
        Called after every chunk with the number of models done and the number of all models.
    contingencies
        Outages that every dispatch must survive, see `outages.contingencies`. Flows and overloads
        are those before any outage; prices of branches count their limits after outages too.

    Returns
    -------
    Solutions
        In the order of the population; the same with and without workers.
    """
    if executor is not None and workers is not None:
        raise InputError("Give an executor or a number of workers, not both.")
    settings = Settings(model, slack_price, convention, quadratic, tolerance, rows, contingencies)
    if executor is None and workers is None:
        engine = Engine(
            network,
            model=model,
            slack_price=slack_price,
            convention=convention,
            quadratic=quadratic,
            tolerance=tolerance,
            rows=rows,
            unit=unit,
            contingencies=contingencies,
        )
        return engine.solve(
            population, capacity=capacity, keep=keep, chunk=chunk, progress=progress, fresh=True
        )
    size = unit_of(_plain(network)) if unit is None else unit
    given = capacity if capacity is None else _in_units(capacity, size)
    chunks = _chunks(scaled(network, size), population, given, settings, keep, chunk)
    if executor is not None:
        return _joined(solve_by_workers(executor, chunks, progress), size)
    with processes(_at_least_one(workers, "workers")) as pool:
        return _joined(solve_by_workers(pool, chunks, progress), size)


def _in_units(capacity: ArrayLike, unit: float) -> Floats:
    return np.asarray(capacity, dtype=float) / unit


def _chunks(
    network: Network,
    population: Population | None,
    capacity: ArrayLike | None,
    settings: Settings,
    keep: Sequence[str],
    chunk: int | None,
) -> list[Chunk]:
    models = Population(1) if population is None else population
    check_population(network, models)
    limits, kept = check_capacity(network, capacity), check_keep(keep)
    common = pack(network, settings, models.cost is None)
    size = _chunk(chunk, network, settings)
    return [Chunk(common, some, limits, kept) for some in cut(models, size)]


def _plain(network: Network) -> Network:
    if not isinstance(network, Network):
        raise InputError(
            f"The engine solves a Network, and this is a {type(network).__name__}.",
            remedy="Put released values in the place of a private parameter first.",
        )
    return network


def _chunk(chunk: int | None, network: Network, settings: Settings) -> int:
    if chunk is not None:
        return _at_least_one(chunk, "chunk")
    given = settings.contingencies
    return chunk_size(network, 0 if given is None else len(given.lines))


def _at_least_one(value: int | None, name: str) -> int:
    if value is None or value < 1:
        raise InputError(f"{name}={value} is too few.", remedy="Give a whole number from 1.")
    return value


def _joined(parts: list[Part], unit: float) -> Solutions:
    if not parts:
        raise InputError("The population has no models.", remedy="Give at least one.")
    found = {name: np.concatenate([p[name] for p in parts]) for name in parts[0]}
    if unit != 1.0:
        found |= {name: found[name] * unit for name in _POWERS if name in found}
    return Solutions(**found)
