"""The paper's method: Algorithm 2, with Lipschitz costs and noise at the scale that they need."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np

from gridveil.errors import GridveilError, InputError
from gridveil.grid.methods.base import (
    TROUBLE,
    Floats,
    Method,
    Outcome,
    Prepared,
    Task,
    clipped,
    prepared_for,
    slack_of,
)
from gridveil.grid.methods.entries_query import EntriesQuery, NoisyEntries
from gridveil.grid.model.population import Population, take
from gridveil.grid.model.public_network import PublicNetwork
from gridveil.grid.model.release_problem import ReleaseProblem
from gridveil.grid.restoration.master import Unsolved
from gridveil.grid.restoration.oracle import Oracle
from gridveil.grid.restoration.paper_steps import Matcher
from gridveil.grid.restoration.paper_task import Matched
from gridveil.privacy.exact_numbers import Exact, exact
from gridveil.release.options import OneOf, Within, no_meaning, option

FAILED = "rounds_failed"
"""The statement's key for the number of rounds whose restoration failed."""

_TIME_LIMIT = 60.0


def _price(name: str, given: Exact) -> float:
    # As the float that solvers take, so that the Lipschitz constant is that of the same price.
    return float(exact(given, name=name, unit="$/MWh"))


@dataclass(frozen=True)
class Paper(Method):
    """The paper's algorithm with correct noise: ask for costs of models, and match them.

    Parameters
    ----------
    rounds
        How many models are matched (T).
    price
        The price that makes costs Lipschitz (L), $/MWh; the highest public cost by default.
    penalty
        The price of broken limits on released data (psi), $/MWh; 3000 by default, or ten times
        the price if that is more.
    restoration
        ``"steps"`` (convex-concave) or ``"exact"`` (branch and bound, capacities only).
    time_limit
        Exact: seconds for each restoration, 60 by default. It sees no private data.
    """

    method: ClassVar[str] = "paper"

    rounds: int = option(
        10,
        help="models that are matched (T)",
        check=Within(1, 1000, whole=True),
        read=int,
        example="10",
    )
    price: float | None = option(
        None,
        help="price that bounds a cost's move (L), $/MWh",
        check=_price,
        read=str,
        example="100",
        default="the highest public cost",
    )
    penalty: float | None = option(
        None,
        help="price of broken limits (psi), $/MWh",
        check=Within(0.0, 1e9),
        example="3000",
        default="3000, or ten times the price if that is more",
    )
    restoration: str = option(
        "steps",
        help="steps or exact",
        check=OneOf(("steps", "exact")),
        read=str,
        example="steps",
    )
    time_limit: float | None = option(
        None,
        help="exact: seconds for each restoration",
        check=Within(0.0, 1e6),
        example="60",
        default="60",
    )

    def _check_together(self) -> None:
        if self.time_limit is not None and self.restoration != "exact":
            raise no_meaning("time_limit", "restoration steps", ["restoration exact"])

    def check_parameters(self, parameters: tuple[str, ...]) -> Self:
        """Return these options, or `InputError` if restoration can't handle these parameters."""
        if self.restoration == "exact" and parameters != ("capacity",):
            raise InputError(
                'restoration="exact" is for capacities alone.',
                remedy='Use parameter="capacity", or leave restoration out.',
            )
        if "cost" in parameters and len(parameters) > 1:
            raise InputError(
                "The paper's method can't release costs together with other parameters: its "
                "restoration needs costs that are convex or concave in what is private.",
                remedy='Use method="certified".',
            )
        return super().check_parameters(parameters)

    def price_for(self, public: PublicNetwork, models: Population) -> Fraction:
        """Return the owner's price, or the highest public cost."""
        return super().price_for(public, models) if self.price is None else Fraction(self.price)

    def penalty_for(self, problem: ReleaseProblem) -> float:
        """Return the owner's penalty, or the default."""
        return super().penalty_for(problem) if self.penalty is None else self.penalty

    def check_steps(self, relative: Collection[str]) -> None:
        """Raise `InputError` if a parameter has relative steps."""
        if relative:
            raise InputError(
                "The paper's method asks for costs, which move by the price times a share of the "
                "largest value in the range if alpha is a share of each value: noise would drown "
                "them.",
                remedy='Give alpha in MW, or use method="certified".',
            )

    def settle(self, problem: ReleaseProblem) -> Self:
        """Check the options for this problem, and fill in price, penalty and time limit."""
        self.check_steps(problem.relative)
        price, penalty = float(problem.price), self.penalty_for(problem)
        if not penalty > price:
            raise InputError(
                f"penalty is {penalty:g} $/MWh, and must be above the price of {price:g}.",
                remedy="Give more, or leave it out.",
            )
        if self.restoration != "exact":
            return replace(self, price=price, penalty=penalty)
        units: Any = problem.public.generators
        if problem.models.cost is None and units.quadratic[units.in_service].any():
            raise InputError(
                'restoration="exact" needs linear costs, and some are quadratic.',
                remedy='Give a population with costs of its own, or use restoration="steps".',
            )
        limit = _TIME_LIMIT if self.time_limit is None else self.time_limit
        return replace(self, price=price, penalty=penalty, time_limit=limit)

    def prepare(
        self, problem: ReleaseProblem, alphas: Mapping[str, Fraction], epsilon: Fraction
    ) -> Prepared:
        """Spend half of epsilon on the entries, the rest on two cost queries in each round."""
        epsilons = {"entries": epsilon / 2, "round": epsilon / (4 * self.rounds)}
        entries = EntriesQuery(problem, alphas)
        return prepared_for(problem, alphas, entries, epsilons, with_costs=True)

    def steps(self, task: Task, prepared: Prepared, noisy: NoisyEntries) -> Outcome:
        """Match the cost of one more model in each round, chosen as the worst."""
        assert prepared.costs is not None
        problem = task.problem
        epsilon = prepared.epsilons["round"]
        values = np.clip(noisy.values, problem.public.low, problem.public.high)
        scores = Oracle(problem, problem.models, kinds=slack_of(problem), price=self.penalty)
        matcher = Matcher(problem, problem.public.low, problem.public.high)
        chosen: list[int] = []
        goals: list[float] = []
        found: Matched | None = None
        failures = 0
        for step in range(1, self.rounds + 1):
            task.progress(f"round {step} of {self.rounds}")
            # Step 2: choose a model with the worst cost.
            costs = scores.solve(values, problem.models, ("cost",)).cost * prepared.unit
            chosen.append(prepared.costs.worst(task.account, task.sealed, costs, epsilon))
            # Step 3: ask for the cost of the model just chosen.
            model = take(problem.models, np.array(chosen[-1:]))
            cost = prepared.costs.cost(task.account, task.sealed, model, epsilon)
            goals.append(cost / prepared.unit)
            # Step 4: restore; if that fails, the next round starts from the values unchanged.
            try:
                found = self._match(problem, matcher, chosen, goals, values)
                values = found.values
            except (Unsolved, *TROUBLE):
                failures += 1
        facts: dict[str, Any] = {"models_matched": chosen}
        if failures:
            facts[FAILED] = failures
        shown = clipped(values, problem, prepared)
        if found is None:
            return Outcome(shown, "none", None, facts)
        return Outcome(shown, found.solver, found.gap, facts)

    def steps_without_asking(self, task: Task, prepared: Prepared, noisy: NoisyEntries) -> Outcome:
        """Clip the noisy entries; the rounds are left out, since they would ask for costs."""
        return Outcome(clipped(noisy.values, task.problem, prepared))

    def _match(
        self,
        problem: ReleaseProblem,
        matcher: Matcher,
        chosen: list[int],
        goals: list[float],
        start: Floats,
    ) -> Matched:
        models = take(problem.models, np.array(chosen, dtype=np.int64))
        found = matcher.match(models, np.array(goals), start)
        if self.restoration == "steps":
            return found
        from gridveil.grid.restoration.paper_exact import restore_exactly

        assert self.time_limit is not None
        try:
            proved = restore_exactly(
                problem.public.with_values(start),
                models,
                goals,
                start,
                problem.public.low,
                problem.public.high,
                warm=found.values,
                time_limit=self.time_limit,
            )
        except GridveilError:
            # The convex-concave steps found values too, with their own bound.
            return found
        if proved.objective <= found.objective:
            bound = max(proved.bound, found.bound)
            return Matched(proved.values, proved.objective, bound, proved.solver)
        return found


class Unrestored(Paper):
    """The paper's method without restoration between its rounds, for audits of its answers."""

    def _match(
        self,
        problem: ReleaseProblem,
        matcher: Matcher,
        chosen: list[int],
        goals: list[float],
        start: Floats,
    ) -> Matched:
        return Matched(start, 0.0, 0.0)
