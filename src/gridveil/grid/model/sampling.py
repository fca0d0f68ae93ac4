"""Sample populations around a network, and choose the models of a release that was given none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridveil.errors import InputError, wrong_type
from gridveil.grid.io import Source, module_of
from gridveil.grid.model.declarations import Declared
from gridveil.grid.model.network import Network
from gridveil.grid.model.parameters import PARAMETERS, check_parameters
from gridveil.grid.model.population import TABLE, Population, take, values_of_private
from gridveil.grid.model.public_network import PublicNetwork

Floats = NDArray[np.float64]
SAMPLED = (1000, 200)  # models if none are given, on up to 500 buses and on more


def sample_population(
    network: Network | PublicNetwork,
    size: int,
    *,
    spread: float = 0.125,
    costs: tuple[float, float] | float | None = 0.125,
    seed: int = 0,
    private: str | Sequence[str] = "capacity",
) -> Population:
    """Sample models around a network; no value of the network is looked at.

    If several snapshots of its file were read, models are sampled around these, each as often as
    the others. They are multipliers for the network as it was read, with the same snapshots.

    Parameters
    ----------
    network
        The network, for its numbers of elements.
    size
        How many models.
    spread
        Loads and generator limits are multiplied by uniform factors in ``1 - spread`` to
        ``1 + spread``: one for each bus and for each generator (both limits alike) in every model.
    costs
        A number: the network's costs, multiplied by uniform factors with that spread. A pair:
        linear costs, uniform between the two ends in $/MWh, in place of the network's (the paper's
        are 80 and 100). None: the network's costs.
    seed
        Seed of the public sample. It hides nothing.
    private
        The parameters that will be private: a name, a text with commas or a sequence of names.
        Their values can't be sampled, only multipliers of them.

    Raises
    ------
    InputError
        If a number makes no sense, or values of a private parameter are asked for, or snapshots
        tell them.
    """
    models = _count(size, 1, "A population needs 1 model or more, not {}.")
    rng = np.random.default_rng(_count(seed, 0, "A seed is a whole number of 0 or more, not {}."))
    hidden = check_parameters(private)
    _check_spread(spread, "spread")

    def around(width: float, table: str) -> Floats:
        return rng.uniform(1 - width, 1 + width, (models, len(getattr(network, table))))

    load = around(spread, "buses")
    limits = around(spread, "generators")
    cost = factor = None
    if isinstance(costs, tuple | list):
        if "cost" in hidden:
            raise values_of_private()
        cost = rng.uniform(*_ends(costs), (models, len(network.generators)))
    elif costs is not None:
        _check_spread(costs, "costs")
        factor = around(costs, "generators")
    costs_of: dict[str, Floats | None] = {"cost": cost, "cost_factor": factor}
    made = Population(models, load=load, p_min=limits, p_max=limits, private=hidden, **costs_of)
    try:
        own = own_models(network)
    except InputError:
        # That a private parameter has series is public; why they can't be models is not.
        _check_told(network, hidden)
        raise
    return made if own is None else _around(own, made, network)


def _check_told(network: Network | PublicNetwork, private: tuple[str, ...]) -> None:
    """Raise if the models of a network's file tell private values."""
    if isinstance(source := network.source, Source) and isinstance(network, Network):
        Declared().source(source, private, {})


def _around(own: Population, made: Population, network: Network | PublicNetwork) -> Population:
    """Sampled multipliers of the models that a network's file has itself, of each in turn."""
    _check_told(network, made.private)
    rows = np.arange(made.size) * own.size // made.size
    arrays = made.arrays()
    for name, array in own.arrays().items():
        if not (name == "cost_factor" and made.cost is not None):  # whose costs are others
            arrays[name] = array[rows] * arrays.get(name, 1.0)
    return Population(made.size, private=made.private, **arrays)


