"""One model with AC power flow, as numbers per unit, and an operating point that may serve it.

What all models of a network share, such as admittances, is in `numbers`.
"""

from __future__ import annotations

from dataclasses import dataclass

from gridveil.grid.model.two_ports import Complex
from gridveil.grid.opf.ac.numbers import Floats


@dataclass(frozen=True, eq=False)
class AcModel:
    """The loads, limits and costs of one model, per unit, for the elements in service.

    Parameters
    ----------
    load
        Complex power drawn at every bus.
    low, high
        Limits of the complex power of every source: units, then compensators.
    rating
        Limits of all branches, infinite for a branch without one.
    voltage_low, voltage_high
        Limits of the voltage at every bus.
    quadratic, linear, constant
        Cost coefficients of every source: $/h as a function of its active power per unit (0 if the
        cost is piecewise linear).
    factor
        The factor that multiplies a source's cost, used for piecewise-linear ones.
    live
        1 for every branch in service, 0 for one that is lost.
    band
        After outages (see `secured`): by how much the sources' active outputs may differ from those
        before them, one entry for each outage and source; otherwise empty.
    """

    load: Complex
    low: Complex
    high: Complex
    rating: Floats
    voltage_low: Floats
    voltage_high: Floats
    quadratic: Floats
    linear: Floats
    constant: Floats
    factor: Floats
    live: Floats
    band: Floats


@dataclass(frozen=True, eq=False)
class AcPoint:
    """Voltages and outputs, per unit: one entry for each bus and source in service."""

    voltage: Complex
    output: Complex
