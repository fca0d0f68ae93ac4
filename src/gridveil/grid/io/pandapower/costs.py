"""Read and write the costs of a pandapower net: the tables poly_cost and pwl_cost.

A controllable load is a unit with a negative injection, so all three coefficients of its cost
change their sign, as in rundcopp: one with a quadratic part is not convex. Costs of reactive power,
and of units with a set power (which rundcopp leaves out for sgen and load), are not read.

Costs may be private, so none of their values raises an error here. Values that no model can have
are refused when a public cost is checked (`checks.value_problems`), and not if it is private.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from gridveil.errors import InputError
from gridveil.grid.io.pandapower.read_columns import UNIT_TABLES, column, fixed, rows
from gridveil.grid.model.network import Floats, Generators

POLYNOMIAL = ("cp2_eur_per_mw2", "cp1_eur_per_mw", "cp0_eur")


def unit_places(net: Any) -> dict[str, dict[int, int]]:
    """Return the place in the generator table of every unit, by table and index."""
    found: dict[str, dict[int, int]] = {}
    start = 0
    for table in UNIT_TABLES:
        index = rows(net, table).index
        found[table] = {int(element): start + at for at, element in enumerate(index)}
        start += len(index)
    return found


def priced_units(net: Any) -> dict[tuple[str, int], int]:
    """Return the place in the generator table of every unit whose cost counts."""
    still = set(rows(net, "sgen").index[fixed(net, "sgen")])
    return {
        (table, element): place
        for table, units in unit_places(net).items()
        for element, place in units.items()
        if table != "sgen" or element not in still
    }


def cost_rows(net: Any, table: str) -> list[tuple[int, int]]:
    """List the rows of a cost table that count, with the places of their units."""
    frame = net[table]
    if table == "pwl_cost":
        frame = frame[(frame["power_type"] == "p").to_numpy(dtype=bool)]
    units = priced_units(net)
    elements = column(frame, "element", table)
    found = []
    for row, kind, place in zip(frame.index, frame["et"].astype(str), elements, strict=True):
        element = int(place) if np.isfinite(place) else -1
        if kind in UNIT_TABLES and element not in net[kind].index:
            raise InputError(
                f"{table} {row} is for {kind} {element}, which is not in the net.",
                remedy="Correct its element, or drop the row.",
            )
        if (kind, element) in units:
            found.append((row, units[kind, element]))
    return found


def read_costs(net: Any) -> dict[str, Any]:
    """Return the cost fields of the generator table."""
    count = sum(len(rows(net, table)) for table in UNIT_TABLES)
    loads = count - len(rows(net, "load"))
    cost = {name: np.zeros(count) for name in ("quadratic", "linear", "constant")}
    points: list[Floats | None] = [None] * count
    polynomial, pieces = cost_rows(net, "poly_cost"), cost_rows(net, "pwl_cost")
    _refuse_twice([unit for _, unit in polynomial + pieces])
    values = [column(net.poly_cost, name, "poly_cost", 0.0) for name in POLYNOMIAL]
    for row, unit in polynomial:
        at = net.poly_cost.index.get_loc(row)
        sign = -1.0 if unit >= loads else 1.0
        for name, value in zip(cost, values, strict=True):
            cost[name][unit] = sign * value[at] + 0.0
    for row, unit in pieces:
        if unit >= loads:
            raise InputError(
                f"pwl_cost {row} is for a load, whose sign in pandapower is not defined.",
                remedy="Use poly_cost with cp1_eur_per_mw, or a controllable sgen.",
            )
        points[unit] = _points(row, net.pwl_cost.at[row, "points"])
    return {**cost, "points": tuple(points)}


def _refuse_twice(units: list[int]) -> None:
    if len(set(units)) < len(units):
        raise InputError(
            "Tables poly_cost and pwl_cost give one unit more than one cost.",
            remedy="Keep one row for each unit.",
        )


def _points(row: int, areas: Any) -> Floats:
    """Compute breakpoints (MW, $/h) from ``[from, to, slope]`` pieces, as pandapower does.

    If pieces do not follow each other, or numbers are too large, the cost is infinite.
    """
    try:
        pieces = np.array(areas, dtype=float).reshape(-1, 3)
    except (TypeError, ValueError):
        raise InputError(
            f"pwl_cost {row} has points that are not [from, to, slope] triples.",
            remedy="Write them as [[from_mw, to_mw, slope], ...].",
        ) from None  # the original error would show a point
    if not len(pieces) or np.isnan(pieces).any():
        raise InputError(
            f"pwl_cost {row} has no points, or some are missing.",
            remedy="Give [from, to, slope] triples of numbers.",
        )
    power = np.concatenate([pieces[:1, 0], pieces[:, 1]])
    with np.errstate(over="ignore", invalid="ignore"):
        rise = np.diff(power) * pieces[:, 2]
        cost = power[0] * pieces[0, 2] + np.concatenate([[0.0], np.cumsum(rise)])
    # Infinite and not missing, so that a private cost can be clipped.
    untold = np.isnan(cost) | (pieces[1:, 0] != pieces[:-1, 1]).any()
    return np.column_stack([power, np.where(untold, np.inf, cost)])


@np.errstate(over="ignore", invalid="ignore")
def areas(name: str, points: Floats) -> list[list[float]]:
    """Return ``[from, to, slope]`` pieces of a curve, which must pass through 0 $/h at 0 MW."""
    slope = np.diff(points[:, 1]) / np.diff(points[:, 0])
    start = points[0, 0] * slope[0]
    # If a curve's ends were private its slopes are rounded, so this much may be left over.
    if abs(points[0, 1] - start) > 0.01 + 1e-4 * np.abs(points[:, 0]).max():
        raise InputError(
            f"The piecewise-linear cost of {name} has a constant part, which pwl_cost can't hold.",
            remedy="Let its first piece run through 0 $/h at 0 MW.",
        )
    ends = zip(points[:-1, 0], points[1:, 0], slope, strict=True)
    return [[float(low), float(high), float(rise)] for low, high, rise in ends]


def write_costs(net: Any, old: Generators, new: Generators) -> None:
    """Write changed costs into the rows they came from; a cost without a row gets one."""
    loads = len(new) - len(rows(net, "load"))
    names = {unit: key for key, unit in priced_units(net).items()}
    for unit in range(len(new)):
        if _same(old, new, unit):
            continue
        if unit not in names:
            raise InputError(
                f"{new.name[unit]} has a set power: pandapower has no cost for it.",
                remedy="Leave its cost as it is, or make it controllable.",
            )
        points = new.points[unit]
        if points is not None:
            row = _row(net, "pwl_cost", "poly_cost", names[unit])
            net.pwl_cost.at[row, "points"] = areas(new.name[unit], points)
            continue
        row = _row(net, "poly_cost", "pwl_cost", names[unit])
        sign = -1.0 if unit >= loads else 1.0
        values = (new.quadratic[unit], new.linear[unit], new.constant[unit])
        for column_name, value in zip(POLYNOMIAL, values, strict=True):
            net.poly_cost.at[row, column_name] = sign * float(value) + 0.0


def _same(old: Generators, new: Generators, unit: int) -> bool:
    before, after = old.points[unit], new.points[unit]
    if (before is None) != (after is None):
        return False
    if before is not None and after is not None and not np.array_equal(before, after):
        return False
    fields = ("quadratic", "linear", "constant")
    return all(getattr(old, name)[unit] == getattr(new, name)[unit] for name in fields)


def _row(net: Any, table: str, other: str, unit: tuple[str, int]) -> int:
    """Find or make the row of `table` for a unit; remove its row in the `other` table."""
    for name in (table, other):
        frame = net[name]
        mine = (frame["et"] == unit[0]) & (frame["element"] == unit[1])
        if "power_type" in frame.columns:
            mine &= frame["power_type"] == "p"
        if name == table and mine.any():
            return int(frame.index[mine][0])
        if name == other:
            net[other] = frame[~mine]
    frame = net[table]
    row = int(frame.index.max()) + 1 if len(frame) else 0
    known: dict[str, Any] = {"et": unit[0], "element": unit[1], "power_type": "p", "points": []}
    values = {name: known.get(str(name), 0.0) for name in frame.columns}
    added = pd.DataFrame({name: [value] for name, value in values.items()}, index=[row])
    added = added.astype(frame.dtypes)
    net[table] = pd.concat([frame, added]) if len(frame) else added
    return row
