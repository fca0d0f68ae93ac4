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
from gridveil.grid.io import Source, module_of
from gridveil.grid.io.released_columns import Change, changes
from gridveil.grid.io.substitutes import refuse_curves, without_copies, without_reactive_copies
from gridveil.grid.model.declarations import Declared
from gridveil.grid.model.network import (
    Bools,
    Floats,
    Network,
    Table,
    as_floats,
    scaled_table,
)
from gridveil.grid.model.parameters import PARAMETERS, check_parameters
from gridveil.privacy.sealed import Range, Sealed, seal, seal_together

RangeLike = Range | tuple[float, float]

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
        return [_box(self.ranges[name], self.signs[part]) for name, part in self.parts.items()]

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
            _refuse_none(network, parameter, declared)
        support |= found
    network = declared.network(network)
    rows = {name: declared.chosen(network, name) for name in declared.only}
    source = declared.source(network.source, parameters, rows)
    public = without_copies(network, ranges, support, source, rows)
    if "generator_limit" in parameters and not declared.public_curves:
        refuse_curves(network, support["p_min"] | support["p_max"])
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


def _refuse_none(network: Network, parameter: str, declared: Declared) -> None:
    """Raise for a parameter without private entries, with what the file or the rule lacks."""
    none = f"There are no values of {parameter} to release"
    source = network.source
    if isinstance(source, Source):
        reason = getattr(module_of(source.kind), "why_none", None)
        found = None if reason is None else reason(source.data, parameter)
        if found is not None:
            what, remedy = found
            raise InputError(f"{none}: {what}.", remedy=remedy)
    if part := declared.protects(parameter):
        raise InputError(
            f"{none}: none fits {part}.",
            remedy="Correct the rule (--only, --unlimited-above), or leave it out to protect all.",
        )
    why = "no line has a limit" if parameter == "capacity" else "all are 0"
    raise InputError(f"{none}: {why}.", remedy="gridveil grid info FILE says what a file has.")


def _signs(values: Floats, parameter: str) -> Floats:
    return np.where((values < 0) & (parameter != "capacity"), -1.0, 1.0)


def _changes(source: Any, parameters: tuple[str, ...], declared: Declared) -> tuple[Change, ...]:
    """What a release of a file does not have as it was; nothing for a network made by hand."""
    if not isinstance(source, Source) or source.private:
        return ()
    present = module_of(source.kind).columns(source.data)
    known = source.kind, present, parameters, declared.only
    ratios = bool(declared.limit_ratios)
    return changes(*known, dispatched=declared.public_dispatch, ratios=ratios)


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


def _box(ranges: Range, signs: Floats) -> tuple[Floats, Floats]:
    """The lower and the upper end of every entry: the range, on the side of 0 that its sign says.

    If the whole range is on the other side, both ends are the end that is nearest to 0.
    """
    positive = signs > 0
    low = np.where(positive, min(max(ranges.low, 0.0), ranges.high), ranges.low)
    high = np.where(positive, ranges.high, max(min(ranges.high, 0.0), ranges.low))
    return low, high
