"""Shortfalls of public models at released values in AC, and their slopes; `oracle` is for DC.

A shortfall is that of the elastic form (`opf/ac/programme`): 0 if plain arithmetic finds that a
point serves the model, otherwise the least MVA, MW and Mvar by which limits and balances are
missed. Its multipliers are its slopes, and make cuts in the same master problem. AC power flow is
not convex, so a cut may cut off too much or too little: models are checked again after each round,
and the last check decides.

This reads released and public data only. There is no argument for anything else.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gridveil.grid.io.dispatch import REACTIVE
from gridveil.grid.model.population import Population, take
from gridveil.grid.model.problem import ReleaseProblem
from gridveil.grid.opf.ac.check import AcModel, AcPoint, misses
from gridveil.grid.opf.ac.engine import AcModels
from gridveil.grid.opf.ac.numbers import AcNumbers, ac_numbers
from gridveil.grid.opf.ac.programme import Answer, Programme
from gridveil.grid.opf.engine import Solutions
from gridveil.grid.restoration.oracle import Look

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# The shortfall of a model that is not served is at least this (p.u.), however small it was found.
_LEAST = 1e-5
# If the strict form finds no point in this many steps, the elastic one is solved.
_QUICK = 40
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
    """

    words = "serving every model in AC"

    def __init__(self, problem: ReleaseProblem, models: Population) -> None:
        self._problem = problem
        self._models = models
        self._elastic: Programme | None = None
        self._quick: Programme | None = None
        self._hope = True
        self._points: dict[int, AcPoint] = {}
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
            known = self._points.get(k)
            if known is not None and misses(numbers, model, known).serves:
                continue  # the point that was found before still serves it
            answer = self._solve(numbers, model, k)
            if misses(numbers, model, answer.point).serves:
                self._points[k] = answer.point
            elif answer.finished:
                value[row] = max(answer.value, _LEAST) * numbers.base
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
        if self._elastic is None:
            numbers = ac_numbers(network)
            self._elastic = Programme(numbers, elastic=True)
            self._quick = Programme(numbers, elastic=False, steps=_QUICK)
        # The programmes stay the same: loads, limits and ratings are parameters of them.
        return replace(self._elastic.numbers, network=network)

    def _solve(self, numbers: AcNumbers, model: AcModel, k: int) -> Answer:
        """Find a point that serves the model, or else solve the elastic form.

        The strict form without costs finds a point in a quarter of the time; it is tried as long
        as models are served. Solves start from this model's last state, or that of the last model;
        if that does not finish, from the default. All states depend on public and released values
        only.
        """
        assert self._quick is not None
        assert self._elastic is not None
        start = self._states.get(k, self._last)
        if self._hope:
            free = {name: 0.0 * getattr(model, name) for name in ("quadratic", "linear", "factor")}
            answer = self._quick.solve(replace(model, **free), start)
        if not (self._hope and misses(numbers, model, answer.point).serves):
            answer = self._elastic.solve(model, start)
            if not answer.finished and start is not None:
                answer = self._elastic.solve(model)
            self._hope = misses(numbers, model, answer.point).serves
        if answer.finished:
            self._states[k] = self._last = answer.state
        return answer

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
        self._low[row, numbers.units] = answer.low_price.real
        self._high[row, numbers.units] = answer.high_price.real
        self._swing[row, numbers.units] = answer.low_price.imag + answer.high_price.imag

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
