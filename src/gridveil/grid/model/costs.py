"""Piecewise-linear cost curves: their slopes, their values, and where they end."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

if TYPE_CHECKING:
    from gridveil.grid.model.network import Bools, Floats, Generators


def slopes(points: Floats) -> Floats:
    """Slope of every segment in $/MWh; not finite if numbers are too far apart for one."""
    with np.errstate(over="ignore", invalid="ignore"):
        steps = np.diff(points, axis=0)
        found: Floats = steps[:, 1] / steps[:, 0]
    return found


def cost_at(points: Floats, output: float) -> float:
    """Cost in $/h at an output in MW; the first and the last segment go on for ever."""
    steep = slopes(points)
    return _on_rays(points, float(steep[0]), float(steep[-1]), output)


def mean_slopes(units: Generators, *, private_limits: bool) -> Floats:
    """The mean slope of every cost between the unit's limits; see `Network.linearised`."""
    slope, curved = units.linear.copy(), units.quadratic != 0
    with np.errstate(all="ignore"):
        if not private_limits:
            # Only if there is a curve: a limit may be infinite.
            slope[curved] += units.quadratic[curved] * (units.p_max + units.p_min)[curved]
        for place, points in enumerate(units.points):
            if points is not None:
                low, high = units.p_min[place], units.p_max[place]
                if private_limits:
                    low, high = points[0, 0], points[-1, 0]
                # If there is one output only, its own marginal cost is as good as any.
                high = high if high > low else low + 1.0
                slope[place] = (cost_at(points, high) - cost_at(points, low)) / (high - low)
    # Of a cost too large to tell; clipped to a public range it is the upper end.
    return np.where(np.isnan(slope), np.inf, slope)


def has_curves(units: Generators, which: Bools) -> bool:
    """Whether any of these units that is in service has a cost that is more than one slope."""
    on = units.in_service & which
    curves = any(units.points[place] is not None for place in np.flatnonzero(on))
    return curves or bool(units.quadratic[on].any() or units.constant[on].any())


def clip_points(units: Generators, low: ArrayLike, high: ArrayLike) -> Generators:
    """Let every curve begin at `low` and end at `high`, on the lines of its own segments.

    The first and the last breakpoint are a unit's limits in most cases: they go. Inner ones stay:
    where they lie outside, the curve goes on to 1 MW past them, since a population may widen the
    limits of a unit.
    """
    lows, highs = np.broadcast_to(low, len(units)), np.broadcast_to(high, len(units))
    return replace(
        units,
        points=tuple(
            None if points is None else _between(points, float(a), float(b))
            for points, a, b in zip(units.points, lows, highs, strict=True)
        ),
    )


def with_points(units: Generators, others: Generators, which: Bools) -> Generators:
    """The units with the curves of `others` where `which` says so."""
    both = zip(which, others.points, units.points, strict=True)
    return replace(units, points=tuple(new if take else own for take, new, own in both))


def _between(points: Floats, low: float, high: float) -> Floats:
    inner = points[1:-1]
    if len(inner):
        low, high = min(low, float(inner[0, 0]) - 1.0), max(high, float(inner[-1, 0]) + 1.0)
    elif not high > low:
        # A curve needs two different ends, also if a unit has one output only.
        high = low + 1.0
    steep = slopes(points)
    # Rounded: the last digits of a slope tell where its segment ended.
    first, last = round(float(steep[0]), 4), round(float(steep[-1]), 4)
    if len(points) == 2:
        anchor = np.array([[0.0, round(float(points[0, 1] - steep[0] * points[0, 0]), 2)]])
    else:
        anchor = inner
    if len(points) > 3:
        first, last = min(first, float(steep[1])), max(last, float(steep[-2]))
    ends = [(x, _on_rays(anchor, first, last, x)) for x in (low, high)]
    return np.vstack([ends[:1], inner, ends[1:]])


def _on_rays(points: Floats, first: float, last: float, x: float) -> float:
    """The curve through these points, with a ray of a given slope at each end."""
    (x0, y0), (x1, y1) = points[0], points[-1]
    if x <= x0:
        return float(y0 - first * (x0 - x))
    if x >= x1:
        return float(y1 + last * (x - x1))
    return float(np.interp(x, points[:, 0], points[:, 1]))
