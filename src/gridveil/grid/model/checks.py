"""What is wrong with a network: every problem, with its element and a remedy.

An error is an output, so it quotes no value of a column that may be private. Which problems there
are tells something too. So it has two parts: what every network must be, whatever
the values of its parameters (`readable`, which all readers run), and what values must be that are
not private (`value_problems`). A release runs the second part on public parameters alone: whether a
private cost is convex, or a private load finite, must not decide whether there is a release.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from gridveil.errors import InputError
from gridveil.grid.model.costs import slopes
from gridveil.grid.model.network import Bools, Network, Table
from gridveil.grid.model.parameters import PARAMETERS

SHOWN = 10
"""How many problems an error lists before it counts the rest."""

MAY_BE_INFINITE = {"capacity", "angle_min", "angle_max"}

VALUES = {
    "load": ("load",),
    "generator_limit": ("p_min", "p_max"),
    "cost": ("quadratic", "linear", "constant", "points"),
}
"""Columns that must be finite if their parameter is public; a private one is clipped to its range.
Whether a number is missing is public."""

_CLIPPED = {column for columns in VALUES.values() for column in columns}

_PRIVATE = {column for kind in PARAMETERS.values() for column in kind.columns}

KINDS = {"buses": "bus", "generators": "generator", "branches": "branch"}


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong.

    Parameters
    ----------
    element
        Which element, as in ``"branch 101-102"``.
    value
        What it says, as text: of a column that may be private only its name.
    what
        What is wrong with that.
    remedy
        What to do.
    """

    element: str
    value: str
    what: str
    remedy: str

    def __str__(self) -> str:
        said = f" ({self.value})" if self.value else ""
        return f"{self.element}: {self.what}{said}. {self.remedy}"


class ProblemsFound(InputError):
    """Something can't be used, for these problems."""

    def __init__(self, what: str, problems: Sequence[Problem]) -> None:
        super().__init__(what)
        self.problems = tuple(problems)


def check(network: Network) -> Network:
    """The network itself, if nothing is wrong with it.

    Raises
    ------
    ProblemsFound
        If something is: it lists the first problems and counts the rest.
    """
    refuse(f"Network '{network.name}'", problems(network))
    return network


def refuse(what: str, found: Sequence[Problem]) -> None:
    """Raise `ProblemsFound` that lists the first of these problems, if there are any."""
    if not found:
        return
    listed = "".join(f"\n  - {problem}" for problem in found[:SHOWN])
    more = f"\n  and {len(found) - SHOWN} more." if len(found) > SHOWN else ""
    count = "1 problem" if len(found) == 1 else f"{len(found)} problems"
    raise ProblemsFound(f"{what} has {count}:{listed}{more}", found)


def problems(network: Network) -> list[Problem]:
    """Everything that is wrong with a network; an empty list if nothing is."""
    return [*_structure(network), *value_problems(network)]


def readable(network: Network, what: str) -> Network:
    """The network itself, if nothing is wrong with it that the values of parameters don't decide.

    Raises
    ------
    ProblemsFound
        If something is, in `what`.
    """
    refuse(what, _structure(network))
    return network


def with_references(network: Network) -> Network:
    """The network with a reference bus in every island, and notes of what its reader decided.

    An island without one gets the bus of its first generator, or its first bus. Which bus it is
    changes angles only, neither flows nor costs.
    """
    island, buses, units, lines = (
        network.islands(), network.buses, network.generators, network.branches,
    )  # fmt: skip
    reference = buses.reference & buses.in_service
    notes = [
        f"branch {lines.name[place]} has resistance and no reactance: no power flows on it in the "
        "DC model"
        for place in np.flatnonzero(
            lines.in_service & (lines.reactance == 0) & (lines.resistance != 0)
        )
    ]
    for label in np.setdiff1d(island[island >= 0], island[reference]):
        places = np.flatnonzero(island == label)
        running = units.bus[units.in_service & (island[units.bus] == label)]
        chosen = running[0] if len(running) else places[0]
        reference[chosen] = True
        notes.append(
            f"bus {buses.name[chosen]} is the reference of an island of {len(places):,} "
            "buses that had none"
        )
    known = replace(buses, reference=reference)
    return replace(network, buses=known, notes=(*network.notes, *notes))


