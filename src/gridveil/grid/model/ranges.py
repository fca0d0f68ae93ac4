"""The public range of every private value."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from gridveil.errors import InputError
from gridveil.grid.model.network import Floats, Network
from gridveil.grid.model.parameters import PARAMETERS
from gridveil.privacy.sealed import Range

RangeLike = Range | tuple[float, float]

_UNLIMITED = 1e6


def check_ranges(
    parameters: tuple[str, ...], ranges: RangeLike | Mapping[str, RangeLike]
) -> dict[str, Range]:
    """The public range of each parameter.

    Raises
    ------
    InputError
        If a range is missing, is for another parameter, or can't be used.
    """
    if not isinstance(ranges, Mapping):
        if len(parameters) > 1:
            raise InputError(
                f"{' and '.join(parameters)} need a public range each.",
                remedy='Give a mapping, as in range={"capacity": (1, 5000), "load": (0, 1000)}.',
            )
        ranges = {parameters[0]: ranges}
    if set(ranges) != set(parameters):
        raise InputError(
            f"The public ranges are for {', '.join(map(str, ranges)) or 'nothing'}, and private "
            f"is {', '.join(parameters)}.",
            remedy="Give one range for each private parameter, and no other.",
        )
    found = {name: _range(ranges[name]) for name in parameters}
    if "capacity" in found and found["capacity"].low <= 0:
        raise InputError(
            f"The range of capacities starts at {found['capacity'].low:g}.",
            remedy="Give a positive lower end: a capacity of 0 would mean that there is no limit.",
        )
    return found


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
        unit = PARAMETERS[name].unit
        raise InputError(
            f"Nothing public tells how large values of {name} can be.",
            remedy=f"Name their range in {unit}, as wide as anyone would guess: "
            f'--range {name}=1:5000 (range={{"{name}": (1, 5000)}}), for example.',
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


def _range(ranges: RangeLike) -> Range:
    if isinstance(ranges, Range):
        return ranges
    try:
        low, high = ranges
        return Range(float(low), float(high))
    except (TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            "The public range of a private parameter is a pair of numbers.",
            remedy="Give it as in range=(1, 5000).",
        ) from None


def box(ranges: Range, signs: Floats) -> tuple[Floats, Floats]:
    """The lower and the upper end of every entry: the range, on the side of 0 that its sign says.

    If the whole range is on the other side, both ends are the end that is nearest to 0.
    """
    positive = signs > 0
    low = np.where(positive, min(max(ranges.low, 0.0), ranges.high), ranges.low)
    high = np.where(positive, ranges.high, max(min(ranges.high, 0.0), ranges.low))
    return low, high
