"""Shortfalls of public models at released values in AC, and their slopes; `oracle` is for DC.

A shortfall is that of the elastic form (`opf/ac/programme`): 0 if plain arithmetic finds that a
point serves the model, otherwise the least MVA, MW and Mvar by which limits and balances are
missed. Its multipliers are its slopes, and make cuts in the same master problem. AC power flow is
not convex, so a cut may cut off too much or too little: models are checked again after each round,
and the last check decides.

With outages a model is served if one dispatch survives each of them (`opf/ac/secured`), and the
shortfall is that of the model together with the outages that are critical.

This reads released and public data only. There is no argument for anything else.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gridveil.grid.io.substitutes import REACTIVE
from gridveil.grid.model.population import Population, take
from gridveil.grid.model.release_problem import ReleaseProblem
from gridveil.grid.opf.ac.check import misses
from gridveil.grid.opf.ac.engine import AcModels
from gridveil.grid.opf.ac.model import AcModel
from gridveil.grid.opf.ac.numbers import AcNumbers, ac_numbers
from gridveil.grid.opf.ac.programme import Answer, Programme, operating_point
from gridveil.grid.opf.ac.secured import LEAST, QUICK, Security
from gridveil.grid.opf.engine import Solutions
from gridveil.grid.opf.outages import Contingencies
from gridveil.grid.restoration.oracle import Look

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Smaller slopes come from the solver's tolerance. If all are smaller, no released value helps.
_FLAT = 0.02


class AcOracle:
    """Shortfalls in AC as a function of released values, like `Oracle`; all share one programme.

    Parameters
    ----------
    problem
        What is released, with the public network.
    models
        The models.
    contingencies
        Outages that every model's dispatch must survive.
    """

    words = "serving every model in AC"

    def __init__(
        self,
        problem: ReleaseProblem,
        models: Population,
        contingencies: Contingencies | None = None,
    ) -> None:
        self._problem = problem
        self._models = models
        self._contingencies = contingencies
        self._first: AcNumbers | None = None
        self._security: Security | None = None
        self._programmes: dict[tuple[bool, int], Programme] = {}
        self._hope = True
        self._served: dict[int, Floats] = {}
        self._states: dict[int, Floats] = {}
        self._last: Floats | None = None

    def at(self, values: Floats, some: Ints | None = None) -> Look:
        """Compute shortfalls (in the problem's units) and slopes of some models, or of all."""
        places = np.arange(self._models.size) if some is None else some
        numbers = self._numbers(values)
        every = AcModels(numbers, self._models)
        prices = _Prices(numbers, len(places))
        value = np.zeros(len(places))
        for row, k in enumerate(places.tolist()):
            model = every[k]
            if self._still_served(numbers, model, k):
                continue
            served, answer = self._solve(numbers, model, k)
            if served:
                continue
            if answer.finished:
                value[row] = max(answer.value, LEAST) * numbers.base
                prices.put(row, answer)
            else:
                value[row] = np.nan
        slope = self._slope(prices, places)
        slope[np.abs(slope) < _FLAT] = 0.0
        # Released values can't change this shortfall, so there is no cut to add.
        value[(value > 0) & ~slope.any(axis=1)] = np.inf
        return Look(value, slope)

    def _numbers(self, values: Floats) -> AcNumbers:
        network = self._problem.public.with_values(values)
        if self._first is None:
            self._first = ac_numbers(network)
            if self._contingencies is not None:
                self._security = Security(self._first, self._contingencies)
        # The programmes stay the same: loads, limits and ratings are parameters of them.
        return replace(self._first, network=network)

    def _still_served(self, numbers: AcNumbers, model: AcModel, k: int) -> bool:
        """Say whether the point found before still serves a model."""
        known = self._served.get(k)
        if known is None or not misses(numbers, model, operating_point(numbers, known)).serves:
            return False
        return self._security is None or self._security.survives(model, known, k)

    def _solve(self, numbers: AcNumbers, model: AcModel, k: int) -> tuple[bool, Answer]:
        """Find a point that serves the model, or else solve the elastic form.

        Solves start from this model's last state, or that of the last model. All states depend on
        public and released values only.
        """
        start, security = self._states.get(k, self._last), self._security
        if security is None:
            served, answer = self._one(numbers, model, 0, start)
            before = answer.state
        else:
            found: list[Answer] = []

            def solve(
                stack: AcNumbers, together: AcModel, outages: int, begin: Floats | None
            ) -> tuple[bool, Floats]:
                serves, one = self._one(stack, together, outages, begin)
                found.append(one)
                return serves, one.state

            served = security.secure(model, solve, start, known=k)
            answer = security.fold(found[-1])
            before = security.split(answer.state)[0]
        if served:
            self._served[k] = before
        if answer.finished:
            self._states[k] = self._last = answer.state
        return served, answer

    def _one(
        self, numbers: AcNumbers, model: AcModel, outages: int, start: Floats | None
    ) -> tuple[bool, Answer]:
        """Solve one model, or one together with outages.

        The strict form without costs finds a point in a quarter of the time; it is tried as long
        as models are served. If no solve from the start ends, one from the default is tried.
        """
        if self._hope:
            free = {name: 0.0 * getattr(model, name) for name in ("quadratic", "linear", "factor")}
            quick = self._programme(elastic=False, outages=outages)
            answer = quick.solve(replace(model, **free), start)
            if misses(numbers, model, answer.point).serves:
                return True, answer
        elastic = self._programme(elastic=True, outages=outages)
        answer = elastic.solve(model, start)
        if not answer.finished and start is not None:
            answer = elastic.solve(model)
        self._hope = misses(numbers, model, answer.point).serves
        return self._hope, answer

    def _programme(self, *, elastic: bool, outages: int) -> Programme:
        if (elastic, outages) not in self._programmes:
            assert self._first is not None
            stack = self._first if self._security is None else self._security.stack(outages)
            steps = None if elastic else QUICK
            self._programmes[elastic, outages] = Programme(
                stack, elastic=elastic, steps=steps, outages=outages
            )
        return self._programmes[elastic, outages]

    def _slope(self, prices: _Prices, some: Ints) -> Floats:
        public, models = self._problem.public, take(self._models, some)
        found = self._problem.slope(prices.solutions(public.reactive_ratio), models)
        if "cost" in public.parts:
            found[:, public.parts["cost"]] = 0.0
        return found


class _Prices:
    """Multipliers of elastic answers in the form of `Solutions`, as DC models have them."""

    def __init__(self, numbers: AcNumbers, rows: int) -> None:
        network = numbers.network
        self._numbers = numbers
        self._line = np.zeros((rows, len(network.branches)))
        self._load = np.zeros((rows, len(network.buses)))
        self._reactive = self._load.copy()
        self._low = np.zeros((rows, len(network.generators)))
        self._high = self._low.copy()
        self._swing = self._low.copy()

    def put(self, row: int, answer: Answer) -> None:
        """Store the multipliers of one model."""
        numbers = self._numbers
        self._line[row, numbers.branches] = answer.rating_price
        self._load[row, numbers.buses] = answer.load_price.real
        self._reactive[row, numbers.buses] = answer.load_price.imag
        low, high = (one[: len(numbers.units)] for one in (answer.low_price, answer.high_price))
        self._low[row, numbers.units] = low.real
        self._high[row, numbers.units] = high.real
        self._swing[row, numbers.units] = low.imag + high.imag

    def solutions(self, ratio: float | None) -> Solutions:
        """Return them as `Solutions`; with a ratio, reactive loads follow active ones."""
        none = np.zeros(len(self._line))
        return Solutions(
            *(none, none.astype(np.int64), none, none, none, none),
            dispatch=np.zeros_like(self._low),
            line_price=self._line,
            nodal_price=self._load + (ratio or 0.0) * self._reactive,
            reactive_price=self._reactive,
            # If limits are private, reactive limits are a share of the largest output.
            p_max_price=self._high + REACTIVE * self._swing,
            p_min_price=self._low,
        )