def value_problems(network: Network, private: Mapping[str, Bools] | None = None) -> list[Problem]:
    """What is wrong with the values of loads, generator limits and costs.

    Parameters
    ----------
    network
        The network.
    private
        Which elements are private, by private parameter. Nothing is asked about their values.
    """
    hidden = {} if private is None else private
    found: list[Problem] = []
    if "reactive_load" in hidden:
        # Elsewhere AC power flow looks at them.
        found += _not_finite(
            "bus", network.buses, "reactive_load", np.isnan(network.buses.reactive_load)
        )
    for parameter, columns in VALUES.items():
        table = PARAMETERS[parameter].table
        owner = getattr(network, table)
        public = ~hidden[parameter] if parameter in hidden else np.ones(len(owner), dtype=bool)
        for column in columns:
            values = getattr(owner, column)
            if column == "points":
                bad = np.array([p is not None and bool(np.isinf(p).any()) for p in values], bool)
            else:
                bad = np.isinf(values)
            found += _not_finite(KINDS[table], owner, column, bad & public)
        if parameter == "cost":
            found += _not_convex(network, public)
        if parameter == "generator_limit":
            found += _crossed(network, public)
    return found


def _structure(network: Network) -> list[Problem]:
    found = [*_base(network), *_empty(network), *_names(network), *_numbers(network)]
    unknown = list(_unknown_buses(network))
    found += unknown
    found += _generators(network)
    found += _branches(network)
    if not unknown:
        # Islands can be told apart only if every branch has two ends.
        found += _islands(network)
    return found


def _tables(network: Network) -> Iterator[tuple[str, Table]]:
    for table, kind in KINDS.items():
        yield kind, getattr(network, table)


def _base(network: Network) -> Iterator[Problem]:
    if not (np.isfinite(network.base_mva) and network.base_mva > 0):
        yield Problem(
            "network",
            f"base_mva {network.base_mva:g}",
            "the base power is not positive",
            "Give it in MVA, mostly 100.",
        )


def _empty(network: Network) -> Iterator[Problem]:
    for kind, table in _tables(network):
        # One bus needs no branch.
        if not len(table) and not (kind == "branch" and network.buses.in_service.sum() == 1):
            yield Problem("network", "", f"there is no {kind}", "Give at least one.")


def _names(network: Network) -> Iterator[Problem]:
    for kind, table in _tables(network):
        for name, count in Counter(table.name).items():
            if count > 1:
                yield Problem(
                    f"{kind} {name}", f"{count} times", "the name is not unique", "Rename them."
                )
            if not name.strip():
                yield Problem(f"{kind} '{name}'", "", "the name is empty", "Give it one.")


def _numbers(network: Network) -> Iterator[Problem]:
    for kind, table in _tables(network):
        for column in fields(table)[1:]:
            values = getattr(table, column.name)
            if "neutral" in column.metadata:
                continue  # of AC alone, which looks at them itself
            if column.name == "points":
                bad = np.array([p is not None and bool(np.isnan(p).any()) for p in values], bool)
            elif values.dtype != np.float64:
                continue
            elif column.name in MAY_BE_INFINITE | _CLIPPED:
                bad = np.isnan(values)
            else:
                bad = ~np.isfinite(values)
            yield from _not_finite(kind, table, column.name, bad)


def _not_finite(kind: str, table: Table, column: str, bad: Bools) -> Iterator[Problem]:
    values = getattr(table, column)
    for place in np.flatnonzero(bad):
        said = "" if column == "points" else f"{values[place]:g}"
        yield Problem(
            f"{kind} {table.name[place]}",
            f"{column} {said}".strip(),
            "not a finite number",
            "Give a number.",
        )


def _unknown_buses(network: Network) -> Iterator[Problem]:
    ends = {"generator": ("bus",), "branch": ("from_bus", "to_bus")}
    for kind, table in _tables(network):
        for column in ends.get(kind, ()):
            places = getattr(table, column)
            for element in np.flatnonzero((places < 0) | (places >= len(network.buses))):
                yield Problem(
                    f"{kind} {table.name[element]}",
                    f"{column} {places[element]}",
                    "there is no such bus",
                    "Use the place of a bus in the bus table.",
                )


def _generators(network: Network) -> Iterator[Problem]:
    units = network.generators
    on = units.in_service
    for name, points, here in zip(units.name, units.points, on, strict=True):
        if points is None or not here:
            continue
        if points.ndim != 2 or points.shape[1] != 2 or len(points) < 2:
            yield Problem(
                f"generator {name}",
                "cost points",
                "a piecewise-linear cost needs two points (MW, $/h) or more",
                "Correct the breakpoints.",
            )


