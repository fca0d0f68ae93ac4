"""Read and write populations as Parquet files: one row per model, one list column per array."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from gridveil.errors import InputError

Floats = NDArray[np.float64]

KEY = b"gridveil.population"
"""The key of a file's metadata for the names of elements and the private parameters."""

MODEL = "model"


def write(
    path: str | os.PathLike[str],
    arrays: Mapping[str, Floats],
    names: Mapping[str, tuple[str, ...]],
    *,
    size: int,
    private: tuple[str, ...],
) -> None:
    """Write arrays of one row per model, with the names of their columns."""
    columns: dict[str, Any] = {MODEL: pa.array(np.arange(size))}
    for name, array in arrays.items():
        flat = pa.array(np.ascontiguousarray(array).ravel())
        columns[name] = pa.FixedSizeListArray.from_arrays(flat, array.shape[1])
    about = {"names": names, "private": private}
    table = pa.table(columns).replace_schema_metadata({KEY: json.dumps(about).encode()})
    try:
        pq.write_table(table, Path(path), compression="zstd")
    except OSError as error:
        raise InputError(
            f"{Path(path)} can't be written: {error.strerror or error}.",
            remedy="Name a file in a folder that is there and that you may write.",
        ) from None


def read(
    path: str | os.PathLike[str], names: Mapping[str, tuple[str, ...]]
) -> tuple[dict[str, Floats], int, tuple[str, ...]]:
    """Read a file for these elements: arrays, number of models and private parameters."""
    if not os.path.exists(path):
        raise InputError(
            f"There is no population at {Path(path)}.",
            remedy="gridveil grid population makes one; or check the path.",
        )
    try:
        # Not `read_table`, which fails on a file with a column name twice.
        with pq.ParquetFile(Path(path)) as file:
            table = file.read()
        present = list(table.column_names)
    except (OSError, ValueError, pa.ArrowException) as error:  # also names that are not UTF-8
        raise InputError(
            f"{Path(path).name} can't be read as Parquet: {error}.", remedy="Check the file."
        ) from None
    about = _about(table, Path(path).name)
    unknown = sorted(set(present) - set(names) - {MODEL})
    if unknown:
        raise InputError(
            f"{Path(path).name} has columns that mean nothing here: {', '.join(unknown)}.",
            remedy=f"Use some of {', '.join(names)}.",
        )
    twice = sorted({name for name in present if present.count(name) > 1})
    if twice:
        raise InputError(
            f"{Path(path).name} has several columns called {twice[0]}.", remedy="Keep one of them."
        )
    if not table.num_rows:
        raise InputError(f"{Path(path).name} has no models.", remedy="Give one row per model.")
    arrays = {}
    for name in present:
        if name != MODEL:
            stored = about["names"].get(name)
            if stored is not None and stored != names[name]:
                raise InputError(
                    f"The elements of {name} in {Path(path).name} are not those of the network.",
                    remedy="Use the network that the population was made for.",
                )
            arrays[name] = _matrix(table.column(name), name, len(names[name]))
    return arrays, table.num_rows, about["private"]


def _about(table: Any, file: str) -> dict[str, Any]:
    text = (table.schema.metadata or {}).get(KEY)
    try:
        about = json.loads(text) if text is not None else {"names": {}, "private": None}
        names = {str(array): tuple(names) for array, names in about["names"].items()}
        return {"names": names, "private": _private(about["private"])}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise InputError(f"The metadata of {file} is damaged.", remedy="Write it again.") from None


def _private(stored: Any) -> tuple[str, ...]:
    # Older files have None or a single name: at most one parameter could be private.
    if stored is None or isinstance(stored, str):
        return () if stored is None else (stored,)
    if not isinstance(stored, list):
        raise TypeError
    return tuple(str(name) for name in stored)


def _matrix(column: Any, name: str, width: int) -> Floats:
    kind = column.type
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind) or _is_fixed(kind)):
        raise InputError(
            f"Column {name} holds {kind}, not lists of numbers.",
            remedy="Give one list for each model, with one number for each element.",
        )
    if set(pc.list_value_length(column).to_pylist()) - {width}:
        raise InputError(
            f"Column {name} has lists of other lengths than {width}, or none.",
            remedy="Give one number for each element of the network.",
        )
    flat = column.combine_chunks().flatten()
    try:
        values = np.asarray(flat.cast(pa.float64()).to_numpy(zero_copy_only=False))
    except pa.ArrowException:
        raise InputError(f"Column {name} does not hold numbers.") from None
    return values.reshape(-1, width)


def _is_fixed(kind: Any) -> bool:
    return bool(pa.types.is_fixed_size_list(kind))
