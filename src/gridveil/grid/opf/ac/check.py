"""Check by plain arithmetic, without a solver, whether an operating point serves a model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gridveil.grid.model.two_ports import Complex
from gridveil.grid.opf.ac.model import AcModel, AcPoint
from gridveil.grid.opf.ac.numbers import AcNumbers, Floats

SERVED = 1e-6
"""A point serves a model if it misses power balance and every limit by at most this, per unit."""


@dataclass(frozen=True)
class Misses:
    """The worst misses of a point, for power balance and each kind of limit, per unit (radians)."""

    mismatch: float
    rating: float
    voltage: float
    output: float
    angle: float

    @property
    def worst(self) -> float:
        """The largest miss of all kinds; NaN if one of them is NaN."""
        kinds = (self.mismatch, self.rating, self.voltage, self.output, self.angle)
        return float(np.max(kinds))

    @property
    def serves(self) -> bool:
        """Whether all misses are at most `SERVED`."""
        return bool(self.worst <= SERVED)


def flows(
    numbers: AcNumbers, voltage: Complex, live: Floats | float = 1.0
) -> tuple[Complex, Complex]:
    """Compute the complex power that enters every branch at its first and second end, per unit.

    `live` is 0 for a branch that is lost, and 1 for the others.
    """
    first, second = voltage[numbers.start], voltage[numbers.end]
    at_start = first * (numbers.own_start * first + numbers.across_start * second).conj()
    at_end = second * (numbers.across_end * first + numbers.own_end * second).conj()
    return live * at_start, live * at_end


def misses(numbers: AcNumbers, model: AcModel, point: AcPoint) -> Misses:
    """Compute by how much a point misses power balance and limits."""
    lines, voltage = numbers.network.branches, point.voltage
    size = np.abs(voltage)
    at_start, at_end = flows(numbers, voltage, model.live)
    left = -model.load - (numbers.shunt.conj() * size**2)
    np.add.at(left, numbers.at, point.output)
    np.subtract.at(left, numbers.start, at_start)
    np.subtract.at(left, numbers.end, at_end)
    over = np.maximum(np.abs(at_start), np.abs(at_end)) - model.rating
    outside = [size - model.voltage_high, model.voltage_low - size]
    beyond = [
        point.output.real - model.high.real,
        model.low.real - point.output.real,
        point.output.imag - model.high.imag,
        model.low.imag - point.output.imag,
        _moved(model, point),
    ]
    # The difference between the end buses; the angle of a phase shifter is not subtracted.
    some, bounded = numbers.bounded, numbers.branches[numbers.bounded]
    angle = np.angle(voltage[numbers.start[some]] * voltage[numbers.end[some]].conj())
    wide = [
        angle - np.radians(lines.angle_max[bounded]),
        np.radians(lines.angle_min[bounded]) - angle,
    ]
    return Misses(
        mismatch=_most([np.abs(left.real), np.abs(left.imag)]),
        rating=_most([over]),
        voltage=_most(outside),
        output=_most(beyond),
        angle=_most(wide),
    )


def _moved(model: AcModel, point: AcPoint) -> Floats:
    """Compute by how much units are outside their band after outages."""
    active = point.output.real
    units = len(active) - len(model.band)
    return np.abs(active[units:].reshape(-1, units or 1) - active[:units]).ravel() - model.band


def _most(parts: list[Floats]) -> float:
    values = np.concatenate(parts)
    return max(float(np.max(values, initial=0.0)), 0.0) if not np.isnan(values).any() else np.nan
