"""One immutable model of a network: its tables, the source that it came from, its unit of power.

Solvers and restorations have tolerances (1e-6 MW, for example) that are too wide for the 0.1 MW of
a street, and too tight for a continent. They stay as they are, and the network is scaled: powers
are divided by a unit and prices in $/MWh stay, so costs are divided by the unit as well. Units are
powers of two, which makes scaling exact.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from gridveil.errors import InputError
from gridveil.grid.io import Source, module_of
from gridveil.grid.model.costs import mean_slopes
from gridveil.grid.model.element_tables import (
    IMPEDANCES,
    Bools,
    Branches,
    Buses,
    Floats,
    Generators,
    Ints,
    Table,
    as_floats,
)
from gridveil.privacy.sensitivity import power_of_two_below

if TYPE_CHECKING:
    from gridveil.grid.model.public_network import PublicNetwork, RangeLike
    from gridveil.privacy.sealed import Sealed

__all__ = [
    "IMPEDANCES",
    "Bools",
    "Branches",
    "Buses",
    "Floats",
    "Generators",
    "Ints",
    "Network",
    "Table",
    "as_floats",
]


T = TypeVar("T", bound=Table)

_POWER: dict[str, tuple[str, ...]] = {
    "buses": (
        *("load", "shunt", "reactive_load", "reactive_shunt"),
        *("fixed_load", "fixed_reactive_load", "q_min", "q_max", "ac_shunt"),
    ),
    "generators": ("p_min", "p_max", "q_min", "q_max", "constant"),
    "branches": ("capacity",),
}
"""Columns that are divided by the unit."""

# Total power (MW) of networks that are solved as they are, and what others are scaled to.
_LEAST, _MOST, _USUAL = 2.0**4, 2.0**20, 2.0**13
# The same for alphas.
_ALPHAS = Fraction(1, 8), 4096, 16


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
        from gridveil.grid.model.public_network import split

        return split(self, parameter, range, public_curves=public_curves)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the network as the kind that it came from, MATPOWER if there was no file.

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


def unit_of(network: Network) -> float:
    """The unit in MW that suits a network, by its loads and its generation in service."""
    units = network.generators
    limits = np.maximum(np.abs(units.p_max), np.abs(units.p_min))[units.in_service]
    load = np.abs(network.buses.load[network.buses.in_service])
    size = max(float(load.sum()), float(limits[np.isfinite(limits)].sum()))
    return 1.0 if size == 0 or _LEAST <= size <= _MOST else 2.0 ** round(math.log2(size / _USUAL))


def unit_for(alpha: Fraction) -> float:
    """The unit in MW that suits the restoration of values with noise of about this size."""
    few, many, usual = _ALPHAS
    return 1.0 if few <= alpha <= many else float(power_of_two_below(alpha / usual))


def scaled(network: Network, unit: float) -> Network:
    """The same network with powers in this unit (MW), and costs in as many $/h.

    It can't be written: it has no source.
    """
    if unit == 1.0:
        return network
    tables: dict[str, Any] = {
        name: scaled_table(getattr(network, name), name, unit) for name in _POWER
    }
    return replace(network, base_mva=network.base_mva / unit, source=None, **tables)


def scaled_table(table: T, name: str, unit: float) -> T:
    """One table of a network with powers in this unit."""
    columns: dict[str, Any] = {column: getattr(table, column) / unit for column in _POWER[name]}
    if name == "generators":
        units: Any = table
        columns["quadratic"] = units.quadratic * unit
        columns["points"] = [None if points is None else points / unit for points in units.points]
    return replace(table, **columns)
