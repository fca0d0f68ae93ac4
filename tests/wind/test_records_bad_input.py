"""Bad input: a clear error each, decided by public facts, with no private value in its text."""

import gzip
import os
import re
import traceback

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given

from gridveil.errors import GridveilError, InputError
from gridveil.privacy.sealed import unseal
from gridveil.wind import read_records

CANARY = "1234.56789"
NAMED = {"speed": "ws", "power": "kw", "capacity": 2000.0}
GOOD = f"t,ws,kw\n1,5.5,{CANARY}\n2,6.5,{CANARY}\n3,7.5,{CANARY}\n"


def refusal(source, **options):
    """The error of reading this, with all that a log would show of it."""
    with pytest.raises(InputError) as caught:
        read_records(source, **{**NAMED, **options})
    error = caught.value
    assert error.__cause__ is None
    assert error.__context__ is None
    shown = "".join(traceback.format_exception_only(error)) + str(error.args) + str(error)
    assert "1234" not in shown
    assert "56789" not in shown
    return str(error)


CSV = {
    "missing column": (
        GOOD.replace("kw", "mw"),
        {},
        r"no column 'kw'. Its columns: 't', 'ws', 'mw'",
    ),
    "missing speed": (GOOD, {"speed": "v"}, "no column 'v'"),
    "missing public": (GOOD, {"public": ["dir"]}, "no column 'dir'"),
    "missing key": (GOOD, {"key": "time"}, "no column 'time'"),
    "missing turbine": (GOOD, {"turbine": "unit"}, "no column 'unit'"),
    "a key that is text in a dropped row only": (
        GOOD + "10,8.5,5\n2},6.5,\n",
        {"key": "t", "missing": "drop"},
        "'t' of a.csv is text only in rows that are left out, and holds numbers in all others",
    ),
    "the same, streamed": (
        "t,ws,kw\n10,5.5,1\n2},6.5,\n9,7.5,1\n",
        {"key": "t", "missing": "drop", "stream": True},
        "'t' of a.csv is text only in rows that are left out",
    ),
    "a key that is times but in a dropped row": (
        "t,ws,kw\n2024-01-01,5.5,1\nx,6.5,\n2024-01-02,7.5,1\n",
        {"key": "t", "missing": "drop"},
        "holds times in all others",
    ),
    "numbers without end, and text in a dropped row only": (
        "t,ws,kw\n" + "9" * 400 + ",5.5,1\nx,6.5,\n",
        {"public": ["t"], "missing": "drop"},
        "'t' of a.csv is text only in rows that are left out",
    ),
    "text in power": (GOOD + f"4,8.5,{CANARY}kW\n", {}, "'kw' of a.csv is not all numbers: row 4 "),
    "text in speed": (GOOD + "4,fast,1\n", {}, "'ws' of a.csv is not all numbers: row 4 "),
    "decimal comma": (GOOD.replace(",", ";").replace(".", ","), {}, "'ws' .* row 1 .*--decimal ,"),
    "gap in power": (GOOD + "4,8.5,\n5,8.5,NaN\n", {}, "'kw' .* 2 missing values, .* row 4 .*drop"),
    "gap in speed": (GOOD + f"4,,{CANARY}\n", {}, "'ws' of a.csv has 1 missing value, .* row 4 "),
    "gap in key": (GOOD + f",8.5,{CANARY}\n", {"key": "t"}, "'t' of a.csv has 1 missing value"),
    "gap in public": (GOOD + f"na,8.5,{CANARY}\n", {"public": ["t"]}, "'t' .* 1 missing value"),
    "gap in turbine": (GOOD + f" ,8.5,{CANARY}\n", {"turbine": "t"}, "'t' .* 1 missing value"),
    "only gaps": (f"ws,kw\n,{CANARY}\n1,\n", {"missing": "drop"}, "no rows but 2 with missing"),
    "infinite speed": (GOOD + f"4,inf,{CANARY}\n", {}, "'ws' of a.csv has 1 infinite .* row 4"),
    "empty file": ("", {}, "a.csv is empty"),
    "blank file": ("\n \n\n", {}, "a.csv is empty"),
    "header only": ("t,ws,kw\n", {}, "a.csv has no rows"),
    "header only, with times": ("t,ws,kw\n", {"time": "t"}, "a.csv has no rows"),
    "no headings": (f"7.5,{CANARY}\n8.5,{CANARY}\n", {}, "Its headings are numbers: put a line"),
    "no headings, other signs": (f"7.5;{CANARY}\n8.5;{CANARY}\n", {}, "Its headings are numbers"),
    "column twice": (f"ws,kw,kw\n1,2,{CANARY}\n", {}, "2 columns named 'kw'"),
    "long row": (GOOD + f"4,8.5,{CANARY},9\n", {}, "Row 4 of a.csv has 4 fields .* header has 3"),
    "short row": (GOOD + f"{CANARY}\n", {}, "Row 4 of a.csv has 1 fields"),
    "open quote": (f't,ws,kw\n4,8.5,"{CANARY}\n' + GOOD, {}, "'kw' of a.csv .* row 1 "),
    "latin1": (
        (GOOD + f"é,8.5,{CANARY}\n").encode("latin-1"),
        {"key": "t"},
        "a.csv is not UTF-8 text. .*--encoding cp1252",
    ),
    "latin1 in power": ((GOOD + f"4,8.5,{CANARY}é\n").encode("latin-1"), {}, "not UTF-8 text"),
    "latin1 and a long row": (
        (GOOD + f"4,8.5,{CANARY},9\n5,8.5,{CANARY}é\n").encode("latin-1"),
        {},
        "not UTF-8 text",
    ),
    "utf16": (GOOD.encode("utf-16"), {}, "not UTF-8"),
    "utf16 as latin1": (GOOD.encode("utf-16"), {"encoding": "latin-1"}, "not ISO8859-1 text"),
    "utf16 without a mark": (GOOD.encode("utf-16-le"), {"encoding": "utf-16"}, "not UTF-16 text"),
    "utf16 the other way": (GOOD.encode("utf-16-le"), {"encoding": "utf-16-be"}, "not UTF-16-BE"),
    "utf16 cut short": (GOOD.encode("utf-16")[:-1], {"encoding": "utf-16"}, "not UTF-16 text"),
    "utf8 as utf16": (GOOD + CANARY, {"encoding": "utf-16-le"}, "not UTF-16-LE text"),
    "utf8 as ascii": (GOOD + f"é,8.5,{CANARY}\n", {"encoding": "ascii"}, "not ASCII text"),
    "no sign of cp1252": (
        (GOOD + f"4,8.5,{CANARY}").encode() + b"\x81\n",
        {"encoding": "cp1252"},
        "a.csv is not CP1252 text. .*--encoding",
    ),
    "text in power of cp1252": (
        (GOOD + f"4,8.5,{CANARY}é\n").encode("cp1252"),
        {"encoding": "cp1252"},
        "'kw' of a.csv is not all numbers: row 4 ",
    ),
    "unknown encoding": (GOOD, {"encoding": "utf-88"}, "'utf-88' is not known. .*cp1252"),
    "zero capacity": (GOOD, {"capacity": 0}, "capacity must be a positive number, not 0"),
    "negative capacity": (GOOD, {"capacity": -1.0}, "must be a positive number"),
    "NaN capacity": (GOOD, {"capacity": float("nan")}, "must be a positive number"),
    "infinite capacity": (GOOD, {"capacity": float("inf")}, "must be a positive number"),
    "huge capacity": (GOOD, {"capacity": 10**400}, "must be a positive number"),
    "text capacity": (GOOD, {"capacity": "2 MW"}, "must be a positive number"),
    "capacity by nothing": (GOOD, {"capacity": {"1": 2000}}, "no turbine column is named"),
    "capacity of one": (
        GOOD,
        {"capacity": {"1": 2000}, "turbine": "t"},
        "no capacity for turbine 2",
    ),
    "zero for one": (
        GOOD,
        {"capacity": {"1": 0}, "turbine": "t"},
        "The capacity of turbine 1 must",
    ),
    "power as public": (GOOD, {"public": ["kw"]}, "'kw' is the private power"),
    "power as speed": (GOOD, {"speed": "kw"}, "'kw' is the private power"),
    "power as key": (GOOD, {"key": "kw"}, "'kw' is the private power"),
    "power as turbine": (GOOD, {"turbine": "kw"}, "'kw' is the private power"),
    "turbine as key": (GOOD, {"turbine": "t", "key": "t"}, "a column of its own"),
    "public as word": (GOOD, {"public": "t"}, r"public=\['t'\]"),
    "bad option": (GOOD, {"missing": "fill"}, 'Use "refuse" or "drop"'),
    "no unit": (GOOD, {"unit": " "}, "unit of power is empty"),
    "stream unkeyed": (GOOD, {"stream": True}, "needs a public key"),
    "stream unsorted": (GOOD + "0,1,1\n", {"stream": True, "key": "t"}, "Sort the file by 't'"),
    "stream tied": (GOOD + "3,1,1\n", {"stream": True, "key": "t"}, "Sort the file by 't'"),
    "stream turbines": (
        "u,t,ws,kw\nb,1,1,1\na,2,1,1\n",
        {"stream": True, "key": "t", "turbine": "u"},
        "Sort the file by 'u', then 't'",
    ),
}


