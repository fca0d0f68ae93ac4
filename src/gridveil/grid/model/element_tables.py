"""The tables of a network: buses, generators, branches.

Arrays, one entry an element, in the order of the source. Names are those of the source. Units are
MW, Mvar, $/h and degrees; impedances and voltages are per unit on ``base_mva``. Elements that are
out of service stay in the tables (so that a round trip loses nothing) and are left out of every
computation.

Columns that AC power flow needs beside those of DC have a neutral value (`neutral`), which they
have wherever none is given.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gridveil.errors import InputError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

_TYPES: dict[str, type] = {"Floats": np.float64, "Ints": np.int64, "Bools": np.bool_}


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of one length, which can't be changed."""

    name: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", tuple(str(name) for name in self.name))
        for column in dataclasses.fields(self)[1:]:
            given = getattr(self, column.name)
            if given is None:
                given = np.full(len(self.name), column.metadata["neutral"])
            values = _frozen(given, str(column.type), column.name)
            if len(values) != len(self.name):
                raise InputError(
                    f"{type(self).__name__} have {len(self.name)} names and {len(values)} "
                    f"entries of {column.name}.",
                    remedy="Give one entry for each name.",
                )
            object.__setattr__(self, column.name, values)

    def __len__(self) -> int:
        return len(self.name)


def neutral(value: float | bool) -> Any:
    """A column that may be left out: it has this value then."""
    return field(default=None, metadata={"neutral": value})


def _frozen(values: Any, kind: str, column: str) -> Any:
    if kind not in _TYPES:
        return tuple(None if v is None else _frozen(v, "Floats", column) for v in values)
    try:
        array: NDArray[Any] = np.array(values, dtype=_TYPES[kind])
    except (TypeError, ValueError):
        # Not numpy's own error: its message quotes the value, which may be private.
        raise InputError(f"The values of {column} are not all numbers.") from None
    array.setflags(write=False)
    return array


def as_floats(values: ArrayLike, column: str) -> Floats:
    """A read-only copy of an array of numbers; the error where they are none quotes no value."""
    array: Floats = _frozen(values, "Floats", column)
    return array


@dataclass(frozen=True, eq=False)
class Buses(Table):
    """Nodes of the network.

    Parameters
    ----------
    name
        One unique name per bus, as in the source.
    load
        Active load in MW; may be negative. Shunt conductance at 1 p.u. is in ``shunt``.
    shunt
        Active power drawn by shunts at nominal voltage, MW.
    reference
        Which bus has angle 0 (one in every island).
    in_service
        False for isolated buses.
    reactive_load
        Mvar.
    reactive_shunt
        Reactive power injected by shunts at nominal voltage, Mvar.
    v_min, v_max
        Limits of the voltage, per unit.
    fixed_load
        The part of `shunt` that is drawn at any voltage, as by batteries and DC lines, MW.
    fixed_reactive_load
        Reactive power that such elements draw at any voltage, Mvar.
    q_min, q_max
        Limits of the reactive power that compensators and converters inject, Mvar; infinite if
        there are none.
    ac_shunt
        Active power drawn at nominal voltage in AC beside `shunt`, MW: that of shunts which the DC
        model of the format leaves out.
    """

    load: Floats
    shunt: Floats
    reference: Bools
    in_service: Bools
    reactive_load: Floats = neutral(0.0)
    reactive_shunt: Floats = neutral(0.0)
    v_min: Floats = neutral(0.9)
    v_max: Floats = neutral(1.1)
    fixed_load: Floats = neutral(0.0)
    fixed_reactive_load: Floats = neutral(0.0)
    q_min: Floats = neutral(0.0)
    q_max: Floats = neutral(0.0)
    ac_shunt: Floats = neutral(0.0)


