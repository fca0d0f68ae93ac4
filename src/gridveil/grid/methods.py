"""The three methods of a grid release, step by step.

Each takes sealed parameters through mechanisms (`queries`) and restores the answers by
optimisation (`restoring`), which sees noisy and public data only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridveil.errors import GridveilError
from gridveil.grid.parameters import Parameter, Problem
from gridveil.grid.prior import estimate
from gridveil.grid.queries import CostQuery, EntriesQuery, NoisyEntries, Parts
from gridveil.grid.restoring.master import Aim, Total, Unsolved
from gridveil.grid.restoring.matching import Matcher
from gridveil.grid.restoring.oracle import Oracle, take
from gridveil.grid.restoring.points import Matched
from gridveil.grid.restoring.rounding import Rounding, decimals_for
from gridveil.grid.restoring.serving import serve
from gridveil.grid.scaling import unit_for, unit_of
from gridveil.grid.solving.settings import Model
from gridveil.privacy.account import Account
from gridveil.privacy.sealed import Sealed

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

TROUBLE = (ArithmeticError, RuntimeError, ValueError)
"""What numerical trouble with public data looks like."""

FAILED = "rounds whose restoration failed"
"""What the statement calls the number of rounds of the paper's method without a restoration."""


@dataclass(frozen=True)
class Settings:
    """The public settings of a release.

    Parameters
    ----------
    method
        ``"certified"``, ``"paper"`` or ``"laplace"``.
    rounds
        Paper: how many models are matched (T).
    penalty
        Paper: the price of broken limits on released data (psi), $/MWh; None until it is chosen.
    restoration
        Paper: ``"steps"`` or ``"exact"``; ``"none"`` for audits of the noisy answers alone.
    time_limit
        Paper, exact: seconds a restoration.
    margin
        Certified: the share of every capacity kept in reserve for models it never saw.
    total_share
        Certified: the share of an entry's epsilon that buys a sum: the total load, or the cost of
        all units at full output.
    published_total
        Certified: the total load in MW, where it is public.
    catalogue
        Certified: public ratings that capacities have, in MW.
    """

    method: str
    rounds: int
    penalty: float | None
    restoration: str
    time_limit: float
    margin: float
    total_share: Fraction
    published_total: float | None
    catalogue: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Prepared:
    """What a method works out from public data before anything is charged.

    Parameters
    ----------
    entries, costs
        The queries; costs are asked for by the paper's method alone.
    epsilons
        What each query may spend.
    unit
        What restoration counts power in (MW), see `scaling`.
    decimals
        How many decimals released values have, by parameter.
    """

    entries: EntriesQuery
    costs: CostQuery | None
    epsilons: Mapping[str, Fraction]
    unit: float
    decimals: Mapping[str, int]

    def check(self) -> None:
        """Raise `InputError` now where a query could not be asked later."""
        self.entries.check(self.epsilons["entries"])
        if self.costs is not None:
            self.costs.check(self.epsilons["round"])


@dataclass(frozen=True, eq=False)
class Task:
    """Everything that a method works on; only `sealed` holds private data."""

    account: Account
    sealed: Sealed[Parts]
    problem: Problem
    settings: Settings
    progress: Callable[[str], None]


@dataclass(frozen=True, eq=False)
class Outcome:
    """Released values, how they were restored, and what the report should say about it."""

    values: Floats
    solver: str | None = None
    gap: float | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)


def prepare(
    problem: Problem, alphas: Mapping[str, Fraction], epsilon: Fraction, settings: Settings
) -> Prepared:
    """Choose the queries and their epsilons from public data, and check them."""
    entries = EntriesQuery(
        problem,
        alphas,
        total_share=settings.total_share,
        published_total=settings.published_total is not None,
    )
    unit = _unit(problem, alphas)
    costs, epsilons = None, {"entries": epsilon}
    if settings.method == "paper":
        costs = CostQuery(problem, alphas, unit=unit)
        epsilons = {"entries": epsilon / 2, "round": epsilon / (4 * settings.rounds)}
    # Rounding must lose next to nothing beside the noise that is drawn.
    scale, parts = entries.scale(epsilons["entries"]), problem.public.parts
    decimals = {name: decimals_for(float(scale[part].min())) for name, part in parts.items()}
    prepared = Prepared(entries, costs, epsilons, unit, decimals)
    prepared.check()
    return prepared


def _unit(problem: Problem, alphas: Mapping[str, Fraction]) -> float:
    """What restoration counts power in, by public numbers."""
    powers = [alphas[kind.name] for kind in problem.kinds if kind.unit == "MW"]
    if powers:
        return unit_for(min(powers))
    return unit_of(problem.public.with_values(np.ones(problem.public.entries)))


