"""Reading, sealing and writing records: what comes in, what goes out, and in which order."""

import datetime
import gzip
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given

from gridveil.errors import InputError, SealedError
from gridveil.privacy.mechanisms import laplace_blocks
from gridveil.privacy.sealed import unseal
from gridveil.privacy.sensitivity import Sensitivity
from gridveil.wind import read_records
from gridveil.wind import records as records_module
from gridveil.wind.io.in_memory import HeldPower
from gridveil.wind.io.streamed import StreamedPower

CAPACITY = 2000.0
NAMED = {"speed": "ws", "power": "kw", "capacity": CAPACITY}


def values(sealed):
    return np.concatenate([np.zeros(0), *unseal(sealed)()])


def constant(records, share=0.5):
    return lambda: iter([np.full(records.rows, share)])


def table(rows=1000, seed=0):
    """A table in the order of its power, with a column that nobody named."""
    rng = np.random.default_rng(seed)
    power = np.sort(rng.uniform(0, CAPACITY, rows))
    start = np.datetime64("2020-01-01T00:00", "us")
    return pa.table(
        {
            "secret": power * 2,
            "time": start + rng.permutation(rows) * np.timedelta64(10, "m"),
            "kw": power,
            "ws": rng.uniform(0, 25, rows),
            "direction": pa.array(rng.uniform(0, 360, rows).astype("f4")),
        }
    )


def store(data, folder: Path, how: str):
    if how == "csv":
        pyarrow.csv.write_csv(data, folder / "data.csv")
        return folder / "data.csv"
    if how == "csv.gz":
        path = folder / "data.csv.gz"
        with gzip.open(path, "wb") as stream:
            pyarrow.csv.write_csv(data, stream)
        return path
    if how == "parquet":
        pq.write_table(data, folder / "data.parquet")
        return folder / "data.parquet"
    if how == "pandas":
        return data.to_pandas()
    if how == "lazy":
        return pl.DataFrame(data).lazy()
    return pl.DataFrame(data) if how == "polars" else data


KINDS = ["csv", "csv.gz", "parquet", "pandas", "polars", "lazy", "arrow"]


@pytest.mark.parametrize("how", KINDS)
def test_what_comes_in_goes_out_in_the_order_of_the_key(how, tmp_path):
    data = table()
    records = read_records(store(data, tmp_path, how), **NAMED, public=["direction"], key="time")
    ordered = data.sort_by("time")
    assert records.rows == len(records) == 1000
    assert records.published == ("time", "ws", "direction")
    np.testing.assert_allclose(values(records.power), ordered["kw"].to_numpy() / CAPACITY)
    [group] = records.groups
    blocks = list(group.columns(["speed", "ws", "direction"])())
    np.testing.assert_allclose(blocks[0]["speed"], ordered["ws"].to_numpy())
    np.testing.assert_allclose(blocks[0]["ws"], ordered["ws"].to_numpy())
    np.testing.assert_allclose(blocks[0]["direction"], ordered["direction"].to_numpy(), rtol=1e-6)

    target = tmp_path / records.file_name
    assert records.file_name == ("records." + how if how.startswith("csv") else "records.parquet")
    records.write(target, unseal(records.power))
    back = pyarrow.csv.read_csv(target) if "csv" in how else pq.read_table(target)
    assert back.column_names == ["time", "kw", "ws", "direction"]
    np.testing.assert_allclose(back["kw"].to_numpy(), ordered["kw"].to_numpy(), atol=0.0011)
    assert back["time"].to_pylist() == ordered["time"].to_pylist()

    released = records.to_table(values(records.power))
    wanted = {"polars": pl.DataFrame, "lazy": pl.DataFrame, "arrow": pa.Table}
    assert isinstance(released, wanted.get(how, pd.DataFrame))
    np.testing.assert_allclose(np.asarray(released["kw"]), ordered["kw"].to_numpy(), atol=0.0011)


TYPES = {
    "float32": pa.float32(),
    "float16": pa.float16(),
    "int16": pa.int16(),
    "uint64": pa.uint64(),
    "decimal": pa.decimal128(9, 2),
}


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("how", ["parquet", "arrow"])
def test_power_is_a_64_bit_float_whatever_it_was(kind, how, tmp_path):
    power = pa.array([100.0, 1500.0, 7.0]).cast(TYPES[kind])
    data = pa.table({"kw": power, "ws": pa.array([3, 2, 1], pa.int32())})
    records = read_records(store(data, tmp_path, how), **NAMED)
    np.testing.assert_allclose(values(records.power), [0.0035, 0.75, 0.05])
    shares = [0.0, 1.0, 0.50026]
    records.write(tmp_path / "out.parquet", lambda: iter([np.array(shares)]))
    back = pq.read_table(tmp_path / "out.parquet")
    assert back.schema.types == [pa.float64(), pa.int32()]
    assert back["kw"].to_pylist() == [0, 2000, 1000.52]
    assert records.to_table(shares)["kw"].to_numpy().dtype == np.float64


