"""The network of the audits, with three buses, as the text of a MATPOWER case.

The cheap unit is behind a line that is too small, so that costs depend on capacities and loads.
The case text has copies of every private value (other ratings, reactive power, results, a
comment): a replay finds any of them that reaches a bundle.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gridveil.auditing.transcript import Values

VALUES: dict[str, Values] = {
    "capacity": (30.0, 40.0, 35.0),
    "load": (30.0, 80.0),
    "reactive_load": (9.0, -24.0),
    "generator_limit": (30.0, 30.0, 200.0, 150.0),
    "cost": (20.0, 90.0),
}
LINES = ((1, 2, 0.1), (2, 3, 0.1), (1, 3, 0.2))


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
