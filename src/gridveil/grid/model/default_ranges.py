"""Public ranges of parameters for which the owner names none, from public facts of the network."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from gridveil.errors import InputError
from gridveil.grid.model.network import Network
from gridveil.grid.model.parameters import PARAMETERS

if TYPE_CHECKING:
    from gridveil.grid.model.public_network import RangeLike

_UNLIMITED = 1e6  # MW: larger limits stand for units and lines without one


def ranges_of(
    network: Network, parameters: tuple[str, ...], given: RangeLike | Mapping[str, RangeLike] | None
) -> Mapping[str, RangeLike]:
    """The public range of each parameter: the caller's, or one from public facts."""
    if given is None or isinstance(given, Mapping):
        known: dict[str, RangeLike] = dict(given or {})
        missing = (name for name in parameters if name not in known)
        return {**known, **{name: default_range(network, parameters, name) for name in missing}}
    if len(parameters) > 1:
        raise InputError(
            "Several parameters are private, and range is one pair.",
            remedy='Give one for each: range={"capacity": (1, 5000), "load": (0, 500)}.',
        )
    return {parameters[0]: given}


def default_range(network: Network, parameters: tuple[str, ...], name: str) -> RangeLike:
    """A generous range for a parameter, from what is public of the network.

    - capacity: up to twice the total load or generation (more can't flow on a line), down to
      1 MW or a ten-thousandth of that total, whichever is less;
    - load, and reactive load in Mvar: up to the generation in service, or what all lines carry,
      either way;
    - generator limits: up to ten times the total load, or what all lines carry, either way;
    - cost: -1,000 to 1,000 $/MWh.

    Raises
    ------
    InputError
        If none of it is public, so that the owner must name a range.
    """
    if name == "cost":
        return -1000.0, 1000.0
    load, generation, lines = _public_sizes(network, parameters)
    known = {
        "capacity": 2 * max(load, generation),
        "load": generation or lines,
        "reactive_load": generation or lines,
        "generator_limit": 10 * (load or lines),
    }[name]
    if not known:
        unit, low = PARAMETERS[name].unit, 1 if name == "capacity" else 0
        raise InputError(
            f"Nothing public tells how large values of {name} can be.",
            remedy=f"Name their range in {unit}, as wide as anyone would guess: "
            f'--range {name}={low}:5000 (range={{"{name}": ({low}, 5000)}}), for example.',
        )
    high = _round_number(known)
    if name == "capacity":
        return min(1.0, 10.0 ** math.floor(math.log10(known / 20_000))), high
    return -high, high


def _public_sizes(network: Network, parameters: tuple[str, ...]) -> tuple[float, float, float]:
    """Total load, generation and line capacity in MW: each 0 if it is private or unknown."""
    load = generation = lines = 0.0
    if "load" not in parameters:
        on = network.buses.in_service
        load = float(np.abs(network.buses.load[on]).sum())
    if "generator_limit" not in parameters:
        units = network.generators
        most = np.abs(units.p_max[units.in_service])
        # Larger ones stand for units without a limit.
        generation = float(most[most < _UNLIMITED].sum())
    if "capacity" not in parameters:
        rated = network.branches.capacity[network.branches.in_service]
        lines = float(rated[rated < _UNLIMITED].sum())
    return load, generation, lines


def _round_number(value: float) -> float:
    """The next of 1, 2, 5, 10, 20, ... that is not below a number."""
    ten = 10.0 ** math.floor(math.log10(value))
    return float(next(ten * digit for digit in (1, 2, 5, 10) if value <= ten * digit * (1 + 1e-12)))
