"""Wind records from CSV and Parquet files.

The first byte of an input says how it is read: the options are part of it.
"""

import gzip
import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from fuzz.mutations import Choose, mutate, mutate_binary
from fuzz.verdicts import wrong_unless

from gridveil.errors import GridveilError
from gridveil.privacy.sealed import unseal
from gridveil.wind import read_records

NAMED = {"speed": "ws", "power": "kw", "capacity": 2000.0}
OPTIONS = [
    {},
    {"key": "t"},
    {"key": "t", "stream": True, "missing": "drop"},
    {"public": ["t", "note"], "missing": "drop", "formulas": "keep"},
    {"turbine": "note", "public": ["t"], "missing": "drop"},
    {"turbine": "note", "key": "t", "missing": "drop", "stream": True},
]
ENCODINGS = {4: {"encoding": "cp1252"}, 5: {"encoding": "utf-16-le"}, 6: {"encoding": "utf-16"}}
TABLE = {
    "t": [f"2024-01-01T00:{row:02d}:00" for row in range(12)],
    "note": ["T1"] * 6 + ["T2"] * 6,
    "ws": [3.5 + row for row in range(12)],
    "kw": [100.25 * row for row in range(12)],
}


def _csv(separator: str = ",") -> bytes:
    rows = [list(TABLE), *(map(str, row) for row in zip(*TABLE.values(), strict=True))]
    return "".join(separator.join(row) + "\n" for row in rows).encode()


CSV_SEEDS = [
    _csv(),
    _csv(";"),
    b'ws,kw,t,note\n5,"1,000",1,"a ""b"""\n6,,2,\n7,3,3,"x\ny"\n8,1e3,4,T\n',
    b"t,ws,kw,note\n1,5.5,1234.5,a\n2,6.5,NaN,b\n3,7.5,-3,c\n",
]


def parquet_bytes(table: pa.Table, **options: object) -> bytes:
    """A table as a Parquet file."""
    stream = io.BytesIO()
    pq.write_table(table, stream, **options)
    return stream.getvalue()


def _parquet_seeds() -> list[bytes]:
    whole = pa.table(TABLE)
    typed = whole.set_column(0, "t", pa.array(range(12), pa.timestamp("us")))
    odd = pa.table(
        {
            "t": pa.array(range(12), pa.int64()).cast(pa.decimal128(21, 2)),
            "note": pa.array(TABLE["note"]).dictionary_encode(),
            "ws": pa.array(TABLE["ws"], pa.float32()),
            "kw": pa.array([1, None, *range(10)], pa.int16()),
        }
    )
    return [
        parquet_bytes(whole, compression="none"),
        parquet_bytes(typed, compression="zstd", row_group_size=5),
        parquet_bytes(odd, compression="snappy", use_dictionary=False),
        parquet_bytes(whole.slice(0, 3), compression="none", write_statistics=False),
    ]


PARQUET_SEEDS = _parquet_seeds()


def make_csv(choose: Choose) -> bytes:
    """A CSV file, perhaps one to be compressed."""
    how = choose(len(OPTIONS) * 8)
    return bytes([how]) + mutate(CSV_SEEDS[choose(len(CSV_SEEDS))], choose, CSV_SEEDS)


def check_csv(data: bytes, folder: Path) -> bool:
    """Read a CSV file."""
    how, body = (data[0], data[1:]) if data else (0, b"")
    kind = how // len(OPTIONS)
    packed = kind == 7
    path = folder / ("a.csv.gz" if packed else "a.csv")
    if kind == 6:
        body = body[:1000].decode("latin-1").encode("utf-16") + body[1000:]
    path.write_bytes(gzip.compress(body, 1, mtime=0) if packed else body)
    return _check_records(path, OPTIONS[how % len(OPTIONS)], ENCODINGS.get(kind, {}))


def make_parquet(choose: Choose) -> bytes:
    """A Parquet file."""
    how = bytes([choose(len(OPTIONS))])
    return how + mutate_binary(PARQUET_SEEDS[choose(len(PARQUET_SEEDS))], choose, PARQUET_SEEDS)


def check_parquet(data: bytes, folder: Path) -> bool:
    """Read a Parquet file."""
    how, body = (data[0], data[1:]) if data else (0, b"")
    (folder / "a.parquet").write_bytes(body)
    return _check_records(folder / "a.parquet", OPTIONS[how % len(OPTIONS)])


def _check_records(path: Path, options: dict, encoding: dict = {}) -> bool:  # noqa: B006
    try:
        records = read_records(path, **NAMED, **options, **encoding)
    except GridveilError as error:
        wrong_unless(error.__context__ is None, "the error carries the reader's own")
        return False
    power = np.concatenate(list(unseal(records.power)()))
    blocks = [block for group in records.groups for block in group.columns(["speed"])()]
    speed = np.concatenate([block["speed"] for block in blocks])
    wrong_unless(records.rows == len(power) == len(speed) > 0, "lengths differ")
    wrong_unless(sum(group.rows for group in records.groups) == records.rows, "groups differ")
    wrong_unless(((power >= 0) & (power <= 1)).all(), "power outside its range")
    wrong_unless(np.isfinite(speed).all(), "speeds that are not finite")
    wrong_unless(records.speed_range == (speed.min(), speed.max()), "another range of speeds")
    if records.rows <= 40:  # what was read can be written, and read again
        out = path.with_name(f"again.{records.file_name}")
        records.write(out, unseal(records.power))
        again = read_records(out, **NAMED, **options)
        wrong_unless(again.rows == records.rows, "rows were lost on the way back")
    return True
