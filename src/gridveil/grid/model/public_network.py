"""A network without its private parameters: what restoration may see.

`split` seals the entries of the public support and returns a `PublicNetwork`, which has no such
columns: touching them raises. `PublicNetwork.with_values` puts a vector (noisy, restored, or opened
by a mechanism) in their place again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gridveil.errors import InputError, SealedError
from gridveil.grid.io import Protected, Source, module_of
from gridveil.grid.io.dispatch import sides_of_limits, without_reactive_copies
from gridveil.grid.io.released_columns import Change, changes
from gridveil.grid.model.costs import clip_points, with_points
from gridveil.grid.model.declarations import Declared
from gridveil.grid.model.network import (
    IMPEDANCES,
    Bools,
    Floats,
    Network,
    Table,
    as_floats,
    scaled_table,
)
from gridveil.grid.model.parameters import PARAMETERS, check_parameters
from gridveil.grid.model.ranges import RangeLike, box, check_ranges
from gridveil.privacy.sealed import Range, Sealed, seal, seal_together

TABLES = ("buses", "generators", "branches")


class PublicTable:
    """A table of a network without its private columns.

    Parameters
    ----------
    table
        The whole table.
    private
        Its private columns, each with the parameter that it belongs to.
    support
        Which entries of them are private; the others are kept.
    """

    def __init__(
        self, table: Table, private: Mapping[str, str], support: Mapping[str, Bools]
    ) -> None:
        # The values go here, not only out of sight: zeros stand in for them.
        blank: dict[str, Any] = {
            column: np.where(support[column], 0.0, getattr(table, column)) for column in private
        }
        self._table: Any = replace(table, **blank)
        self._private = dict(private)

    def __getattr__(self, column: str) -> Any:
        if column.startswith("_"):
            raise AttributeError(column)
        if column in self._private:
            raise SealedError(
                f"{column} is private in this network (split by {self._private[column]}).",
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
    """A network of which parameters were taken out; made by ``network.split``.

    Private values are counted through in one vector: parameter by parameter in the order of
    `parameters`, column by column (lower limits of generators, then upper ones), entry by entry.

    Parameters
    ----------
    parameters
        What is private.
    support
        Which entries of the private columns are private (public knowledge), one array per column.
        The others are 0 (infinite for capacities), or were declared public.
    signs
        +1 or -1 for every private value: its sign, which is public as the support is.
    ranges
        The public range of private values, by parameter.
    changes
        The columns of the source's file that a release does not have as they were.
    reactive_ratio
        Mvar of released loads for each MW, if loads are private: a public number.

    It has no notes of the reader: some count private values, units without a limit for one.
    """

    name: str
    base_mva: float
    buses: PublicTable
    generators: PublicTable
    branches: PublicTable
    parameters: tuple[str, ...]
    support: Mapping[str, Bools]
    signs: Floats
    ranges: Mapping[str, Range]
    source: Source | None = None
    changes: tuple[Change, ...] = ()
    reactive_ratio: float = 0.0

    @property
    def entries(self) -> int:
        """How many values are private."""
        return len(self.signs)

    @property
    def parts(self) -> dict[str, slice]:
        """Where the values of each parameter are in the vector of all private values."""
        found, start = {}, 0
        for parameter in self.parameters:
            count = sum(int(self.support[column].sum()) for column in PARAMETERS[parameter].columns)
            found[parameter] = slice(start, start + count)
            start += count
        return found

    @property
    def low(self) -> Floats:
        """The lower end of every private value: that of its range, or 0 if its sign is +."""
        return np.concatenate([low for low, _ in self._boxes()])

    @property
    def high(self) -> Floats:
        """The upper end of every private value: that of its range, or 0 if its sign is -."""
        return np.concatenate([high for _, high in self._boxes()])

    def _boxes(self) -> list[tuple[Floats, Floats]]:
        return [box(self.ranges[name], self.signs[part]) for name, part in self.parts.items()]

    def entry_names(self) -> tuple[str, ...]:
        """What each private value belongs to, in the order of the vector.

        The parameter comes first where several are private: ``"load 101"``.
        """
        return tuple(
            f"{parameter} {name}" if len(self.parameters) > 1 else name
            for parameter in self.parameters
            for name in self._names(parameter)
        )

    def _names(self, parameter: str) -> list[str]:
        table, columns = PARAMETERS[parameter].table, PARAMETERS[parameter].columns
        names = getattr(self, table).name
        return [
            f"{names[place]} {column}" if len(columns) > 1 else names[place]
            for column in columns
            for place in np.flatnonzero(self.support[column])
        ]

    def rest(self, column: str) -> Floats:
        """A private column with 0 for every private entry: what is public of it."""
        (table,) = (one.table for one in PARAMETERS.values() if column in one.columns)
        found: Floats = getattr(getattr(self, table)._table, column)
        return found

    def with_values(self, values: ArrayLike) -> Network:
        """A whole network, with these values (one per private entry) in place of the private ones.

        Raises
        ------
        InputError
            If the number of values is another one, or some are missing.
        """
        what = ", ".join(self.parameters)
        vector = as_floats(values, what)
        if vector.shape != (self.entries,) or np.isnan(vector).any():
            raise InputError(
                f"{what} needs {self.entries} numbers, one per private entry; "
                f"an array of shape {vector.shape} came, or some of it is missing."
            )
        tables: dict[str, Any] = {name: getattr(self, name)._table for name in TABLES}
        start = 0
        for parameter in self.parameters:
            table, columns = PARAMETERS[parameter].table, PARAMETERS[parameter].columns
            for column in columns:
                mask = self.support[column]
                filled = getattr(tables[table], column).copy()
                filled[mask] = vector[start : start + int(mask.sum())]
                start += int(mask.sum())
                tables[table] = replace(tables[table], **{column: filled})
        more: dict[str, Any] = {"source": self.source, "reactive_ratio": self.reactive_ratio}
        found = Network(self.name, self.base_mva, **tables, **more)
        return without_reactive_copies(found, self.parameters)

    def in_units(self, unit: float) -> PublicNetwork:
        """The same network with powers in this unit (MW); see `scaled`. It can't be written."""
        tables: dict[str, Any] = {
            name: PublicTable(scaled_table(table._table, name, unit), table._private, self.support)
            for name, table in ((name, getattr(self, name)) for name in TABLES)
        }
        ranges = {
            name: Range(one.low / unit, one.high / unit) if PARAMETERS[name].is_power else one
            for name, one in self.ranges.items()
        }
        return replace(self, base_mva=self.base_mva / unit, ranges=ranges, source=None, **tables)

    def __repr__(self) -> str:
        private = [
            f"  private     {name}: {part.stop - part.start:,} entries in {PARAMETERS[name].unit}, "
            f"in {self.ranges[name]}"
            for name, part in self.parts.items()
        ]
        return "\n".join(
            [
                f"PublicNetwork '{self.name}' on {self.base_mva:g} MVA",
                *private,
                f"  public      {len(self.buses):,} buses, {len(self.branches):,} branches, "
                f"{len(self.generators):,} generators",
            ]
        )


