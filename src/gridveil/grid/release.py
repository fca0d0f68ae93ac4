"""Release parameters of a network: from sealed values to a bundle.

`plan` checks everything public and prepares a method (see `methods`); running the plan makes
the released network, the statement and the report. `release` is plan, charge and run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gridveil.errors import InputError
from gridveil.grid.congestion import Congestion, congestion
from gridveil.grid.facts import KIND as KIND
from gridveil.grid.facts import facts
from gridveil.grid.formats import SUFFIXES, Source
from gridveil.grid.methods import Outcome, Prepared, Settings, Task, prepare, run
from gridveil.grid.network import Network
from gridveil.grid.opf import Solutions, solve_population
from gridveil.grid.parameters import Problem
from gridveil.grid.population import Population
from gridveil.grid.public import PARAMETERS, PublicNetwork, split_parts
from gridveil.grid.queries import CostQuery
from gridveil.grid.ranges import Range, check_parameters
from gridveil.grid.report import grid_sections, loading_snippets
from gridveil.grid.requests import (
    Method,
    check_models,
    check_public_values,
    check_settings,
    check_together,
    check_writable,
    neighbours,
    price_of,
    ranges_of,
    with_linear_costs,
    with_penalty,
)
from gridveil.grid.selection import Declared, declared
from gridveil.grid.sketch import sketch_network
from gridveil.privacy.account import Account
from gridveil.privacy.adjacency import Adjacency
from gridveil.privacy.budget import Budget, Exact
from gridveil.privacy.ledger import Ledger, Sketch
from gridveil.privacy.sealed import Sealed
from gridveil.privacy.statement import Facts, make_statement
from gridveil.release import Plan, Progress, Release, Terms, silent
from gridveil.report.parts import Section, Snippet

Floats = NDArray[np.float64]
POPULATION_FILE = "population.parquet"


class GridRelease(Release):
    """A released network: `data` to work with, `write` for the bundle."""

    def __init__(
        self,
        task: Task,
        outcome: Outcome,
        facts: Facts,
        seen: Congestion | None = None,
        left_out: int = 0,
    ) -> None:
        self.congestion: Congestion | None = seen
        self.left_out = left_out
        self.public: PublicNetwork = task.problem.public
        self.population: Population = task.problem.models
        self.values: Floats = outcome.values
        self.data: Network = self.public.with_values(outcome.values)
        files = {
            f"network{_suffix(self.data)}": lambda path: self.data.write_release(
                path, self.public.parameters
            ),
            # Without names of elements: some people write ratings into them.
            POPULATION_FILE: lambda path: self.population.write(path),
        }
        super().__init__(make_statement(task.account, facts), task.account, files)

    @cached_property
    def solutions(self) -> Solutions:
        """The population's models on the released network: public, like the network."""
        return solve_population(
            self.data, self.population, keep=("cost", "flow", "line_price", "nodal_price")
        )

    def sections(self) -> tuple[Section, ...]:
        """A map of the released network, and what the models do on it."""
        return grid_sections(self.data, self.public, self.values, self.population, self.solutions)

    def loading(self) -> tuple[Snippet, ...]:
        """Code that loads the released network."""
        suffix = _suffix(self.data)
        return loading_snippets(f"network{suffix}", suffix)


