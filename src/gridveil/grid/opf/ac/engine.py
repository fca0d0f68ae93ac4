"""Solve populations of AC optimal power flow models.

A solver's point is accepted only if plain arithmetic (`check`) finds that it serves the model:
power balance and every limit within `SERVED` per unit. Costs are those of local optima. A model
without such a point is solved in the elastic form, which says how far it is from being served; if
that solve does not finish either, nothing is known.

Models are solved one after another in this process, each from the point of the one before, with a
solver of one thread: the same numbers give the same answers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from gridveil.grid.model.network import Network
from gridveil.grid.model.population import Population
from gridveil.grid.opf.ac.check import SERVED, AcModel, AcPoint, Misses, flows, misses
from gridveil.grid.opf.ac.numbers import AcNumbers, Floats, ac_numbers, to_complex
from gridveil.grid.opf.ac.programme import Programme

Ints = NDArray[np.int64]
Progress = Callable[[int, int], None]


class AcStatus(IntEnum):
    """What is known about a model."""

    SERVED = 0
    """A point was found that meets power balance and all limits by plain arithmetic."""
    NOT_SERVED = 1
    """No such point was found; the shortfall is the least violation that was found."""
    UNKNOWN = 2
    """No solver finished, so nothing is known."""


@dataclass(frozen=True, eq=False, repr=False)
class AcSolutions:
    """Solutions of a population's AC models, one row per model.

    Parameters
    ----------
    status
        An `AcStatus` for each model.
    cost
        $/h of a local optimum; infinite if the model is not served; NaN if nothing is known, or if
        a served model's cost is not known.
    shortfall
        Total overload (MVA) and missing or surplus power (MW and Mvar) in the elastic form; 0 if
        the model is served.
    miss
        The worst miss of the point found, per unit, by plain arithmetic.
    mismatch
        The worst miss of power balance alone.
    voltage, angle
        Per unit and degrees, one column per bus; NaN if it is out of service.
    dispatch, reactive
        MW and Mvar of each generator.
    flow
        MVA on each branch, the larger of its two ends.
    losses
        Total losses in MW.
    """

    status: Ints
    cost: Floats
    shortfall: Floats
    miss: Floats
    mismatch: Floats
    voltage: Floats
    angle: Floats
    dispatch: Floats
    reactive: Floats
    flow: Floats
    losses: Floats

    def __len__(self) -> int:
        return len(self.status)

    def __repr__(self) -> str:
        counts = {s: int((self.status == s).sum()) for s in AcStatus}
        names = (f"{n:,} {s.name.lower().replace('_', ' ')}" for s, n in counts.items() if n)
        return f"<{len(self):,} AC solutions: {', '.join(names)}>"

    @property
    def served(self) -> NDArray[np.bool_]:
        """Which models are served."""
        return np.asarray(self.status == AcStatus.SERVED)


class AcModels:
    """The models of a population in per-unit numbers, indexed like a list."""

    def __init__(self, numbers: AcNumbers, population: Population) -> None:
        self.numbers = numbers
        self.population = population

    def __len__(self) -> int:
        return self.population.size

    def __getitem__(self, model: int) -> AcModel:
        numbers, models = self.numbers, self.population
        network, base = numbers.network, numbers.base
        buses, units, lines = network.buses, network.generators, network.branches

        def factor(array: Floats | None, places: Ints) -> Floats:
            return np.ones(len(places)) if array is None else array[model, places]

        at, lot, some = numbers.buses, numbers.units, numbers.branches
        load = to_complex(buses.load, buses.reactive_load)[at] * factor(models.load, at) / base
        low, high = (
            units.p_min[lot] * factor(models.p_min, lot) / base,
            units.p_max[lot] * factor(models.p_max, lot) / base,
        )
        scale = factor(models.cost_factor, lot)
        quadratic, linear = units.quadratic[lot] * scale, units.linear[lot] * scale
        constant = units.constant[lot] * scale
        if models.cost is not None:
            quadratic, linear = 0.0 * quadratic, models.cost[model, lot]
            constant, scale = 0.0 * constant, 0.0 * scale
        return AcModel(
            load=load,
            low=to_complex(low, units.q_min[lot] / base),
            high=to_complex(high, units.q_max[lot] / base),
            rating=lines.capacity[some] * factor(models.capacity, some) / base,
            voltage_low=buses.v_min[at],
            voltage_high=buses.v_max[at],
            quadratic=quadratic * base**2,
            linear=linear * base,
            constant=constant,
            factor=scale,
        )


class AcEngine:
    """An AC solver for one network; its programmes are built when they are first needed."""

    def __init__(self, network: Network) -> None:
        self.numbers = ac_numbers(network)
        self._programmes: dict[bool, Programme] = {}

    def programme(self, *, elastic: bool) -> Programme:
        """Return the strict or the elastic programme, built on first use."""
        if elastic not in self._programmes:
            self._programmes[elastic] = Programme(self.numbers, elastic=elastic)
        return self._programmes[elastic]

    def solve(
        self, population: Population | None = None, *, progress: Progress | None = None
    ) -> AcSolutions:
        """Solve every model of a population; without one, solve the network as it is."""
        models = AcModels(self.numbers, Population(1) if population is None else population)
        models.population.check_shapes(self.numbers.network)
        found, start = [], None
        for place in range(len(models)):
            one, start = self._one(models[place], start)
            found.append(one)
            if progress is not None:
                progress(place + 1, len(models))
        return _joined(self.numbers, found)

    def _one(self, model: AcModel, start: Floats | None) -> tuple[_Found, Floats | None]:
        strict = self.programme(elastic=False)
        answer = strict.solve(model, start)
        seen = misses(self.numbers, model, answer.point)
        if answer.finished and seen.serves:
            return _Found(AcStatus.SERVED, answer.value, 0.0, seen, answer.point), answer.state
        # How far is it from being served? If the elastic point serves it, start from there.
        elastic = self.programme(elastic=True).solve(model)
        near = misses(self.numbers, model, elastic.point)
        if near.serves:
            for begin in (elastic.state, None):
                again = strict.solve(model, begin)
                after = misses(self.numbers, model, again.point)
                if again.finished and after.serves:
                    return _Found(AcStatus.SERVED, again.value, 0.0, after, again.point), start
            return _Found(AcStatus.SERVED, np.nan, 0.0, near, elastic.point), start
        if elastic.finished and elastic.value > SERVED:
            short = elastic.value * self.numbers.base
            return _Found(AcStatus.NOT_SERVED, np.inf, short, near, elastic.point), start
        return _Found(AcStatus.UNKNOWN, np.nan, np.nan, near, elastic.point), start


def solve_ac(
    network: Network, population: Population | None = None, *, progress: Progress | None = None
) -> AcSolutions:
    """Solve the AC optimal power flow of every model of a population.

    Parameters
    ----------
    network
        The network: plain arrays, nothing sealed.
    population
        The models; by default one, the network as it is. A load's factor multiplies its active and
        its reactive power.
    progress
        Called after every model with the number of models done and the number of all models.

    Raises
    ------
    InputError
        If CasADi is not installed, or if numbers that AC needs are missing: it names them all.
    """
    return AcEngine(network).solve(population, progress=progress)


@dataclass(frozen=True, eq=False)
class _Found:
    status: AcStatus
    cost: float
    shortfall: float
    seen: Misses
    point: AcPoint


def _joined(numbers: AcNumbers, found: list[_Found]) -> AcSolutions:
    network, base = numbers.network, numbers.base
    count = len(found)
    voltage = np.full((count, len(network.buses)), np.nan)
    angle, flow = voltage.copy(), np.zeros((count, len(network.branches)))
    dispatch = np.zeros((count, len(network.generators)))
    reactive, losses = dispatch.copy(), np.zeros(count)
    for row, one in enumerate(found):
        voltage[row, numbers.buses] = np.abs(one.point.voltage)
        angle[row, numbers.buses] = np.degrees(np.angle(one.point.voltage))
        dispatch[row, numbers.units] = one.point.output.real * base
        reactive[row, numbers.units] = one.point.output.imag * base
        ends = flows(numbers, one.point.voltage)
        flow[row, numbers.branches] = np.maximum(*(np.abs(end) for end in ends)) * base
        losses[row] = float(sum(end.real.sum() for end in ends)) * base
    return AcSolutions(
        np.array([one.status for one in found], dtype=np.int64),
        np.array([one.cost for one in found]),
        np.array([one.shortfall for one in found]),
        np.array([one.seen.worst for one in found]),
        np.array([one.seen.mismatch for one in found]),
        voltage,
        angle,
        dispatch,
        reactive,
        flow,
        losses,
    )
