"""Read loads over time from a table, and write them back in the same layout.

A wide table has a column of times and one column for each load; a long one has three columns: time,
load and power. A load is named like the file's load or by its bus. Public facts of a series are its
times, its names, its layout, which loads are always 0, and which are ever below 0.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from gridveil.errors import InputError, no_headings, reason, wrong_type
from gridveil.grid.io import module_of
from gridveil.grid.model.network import Network
from gridveil.grid.series.clock import Clock

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

SUFFIXES = (".parquet", ".csv")
_TIMES = ("time", "times", "timestamp", "datetime", "snapshot", "snapshots", "date", "utc", "index")
_LOADS = ("bus", "name", "id", "load")
_SHOWN = 4


@dataclass(frozen=True)
class Layout:
    """How a table is written: one column per load, or one row per value."""

    kind: Literal["wide", "long"]
    time: str
    load: str = "load"
    power: str = "p_mw"
    suffix: str = ".parquet"


@dataclass(frozen=True, eq=False, repr=False)
class LoadSeries:
    """Loads of a network over time, private; made by `read_series`.

    Parameters
    ----------
    clock
        The times of the entries.
    names
        The table's name of each load.
    bus
        Place of each load's bus in the network.
    layout
        How the table was written.

    The values are in ``_values``, one row per time and one column per load, until a plan seals
    them.
    """

    clock: Clock
    names: tuple[str, ...]
    bus: Ints
    layout: Layout
    _values: Floats

    @property
    def support(self) -> Bools:
        """Which loads are not always 0; public."""
        return np.asarray((self._values != 0).any(axis=0))

    @property
    def negative(self) -> Bools:
        """Which loads are ever below 0; public."""
        return np.asarray((self._values < 0).any(axis=0))

    def private(self, kept: Ints) -> Floats:
        """Return the private values of some loads, to be sealed: ``(times, loads)``."""
        return self._values[:, kept]

    def __repr__(self) -> str:
        clock = self.clock
        return (
            f"LoadSeries: {len(self.names):,} loads, {clock.days:,} days of {clock.slots} steps "
            f"({clock.zone}); values are private"
        )

    def __reduce__(self) -> Any:
        raise InputError("A private series can't be stored.", remedy="Keep the file it came from.")


def read_series(
    source: str | os.PathLike[str] | pd.DataFrame | None,
    network: Network,
    *,
    time: str | None = None,
) -> LoadSeries:
    """Read loads over time; the network says which bus each load belongs to.

    Parameters
    ----------
    source
        A Parquet or CSV file, or a pandas table, whose index may hold the times. None: the loads
        that the network's own file has over its snapshots (PyPSA's ``loads_t.p_set``).
    network
        From `read_case`.
    time
        The column of times; by default one that holds times, or has a name such as "time".

    Raises
    ------
    InputError
        If the table is not a series of this network's loads. No private value is quoted.
    """
    if not isinstance(network, Network):
        raise wrong_type("Network", network, remedy="Read one with read_case.")
    frame, where, suffix = _frame(_own(network) if source is None else source)
    moments, column, zone = _times(frame, time, where)
    rest = frame.drop(columns=[column], errors="ignore")
    numbers = [_numbers(rest.iloc[:, place]) for place in range(rest.shape[1])]
    texts = [place for place, one in enumerate(numbers) if one is None]
    repeated = len(np.unique(moments)) < len(moments)
    if len(numbers) == 2 and (len(texts) == 1 or (repeated and not texts)):
        titles = [str(name).lower() for name in rest.columns]
        # Beside a bus or a name, a column that is called load has the power.
        called = [titles.index(name) for name in _LOADS if name in titles]
        load = [*called, *texts, 0][0]
        labels = rest.iloc[:, load].astype(str).to_numpy(dtype=object)
        power, title = numbers[1 - load], rest.columns[1 - load]
        if power is None:
            raise _no_numbers(title, where)
        misread = _misread(labels, rest.columns[load], network, where)
        values, names, moments = _from_long(labels, power, moments, misread or _gaps(where))
        layout = Layout("long", column, str(rest.columns[load]), str(title), suffix)
    elif texts:
        raise _no_numbers(rest.columns[texts[0]], where)
    else:
        misread, names = None, tuple(str(name) for name in rest.columns)
        values = np.column_stack([np.zeros((len(rest), 0)), *(n for n in numbers if n is not None)])
        layout = Layout("wide", column, suffix=suffix)
    bus = _buses(names, network, where, misread)
    missing: Bools = np.asarray(np.isnan(values).any(axis=0))
    if missing.any():
        raise InputError(
            f"{int(missing.sum()):,} loads of {where} have missing values "
            f"({_some(names, missing)}).",
            remedy="Fill them in: a series has a value for every time.",
        )
    clock = Clock.of(moments, zone, where)
    return LoadSeries(clock, names, bus, layout, values)


def write_series(path: Path, layout: Layout, clock: Clock, names: Sequence[str], x: Floats) -> None:
    """Write a released series, ``(times, loads)``, in the layout of the table it came from."""
    import pandas as pd

    index = pd.to_datetime(clock.moments, unit="s", utc=clock.zone == "UTC")
    if layout.kind == "wide":
        table = pd.DataFrame(x, columns=list(names))
        table.insert(0, layout.time, index)
    else:
        table = pd.DataFrame(
            {
                layout.time: index.repeat(len(names)),
                layout.load: np.tile(np.array(names, dtype=object), len(index)),
                layout.power: x.ravel(),
            }
        )
    try:
        if layout.suffix == ".csv":
            table.to_csv(path, index=False)
        else:
            table.to_parquet(path, index=False, compression="zstd")
    except OSError as problem:
        raise InputError(
            f"{path} can't be written: {reason(problem)}.",
            remedy="Name a folder that you may write to, on a disk with room.",
        ) from None


def _frame(source: str | os.PathLike[str] | pd.DataFrame) -> tuple[pd.DataFrame, str, str]:
    import pandas as pd

    if isinstance(source, pd.DataFrame):
        return _flat(source), "the table", ".parquet"
    path = Path(source)
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(
            f"{path} is not a table of loads.", remedy="Give a file that ends in .parquet or .csv."
        )
    if not os.path.isfile(path):  # `Path.is_file` fails on a name that is too long
        raise InputError(f"There is no file {path}.", remedy="Check the path.")
    try:
        if csv := path.suffix.lower() == ".csv":
            _check_heading(path)
        frame = pd.read_csv(path, low_memory=False) if csv else pd.read_parquet(path)
    except InputError:
        raise
    except Exception as problem:  # noqa: BLE001 - a broken file fails in many ways
        raise InputError(
            f"{path.name} can't be read ({type(problem).__name__}).",
            remedy="Give a Parquet file, or a CSV file with commas and a heading.",
        ) from None
    return _flat(frame), path.name, path.suffix.lower()


def _check_heading(path: Path) -> None:
    """Raise `InputError` if the heading of a CSV file, which is public, has no commas."""
    with path.open("rb") as file:
        heading = file.readline(1_000_000)
    for sign, name in ((b";", "semicolons"), (b"\t", "tabs")):
        if sign in heading and b"," not in heading:
            raise InputError(
                f"{path.name} has {name} between its fields, and commas are expected, with points "
                "in numbers.",
                remedy=f"Save it so, or in Python: read_series(pd.read_csv({path.name!r}, "
                f"sep={sign.decode()!r}, decimal=','), network).",
            )


def _flat(frame: pd.DataFrame) -> pd.DataFrame:
    """Make the index a column, unless it only numbers the rows.

    Rows that were sorted or chosen keep their old numbers. Which these are may follow from powers.
    """
    import pandas as pd

    if isinstance(frame.index, pd.RangeIndex):
        return frame
    numbers = frame.index.name is None and pd.api.types.is_integer_dtype(frame.index.dtype)
    return frame.reset_index(drop=numbers)


def _own(network: Network) -> pd.DataFrame:
    """Return the loads over time in the network's own file."""
    source = network.source
    own = getattr(module_of(source.kind), "load_series", None) if source is not None else None
    if source is None or own is None or source.private:
        raise InputError(
            "The network's file has no loads over time.",
            remedy="Give a table of them: a column of times, and one for each load.",
        )
    found: pd.DataFrame = own(source.data)
    return found


