"""Write changed values of a network into the XIIDM tree that it came from."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np

from gridveil.errors import InputError
from gridveil.grid.io import Ratios, check_sizes
from gridveil.grid.io.powsybl.branches import Limited, duration, limits_of
from gridveil.grid.io.powsybl.to_network import Layout
from gridveil.grid.io.powsybl.tree import number
from gridveil.grid.model.network import Bools, Floats, Network


def put(
    layout: Layout,
    old: Network,
    new: Network,
    released: Bools | None = None,
    ratios: Ratios | None = None,
) -> None:
    """Write every value of `new` that differs from `old` into the tree of `layout`.

    Limits of branches with `released` capacities are written even if they are the same.
    """
    check_sizes(old, new, "file")
    changed = old.branches.capacity != new.branches.capacity
    if released is not None:
        changed |= released & np.isfinite(new.branches.capacity)
    for at in np.flatnonzero(changed):
        put_limit(layout.branches[at], float(new.branches.capacity[at]), ratios or {})
    _put_load(layout, old, new)
    units, before = new.generators, old.generators
    for name, mine, theirs in (
        ("minP", units.p_min, before.p_min),
        ("maxP", units.p_max, before.p_max),
    ):
        for at in np.flatnonzero(mine != theirs):
            layout.generators[at].set(name, repr(float(mine[at])))
    if any(points is not None for points in units.points) or any(
        getattr(units, name).any() for name in ("quadratic", "linear", "constant")
    ):
        raise InputError(
            "The network has costs, which its format has no place for.",
            remedy="Give costs by a population instead.",
        )


def put_limit(branch: Limited, capacity: float, ratios: Ratios) -> None:
    """Write a capacity (MW) times ratios to all sides and durations; if infinite, remove limits."""
    for limits, unit, side, _ in list(limits_of(branch)):
        value = capacity / unit * ratios.get(side, 1.0)
        if "permanentLimit" in limits.attrib:
            limits.set("permanentLimit", repr(value))
        for one in limits.iter("temporaryLimit"):
            if "value" in one.attrib:
                one.set("value", repr(value * ratios.get(duration(one), 1.0)))
    if not np.isfinite(capacity):
        drop_limits(branch)


def drop_limits(branch: Limited) -> None:
    """Remove all limits of a branch, and their groups."""
    for side in branch.sides:
        for group in branch.element.findall(f"operationalLimitsGroup{side}"):
            branch.element.remove(group)
        branch.element.attrib.pop(f"selectedOperationalLimitsGroupId{side}", None)


def _put_load(layout: Layout, old: Network, new: Network) -> None:
    """Write changed loads: the first load of a bus takes the change."""
    at: dict[int, list[ET.Element]] = {}
    for element, bus in layout.loads:
        at.setdefault(bus, []).append(element)
    for name, ours in (("p0", "load"), ("q0", "reactive_load")):
        before, after = getattr(old.buses, ours), getattr(new.buses, ours)
        for bus in np.flatnonzero(before != after).tolist():
            if bus not in at:
                raise InputError(
                    f"Bus {new.buses.name[bus]} has no load in its file that could take a new "
                    "value.",
                    remedy="Change loads only where there are some.",
                )
            first, *others = at[bus]
            rest = sum(number(one, name, 0.0) for one in others)
            first.set(name, repr(float(after[bus]) - rest))


def put_dispatch(layout: Layout, output: Floats) -> None:
    """Write the set points of all units (MW)."""
    for element, power in zip(layout.generators, output, strict=True):
        element.set("targetP", repr(float(power)))


def put_reactive(layout: Layout, reach: Floats, hidden: Bools) -> None:
    """Write reactive limits (Mvar) of `hidden` units, with the signs that `strip` kept."""
    for element, size, own in zip(layout.generators, reach, hidden, strict=True):
        limits = element.find("minMaxReactiveLimits")
        if own and limits is not None:
            for name in ("minQ", "maxQ"):
                limits.set(name, repr(number(limits, name) * float(size) + 0.0))
