"""One immutable model of a network: buses, generators, branches, costs.

Arrays, one entry an element, in the order of the source. Names are those of the source. Units are
MW, Mvar, $/h and degrees; impedances and voltages are per unit on ``base_mva``. Elements that are
out of service stay in the tables (so that a round trip loses nothing) and are left out of every
computation.

Columns that AC power flow needs beside those of DC have a neutral value (`neutral`), which they
have wherever none is given.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from gridveil.errors import InputError
from gridveil.grid.io import Source, module_of
from gridveil.grid.model.costs import mean_slopes

if TYPE_CHECKING:
    from gridveil.grid.model.public import PublicNetwork
    from gridveil.grid.model.ranges import RangeLike
    from gridveil.privacy.sealed import Sealed

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


def neutral(value: float) -> Any:
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
    """

    load: Floats
    shunt: Floats
    reference: Bools
    in_service: Bools
    reactive_load: Floats = neutral(0.0)
    reactive_shunt: Floats = neutral(0.0)
    v_min: Floats = neutral(0.9)
    v_max: Floats = neutral(1.1)


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


@dataclass(frozen=True, eq=False, repr=False)
class Network:
    """A network, and the source that it came from (for writing it back).

    Parameters
    ----------
    name
        What it is called.
    base_mva
        Base of the per-unit values.
    buses, generators, branches
        Its tables.
    source
        Where it came from; None for a network that was made by hand.
    notes
        What the reader had to decide on its own, in sentences.
    reactive_ratio
        Released loads: Mvar for each MW, a public number. None: the network was not released.
    """

    name: str
    base_mva: float
    buses: Buses
    generators: Generators
    branches: Branches
    source: Source | Any = None
    notes: tuple[str, ...] = field(default=())
    reactive_ratio: float | None = None

    def with_capacity(self, capacity: ArrayLike) -> Network:
        """The same network with other line capacities (MW, one for each branch)."""
        return replace(
            self, branches=replace(self.branches, capacity=as_floats(capacity, "capacity"))
        )

    def with_load(self, load: ArrayLike) -> Network:
        """The same network with other loads (MW, one for each bus)."""
        return replace(self, buses=replace(self.buses, load=as_floats(load, "load")))

    def with_limits(self, p_min: ArrayLike, p_max: ArrayLike) -> Network:
        """The same network with other generator limits (MW, one of each per generator)."""
        low, high = as_floats(p_min, "p_min"), as_floats(p_max, "p_max")
        return replace(self, generators=replace(self.generators, p_min=low, p_max=high))

    def with_linear_costs(self, linear: ArrayLike) -> Network:
        """The same network with linear costs alone ($/MWh, one for each generator)."""
        slope, every = as_floats(linear, "linear"), np.ones(len(self.generators), dtype=bool)
        return replace(self, generators=self.generators.with_slopes(slope, every))

    def linearised(self, *, private_limits: bool = False, which: Bools | None = None) -> Network:
        """The same network with each cost curve replaced by its mean slope between its limits.

        It refuses no curve and warns of none, convex or not: a slope that numbers can't hold is
        infinite. The slopes tell about the limits: if these are private and costs are not, keep
        the curves.

        Parameters
        ----------
        private_limits
            Limits are private too, and no slope may depend on them: a polynomial cost becomes its
            linear coefficient. A piecewise-linear one becomes the slope between its ends, which
            are limits in most cases: a release refuses these.
        which
            The units whose costs these are; all by default.
        """
        units = self.generators
        chosen = np.ones(len(units), dtype=bool) if which is None else which
        slope = mean_slopes(units, private_limits=private_limits)
        return replace(self, generators=units.with_slopes(slope, chosen))

    def islands(self) -> Ints:
        """Which island each bus is in, numbered from 0; -1 for buses out of service.

        A branch without reactance joins nothing: in the DC model no power flows on it.
        """
        on = self.buses.in_service
        joins = self.branches.in_service & (self.branches.reactance != 0)
        ends = self.branches.from_bus[joins], self.branches.to_bus[joins]
        joined = on[ends[0]] & on[ends[1]]
        count = len(self.buses)
        graph = coo_array(
            (np.ones(int(joined.sum())), (ends[0][joined], ends[1][joined])), shape=(count, count)
        )
        labels = connected_components(graph, directed=False)[1]
        found: Ints = np.full(count, -1, dtype=np.int64)
        if on.any():
            found[on] = np.unique(labels[on], return_inverse=True)[1]
        return found

    def split(
        self,
        parameter: str | Sequence[str],
        range: RangeLike | Mapping[str, RangeLike],
        *,
        public_curves: bool = False,
    ) -> tuple[Sealed[Any], PublicNetwork]:
        """Take one parameter or several out: their values sealed, and the network without them.

        Parameters
        ----------
        parameter
            ``"capacity"``, ``"load"``, ``"generator_limit"`` or ``"cost"``; several as in
            ``"capacity,load"`` or ``("capacity", "load")``, in any order.
        range
            The public range of its values, in MW or $/MWh; for several parameters a mapping of
            their names to ranges. Values outside are clipped. The lower end must be positive for
            capacities: a released 0 would mean that there is no limit.
        public_curves
            If generator limits are private: breakpoints and slopes of cost curves are public.

        Returns
        -------
        The entries of the public support (limited lines, loads and limits that are not 0): a
        sealed vector, or for several parameters a sealed tuple of one vector each; and a network
        that has no such columns and nothing that was computed from them.

        Raises
        ------
        InputError
            If a parameter or a range can't be used.
        """
        from gridveil.grid.model.public import split

        return split(self, parameter, range, public_curves=public_curves)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the network as the kind that it came from, MATPOWER where there was no file.

        What was not changed stays as it was. A network that was made from released values is
        written as a release.
        """
        if isinstance(self.source, Source) and self.source.private:
            self.write_release(path, self.source.private)
        else:
            module_of(self._kind).write(self, path)

    def write_release(self, path: str | os.PathLike[str], parameters: str | Sequence[str]) -> None:
        """Write the network for publication: only what is on the allow-list of every parameter."""
        from gridveil.grid.model.parameters import check_parameters

        names = check_parameters(parameters)
        if isinstance(self.source, Source) and self.source.private not in ((), names):
            split_by = ",".join(self.source.private)
            raise InputError(
                f"This network was split by {split_by}, not by {','.join(names)}.",
                remedy=f'Write it with parameters="{split_by}".',
            )
        module_of(self._kind).write_release(self, path, names)

    @property
    def _kind(self) -> str:
        return self.source.kind if isinstance(self.source, Source) else "matpower"

    def __repr__(self) -> str:
        return "\n".join([_heading("Network", self), *_describe(self), *_remarks(self.notes)])


def _heading(kind: str, network: Network | PublicNetwork) -> str:
    return f"{kind} '{network.name}' on {network.base_mva:g} MVA"


def _describe(network: Network) -> list[str]:
    buses, units, branches = network.buses, network.generators, network.branches
    on = branches.in_service
    limited = int((np.isfinite(branches.capacity) & on).sum())
    load = buses.load[buses.in_service]
    return [
        f"  buses       {_count(buses.in_service)}, load {load.sum():,.1f} MW on "
        f"{int((load != 0).sum()):,}",
        f"  branches    {_count(on)}, {limited:,} of them limited",
        f"  generators  {_count(units.in_service)}, capacity "
        f"{units.p_max[units.in_service].sum():,.1f} MW",
    ]


def _count(in_service: Bools) -> str:
    out = int((~in_service).sum())
    return f"{len(in_service):,}" + (f" ({out:,} out of service)" if out else "")


def _remarks(notes: Sequence[str]) -> list[str]:
    shown = [f"  note        {note}" for note in notes[:3]]
    return shown + ([f"  note        and {len(notes) - 3} more"] if len(notes) > 3 else [])