def split(
    network: Network,
    parameter: str | Sequence[str],
    ranges: RangeLike | Mapping[str, RangeLike],
    *,
    public_curves: bool = False,
) -> tuple[Sealed[Any], PublicNetwork]:
    """See `Network.split`."""
    parts, public = _split(network, parameter, ranges, Declared(public_curves=public_curves))
    return (parts[0] if len(parts) == 1 else seal_together(parts)), public


def split_parts(
    network: Network,
    parameters: str | Sequence[str],
    ranges: RangeLike | Mapping[str, RangeLike],
    *,
    declared: Declared | None = None,
) -> tuple[Sealed[tuple[Floats, ...]], PublicNetwork]:
    """As `Network.split`, with a tuple of vectors in the seal however many parameters there are.

    What the owner declared public of the parameters is so.
    """
    parts, public = _split(network, parameters, ranges, declared or Declared())
    return seal_together(parts), public


def _split(
    network: Network,
    given: str | Sequence[str],
    ranges: RangeLike | Mapping[str, RangeLike],
    declared: Declared,
) -> tuple[list[Sealed[Floats]], PublicNetwork]:
    parameters = check_parameters(given)
    ranges = check_ranges(parameters, ranges)
    support: dict[str, Bools] = {}
    for parameter in parameters:
        found = declared.support(network, parameter)
        if not any(column.any() for column in found.values()):
            _refuse_none(network, parameter)
        support |= found
    network = declared.network(network)
    rows = {name: declared.chosen(network, name) for name in declared.only}
    source = declared.source(network.source, parameters, rows)
    public = _without_copies(network, ranges, support, source, rows)
    if "generator_limit" in parameters and not declared.public_curves:
        _refuse_curves(network, support["p_min"] | support["p_max"])
    private: dict[str, dict[str, str]] = {table: {} for table in TABLES}
    sealed, signs = [], []
    for parameter in parameters:
        kind = PARAMETERS[parameter]
        table, columns, unit = kind.table, kind.columns, kind.unit
        owner = getattr(network, table)
        private[table] |= dict.fromkeys(columns, parameter)
        values = np.concatenate([getattr(owner, column)[support[column]] for column in columns])
        signs.append(_signs(values, parameter))
        # Clipped to its range a value is in its box too, since it has the sign that cuts it out.
        sealed.append(seal(values, name=parameter, unit=unit, range=ranges[parameter]))
    return sealed, PublicNetwork(
        public.name,
        public.base_mva,
        parameters=parameters,
        support=support,
        signs=as_floats(np.concatenate(signs), "signs"),
        ranges=ranges,
        source=source,
        changes=_changes(network.source, parameters, declared),
        reactive_ratio=declared.reactive_ratio,
        **{name: PublicTable(getattr(public, name), private[name], support) for name in TABLES},
    )


