"""The admittances of a network for AC power flow, per unit, and a check of the data AC needs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gridveil.grid.io import Source, module_of
from gridveil.grid.model.checks import Problem, refuse
from gridveil.grid.model.network import IMPEDANCES, Network
from gridveil.grid.model.two_ports import Complex, to_complex, two_ports

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class AcNumbers:
    """The elements in service and their admittances, as the AC equations need them.

    Parameters
    ----------
    network
        The network that they come from.
    buses, units, branches
        Places of the elements in service in the network's tables.
    holders
        Buses with compensators, as places in its table. Sources of power are the units, and then
        the compensators of these buses.
    start, end, at
        Places of branch ends and of sources among the buses in service.
    own_start, across_start, across_end, own_end
        Admittances of every branch: the current that enters at its first end is ``own_start`` times
        the voltage there plus ``across_start`` times that of the other end; the other two give the
        current at its second end.
    shunt
        Admittance to ground at every bus.
    limited
        Branches with a rating, as places among those in service.
    bounded
        Branches with a limit of the angle difference, as places among those in service.
    """

    network: Network
    buses: Ints
    units: Ints
    branches: Ints
    holders: Ints
    start: Ints
    end: Ints
    at: Ints
    own_start: Complex
    across_start: Complex
    across_end: Complex
    own_end: Complex
    shunt: Complex
    limited: Ints
    bounded: Ints

    @property
    def base(self) -> float:
        """The base power: MVA per unit."""
        return self.network.base_mva


def ac_numbers(network: Network) -> AcNumbers:
    """Compute the numbers of a network for AC power flow.

    Raises
    ------
    ProblemsFound
        If elements of its file can't be in AC power flow, or numbers that it needs are missing or
        contradict each other: it names them all.
    """
    _check_source(network)
    refuse(f"Network '{network.name}'", ac_problems(network))
    table, lines = network.buses, network.branches
    on = table.in_service
    place = np.cumsum(on) - 1
    buses = np.flatnonzero(on)
    units = np.flatnonzero(network.generators.in_service & on[network.generators.bus])
    branches = np.flatnonzero(lines.in_service & on[lines.from_bus] & on[lines.to_bus])
    with np.errstate(divide="ignore", invalid="ignore"):  # branches out of service may be short
        ports = two_ports(lines)
    holders = np.flatnonzero(on & ((table.q_min != 0) | (table.q_max != 0)))
    shunt = to_complex(table.shunt - table.fixed_load + table.ac_shunt, table.reactive_shunt)
    return AcNumbers(
        network,
        buses,
        units,
        branches,
        holders,
        start=place[lines.from_bus[branches]],
        end=place[lines.to_bus[branches]],
        at=place[np.concatenate([network.generators.bus[units], holders])],
        own_start=ports.own_start[branches],
        across_start=ports.across_start[branches],
        across_end=ports.across_end[branches],
        own_end=ports.own_end[branches],
        shunt=shunt[buses] / network.base_mva,
        limited=np.flatnonzero(np.isfinite(lines.capacity[branches])),
        bounded=np.flatnonzero(
            np.isfinite(lines.angle_min[branches]) | np.isfinite(lines.angle_max[branches])
        ),
    )


def _check_source(network: Network) -> None:
    """Raise `ProblemsFound` if the network's file has elements that AC power flow can't have."""
    source = network.source
    if isinstance(source, Source):
        refuse(f"Network '{network.name}' in AC", module_of(source.kind).ac_gaps(source.data))


_FINITE = {
    "buses": (
        *("reactive_load", "reactive_shunt", "v_min", "v_max"),
        *("fixed_load", "fixed_reactive_load", "ac_shunt"),
    ),
    "branches": tuple(column for column in IMPEDANCES if column != "reactance"),
}


def ac_problems(network: Network) -> list[Problem]:
    """List the problems that rule out AC power flow, besides those that rule out DC power flow."""
    found = []
    for name, columns in _FINITE.items():
        table = getattr(network, name)
        for column in columns:
            values = getattr(table, column)
            found += [
                Problem(
                    f"{'bus' if name == 'buses' else 'branch'} {table.name[at]}",
                    f"{column} {values[at]:g}",
                    "not a finite number",
                    "Give a number.",
                )
                for at in np.flatnonzero(~np.isfinite(values) & table.in_service)
            ]
    buses, units = network.buses, network.generators
    wrong = buses.in_service & ((buses.v_min > buses.v_max) | (buses.v_max <= 0))
    found += [
        Problem(
            f"bus {buses.name[at]}",
            f"v_min {buses.v_min[at]:g}, v_max {buses.v_max[at]:g}",
            "voltages can't be between these limits",
            "Give limits in per unit: 0.9 and 1.1, for example.",
        )
        for at in np.flatnonzero(wrong)
    ]
    for kind, table in (("generator", units), ("bus", buses)):
        crossed = table.in_service & ~(table.q_min <= table.q_max)
        found += [
            Problem(
                f"{kind} {table.name[at]}",
                f"q_min {table.q_min[at]:g}, q_max {table.q_max[at]:g}",
                "the lower reactive limit is not below the upper one",
                "Swap or correct them.",
            )
            for at in np.flatnonzero(crossed)
        ]
    return found
