"""What a caller of `release` asked for, checked against public data before anything is charged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from gridveil.errors import InputError
from gridveil.grid.adequacy import hopeless
from gridveil.grid.checks import refuse, value_problems
from gridveil.grid.formats import module_of
from gridveil.grid.methods import Settings
from gridveil.grid.network import Network
from gridveil.grid.parameters import KINDS, Problem, summed_of
from gridveil.grid.population import Population, sample_population
from gridveil.grid.prices import highest_cost
from gridveil.grid.public import PARAMETERS, PublicNetwork
from gridveil.grid.ranges import Range, default_range
from gridveil.grid.restoring.oracle import take
from gridveil.grid.selection import Declared
from gridveil.privacy.adjacency import Adjacency
from gridveil.privacy.budget import Exact, exact
from gridveil.privacy.sealed import Limits

Method = Literal["certified", "paper", "laplace"]
METHODS = ("certified", "paper", "laplace")

MARGIN = 0.04
ROUNDS = 10
PENALTY = 3000.0
TIME_LIMIT = 60.0

_OPTIONS: dict[str, Any] = {
    **dict.fromkeys(("margin", "total_share", "published_total", "catalogue")),
    **dict.fromkeys(("rounds", "price", "penalty", "time_limit")),
    "restoration": "steps",
}
"""The options of all methods, as they are if nothing is said."""


def check_settings(parameters: tuple[str, ...], method: str, **options: Any) -> Settings:
    """The settings of `release`, or `InputError` where one makes no sense for this method."""
    if method not in METHODS:
        raise InputError(f"There is no method {method!r}.", remedy=f"Use {', '.join(METHODS)}.")
    if unknown := set(options) - set(_OPTIONS):
        raise InputError(
            f"There is no option {', '.join(sorted(unknown))}.",
            remedy=f"The options of methods: {', '.join(_OPTIONS)}.",
        )
    given = {**_OPTIONS, **options}
    summed = summed_of(KINDS[name] for name in parameters)
    _only(method == "certified" and summed is not None, given, "total_share")
    _only(method == "certified" and "load" in parameters, given, "published_total")
    _only(method == "certified" and "capacity" in parameters, given, "catalogue")
    _only(method == "certified", given, "margin")
    _only(method == "paper", given, "rounds", "price", "penalty")
    _only(given["restoration"] == "exact", given, "time_limit")
    if given["restoration"] not in ("steps", "exact"):
        raise InputError(
            f"There is no restoration {given['restoration']!r}.", remedy="Use steps or exact."
        )
    if given["restoration"] == "exact" and (method != "paper" or parameters != ("capacity",)):
        raise InputError(
            'restoration="exact" is there for the paper\'s method on capacities alone.',
            remedy='Use method="paper" with parameter="capacity", or leave restoration out.',
        )
    rounds = ROUNDS if given["rounds"] is None else given["rounds"]
    margin = MARGIN if given["margin"] is None else given["margin"]
    time_limit = TIME_LIMIT if given["time_limit"] is None else given["time_limit"]
    _within("rounds", rounds, 1, 1000)
    if rounds != int(rounds):
        raise InputError(f"rounds is {rounds}, and must be a whole number.")
    _within("margin", margin, 0.0, 0.5)
    _within("time_limit", time_limit, 0.0, 1e6)
    published, penalty = given["published_total"], given["penalty"]
    if published is not None:
        _within("published_total", published, -1e9, 1e9)
    if penalty is not None:
        _within("penalty", penalty, 0.0, 1e9)
    return Settings(
        method=method,
        rounds=int(rounds),
        penalty=None if penalty is None else float(penalty),
        restoration=given["restoration"],
        time_limit=float(time_limit),
        margin=float(margin),
        total_share=_total_share(parameters, method, given["total_share"], published),
        published_total=None if published is None else float(published),
        catalogue=_catalogue(given["catalogue"]),
    )


def _only(applies: bool, given: Mapping[str, Any], *names: str) -> None:
    for name in names:
        if given[name] is not None and not applies:
            raise InputError(
                f"{name} has no meaning for this method and parameter.", remedy=f"Leave {name} out."
            )


def _within(name: str, value: Any, least: float, most: float) -> None:
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not number or not (np.isfinite(value) and least <= value <= most):
        raise InputError(
            f"{name} is {value!r}.", remedy=f"It must be between {least:g} and {most:g}."
        )


def _total_share(
    parameters: tuple[str, ...], method: str, share: Exact | None, published: float | None
) -> Fraction:
    if published is not None and share is not None:
        raise InputError(
            "A total that is published need not be bought.", remedy="Leave total_share out."
        )
    summed = summed_of(KINDS[name] for name in parameters)
    if method != "certified" or summed is None or published is not None:
        return Fraction(0)
    if share is None:
        return summed.share
    if str(share).strip() in ("0", "0.0", "0%"):
        return Fraction(0)
    wanted = exact(share, name="total_share")
    if wanted >= 1:
        raise InputError(
            f"total_share is {str(share)[:40]}, which leaves nothing for the entries.",
            remedy=f"It must be below 1: {float(summed.share):.0%}, for example.",
        )
    return wanted


def _catalogue(given: Sequence[float] | None) -> tuple[float, ...]:
    if given is None:
        return ()
    try:
        values = np.unique(np.asarray(list(given), dtype=np.float64))
    except (TypeError, ValueError):
        values = np.zeros(0)
    if len(values) == 0 or not (np.isfinite(values).all() and (values > 0).all()):
        raise InputError(
            "A catalogue is a list of ratings in MW, all above 0.",
            remedy="For example catalogue=[105, 240, 300, 600].",
        )
    return tuple(float(value) for value in values)


def with_linear_costs(network: Network, parameters: tuple[str, ...]) -> Network:
    """The network with linear costs, where these are private.

    A curve becomes its mean slope between a unit's limits. If these are private too, one limit
    that moves would move a cost with it: two entries, where neighbours differ in one. Then a
    polynomial becomes its linear coefficient, and piecewise-linear costs are refused: that a cost
    is piecewise linear is public, and that a quadratic term is not 0 is private.
    """
    if "cost" not in parameters:
        return network
    limits = "generator_limit" in parameters
    if limits and any(points is not None for points in network.generators.points):
        raise InputError(
            "Costs and generator limits are private together, and this network has "
            "piecewise-linear costs, whose breakpoints are limits in most cases.",
            remedy="Give a network with polynomial costs.",
        )
    return network.linearised(private_limits=limits)


def check_public_values(network: Network, parameters: tuple[str, ...], said: Declared) -> None:
    """Raise if values that are not private can't be used; nothing is asked about private ones."""
    private = {name: said.chosen(network, name) for name in parameters}
    refuse(f"Network '{network.name}'", value_problems(network, private))