def _refuse_none(network: Network, parameter: str) -> None:
    """Raise if there is nothing to release, and the format knows what the file lacks."""
    source = network.source
    if isinstance(source, Source):
        reason = getattr(module_of(source.kind), "why_none", None)
        found = None if reason is None else reason(source.data, parameter)
        if found is not None:
            what, remedy = found
            raise InputError(
                f"There are no values of {parameter} to release: {what}.", remedy=remedy
            )


def _signs(values: Floats, parameter: str) -> Floats:
    return np.where((values < 0) & (parameter != "capacity"), -1.0, 1.0)


def _refuse_curves(network: Network, hidden: Bools) -> None:
    """Raise if any cost of a unit with private limits is a curve of breakpoints, of however many.

    Most curves are sampled between a unit's limits. From evenly spaced inner points the limits
    follow exactly. A curve of two points has none, but its slope and intercept were computed from
    both limits, and costs in a file are rounded: few pairs of limits give the very same two
    numbers, and often only one.
    """
    curved = [
        name
        for name, points, private in zip(
            network.generators.name, network.generators.points, hidden, strict=True
        )
        if private and points is not None
    ]
    if curved:
        raise InputError(
            f"Generator limits are private, and {len(curved):,} of {len(network.generators):,} "
            f"generators have piecewise-linear costs ({curved[0]}, for example): limits can often "
            "be worked out from the breakpoints, and from the slope between two of them.",
            remedy="If the curves are public and were not made from the limits, say so: "
            "public_curves=True (--public-curves). Otherwise give polynomial costs, or make costs "
            "private too.",
        )


def _without_copies(
    network: Network,
    ranges: Mapping[str, Range],
    support: Mapping[str, Bools],
    source: Source | None,
    rows: Protected,
) -> Network:
    """The network without what copies private parameters in other columns of the model."""
    buses, units, branches = network.buses, network.generators, network.branches
    every = np.ones(len(units), dtype=bool)
    if source is not None and (read := getattr(module_of(source.kind), "published_reactive", None)):
        shown_buses, shown_units = read(source.data)
        same = {name: getattr(shown_buses, name) for name in ("ac_shunt", "reactive_shunt")}
        buses = replace(buses, **same)
        units = replace(units, q_min=shown_units.q_min, q_max=shown_units.q_max)
    if "load" in ranges:
        hidden = rows.get("load", np.ones(len(buses), dtype=bool))
        buses = replace(buses, reactive_load=np.where(hidden, 0.0, buses.reactive_load))
    if "capacity" in ranges and source is not None:
        published = getattr(module_of(source.kind), "published_impedance", None)
        if published is not None:
            # What restoration sees of impedances on ratings is what is published of them.
            rated, shown = published(source.data)
            there: dict[str, Any] = {
                column: np.where(rated, getattr(shown, column), getattr(branches, column))
                for column in IMPEDANCES
            }
            branches = replace(branches, **there)
    if "generator_limit" in ranges:
        # The ends of a cost curve are a unit's limits: it goes on to the ends of the range.
        around = ranges["generator_limit"]
        hidden = support["p_min"] | support["p_max"]
        units = with_points(units, clip_points(units, around.low, around.high), hidden)
        units = sides_of_limits(units, rows.get("generator_limit", every))
    if "cost" in ranges:
        hidden = rows.get("cost", every)
        curves = [points is not None for points in units.points]
        if (hidden & (curves | (units.quadratic != 0))).any():
            raise InputError(
                "Only linear costs can be private, and this network has quadratic or "
                "piecewise-linear ones.",
                remedy="Split network.linearised() instead.",
            )
        units = replace(units, constant=np.where(hidden, 0.0, units.constant))
    return replace(network, buses=buses, generators=units, branches=branches)


def _changes(source: Any, parameters: tuple[str, ...], declared: Declared) -> tuple[Change, ...]:
    """What a release of a file does not have as it was; nothing for a network made by hand."""
    if not isinstance(source, Source) or source.private:
        return ()
    present = module_of(source.kind).columns(source.data)
    known = source.kind, present, parameters, declared.only
    ratios = bool(declared.limit_ratios)
    return changes(*known, dispatched=declared.public_dispatch, ratios=ratios)