def run(task: Task, prepared: Prepared) -> Outcome:
    """Run the method on the sealed parameters.

    Private computations fail inside mechanisms, which abort. Any other failure is trouble with
    noisy and public data, after the epsilon was spent: noisy values that serve fewer models are
    better than none.
    """
    # Step 1 of every method: noise on every entry (certified: and on a sum of loads or costs).
    task.progress("noise on every entry")
    noisy = prepared.entries.ask(task.account, task.sealed, prepared.epsilons["entries"])
    return _worked(_RUN[task.settings.method], task, prepared, noisy)


def restore(task: Task, prepared: Prepared, noisy: NoisyEntries) -> Outcome:
    """What the method makes of noisy entries alone; the paper's does not go on to ask for costs."""
    return _worked(
        _certified if task.settings.method == "certified" else _laplace, task, prepared, noisy
    )


def _worked(
    method: Callable[[Task, Prepared, NoisyEntries], Outcome],
    task: Task,
    prepared: Prepared,
    noisy: NoisyEntries,
) -> Outcome:
    """Go on from noisy entries, with powers counted in a unit that suits the solvers."""
    units = task.problem.units(prepared.unit)
    summed = task.problem.summed
    own = 1.0 if summed is None else float(units[task.problem.public.parts[summed.name]][0])
    noisy = noisy.counted(units, own)
    inner = _in_units(task, prepared.unit)
    try:
        found = method(inner, prepared, noisy)
    except Unsolved as trouble:
        found = _failed(inner, prepared, noisy.values, trouble.what)
    except GridveilError:
        raise
    except TROUBLE as trouble:
        found = _failed(inner, prepared, noisy.values, type(trouble).__name__)
    return replace(found, values=found.values * units)


def _in_units(task: Task, unit: float) -> Task:
    """The task with powers counted in a unit: what is public of it."""
    if unit == 1.0:
        return task
    settings = task.settings
    published = settings.published_total
    inner = replace(
        settings,
        published_total=None if published is None else published / unit,
        catalogue=tuple(rating / unit for rating in settings.catalogue),
    )
    return replace(task, problem=task.problem.in_units(unit), settings=inner)


def _failed(task: Task, prepared: Prepared, values: Floats, why: str) -> Outcome:
    shown = _clipped(values, task.problem, prepared)
    return Outcome(shown, "none", None, {"restoration failed": why})


def _laplace(task: Task, prepared: Prepared, noisy: NoisyEntries) -> Outcome:
    """Noise on every entry, then clipping."""
    return Outcome(_clipped(noisy.values, task.problem, prepared))


def _certified(task: Task, prepared: Prepared, noisy: NoisyEntries) -> Outcome:
    """All epsilon on the entries; what the models need is public, and free."""
    # Step 2: what the entries have in common, learned from the noisy ones.
    task.progress("learning what the entries have in common")
    aim = _aim(task, noisy)
    # Step 3: the nearest values that serve every model, and models like them.
    try:
        served = serve(
            aim,
            task.problem,
            margin=task.settings.margin,
            decimals=_decimals(task.problem, prepared),
            unit=task.problem.units(prepared.unit),
            progress=task.progress,
        )
    except Unsolved as trouble:
        # What was learned in step 2 is better than the noisy entries.
        return _failed(task, prepared, aim.centre, trouble.what)
    return Outcome(
        served.values,
        "cutting planes with Clarabel and HiGHS",
        0.0,
        {
            "models that are not served": len(served.unserved),
            "models served without the margin": served.without_margin,
            "rounds of cuts": served.rounds,
            "cuts": served.cuts,
        },
    )


def _paper(task: Task, prepared: Prepared, noisy: NoisyEntries) -> Outcome:
    """Algorithm 2 of the paper, with Lipschitz costs and noise at the scale that they need."""
    assert prepared.costs is not None
    problem, settings = task.problem, task.settings
    epsilon = prepared.epsilons["round"]
    values = np.clip(noisy.values, problem.public.low, problem.public.high)
    scores = Oracle(problem, problem.models, kinds=slack_of(problem), price=settings.penalty)
    matcher = Matcher(problem, problem.public.low, problem.public.high)
    chosen: list[int] = []
    goals: list[float] = []
    found: Matched | None = None
    failed = 0
    for step in range(1, settings.rounds + 1):
        task.progress(f"round {step} of {settings.rounds}")
        # Step 2: a model of the worst cost.
        costs = scores.solve(values, problem.models, ("cost",)).cost * prepared.unit
        chosen.append(prepared.costs.worst(task.account, task.sealed, costs, epsilon))
        # Step 3: the cost of the model just chosen.
        model = take(problem.models, np.array(chosen[-1:]))
        cost = prepared.costs.cost(task.account, task.sealed, model, epsilon)
        goals.append(cost / prepared.unit)
        # Step 4: restoration; where it fails the next round goes on from the values as they are.
        try:
            found = _match(task, matcher, chosen, goals, values)
            values = found.values
        except (Unsolved, *TROUBLE):
            failed += 1
    facts: dict[str, Any] = {"models that were matched, in order": chosen}
    if failed:
        facts[FAILED] = failed
    if found is None:
        return Outcome(_clipped(values, problem, prepared), "none", None, facts)
    return Outcome(_clipped(values, problem, prepared), found.solver, found.gap, facts)