class GridPlan(Plan[GridRelease]):
    """A grid release that was checked and prepared from public data; made by `plan`."""

    def __init__(
        self,
        sealed: Sealed[Any],
        problem: Problem,
        settings: Settings,
        adjacency: Sequence[Adjacency],
        epsilon: Fraction,
        prepared: Prepared,
        declared: Declared,
        left_out: int = 0,
    ) -> None:
        public = problem.public
        clear = [name for name in PARAMETERS if name not in public.parameters]
        hidden = list(public.parameters)
        if "load" in public.parameters:
            (clear if settings.published_total is not None else hidden).append("total load")
        clear += declared.published(public.parameters)
        super().__init__(
            Terms(
                dataset=None,
                epsilon=epsilon,
                adjacency=tuple(adjacency),
                clear=clear,
                private=hidden,
                purpose=f"{', '.join(public.parameters)} of a network, method {settings.method}",
            )
        )
        self.problem = problem
        self.settings = settings
        self.prepared = prepared
        self.declared = declared
        self.left_out = left_out
        self.sealed = sealed
        self._warns = True
        self._charged = True

    def with_costs(self, costs: CostQuery) -> GridPlan:
        """The same plan with another cost query, for studies; it can't be charged."""
        made = copy(self)
        made.prepared = replace(self.prepared, costs=costs)
        made._charged = False
        return made

    def without_warning(self) -> GridPlan:
        """The same plan without the look for false congestion, for studies."""
        made = copy(self)
        made._warns = False
        return made

    def without_restoration(self) -> GridPlan:
        """The same plan without restoration between the paper's rounds, for audits."""
        made = copy(self)
        made.settings = replace(self.settings, restoration="none")
        return made

    def _before_charge(self) -> None:
        if not self._charged:
            raise InputError(
                "The queries of this plan were changed for a study.",
                remedy="Run it with plan.study(seed), on public data.",
            )

    def sketch(self) -> Sketch:
        """See `Plan.sketch`: of topology and reactances."""
        return sketch_network(self.problem.public)

    def _run(self, account: Account, progress: Progress) -> GridRelease:
        task = Task(account, self.sealed, self.problem, self.settings, progress)
        outcome = run(task, self.prepared)
        seen = None
        if self._warns:
            progress("looking at what the released limits cost")
            seen = congestion(task, self.prepared, outcome.values)
        known = facts(task, outcome, self.prepared.decimals, seen, self.declared, self.left_out)
        return GridRelease(task, outcome, known, seen, self.left_out)


def release(
    network: Network,
    population: Population | None = None,
    *,
    parameter: str | Sequence[str] = "capacity",
    epsilon: Exact,
    alpha: Exact | Mapping[str, Exact],
    method: Method = "certified",
    limits: Range | Mapping[str, Range] | None = None,
    margin: float | None = None,
    total_share: Exact | None = None,
    published_total: float | None = None,
    catalogue: Sequence[float] | None = None,
    public_curves: bool = False,
    only: str | Mapping[str, str] | None = None,
    unlimited_above: float | None = None,
    rounds: int | None = None,
    price: Exact | None = None,
    penalty: float | None = None,
    restoration: Literal["steps", "exact"] = "steps",
    time_limit: float | None = None,
    dataset: str | None = None,
    distinct: str | None = None,
    ledger: Ledger | Path | str | None = None,
    seed: int | None = None,
    progress: Progress = silent,
) -> GridRelease:
    """Release parameters of a network with a differential-privacy guarantee: plan, charge, run.

    Parameters
    ----------
    network
        The real network, from `read_case`.
    population
        The models that the released network should serve, public; sampled around the network by
        default. For private parameters it holds multipliers, never values.
    parameter
        What is private: ``"capacity"``, ``"load"``, ``"generator_limit"``, ``"cost"``, or several
        (``"capacity,load"``).
    epsilon
        The guarantee: 1, 0.5, "1/3".
    alpha
        How far one entry may move between neighbours, in MW (costs: $/MWh). One number, or one for
        each parameter.
    method
        ``"certified"`` (all epsilon on the data, every model served), ``"paper"`` (the paper's
        algorithm with correct noise), ``"laplace"`` (noise and clipping only).
    limits
        The public range of private values, as in ``(1, 5000)``; by parameter where several are
        private. Values outside are clipped.
    margin
        Certified: the share of every capacity that is kept in reserve, so that models which are
        not in the population are served too; 0.04 by default.
    total_share
        Certified, loads and costs: the share of epsilon that buys their sum (the total load; the
        cost of all units at full output); 0.4 of loads and 0.55 of costs by default, 0 for none.
    published_total
        Certified, loads: the total load in MW, where it is published anyway. Neighbours then have
        the same total and differ in two loads, which takes twice the noise.
    catalogue
        Certified, capacities: public ratings in MW that every capacity has one of.
    public_curves
        Generator limits: some costs are piecewise linear, and breakpoints and slopes are public.
        Say so only if they were not made from the limits, which can be worked out from them.
    only
        Protect these elements alone, by public facts: ``"voltage>=220"``, ``"kind=line"``,
        ``"name=A*"``, several with commas where all must hold; by parameter where several are
        private. The rest is published as it is, and the statement says so.
    unlimited_above
        Capacities: ratings from here on (MW) are placeholders, and these lines have no limit.
        Which lines they are becomes public.
    rounds
        Paper: how many models are matched (T); 10 by default.
    price
        Paper: the price that makes costs Lipschitz (L), $/MWh; the highest public cost by default.
    penalty
        Paper: the price of broken limits on released data (psi), $/MWh; 3000 by default, or ten
        times the price where that is more.
    restoration
        Paper: ``"steps"`` (convex-concave) or ``"exact"`` (mixed-integer, capacities only).
    time_limit
        Paper, exact: seconds for each restoration, 60 by default. It sees no private data.
    dataset
        The ledger's name for the data, which is in the statement. It may be left out once the
        ledger knows the data.
    distinct
        Why this is not the data of another dataset that it looks like; the ledger keeps it.
    ledger
        A ledger or its file; the user's own by default.
    seed
        For studies on public data only: seeded noise, no ledger, no guarantee.
    progress
        Called with a few words as each step begins.

    Raises
    ------
    InputError, LedgerRefused
        Before anything is charged.
    ReleaseAborted
        Where a computation on the private values failed; the charge stays.
    """
    planned = plan(
        network,
        population,
        parameter=parameter,
        epsilon=epsilon,
        alpha=alpha,
        method=method,
        limits=limits,
        margin=margin,
        total_share=total_share,
        published_total=published_total,
        catalogue=catalogue,
        public_curves=public_curves,
        only=only,
        unlimited_above=unlimited_above,
        rounds=rounds,
        price=price,
        penalty=penalty,
        restoration=restoration,
        time_limit=time_limit,
        progress=progress,
    )
    if seed is None:
        account = planned.charge(ledger, dataset=dataset, distinct=distinct)
    else:
        account = planned.study(seed)
    return planned.run(account, progress)