def _crossed(network: Network, public: Bools) -> Iterator[Problem]:
    units = network.generators
    for place in np.flatnonzero(units.in_service & public & (units.p_min > units.p_max)):
        yield Problem(
            f"generator {units.name[place]}",
            "p_min, p_max",
            "the lower limit is above the upper one",
            "Swap or correct them.",
        )


def _not_convex(network: Network, public: Bools) -> Iterator[Problem]:
    units = network.generators
    on = units.in_service & public
    for place in np.flatnonzero(on & (units.quadratic < 0)):
        yield Problem(
            f"generator {units.name[place]}",
            "quadratic",
            "the quadratic cost is negative, so the cost is not convex",
            "Use 0 or a positive one.",
        )
    for name, points, here in zip(units.name, units.points, on, strict=True):
        wrong = None if points is None or not here else _curve_fault(points)
        if wrong:
            yield Problem(f"generator {name}", "cost points", wrong, "Correct the breakpoints.")


def _curve_fault(points: Any) -> str | None:
    if points.ndim != 2 or points.shape[1] != 2 or len(points) < 2:
        return None  # which is a problem of its own
    if not np.isfinite(points).all():
        return None
    if (points[1:, 0] <= points[:-1, 0]).any():
        return "the outputs of a piecewise-linear cost do not go up"
    steep = slopes(points)
    if not np.isfinite(steep).all():
        return "the piecewise-linear cost has a segment of no finite slope"
    # Costs are often rounded to cents, and slopes of short segments with them.
    slack = 1e-6 * (1 + np.abs(steep).max())
    with np.errstate(over="ignore"):
        down = (steep[1:] < steep[:-1] - slack).any()
    if down:
        return "the piecewise-linear cost is not convex: its slopes go down"
    return None


def _branches(network: Network) -> Iterator[Problem]:
    lines = network.branches
    on = lines.in_service
    faults: list[tuple[Bools, str, str, str]] = [
        (
            on & (lines.reactance == 0) & (lines.resistance == 0),
            "reactance",
            "it has no impedance, so its flow is not defined",
            "Give it a reactance, or merge its two buses.",
        ),
        (
            lines.capacity < 0,
            "capacity",
            "the capacity is negative",
            "Give a positive one, or none.",
        ),
        (on & (lines.tap <= 0), "tap", "the ratio is not positive", "Use 1."),
        (
            on & (lines.from_bus == lines.to_bus),
            "from_bus",
            "both ends are the same bus",
            "Remove the branch.",
        ),
        (
            on & (lines.angle_min > lines.angle_max),
            "angle_min",
            "the lower angle limit is above the upper one",
            "Swap or correct them.",
        ),
    ]
    for wrong, column, what, remedy in faults:
        values = getattr(lines, column)
        for place in np.flatnonzero(wrong):
            said = column if column in _PRIVATE else f"{column} {values[place]:g}"
            yield Problem(f"branch {lines.name[place]}", said, what, remedy)


def _islands(network: Network) -> Iterator[Problem]:
    island = network.islands()
    buses = network.buses
    count = int(island.max(initial=-1)) + 1
    if len(buses) and not count:
        yield Problem("network", "", "no bus is in service", "Put buses in service.")
    on = buses.in_service
    at = island[network.generators.bus[network.generators.in_service]]
    generating = np.bincount(at[at >= 0], minlength=count)
    first = {int(label): place for place, label in reversed(list(enumerate(island)))}
    references = np.bincount(island[on & buses.reference], minlength=count)
    drawing = np.bincount(island[on & ((buses.load != 0) | (buses.shunt != 0))], minlength=count)
    for label in range(count):
        element = f"island of bus {buses.name[first[label]]}"
        size = f"{int((island == label).sum()):,} buses"
        if references[label] != 1:
            yield Problem(
                element,
                size,
                "it has no reference bus"
                if not references[label]
                else f"it has {references[label]} reference buses",
                "Name exactly one bus as its reference.",
            )
        if drawing[label] and not generating[label]:
            yield Problem(
                element,
                size,
                "it has load and no generator in service",
                "Connect it, add a generator, or put its buses out of service.",
            )