def test_types_of_public_columns_of_pandas_and_polars_are_kept():
    frame = pd.DataFrame(
        {
            "time": pd.date_range("2020", periods=3, freq="10min", tz="Europe/Paris"),
            "unit": pd.Categorical(["b", "a", "b"]),
            "kw": pd.array([1, 2, 3], dtype="Int64"),
            "ws": np.array([3, 2, 1], dtype="f4"),
        },
        index=[7, 8, 9],
    )
    records = read_records(frame, **NAMED, key="time", turbine="unit")
    back = records.to_table([0.25, 0.5, 0.75])
    assert dict(back.dtypes) == {**frame.dtypes, "kw": np.dtype(np.float64)}
    assert list(back["unit"]) == ["a", "b", "b"]
    assert list(back["kw"]) == [500, 1000, 1500]
    other = pl.DataFrame(frame)
    again = read_records(other, **NAMED, key="time", turbine="unit").to_table([0.25, 0.5, 0.75])
    assert again.schema == {**other.schema, "kw": pl.Float64()}


def test_later_changes_of_a_frame_change_nothing():
    frame = pd.DataFrame({"kw": [1.0, 2.0], "ws": [1.0, 2.0]})
    records = read_records(frame, **NAMED)
    frame.loc[:, :] = 9.0
    assert next(records.groups[0].columns()())["speed"].tolist() == [1.0, 2.0]
    assert values(records.power).tolist() == [0.0005, 0.001]


def test_no_metadata_and_no_other_column_is_copied(tmp_path):
    frame = table().to_pandas()
    frame.attrs["owner"] = "canary"
    data = pa.Table.from_pandas(frame).replace_schema_metadata({"owner": "canary"})
    field = data.schema.field("ws").with_metadata({"owner": "canary"})
    data = data.set_column(data.schema.get_field_index("ws"), field, data["ws"])
    records = read_records(store(data, tmp_path, "parquet"), **NAMED)
    records.write(tmp_path / "out.parquet", constant(records))
    assert pq.read_metadata(tmp_path / "out.parquet").metadata is None
    raw = (tmp_path / "out.parquet").read_bytes()
    assert b"canary" not in raw
    assert b"pandas" not in raw
    assert b"secret" not in raw
    assert pq.read_table(tmp_path / "out.parquet").column_names == ["kw", "ws"]


def test_zones_and_categories_survive_parquet(tmp_path):
    times = pa.array([2, 1], pa.timestamp("us", "Europe/Paris"))
    words = pa.array(["x", "y"]).dictionary_encode()
    data = pa.table({"time": times, "word": words, "kw": [1.0, 2.0], "ws": [1.0, 2.0]})
    path = store(data.replace_schema_metadata({"a": "canary"}), tmp_path, "parquet")
    records = read_records(path, **NAMED, key="time", public=["word"])
    records.write(tmp_path / "out.parquet", constant(records))
    assert pq.read_schema(tmp_path / "out.parquet").types == data.schema.types
    assert b"canary" not in (tmp_path / "out.parquet").read_bytes()


def test_public_text_of_a_csv_file_is_written_as_it_was(tmp_path):
    text = (
        'when;note;kw;ws;flag\n"31/01/2020 00:10";"a ""b""; c";10;1.50;007\n'
        "31/01/2020 00:00; padded ;+20.5;  2e0;08\n"
    )
    (tmp_path / "a.csv").write_text("\ufeff" + text, encoding="utf-8")
    records = read_records(tmp_path / "a.csv", **NAMED, key="when", public=["note", "flag"])
    records.write(tmp_path / "out.csv", constant(records))
    assert (tmp_path / "out.csv").read_text() == (
        "when;note;kw;ws;flag\n31/01/2020 00:00; padded ;1000;  2e0;08\n"
        '31/01/2020 00:10;"a ""b""; c";1000;1.50;007\n'
    )
    assert records.groups[0].columns(["flag"])
    with pytest.raises(InputError, match="'note' is not a public column of numbers"):
        records.groups[0].columns(["note"])
    assert records.to_table([0.1, 0.2])["flag"].tolist() == [8, 7]