@pytest.mark.parametrize("case", CSV)
def test_bad_csv(case, tmp_path):
    text, options, message = CSV[case]
    (tmp_path / "a.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    found = refusal(tmp_path / "a.csv", **options)
    assert re.search(message, found), found


def test_good_csv_is_read(tmp_path):
    (tmp_path / "a.csv").write_text(GOOD)
    assert read_records(tmp_path / "a.csv", **NAMED, key="t", stream=True).rows == 3


def test_first_gaps_of_a_long_file_are_counted_over_all_of_it(tmp_path):
    power = np.full(200_000, 1234.56789)
    power[[70_000, 150_000]] = np.nan
    pq.write_table(pa.table({"ws": np.ones(200_000), "kw": power}), tmp_path / "a.parquet")
    assert "'kw' of a.parquet has 2 missing values, the first in row 70001" in refusal(
        tmp_path / "a.parquet"
    )


def good_table():
    return pa.table({"ws": [1.0, 2.0], "kw": [1234.56789, 1234.56789]})


def test_bad_parquet(tmp_path):
    pq.write_table(good_table(), tmp_path / "good.parquet")
    whole = (tmp_path / "good.parquet").read_bytes()
    (tmp_path / "cut.parquet").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "text.parquet").write_text(GOOD)
    (tmp_path / "empty.parquet").write_bytes(b"")
    for name in ("cut", "text", "empty"):
        assert "can't be read as Parquet" in refusal(tmp_path / f"{name}.parquet")
    # The footer is whole, the pages are not.
    (tmp_path / "pages.parquet").write_bytes(b"PAR1" + bytes(60) + whole[64:])
    assert "can't be read as Parquet" in refusal(tmp_path / "pages.parquet")
    pq.write_table(good_table().slice(0, 0), tmp_path / "none.parquet")
    assert "none.parquet has no rows" in refusal(tmp_path / "none.parquet")


