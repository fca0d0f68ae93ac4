"""Audits with twin files of wind power records, in every format, type and spelling of power."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from gridveil.auditing.command_runs import Command
from gridveil.auditing.file_replays import Twins, Write, replays
from gridveil.auditing.verdicts import Audit

Power = tuple[float, ...]

CAPACITY = 1000
# Public: two hours have the same speed, so that rows are alike in all that is published.
SPEED = (3.0, 5.0, 5.0, 6.5, 8.0, 9.0, 12.0, 14.0)
TURBINES = ("A", "B", "B", "A", "B", "A", "A", "B")

POWER: dict[str, Power] = {
    "whole numbers": (0, 100, 250, 400, 700, 1000, 1000, 999),
    "halves": (0.5, 100.5, 250.5, 400.5, 700.5, 999.5, 999.5, 3.5),
    "all zero": (0,) * 8,
    "all equal": (512,) * 8,
    "negative": (-1, -100, -250, -3, -700, -1000, -12, -999),
    "over capacity": (1001, 5000, 20_000, 1500, 30_000, 1002, 9000, 7000),
    "huge": (1e300, -1e300, 1e18, 1e200, -1e18, 1e150, 1e100, 1e16),
    "tiny": (1e-300, -1e-300, 1e-18, 1e-200, -1e-18, 1e-150, 1e-100, 1e-16),
    "falling": (1000, 990, 980, 970, 960, 950, 940, 930),
}
WHOLE = tuple(words for words, power in POWER.items() if all(type(p) is int for p in power))
"""The kinds of power that are whole numbers."""

SPELLINGS: dict[str, Callable[[float], str]] = {
    "100": lambda p: f"{p:.0f}",
    "100.0": lambda p: f"{p:.1f}",
    "1e2": lambda p: f"{p:e}",
    "1E+02": lambda p: f"{p:.17E}",
    " 100": lambda p: f" {p:g}",
    "100 ": lambda p: f"{p:g}   ",
    "+100": lambda p: f"{p:+.3f}",
    "0100": lambda p: f"{p:09.2f}",
    "100.": lambda p: f"{p:.0f}.",
    "100.00000000000000000000": lambda p: f"{p:.20f}",
}

ORDERS: dict[str, Callable[[Power], Sequence[int]]] = {
    "by time": lambda power: range(len(power)),
    "by power": lambda power: np.argsort(power, kind="stable").tolist(),
    "by falling power": lambda power: np.argsort(power, kind="stable")[::-1].tolist(),
}

DECIMAL = (pa.decimal128(7, 1), pa.decimal128(10, 1), pa.decimal128(12, 3), pa.decimal256(40, 2))
NUMBERS = (pa.int64(), pa.int32(), pa.uint64(), pa.float64(), pa.float32(), *DECIMAL)
TYPES = (
    *NUMBERS,
    pa.dictionary(pa.int8(), pa.int64()),
    pa.dictionary(pa.int32(), pa.float64()),
    pa.string(),
    pa.large_string(),
)
"""Types that a column of the same power may have."""

_LONG = 70_000  # rows: too many to keep in memory, so that a reader takes several blocks

_FAST = {"csv-stream": 1}  # replays in a fast audit, for formats whose replay takes a second

_NAMED = ("--speed", "speed", "--power", "power", "--alpha", "10%")
_ONE = ("--capacity", str(CAPACITY))
_TWO = ("--capacity", "A=1000", "--capacity", "B=500", "--turbine", "turbine", "--key", "hour")


def command(method: str, *options: str) -> Command:
    """Return the command that releases these files."""
    return Command(("wind", "release"), (*_NAMED, "--method", method, *options))


# -- text ------------------------------------------------------------------------------------------


def csv_text(
    power: Sequence[float],
    *,
    spelling: Callable[[float], str] = str,
    order: Sequence[int] | None = None,
    delimiter: str = ",",
) -> bytes:
    """Write records as CSV; a column that no option names (torque) reveals power as well.

    Semicolons come with decimal commas and UTF-16.
    """
    sink = io.StringIO()
    rows = csv.writer(sink, delimiter=delimiter)
    rows.writerow(["hour", "turbine", "speed", "power", "torque"])
    for at in range(len(power)) if order is None else order:
        place = at % len(SPEED)
        shown = spelling(power[at])
        rows.writerow([at, TURBINES[place], SPEED[place], shown, f"{2 * power[at]:g}"])
    text = sink.getvalue()
    return text.replace(".", ",").encode("utf-16") if delimiter == ";" else text.encode()


def write_text(path: Path, text: Callable[[], bytes]) -> None:
    """Write text, compressed if the file's name ends in .gz."""
    made = text()
    path.write_bytes(gzip.compress(made, mtime=0) if path.suffix == ".gz" else made)


