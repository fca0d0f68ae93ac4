"""Set points and reactive limits for a released file: from public and released numbers alone."""

from __future__ import annotations

import numpy as np

from gridveil.grid.network import Floats, Network

ENDLESS_MW = 1e8
"""From here on a limit is none: such a unit has no set point, and balances the others."""

_REACTIVE = 0.75
"""Mvar a MW of a unit's largest output, where its reactive limits can't be published."""


def reactive_reach(network: Network) -> Floats:
    """How much reactive power every unit may give or take (Mvar), where that can't be published.

    Reactive limits are a fixed share of the active ones in many files, and tell these exactly. If
    active limits are private, a release has a public share of the released ones instead (a power
    factor of 0.8).
    """
    units = network.generators
    return np.round(_REACTIVE * np.maximum(np.abs(units.p_min), np.abs(units.p_max)), 4)


def even_dispatch(network: Network) -> Floats:
    """One output for every unit (MW): all at the same share of their range, to cover the load.

    A set point in a file is often the result of an optimisation with the private values in it: of
    a line that is full it tells the capacity. So a release has these instead, from which a power
    flow can start.
    """
    buses, units = network.buses, network.generators
    low, high = np.minimum(units.p_min, units.p_max), np.maximum(units.p_min, units.p_max)
    runs = units.in_service & (np.abs(low) < ENDLESS_MW) & (np.abs(high) < ENDLESS_MW)
    island = network.islands()
    need = np.where(buses.in_service, buses.load + buses.shunt, 0.0)
    output = np.zeros(len(units))
    for one in np.unique(island[island >= 0]):
        mine = runs & (island[units.bus] == one)
        least, room = low[mine].sum(), (high - low)[mine].sum()
        share = (need[island == one].sum() - least) / room if room > 0 else 0.0
        output[mine] = (low + np.clip(share, 0.0, 1.0) * (high - low))[mine]
    return np.round(output, 4)
