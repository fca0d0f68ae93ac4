"""Solve populations of AC optimal power flow models.

A solver's point is accepted only if plain arithmetic (`check`) finds that it serves the model:
power balance and every limit within `SERVED` per unit. Costs are those of local optima. A model
without such a point is solved in the elastic form, which says how far it is from being served; if
that solve does not finish either, nothing is known.

With outages a model is served if one dispatch was found that survives each of them (`secured`).

Models are solved one after another in this process, each from the point of the one before, with a
solver of one thread: the same numbers give the same answers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from gridveil.grid.io.substitutes import ENDLESS_MW
from gridveil.grid.model.network import Network
from gridveil.grid.model.population import Population
from gridveil.grid.model.two_ports import to_complex
from gridveil.grid.opf.ac.check import SERVED, Misses, flows, misses
from gridveil.grid.opf.ac.model import AcModel, AcPoint
from gridveil.grid.opf.ac.numbers import AcNumbers, Floats, ac_numbers
from gridveil.grid.opf.ac.programme import Answer, Programme, operating_point
from gridveil.grid.opf.ac.secured import Security
from gridveil.grid.opf.outages import Contingencies

Ints = NDArray[np.int64]
Progress = Callable[[int, int], None]


class AcStatus(IntEnum):
    """What is known about a model."""

    SERVED = 0
    """A point was found that meets power balance and all limits by plain arithmetic; if outages are
    listed, so was a point after each of them with the units where they are."""
    NOT_SERVED = 1
    """No such point was found; the shortfall is the least violation that was found."""
    UNKNOWN = 2
    """No solver finished, so nothing is known."""


@dataclass(frozen=True, eq=False, repr=False)
class AcSolutions:
    """Solutions of a population's AC models, one row per model: the network before any outage.

    Parameters
    ----------
    status
        An `AcStatus` for each model.
    cost
        $/h of a local optimum; infinite if the model is not served; NaN if nothing is known, or if
        a served model's cost is not known.
    shortfall
        Total overload (MVA) and missing or surplus power (MW and Mvar) in the elastic form, after
        outages too; 0 if the model is served.
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
    after
        An `AcStatus` for every model (row) and listed outage, with the units where the dispatch has
        them; None without outages. If a model is not served, the dispatch is that of the elastic
        form.
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
    after: Ints | None = None

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
        held = numbers.holders
        none = np.zeros(len(held))

        def sources(of_units: Floats, of_holders: Floats) -> Floats:
            return np.concatenate([of_units, of_holders])

        def limits(of_units: Floats, of_holders: Floats) -> Floats:
            found = sources(of_units, of_holders)
            return np.where(np.abs(found) < ENDLESS_MW, found, np.copysign(np.inf, found)) / base

        load = to_complex(buses.load, buses.reactive_load)[at] * factor(models.load, at)
        load = load + to_complex(buses.fixed_load, buses.fixed_reactive_load)[at]
        low, high = (
            limits(limit[lot] * factor(factors, lot), none)
            for limit, factors in ((units.p_min, models.p_min), (units.p_max, models.p_max))
        )
        q_low, q_high = (
            limits(limit[lot], compensators[held])
            for limit, compensators in ((units.q_min, buses.q_min), (units.q_max, buses.q_max))
        )
        scale = factor(models.cost_factor, lot)
        quadratic, linear = units.quadratic[lot] * scale, units.linear[lot] * scale
        constant = units.constant[lot] * scale
        if models.cost is not None:
            quadratic, linear = 0.0 * quadratic, models.cost[model, lot]
            constant, scale = 0.0 * constant, 0.0 * scale
        return AcModel(
            load=load / base,
            low=to_complex(low, q_low),
            high=to_complex(high, q_high),
            rating=lines.capacity[some] * factor(models.capacity, some) / base,
            voltage_low=buses.v_min[at],
            voltage_high=buses.v_max[at],
            quadratic=sources(quadratic * base**2, none),
            linear=sources(linear * base, none),
            constant=sources(constant, none),
            factor=sources(scale, none),
            live=np.ones(len(some)),
            band=np.zeros(0),
        )


