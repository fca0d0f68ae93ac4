"""What models do in AC on a released network beside the real one, for the owner's evaluation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gridveil.grid.model.network import Network
from gridveil.grid.model.population import Population
from gridveil.grid.opf.ac.engine import AcStatus, solve_ac


@dataclass(frozen=True)
class AcErrors:
    """What some models do in AC on the released network, beside the real one.

    Parameters
    ----------
    models
        How many the real network serves: those are compared.
    not_served
        The share of them that the released network does not serve, %.
    unknown
        How many of them nothing is known of on the released network.
    cost_error
        Mean of ``|C(real) - C(released)| / C(real)``, %, over models that both serve.
    voltage_error
        Mean error of voltages over buses and these models, per unit.
    loss_error
        Mean error of losses, % of the real ones.
    """

    models: int
    not_served: float
    unknown: int
    cost_error: float
    voltage_error: float
    loss_error: float

    def to_json(self) -> dict[str, Any]:
        """The figures as JSON can hold them: None where there is none."""
        return {name: value if np.isfinite(value) else None for name, value in vars(self).items()}


def ac_errors(real: Network, released: Network, models: Population) -> AcErrors:
    """Solve models on both networks, and compare."""
    ours, theirs = solve_ac(real, models), solve_ac(released, models)
    compared, both = ours.served, ours.served & theirs.served
    return AcErrors(
        int(compared.sum()),
        100 * _mean(~theirs.served[compared]),
        int((theirs.status[compared] == AcStatus.UNKNOWN).sum()),
        100 * _mean(np.abs(_ratio(theirs.cost[both], ours.cost[both]))),
        _mean(np.abs(theirs.voltage - ours.voltage)[both]),
        100 * _mean(np.abs(_ratio(theirs.losses[both], ours.losses[both]))),
    )


def _ratio(new: Any, old: Any) -> Any:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(old != 0, new / old - 1, np.nan)


def _mean(values: Any) -> float:
    known = np.asarray(values, dtype=np.float64)
    known = known[np.isfinite(known)]
    return float(known.mean()) if known.size else float("nan")