def test_whether_csv_power_looks_whole_is_private_so_it_is_written_alike(tmp_path):
    outputs = set()
    for text in ("kw,ws\n1,1\n2,2\n", "kw,ws\n1.5,1\n2.0,2\n"):
        (tmp_path / "a.csv").write_text(text)
        records = read_records(tmp_path / "a.csv", **NAMED)
        records.write(tmp_path / "out.csv", constant(records, 0.3333333))
        outputs.add((tmp_path / "out.csv").read_text())
    assert outputs == {"kw,ws\n666.666,1\n666.666,2\n"}


def test_compressed_output_holds_no_name_and_no_time(tmp_path):
    records = read_records(store(table(5), tmp_path, "csv.gz"), **NAMED)
    records.write(tmp_path / "records.csv.gz", constant(records))
    header = (tmp_path / "records.csv.gz").read_bytes()[:10]
    assert header[3] == 0  # no name follows
    assert header[4:8] == bytes(4)


@pytest.mark.parametrize("how", ["csv", "parquet", "pandas"])
@given(seed=st.integers(0, 2**32 - 1), keyed=st.booleans())
def test_the_order_of_the_source_leaves_no_trace(how, seed, keyed, tmp_path_factory):
    """With noise that goes with the row, any order of the source gives the same file."""
    folder = tmp_path_factory.mktemp("order")
    rng = np.random.default_rng(seed)
    data = pa.table(
        {
            "unit": rng.integers(0, 2, 30),
            "time": rng.integers(0, 4, 30),
            "ws": rng.integers(0, 3, 30).astype(float),
            "kw": rng.permutation(30) * 60.0,
        }
    )
    written = set()
    for order in (np.arange(30), rng.permutation(30), np.argsort(data["kw"].to_numpy())):
        source = store(data.take(pa.array(order)), folder, how)
        records = read_records(source, **NAMED, turbine="unit", key="time" if keyed else None)
        # Power is all different, so a function of it is noise that belongs to its row.
        noise = dict(zip(data["kw"].to_pylist(), _noise(seed), strict=True))
        released = np.array([noise[round(y * CAPACITY, 6)] for y in values(records.power)])
        target = folder / records.file_name
        records.write(target, lambda released=released: iter([released]))
        written.add(target.read_bytes())
    assert len(written) == 1


def _noise(seed):
    return np.random.default_rng(seed + 1).uniform(0, 1, 30)


def test_rows_with_one_key_are_ordered_by_what_else_is_public():
    data = pa.table({"t": [1, 1, 1, 0], "ws": [3.0, 1.0, 2.0, 9.0], "kw": [1.0, 2.0, 3.0, 4.0]})
    records = read_records(data, **NAMED, key="t")
    assert records.to_table([0, 0.3, 0.2, 0.1]).to_pydict() == {
        "t": [0, 1, 1, 1],
        "ws": [9.0, 1.0, 2.0, 3.0],
        "kw": [0.0, 600.0, 400.0, 200.0],
    }


def test_keys_of_csv_text_are_ordered_by_what_they_mean(tmp_path):
    cases = {
        "numbers": ["9", "10", "100"],
        "times": ["2020-01-01 09:00", "2020-01-01 10:00:00", "2020-01-02"],
        "zones": ["2020-10-25T02:50+02:00", "2020-10-25T02:00+01:00", "2020-10-25T02:10+01:00"],
        "words": ["a", "b", "c d"],
    }
    for keys in cases.values():
        rows = [f"{key},{at},{at}" for at, key in enumerate(keys)]
        (tmp_path / "a.csv").write_text("t,ws,kw\n" + "\n".join(reversed(rows)))
        records = read_records(tmp_path / "a.csv", **NAMED, key="t")
        assert next(records.groups[0].columns()())["speed"].tolist() == [0, 1, 2]
        (tmp_path / "a.csv").write_text("t,ws,kw\n" + "\n".join(rows))
        assert read_records(tmp_path / "a.csv", **NAMED, key="t", stream=True).rows == 3


