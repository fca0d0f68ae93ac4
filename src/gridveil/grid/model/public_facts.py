"""What is public of elements and of their values: facts, covariates, likely sizes, default ranges.

By facts an owner selects elements, and they may tell values: a line's reactance, its voltage and
whether it is a transformer are public, and so are the buses that a load is connected to. None of it
is made from a private value: covariates are read from a `PublicNetwork`, which has no private
column and no copy of one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gridveil.errors import InputError
from gridveil.grid.io import Source, module_of
from gridveil.grid.model.network import Floats, Network
from gridveil.grid.model.parameters import PARAMETERS

if TYPE_CHECKING:
    from gridveil.grid.model.public_network import PublicNetwork, RangeLike

Texts = NDArray[Any]

PLACEHOLDER = 9000.0
"""Ratings from here on (MW) are mostly placeholders for lines without a limit."""
_UNLIMITED = 1e6  # MW: larger limits stand for units and lines without one
# Below these an impedance or a charging counts as none (per unit).
_NO_IMPEDANCE, _NO_CHARGING = 1e-6, 1e-9
# A line carries about this many MW for each kV: 138 kV, 175 MW; 230 kV, 500 MW; 20 kV, 10 MW.
_PER_KILOVOLT = 1.0


@dataclass(frozen=True, eq=False)
class Covariates:
    """What is public of some entries.

    Parameters
    ----------
    numbers
        One row per entry, one column per fact.
    classes
        The class of every entry: its kind and its voltage.
    """

    numbers: Floats
    classes: Texts

    def __len__(self) -> int:
        return len(self.classes)

    def of(self, places: NDArray[Any]) -> Covariates:
        """Those of some entries."""
        return Covariates(self.numbers[places], self.classes[places])


def public_facts(network: Any, table: str) -> dict[str, NDArray[Any]]:
    """What is public of every element: nothing that is or was made from a private value.

    It takes a `Network`, or a `PublicNetwork`: both have the columns that are read.
    """
    names = np.array(network.buses.name, dtype=object)
    found: dict[str, NDArray[Any]] = {"name": np.array(getattr(network, table).name, dtype=object)}
    buses = _of_buses(network)
    if table == "branches":
        lines = network.branches
        ends = lines.from_bus, lines.to_bus
        found |= {"from": names[ends[0]], "to": names[ends[1]]}
        changes = (lines.tap != 1) | (lines.shift != 0)
        if "voltage" in buses:
            one, other = (buses["voltage"][end] for end in ends)
            # A transformer by its higher side.
            found["voltage"] = np.maximum(one, other)
            changes = changes | (one != other)
        found["kind"] = np.where(changes, "transformer", "line").astype(object)
        return found
    if table == "generators":
        place = network.generators.bus
        return found | {"bus": names[place]} | {name: one[place] for name, one in buses.items()}
    return found | buses


def _of_buses(network: Any) -> dict[str, NDArray[Any]]:
    """Voltages (kV), areas and zones, if the source of the network has them."""
    source = network.source
    if not isinstance(source, Source):
        return {}
    found = module_of(source.kind).bus_facts(source.data)
    return {name: one for name, one in found.items() if len(one) == len(network.buses)}


def covariates(public: PublicNetwork, parameter: str) -> Covariates:
    """What is public of the entries of a parameter, in their order in the private vector."""
    kind = PARAMETERS[parameter]
    make = {"branches": _branches, "buses": _buses, "generators": _generators}[kind.table]
    numbers, classes = make(public)
    return Covariates(
        np.concatenate([numbers[public.support[column]] for column in kind.columns]),
        np.concatenate([classes[public.support[column]] for column in kind.columns]),
    )


def _branches(public: PublicNetwork) -> tuple[Floats, Texts]:
    """Kind, voltages, impedance, resistance beside reactance, and charging."""
    lines: Any = public.branches
    facts = public_facts(public, "branches")
    transformer = (facts["kind"] == "transformer").astype(np.float64)
    one, other = (_voltage(public)[end] for end in (lines.from_bus, lines.to_bus))
    reactance = np.maximum(np.abs(lines.reactance), _NO_IMPEDANCE)
    resistance = np.maximum(np.abs(lines.resistance), _NO_IMPEDANCE)
    charging = _charging(public)
    charged = charging > _NO_CHARGING
    numbers = [
        transformer,
        _log(np.minimum(one, other)),
        _log(np.maximum(one, other)),
        np.log(np.hypot(reactance, resistance)),
        np.log(resistance / reactance),
        np.where(charged, np.log(np.where(charged, charging, 1.0)), 0.0),
        charged.astype(np.float64),
    ]
    names = [
        f"{kind} {min(ends):g}-{max(ends):g}"
        for kind, ends in zip(facts["kind"], zip(one, other, strict=True), strict=True)
    ]
    return np.column_stack(numbers), np.array(names, dtype=object)


def _buses(public: PublicNetwork) -> tuple[Floats, Texts]:
    """Voltage, how many branches end at a bus and how well they conduct, and its generation."""
    lines: Any = public.branches
    units: Any = public.generators
    count = len(public.buses)
    on = np.asarray(lines.in_service, dtype=bool)
    ends = np.concatenate([lines.from_bus[on], lines.to_bus[on]])
    conducts = 1 / np.maximum(np.abs(lines.reactance[on]), _NO_IMPEDANCE)
    degree = np.bincount(ends, minlength=count)
    strength = _sums(ends, np.tile(conducts, 2), count)
    numbers = [_log(_voltage(public)), np.log1p(degree), np.log1p(strength)]
    running = np.asarray(units.in_service, dtype=bool)
    numbers.append(np.log1p(np.bincount(units.bus[running], minlength=count)))
    if "generator_limit" not in public.parameters:
        most = np.abs(units.p_max[running])
        numbers.append(_sized(_sums(units.bus[running], most, count)))
    if "capacity" not in public.parameters:
        rated = np.where(np.isfinite(lines.capacity[on]), lines.capacity[on], 0.0)
        numbers.append(_sized(_sums(ends, np.tile(rated, 2), count)))
    names = [f"{one:g} kV" for one in _voltage(public)]
    return np.column_stack(numbers), np.array(names, dtype=object)


def _sums(places: Any, weights: Any, count: int) -> Floats:
    """The sum of the weights at each of ``count`` places."""
    return np.asarray(np.bincount(places, weights, minlength=count), dtype=np.float64)


def _generators(public: PublicNetwork) -> tuple[Floats, Texts]:
    """Voltage, how many units share the bus, and the cost of a MWh, if it is public."""
    units: Any = public.generators
    voltage = _voltage(public)[units.bus]
    shared = np.bincount(units.bus, minlength=len(public.buses))[units.bus]
    numbers = [_log(voltage), np.log1p(shared)]
    names = np.array([f"{one:g} kV" for one in voltage], dtype=object)
    if "cost" not in public.parameters:
        curve = np.array([points is not None for points in units.points])
        numbers += [units.linear, units.quadratic, curve.astype(np.float64)]
        kinds, which = np.unique(units.linear, return_inverse=True)
        if len(kinds) <= len(units) // 4:
            # Units of one kind have one cost.
            names = np.array([f"cost class {place}" for place in which], dtype=object)
    return np.column_stack(numbers), names


def _voltage(public: PublicNetwork) -> Floats:
    """Voltages of the buses in kV; all 1 if the source does not tell."""
    known = public_facts(public, "buses").get("voltage")
    if known is None:
        return np.ones(len(public.buses))
    return np.nan_to_num(np.asarray(known, dtype=np.float64), nan=1.0)


def _charging(public: PublicNetwork) -> Floats:
    """Charging susceptance of the branches, per unit; 0 in other formats than MATPOWER."""
    source = public.source
    if isinstance(source, Source) and source.kind == "matpower":
        charging: Floats = np.abs(public.branches.charging)
        return charging
    return np.zeros(len(public.branches))


def _log(values: Floats) -> Floats:
    return np.log(np.maximum(values, 1e-3))


def _sized(powers: Floats) -> Floats:
    """Logarithms of powers over their mean, that of 0 being 0: the same in MW and in kW."""
    return np.log1p(powers / max(float(powers.mean()), 1e-300))


def likely_sizes(public: PublicNetwork, name: str) -> tuple[Floats | None, str]:
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
