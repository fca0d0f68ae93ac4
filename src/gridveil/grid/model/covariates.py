"""What is public of the entries of a parameter and may tell their values, as numbers: covariates.

A line's reactance, its voltage and whether it is a transformer are public, and so are the buses
that a load is connected to. None of it is made from a private value: covariates are read from a
`PublicNetwork`, which has no private column and no copy of one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gridveil.grid.io import Source
from gridveil.grid.model.network import Floats
from gridveil.grid.model.parameters import PARAMETERS
from gridveil.grid.model.public_facts import public_facts

if TYPE_CHECKING:
    from gridveil.grid.model.public_network import PublicNetwork

Texts = NDArray[Any]

# Below these an impedance or a charging counts as none (per unit).
_NO_IMPEDANCE, _NO_CHARGING = 1e-6, 1e-9


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
