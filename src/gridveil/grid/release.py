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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridveil.errors import InputError, wrong_type
from gridveil.grid.congestion import Congestion, congestion
from gridveil.grid.disclosures import assumed, facts, unusual
from gridveil.grid.io import network_suffix
from gridveil.grid.methods import METHODS, Method
from gridveil.grid.methods.base import Outcome, Prepared, Task, run
from gridveil.grid.methods.cost_query import CostQuery
from gridveil.grid.methods.paper import Paper, Unrestored
from gridveil.grid.model.alphas_by_class import steps_of
from gridveil.grid.model.checks import refuse, value_problems
from gridveil.grid.model.declarations import Declared, declared
from gridveil.grid.model.default_ranges import ranges_of
from gridveil.grid.model.network import Network
from gridveil.grid.model.parameters import check_parameters, public_beside
from gridveil.grid.model.population import Population
from gridveil.grid.model.public_network import PublicNetwork, RangeLike, split_parts
from gridveil.grid.model.release_problem import (
    ReleaseProblem,
    check_generation,
    check_writable,
    neighbours,
    with_linear_costs,
)
from gridveil.grid.model.sampling import check_models
from gridveil.grid.model.sketch import sketch_network
from gridveil.grid.opf.ac.engine import AcSolutions, solve_ac
from gridveil.grid.opf.engine import Solutions, solve_population
from gridveil.grid.report import (
    ac_words,
    error_bars,
    grid_sections,
    loading_snippets,
    served_words,
    survived_words,
)
from gridveil.privacy.account import Account, Budget
from gridveil.privacy.adjacency import RELATIVE, Adjacency
from gridveil.privacy.exact_numbers import Exact
from gridveil.privacy.ledger import Ledger, Sketch, Terms
from gridveil.privacy.sealed import Sealed
from gridveil.privacy.statement import Facts, make_statement
from gridveil.release.bundle import DEVIATIONS_FILE, write_deviations
from gridveil.release.options import options_of
from gridveil.release.plan import Asked, Plan, Progress, Release, silent
from gridveil.report.page import Section, Snippet

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
        self._outages = task.options.outages
        files = {
            f"network{network_suffix(self.data)}": lambda path: self.data.write_release(
                path, self.public.parameters
            ),
            # Without names of elements: some people write ratings into them.
            POPULATION_FILE: lambda path: self.population.write(path),
            DEVIATIONS_FILE: lambda path: write_deviations(
                path, error_bars(self.public, self.values, self.deviations)
            ),
        }
        self.deviations: Floats | None = outcome.deviations
        super().__init__(make_statement(task.account, facts), task.account, files)

    @cached_property
    def solutions(self) -> Solutions:
        """The population's models on the released network: public, like the network."""
        return solve_population(
            self.data, self.population, keep=("cost", "flow", "line_price", "nodal_price")
        )

    @cached_property
    def secured(self) -> Solutions | None:
        """The models with dispatches that survive the listed outages, if there are any."""
        outages = self._outages(self.data)
        if outages is None:
            return None
        return solve_population(self.data, self.population, contingencies=outages)

    @cached_property
    def in_ac(self) -> AcSolutions | None:
        """The models in AC power flow on the released network, if it was certified in AC."""
        if not self.statement.body["settings"].get("ac"):
            return None
        return solve_ac(self.data, self.population)

    @cached_property
    def secured_in_ac(self) -> AcSolutions | None:
        """The same with dispatches that survive the listed outages, if there are any."""
        given = self._outages(self.data)
        some = given is not None and self.in_ac is not None
        return solve_ac(self.data, self.population, contingencies=given) if some else None

    def sections(self) -> tuple[Section, ...]:
        """A map of the released network, and what the models do on it."""
        return grid_sections(self.data, self.public, self.values, self.population, self.solutions)

    def quality(self) -> tuple[str, ...]:
        """See `Release.quality`: with how many models the released network serves."""
        served = int(np.isfinite(self.solutions.cost).sum())
        words = [served_words(served, self.population.size)]
        if self.secured is not None:
            words.append(survived_words(self.secured, self.statement.body["settings"]["outages"]))
        if self.in_ac is not None:
            words += ac_words(self.data, self.in_ac, self.secured_in_ac)
        return *super().quality(), *words

    def loading(self) -> tuple[Snippet, ...]:
        """Code that loads the released network."""
        suffix = network_suffix(self.data)
        return loading_snippets(f"network{suffix}", suffix)


