"""How large private values may well be, by public facts: to tell whether an alpha is sensible."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gridveil.grid.model.network import Floats
from gridveil.grid.model.public_facts import public_facts

if TYPE_CHECKING:
    from gridveil.grid.model.public_network import PublicNetwork

PLACEHOLDER = 9000.0
"""Ratings from here on (MW) are mostly placeholders for lines without a limit."""
# A line carries about this many MW for each kV: 138 kV, 175 MW; 230 kV, 500 MW; 20 kV, 10 MW.
_PER_KILOVOLT = 1.0


def likely_sizes(public: PublicNetwork, name: str) -> tuple[Floats | None, str]:
    """How large values of a parameter may well be, by public facts, and by which."""
    part = public.parts[name]
    low, high = public.low[part], public.high[part]
    count = len(low)
    if name == "capacity":
        voltage = public_facts(public, "branches").get("voltage")
        if voltage is not None:
            known = np.nan_to_num(np.asarray(voltage, float)[public.support["capacity"]])
            if (known > 0).all():
                return np.clip(_PER_KILOVOLT * known, low, high), "by their voltages"
        return np.sqrt(low * high), "in the middle of their range"
    if name == "cost":
        return (high - low) / 2, "at most from the middle of their range"
    if name == "reactive_load":
        return None, ""
    other, column, table = {
        "load": ("generator_limit", "p_max", public.generators),
        "generator_limit": ("load", "load", public.buses),
    }[name]
    if other in public.parameters:
        return None, ""
    on: Any = table
    sizes = np.abs(np.nan_to_num(getattr(on, column)[on.in_service], posinf=0.0))
    # Limits like 9,999 stand for units without one.
    total = float(sizes[(sizes < PLACEHOLDER) | (name != "load")].sum())
    if not total:
        return None, ""
    what = "generation" if name == "load" else "load"
    return np.full(count, total / count), f"by the {what} and their number"