def test_clipping_is_silent_and_its_count_is_sealed():
    wild = [-np.inf, -5.0, 0.0, 1e300, np.inf, 2000.0, 1e-320, -1e300]
    data = pa.table({"kw": wild, "ws": np.arange(8.0)})
    for capacity in (CAPACITY, 1e-12, 1e15):
        records = read_records(data, speed="ws", power="kw", capacity=capacity)
        assert ((values(records.power) >= 0) & (values(records.power) <= 1)).all()
    records = read_records(data, **NAMED)
    assert values(records.power).tolist() == [0, 0, 0, 1, 1, 1, 1e-320 / 2000, 0]
    assert unseal(records.clipped) == 5
    with pytest.raises(SealedError):
        int(records.clipped)
    big = pa.table({"kw": pa.array([2**62 + 1, 5], pa.int64()), "ws": [1.0, 2.0]})
    assert values(read_records(big, **NAMED).power).tolist() == [1, 0.0025]


def test_what_is_printed_is_public():
    records = read_records(table(), **NAMED, key="time", name="farm")
    assert repr(records).startswith("Records 'farm': 1,000 rows\n  wind speed  'ws' from 0.0")
    assert "capacity 2000 kW" in repr(records)
    assert "<sealed wind power: 1000 shares of capacity>" in repr(records.groups[0])
    assert not any(isinstance(v, np.ndarray) for v in vars(records).values())


def test_missing_rows_are_dropped_and_counted():
    data = pa.table(
        {
            "t": [1, 2, None, 4, 5, 6],
            "ws": [1.0, None, 3.0, 4.0, float("nan"), 6.0],
            "kw": [1.0, 2.0, 3.0, None, 5.0, 6.0],
            "note": [None, "a", "b", "c", "d", "e"],
        }
    )
    records = read_records(data, **NAMED, key="t", public=["note"], missing="drop")
    assert (records.rows, records.dropped, records.missing) == (2, 4, "drop")
    assert records.to_table([0, 1])["note"].to_pylist() == [None, "e"]
    assert "4 with missing values dropped" in repr(records)


def farm(rows_each=300, turbines=("A", "B", "C")):
    rng = np.random.default_rng(3)
    rows = rows_each * len(turbines)
    return pa.table(
        {
            "unit": np.repeat(turbines, rows_each),
            "time": np.tile(np.arange(rows_each), len(turbines)),
            "ws": rng.uniform(0, 25, rows),
            "kw": rng.uniform(-50, 2500, rows),
        }
    )


def test_turbines_have_their_own_capacity():
    data = farm().take(pa.array(np.random.default_rng(1).permutation(900)))
    sizes = {"A": 1000.0, "B": 2000.0, "C": 3000.0, "spare": 1.0}
    records = read_records(data, speed="ws", power="kw", capacity=sizes, turbine="unit", key="time")
    assert [(g.name, g.rows, g.start, g.capacity) for g in records.groups] == [
        ("A", 300, 0, 1000.0),
        ("B", 300, 300, 2000.0),
        ("C", 300, 600, 3000.0),
    ]
    ordered = farm()["kw"].to_numpy() / np.repeat([1000, 2000, 3000], 300)
    parts = np.concatenate([values(group.power) for group in records.groups])
    np.testing.assert_allclose(parts, np.clip(ordered, 0, 1))
    np.testing.assert_allclose(parts, values(records.power))
    back = records.to_table(np.full(900, 0.5))
    assert back["kw"].to_pylist() == [500.0] * 300 + [1000.0] * 300 + [1500.0] * 300
    assert back["unit"].to_pylist() == farm()["unit"].to_pylist()
    assert "turbines    3: A, B, C" in repr(records)


def test_thousands_of_turbines():
    names = [f"T{n:04}" for n in range(3000)]
    records = read_records(farm(20, names), **NAMED, turbine="unit", key="time")
    assert [g.name for g in records.groups] == names
    assert records.groups[-1].start == 59_980
    assert next(records.groups[7].columns()())["speed"].shape == (20,)