class AcEngine:
    """An AC solver for one network; its programmes are built when they are first needed.

    Parameters
    ----------
    network
        The network.
    contingencies
        Outages that every model's dispatch must survive.
    """

    def __init__(self, network: Network, contingencies: Contingencies | None = None) -> None:
        self.numbers = ac_numbers(network)
        self._security = None if contingencies is None else Security(self.numbers, contingencies)
        self._programmes: dict[tuple[bool, int], Programme] = {}

    def programme(self, *, elastic: bool, outages: int = 0) -> Programme:
        """Return the strict or the elastic programme, built on first use.

        `outages` is how many outages it holds beside the network as it is.
        """
        if (elastic, outages) not in self._programmes:
            numbers = self.numbers
            if self._security is not None:
                numbers = self._security.stack(outages)
            self._programmes[elastic, outages] = Programme(
                numbers, elastic=elastic, outages=outages
            )
        return self._programmes[elastic, outages]

    def solve(
        self, population: Population | None = None, *, progress: Progress | None = None
    ) -> AcSolutions:
        """Solve every model of a population; without one, solve the network as it is."""
        models = AcModels(self.numbers, Population(1) if population is None else population)
        models.population.check_shapes(self.numbers.network)
        found, start = [], None
        for place in range(len(models)):
            if self._security is None:
                one, start = self._one(self.numbers, models[place], 0, start)
            else:
                one, start = self._secured(self._security, models[place], start)
            found.append(one)
            if progress is not None:
                progress(place + 1, len(models))
        return _joined(self.numbers, found)

    def _one(
        self, numbers: AcNumbers, model: AcModel, outages: int, start: Floats | None
    ) -> tuple[_Found, Floats | None]:
        """Solve one model; return what was found, and where to start the next one."""
        strict = self.programme(elastic=False, outages=outages)
        answer = strict.solve(model, start)
        seen = misses(numbers, model, answer.point)
        if answer.finished and seen.serves:
            return _found(AcStatus.SERVED, answer, seen), answer.state
        # How far is it from being served? If the elastic point serves it, start from there.
        elastic = self.programme(elastic=True, outages=outages).solve(model)
        near = misses(numbers, model, elastic.point)
        if near.serves:
            for begin in (elastic.state, None):
                again = strict.solve(model, begin)
                after = misses(numbers, model, again.point)
                if again.finished and after.serves:
                    return _found(AcStatus.SERVED, again, after), start
            return replace(_found(AcStatus.SERVED, elastic, near), cost=np.nan), start
        if elastic.finished and elastic.value > SERVED:
            short = elastic.value * numbers.base
            found = _found(AcStatus.NOT_SERVED, elastic, near)
            return replace(found, cost=np.inf, shortfall=short), start
        found = _found(AcStatus.UNKNOWN, elastic, near)
        return replace(found, cost=np.nan, shortfall=np.nan), start

    def _secured(
        self, security: Security, model: AcModel, start: Floats | None
    ) -> tuple[_Found, Floats | None]:
        """Solve one model with outages."""
        found, following = None, start

        def solve(
            numbers: AcNumbers, together: AcModel, outages: int, begin: Floats | None
        ) -> tuple[bool, Floats]:
            nonlocal found, following
            found, following = self._one(numbers, together, outages, begin)
            return found.status == AcStatus.SERVED, found.state

        served = security.secure(model, solve, start)
        assert found is not None
        state = security.split(found.state)[0]
        after = np.full(len(security), AcStatus.SERVED)
        if not served:
            before = misses(self.numbers, model, operating_point(self.numbers, state))
            if before.serves:
                short = np.array(security.look(model, state))
            else:
                unknown = found.status == AcStatus.UNKNOWN
                short = np.full(len(after), np.nan if unknown else 1.0)
            after[short != 0] = AcStatus.NOT_SERVED
            after[np.isnan(short)] = AcStatus.UNKNOWN
        return replace(found, point=operating_point(self.numbers, state), after=after), following


def solve_ac(
    network: Network,
    population: Population | None = None,
    *,
    contingencies: Contingencies | None = None,
    progress: Progress | None = None,
) -> AcSolutions:
    """Solve the AC optimal power flow of every model of a population.

    Parameters
    ----------
    network
        The network: plain arrays, nothing sealed.
    population
        The models; by default one, the network as it is. A load's factor multiplies its active and
        its reactive power.
    contingencies
        Outages that one dispatch of a model must survive, each with the units about where they are
        (`gridveil.grid.contingencies`).
    progress
        Called after every model with the number of models done and the number of all models.

    Raises
    ------
    InputError
        If CasADi is not installed, or if numbers that AC needs are missing: it names them all.
    """
    return AcEngine(network, contingencies).solve(population, progress=progress)


@dataclass(frozen=True, eq=False)
class _Found:
    status: AcStatus
    cost: float
    shortfall: float
    seen: Misses
    point: AcPoint
    state: Floats
    after: Ints | None = None


def _found(status: AcStatus, answer: Answer, seen: Misses) -> _Found:
    return _Found(status, answer.value, 0.0, seen, answer.point, answer.state)


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
        output = one.point.output[: len(numbers.units)] * base
        dispatch[row, numbers.units], reactive[row, numbers.units] = output.real, output.imag
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
        np.array([one.after for one in found]) if found and found[0].after is not None else None,
    )
