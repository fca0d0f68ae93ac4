"""How a source is cut into chunks, blocks and row groups: it leaves no trace in what is read."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gridveil.errors import InputError
from gridveil.privacy.sealed import unseal
from gridveil.wind import read_records
from gridveil.wind.io.sources import BLOCK

NAMED = {"speed": "ws", "power": "kw", "capacity": 2000.0}
ROWS = 2 * BLOCK + 5000


def public(rows=ROWS):
    return {"n": np.arange(rows), "ws": np.random.default_rng(0).uniform(0, 25, rows)}


def csv_of(path, columns, texts):
    # By hand: Arrow would write a column of numbers in its own way.
    lines = (f"{n},{ws},{kw}" for n, ws, kw in zip(*columns.values(), texts, strict=True))
    path.write_text("n,ws,kw\n" + "\n".join(lines) + "\n")
    return path


def wide_and_narrow(tmp_path, columns):
    """CSV files of the same numbers; in one they take a hundred times the room."""
    rows = len(columns["n"])
    yield csv_of(tmp_path / "narrow.csv", columns, ["7"] * rows)
    yield csv_of(tmp_path / "wide.csv", columns, ["0" * 99 + "7"] * rows)


def chunked_and_whole(columns):
    kw = np.full(len(columns["n"]), 7.0)
    yield pa.table({**columns, "kw": kw})
    yield pa.table({**columns, "kw": pa.chunked_array(np.split(kw, [3, 1000, BLOCK + 1]))})


def grouped(tmp_path, columns):
    for size in (ROWS, 10_000, 777):
        path = tmp_path / f"{size}.parquet"
        pq.write_table(pa.table({**columns, "kw": np.full(ROWS, 7.0)}), path, row_group_size=size)
        yield path


@pytest.mark.parametrize("how", ["csv", "parquet"])
def test_blocks_of_streamed_records_are_cut_by_their_number_alone(how, tmp_path):
    sources = {"csv": wide_and_narrow, "parquet": grouped}[how](tmp_path, public())
    sizes, files = set(), set()
    for source in sources:
        records = read_records(source, **NAMED, key="n", stream=True)
        sizes.add(tuple(len(block) for block in unseal(records.power)()))
        records.write(tmp_path / "out", lambda: iter([np.linspace(0, 1, ROWS)]))
        files.add((tmp_path / "out").read_bytes())
    assert sizes == {(BLOCK, BLOCK, 5000)}
    assert len(files) == 1


@pytest.mark.parametrize("how", ["csv", "parquet", "arrow", "pandas"])
def test_an_error_of_a_public_column_says_the_same_for_any_cut(how, tmp_path):
    columns = public()
    columns["ws"][[5, 2000, 30_000, BLOCK, BLOCK + 9]] = np.inf
    if how == "arrow":
        sources = chunked_and_whole(columns)
    elif how == "pandas":
        chunks = (table["kw"] for table in chunked_and_whole(columns))
        kinds = (pd.Series(kw, dtype=pd.ArrowDtype(pa.float64())) for kw in chunks)
        sources = (pd.DataFrame({**columns, "kw": kw}) for kw in kinds)
    else:
        sources = {"csv": wide_and_narrow, "parquet": grouped}[how](tmp_path, columns)
    messages = set()
    for source in sources:
        with pytest.raises(InputError) as refused:
            read_records(source, **NAMED)
        messages.add(str(refused.value).partition(" has ")[2])
    [message] = messages
    assert message.startswith("3 infinite values, the first in row 6.")


@pytest.mark.parametrize("stream", [False, True])
def test_a_damaged_row_is_reported_before_one_that_cannot_be_used(stream, tmp_path):
    columns = public(3 * BLOCK)
    columns["ws"][5] = np.inf
    columns["n"] = [f"k{n:09}" for n in columns["n"]]
    for path in wide_and_narrow(tmp_path, columns):
        lines = path.read_text().splitlines()
        lines[BLOCK + 30_000] += ",1"
        path.write_text("\n".join(lines))
        with pytest.raises(InputError, match=f"Row {BLOCK + 30_000} of .* has 4 fields"):
            read_records(path, **NAMED, key="n", stream=stream)