@pytest.mark.parametrize("how", ["csv", "csv.gz", "parquet"])
@pytest.mark.parametrize("missing", [False, True])
def test_streamed_records_equal_those_in_memory(how, missing, tmp_path, monkeypatch):
    data = farm(25_000)
    if missing:
        gaps = pa.array(np.arange(75_000) % 7 == 3)
        data = data.set_column(3, "kw", pa.compute.if_else(gaps, None, data["kw"]))
    files = []
    for at, cut in enumerate((0, 2_000, 70_000)):
        folder = tmp_path / str(at)
        folder.mkdir()
        files.append(store(data.slice(cut, (2_000, 68_000, 5_000)[at]), folder, how))
    options = {
        "speed": "ws",
        "power": "kw",
        "capacity": {"A": 1000, "B": 2000, "C": 3000},
        "key": "time",
        "turbine": "unit",
        "missing": "drop",
    }
    held = read_records(files, **options)
    monkeypatch.setattr(records_module, "STREAM_ABOVE", 70_000)
    streamed = read_records(files, **options, stream=None if how == "parquet" else True)
    assert (held.streamed, streamed.streamed) == (False, True)
    assert streamed.dropped == held.dropped == (10_714 if missing else 0)
    assert unseal(streamed.clipped) == unseal(held.clipped) > 0
    np.testing.assert_array_equal(values(streamed.power), values(held.power))
    for kept, kind in ((streamed, StreamedPower), (held, HeldPower)):
        seals = (
            unseal(kept.power),
            *unseal(kept.by_turbine),
            *(unseal(g.power) for g in kept.groups),
        )
        assert {type(reader) for reader in seals} == {kind}  # plain data, no closure
        assert "array" not in repr(seals)
        joined = [block for part in unseal(kept.by_turbine) for block in part()]
        np.testing.assert_array_equal(np.concatenate(joined), values(held.power))
    for a, b in zip(streamed.groups, held.groups, strict=True):
        assert (a.name, a.rows, a.start, a.capacity) == (b.name, b.rows, b.start, b.capacity)
        np.testing.assert_array_equal(values(a.power), values(b.power))
        sizes = [len(block) for block in unseal(a.power)()]
        assert [len(block["ws"]) for block in a.columns(["ws"])()] == sizes
        speeds = [np.concatenate([c["speed"] for c in g.columns()()]) for g in (a, b)]
        np.testing.assert_array_equal(*speeds)
    for records, name in ((held, "held"), (streamed, "streamed")):
        records.write(tmp_path / name, _odd(records))
    assert (tmp_path / "held").read_bytes() == (tmp_path / "streamed").read_bytes()


def _odd(records):
    """Released power in blocks that fit no other blocks."""
    shares = np.linspace(0, 1, records.rows)
    return lambda: (shares[at : at + 9_999] for at in range(0, records.rows, 9_999))


def test_a_wrong_number_of_released_values_is_refused(tmp_path):
    for keyed in (None, "time"):
        records = read_records(table(), **NAMED, key=keyed)
        for wrong in (999, 1001):
            with pytest.raises(InputError, match="released values than records"):
                records.to_table(np.zeros(wrong))
    with pytest.raises(InputError, match="not all numbers"):
        records.to_table(np.full(1000, np.nan))


def test_folders_patterns_and_lists(tmp_path):
    folder = tmp_path / "farm"
    folder.mkdir()
    for at in range(3):
        pyarrow.csv.write_csv(table(10, seed=at), folder / f"{at}.csv")
    (folder / "notes.txt").write_text("not data")
    for source in (folder, str(folder / "*.csv"), sorted(folder.glob("*.csv"))):
        records = read_records(source, **NAMED)
        assert (records.rows, records.name) == (30, "farm")
    assert read_records(folder / "0.csv", **NAMED).name == "0"
    assert read_records(table(), **NAMED).name == "wind records"


def test_a_mechanism_takes_the_sealed_power(account, tmp_path):
    records = read_records(table(), **NAMED, key="time")
    noisy = laplace_blocks(
        account,
        records.power,
        name="power of each record",
        sensitivity=Sensitivity(Fraction(1, 10), why="one record moves by alpha", proved=True),
        epsilon=1,
    )
    released = [np.clip(block, 0, 1) for block in noisy.value]
    records.write(tmp_path / "out.parquet", lambda: iter(released))
    back = pq.read_table(tmp_path / "out.parquet")["kw"].to_numpy()
    np.testing.assert_allclose(back, np.concatenate(released) * CAPACITY, atol=0.0011)


