"""A network without its private parameter: what restoration may see.

`split` seals the entries of the public support and hands back a `PublicNetwork`, which has no such
column: touching it raises. `PublicNetwork.with_values` puts a vector (noisy, restored, or opened
by a mechanism) in its place again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gridveil.errors import InputError, SealedError
from gridveil.grid.costs import clip_points
from gridveil.grid.formats import Source, module_of
from gridveil.grid.network import Bools, Floats, Network, Table, as_floats
from gridveil.privacy.sealed import Limits, Sealed, seal

PARAMETERS: Mapping[str, tuple[str, tuple[str, ...], str]] = {
    "capacity": ("branches", ("capacity",), "MW"),
    "load": ("buses", ("load",), "MW"),
    "generator_limit": ("generators", ("p_min", "p_max"), "MW"),
    "cost": ("generators", ("linear",), "$/MWh"),
}
"""For each parameter that can be private: its table, its columns and its unit."""

TABLES = ("buses", "generators", "branches")


def check_parameter(parameter: str) -> str:
    """The parameter, if it is one that can be private."""
    if parameter not in PARAMETERS:
        raise InputError(
            f"{parameter!r} is no parameter that can be private.",
            remedy=f"Use one of {', '.join(PARAMETERS)}.",
        )
    return parameter


class PublicTable:
    """A table of a network without its private columns."""

    def __init__(self, table: Table, private: tuple[str, ...], parameter: str) -> None:
        # The values go here, not only out of sight: zeros stand in for them.
        blank: dict[str, Any] = {column: np.zeros(len(table)) for column in private}
        self._table: Any = replace(table, **blank)
        self._private = private
        self._parameter = parameter

    def __getattr__(self, column: str) -> Any:
        if column.startswith("_"):
            raise AttributeError(column)
        if column in self._private:
            raise SealedError(
                f"{column} is private in this network (split by {self._parameter}).",
                remedy="Put released values in its place with network.with_values.",
            )
        return getattr(self._table, column)

    def __len__(self) -> int:
        return len(self._table)

    def __repr__(self) -> str:
        shown = [f.name for f in fields(self._table) if f.name not in self._private]
        return f"<{len(self):,} {type(self._table).__name__.lower()}: {', '.join(shown)}>"


@dataclass(frozen=True, eq=False, repr=False)
class PublicNetwork:
    """A network of which one parameter was taken out; made by ``network.split``.

    Parameters
    ----------
    parameter
        What is private.
    support
        Which entries of its columns are private (public knowledge), one array a column. The
        others are 0, or infinite for capacities.
    limits
        The public range of private values.
    """

    name: str
    base_mva: float
    buses: PublicTable
    generators: PublicTable
    branches: PublicTable
    parameter: str
    support: Mapping[str, Bools]
    limits: Limits
    source: Source | None = None
    notes: tuple[str, ...] = field(default=())

    @property
    def entries(self) -> int:
        """How many values are private."""
        return sum(int(mask.sum()) for mask in self.support.values())

    def entry_names(self) -> tuple[str, ...]:
        """What each private value belongs to, in the order of the sealed vector."""
        table, columns, _ = PARAMETERS[self.parameter]
        names = getattr(self, table).name
        several = len(columns) > 1
        return tuple(
            f"{names[place]} {column}" if several else names[place]
            for column in columns
            for place in np.flatnonzero(self.support[column])
        )

    def with_values(self, parameter: str, values: ArrayLike) -> Network:
        """A whole network, with these values (one a private entry) in place of the private ones.

        Raises
        ------
        InputError
            Where another parameter is private, or the number of values is another one.
        """
        if parameter != self.parameter:
            raise InputError(f"This network was split by {self.parameter}, not by {parameter}.")
        vector = as_floats(values, parameter)
        if vector.shape != (self.entries,) or np.isnan(vector).any():
            raise InputError(
                f"{self.parameter} needs {self.entries} numbers, one a private entry; "
                f"an array of shape {vector.shape} came, or some of it is missing."
            )
        table, columns, _ = PARAMETERS[parameter]
        filled, start = {}, 0
        for column in columns:
            mask = self.support[column]
            filled[column] = np.full(len(mask), np.inf if column == "capacity" else 0.0)
            filled[column][mask] = vector[start : start + int(mask.sum())]
            start += int(mask.sum())
        parts: dict[str, Any] = {name: getattr(self, name)._table for name in TABLES}
        parts[table] = replace(parts[table], **filled)
        return Network(self.name, self.base_mva, source=self.source, notes=self.notes, **parts)

    def __repr__(self) -> str:
        return "\n".join(
            [
                f"PublicNetwork '{self.name}' on {self.base_mva:g} MVA",
                f"  private     {self.parameter}: {self.entries:,} entries in "
                f"{PARAMETERS[self.parameter][2]}, in {self.limits}",
                f"  public      {len(self.buses):,} buses, {len(self.branches):,} branches, "
                f"{len(self.generators):,} generators",
            ]
        )


def split(
    network: Network, parameter: str, limits: Limits | tuple[float, float]
) -> tuple[Sealed[Floats], PublicNetwork]:
    """See `Network.split`."""
    table, columns, unit = PARAMETERS[check_parameter(parameter)]
    bounds = _range(limits)
    if parameter == "capacity" and bounds.low <= 0:
        raise InputError(
            f"The range of capacities starts at {bounds.low:g}.",
            remedy="Give a positive lower end: a capacity of 0 would mean that there is no limit.",
        )
    public = _without_copies(network, parameter, bounds)
    owner = getattr(network, table)
    support = {column: _support(getattr(owner, column), column) for column in columns}
    sealed = seal(
        np.concatenate([getattr(owner, column)[support[column]] for column in columns]),
        name=parameter,
        unit=unit,
        limits=bounds,
    )
    parts = {
        name: PublicTable(getattr(public, name), columns if name == table else (), parameter)
        for name in TABLES
    }
    return sealed, PublicNetwork(
        public.name,
        public.base_mva,
        parameter=parameter,
        support=support,
        limits=bounds,
        source=_stripped(network.source, parameter),
        notes=network.notes,
        **parts,
    )


def _range(limits: Limits | tuple[float, float]) -> Limits:
    if isinstance(limits, Limits):
        return limits
    try:
        low, high = limits
        return Limits(float(low), float(high))
    except (TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            "The public range of a private parameter is a pair of numbers.",
            remedy="Give it as in limits=(1, 5000).",
        ) from None


def _support(values: Floats, column: str) -> Bools:
    mask: Bools = np.isfinite(values) if column == "capacity" else values != 0
    mask.setflags(write=False)
    return mask


def _without_copies(network: Network, parameter: str, limits: Limits) -> Network:
    """The network without what copies the parameter in other columns of the model."""
    units = network.generators
    if parameter == "generator_limit":
        # The ends of a cost curve are a unit's limits: it goes on to the ends of the range.
        return replace(network, generators=clip_points(units, limits.low, limits.high))
    if parameter == "cost":
        if units.quadratic.any() or any(points is not None for points in units.points):
            raise InputError(
                "Only linear costs can be private, and this network has quadratic or "
                "piecewise-linear ones.",
                remedy="Split network.linearised() instead.",
            )
        return replace(network, generators=replace(units, constant=np.zeros(len(units))))
    return network


def _stripped(source: Any, parameter: str) -> Source | None:
    if not isinstance(source, Source):
        return None
    if source.private is not None:
        return source if source.private == parameter else None
    strip = getattr(module_of(source.kind), "strip", None)
    return Source(source.kind, strip(source.data, parameter), parameter) if strip else None
