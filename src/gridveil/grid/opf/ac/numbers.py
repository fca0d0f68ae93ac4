"""The admittances of a network for AC power flow, per unit, and a check of the data AC needs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gridveil.errors import InputError
from gridveil.grid.io import OBJECTS, Source
from gridveil.grid.model.checks import Problem, refuse
from gridveil.grid.model.network import Network

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Complex = NDArray[np.complex128]


@dataclass(frozen=True, eq=False)
class AcNumbers:
    """The elements in service and their admittances, as the AC equations need them.

    Parameters
    ----------
    network
        The network that they come from.
    buses, units, branches
        Places of the elements in service in the network's tables.
    start, end, at
        Places of branch ends and of units among the buses in service.
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


def to_complex(real: Floats | float, imag: Floats) -> Complex:
    """Make complex numbers from real and imaginary parts, either of which may be infinite."""
    found = np.empty(len(imag), dtype=np.complex128)
    found.real, found.imag = real, imag
    return found


def ac_numbers(network: Network) -> AcNumbers:
    """Compute the numbers of a network for AC power flow.

    Raises
    ------
    InputError
        If GridVeil does not read the AC data of the network's format.
    ProblemsFound
        If numbers that AC power flow needs are missing or contradict each other: it names them all.
    """
    source = network.source
    if isinstance(source, Source) and source.kind != "matpower":
        kind = OBJECTS.get(source.kind, "PSS/E")
        raise InputError(
            f"Reactive loads, limits and shunts of {kind} networks are not read.",
            remedy="Give the network as a MATPOWER case (.m).",
        )
    refuse(f"Network '{network.name}'", ac_problems(network))
    table, lines = network.buses, network.branches
    on = table.in_service
    place = np.cumsum(on) - 1
    buses = np.flatnonzero(on)
    units = np.flatnonzero(network.generators.in_service & on[network.generators.bus])
    branches = np.flatnonzero(lines.in_service & on[lines.from_bus] & on[lines.to_bus])
    series = 1 / to_complex(lines.resistance, lines.reactance)[branches]
    ground = to_complex(lines.conductance, lines.charging)[branches] / 2
    ratio = lines.tap[branches] * np.exp(to_complex(0.0, np.radians(lines.shift[branches])))
    return AcNumbers(
        network,
        buses,
        units,
        branches,
        start=place[lines.from_bus[branches]],
        end=place[lines.to_bus[branches]],
        at=place[network.generators.bus[units]],
        own_start=(series + ground) / np.abs(ratio) ** 2,
        across_start=-series / ratio.conj(),
        across_end=-series / ratio,
        own_end=series + ground,
        shunt=to_complex(table.shunt, table.reactive_shunt)[buses] / network.base_mva,
        limited=np.flatnonzero(np.isfinite(lines.capacity[branches])),
        bounded=np.flatnonzero(
            np.isfinite(lines.angle_min[branches]) | np.isfinite(lines.angle_max[branches])
        ),
    )


_FINITE = {
    "buses": ("reactive_load", "reactive_shunt", "v_min", "v_max"),
    "branches": ("charging", "conductance", "resistance"),
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
    crossed = units.in_service & ~(units.q_min <= units.q_max)
    found += [
        Problem(
            f"generator {units.name[at]}",
            f"q_min {units.q_min[at]:g}, q_max {units.q_max[at]:g}",
            "the lower reactive limit is not below the upper one",
            "Swap or correct them.",
        )
        for at in np.flatnonzero(crossed)
    ]
    return found