def ranges_of(
    network: Network, parameters: tuple[str, ...], given: Range | Mapping[str, Range] | None
) -> Mapping[str, Range]:
    """The public range of each parameter: the caller's, or one from public facts."""
    if given is None or isinstance(given, Mapping):
        known: dict[str, Range] = dict(given or {})
        missing = (name for name in parameters if name not in known)
        return {**known, **{name: default_range(network, parameters, name) for name in missing}}
    if len(parameters) > 1:
        raise InputError(
            "Several parameters are private, and limits is one range.",
            remedy='Give one for each: limits={"capacity": (1, 5000), "load": (0, 500)}.',
        )
    return {parameters[0]: given}


def neighbours(
    public: PublicNetwork, alpha: Exact | Mapping[str, Exact], *, published: bool
) -> list[Adjacency]:
    """Who counts as a neighbour, one notion a private parameter."""
    if isinstance(alpha, Mapping):
        if set(alpha) != set(public.parameters):
            raise InputError(
                f"alpha names {', '.join(map(str, alpha))}, and {', '.join(public.parameters)} is "
                "private.",
                remedy="Give an alpha for each private parameter.",
            )
        given = dict(alpha)
    else:
        units = {PARAMETERS[name][2] for name in public.parameters}
        if len(units) > 1:
            raise InputError(
                "The private parameters have different units, and there is one alpha.",
                remedy='Give one for each: alpha={"capacity": 30, "cost": 1} '
                "(--alpha capacity=30,cost=1).",
            )
        given = dict.fromkeys(public.parameters, alpha)
    found = []
    for name in public.parameters:
        part = public.parts[name]
        low, high = public.low[part], public.high[part]
        ends = Limits(float(low.min()), float(high.max())) if len(low) else public.limits[name]
        also = " (total published; two move, one up and one down)"
        found.append(
            Adjacency.of(
                name + (also if published and name == "load" else ""),
                alpha=given[name],
                unit=PARAMETERS[name][2],
                limits=ends,
                entries=part.stop - part.start,
                key=name,
            )
        )
    return found


def check_models(public: PublicNetwork, population: Population | None) -> tuple[Population, int]:
    """The population, checked against public data; sampled where none was given.

    With it, how many sampled models were left out.
    """
    if population is None:
        return sampled_models(public)
    if not isinstance(population, Population):
        raise InputError(
            f"An object of type {type(population).__name__} is no population.",
            remedy="Read one with Population.read(path, network), or make one with "
            "sample_population.",
        )
    if "cost" in public.parameters and population.cost is not None:
        raise InputError(
            "Costs are private here, and the population holds costs in $/MWh.",
            remedy="Make one with multipliers: costs=0.1 "
            "(gridveil grid population --private cost --costs 10%).",
        )
    if population.private and not set(public.parameters) <= set(population.private):
        raise InputError(
            f"The population was made for private {', '.join(population.private)}, and "
            f"{', '.join(public.parameters)} is private here.",
            remedy="Make one with the private parameters of this release.",
        )
    return population.check(public), 0


