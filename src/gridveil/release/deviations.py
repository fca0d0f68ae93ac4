"""`deviations.parquet`: error bars of released values, from noisy answers and public numbers alone.

A deviation is the standard deviation of the real value about the released one, by all that the
answers tell. It costs nothing, and is not part of the guarantee.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

DEVIATIONS_FILE = "deviations.parquet"


def write_deviations(path: Path, parts: Iterable[Mapping[str, Any]]) -> None:
    """Write a table from its parts, which have the same columns of the same types."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    writer = None
    try:
        for part in parts:
            table = pa.table(dict(part))
            writer = writer or pq.ParquetWriter(path, table.schema, compression="zstd")
            writer.write_table(table)
    finally:
        if writer is not None:
            writer.close()
