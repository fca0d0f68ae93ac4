"""What the methods of a grid release share: base class, task, prepared queries, outcome and steps.

A method is the class of its options, with its queries and its steps. It takes sealed parameters
through mechanisms (`entries_query`, `cost_query`) and restores the answers by optimisation
(`restoration`), which sees noisy and public data only. `in_units` calls back into the steps of the
method that it is given.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from gridveil.errors import GridveilError
from gridveil.grid.methods.cost_query import CostQuery
from gridveil.grid.methods.entries_query import EntriesQuery, NoisyEntries, Parts
from gridveil.grid.model.covariates import Covariates, covariates
from gridveil.grid.model.network import Network, unit_for, unit_of
from gridveil.grid.model.parameters import Parameter
from gridveil.grid.model.population import Population
from gridveil.grid.model.public_network import PublicNetwork
from gridveil.grid.model.release_problem import ReleaseProblem, highest_cost
from gridveil.grid.opf.formulation import Model
from gridveil.grid.opf.outages import Contingencies
from gridveil.grid.restoration.covariate_prior import learn
from gridveil.grid.restoration.learned_prior import Estimate
from gridveil.grid.restoration.likelihood_cells import Noisy
from gridveil.grid.restoration.master import Unsolved
from gridveil.grid.restoration.rounding import Rounding, decimals_for
from gridveil.privacy.account import Account
from gridveil.privacy.sealed import Sealed
from gridveil.release.options import Options

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

TROUBLE = (ArithmeticError, RuntimeError, ValueError)
"""The exceptions that numerical trouble with public data raises."""

PENALTY = 3000.0
"""The least price of broken limits on released data, $/MWh, unless the owner gives another."""


@dataclass(frozen=True, eq=False)
class Prepared:
    """What a method prepares from public data before anything is charged.

    Parameters
    ----------
    entries, costs
        The queries; only the paper's method asks for costs.
    epsilons
        The epsilon of each query.
    unit
        The unit of power in restoration (MW), see `scaled`.
    decimals
        The number of decimals of released values, by parameter.
    covariates
        The public covariates of the entries of each parameter.
    """

    entries: EntriesQuery
    costs: CostQuery | None
    epsilons: Mapping[str, Fraction]
    unit: float
    decimals: Mapping[str, int]
    covariates: Mapping[str, Covariates]

    def check(self) -> None:
        """Raise `InputError` now if a query could not be asked later."""
        self.entries.check(self.epsilons["entries"])
        if self.costs is not None:
            self.costs.check(self.epsilons["round"])


@dataclass(frozen=True, eq=False)
class Outcome:
    """Released values, how they were restored, and facts about that for the statement.

    ``deviations`` are error bars of the values; None stands for those of the noise.
    """

    values: Floats
    solver: str | None = None
    gap: float | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    deviations: Floats | None = None


@dataclass(frozen=True)
class Method(Options, ABC):
    """Base class of the methods: their options, their queries and their steps."""

    @property
    def known_total(self) -> float | None:
        """The total load in MW, if it is published."""
        return None

    def price_for(self, public: PublicNetwork, models: Population) -> Fraction:
        """Return the price that makes costs Lipschitz: the highest public cost."""
        return Fraction(max(highest_cost(public, models), 1.0))

    def penalty_for(self, problem: ReleaseProblem) -> float:
        """Return the price of broken limits on released data, $/MWh, well above all costs."""
        return max(PENALTY, 10 * float(problem.price))

    def outages(self, network: Network) -> Contingencies | None:
        """Return the outages that a released network's models must survive, if any."""
        return None

    def assumed(self, problem: ReleaseProblem) -> dict[str, str]:
        """Return what this method assumes in addition to every release; see `Plan.assumed`."""
        return {}

    def check_steps(self, relative: Collection[str]) -> None:
        """Raise `InputError` if steps relative to these parameters can't be used by the method."""
        return

    def settle(self, problem: ReleaseProblem) -> Self:
        """Return these options with the defaults that depend on public data filled in.

        Raises
        ------
        InputError
            If the options can't be used for this problem.
        """
        return self

    @abstractmethod
    def prepare(
        self, problem: ReleaseProblem, alphas: Mapping[str, Fraction], epsilon: Fraction
    ) -> Prepared:
        """Choose the queries and their epsilons from public data, and check them."""

    @abstractmethod
    def steps(self, task: Task, prepared: Prepared, noisy: NoisyEntries) -> Outcome:
        """Turn noisy entries into released values."""

    def steps_without_asking(self, task: Task, prepared: Prepared, noisy: NoisyEntries) -> Outcome:
        """Turn noisy entries into released values without any further query."""
        return self.steps(task, prepared, noisy)

    def imagines_roughly(self, problem: ReleaseProblem) -> bool:
        """Say whether what is imagined may be much nearer to the real values than a release is."""
        return False

    def imagine(
        self,
        task: Task,
        prepared: Prepared,
        values: Floats,
        deviations: Floats,
        draw: Callable[[Floats], Floats],
    ) -> Floats:
        """Simulate what this method might have released if `values` were the real values.

        Parameters
        ----------
        task, prepared
            Those of a release; the sealed values are not opened.
        values
            The values to treat as real: those of a network whose lines limit nothing.
        deviations
            Error bars of released values.
        draw
            Draws noise of given scales.
        """
        scale = prepared.entries.scale(prepared.epsilons["entries"])
        noisy = prepared.entries.noisy(values, scale, draw)
        return in_units(self.steps_without_asking, task, prepared, noisy).values