class GridPlan(Plan[GridRelease]):
    """A grid release that was checked and prepared from public data; made by `plan`."""

    def __init__(
        self,
        sealed: Sealed[Any],
        problem: ReleaseProblem,
        options: Method,
        adjacency: Sequence[Adjacency],
        epsilon: Fraction,
        prepared: Prepared,
        declared: Declared,
        left_out: int = 0,
    ) -> None:
        public = problem.public
        clear = public_beside(public.parameters)
        hidden = list(public.parameters)
        if "load" in public.parameters:
            (clear if options.known_total is not None else hidden).append("total load")
        clear += declared.published(public.parameters)
        super().__init__(
            Terms(
                dataset=None,
                epsilon=epsilon,
                adjacency=tuple(adjacency),
                clear=clear,
                private=hidden,
                purpose=f"{', '.join(public.parameters)} of a network, method {options.method}",
            )
        )
        self.problem = problem
        self.options = options
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
        if isinstance(self.options, Paper):
            made.options = Unrestored(**self.options.given)
        return made

    def _before_charge(self) -> None:
        if not self._charged:
            raise InputError(
                "The queries of this plan were changed for a study.",
                remedy="Run it with plan.study(seed), on public data.",
            )

    def asked(self) -> Sequence[Asked]:
        """See `Plan.asked`."""
        prepared, part = self.prepared, self.prepared.epsilons["entries"]
        found = [Asked(query, scale, part) for query, scale in prepared.entries.asked(part)]
        if prepared.costs is not None and isinstance(self.options, Paper):
            each, rounds = prepared.epsilons["round"], self.options.rounds
            costs = prepared.costs.asked(each)
            found += [Asked(query, scale, each, rounds) for query, scale in costs]
        return found

    @cached_property
    def assumed(self) -> dict[str, str]:
        """See `Plan.assumed`."""
        known = self.problem, self.terms.adjacency, self.prepared, self.declared, self.left_out
        return assumed(*known) | self.options.assumed(self.problem)

    @cached_property
    def unusual(self) -> tuple[str, ...]:
        """See `Plan.unusual`."""
        known = self.problem, self.terms.adjacency, self.prepared
        return *super().unusual, *unusual(*known, self.left_out)

    def sketch(self) -> Sketch:
        """See `Plan.sketch`: of topology and reactances."""
        return sketch_network(self.problem.public)

    def _run(self, account: Account, progress: Progress) -> GridRelease:
        task = Task(account, self.sealed, self.problem, self.options, progress)
        outcome = run(task, self.prepared)
        seen = None
        if self._warns:
            progress("looking at what the released limits cost")
            seen = congestion(task, self.prepared, outcome)
        known = facts(task, outcome, self.prepared.decimals, seen, self.declared, self.left_out)
        return GridRelease(task, outcome, known, seen, self.left_out)


def release(
    network: Network,
    population: Population | None = None,
    *,
    epsilon: Exact,
    alpha: Exact | Mapping[str, Any],
    method: str | Method = "certified",
    dataset: str | None = None,
    distinct: str | None = None,
    ledger: Ledger | Path | str | None = None,
    seed: int | None = None,
    progress: Progress = silent,
    **options: Any,
) -> GridRelease:
    """Release parameters of a network with a differential-privacy guarantee: plan, charge, run.

    Parameters
    ----------
    network, population, epsilon, alpha, method, options
        As in `plan`: what is private, the guarantee, and how the release is made.
    dataset
        The ledger's name for the data, which is in the statement; optional once it is known.
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
        If a computation on the private values failed; the charge stays.
    """
    what: dict[str, Any] = {"epsilon": epsilon, "alpha": alpha, "method": method}
    planned = plan(network, population, progress=progress, **what, **options)
    return planned.release(ledger, dataset=dataset, distinct=distinct, seed=seed, progress=progress)