def _times(frame: pd.DataFrame, time: str | None, where: str) -> tuple[Ints, str, str]:
    """Return the times of the rows, the name of their column, and their zone."""
    import pandas as pd

    if time is not None and time not in frame.columns:
        raise InputError(
            f"{where} has no column {time!r}.",
            remedy=_columns(frame, "Name the column of times"),
        )
    dated = [c for c in frame.columns if pd.api.types.is_datetime64_any_dtype(frame[c])]
    called = [c for c in frame.columns if str(c).lower() in _TIMES]
    found = [time] if time is not None else [*dated, *called]
    if not found:
        raise InputError(
            f"{where} has no column of times.",
            remedy=_columns(frame, "Name it with time=COLUMN (--time)"),
        )
    column = found[0]
    try:
        # Numbers would be taken for nanoseconds since 1970.
        numbers = pd.api.types.is_numeric_dtype(frame[column])
        read = None if numbers else pd.to_datetime(frame[column])
    except (ValueError, TypeError, OverflowError):
        read = None
    if read is None or not pd.api.types.is_datetime64_any_dtype(read) or read.isna().any():
        raise InputError(
            f"Column {column!r} of {where} does not hold times.",
            remedy="Write them as 2024-01-31 13:00, with a zone (+01:00) or all without.",
        )
    zone = "UTC" if read.dt.tz is not None else "as written"
    moments = read.dt.tz_convert("UTC").dt.tz_localize(None) if zone == "UTC" else read
    seconds = moments.to_numpy().astype("datetime64[s]").astype(np.int64)
    return seconds, str(column), zone


