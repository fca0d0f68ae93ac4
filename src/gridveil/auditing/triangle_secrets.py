"""What is private in an audit on the triangle: choices of it, and the neighbours that they have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from gridveil import grid
from gridveil.auditing.scratch_ledgers import scratch
from gridveil.auditing.transcript import Values
from gridveil.auditing.triangle_network import VALUES, triangle_text

RANGES = {
    "capacity": (5.0, 200.0),
    "load": (1.0, 200.0),
    "reactive_load": (-100.0, 100.0),
    "generator_limit": (1.0, 300.0),
    "cost": (1.0, 200.0),
}
ALPHAS = {
    "capacity": Fraction(10),
    "load": Fraction(10),
    "reactive_load": Fraction(4),
    "generator_limit": Fraction(20),
    "cost": Fraction(5),
}


@dataclass(frozen=True)
class Secret:
    """A choice of what is private in an audit.

    Parameters
    ----------
    name
        Its name in the audits' names.
    parameters
        The private parameters, in their order.
    options
        Further options of the release.
    total
        Whether neighbours have the same total: then two entries move against each other.
    share
        Alpha as a share of each value; None for the amounts of `ALPHAS`.
    classes
        Steps by public class, and for every entry the place of its class among them.
    """

    name: str
    parameters: tuple[str, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    total: bool = False
    share: Fraction | None = None
    classes: tuple[Mapping[str, int], tuple[int, ...]] | None = None

    @property
    def values(self) -> Values:
        """The private values of the case."""
        return sum((VALUES[name] for name in self.parameters), ())

    @property
    def request(self) -> dict[str, Any]:
        """The arguments of the release."""
        return {
            "parameter": self.parameters,
            "alpha": {name: self._alpha(name) for name in self.parameters},
            "range": {name: RANGES[name] for name in self.parameters},
            **self.options,
        }

    def _alpha(self, name: str) -> Any:
        if self.classes is not None:
            return self.classes[0]
        return ALPHAS[name] if self.share is None else f"{float(100 * self.share):g}%"

    @property
    def needs(self) -> str | None:
        """The optional package that a release needs, if any."""
        return "casadi" if self.options.get("ac") else None

    def parts(self, private: Values) -> dict[str, Values]:
        """Divide private values by parameter."""
        found, start = {}, 0
        for name in self.parameters:
            found[name] = private[start : start + len(VALUES[name])]
            start += len(VALUES[name])
        return found

    def neighbours(self) -> list[tuple[Values, Values]]:
        """Return pairs of the case's own values and one value moved by alpha, up or down."""
        if self.share is not None:
            factors = 1 + float(self.share) * np.eye(len(self.values))
            moved = [self.values * factor**sign for factor in factors for sign in (1, -1)]
            return [(self.values, tuple(other.tolist())) for other in moved]
        steps = [float(ALPHAS[name]) for name in self.parameters for _ in VALUES[name]]
        if self.classes is not None:
            known = list(self.classes[0].values())
            steps = [float(known[place]) for place in self.classes[1]]
        moves = np.array([[steps[0], -steps[0]]]) if self.total else np.diag(steps)
        base = np.array(self.values)
        moved = [tuple((base + sign * move).tolist()) for move in moves for sign in (1.0, -1.0)]
        return [(self.values, other) for other in moved]

    def far(self) -> tuple[Values, Values]:
        """Return two very different datasets, with the same total if it is public."""
        base = np.array(self.values)
        other = base[::-1] if self.total else 0.4 * base
        return self.values, tuple(other.tolist())


SECRETS = {
    one.name: one
    for one in (
        Secret("capacity", ("capacity",)),
        Secret("load", ("load",)),
        Secret("generator-limit", ("generator_limit",)),
        Secret("cost", ("cost",)),
        Secret("capacity-and-load", ("capacity", "load")),
        Secret("load-and-reactive", ("load", "reactive_load")),
        Secret("capacity-by-share", ("capacity",), share=Fraction(1, 5)),
        # The line from bus 2 by 25 MW, the others by 5.
        Secret(
            "capacity-by-class", ("capacity",), classes=({"from=2": 25, "others": 5}, (1, 0, 1))
        ),
        Secret("load-of-known-total", ("load",), {"published_total": 110.0}, total=True),
        Secret("capacity-after-outages", ("capacity",), {"contingencies": "all"}),
        Secret("load-after-outages", ("load",), {"contingencies": "all", "emergency": 1.5}),
        Secret("capacity-in-ac", ("capacity",), {"ac": True}),
        Secret("capacity-in-ac-after-outages", ("capacity",), {"ac": True, "contingencies": "all"}),
        Secret("load-in-ac", ("load",), {"ac": True, "power_factor": 0.95}),
        Secret("load-and-reactive-in-ac", ("load", "reactive_load"), {"ac": True}),
        Secret("generator-limit-in-ac", ("generator_limit",), {"ac": True}),
    )
}


@cache
def triangle(secret: str, private: Values) -> grid.Network:
    """Read the network with these private values from its text."""
    path = scratch() / "triangle.m"
    path.write_text(triangle_text(SECRETS[secret].parts(private)), encoding="utf-8")
    return grid.read_case(path)