def plan(
    network: Network,
    population: Population | None = None,
    *,
    parameter: str | Sequence[str] = "capacity",
    epsilon: Exact,
    alpha: Exact | Mapping[str, Any],
    method: str | Method = "certified",
    range: RangeLike | Mapping[str, RangeLike] | None = None,
    public_curves: bool = False,
    public_dispatch: bool = False,
    only: str | Mapping[str, str] | None = None,
    unlimited_above: float | None = None,
    limit_ratios: str | Mapping[str, float] | None = None,
    power_factor: float | None = None,
    progress: Progress = silent,
    **options: Any,
) -> GridPlan:
    """Check and prepare a grid release; it opens nothing and charges nothing.

    Parameters
    ----------
    network
        The real network, from `read_case`.
    population
        The models that the released network should serve, public; sampled around the network by
        default. For private parameters it holds multipliers, never values.
    parameter
        What is private: ``"capacity"``, ``"load"``, ``"generator_limit"``, ``"cost"``, or several
        (``"capacity,load"``). Beside loads their reactive power may be: ``"load,reactive_load"``.
    epsilon
        The guarantee: 1, 0.5, "1/3".
    alpha
        How far one entry may move between neighbours, in MW (costs: $/MWh, reactive loads: Mvar) or
        as a share of its own value, ``"20%"``. One for all, or one for each parameter; it may
        differ by public class: ``{"380kV": 100, "others": 20}``, the first that fits counts.
    method
        ``"certified"`` (all epsilon on the data, every model served), ``"paper"`` (the paper's
        algorithm with correct noise) or ``"laplace"`` (noise and clipping only); or its options,
        as in ``Certified(margin=0.1)``.
    range
        The public range of private values, as in ``(1, 5000)``; by parameter if several are
        private. Values outside are clipped.
    public_curves
        Generator limits: some costs are piecewise linear, and breakpoints and slopes are public.
        Say so only if they were not made from the limits, which can be worked out from them.
    public_dispatch
        Capacities: set points of units in the file are public, and stay. If lines are full in this
        dispatch they tell their capacities.
    only
        Protect these elements alone, by public facts: ``"voltage>=220"``, ``"kind=line"``,
        ``"name=A*"``, several with commas if all must hold; by parameter if several are
        private. The rest is published as it is, and the statement says so.
    unlimited_above
        Capacities: ratings from here on (MW) are placeholders, and these lines have no limit.
        Which lines they are becomes public.
    limit_ratios
        Capacities: public ratios of a line's further limits to its capacity, by duration, side or
        rating: ``"1200s=1.1, 600s=1.2"``, ``{"B": 1.1}``. Those without one have ratio 1.
    power_factor
        Loads: the public power factor of all of them. Released loads have the reactive power that
        follows from it; none without it.
    progress
        Called with a few words as each step begins.
    options
        Those of the method, by name: see `Certified`, `Paper` and `Laplace`.

    Raises
    ------
    InputError
        For public input that can't be used.
    """
    if not isinstance(network, Network):
        raise wrong_type("Network", network, remedy="Read one with read_case.")
    parameters = check_parameters(parameter)
    chosen = options_of(METHODS, method, options).check_parameters(parameters)
    total = Budget(epsilon).total
    declarations = unlimited_above, public_curves, power_factor, public_dispatch, limit_ratios
    said = declared(parameters, only, *declarations)
    # Nothing is asked about private values.
    hidden = {name: said.chosen(network, name) for name in parameters}
    refuse(f"Network '{network.name}'", value_problems(network, hidden))
    network = with_linear_costs(network, parameters, said)
    published = chosen.known_total is not None
    if "load" in said.only and published:
        raise InputError(
            "A published total is that of all loads, and some of them are public here.",
            remedy="Leave published_total out, or only.",
        )
    sealed, public = split_parts(
        network, parameters, ranges_of(network, parameters, range), declared=said
    )
    check_writable(public)
    adjacency = neighbours(public, alpha, published=published)
    progress("checking the models")
    models, left_out = check_models(public, population)
    relative = [one.key for one in adjacency if one.unit == RELATIVE]
    steps = {one.key: steps_of(public, one) for one in adjacency if one.classes}
    problem = ReleaseProblem(public, models, chosen.price_for(public, models), relative, steps)
    chosen = chosen.settle(problem)
    check_generation(problem)
    alphas = {name: one.alpha for name, one in zip(public.parameters, adjacency, strict=True)}
    prepared = chosen.prepare(problem, alphas, total)
    return GridPlan(sealed, problem, chosen, adjacency, total, prepared, said, left_out)