def test_la_haute_borne(tmp_path):
    """Four turbines, ten-minute data for two years, with all that real SCADA data has."""
    rng = np.random.default_rng(0)
    rows, turbines = 100_000, ["R80711", "R80721", "R80736", "R80790"]
    start = np.datetime64("2013-01-01", "s")
    parts = []
    for name in turbines:
        speed = rng.weibull(2, rows) * 7.5
        power = 2050 * np.clip((speed / 12) ** 3, 0, 1) + rng.normal(0, 15, rows)
        power = np.where(speed < 3, rng.normal(-3, 2, rows), power)  # standby
        power = np.where(rng.random(rows) < 0.02, np.minimum(power, 500), power)  # curtailed
        gaps = rng.random(rows) < 0.01
        parts.append(
            pa.table(
                {
                    "Wind_turbine_name": pa.array([name] * rows),
                    "Date_time": start + np.arange(rows) * np.timedelta64(10, "m"),
                    "Ba_avg": pa.array(rng.normal(0, 1, rows).astype("f4")),
                    "P_avg": pa.array(power.astype("f4"), mask=gaps),
                    "Ws_avg": pa.array(speed.astype("f4"), mask=gaps),
                    "Wa_avg": pa.array(rng.uniform(0, 360, rows).astype("f4")),
                }
            )
        )
    data = pa.concat_tables(parts).take(pa.array(rng.permutation(4 * rows)))
    pq.write_table(data, tmp_path / "lhb.parquet")
    options = {
        "speed": "Ws_avg",
        "power": "P_avg",
        "capacity": 2050,
        "turbine": "Wind_turbine_name",
    }
    with pytest.raises(InputError, match=r"'\w+_avg' of lhb.parquet has [\d,]+ missing values"):
        read_records(tmp_path / "lhb.parquet", **options)
    records = read_records(
        tmp_path / "lhb.parquet", **options, key="Date_time", public=["Wa_avg"], missing="drop"
    )
    assert [group.name for group in records.groups] == turbines
    assert records.rows + records.dropped == 400_000
    records.write(tmp_path / "out.parquet", unseal(records.power))
    back = pq.read_table(tmp_path / "out.parquet")
    names = ["Wind_turbine_name", "Date_time", "P_avg", "Ws_avg", "Wa_avg"]
    assert back.column_names == names
    assert back.schema.field("P_avg").type == pa.float64()
    original = data.drop_null().sort_by(
        [("Wind_turbine_name", "ascending"), ("Date_time", "ascending")]
    )
    np.testing.assert_array_equal(back["Ws_avg"].to_numpy(), original["Ws_avg"].to_numpy())
    np.testing.assert_allclose(
        back["P_avg"].to_numpy(), np.clip(original["P_avg"].to_numpy(), 0, 2050), atol=0.0012
    )


@pytest.mark.parametrize("how", ["csv", "parquet"])
def test_a_million_zeros(how, tmp_path):
    zeros = np.zeros(1_000_000)
    path = store(pa.table({"kw": zeros, "ws": zeros}), tmp_path, how)
    records = read_records(path, **NAMED)
    assert not values(records.power).any()
    shares = np.random.default_rng(0).uniform(0, 1, 1_000_000)
    records.write(tmp_path / "out", lambda: iter([shares]))
    back = (
        pyarrow.csv.read_csv(tmp_path / "out") if how == "csv" else pq.read_table(tmp_path / "out")
    )
    assert back.num_rows == 1_000_000
    assert (np.diff(back["kw"].to_numpy()) >= 0).all()  # all rows are alike: order of release


def test_other_types_of_public_columns():
    data = pa.table(
        {
            "day": pa.array([datetime.date(2020, 1, 2), datetime.date(2020, 1, 1)]),
            "hour": pa.array([datetime.time(1), datetime.time(2)]),
            "on": pa.array([True, False]),
            "price": pa.array([Decimal("1.50"), Decimal("2.25")]),
            "nothing": pa.nulls(2),
            "raw": pa.array([b"a", None]),
            "view": pa.array(["v", "w"], pa.string_view()),
            "half": pa.array([1.5, 2.5], pa.float16()),
            "kw": [1.0, 2.0],
            "ws": [1.0, 2.0],
        }
    )
    public = [name for name in data.column_names if name not in ("kw", "ws")]
    records = read_records(data, **NAMED, public=public, key="day")
    back = records.to_table([0.1, 0.2])
    assert back.schema.types == data.schema.types
    assert back.drop_columns(["kw"]).to_pylist() == data.drop_columns(["kw"]).to_pylist()[::-1]
    block = next(records.groups[0].columns(["on", "price", "half"])())
    assert {n: v.tolist() for n, v in block.items()} == {
        "on": [0, 1],
        "price": [2.25, 1.5],
        "half": [2.5, 1.5],
    }


def test_a_file_that_changes_under_a_stream_is_noticed(tmp_path):
    path = store(farm(), tmp_path, "csv")
    records = read_records(path, **NAMED, key="time", turbine="unit", stream=True)
    path.write_text(path.read_text() + "D,1,1,1\n")
    with pytest.raises(InputError, match="was changed"):
        values(records.power)
