"""What kind of model to solve, checked when it is made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from gridveil.errors import InputError
from gridveil.grid.network import Network
from gridveil.grid.population import Population
from gridveil.grid.solving.columns import Slack
from gridveil.grid.solving.flows import Convention

Floats = NDArray[np.float64]
Model = Literal["strict", "relaxed", "shed", "limits"]
KEPT = (
    "cost",
    "dispatch",
    "flow",
    "line_price",
    "nodal_price",
    "limit_price",
    "shed",
    "overload",
    "room_price",
)
"""What can be kept of every model."""


@dataclass(frozen=True)
class Settings:
    """The kind of model and how well it is to be solved; see `solve_population`."""

    model: Model | tuple[Model, ...] = "strict"
    slack_price: float | None = None
    convention: Convention = "series"
    quadratic: Literal["exact"] | int = "exact"
    tolerance: float = 1e-9
    rows: Literal["lazy", "all"] = "lazy"

    def __post_init__(self) -> None:
        for kind in self.kinds:
            _one_of(kind, get_args(Model), "model")
        _one_of(self.convention, get_args(Convention), "convention")
        _one_of(self.rows, ("lazy", "all"), "rows")
        bought = set(self.kinds) - {"strict"}
        price = self.slack_price
        if bought and (price is None or not (np.isfinite(price) and price > 0)):
            raise InputError(
                f"Model {'+'.join(self.model)} needs a slack price above zero.",
                remedy="Give slack_price (--slack-price) in $/MWh, above every price you expect.",
            )
        if not bought and price is not None:
            raise InputError(
                "The strict model has no slack to put a price on.",
                remedy='Leave slack_price out, or choose model="relaxed", "shed" or "limits".',
            )
        if bought and "strict" in self.kinds:
            raise InputError(
                "A model is strict or has slack, not both.", remedy="Leave strict out."
            )
        self._check_quadratic()

    def _check_quadratic(self) -> None:
        if self.quadratic == "exact":
            return
        if not isinstance(self.quadratic, int) or self.quadratic < 1:
            raise InputError(
                f"quadratic={self.quadratic!r} is neither 'exact' nor a number of pieces.",
                remedy="Use 'exact', or a whole number from 1.",
            )
        if "limits" in self.kinds:
            raise InputError(
                "Pieces of a quadratic cost lie between the limits, which this model may leave.",
                remedy="Use quadratic='exact', or piecewise-linear costs of your own.",
            )

    @property
    def kinds(self) -> tuple[Model, ...]:
        """The models, one or several together."""
        return (self.model,) if isinstance(self.model, str) else self.model

    @property
    def pieces(self) -> int | None:
        """How many pieces a quadratic cost has, or None where it is kept."""
        return None if self.quadratic == "exact" else self.quadratic

    @property
    def slack(self) -> Slack:
        """What the models can buy."""
        kinds = self.kinds
        return Slack(
            "relaxed" in kinds, "shed" in kinds, "limits" in kinds, self.slack_price or 0.0
        )


def _one_of(value: str, choices: Sequence[str], name: str) -> None:
    if value not in choices:
        raise InputError(
            f"{name}={value!r} is not known.", remedy=f"Use one of {', '.join(choices)}."
        )


def check_keep(keep: Sequence[str]) -> frozenset[str]:
    """Check what is to be kept."""
    for name in keep:
        _one_of(name, KEPT, "keep")
    return frozenset(keep)


def check_capacity(network: Network, capacity: object) -> Floats:
    """Give the capacities to use: the network's, or as many others without missing values."""
    given = network.branches.capacity if capacity is None else capacity
    values = np.asarray(given, dtype=float)
    if values.shape != (len(network.branches),) or np.isnan(values).any():
        raise InputError(
            f"capacity needs {len(network.branches)} numbers, one a branch, none missing.",
            remedy="Use inf for a branch without a limit.",
        )
    return values


def check_population(network: Network, population: Population) -> None:
    """Check the shapes of a population's arrays, and that no value is missing."""
    widths = {
        "load": len(network.buses),
        "p_min": len(network.generators),
        "p_max": len(network.generators),
        "cost": len(network.generators),
        "cost_factor": len(network.generators),
        "capacity": len(network.branches),
    }
    for name, width in widths.items():
        values = getattr(population, name)
        if values is None:
            continue
        if values.shape != (population.size, width):
            raise InputError(
                f"The population's {name} has shape {values.shape}, where this network needs "
                f"{(population.size, width)}.",
                remedy="Use a population made for this network.",
            )
        if not np.isfinite(values).all():
            raise InputError(
                f"The population's {name} has missing or infinite values.",
                remedy="Fill them in.",
            )