@dataclass(frozen=True, eq=False)
class Generators(Table):
    """Units that inject power, dispatchable loads (``p_min < 0``) included.

    Parameters
    ----------
    name
        One unique name per unit.
    bus
        Place of its bus in the bus table.
    p_min, p_max
        Limits in MW.
    in_service
        Whether it takes part.
    quadratic, linear, constant
        Polynomial cost ``quadratic p^2 + linear p + constant`` in $/h; zero where `points` says.
    points
        Piecewise-linear cost: for each unit None, or an array of breakpoints ``(MW, $/h)``.
    q_min, q_max
        Limits of reactive power in Mvar; infinite if there are none.
    """

    bus: Ints
    p_min: Floats
    p_max: Floats
    in_service: Bools
    quadratic: Floats
    linear: Floats
    constant: Floats
    points: tuple[Floats | None, ...]
    q_min: Floats = neutral(-np.inf)
    q_max: Floats = neutral(np.inf)

    def with_slopes(self, linear: Floats, which: Bools) -> Generators:
        """The units with linear costs alone ($/MWh) where `which` says so."""
        curves = zip(which, self.points, strict=True)
        return replace(
            self,
            quadratic=np.where(which, 0.0, self.quadratic),
            linear=np.where(which, linear, self.linear),
            constant=np.where(which, 0.0, self.constant),
            points=tuple(None if take else own for take, own in curves),
        )


@dataclass(frozen=True, eq=False)
class Branches(Table):
    """Lines and transformers; parallel ones are separate entries.

    Parameters
    ----------
    name
        One unique name per branch.
    from_bus, to_bus
        Places of its ends in the bus table.
    resistance, reactance
        Per unit.
    tap
        Off-nominal ratio; 1 for a line.
    shift
        Phase shift in degrees.
    capacity
        Limit of the power at either end; infinite if there is none. It limits active power (MW)
        in DC and apparent power (MVA) in AC.
    angle_min, angle_max
        Limits of the angle difference in degrees; infinite if there are none.
    in_service
        Whether it takes part.
    charging, conductance
        Susceptance and conductance to ground of the whole branch, half of it at either end, per
        unit.
    charging_from, conductance_from, charging_to, conductance_to
        What there is of these at one end alone; all of it is behind the tap, as the impedance is.
    t_model
        Whether `charging` and `conductance` are between two halves of the impedance in AC, instead
        of half at either end. DC has the impedance alone.
    tap_at_end
        Whether the tap is at the second end in AC, and the impedance at the first.
    """

    from_bus: Ints
    to_bus: Ints
    resistance: Floats
    reactance: Floats
    tap: Floats
    shift: Floats
    capacity: Floats
    angle_min: Floats
    angle_max: Floats
    in_service: Bools
    charging: Floats = neutral(0.0)
    conductance: Floats = neutral(0.0)
    charging_from: Floats = neutral(0.0)
    conductance_from: Floats = neutral(0.0)
    charging_to: Floats = neutral(0.0)
    conductance_to: Floats = neutral(0.0)
    t_model: Bools = neutral(False)
    tap_at_end: Bools = neutral(False)


@dataclass(frozen=True)
class Branch:
    """One line or transformer: its ends, and numbers per unit, before it is in the table.

    `at_start` and `at_end` are admittances to ground at either end, behind the tap.
    """

    start: int
    end: int
    on: bool
    series: complex
    tap: float = 1.0
    shift: float = 0.0
    at_start: complex = 0.0
    at_end: complex = 0.0
    charging: float = 0.0
    capacity: float = np.inf


def branch_table(rows: Sequence[Branch], names: Sequence[str]) -> Branches:
    """Make the table of some branches, without limits of angles."""

    def column(name: str, kind: type = float) -> Any:
        return np.array([getattr(one, name) for one in rows], dtype=kind)

    series, start, end = (column(name, complex) for name in ("series", "at_start", "at_end"))
    return Branches(
        name=tuple(names),
        from_bus=column("start", np.int64),
        to_bus=column("end", np.int64),
        resistance=series.real,
        reactance=series.imag,
        tap=column("tap"),
        shift=column("shift"),
        capacity=column("capacity"),
        angle_min=np.full(len(rows), -np.inf),
        angle_max=np.full(len(rows), np.inf),
        in_service=column("on", np.bool_),
        charging=column("charging"),
        conductance_from=start.real,
        charging_from=start.imag,
        conductance_to=end.real,
        charging_to=end.imag,
    )


FREE_VOLTAGE = (0.5, 1.5)
"""Limits of the voltage where no equipment needs any: stars of transformers, far ends of lines."""

IMPEDANCES = (
    *("resistance", "reactance", "charging", "conductance"),
    *("charging_from", "conductance_from", "charging_to", "conductance_to"),
)
"""The columns of branches that are impedances and admittances."""