def _texts(delimiter: str = ",") -> dict[str, Write]:
    """Return writers for every kind of values, spelling and order, but not all combinations."""
    some = POWER["halves"]
    texts = {words: partial(csv_text, power) for words, power in POWER.items()}
    texts |= {f"as {words}": partial(csv_text, some, spelling=s) for words, s in SPELLINGS.items()}
    texts |= {words: partial(csv_text, some, order=o(some)) for words, o in ORDERS.items()}
    return {
        words: partial(write_text, text=partial(text, delimiter=delimiter))
        for words, text in texts.items()
    }


def csv_plain() -> Twins:
    """Make twins in which only speed is public, so that rows of the same speed have no order."""
    return Twins("records.csv", command("laplace", *_ONE), _texts())


COMMAS = ("--decimal", ",", "--encoding", "utf-16")
"""How text with semicolons is read."""


def csv_packed() -> Twins:
    """Make compressed UTF-16 twins with semicolons and decimal commas, two turbines and a key."""
    return Twins("records.csv.gz", command("wpo", *_TWO, *COMMAS), _texts(";"))


def csv_synthetic() -> Twins:
    """Make twins of two turbines for the method synthetic."""
    return Twins("records.csv", command("synthetic", *_TWO, "--alpha", "100%"), _texts())


def csv_streamed() -> Twins:
    """Make twins so long that they are read in blocks, whose ends depend on the text's length."""
    power = [POWER["halves"][at % len(SPEED)] for at in range(_LONG)]
    texts = {
        words: partial(write_text, text=partial(csv_text, power, spelling=SPELLINGS[words]))
        for words in ("100", "100.00000000000000000000", "1e2")
    }
    return Twins("records.csv", command("wpo", *_ONE, "--key", "hour", "--stream"), texts)


# -- Parquet ---------------------------------------------------------------------------------------


def power_column(power: Sequence[float], kind: pa.DataType) -> pa.Array:
    """Make a column of power of one type."""
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    if pa.types.is_string(plain) or pa.types.is_large_string(plain):
        return pa.array([f"{p:g}" for p in power], plain)
    column = pa.array(power, pa.float64()).cast(plain, safe=False)
    return column.dictionary_encode().cast(kind) if pa.types.is_dictionary(kind) else column


def records_table(power: Sequence[float], kind: pa.DataType) -> pa.Table:
    """Make an Arrow table of records."""
    return pa.table(
        {
            "hour": range(len(power)),
            "turbine": TURBINES,
            "speed": SPEED,
            "power": power_column(power, kind),
            "torque": [2 * p for p in power],
        }
    )


def typed_tables() -> dict[str, pa.Table]:
    """Make tables of every type, every kind of values, and every order."""
    # Halves: none is below 0, which some types can't hold, and types of whole numbers cut them.
    found = {f"{kind}": records_table(POWER["halves"], kind) for kind in TYPES}
    found |= {words: records_table(power, pa.float64()) for words, power in POWER.items()}
    found |= {f"{words} int64": records_table(POWER[words], pa.int64()) for words in WHOLE}
    some = records_table(POWER["whole numbers"], pa.int32())
    return found | {
        f"{w} int32": some.take(list(o(POWER["whole numbers"]))) for w, o in ORDERS.items()
    }


def _write_arrow(path: Path, table: pa.Table) -> None:
    pa.parquet.write_table(table, path)


def parquet() -> Twins:
    """Make twins in Parquet as Arrow writes it, with types and statistics of the values."""
    writers = {words: partial(_write_arrow, table=one) for words, one in typed_tables().items()}
    return Twins("records.parquet", command("laplace", *_ONE), writers)


def parquet_of_pandas() -> Twins:
    """Make twins in Parquet from CSV whose types pandas inferred, with two turbines."""
    texts = {words: partial(csv_text, power) for words, power in POWER.items()}
    texts |= {
        f"as {words}": partial(csv_text, POWER["whole numbers"], spelling=SPELLINGS[words])
        for words in ("100", "100.0", "1e2")
    }
    writers = {words: partial(_write_inferred, text=text) for words, text in texts.items()}
    return Twins("records.parquet", command("wpo", *_TWO), writers)


def _write_inferred(path: Path, text: Callable[[], bytes]) -> None:
    import pandas as pd

    pd.read_csv(io.BytesIO(text())).to_parquet(path)


FILES: dict[str, Callable[[], Twins]] = {
    "csv": csv_plain,
    "csv-gz": csv_packed,
    "csv-synthetic": csv_synthetic,
    "csv-stream": csv_streamed,
    "parquet": parquet,
    "parquet-pandas": parquet_of_pandas,
}
"""Twins by format: a new format is a new entry."""


def audit(kind: str) -> Audit:
    """Audit one format, by replays."""
    return replays(f"file-wind-{kind}", FILES[kind]().runs(), fast=_FAST.get(kind))


WIND_FILES: dict[str, Callable[[], Audit]] = {
    f"file-wind-{kind}": partial(audit, kind) for kind in FILES
}