def _numbers(column: pd.Series) -> Floats | None:
    """Convert a column to floats, with NaN for missing values; None if not all are numbers.

    This does not depend on the column's type: a number too large for 64 bits makes a column of
    objects in pandas, and a refusal must not reveal how large a private number is.
    """
    import pandas as pd

    if pd.api.types.is_numeric_dtype(column):
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    try:
        numbers = [np.nan if value is pd.NA else _number(value) for value in column]
        return np.array(numbers, dtype=np.float64)
    except (TypeError, ValueError):
        return None  # Python's own error quotes the value


def _number(value: Any) -> float:
    if value is None:
        return np.nan
    if isinstance(value, str) and "_" in value:  # which Python would read as a number
        raise ValueError
    try:
        return float(value)
    except OverflowError:
        return np.inf if value > 0 else -np.inf


def _no_numbers(column: Any, where: str) -> InputError:
    return InputError(
        f"Column {str(column)[:60]!r} of {where} does not hold numbers.",
        remedy="Give one column for each load, or three columns: time, load and power.",
    )


def _misread(labels: NDArray[Any], column: Any, network: Network, where: str) -> InputError | None:
    """Return the only refusal there is if names of loads are numbers, else None.

    They may be powers that were taken for names, in a table whose columns are called otherwise. So
    which fault they have is not said, and none is quoted.
    """
    if not any(_is_number(label) for label in set(labels)):
        return None
    return InputError(
        f"Column {str(column)[:60]!r} of {where} does not name every load once at every time, as "
        "the network calls it.",
        remedy="Call the column of names 'bus', and name loads as the network does, or by their "
        f"buses: {_some(network.buses.name, None)}. Fill gaps in and drop repeated rows.",
    )


def _is_number(text: str) -> bool:
    try:
        return not np.isnan(float(text))
    except ValueError:
        return False


def _gaps(where: str) -> InputError:
    return InputError(
        f"{where} does not have every load once at every time.",
        remedy="Fill gaps in and drop repeated rows.",
    )


def _from_long(
    labels: NDArray[Any], power: Floats, moments: Ints, refusal: InputError
) -> tuple[Floats, tuple[str, ...], Ints]:
    """Arrange values by time and load; every time must have every load once, or it is refused."""
    times, row = np.unique(moments, return_inverse=True)
    names, column = np.unique(labels, return_inverse=True)
    place = row * len(names) + column
    if len(place) != len(times) * len(names) or len(np.unique(place)) != len(place):
        raise refusal
    values = np.empty(len(place))
    values[place] = power
    return values.reshape(len(times), len(names)), tuple(map(str, names)), times


def _buses(
    names: tuple[str, ...], network: Network, where: str, misread: InputError | None
) -> Ints:
    """Find the bus of every load; names are all those of the file's loads, or all of buses."""
    source = network.source
    loads = getattr(module_of(source.kind), "load_places", None) if source is not None else None
    known: dict[str, int] = {} if loads is None else loads(source.data)
    if not set(names) <= set(known):
        known = {name: place for place, name in enumerate(network.buses.name)}
    unknown = np.array([name not in known for name in names])
    if unknown.any():
        raise misread or InputError(
            f"{where} has {int(unknown.sum()):,} loads at buses that the network does not have "
            f"({_some(names, unknown)}).",
            remedy=f"Name loads as the network does, or by their buses: "
            f"{_some(network.buses.name, None)}.",
        )
    if len(set(names)) < len(names):
        raise InputError(f"{where} has a load twice.", remedy="Add the two up.")
    return np.array([known[name] for name in names], dtype=np.int64)


def _columns(frame: pd.DataFrame, do: str) -> str:
    names = [str(name) for name in frame.columns]
    return no_headings(names) or f"{do}; there are {_some(names, None)}."


def _some(names: Any, among: Bools | None) -> str:
    """List a few names, in the order of the table."""
    chosen = [n for n, k in zip(names, among, strict=True) if k] if among is not None else [*names]
    return ", ".join(repr(name) for name in chosen[:_SHOWN]) + (
        ", ..." if len(chosen) > _SHOWN else ""
    )
