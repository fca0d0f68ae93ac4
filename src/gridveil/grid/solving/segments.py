"""Costs of generators as segments, in order of power: linear ones, or one that is quadratic."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gridveil.errors import InputError
from gridveil.grid.network import Network

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
# Slopes of a piecewise-linear cost may fall by this much, relatively: rounding in the source.
CONVEX_ENOUGH = 1e-9


@dataclass(frozen=True, eq=False)
class Segments:
    """Segments of the generators' costs; a generator's are in order of power.

    `left` and `right` are its ends in MW, infinite for the first and the last; `lin` the slope
    (at 0 MW where `quad` is not zero); `piece` its number where it is a piece of a quadratic
    cost, whose ends follow from the limits of each model, else -1.
    """

    unit: Ints
    first: Bools
    left: Floats
    right: Floats
    lin: Floats
    quad: Floats
    piece: Ints


def cut_costs(network: Network, alive: Ints, own_costs: bool, pieces: int | None) -> Segments:
    """Cut the costs of the units `alive` into segments; see `Columns` for the arguments."""
    units = network.generators
    rows: list[tuple[float, ...]] = []
    for unit in alive:
        points, q = units.points[unit], float(units.quadratic[unit])
        if not own_costs:
            rows.append((unit, 1, -np.inf, np.inf, 0.0, 0.0, -1))
        elif points is not None:
            rows += _from_points(unit, points, units.name[unit])
        elif q < 0:
            raise _not_convex(units.name[unit])
        elif q > 0 and pieces is not None:
            slope = float(units.linear[unit])
            rows += [(unit, k == 0, 0.0, 0.0, slope, 0.0, k) for k in range(pieces)]
        else:
            rows.append((unit, 1, -np.inf, np.inf, float(units.linear[unit]), q, -1))
    table = np.array(rows, dtype=float).reshape(-1, 7)
    left, right, lin, quad = table[:, 2:6].T
    unit, piece = table[:, 0].astype(np.int64), table[:, 6].astype(np.int64)
    return Segments(unit, table[:, 1] == 1, left, right, lin, quad, piece)


def _from_points(unit: int, points: Floats, name: str) -> list[tuple[float, ...]]:
    width = np.diff(points[:, 0])
    if len(points) < 2 or (width <= 0).any():
        raise InputError(
            f"Unit {name} has cost breakpoints that do not rise.",
            remedy="Give two or more breakpoints (MW, $/h), in order of MW.",
        )
    slope = np.diff(points[:, 1]) / width
    if (np.diff(slope) < -CONVEX_ENOUGH * np.abs(slope).max()).any():
        raise _not_convex(name)
    slope = np.maximum.accumulate(slope)
    edges = np.concatenate([[-np.inf], points[1:-1, 0], [np.inf]])
    return [(unit, k == 0, edges[k], edges[k + 1], slope[k], 0.0, -1) for k in range(len(slope))]


def _not_convex(name: str) -> InputError:
    return InputError(
        f"The cost of unit {name} is not convex: more power would be cheaper at the margin.",
        remedy="Replace it by a convex cost, for example its linear part.",
    )


def value(points: Floats, p: Floats) -> Floats:
    """Compute a piecewise-linear cost; the first and the last segment go on for ever."""
    slope = np.diff(points[:, 1]) / np.diff(points[:, 0])
    below = np.minimum(p - points[0, 0], 0.0) * slope[0]
    above = np.maximum(p - points[-1, 0], 0.0) * slope[-1]
    return np.asarray(np.interp(p, points[:, 0], points[:, 1]) + below + above)
