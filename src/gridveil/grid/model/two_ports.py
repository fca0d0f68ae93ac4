"""The admittances of branches as the AC equations need them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gridveil.grid.model.element_tables import Branches, Floats

Complex = NDArray[np.complex128]


@dataclass(frozen=True, eq=False)
class TwoPorts:
    """Admittances of branches, per unit.

    The current that enters at a branch's first end is ``own_start`` times the voltage there plus
    ``across_start`` times that of the other end; the other two give the current at its second end.
    """

    own_start: Complex
    across_start: Complex
    across_end: Complex
    own_end: Complex


def to_complex(real: Floats | float, imag: Floats) -> Complex:
    """Make complex numbers from real and imaginary parts, either of which may be infinite."""
    found = np.empty(len(imag), dtype=np.complex128)
    found.real, found.imag = real, imag
    return found


def two_ports(lines: Branches) -> TwoPorts:
    """Compute the admittances of these branches."""
    series = to_complex(lines.resistance, lines.reactance)
    ground = to_complex(lines.conductance, lines.charging)
    # A star of two half impedances and the branch to ground, as a triangle.
    bent = np.where(lines.t_model, 1 + series * ground / 4, 1.0)
    admittance, both = 1 / (series * bent), ground / 2 / bent
    at_start = both + to_complex(lines.conductance_from, lines.charging_from)
    at_end = both + to_complex(lines.conductance_to, lines.charging_to)
    first = np.where(lines.tap_at_end, 1.0, lines.tap)
    second = np.where(lines.tap_at_end, lines.tap, 1.0)
    turn = np.exp(to_complex(0.0, np.radians(lines.shift)))
    return TwoPorts(
        (admittance + at_start) / first**2,
        -admittance / (first * second * turn.conj()),
        -admittance / (first * second * turn),
        (admittance + at_end) / second**2,
    )
