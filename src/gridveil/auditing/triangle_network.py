"""The network of the audits, with three buses, and choices of what is private in it.

The cheap unit is behind a line that is too small, so that costs depend on capacities and loads.
The case text has copies of every private value (other ratings, reactive power, results, a
comment): a replay finds any of them that reaches a bundle.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from gridveil import grid
from gridveil.auditing.scratch_ledgers import scratch
from gridveil.auditing.transcript import Values

VALUES: dict[str, Values] = {
    "capacity": (30.0, 40.0, 35.0),
    "load": (30.0, 80.0),
    "reactive_load": (9.0, -24.0),
    "generator_limit": (30.0, 30.0, 200.0, 150.0),
    "cost": (20.0, 90.0),
}
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
LINES = ((1, 2, 0.1), (2, 3, 0.1), (1, 3, 0.2))


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


def triangle_text(
    given: Mapping[str, Values],
    show: Callable[[float], str] = str,
    *,
    curves: bool = False,
) -> str:
    """Write the network as a MATPOWER case, with copies of private values wherever possible.

    Parameters
    ----------
    given
        Values by parameter, in place of the network's own.
    show
        Writes a number that is given, or that depends on one that is.
    curves
        Write each cost as a curve of two points at the unit's limits, taken from a public parabola.
    """
    found = {**VALUES, **given}
    rating, power, limit, price = (
        show if name in given else str for name in ("capacity", "load", "generator_limit", "cost")
    )
    load = (0.0, *found["load"])
    reactive = (0.0, *reactive_loads(given))
    lowest, highest = found["generator_limit"][:2], found["generator_limit"][2:]
    tables = {
        "bus": [
            f"{i + 1} {1 if i else 3} {power(d)} {power(q)} 0 0 1 1 {power(-d / 10)} 230 1 1.1 0.9"
            for i, (d, q) in enumerate(zip(load, reactive, strict=True))
        ],
        "gen": [
            f"{bus} {limit((low + high) / 2)} 0 {limit(high / 2)} {limit(-high / 2)} 1 "
            f"{limit(high)} 1 {limit(high)} {limit(low)}"
            for bus, low, high in zip((1, 3), lowest, highest, strict=True)
        ],
        "branch": [
            f"{a} {b} 0.01 {x} 0.02 {rating(f)} {rating(f)} {rating(f)} 0 0 1 -360 360 "
            f"{rating(f - 1)} 0 {rating(1 - f)} 0"
            for (a, b, x), f in zip(LINES, found["capacity"], strict=True)
        ],
        "gencost": [
            " ".join(["1 0 0 2", *(limit(x) for p in (low, high) for x in (p, _parabola(c, p)))])
            if curves
            else f"2 {price(c)} {price(c)} 3 0 {price(c)} 0"
            for c, low, high in zip(found["cost"], lowest, highest, strict=True)
        ],
    }
    body = "".join(
        f"mpc.{name} = [\n" + "".join(f"\t{row};\n" for row in rows) + "];\n"
        for name, rows in tables.items()
    )
    head = f"function mpc = triangle\n% {found}\nmpc.version = '2';\nmpc.baseMVA = 100;\n"
    return head + body


def reactive_loads(given: Mapping[str, Values]) -> Values:
    """Return the reactive loads that are given, or a multiple of the active ones."""
    copies = tuple(0.3 * load for load in given.get("load", VALUES["load"]))
    return given.get("reactive_load", copies)


def _parabola(cost: float, output: float) -> float:
    return cost * output + 0.05 * output * output
