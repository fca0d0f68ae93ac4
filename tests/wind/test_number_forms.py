"""The same power, however it is written and stored: it reads the same, and nothing else changes."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gridveil.errors import InputError
from gridveil.privacy.sealed import unseal
from gridveil.wind import read_records

NAMED = {"speed": "ws", "power": "kw", "capacity": 2000.0}
HUGE = 10**5000  # `str` refuses it
KINDS = ["int", "float", "decimal", "text", "huge"]


def shares(source, **options):
    return np.concatenate(list(unseal(read_records(source, **NAMED, **options).power)())).tolist()


def frame(power, dtype=object):
    return pd.DataFrame({"ws": np.arange(float(len(power))), "kw": pd.Series(power, dtype=dtype)})


@pytest.mark.parametrize(
    "text",
    ["100", "100.0", "1e2", "1E+02", "+100", " 100", "100 ", "0100", "100.", "\t1.00e2",
     "0" * 5000 + "100", "100." + "0" * 5000, "\u00a0100"],
    ids=range(13),
)  # fmt: skip
@pytest.mark.parametrize("quoted", [False, True])
def test_text_of_one_number_reads_the_same(text, quoted, tmp_path):
    cell = f'"{text}"' if quoted else text
    (tmp_path / "a.csv").write_text(f"kw,ws\n{cell},1\n1e400,2\n-inf,3\n")
    assert shares(tmp_path / "a.csv") == [0.05, 1, 0]
    assert shares(frame([text, HUGE, -HUGE])) == [0.05, 1, 0]


@pytest.mark.parametrize(
    "others",
    [[], [2**70], [HUGE], [-HUGE], ["7"], [True], [Decimal("1.5")], [Decimal("Infinity")], [1.5],
     [Fraction(10**400)], [np.int8(3), "1e400", Decimal("-1E+999999")], [np.True_, 0.5]],
)  # fmt: skip
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_number_does_not_depend_on_what_else_is_in_its_column(others, library):
    ours = [np.float32(1.1), 1, True, 100.5, np.int64(7), Decimal("0.1"), Fraction(1, 3)]
    for one in ours:
        column = [one, *others]
        table = frame(column)
        if library == "polars":
            table = pl.DataFrame({"ws": table["ws"], "kw": pl.Series(column, dtype=pl.Object)})
        assert shares(table)[0] == float(one) / 2000


def test_decimals_are_the_nearest_floats():
    rng = np.random.default_rng(1)
    for bits, (digits, scale) in ((128, (9, 2)), (128, (38, 30)), (256, (76, 40)), (32, (9, 4))):
        numbers = [
            Decimal(int(rng.integers(10**9)) ** 2 % 10 ** min(digits, scale + 3)).scaleb(-scale)
            for _ in range(300)
        ]
        kind = getattr(pa, f"decimal{bits}")(digits, scale)
        table = pa.table({"ws": np.arange(300.0), "kw": pa.array(numbers, kind)})
        assert shares(table) == [float(n) / 2000 for n in numbers]


def test_integers_of_128_bits():
    kw = pl.Series([2**100, -(2**100), 100], dtype=pl.Int128)
    assert shares(pl.DataFrame({"ws": [1.0, 2.0, 3.0], "kw": kw})) == [1, 0, 0.05]


def test_addresses_of_python_objects_are_not_published():
    notes = pl.Series([object(), object()], dtype=pl.Object)
    table = pl.DataFrame({"ws": [1.0, 2.0], "kw": [1.0, 2.0], "notes": notes})
    with pytest.raises(InputError, match="column 'notes' of the table can't be read"):
        read_records(table, **NAMED, public=["notes"])


@pytest.mark.parametrize("stream", [False, True])
def test_power_may_have_another_type_in_every_file(stream, tmp_path):
    columns = [
        pa.array([100, 200]),
        pa.array([100.5, 200.0]),
        pa.array([Decimal("1.5"), Decimal(2)]),
        pa.array(["3", " 4e0"]),
        pa.array([5, 6], pa.int8()).dictionary_encode(),
    ]
    for at, kw in enumerate(columns):
        table = pa.table({"ws": [2.0 * at, 2.0 * at + 1], "kw": kw})
        pq.write_table(table, tmp_path / f"{at}.parquet")
    found = shares(tmp_path, key="ws", stream=stream)
    assert found == [v / 2000 for v in (100, 200, 100.5, 200, 1.5, 2, 3, 4, 5, 6)]
    times = pa.array([1, 2], pa.timestamp("ms"))
    pq.write_table(pa.table({"ws": [98.0, 99.0], "kw": times}), tmp_path / "9.parquet")
    with pytest.raises(InputError, match=r"'kw' of 9.parquet is of type timestamp\[ms\]"):
        read_records(tmp_path, **NAMED, key="ws", stream=stream)


@pytest.mark.parametrize("word", ["12 kW", "-", "1,234", "1_000", "0x10", "true", "1d2", "+"])
@pytest.mark.parametrize("number", [1, 1.5, Decimal("1.5"), "1", HUGE], ids=KINDS)
def test_what_is_no_number_is_refused_by_its_row_whatever_the_numbers_are(word, number):
    with pytest.raises(InputError) as refused:
        read_records(frame([number, number, word]), **NAMED)
    assert str(refused.value).startswith("Column 'kw' of the table is not all numbers: row 3 ")


@pytest.mark.parametrize("gap", ["", " ", "NA", "n/a", "NaN", "null", None, np.nan, pd.NA, pd.NaT,
                                 Decimal("NaN"), Decimal("sNaN")])  # fmt: skip
@pytest.mark.parametrize("number", [1, 1.5, Decimal("1.5"), "1", HUGE, True], ids=[*KINDS, "bool"])
def test_what_is_missing_is_missing_whatever_the_numbers_are(gap, number):
    records = read_records(frame([number, gap, number]), **NAMED, missing="drop")
    assert (records.rows, records.dropped) == (2, 1)