@dataclass(frozen=True, eq=False)
class Task:
    """Everything that a method works on; only `sealed` holds private data."""

    account: Account
    sealed: Sealed[Parts]
    problem: ReleaseProblem
    options: Method
    progress: Callable[[str], None]


def prepared_for(
    problem: ReleaseProblem,
    alphas: Mapping[str, Fraction],
    entries: EntriesQuery,
    epsilons: Mapping[str, Fraction],
    *,
    with_costs: bool = False,
) -> Prepared:
    """Prepare the queries of a method, and check that they can all be asked."""
    unit = _unit(problem, alphas)
    costs = CostQuery(problem, alphas, unit=unit) if with_costs else None
    # Rounding must lose almost nothing compared to the noise.
    scale, parts = entries.scale(epsilons["entries"]), problem.public.parts
    for name in problem.relative:
        scale[parts[name]] *= problem.public.low[parts[name]]
    decimals = {name: decimals_for(float(scale[part].min())) for name, part in parts.items()}
    known = {name: covariates(problem.public, name) for name in parts}
    prepared = Prepared(entries, costs, epsilons, unit, decimals, known)
    prepared.check()
    return prepared


def _unit(problem: ReleaseProblem, alphas: Mapping[str, Fraction]) -> float:
    """Choose the unit of power in restoration from public numbers."""
    amounts = (kind for kind in problem.kinds if kind.name not in problem.relative)
    powers = [alphas[kind.name] for kind in amounts if kind.is_power]
    if powers:
        return unit_for(min(powers))
    return unit_of(problem.public.with_values(np.ones(problem.public.entries)))


def run(task: Task, prepared: Prepared) -> Outcome:
    """Run the method on the sealed parameters.

    Private computations fail inside mechanisms, which abort. Any other failure is trouble with
    noisy and public data after the epsilon was spent: then noisy values, which serve fewer models,
    are better than none.
    """
    # Step 1 of every method: noise on every entry (in "certified" also on a sum).
    task.progress("noise on every entry")
    noisy = prepared.entries.ask(task.account, task.sealed, prepared.epsilons["entries"])
    return in_units(task.options.steps, task, prepared, noisy)


def in_units(
    steps: Callable[[Task, Prepared, NoisyEntries], Outcome],
    task: Task,
    prepared: Prepared,
    noisy: NoisyEntries,
) -> Outcome:
    """Run a method's steps on noisy entries, with powers in a unit that suits the solvers."""
    units = task.problem.units(prepared.unit)
    summed = task.problem.summed
    own = 1.0 if summed is None else float(units[task.problem.public.parts[summed.name]][0])
    noisy = noisy.counted(units, own)
    if prepared.unit != 1.0:
        task = replace(task, problem=task.problem.in_units(prepared.unit))
    try:
        found = steps(task, prepared, noisy)
    except Unsolved as trouble:
        found = failed(task, prepared, noisy.amounts, trouble.what)
    except GridveilError:
        raise
    except TROUBLE as trouble:
        found = failed(task, prepared, noisy.amounts, type(trouble).__name__)
    known = noisy.deviations if found.deviations is None else found.deviations
    return replace(found, values=found.values * units, deviations=known * units)


