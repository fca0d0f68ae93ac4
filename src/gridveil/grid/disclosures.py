"""What a release of a network says of itself: before it is charged, and in its statement.

A plan says what it takes for granted and what is unusual about it. Public facts alone decide both:
topology, voltages, what is not private, ranges and the guarantee; no private value is compared with
anything. The statement says, beside what its account knows, the settings and the limitations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from fractions import Fraction
from typing import Any

import numpy as np

from gridveil.errors import show_exact
from gridveil.grid.congestion import Congestion
from gridveil.grid.io import network_suffix
from gridveil.grid.io.released_columns import CHANGED, lines
from gridveil.grid.methods.base import Method, Outcome, Prepared, Task
from gridveil.grid.model.declarations import UNLIMITED_ABOVE, Declared
from gridveil.grid.model.likely_sizes import likely_sizes
from gridveil.grid.model.network import Floats, Generators, Network
from gridveil.grid.model.parameters import PARAMETERS, public_beside
from gridveil.grid.model.population import Population, take
from gridveil.grid.model.public_network import PublicNetwork
from gridveil.grid.model.release_problem import ReleaseProblem
from gridveil.grid.opf.engine import solve_population
from gridveil.privacy.adjacency import RELATIVE, Adjacency
from gridveil.privacy.guarantee_words import neighbour_json, show_far, show_step
from gridveil.privacy.statement import Facts, Restoration

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
        unit, part = PARAMETERS[name].unit, declared.protects(name)
        found[f"private {name}"] = (
            f"{one.entries:,} value{'s' * (one.entries != 1)}"
            f"{f' ({part} alone; the rest is public)' if part else ''} in "
            f"{unit}, each protected by {show_far(neighbour_json(one, Fraction(1)))}; values "
            f"outside {one.range} count as the nearer end"
        )
        found[f"accuracy of {name}"] = _accuracy(name, _noise(problem, prepared, name), one)
    out = f"; {left_out:,} more left out, since generation can't match the load" if left_out else ""
    found["models"] = f"{problem.models.size:,} to be served{out}"
    if declared.limit_ratios:
        ratios = ", ".join(f"{name} {value:g}" for name, value in declared.limit_ratios.items())
        found["limit ratios"] = f"{ratios}, and 1 for others, public by declaration"
    return found | file_words(public)


def _accuracy(name: str, noise: Floats, one: Adjacency) -> str:
    """How far single values are off by their noise, from the least to the most."""
    share = one.unit == RELATIVE
    ends = 100 * np.expm1(noise) if share else noise
    words = (f"{end:,.{3 if share else 4}g}" for end in (ends.min(), ends.max()))
    off = " to ".join(dict.fromkeys(words)) + ("%" if share else f" {PARAMETERS[name].unit}")
    return f"a single value of {name} is off by about {off} before restoration"


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
    typical, why = likely_sizes(public, name)
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


KIND = "grid parameters"

_LIMITATIONS = (
    "Topology, places and impedances are public, and tell about ratings what epsilon does not "
    "bound: a standard type of line or transformer can be looked up from its impedance.",
    "Values that come from a short public list (standard ratings) can be guessed from noisy ones "
    "where alpha is below the spacing of the list: choose alpha above it.",
    "Models of the population that ran on the real network are evidence about it, outside epsilon.",
    "Outputs of units that can't be dispatched are published as the file has them: where they come "
    "from a dispatch of the real network they are evidence about it, outside epsilon.",
    "Voltage set points and limits, shunts and taps are published as the file has them: if they "
    "were computed from private values, these can be worked out.",
)
_OF_PARAMETERS = {
    "capacity": "Impedances that the file gives on ratings are published with three digits, which "
    "leaves fewer ratings possible than there were; impedances that were computed from ratings "
    "before they came into the file are published as they are. Reactance and charging of a line "
    "together tell how many circuits of a known type it has.",
    "load": "Limits of loads that can be dispatched are published with those of the generators.",
    "generator_limit": "Limits that follow from one number (of a unit whose output is fixed, or of "
    "a nominal power) move together: a change of that number is one of several entries.",
}
_SLOPES = (
    "Released costs are linear, one slope per unit: a cost curve is replaced by its mean slope "
    "between the limits of its unit, and constants are replaced by 0."
)
_COEFFICIENTS = (
    "Released costs are linear, one slope per unit: since generator limits are private too, a "
    "polynomial cost is replaced by its linear coefficient, and its quadratic term and constant "
    "by 0."
)
_PLACEHOLDERS = (
    "Which lines have a rating of at least {} MW is public, by their owner's declaration: these "
    "are placeholders, released as lines without a limit."
)
_DISPATCH = (
    "Set points of units are those of the file, by their owner's declaration: if they come from a "
    "dispatch of the real network, capacities of lines that were full can be worked out from them."
)
_RATIOS = (
    "Further limits of a line (durations, sides, ratings) are its released capacity times public "
    "ratios, by their owner's declaration: {}; 1 for all others."
)
_CURVES = (
    "Breakpoints and slopes of piecewise-linear costs were declared public: limits that they were "
    "made from can be worked out from them."
)


def facts(
    task: Task,
    outcome: Outcome,
    decimals: Mapping[str, int],
    seen: Congestion | None,
    declared: Declared,
    left_out: int,
) -> Facts:
    """What the statement says of a release, beside what its account knows."""
    problem, options = task.problem, task.options
    public, models = problem.public, problem.models
    what = ", ".join(public.parameters)
    # The owner's name for the data: that of a case may tell about it.
    name = public.name if task.account.charge is None else task.account.charge.dataset
    known: dict[str, Any] = {
        "parameters": list(public.parameters),
        "ranges": {name: [one.low, one.high] for name, one in public.ranges.items()},
        "models": models.size,
        "models_left_out": left_out,
        "decimals": dict(decimals),
        CHANGED: [one.to_json() for one in public.changes],
        **options.settings(),
    }
    if "capacity" in public.parameters:
        # Always both, so that nothing about the values shows in which settings there are.
        noise = None if seen is None else seen.noise
        known["cost_of_released_limits"] = None if seen is None else seen.cost
        known["cost_of_noise_alone"] = None if noise is None else list(noise)
    clear = public_beside(public.parameters)
    limitations = [*_LIMITATIONS, *(_OF_PARAMETERS.get(name, "") for name in public.parameters)]
    if "cost" in public.parameters:
        limits = "generator_limit" in public.parameters
        limitations.append(_COEFFICIENTS if limits else _SLOPES)
    if seen is not None and seen.doubtful:
        limitations.insert(0, seen.words)
    if options.known_total is not None:
        clear.append("total load")
    if declared.only:
        known["only"] = dict(declared.only)
    if declared.unlimited_above is not None:
        known[UNLIMITED_ABOVE] = declared.unlimited_above
        limitations.append(_PLACEHOLDERS.format(f"{declared.unlimited_above:.10g}"))
    if declared.public_dispatch:
        known["public_dispatch"] = True
        clear.append("set points of units")
        limitations.append(_DISPATCH)
    if declared.limit_ratios:
        known["limit_ratios"] = dict(declared.limit_ratios)
        clear.append("ratios of limits")
        said = (f"{name} {ratio:.10g}" for name, ratio in declared.limit_ratios.items())
        limitations.append(_RATIOS.format(", ".join(said)))
    if "load" in public.parameters and "reactive_load" not in public.parameters:
        known["power_factor"] = declared.power_factor
    clear += declared.published(public.parameters)
    if "generator_limit" in public.parameters and declared.public_curves:
        clear.append("breakpoints and slopes of cost curves")
        limitations.append(_CURVES)
    return Facts(
        kind=KIND,
        method=options.method,
        summary=f"{what} of network {name}: {public.entries:,} entries, with "
        f"{models.size:,} models",
        settings={**known, **outcome.facts},
        public_inputs=[
            "topology, reactances and everything else of the network but what is private",
            f"which entries of {what} are there (not 0, or limited), and their signs",
            *_protected(public, declared),
            f"the population: {models.size:,} models",
        ],
        published_in_clear=[*clear, "topology and impedances", "the population"],
        restoration=None
        if outcome.solver is None
        else Restoration(solver=outcome.solver, gap=outcome.gap),
        limitations=[line for line in limitations if line],
        adjacency=_adjacency(problem, options),
    )


def _protected(public: PublicNetwork, declared: Declared) -> list[str]:
    """What is protected of the parameters that are not protected as a whole."""
    parts = ((name, declared.protects(name)) for name in public.parameters)
    return [
        f"{name} is protected for {part} alone, by its owner's declaration; the rest is public"
        for name, part in parts
        if part
    ]


def _adjacency(problem: ReleaseProblem, options: Method) -> str:
    public, words = problem.public, []
    if problem.steps:
        words.append(
            f"Steps of {', '.join(sorted(problem.steps))} differ by public class: an entry is in "
            "the first class that fits it, and the alpha that is counted is the smallest."
        )
    if problem.relative:
        words.append(
            f"alpha of {', '.join(sorted(problem.relative))} is relative: the larger of the two "
            "values is at most 1 + alpha times the smaller."
        )
    if options.known_total is not None:
        words.append(
            "The total load is public: loads differ in two entries, one up and one down by as much."
        )
    if "reactive_load" in public.parameters:
        words.append(
            "Active and reactive power of a load are two entries, with an alpha each: of one load "
            "with both at once it is twice epsilon."
        )
    if "generator_limit" in public.parameters:
        words.append("In neither is a lower limit above its upper one.")
    return " ".join(words)
