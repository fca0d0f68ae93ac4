"""What a release has in place of what copies private values, or follows from them.

That is set points and reactive limits, from public and released numbers only; and in a public
network neutral or published values.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import coo_array, csc_array, diags_array
from scipy.sparse.linalg import splu

from gridveil.errors import InputError
from gridveil.grid.io import Protected, Source, module_of, protected_elements
from gridveil.grid.model.costs import clip_points, with_points
from gridveil.grid.model.element_tables import IMPEDANCES
from gridveil.grid.model.network import Bools, Floats, Generators, Ints, Network

if TYPE_CHECKING:
    from gridveil.privacy.sealed import Range

ENDLESS_MW = 1e8
"""A limit of this size or more counts as no limit."""

REACTIVE = 0.75
"""Mvar per MW of a unit's largest output, if its reactive limits can't be published."""

_STEPS = 80
"""The most Newton steps; about 20 are enough for most networks."""

_CLOSE = 1e-7
"""The tolerance of the least loss, in units of a mean bus load."""

_NEAR = 1e6
"""The largest weight of a branch, as a multiple of the median one; keeps the matrix well scaled."""


def reactive_reach(network: Network) -> Floats:
    """Compute substitutes for the units' reactive limits (Mvar), if these can't be published.

    In many files reactive limits are a fixed share of the active ones, and reveal them exactly. If
    active limits are private, a release has a public share of the released ones instead (a power
    factor of 0.8).
    """
    units = network.generators
    return _rounded(REACTIVE * np.maximum(np.abs(units.p_min), np.abs(units.p_max)))


def _rounded(power: Floats) -> Floats:
    """Round powers to four decimals, or to five digits for small powers if that is more."""
    size = np.where((power != 0) & np.isfinite(power), np.abs(power), 1.0)
    unit = 10.0 ** (4 + np.maximum(0.0, -np.floor(np.log10(size))))
    return np.asarray(np.where(np.isfinite(power), np.round(power * unit) / unit, power))


def without_reactive_copies(network: Network, private: Collection[str]) -> Network:
    """Replace reactive power that would reveal private parameters.

    If loads are private and reactive loads are not released themselves, these become a public ratio
    (0 by default) of the released active loads. If generator limits are private, only the signs of
    the reactive limits are kept, with sizes from `reactive_reach`. Elements that are declared
    public keep theirs.
    """
    buses, units = network.buses, network.generators
    if "load" in private and "reactive_load" not in private:
        hidden = protected_elements(network, "load", len(buses))
        reactive = (network.reactive_ratio or 0.0) * buses.load
        buses = replace(buses, reactive_load=np.where(hidden, reactive, buses.reactive_load))
    if "generator_limit" in private:
        hidden = protected_elements(network, "generator_limit", len(units))
        reach = np.where(hidden, reactive_reach(network), 1.0)
        units = sides_of_limits(units, hidden)
        with np.errstate(invalid="ignore"):
            low, high = (
                np.where(np.isinf(sides), sides, sides * reach)
                for sides in (units.q_min, units.q_max)
            )
        units = replace(units, q_min=low, q_max=high)
    return replace(network, buses=buses, generators=units)


def sides_of_limits(units: Generators, hidden: Bools) -> Generators:
    """Replace the reactive limits of `hidden` units by 1, 0 or -1: only their sign is public."""
    low, high = (
        np.where(hidden & ~np.isinf(limit), side * (side * limit > 0), limit) + 0.0
        for limit, side in ((units.q_min, -1.0), (units.q_max, 1.0))
    )
    return replace(units, q_min=low, q_max=high)


def released_dispatch(network: Network) -> Floats:
    """Return the set points of a released file (MW): those declared public, or `light_dispatch`."""
    source = network.source
    public = source.dispatch if isinstance(source, Source) else None
    return light_dispatch(network) if public is None else public


def light_dispatch(network: Network) -> Floats:
    """Choose outputs of all units (MW) that cover the load with as little flow as possible.

    A set point in a file is often the result of an optimisation with the private values: if a line
    is full, it reveals the capacity. So a release has these set points instead, from which a power
    flow can start. They minimise the sum of reactance times squared flow over all branches within
    the limits of the units; limits of branches are not used. If the units of an island can't cover
    its load, they are all at the limit that comes closest.
    """
    buses, units = network.buses, network.generators
    island, on = network.islands(), units.in_service
    need = np.where(buses.in_service, buses.load + buses.shunt, 0.0)
    need = np.clip(need, -ENDLESS_MW, ENDLESS_MW)  # no unit reaches further
    low, high = _bounds(network, float(np.abs(need).sum()))
    output, moves = np.zeros(len(units)), np.zeros(len(units), dtype=np.bool_)
    for one in np.unique(island[island >= 0]):
        mine = on & (island[units.bus] == one)
        least, room = low[mine].sum(), (high - low)[mine].sum()
        share = (need[island == one].sum() - least) / room if room > 0 else 0.0
        output[mine] = (low + np.clip(share, 0.0, 1.0) * (high - low))[mine]
        if 0.0 < share < 1.0:
            moves |= mine & (low < output) & (output < high)
    if moves.any():
        held = np.where(moves, 0.0, output)
        need = need - np.bincount(units.bus, held, len(buses))
        system = _Laplacian(network, np.isin(island, island[units.bus[moves]]), units.bus[moves])
        output[moves] = system.lightest(
            need, output[moves], (output - low)[moves], (high - output)[moves]
        )
    runs = on & (island[units.bus] >= 0)
    return np.where(runs, np.clip(_rounded(output), low, high), 0.0)


def _bounds(network: Network, load: float) -> tuple[Floats, Floats]:
    """Return lower and upper limits of units; one without an end becomes larger than any need."""
    units = network.generators
    low, high = np.minimum(units.p_min, units.p_max), np.maximum(units.p_min, units.p_max)
    ends = np.concatenate([low, high])
    reach = 2 * (load + np.abs(ends[np.abs(ends) < ENDLESS_MW]).sum()) + 1.0
    low, high = (np.where(np.abs(e) < ENDLESS_MW, e, np.sign(e) * reach) for e in (low, high))
    return low, high


class _Laplacian:
    """The Laplacian with weights one over reactance of the `used` buses, and the units' buses."""

    def __init__(self, network: Network, used: Bools, bus: Ints) -> None:
        lines, place = network.branches, np.cumsum(used) - 1
        a, b = lines.from_bus, lines.to_bus
        joins = lines.in_service & (lines.reactance != 0) & used[a] & used[b]
        a, b = place[a[joins]], place[b[joins]]
        # A series capacitor has a negative reactance; only its size counts here.
        weight = 1.0 / np.abs(lines.reactance[joins])
        weight = np.minimum(weight / np.median(weight), _NEAR) if len(weight) else weight
        ends = np.concatenate([a, b, a, b]), np.concatenate([a, b, b, a])
        values = np.concatenate([weight, weight, -weight, -weight])
        self.size = int(used.sum())
        self.matrix = csc_array(coo_array((values, ends), shape=(self.size, self.size)))
        self.used, self.at = used, place[bus]

    def _sum(self, values: Floats) -> Floats:
        """Sum values of units by bus."""
        return np.bincount(self.at, values, self.size).astype(np.float64)

    def lightest(self, need: Floats, start: Floats, down: Floats, up: Floats) -> Floats:
        """Find the outputs with the least loss; they may move `down` and `up` from `start`.

        With the matrix L, potentials t and outputs p, the flows with the least loss that cover the
        load have ``L t = p - load``; a unit between its limits is at a bus of potential 0, one at
        its upper limit at a lower potential. This is an interior point method: a Newton step
        eliminates the outputs, and solves L with terms added to its diagonal at units. All its
        points meet the limits and cover the load, so that any of them is a dispatch.
        """
        load = need[self.used]
        scale = float(np.abs(load).sum() + np.abs(start).sum()) / self.size or 1.0
        load, p, down, up = load / scale, start / scale, down / scale, up / scale
        even, t = p, np.zeros(self.size)
        # A small term divides the output among units at one bus, in proportion to their ranges.
        share = 1e-6 / (down + up)
        below = above = np.ones(len(p))
        for _ in range(_STEPS):
            gap = float(below @ down + above @ up) / (2 * len(p))
            slope = t[self.at] + share * (p - even) - below + above
            lack = self.matrix @ t - self._sum(p) + load
            if max(gap, np.abs(slope).max(), np.abs(lack).max()) < _CLOSE:
                break
            aim = 0.1 * gap
            stiff = share + below / down + above / up
            pull = (slope + below - aim / down - above + aim / up) / stiff
            dt = self._solved(1 / stiff, -lack - self._sum(pull))
            if dt is None:
                break
            dp = -pull - dt[self.at] / stiff
            d_below = (aim - below * dp) / down - below
            d_above = (aim + above * dp) / up - above
            step = _reach((down, dp), (up, -dp), (below, d_below), (above, d_above))
            p, t, down, up = p + step * dp, t + step * dt, down + step * dp, up - step * dp
            below, above = below + step * d_below, above + step * d_above
        return p * scale

    def _solved(self, added: Floats, right: Floats) -> Floats | None:
        """Solve for potentials with `added` on the diagonal at units; None if that fails."""
        try:
            factors = splu(
                csc_array(self.matrix + diags_array(self._sum(added))),
                permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True}, diag_pivot_thresh=0.0,
            )  # fmt: skip
        except RuntimeError:  # singular
            return None
        found: Floats = factors.solve(right)
        return found if np.isfinite(found).all() else None