def plan(
    network: Network,
    population: Population | None = None,
    *,
    parameter: str | Sequence[str] = "capacity",
    epsilon: Exact,
    alpha: Exact | Mapping[str, Exact],
    method: Method = "certified",
    limits: Range | Mapping[str, Range] | None = None,
    public_curves: bool = False,
    only: str | Mapping[str, str] | None = None,
    unlimited_above: float | None = None,
    progress: Progress = silent,
    **options: Any,
) -> GridPlan:
    """Check and prepare a grid release; it opens nothing and charges nothing.

    Parameters, those of the method among them, and what is raised for public input are as in
    `release`.
    """
    if not isinstance(network, Network):
        raise InputError(
            f"An object of type {type(network).__name__} is no network.",
            remedy="Read one with read_case.",
        )
    parameters = check_parameters(parameter)
    settings = check_settings(parameters, method, **options)
    total = Budget(epsilon).total
    said = declared(parameters, only, unlimited_above, public_curves)
    check_public_values(network, parameters, said)
    network = with_linear_costs(network, parameters)
    if "load" in said.only and settings.published_total is not None:
        raise InputError(
            "A published total is that of all loads, and some of them are public here.",
            remedy="Leave published_total out, or only.",
        )
    sealed, public = split_parts(
        network, parameters, ranges_of(network, parameters, limits), declared=said
    )
    check_writable(public)
    adjacency = neighbours(public, alpha, published=settings.published_total is not None)
    progress("checking the models")
    models, left_out = check_models(public, population)
    problem = Problem(public, models, price_of(public, models, options.get("price")))
    settings = with_penalty(settings, problem)
    alphas = {name: one.alpha for name, one in zip(public.parameters, adjacency, strict=True)}
    check_together(problem, settings)
    prepared = prepare(problem, alphas, total, settings)
    return GridPlan(sealed, problem, settings, adjacency, total, prepared, said, left_out)


def _suffix(network: Network) -> str:
    kind = network.source.kind if isinstance(network.source, Source) else "matpower"
    return next(suffix for suffix, name in SUFFIXES.items() if name == kind)
