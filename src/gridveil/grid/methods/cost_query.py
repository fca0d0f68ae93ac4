"""The query that a release by the paper's method asks for costs, with its sensitivity.

See `parameters` for why the cost of a model moves by at most its steepness times alpha, and
docs/maths/grid-capacity.md, "In floating point", for the tolerance of a computed cost with its
proof. `CostQuery` computes the bound of that proof for every cost, and aborts the release if one is
above the public tolerance.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from gridveil.errors import InputError
from gridveil.grid.methods.entries_query import Floats, Parts
from gridveil.grid.model.population import Population
from gridveil.grid.model.release_problem import ReleaseProblem, highest_cost
from gridveil.grid.opf.engine import Status, solve_population
from gridveil.grid.opf.fallbacks import VIOLATION
from gridveil.privacy.account import Account
from gridveil.privacy.mechanisms import laplace_scalar, noisy_max
from gridveil.privacy.sealed import Range, Sealed
from gridveil.privacy.sensitivity import Sensitivity, calibrate_laplace, calibrate_noisy_max

# Relative gap up to which a private cost is certified.
GAP = 1e-9
# A MW of room in a limit saves less than this many times the highest cost, on average.
_ROOM = 30


class CostQuery:
    """The Lipschitz costs of a population on the real network, asked through mechanisms only.

    Parameters
    ----------
    problem
        What is released; its price makes the costs Lipschitz.
    alphas
        How far one entry of each parameter may move.
    unit
        The engine's unit of power (MW). It must be public: the engine's tolerances are in it.
    """

    def __init__(
        self, problem: ReleaseProblem, alphas: Mapping[str, Fraction], *, unit: float = 1.0
    ) -> None:
        problem.check_cost_query()
        self._problem = problem
        self._settings: dict[str, Any] = {
            "model": problem.slack,
            "slack_price": None if problem.slack == ("strict",) else float(problem.price),
            "unit": unit,
        }
        self._miss = VIOLATION * unit
        self._lowest, self._highest = self._range()
        most = {name: max(problem.step_of_each(name, one)) for name, one in alphas.items()}
        steepest = max(problem.kinds, key=lambda kind: problem.steepness(kind) * most[kind.name])
        # The certified gap is relative to the cost, which lies in the public range.
        range = len(problem.public.branches) + len(problem.public.buses)
        highest = max(float(problem.price), highest_cost(problem.public, problem.models), 1.0)
        room = self._miss * _ROOM * highest * range
        self._off = GAP * max(unit, abs(self._lowest), abs(self._highest)) + room
        self.sensitivity = Sensitivity(
            problem.steepness(steepest) * most[steepest.name],
            steepest.why,
            tolerance=Fraction(self._off),
        )
        self.range = Range(self._lowest, self._highest)
        width = self._highest - self._lowest
        self._scores = Range(-width, width)

    def _range(self) -> tuple[float, float]:
        """Compute a public range of all models' costs: costs at one point, and how far they move.

        Whether a model has a cost at all does not depend on private values either.
        """
        problem, public = self._problem, self._problem.public
        # Any point of the box will do; wide lines and small loads, limits and costs are easy.
        point = np.clip(0.0, public.low, public.high)
        if "capacity" in public.parts:
            point[public.parts["capacity"]] = public.high[public.parts["capacity"]]
        known = solve_population(
            public.with_values(point), problem.models, **self._settings, tolerance=GAP
        )
        bad = np.flatnonzero(~np.isfinite(known.cost) | ~np.isfinite(known.bound))
        if len(bad):
            raise InputError(
                f"{len(bad):,} models of the population have no cost on this network, whatever the "
                f"private values are; the first is model {bad[0]}.",
                remedy="Leave these models out, or give a higher price.",
            )
        width = sum(
            float(problem.steepness(kind)) * float((public.high - public.low)[part].sum())
            for kind, part in ((kind, public.parts[kind.name]) for kind in problem.kinds)
        )
        # The true cost lies between the proved bound and the cost found.
        return float(known.bound.min()) - width - 1, float(known.cost.max()) + width + 1

    def check(self, epsilon: Fraction) -> None:
        """Raise `InputError` if a cost, or the choice of a model, can't be asked for."""
        calibrate_laplace(self.sensitivity, epsilon, self.range)
        calibrate_noisy_max(
            self.sensitivity, epsilon, self._scores, monotone=self._problem.monotone
        )

    def asked(self, epsilon: Fraction) -> list[tuple[str, str]]:
        """Describe what is asked and the noise's scale, for people; opens nothing."""
        monotone = self._problem.monotone
        choice = calibrate_noisy_max(self.sensitivity, epsilon, self._scores, monotone=monotone)
        cost = calibrate_laplace(self.sensitivity, epsilon, self.range)
        return [
            ("the model of the worst cost", f"{choice.scale_in_units:.4g} $/h"),
            ("the cost of that model", f"{cost.scale_in_units:.4g} $/h"),
        ]

    def worst(
        self, account: Account, sealed: Sealed[Parts], released: Floats, epsilon: Fraction
    ) -> int:
        """Choose a model whose cost on released data is far above that on the real network.

        The score is signed: only the real cost moves it, and if all costs of a neighbour move the
        same way, so do all scores.
        """
        # A released cost outside the public range of real costs would only widen the scores. A
        # model that could not be solved counts as not served.
        known = np.where(np.isnan(released), np.inf, released)
        shown = np.clip(known, self._lowest, self._highest)
        return noisy_max(
            account,
            sealed,
            query=lambda parts: shown - self._costs(parts, self._problem.models),
            name="the model of the worst cost",
            sensitivity=self.sensitivity,
            epsilon=epsilon,
            size=self._problem.models.size,
            range=self._scores,
            unit="$/h",
            monotone=self._problem.monotone,
        ).value

    def cost(
        self, account: Account, sealed: Sealed[Parts], model: Population, epsilon: Fraction
    ) -> float:
        """Ask for the cost of one model."""
        return laplace_scalar(
            account,
            sealed,
            query=lambda parts: float(self._costs(parts, model)[0]),
            name="the cost of that model",
            sensitivity=self.sensitivity,
            epsilon=epsilon,
            range=self.range,
            unit="$/h",
        ).value

    def _costs(self, parts: Parts, models: Population) -> Floats:
        """Compute the private costs; called by mechanisms only. The solver is thrown away."""
        network = self._problem.public.with_values(np.concatenate(parts))
        found = solve_population(
            network, models, **self._settings, tolerance=GAP, keep=("room_price",)
        )
        if (found.status > Status.UNCERTIFIED).any() or found.room_price is None:
            raise ArithmeticError
        off = found.cost - found.bound + self._miss * found.room_price
        if not ((off <= self._off) & (found.violation <= self._miss)).all():
            raise ArithmeticError
        return found.cost
