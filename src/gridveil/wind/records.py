"""Wind power records: public columns in clear, power sealed."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from gridveil.errors import InputError
from gridveil.privacy.ledger import Sketch
from gridveil.privacy.mechanisms import Blocks
from gridveil.privacy.sealed import Sealed
from gridveil.wind.io.columns import (
    Formulas,
    check_names,
    check_times,
    equal_neighbours,
    is_zoned,
    plain_type,
)
from gridveil.wind.io.dates import check_format
from gridveil.wind.io.in_memory import hold
from gridveil.wind.io.layout import Layout, read_layout
from gridveil.wind.io.read_options import (
    Capacity,
    CsvStyle,
    check_capacity,
    check_options,
    key_or_time,
)
from gridveil.wind.io.sealed_records import Columns, Contents, Span, Store
from gridveil.wind.io.sketch import sketch_rows
from gridveil.wind.io.source_rows import Tally
from gridveil.wind.io.sources import Source, open_source
from gridveil.wind.io.streamed import stream as stream_records
from gridveil.wind.io.writers import (
    Released,
    output_schema,
    released_batches,
    sort_tied,
    to_frame,
    write_csv,
    write_parquet,
)

STREAM_ABOVE = 20_000_000
"""Files with more rows than this are streamed unless the user says otherwise."""


@dataclass(frozen=True, eq=False)
class Group:
    """The records of one turbine, or all of them if no turbine is named.

    Parameters
    ----------
    name
        The turbine.
    rows
        How many records.
    start
        How many records of other turbines come before, in the released order.
    capacity
        Public nameplate capacity, in the unit of the source.
    power
        Private: shares of the capacity, in blocks.
    """

    name: str
    rows: int
    start: int
    capacity: float
    power: Sealed[Blocks]
    _store: Store = field(repr=False)
    _layout: Layout = field(repr=False)
    _span: Span = field(repr=False)

    def columns(self, names: Sequence[str] = ("speed",)) -> Columns:
        """Public columns of numbers, in blocks that match those of `power` row by row.

        ``"speed"`` is the wind speed, whatever its column is called.

        Raises
        ------
        InputError
            If a name is not a published column of numbers.
        """
        for name in names:
            self._layout.resolve(name)
        return lambda: self._store.columns(self._span, names)

    def times(self) -> NDArray[np.int64] | None:
        """Seconds since 1970 of every row; None without a column of times."""
        if self._layout.time is None:
            return None
        return np.concatenate(list(self._store.times(self._span)))


class Records:
    """Wind power records that are ready for a release; made by `read_records`.

    Attributes
    ----------
    name, unit, capacity
        What the data is called; the unit and nameplate capacity of power.
    dataset
        The ledger's name for it, if its owner gave one.
    rows, dropped
        How many records there are, and how many were dropped for missing values.
    published, unread
        Names of the columns that are published in clear, and of those that were not named.
    formulas
        Whether text is published that a spreadsheet would take for a formula.
    groups
        One `Group` for each turbine, in the released order.
    power
        Private: power of all records as shares of capacity, in the released order.
    by_turbine
        Private: the same, a source of blocks for each turbine.
    clipped
        Private, for the owner alone: how many values lay outside [0, capacity].
    clock
        Whose hours and days times are in: ``"UTC"`` with time zones, else ``"as written"``.
    speed_range, speed_mean
        Lowest and highest wind speed, and their mean.
    delimiter, style
        The sign between fields of the released file, if it is CSV, and how the source is written.
    streamed
        Whether the source is read again on every pass.
    """

    def __init__(
        self,
        source: Source,
        layout: Layout,
        contents: Contents,
        tally: Tally,
        *,
        name: str | None,
        unit: str,
        capacity: Capacity,
        streamed: bool,
    ) -> None:
        self.name = name or source.name
        self.dataset = name
        self.unit = unit
        self.capacity = capacity
        self.rows = tally.rows
        self.dropped = tally.dropped
        self.missing = tally.missing
        self.formulas = tally.formula
        self.published = layout.published
        self.unread = tuple(name for name in source.names if name not in layout.types)
        self.speed, self.power_column = layout.speed, layout.power
        self.key, self.turbine, self.time = layout.key, layout.turbine, layout.time
        self.time_format = layout.time_format
        self.clock = "UTC" if layout.time and _zoned(layout, layout.time) else "as written"
        self.speed_range = (tally.low, tally.high)
        self.speed_mean = tally.total / tally.rows
        self.streamed = streamed
        self.power = contents.power
        self.by_turbine = contents.by_turbine
        self.clipped = contents.clipped
        self._store = contents.store
        self._layout = layout
        self._kind = source.kind
        self.delimiter, self.style = source.delimiter, source.style
        self._dtypes = {n: t for n, t in (source.dtypes or {}).items() if n in layout.published}
        self.groups = tuple(
            Group(
                s.name if layout.turbine else self.name,
                s.rows,
                s.start,
                s.capacity,
                power,
                self._store,
                layout,
                s,
            )
            for s, power in zip(self._store.spans, contents.by_span, strict=True)
        )
        self._schema = output_schema(layout)

    def __len__(self) -> int:
        return self.rows

    def without_trace(self, noisy: NDArray[np.float64]) -> None:
        """Take the order that alike rows had in the source out of noisy values, in place."""
        if (tied := self._store.tied()) is not None:
            sort_tied(noisy, tied)

    def sketch(self) -> Sketch:
        """A fingerprint of the published columns; no power changes it."""
        return sketch_rows(self._store, self._layout)

    def repeated_keys(self) -> int:
        """How many rows have the key of the row before, of the same turbine."""
        if self.key is None or self.streamed:  # streamed records have every key once
            return 0
        by = [name for name in (self.turbine, self.key) if name is not None]
        blocks = self._store.released()
        ordered = (self._layout.order_columns(block.columns, by) for block in blocks)
        return sum(int(equal_neighbours(columns).sum()) for columns in ordered)

    @property
    def file_name(self) -> str:
        """What the released file is called: in the format of the source, else Parquet."""
        return f"records.{self._kind}" if self._kind.startswith("csv") else "records.parquet"

    def write(self, path: str | os.PathLike[str], released: Released) -> None:
        """Write the released records: CSV if CSV came in, else Parquet; power as 64-bit floats.

        Parameters
        ----------
        path
            The file; what its name ends in does not change the format, except that CSV is
            compressed if it ends in ``.gz``.
        released
            Gives released power as shares of capacity in [0, 1], in the released order, in
            blocks of any size.

        Raises
        ------
        InputError
            If there are more or fewer released values than records.
        """
        batches = released_batches(self._store, self._layout, self._schema, released)
        if self._kind.startswith("csv"):
            write_csv(Path(path), batches, self._schema, self.delimiter, self.style)
        else:
            write_parquet(Path(path), batches, self._schema)

    def to_table(self, values: ArrayLike) -> Any:
        """Released records as a table of the kind that came in; pandas if files came in.

        Public columns have the types that they came with; power is a 64-bit float, always.

        Parameters
        ----------
        values
            Released power as shares of capacity in [0, 1], in the released order.
        """
        shares = np.asarray(values, dtype=np.float64)
        batches = released_batches(self._store, self._layout, self._schema, lambda: iter([shares]))
        table = pa.Table.from_batches(batches, self._schema)
        return to_frame(table, self._kind, self._dtypes)

    def __repr__(self) -> str:
        low, high = self.speed_range
        lines = [
            f"Records '{self.name}': {self.rows:,} rows"
            + (f" ({self.dropped:,} with missing values dropped)" if self.dropped else ""),
            f"  wind speed  '{self.speed}' from {low:g} to {high:g}",
            f"  power       '{self.power_column}' sealed, capacity {self._show_capacity()}",
            f"  published   {', '.join(self.published)}",
        ]
        if self.turbine is not None:
            some = ", ".join(group.name for group in self.groups[:4])
            more = ", ..." if len(self.groups) > 4 else ""
            lines.insert(1, f"  turbines    {len(self.groups):,}: {some}{more}")
        if self.streamed:
            lines.append("  streamed    read again from the source on every pass")
        return "\n".join(lines)

    def _show_capacity(self) -> str:
        sizes = sorted({group.capacity for group in self.groups})
        ends = f"{sizes[0]:g}" if len(sizes) == 1 else f"{sizes[0]:g} to {sizes[-1]:g}"
        return f"{ends} {self.unit}"


def read_records(
    source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | Any,
    *,
    speed: str,
    power: str,
    capacity: float | Mapping[str, float],
    unit: str = "kW",
    public: Sequence[str] = (),
    key: str | None = None,
    time: str | None = None,
    time_format: str | None = None,
    turbine: str | None = None,
    sep: str | None = None,
    decimal: str = ".",
    encoding: str = "utf-8",
    missing: Literal["refuse", "drop"] = "refuse",
    formulas: Formulas = "refuse",
    name: str | None = None,
    stream: bool | None = None,
) -> Records:
    """Read wind power records and seal their power.

    Only the columns that are named are read, and only they are released. Power outside
    [0, capacity] is clipped, however much of it. Rows are released by turbine, in the order of
    the public key, or of all public columns if there is none.

    Which cells of power are missing is public, and that all others are numbers: one that is not is
    refused with its row. Which number it is, how it is written (``100``, ``1e2``) and the type of
    its column decide nothing.

    Parameters
    ----------
    source
        A CSV or Parquet file (``.csv``, ``.csv.gz``, ``.parquet``), a folder, pattern or list of
        such files, or a pandas, polars or Arrow table.
    speed, power
        Columns of wind speed (public) and power (private).
    capacity
        Public nameplate capacity in the unit of the power column, or one for each turbine.
    unit
        The unit of power and capacity, for reports.
    public
        Further columns to publish in clear.
    key
        A public column that orders rows, such as the time; published in clear.
    time
        A public column of dates and times; published in clear, and the key. Those with a time
        zone are read by UTC, others as they are written.
    time_format
        How times are written in text, as ``"%d/%m/%Y %H:%M"``. Not needed for ISO 8601
        (2024-01-31 13:50), nor for a usual format if no other fits all of the column.
    turbine
        A public column that says which turbine a row is from; published in clear.
    sep, decimal
        Signs between fields and before decimals of CSV files; the first is found by default. The
        release is written with the same.
    encoding
        How the text of CSV files is stored, as ``"cp1252"``, ``"latin-1"`` or ``"utf-16"``. The
        release is UTF-8.
    missing
        What to do with rows with missing values: ``"refuse"`` or ``"drop"``.
    formulas
        What to do with text in CSV files that a spreadsheet would take for a formula, and so run
        (``=``, ``+``, ``-`` or ``@`` at its start): ``"refuse"`` or ``"keep"``.
    name
        What the owner calls the dataset: the ledger knows it by this name. It can be given to
        `release` instead.
    stream
        Read files again on every pass rather than hold them in memory. Rows must then be sorted
        by turbine and key. By default, Parquet files with over 20 million rows are streamed.

    Raises
    ------
    InputError
        If public input can't be used; no private value decides it or is named by it.
    """
    written = None if time_format is None else check_format(time_format)
    key = key_or_time(key, time, written)
    check_options(public, missing, formulas, unit, speed=speed, turbine=turbine, key=key)
    sizes = check_capacity(capacity, turbines=turbine is not None)
    opened = open_source(source, CsvStyle(sep, decimal, encoding))
    streamed = _is_streamed(opened, stream)
    layout = read_layout(
        opened,
        speed=speed,
        power=power,
        public=public,
        key=key,
        turbine=turbine,
        time_format=written,
    )
    if time is not None:
        stored = plain_type(layout.types[time])
        check_times(opened.where, time, layout.kinds[time], stored, opened.pieces)
        layout = replace(layout, time=time)
    csv = opened.kind.startswith("csv")
    if csv and formulas == "refuse":
        check_names(opened.where, layout.types)
    tally = Tally(missing, formulas, layout.text() if csv else ())
    contents = (stream_records if streamed else hold)(opened, layout, sizes, tally)
    return Records(
        opened,
        layout,
        contents,
        tally,
        name=name or None,
        unit=unit,
        capacity=sizes,
        streamed=streamed,
    )


def _zoned(layout: Layout, name: str) -> bool:
    return is_zoned(layout.kinds[name], plain_type(layout.types[name]))


def _is_streamed(source: Source, wanted: bool | None) -> bool:
    files = source.dtypes is None
    if wanted and not files:
        raise InputError("A table in memory can't be streamed.", remedy="Leave stream out.")
    if wanted is None:
        return files and source.rows is not None and source.rows > STREAM_ABOVE
    return wanted