def sample_like(
    population: Population, network: Network | PublicNetwork, size: int, *, seed: int
) -> Population:
    """Sample other models like those of a population: uniform between the ends of each array.

    If the models are snapshots of the network's file, what goes together in them stays together:
    other ones are mixtures of two, at random.
    """
    rng = np.random.default_rng(_count(seed, 0, "A seed is a whole number of 0 or more, not {}."))
    models = _count(size, 1, "A population needs 1 model or more, not {}.")
    arrays = {}
    if own_models(network) is not None:
        first, second = rng.integers(population.size, size=(2, models))
        share = rng.uniform(size=(models, 1))
        for name, array in population.arrays().items():
            arrays[name] = share * array[first] + (1 - share) * array[second]
        return Population(models, private=population.private, **arrays)
    for name, array in population.arrays().items():
        shape = (models, len(getattr(network, TABLE[name])))
        arrays[name] = rng.uniform(*_span(array), shape)
    if "p_min" in arrays and "p_max" in arrays:
        # Drawn apart, a lower limit could be above the upper one.
        arrays["p_min"] = arrays["p_max"]
    return Population(models, private=population.private, **arrays)


def _span(array: Floats) -> tuple[float, float]:
    return (float(array.min()), float(array.max())) if array.size else (1.0, 1.0)


def _count(value: Any, least: int, message: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InputError(message.format(repr(value)), remedy=f"Give a whole number from {least}.")
    return int(value)


def _check_spread(spread: Any, name: str) -> None:
    if not (isinstance(spread, int | float | np.number) and 0 <= spread <= 1):
        raise InputError(
            f"{name} is a share between 0 and 1, not {spread!r}.", remedy="Give 0.125, for example."
        )


def _ends(costs: Sequence[Any]) -> tuple[float, float]:
    try:
        low, high = (float(end) for end in costs)
    except (TypeError, ValueError):
        low, high = 1.0, 0.0
    if not (np.isfinite([low, high]).all() and low <= high):
        raise InputError(
            f"costs are two ends in $/MWh, the lower one first, not {costs!r}.",
            remedy="Give 80 and 100, for example.",
        )
    return low, high


def check_models(public: PublicNetwork, population: Population | None) -> tuple[Population, int]:
    """The population, checked against public data; sampled if none was given.

    With it, how many sampled models were left out.
    """
    if population is None:
        return sampled_models(public)
    if not isinstance(population, Population):
        raise wrong_type(
            "Population",
            population,
            remedy="Read one with Population.read(path, network), or make one with "
            "sample_population.",
        )
    if "cost" in public.parameters and population.cost is not None:
        raise InputError(
            "Costs are private here, and the population holds costs in $/MWh.",
            remedy="Make one with multipliers: costs=0.1 "
            "(gridveil grid population --private cost --costs 10%).",
        )
    # Parts have the multipliers of their wholes.
    wholes = {PARAMETERS[name].beside or name for name in public.parameters}
    if population.private and not wholes <= set(population.private):
        raise InputError(
            f"The population was made for private {', '.join(population.private)}, and "
            f"{', '.join(public.parameters)} is private here.",
            remedy="Make one with the private parameters of this release.",
        )
    return population.check(public), 0


def default_models(public: PublicNetwork, size: int | None = None) -> Population:
    """The models that a release samples if its owner gives none."""
    return sampled_models(public, size)[0]


def sampled_models(public: PublicNetwork, size: int | None = None) -> tuple[Population, int]:
    """The models of a release for which none are given, and how many of them were left out.

    They are those that the network's file has itself (snapshots), else sampled. Left out are those
    in which generation can't match the load, if both are public.
    """
    models = own_models(public)
    if models is None:
        size = SAMPLED[len(public.buses) > 500] if size is None else size
        models = sample_population(public, size, private=public.parameters)
    short = {problem.element for problem in models.problems(public)}
    if not short:
        return models, 0
    kept = [k for k in range(models.size) if f"model {k}" not in short]
    if not kept:
        raise InputError(
            "Generation is not enough for the load in any of the models.",
            remedy="Give a population of your own.",
        )
    return take(models, np.array(kept)), models.size - len(kept)


def own_models(network: Network | PublicNetwork) -> Population | None:
    """The models that the file of a network has itself: several snapshots that were read."""
    source = network.source
    if not isinstance(source, Source):
        return None
    arrays, own = source.models, getattr(module_of(source.kind), "models", None)
    if arrays is None and (own is None or (arrays := own(source.data)) is None):
        return None
    private = network.parameters if isinstance(network, PublicNetwork) else ("capacity",)
    size = len(next(iter(arrays.values()))) if arrays else 1
    return Population(size, private=private, **arrays)
