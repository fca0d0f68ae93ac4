"""Audits with twin tables of wind power records: pandas, polars and Arrow, in Python.

The released table (`release.data`) is compared as well, with its types.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any

import pyarrow as pa

from gridveil import wind
from gridveil.auditing.bundle_bytes import bundle_parts
from gridveil.auditing.command_runs import DATASET, LEDGER, ledger_rows, listened, workplace
from gridveil.auditing.file_replays import installed, replays
from gridveil.auditing.transcript import Outcome
from gridveil.auditing.verdicts import Audit
from gridveil.auditing.wind_files import (
    CAPACITY,
    ORDERS,
    POWER,
    SPELLINGS,
    records_table,
    typed_tables,
)
from gridveil.privacy.noise import SecureNoise


def release_table(table: Any, noise: SecureNoise) -> Outcome:
    """Release a table with this noise; return bundle, ledger, screen and the released table."""
    with workplace() as place:
        with listened() as heard:
            records = wind.read_records(
                table, speed="speed", power="power", capacity=CAPACITY, key="hour"
            )
            planned = wind.plan(records, epsilon=1, alpha="10%", method="laplace")
            made = planned.run(planned.charge(place / LEDGER, dataset=DATASET, noise=noise))
            parts = {f"bundle/{name}": data for name, data in bundle_parts(made).items()}
            shown = f"{records!r}\n{planned!r}\n{made!r}"
        parts |= heard | _released(made.data)
        parts["words"] = shown.encode()
        parts["ledger"] = ledger_rows(place / LEDGER)
    return parts


def _released(table: Any) -> dict[str, bytes]:
    """Return a table's values, and everything that a program can see of its types."""
    if isinstance(table, pa.Table):
        kinds, values = table.schema.to_string(), str(table.to_pydict())
    else:
        pairs = zip(table.columns, table.dtypes, strict=True)
        kinds = ", ".join(f"{name}: {kind!r}" for name, kind in pairs)
        values = str({name: list(table[name]) for name in table.columns})
    return {"types of release.data": kinds.encode(), "release.data": values.encode()}


# -- tables ----------------------------------------------------------------------------------------


def pandas_tables() -> dict[str, Any]:
    """Make pandas tables with types of NumPy, pandas and Arrow, and with objects."""
    import pandas as pd

    some, halves = POWER["whole numbers"], POWER["halves"]
    columns: dict[str, Any] = {
        kind: pd.Series(some).astype(kind)
        for kind in (
            "int64", "int32", "uint16", "Int64", "float64", "float32", "Float64",
            "int64[pyarrow]", "double[pyarrow]", "category", "string",
        )
    }  # fmt: skip
    columns |= {
        f"{words} as float64": pd.Series(power, dtype="float64") for words, power in POWER.items()
    }
    columns |= {
        "objects, whole": pd.Series([int(p) for p in some], dtype=object),
        "objects of both": pd.Series([int(p) if p > 500 else p for p in halves], dtype=object),
        "Decimal": pd.Series([Decimal(str(p)) for p in halves], dtype=object),
        "Decimal of many digits": pd.Series([Decimal(f"{p:.12f}") for p in halves], dtype=object),
        "text": pd.Series([f"{p:g}" for p in halves], dtype=object),
        "text and numbers": pd.Series([f"{p:g}" if p > 500 else p for p in halves], dtype=object),
    }
    columns |= {
        f"text as {words}": pd.Series([show(p) for p in halves], dtype=object)
        for words, show in SPELLINGS.items()
    }
    public = records_table(some, pa.int64()).drop_columns(["power"]).to_pandas()
    tables = {words: public.assign(power=column) for words, column in columns.items()}
    return tables | {w: tables["int32"].iloc[list(o(some))] for w, o in ORDERS.items()}


def polars_tables() -> dict[str, Any]:
    """Make polars tables with all its types."""
    import polars as pl

    some, halves = POWER["whole numbers"], POWER["halves"]
    columns: dict[str, Any] = {
        str(kind): pl.Series("power", some, strict=False).cast(kind)
        for kind in (
            pl.Int64,
            pl.Int32,
            pl.UInt16,
            pl.Float64,
            pl.Float32,
            pl.Decimal(10, 2),
            pl.String,
        )
    }
    columns |= {
        f"{words} as Float64": pl.Series("power", power, pl.Float64, strict=False)
        for words, power in POWER.items()
    }
    columns |= {
        f"Decimal({digits}, {scale})": pl.Series("power", halves).cast(pl.Decimal(digits, scale))
        for digits, scale in ((5, 1), (12, 6), (38, 9))
    }
    columns["Categorical"] = columns["String"].cast(pl.Categorical)
    columns |= {
        f"text as {words}": pl.Series("power", [show(p) for p in halves])
        for words, show in SPELLINGS.items()
    }
    public = pl.DataFrame(pl.from_arrow(records_table(some, pa.int64()).drop_columns(["power"])))
    tables = {
        words: public.with_columns(column.alias("power")) for words, column in columns.items()
    }
    return tables | {w: tables["Int32"][list(o(some))] for w, o in ORDERS.items()}


TABLES: dict[str, tuple[str | None, Callable[[], dict[str, Any]]]] = {
    "arrow": (None, typed_tables),
    "pandas": (None, pandas_tables),
    "polars": ("polars", polars_tables),
}
"""Twins by library: the package that they need, and the function that makes them."""


def audit(library: str) -> Audit:
    """Audit one library's tables, by replays."""
    name = f"table-wind-{library}"
    needs, make = TABLES[library]
    return installed(name, needs, lambda: replays(name, _runs(make())))


def _runs(tables: dict[str, Any]) -> dict[str, Callable[[SecureNoise], Outcome]]:
    return {words: partial(release_table, table) for words, table in tables.items()}


WIND_TABLES: dict[str, Callable[[], Audit]] = {
    f"table-wind-{library}": partial(audit, library) for library in TABLES
}
