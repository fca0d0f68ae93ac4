"""The noisy answers that a release was made of, and the error bars that follow from them.

`answers.parquet` has the answers, with the scales of their noise. They are what mechanisms
returned, noted by the mechanisms themselves, and paid for: to publish them costs nothing
more. A row is one number of one answer:

- ``mechanism``: its place in the statement's list of mechanisms, from 0;
- ``place``: which number of the answer it is, from 0;
- ``value``: the number, in the unit of the data. For a choice by noisy max, the place chosen;
- ``scale``: of its noise, a discrete Laplace distribution, in the same unit; none for a choice.

The file is a function of the answers and of public numbers.

`deviations.parquet` has the error bars of released values. A deviation is the standard deviation of
the real value about the released one, by all that the answers tell. It costs nothing, and is not
part of the guarantee. `write_deviations` calls back into whatever computes its parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridveil.privacy.record import Answer

ANSWERS_FILE = "answers.parquet"
DEVIATIONS_FILE = "deviations.parquet"
_ROWS = 1 << 16
Vector = NDArray[np.float64]


def write_answers(path: Path, answers: Sequence[Answer]) -> None:
    """Write the noisy answers of a release, in the order of its mechanisms."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema(
        [
            pa.field("mechanism", pa.int32(), nullable=False),
            pa.field("place", pa.int64(), nullable=False),
            pa.field("value", pa.float64(), nullable=False),
            pa.field("scale", pa.float64()),
        ]
    )
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for number, answer in enumerate(answers):
            start = 0
            for values in _pieces(answer):
                factors = np.ones(len(values))
                if answer.factors is not None:
                    factors = answer.factors[start : start + len(values)]
                scale = answer.record.calibration.scale_in_units / factors
                columns = [
                    np.full(len(values), number, dtype=np.int32),
                    np.arange(start, start + len(values), dtype=np.int64),
                    values / factors,
                    pa.nulls(len(values), pa.float64()) if answer.choice else scale,
                ]
                writer.write_table(pa.table(columns, schema=schema), row_group_size=_ROWS)
                start += len(values)


def _pieces(answer: Answer) -> Iterator[Vector]:
    values = answer.values
    for start in range(0, len(values), _ROWS):
        yield np.asarray(values[start : start + _ROWS], dtype=np.float64)


def wrong_answers(path: Path, mechanisms: Sequence[dict[str, Any]]) -> list[str]:
    """What does not fit the statement's mechanisms: how many numbers, their scales, their grids."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    counts = [0] * len(mechanisms)
    wrong: dict[str, None] = {}
    try:
        with pq.ParquetFile(path) as opened:
            for batch in opened.iter_batches(columns=["mechanism", "place", "value", "scale"]):
                number, place, value, scale = (
                    np.asarray(batch.column(name).to_numpy(zero_copy_only=False), dtype=np.float64)
                    for name in batch.schema.names
                )
                for one in np.unique(number).astype(np.int64).tolist():
                    if not 0 <= one < len(mechanisms):
                        wrong[f"mechanism {one} is not in the statement"] = None
                        continue
                    mine = number == one
                    order = np.arange(counts[one], counts[one] + int(mine.sum()))
                    if not np.array_equal(place[mine], order):
                        wrong[f"numbers of mechanism {one} are out of order"] = None
                    counts[one] += int(mine.sum())
                    if not _fits(mechanisms[one], value[mine], scale[mine]):
                        wrong[f"an answer of mechanism {one} does not have its noise"] = None
    except (pa.ArrowException, OSError, ValueError, KeyError):
        return [f"{path.name} can't be read"]
    for one, (count, mechanism) in enumerate(zip(counts, mechanisms, strict=True)):
        if count != _numbers(mechanism):
            wrong[f"mechanism {one} has {count:,} numbers for {_numbers(mechanism):,}"] = None
    return list(wrong)


def _numbers(mechanism: dict[str, Any]) -> int:
    return 1 if _is_choice(mechanism) else int(mechanism["size"])


def _is_choice(mechanism: dict[str, Any]) -> bool:
    return str(mechanism["noise"]).startswith("noisy max")


def _fits(mechanism: dict[str, Any], value: Vector, scale: Vector) -> bool:
    """Whether numbers are on the public grid, once counted in units of their noise."""
    if _is_choice(mechanism):
        return bool(np.isnan(scale).all() and ((value >= 0) & (value < mechanism["size"])).all())
    if not (np.isfinite(value).all() and (scale > 0).all()):
        return False
    steps = value * (float(mechanism["scale"]) / scale) / float(Fraction(mechanism["grid"]))
    # A number was divided by its factor, and is multiplied again: off by a few roundings.
    return bool((np.abs(steps - np.rint(steps)) <= 2.0**-49 * np.abs(steps) + 1e-6).all())


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