@given(places=st.lists(st.floats(0, 1), min_size=1, max_size=3), byte=st.integers(0, 255))
def test_damaged_parquet_is_read_or_refused(places, byte, tmp_path_factory):
    folder = tmp_path_factory.mktemp("damaged")
    rows = np.arange(50)
    words = pa.array([f"é{row % 3}" for row in rows])
    data = {"u": words, "w": words.dictionary_encode(), "t": rows, "ws": rows * 0.1, "kw": rows}
    pq.write_table(pa.table(data), folder / "a.parquet", compression="none")
    raw = bytearray((folder / "a.parquet").read_bytes())
    for place in places:
        raw[int(place * (len(raw) - 1))] = byte
    (folder / "a.parquet").write_bytes(raw)
    try:
        records = read_records(
            folder / "a.parquet", **NAMED, turbine="u", key="t", public=["w"], missing="drop"
        )
    except GridveilError:
        return
    records.write(folder / "out.parquet", unseal(records.power))


def test_bad_gzip(tmp_path):
    packed = gzip.compress(GOOD.encode() * 1000)
    (tmp_path / "a.csv.gz").write_bytes(packed[: len(packed) // 2])
    assert "a.csv.gz" in refusal(tmp_path / "a.csv.gz")
    (tmp_path / "b.csv.gz").write_text(GOOD)
    assert "can't be unpacked" in refusal(tmp_path / "b.csv.gz")


def test_bad_paths(tmp_path):
    assert "There is no file" in refusal(tmp_path / "none.csv")
    assert "There are no files in the folder" in refusal(tmp_path)
    assert "There are no files in the pattern" in refusal(str(tmp_path / "*.csv"))
    assert "There are no files in the list" in refusal([])
    hidden = tmp_path / ".trash"  # which the pattern would not find
    hidden.mkdir()
    (hidden / "old.csv").write_text(GOOD)
    inner = tmp_path / "month=1"
    inner.mkdir()
    assert "There are no files in the folder" in refusal(tmp_path)
    (inner / "part.csv").write_text(GOOD)
    said = refusal(tmp_path)
    assert "but in month=1 inside it" in said
    assert f'"{tmp_path}/*/*.csv"' in said
    assert read_records(f"{tmp_path}/*/*.csv", **NAMED).rows == 3
    assert "month=1 is a folder, and files are expected beside it" in refusal(
        [inner, tmp_path / "a.csv"]
    )
    (tmp_path / "a.xlsx").write_bytes(b"1234.56789")
    assert "The format of a.xlsx is not known" in refusal(tmp_path / "a.xlsx")
    (tmp_path / "a.csv").write_text(GOOD)
    assert "a.csv is listed twice" in refusal([tmp_path / "a.csv", tmp_path / "a.csv"])
    for odd in (7, None, {"ws": [1]}, b"a.csv", [1, 2], np.ones(3)):
        assert "Records can't be read from" in refusal(odd)


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(tmp_path):
    (tmp_path / "a.csv").write_text(GOOD)
    (tmp_path / "a.csv").chmod(0)
    assert "can't be opened" in refusal(tmp_path / "a.csv")


def test_folders_of_several_schemas(tmp_path):
    pq.write_table(good_table(), tmp_path / "a.parquet")
    other = good_table().set_column(0, "ws", pa.array([1, 2]))
    pq.write_table(other, tmp_path / "b.parquet")
    assert "'ws' is double in a.parquet and int64 in b.parquet" in refusal(tmp_path)
    pq.write_table(good_table().drop_columns(["kw"]), tmp_path / "b.parquet")
    assert "b.parquet has no column 'kw'" in refusal(tmp_path)
    (tmp_path / "c.csv").write_text(GOOD)
    assert "of several formats: csv, parquet" in refusal(tmp_path)


def test_bad_tables():
    frame = good_table().to_pandas()
    mixed = pd.DataFrame({"ws": [1.0, 2.0, 3.0], "kw": [1, "1234.56789 kW", 1234.56789]})
    assert "'kw' of the table is not all numbers: row 2" in refusal(mixed)
    odd = pd.DataFrame({"ws": [1.0, 2.0], "kw": [object(), 1234.56789]})
    assert "'kw' of the table is not all numbers: row 1" in refusal(odd)
    twice = pd.concat([frame, frame["kw"]], axis=1)
    assert "the table has 2 columns named 'kw'" in refusal(twice)
    assert "no rows" in refusal(frame.iloc[:0])
    assert "no rows" in refusal(pl.DataFrame(good_table()).clear())
    assert "no column 'ws'" in refusal(pd.DataFrame())
    assert "can't be streamed" in refusal(frame, stream=True)
    times = good_table().set_column(1, "kw", pa.array([1, 2], pa.timestamp("s")))
    assert "'kw' of the table is of type timestamp[s]" in refusal(times)
    lists = good_table().append_column("l", pa.array([[1], [2]]))
    assert "'l' of the table is of type list" in refusal(lists, public=["l"])
    nulls = good_table().set_column(1, "kw", pa.nulls(2))
    assert "'kw' of the table has 2 missing values" in refusal(nulls)
    assert "no rows but 2" in refusal(nulls, missing="drop")
    lazy = pl.scan_parquet("/nowhere/1234.56789.parquet")
    assert "can't be read" in refusal(lazy)


@given(power=st.lists(st.floats(allow_nan=False), min_size=2, max_size=5))
def test_no_power_is_a_reason_to_refuse(power):
    data = pa.table({"ws": np.arange(float(len(power))), "kw": power})
    records = read_records(data, **NAMED)
    shares = np.concatenate(list(unseal(records.power)()))
    assert ((shares >= 0) & (shares <= 1)).all()


FIELD = st.sampled_from(
    [
        "1",
        "-2.5",
        "1e999",
        "",
        "NaN",
        "x",
        '"',
        '"a',
        '"b"',
        "é",
        "\0",
        " 3",
        "+4",
        "inf",
        "2020-01-01",
    ]
)
TEXTS = st.builds(
    lambda rows, end, delimiter: end.join(delimiter.join(row) for row in rows),
    st.lists(st.lists(FIELD, min_size=1, max_size=4), max_size=6),
    st.sampled_from(["\n", "\r\n", "\r", "\n\n"]),
    st.sampled_from([",", ";"]),
)


@given(
    body=TEXTS.map(lambda text: ("t,ws,kw\n" + text).encode())
    | TEXTS.map(str.encode)
    | st.binary(max_size=60)
    | st.binary(max_size=40).map(lambda raw: b"t,ws,kw\n1,2,3\n" + raw),
    options=st.fixed_dictionaries(
        {},
        optional={
            "key": st.just("t"),
            "public": st.just(["t"]),
            "turbine": st.just("t"),
            "stream": st.booleans(),
            "missing": st.just("drop"),
        },
    ),
    encoding=st.sampled_from(["utf-8", "cp1252", "utf-16", "utf-16-le"]),
    packed=st.booleans(),
)
def test_any_bytes_are_read_or_refused(body, options, encoding, packed, tmp_path_factory):
    folder = tmp_path_factory.mktemp("fuzz")
    path = folder / ("a.csv.gz" if packed else "a.csv")
    if encoding == "utf-16":
        body = body.decode("latin-1").encode(encoding)
    path.write_bytes(gzip.compress(body) if packed else body)
    try:
        records = read_records(path, **NAMED, **options, encoding=encoding)
    except GridveilError:
        return
    records.write(folder / records.file_name, unseal(records.power))
    # Text that repeats is written as it was, so what was written can be read again.
    again = read_records(folder / records.file_name, **NAMED, **options)
    assert again.rows == records.rows
    np.testing.assert_allclose(
        np.concatenate(list(unseal(again.power)())).sum(),
        np.concatenate(list(unseal(records.power)())).sum(),
        atol=1e-5,
    )


@pytest.mark.parametrize("capacity", [1e-300, 1e300])
def test_a_capacity_that_shares_would_underflow_with_is_refused(capacity):
    table = pa.table({"v": [3.0], "p": [1.0]})
    with pytest.raises(InputError, match="which no turbine has"):
        read_records(table, speed="v", power="p", capacity=capacity)