def estimates(
    problem: ReleaseProblem, prepared: Prepared, noisy: NoisyEntries, catalogue: Sequence[float]
) -> Estimate:
    """Estimate mean and variance of every entry, one group of similar entries at a time.

    Parameters
    ----------
    problem, prepared
        What is released, in the units of `prepared`.
    noisy
        The noisy entries, in the same units.
    catalogue
        For capacities: the only possible ratings in MW; empty if any rating is possible.
    """
    public = problem.public
    mean, variance, doubt = (np.empty(public.entries) for _ in range(3))
    for kind, places in _alike(problem):
        if not kind.alike:
            mean[places] = np.clip(noisy.values, public.low, public.high)[places]
            variance[places] = doubt[places] = 2 * noisy.scale[places] ** 2
            continue
        known = prepared.covariates[kind.name].of(places - public.parts[kind.name].start)
        ratings = catalogue if kind.name == "capacity" else ()
        found = _estimate(public, places, noisy, known, [one / prepared.unit for one in ratings])
        mean[places], variance[places], doubt[places] = found.mean, found.variance, found.doubt
    return Estimate(mean, variance, doubt)


def _estimate(
    public: PublicNetwork,
    places: Ints,
    noisy: NoisyEntries,
    known: Covariates,
    catalogue: Sequence[float],
) -> Estimate:
    """Estimate mean and variance of the entries of one column and one sign."""
    first = places[0]
    sign = float(public.signs[first])
    low, high = sorted((sign * float(public.low[first]), sign * float(public.high[first])))
    logs = bool(noisy.logarithms[first])
    sizes = Noisy(sign * noisy.values[places], noisy.scale[places], low, high, logs)
    found = learn(sizes, known, catalogue).estimate
    return Estimate(sign * found.mean, found.variance, found.doubt)


def _alike(problem: ReleaseProblem) -> list[tuple[Parameter, Ints]]:
    """Group the entries by column and sign: those of a group may have something in common."""
    groups: list[tuple[Parameter, Any]] = []
    start = 0
    for kind in problem.kinds:
        for column in kind.columns:
            count = int(problem.public.support[column].sum())
            places = np.arange(start, start + count)
            signs = problem.public.signs[places]
            groups += [(kind, places[signs == sign]) for sign in (-1.0, 1.0)]
            start += count
    return [(kind, places) for kind, places in groups if len(places)]


def failed(task: Task, prepared: Prepared, values: Floats, why: str) -> Outcome:
    """Make the outcome for values that could not be restored: clipped and rounded."""
    shown = clipped(values, task.problem, prepared)
    return Outcome(shown, "none", None, {"restoration_failed": why})


def slack_of(problem: ReleaseProblem) -> tuple[Model, ...]:
    """Choose the slack that gives every model a cost on released data (the paper's C^R).

    Lines, as in the paper; loads too if private values decide whether there is enough generation.
    """
    adequate = not {"load", "generator_limit"} & set(problem.public.parameters)
    return ("relaxed",) if adequate else ("relaxed", "shed")


def decimals_of(problem: ReleaseProblem, prepared: Prepared) -> Ints:
    """Return the number of decimals of every released entry."""
    found = np.zeros(problem.public.entries, dtype=np.int64)
    for name, part in problem.public.parts.items():
        found[part] = prepared.decimals[name]
    return found


def clipped(values: Floats, problem: ReleaseProblem, prepared: Prepared) -> Floats:
    """Round values, clip them to their public range, and keep `p_min` below `p_max`."""
    ordered = in_order(values, problem.public)
    rounded = Rounding(decimals_of(problem, prepared), problem.units(prepared.unit))(ordered)
    return np.clip(rounded, problem.public.low, problem.public.high)


def in_order(values: Floats, public: PublicNetwork) -> Floats:
    """Replace noisy limits of a unit that cross (`p_min > p_max`) by their mean.

    Readers refuse units whose limits cross. This reads noisy values and the public support only, so
    it costs no epsilon. Limits can cross only if both are private: one that is not private is 0,
    and the other's range ends there.
    """
    if "generator_limit" not in public.parameters:
        return values
    start = public.parts["generator_limit"].start
    low, high = public.support["p_min"], public.support["p_max"]
    lower = start + np.cumsum(low)[low & high] - 1
    upper = start + int(low.sum()) + np.cumsum(high)[low & high] - 1
    crossed = values[lower] > values[upper]
    mean = (values[lower] + values[upper])[crossed] / 2
    ordered = values.copy()
    ordered[lower[crossed]] = ordered[upper[crossed]] = mean
    return ordered