def _match(
    task: Task, matcher: Matcher, chosen: list[int], goals: list[float], start: Floats
) -> Matched:
    if task.settings.restoration == "none":
        return Matched(start, 0.0, 0.0)
    problem = task.problem
    models = take(problem.models, np.array(chosen, dtype=np.int64))
    found = matcher.match(models, np.array(goals), start)
    if task.settings.restoration == "exact":
        from gridveil.grid.restoring.exact import restore_exactly

        try:
            proved = restore_exactly(
                problem.public.with_values(start),
                models,
                goals,
                start,
                problem.public.low,
                problem.public.high,
                warm=found.values,
                time_limit=task.settings.time_limit,
            )
        except GridveilError:
            # The steps found values too, with a bound of their own.
            return found
        if proved.objective <= found.objective:
            bound = max(proved.bound, found.bound)
            return Matched(proved.values, proved.objective, bound, proved.solver)
    return found


def _aim(task: Task, noisy: NoisyEntries) -> Aim:
    """Estimates and their certainty, one kind of entry at a time; and the sum that is known."""
    public, settings = task.problem.public, task.settings
    mean, variance = np.empty(public.entries), np.empty(public.entries)
    for kind, places in _alike(task.problem):
        if not kind.alike:
            mean[places] = np.clip(noisy.values[places], public.low[places], public.high[places])
            variance[places] = 2 * noisy.scale[places] ** 2
            continue
        found = estimate(
            noisy.values[places],
            float(noisy.scale[places[0]]),
            float(public.low[places[0]]),
            float(public.high[places[0]]),
            _catalogue(task, places),
        )
        mean[places], variance[places] = found.mean, found.variance
    totals: tuple[Total, ...] = ()
    summed = task.problem.summed
    if summed is not None:
        row = np.zeros(public.entries)
        row[public.parts[summed.name]] = summed.weights(public)
        if settings.published_total is not None:
            totals = (Total(row, settings.published_total, None),)
        elif noisy.total is not None:
            totals = (Total(row, noisy.total, 1 / (2 * noisy.total_scale**2)),)
    return Aim(mean, 1 / variance, public.low, public.high, totals)


def _catalogue(task: Task, places: Ints) -> tuple[float, ...]:
    capacities = task.problem.public.parts.get("capacity", slice(0, 0))
    return task.settings.catalogue if capacities.start <= places[0] < capacities.stop else ()


def _alike(problem: Problem) -> list[tuple[Parameter, Ints]]:
    """Places of entries that may have something in common: of one column and one sign."""
    groups: list[tuple[Parameter, Ints]] = []
    start = 0
    for kind in problem.kinds:
        for column in kind.columns:
            count = int(problem.public.support[column].sum())
            places = np.arange(start, start + count)
            signs = problem.public.signs[places]
            groups += [(kind, places[signs == sign]) for sign in (-1.0, 1.0)]
            start += count
    return [(kind, places) for kind, places in groups if len(places)]


def slack_of(problem: Problem) -> tuple[Model, ...]:
    """What models may buy on released data, so that each has a cost there (the paper's C^R).

    Lines, as in the paper; loads too, where private values decide whether generation is enough.
    """
    adequate = not {"load", "generator_limit"} & set(problem.public.parameters)
    return ("relaxed",) if adequate else ("relaxed", "shed")


def _decimals(problem: Problem, prepared: Prepared) -> Ints:
    """How many decimals every released entry has."""
    found = np.zeros(problem.public.entries, dtype=np.int64)
    for name, part in problem.public.parts.items():
        found[part] = prepared.decimals[name]
    return found


def _clipped(values: Floats, problem: Problem, prepared: Prepared) -> Floats:
    rounded = Rounding(_decimals(problem, prepared), problem.units(prepared.unit))(values)
    return np.clip(rounded, problem.public.low, problem.public.high)


_RUN = {"laplace": _laplace, "certified": _certified, "paper": _paper}
