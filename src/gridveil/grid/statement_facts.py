"""What the statement of a grid release says beside what its account knows: public facts alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gridveil.grid.congestion import Congestion
from gridveil.grid.io.released_columns import CHANGED
from gridveil.grid.methods.base import Method, Outcome, Task
from gridveil.grid.model.declarations import UNLIMITED_ABOVE, Declared
from gridveil.grid.model.parameters import public_beside
from gridveil.grid.model.public_network import PublicNetwork
from gridveil.grid.model.release_problem import ReleaseProblem
from gridveil.privacy.statement import Facts, Restoration

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
