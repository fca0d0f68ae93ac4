"""What a planned release of a network takes for granted, and what is unusual about it.

Public facts alone decide both: topology, voltages, what is not private, ranges and the guarantee.
No private value is compared with anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from fractions import Fraction
from typing import Any

import numpy as np

from gridveil.errors import show_exact
from gridveil.grid.io import network_suffix
from gridveil.grid.io.released_columns import lines
from gridveil.grid.methods.base import Prepared
from gridveil.grid.model.covariates import public_facts
from gridveil.grid.model.declarations import Declared
from gridveil.grid.model.network import Floats, Generators, Network
from gridveil.grid.model.parameters import PARAMETERS
from gridveil.grid.model.population import Population, take
from gridveil.grid.model.public_network import PublicNetwork
from gridveil.grid.model.release_problem import ReleaseProblem
from gridveil.grid.opf.engine import solve_population
from gridveil.grid.owner_preview import PLACEHOLDER
from gridveil.privacy.adjacency import RELATIVE, Adjacency
from gridveil.privacy.words import neighbour_json, show_far, show_step

# A line carries about this many MW for each kV: 138 kV, 175 MW; 230 kV, 500 MW; 20 kV, 10 MW.
_PER_KILOVOLT = 1.0
_MOST = 0.5  # of all entries
_LITTLE = 0.005  # a step, as a share of a typical value
_LITTLE_SHARE = 0.01  # a relative step
_FACTOR_OF_TWO = 0.69  # noise on a logarithm
_LEFT_OUT = 0.1  # of the sampled models
_FEW = 20  # models that are solved before a release; all of them if one of these has no solution
_LARGEST = 3e6  # MW: more than the whole world's load

_ENTRY = {
    "capacity": "a line",
    "load": "a load",
    "reactive_load": "a reactive load",
    "generator_limit": "a generator",
    "cost": "a cost",
}


def assumed(
    problem: ReleaseProblem,
    adjacency: Sequence[Adjacency],
    prepared: Prepared,
    declared: Declared,
    left_out: int,
) -> dict[str, str]:
    """What the release takes for granted, by a short name each."""
    public = problem.public
    found = {}
    for name, one in zip(public.parameters, adjacency, strict=True):
        unit, limits = PARAMETERS[name].unit, public.ranges[name]
        part = declared.protects(name)
        noise = _noise(problem, prepared, name)
        off = float(np.median(np.expm1(noise) if one.unit == RELATIVE else noise))
        found[f"private {name}"] = (
            f"{one.entries:,} value{'s' * (one.entries != 1)}"
            f"{f' ({part} alone; the rest is public)' if part else ''} in "
            f"{unit}, each protected by {show_far(neighbour_json(one, Fraction(1)))}; values "
            f"outside [{limits.low:g}, {limits.high:g}] count as the nearer end"
        )
        found[f"accuracy of {name}"] = (
            f"a single value of {name} is off by about {off:.0%}"
            if one.unit == RELATIVE
            else f"a single value of {name} is off by about {off:,.4g} {unit}"
        ) + " before restoration"
    out = f"; {left_out:,} more left out, since generation can't match the load" if left_out else ""
    found["models"] = f"{problem.models.size:,} to be served{out}"
    if declared.limit_ratios:
        ratios = ", ".join(f"{name} {value:g}" for name, value in declared.limit_ratios.items())
        found["limit ratios"] = f"{ratios}, and 1 for others, public by declaration"
    return found | file_words(public)


def file_words(public: PublicNetwork) -> dict[str, str]:
    """What becomes of the file that the network was read from; nothing if it came from none."""
    if public.source is None:
        return {}
    columns: dict[str, list[str]] = {}
    for fate, some, _ in lines(public.changes):
        columns.setdefault(fate, []).append(some)
    known: Any = public  # it has the source that a network has
    found = {"file": f"the release is network{network_suffix(known)}"}
    return found | {
        f"{fate} columns": "; ".join(columns[fate])
        for fate in ("dropped", "rewritten")
        if fate in columns
    }


def unusual(
    problem: ReleaseProblem, adjacency: Sequence[Adjacency], prepared: Prepared, left_out: int
) -> tuple[str, ...]:
    """What looks like a slip, a sentence each; no private value decides it."""
    found = [*_units(problem.public), *_models(problem, left_out)]
    for name, one in zip(problem.public.parameters, adjacency, strict=True):
        noise = _noise(problem, prepared, name)
        doubts = _relative_step if one.unit == RELATIVE else _step
        found += doubts(problem.public, name, one, noise)
    return tuple(found)


def _noise(problem: ReleaseProblem, prepared: Prepared, name: str) -> Floats:
    """The scale of the noise on every value of a parameter; of its logarithm for relative steps."""
    scale = prepared.entries.scale(prepared.epsilons["entries"])
    return scale[problem.public.parts[name]]


def _units(public: PublicNetwork) -> Iterator[str]:
    if "load" in public.parameters:
        return
    buses: Any = public.buses
    total = float(np.abs(buses.load[buses.in_service]).sum())
    if total > _LARGEST:
        yield (
            f"The loads add up to {total:,.0f} MW, more than the whole world's. Check the units "
            "of the case: powers are taken as MW."
        )


def _models(problem: ReleaseProblem, left_out: int) -> Iterator[str]:
    public, models = problem.public, problem.models
    sampled = models.size + left_out
    if left_out > _LEFT_OUT * sampled:
        yield (
            f"{left_out:,} of {sampled:,} sampled models were left out: generation can't match "
            "the load in them. Check the case, or give models of your own with --population."
        )
    low, high = public.with_values(public.low), public.with_values(public.high)
    unmatched = models.hopeless(low, high)
    count = int(np.broadcast_to(unmatched, (models.size,)).sum())
    if count or _unserved(public, take(models, np.arange(min(models.size, _FEW)))):
        count = _unserved(public, models)
    if count:
        yield (
            f"{count:,} of {models.size:,} models can't be served, whatever the private values "
            "are: limits and loads that are public do not allow it. Leave these models out of the "
            "population, or correct the case."
        )


def _unserved(public: PublicNetwork, models: Population) -> int:
    """How many models no private values in their public ranges serve, line limits with it.

    Private capacities and limits of units are at the end that leaves most room. A private load is
    a unit that draws what suits, between the ends of its range.
    """
    room = public.high.copy()
    if "generator_limit" in public.parts:
        start = public.parts["generator_limit"].start
        lower = slice(start, start + int(public.support["p_min"].sum()))
        room[lower] = public.low[lower]
    network = public.with_values(room)
    network = network.with_linear_costs(np.zeros(len(network.generators)))
    models = replace(models, cost=None, cost_factor=None)
    if "load" in public.parts:
        network, models = _free_loads(public, network, models)
    return int((~np.isfinite(solve_population(network, models).cost)).sum())


def _free_loads(
    public: PublicNetwork, network: Network, models: Population
) -> tuple[Network, Population]:
    """The network and models with a unit, which only draws power, for every private load."""
    at, part = np.flatnonzero(public.support["load"]), public.parts["load"]
    units, none = network.generators, np.zeros(len(at))
    more = Generators(
        name=tuple(f"load {place}" for place in at),
        bus=at,
        p_min=-public.high[part],
        p_max=-public.low[part],
        quadratic=none,
        linear=none,
        constant=none,
        points=(None,) * len(at),
        in_service=network.buses.in_service[at],
    )
    both: dict[str, Any] = {
        one.name: (*getattr(units, one.name), *getattr(more, one.name)) for one in fields(units)
    }
    drawn = np.ones((models.size, len(at))) if models.load is None else models.load[:, at]
    factors: dict[str, Any] = {}
    for name in ("p_min", "p_max"):
        own = getattr(models, name)
        own = np.ones((models.size, len(units))) if own is None else own
        factors[name] = np.hstack([own, drawn])
    rest = network.with_load(public.rest("load"))
    return replace(rest, generators=Generators(**both)), replace(models, **factors)


def _relative_step(
    public: PublicNetwork, name: str, one: Adjacency, noise: Floats
) -> Iterator[str]:
    if float(np.median(noise)) > _FACTOR_OF_TWO:
        yield (
            f"Noise on {_ENTRY[name]} is a factor of about {float(np.exp(np.median(noise))):.2g}: "
            "the release will tell next to nothing about single values. Give a smaller --alpha, "
            "as 20%, or more --epsilon."
        )
    if one.alpha < _LITTLE_SHARE:
        yield (
            f"alpha is {show_exact(100 * one.alpha)}% of each value: values further apart are "
            "hardly protected from being told apart. Give a larger --alpha, as 20%."
        )


def _step(public: PublicNetwork, name: str, one: Adjacency, noise: Floats) -> Iterator[str]:
    typical, why = _typical(public, name)
    if typical is None:
        return
    unit = PARAMETERS[name].unit
    middle = float(np.median(typical))
    share = ", a share of each value (--alpha 20%)" if unit == "MW" else ""
    if float((noise >= typical).mean()) > _MOST:
        yield (
            f"Noise of about {float(np.median(noise)):,.4g} {unit} drowns most values of {name}, "
            f"which are about {middle:,.4g} {unit} {why}: the release will tell next to nothing "
            f"about single ones. Give a smaller --alpha{share}, or more --epsilon."
        )
    if name != "cost" and float((float(one.alpha) < _LITTLE * typical).mean()) > _MOST:
        yield (
            f"alpha is {show_step(one.alpha, one.unit)}, and values of {name} are about "
            f"{middle:,.4g} {unit} {why}: such small steps hide next to nothing. Give a larger "
            f"--alpha{share}, and check its unit."
        )


def _typical(public: PublicNetwork, name: str) -> tuple[Floats | None, str]:
    """How large values of a parameter may well be, by public facts, and by which."""
    part = public.parts[name]
    low, high = public.low[part], public.high[part]
    count = len(low)
    if name == "capacity":
        voltage = public_facts(public, "branches").get("voltage")
        if voltage is not None:
            known = np.nan_to_num(np.asarray(voltage, float)[public.support["capacity"]])
            if (known > 0).all():
                return np.clip(_PER_KILOVOLT * known, low, high), "by their voltages"
        return np.sqrt(low * high), "in the middle of their range"
    if name == "cost":
        return (high - low) / 2, "at most from the middle of their range"
    if name == "reactive_load":
        return None, ""
    other, column, table = {
        "load": ("generator_limit", "p_max", public.generators),
        "generator_limit": ("load", "load", public.buses),
    }[name]
    if other in public.parameters:
        return None, ""
    on: Any = table
    sizes = np.abs(np.nan_to_num(getattr(on, column)[on.in_service], posinf=0.0))
    # Limits like 9,999 stand for units without one.
    total = float(sizes[(sizes < PLACEHOLDER) | (name != "load")].sum())
    if not total:
        return None, ""
    what = "generation" if name == "load" else "load"
    return np.full(count, total / count), f"by the {what} and their number"