def _reach(*pairs: tuple[Floats, Floats]) -> float:
    """Return the longest step, at most 1, that keeps all values positive with a small margin."""
    ratios = [0.995 * float((v[d < 0] / -d[d < 0]).min()) for v, d in pairs if (d < 0).any()]
    return min(1.0, *ratios) if ratios else 1.0


def without_copies(
    network: Network,
    ranges: Mapping[str, Range],
    support: Mapping[str, Bools],
    source: Source | None,
    rows: Protected,
) -> Network:
    """The network without what copies private parameters in other columns of the model."""
    buses, units, branches = network.buses, network.generators, network.branches
    every = np.ones(len(units), dtype=bool)
    if source is not None and (read := getattr(module_of(source.kind), "published_reactive", None)):
        shown_buses, shown_units = read(source.data)
        same = {name: getattr(shown_buses, name) for name in ("ac_shunt", "reactive_shunt")}
        buses = replace(buses, **same)
        units = replace(units, q_min=shown_units.q_min, q_max=shown_units.q_max)
    if "load" in ranges:
        hidden = rows.get("load", np.ones(len(buses), dtype=bool))
        buses = replace(buses, reactive_load=np.where(hidden, 0.0, buses.reactive_load))
    if "capacity" in ranges and source is not None:
        published = getattr(module_of(source.kind), "published_impedance", None)
        if published is not None:
            # What restoration sees of impedances on ratings is what is published of them.
            rated, shown = published(source.data)
            there: dict[str, Any] = {
                column: np.where(rated, getattr(shown, column), getattr(branches, column))
                for column in IMPEDANCES
            }
            branches = replace(branches, **there)
    if "generator_limit" in ranges:
        # The ends of a cost curve are a unit's limits: it goes on to the ends of the range.
        around = ranges["generator_limit"]
        hidden = support["p_min"] | support["p_max"]
        units = with_points(units, clip_points(units, around.low, around.high), hidden)
        units = sides_of_limits(units, rows.get("generator_limit", every))
    if "cost" in ranges:
        hidden = rows.get("cost", every)
        curves = [points is not None for points in units.points]
        if (hidden & (curves | (units.quadratic != 0))).any():
            raise InputError(
                "Only linear costs can be private, and this network has quadratic or "
                "piecewise-linear ones.",
                remedy="Split network.linearised() instead.",
            )
        units = replace(units, constant=np.where(hidden, 0.0, units.constant))
    return replace(network, buses=buses, generators=units, branches=branches)


def refuse_curves(network: Network, hidden: Bools) -> None:
    """Raise if any cost of a unit with private limits is a curve of breakpoints, of however many.

    Most curves are sampled between a unit's limits. From evenly spaced inner points the limits
    follow exactly. A curve of two points has none, but its slope and intercept were computed from
    both limits, and costs in a file are rounded: few pairs of limits give the very same two
    numbers, and often only one.
    """
    curved = [
        name
        for name, points, private in zip(
            network.generators.name, network.generators.points, hidden, strict=True
        )
        if private and points is not None
    ]
    if curved:
        raise InputError(
            f"Generator limits are private, and {len(curved):,} of {len(network.generators):,} "
            f"generators have piecewise-linear costs ({curved[0]}, for example): limits can often "
            "be worked out from the breakpoints, and from the slope between two of them.",
            remedy="If the curves are public and were not made from the limits, say so: "
            "public_curves=True (--public-curves). Otherwise give polynomial costs, or make costs "
            "private too.",
        )