def default_models(public: PublicNetwork, size: int | None = None) -> Population:
    """The models that a release samples where its owner gives none."""
    return sampled_models(public, size)[0]


def sampled_models(public: PublicNetwork, size: int | None = None) -> tuple[Population, int]:
    """The models that a release samples, and how many of them were left out.

    Those are left out in which generation can't match the load, where both are public.
    """
    if size is None:
        size = 1000 if len(public.buses) <= 500 else 200
    models = sample_population(public, size, private=public.parameters)
    short = {problem.element for problem in models.problems(public)}
    if not short:
        return models, 0
    kept = [k for k in range(size) if f"model {k}" not in short]
    if not kept:
        raise InputError(
            "Generation is not enough for the load in any model that was sampled.",
            remedy="Give a population of your own.",
        )
    return take(models, np.array(kept)), size - len(kept)


def price_of(public: PublicNetwork, models: Population, given: Exact | None) -> Fraction:
    """The price that makes costs Lipschitz: the caller's, or the highest public cost."""
    if given is not None:
        # As a float, which is what solvers take: the constant is for the very same price.
        return Fraction(float(exact(given, name="price", unit="$/MWh")))
    return Fraction(max(highest_cost(public, models), 1.0))


def with_penalty(settings: Settings, problem: Problem) -> Settings:
    """The settings with a penalty above the price."""
    price = float(problem.price)
    if settings.penalty is None:
        return replace(settings, penalty=max(PENALTY, 10 * price))
    if not settings.penalty > price:
        raise InputError(
            f"penalty is {settings.penalty:g} $/MWh, and must be above the price of {price:g}.",
            remedy="Give more, or leave it out.",
        )
    return settings


def check_curvature(method: str, parameters: Sequence[str]) -> None:
    """Raise `InputError` where the paper's restoration can't handle what is private."""
    if method == "paper" and "cost" in parameters and len(parameters) > 1:
        raise InputError(
            "The paper's method can't release costs together with other parameters: its "
            "restoration needs costs that are convex or concave in what is private.",
            remedy='Use method="certified".',
        )


def check_together(problem: Problem, settings: Settings) -> None:
    """Raise `InputError` where settings and parameters do not go together."""
    check_curvature(settings.method, problem.public.parameters)
    if settings.restoration == "exact":
        _check_exact(problem)
    _check_generation(problem)
    low, high = problem.public.low, problem.public.high
    if settings.published_total is not None:
        part = problem.public.parts["load"]
        if not low[part].sum() <= settings.published_total <= high[part].sum():
            raise InputError(
                f"No loads in their range add up to the published total of "
                f"{settings.published_total:g} MW.",
                remedy="Check the total and the range; both are public.",
            )


def _check_generation(problem: Problem) -> None:
    """Raise where no values in the public range can serve any model.

    It asks the ends of the range, never the values: a refusal tells nothing about them.
    """
    public, models = problem.public, problem.models
    low, high = public.with_values(public.low), public.with_values(public.high)
    if hopeless(models.load, models.p_min, models.p_max, low, high).all():
        raise InputError(
            "No model can be served: generation can't match the load, wherever in their public "
            "range the private values are.",
            remedy="Check the units of the case (MW), and the range.",
        )


def _check_exact(problem: Problem) -> None:
    """The exact restoration takes linear programmes with finite limits."""
    units: Any = problem.public.generators
    if problem.models.cost is None and units.quadratic[units.in_service].any():
        raise InputError(
            'restoration="exact" needs linear costs, and some are quadratic.',
            remedy='Give a population with costs of its own, or use restoration="steps".',
        )


def check_writable(public: PublicNetwork) -> None:
    """Put public numbers in place of the private ones and make the released file of that.

    What can't be written must be known before anything is charged.
    """
    if public.source is None:
        return  # a file that is written from the model alone
    low, high = public.low, public.high
    values = (low + high) / 2
    if "generator_limit" in public.parts:
        part = public.parts["generator_limit"]
        upper = part.start + int(public.support["p_min"].sum())
        values[part.start : upper] = low[part.start : upper]
        values[upper : part.stop] = high[upper : part.stop]
    module_of(public.source.kind).write_release(public.with_values(values), None, public.parameters)
