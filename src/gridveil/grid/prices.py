"""The highest public cost of a MWh: the default price that makes costs Lipschitz."""

from __future__ import annotations

from typing import Any

import numpy as np

from gridveil.grid.population import Population
from gridveil.grid.public import PublicNetwork


def highest_cost(public: PublicNetwork, models: Population) -> float:
    """The highest marginal cost ($/MWh) of any unit in any model, from public data alone.

    Where costs are private it is the upper end of their range, and where generator limits are,
    quadratic costs count up to the end of that range.
    """
    units: Any = public.generators
    if models.cost is not None:
        return float(models.cost[:, units.in_service].max(initial=0.0))
    if "cost" in public.parameters:
        high = float(public.limits["cost"].high)
        slope = np.where(public.support["linear"], high, np.maximum(public.rest("linear"), high))
    else:
        if "generator_limit" in public.parameters:
            most = np.maximum(public.rest("p_max"), float(public.limits["generator_limit"].high))
        else:
            most = units.p_max if models.p_max is None else units.p_max * models.p_max.max(0)
        slope = units.linear + 2 * units.quadratic * np.maximum(most, 0.0)
        for place, points in enumerate(units.points):
            if points is not None:
                steps = np.diff(points, axis=0)
                slope[place] = (steps[:, 1] / steps[:, 0]).max()
    factor = 1.0 if models.cost_factor is None else models.cost_factor.max(0)
    return float((slope * factor)[units.in_service].max(initial=0.0))
