"""Turn several snapshots of a PyPSA network into the models of a release.

Loads, and everything constant in a model, are then public. Shares of sizes over time (p_max_pu,
p_min_pu, s_max_pu) are public too; sizes may be private, and so may costs that have no series.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from gridveil.errors import InputError
from gridveil.grid.io.pypsa.read_columns import (
    AVAILABILITY,
    BRANCHES,
    Snapshot,
    farthest,
    over_time,
    static,
    values,
)
from gridveil.grid.io.pypsa.to_network import drawn_power
from gridveil.grid.model.checks import Problem, refuse
from gridveil.grid.model.network import Floats

META = "gridveil_snapshots"
"""The mark in a released file's meta data that all its snapshots are read by default."""
COSTS = ("marginal_cost", "marginal_cost_quadratic")


def check(source: Snapshot) -> None:
    """Raise `InputError` if the network has series that models can't represent."""
    if not source.several:
        return
    network, found = source.network, []
    for component, name in (("Transformer", "s_max_pu"), ("Transformer", "phase_shift")):
        series = network.c[component].dynamic[name]
        if len(series.columns):
            remedy = "Give it one value for all snapshots, or read one of them (--snapshot)."
            found.append(Problem(component, f"'{series.columns[0]}'", f"{name} varies", remedy))
    unset = np.isnan(over_time(source, "Generator", "p_set"))
    part = np.flatnonzero(unset.any(axis=0) & ~unset.all(axis=0))
    if len(part):
        name = static(network, "Generator").index[part[0]]
        words = "p_set is given at some of the snapshots only"
        found.append(Problem("Generator", f"'{name}'", words, "Give all of them, or none."))
    refuse("The PyPSA network", found)


def check_private(source: Snapshot, private: Sequence[str]) -> None:
    """Raise `InputError` if a private parameter varies over time."""
    if not source.several:
        return
    if "load" in private:
        raise InputError(
            "Loads are private, and they vary over the snapshots.",
            remedy="Release them as series (--parameter load --series FILE), or read one snapshot "
            "(--snapshot NAME).",
        )
    names = {"cost": COSTS, "generator_limit": ("p_set", "p_min_pu")}
    for parameter in private:
        for name in names.get(parameter, ()):
            series = source.network.c["Generator"].dynamic[name]
            if len(series.columns):
                raise InputError(
                    f"{parameter} is private, and Generator '{series.columns[0]}' has a series of "
                    f"{name}.",
                    remedy="Read one snapshot: --snapshot NAME.",
                )


# Private costs may be infinite, and no warning may say so.
@np.errstate(all="ignore")
def models(source: Snapshot) -> dict[str, Floats] | None:
    """Return the snapshots as arrays of a population, one row each; None for a single snapshot.

    Raises
    ------
    InputError
        If a public series of a generator changes its sign.
    """
    if not source.several:
        return None
    found = {"load": _ratio(drawn := drawn_power(source)[0], farthest(drawn))}
    fixed = over_time(source, "Generator", "p_set")
    still = ~np.isnan(fixed[0])
    for ours, name in zip(("p_min", "p_max"), AVAILABILITY, strict=True):
        share = over_time(source, "Generator", name)
        free = _ratio(share, values(source, "Generator", name))
        found[ours] = np.where(still, _ratio(fixed, farthest(fixed)), free)
    found["capacity"] = np.concatenate(
        [_ratio(over_time(source, c, "s_max_pu"), values(source, c, "s_max_pu")) for c in BRANCHES],
        axis=1,
    )
    found["cost_factor"] = _cost_factor(source)
    refuse("The snapshots", list(_signs(source, found)))
    return {name: table for name, table in found.items() if (table != 1).any()}


def _ratio(table: Floats, base: Floats) -> Floats:
    """Return a table over time as multipliers of `base`; 1 if the base is 0 or infinite."""
    usable = np.isfinite(base) & (base != 0)
    return np.where(usable, table / np.where(usable, base, 1.0), 1.0)


def _cost_factor(source: Snapshot) -> Floats:
    """Return multipliers of costs: those of the linear part, or of the quadratic one without it."""
    parts = [over_time(source, "Generator", name) for name in COSTS]
    factors = [_ratio(part, farthest(part)) for part in parts]
    return np.where(farthest(parts[0]) != 0, *factors)


def _signs(source: Snapshot, found: dict[str, Floats]) -> Iterator[Problem]:
    """Yield problems of units whose series are not multiples (0 or more) of one value."""
    names = static(source.network, "Generator").index
    remedy = "Read one snapshot (--snapshot), or leave the series out."
    for array in ("p_min", "p_max", "cost_factor"):
        bad = np.flatnonzero((found[array] < 0).any(axis=0))
        if len(bad):
            what = f"{array} changes its sign over the snapshots"
            yield Problem("Generator", f"'{names[bad[0]]}'", what, remedy)
    for name in COSTS:
        part = over_time(source, "Generator", name)
        off = np.abs(part - farthest(part) * found["cost_factor"]) > 1e-9 * np.abs(farthest(part))
        if len(bad := np.flatnonzero(off.any(axis=0))):
            what = "linear and quadratic costs vary by different factors over the snapshots"
            yield Problem("Generator", f"'{names[bad[0]]}'", what, remedy)
            return
