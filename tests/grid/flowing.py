"""Whether voltages and powers of another program solve our AC equations."""

import numpy as np

from gridveil.grid.opf.ac.check import flows
from gridveil.grid.opf.ac.numbers import ac_numbers

AGREED = 1e-6
"""Power balance that is missed by at most this (p.u.) is met."""
MISSED = 1e-5
"""What a control misses it by at least."""


def missed(network, voltage, units, held=0.0):
    """Compute by how much power balance is missed, per unit, as the largest of all buses.

    Parameters
    ----------
    network
        A network as we read it.
    voltage
        The complex voltage of every bus of it, per unit.
    units
        The complex power of every unit, MVA; None for power at buses alone.
    held
        Power that is injected at buses beside, MVA.
    """
    numbers, table = ac_numbers(network), network.buses
    there, base = voltage[numbers.buses], network.base_mva
    drawn = table.load + 1j * table.reactive_load
    drawn = drawn + table.fixed_load + 1j * table.fixed_reactive_load
    injected = held - drawn if units is not None else held + 0.0 * drawn
    left = injected[numbers.buses] / base - numbers.shunt.conj() * np.abs(there) ** 2
    if units is not None:
        at = numbers.at[: len(numbers.units)]
        np.add.at(left, at, units[numbers.units] / base)
    at_start, at_end = flows(numbers, there)
    np.subtract.at(left, numbers.start, at_start)
    np.subtract.at(left, numbers.end, at_end)
    return np.abs(left).max()
