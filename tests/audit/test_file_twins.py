"""Twins at random: whatever private values a file has, and however they are written.

The same noisy answers must leave the same bytes. A failure names the parts that differ.
"""

import math
from decimal import Decimal
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.sizes import FULL

from gridveil.auditing.grid_files import FORMATS, SPELLINGS, _command
from gridveil.auditing.transcript import Recorder, Replayer, differ, published
from gridveil.auditing.triangle_secrets import SECRETS
from gridveil.auditing.wind_files import (
    COMMAS,
    SPEED,
    TYPES,
    command,
    csv_text,
    power_column,
    write_text,
)
from gridveil.auditing.wind_tables import release_table

ROWS = len(SPEED)
FEW = settings(max_examples=300 if FULL else 8)

finite = st.floats(allow_nan=False, allow_infinity=False)
usual = st.one_of(
    st.integers(-5, 1100).map(float), st.floats(-10.0, 1100.0), st.sampled_from([0.0, 1e3, 100.5])
)
powers = st.lists(usual | finite, min_size=ROWS, max_size=ROWS)
orders = st.permutations(range(ROWS))


@st.composite
def spellings(draw):
    """A way to write numbers in text: digits, sign, exponent, zeros and blanks."""
    form = draw(st.sampled_from([".0f", ".1f", ".3f", ".17f", "e", ".12E", "g", ".17g", "+.2f"]))
    before, after = draw(st.integers(0, 3)), draw(st.integers(0, 3))
    return lambda value: " " * before + format(value, form) + " " * after


def assert_twins(one, other):
    """Record a release of one and replay it on the other."""
    recorder = Recorder()
    first = published(one, recorder)
    replayer = Replayer(recorder.transcript)
    again = published(other, replayer)
    assert replayer.faithful or first.get("exit code") != b"0"
    assert [name for name in first.keys() | again.keys() if differ(name, first, again)] == []


def released_csv(power, spelling, order, noise, suffix=""):
    text = partial(csv_text, power, spelling=spelling, order=order, delimiter=";")
    return command("laplace", "--capacity", "1000", *COMMAS).release(
        f"records.csv{suffix}", partial(write_text, text=text), noise
    )


csv_files = st.tuples(powers, spellings(), orders)


@FEW
@given(csv_files, csv_files, st.sampled_from(["", ".gz"]))
def test_csv_files(one, other, suffix):
    assert_twins(
        partial(released_csv, *one, suffix=suffix), partial(released_csv, *other, suffix=suffix)
    )


@st.composite
def tables(draw):
    """Records in one of the types, with values that it holds."""
    kind = draw(st.sampled_from(TYPES))
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    numbers = powers
    if not pa.types.is_floating(plain) and not pa.types.is_large_string(plain):
        numbers = st.lists(st.integers(0, 9999).map(float), min_size=ROWS, max_size=ROWS)
    power = draw(numbers)
    if plain == pa.float32():
        power = np.clip(power, -3e38, 3e38).tolist()
    columns = {"hour": range(ROWS), "speed": SPEED, "power": power_column(power, kind)}
    return pa.table(columns).take(list(draw(orders)))


def released_parquet(table, noise):
    options = ("--capacity", "1000", "--key", "hour")
    write = partial(pa.parquet.write_table, table)
    return command("wpo", *options).release("records.parquet", write, noise)


@FEW
@given(tables(), tables())
def test_parquet_files(one, other):
    assert_twins(partial(released_parquet, one), partial(released_parquet, other))


@FEW
@given(tables(), tables())
def test_arrow_tables(one, other):
    assert_twins(partial(release_table, one), partial(release_table, other))


@st.composite
def series(draw):
    """Power as pandas may hold it: of one type, or objects of several."""
    import pandas as pd

    power = draw(st.lists(usual, min_size=ROWS, max_size=ROWS))
    dtype = draw(st.sampled_from(["float64", "float32", "Float64", "int64", "Int64", "object"]))
    if "nt" in dtype:
        return pd.Series([math.floor(p) for p in power]).astype(dtype)
    if dtype != "object":
        return pd.Series(power).astype(dtype)
    kinds = [float, math.floor, str, lambda p: Decimal(str(p))]
    chosen = draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=2))
    return pd.Series([chosen[k % len(chosen)](p) for k, p in enumerate(power)], dtype=object)


def released_frame(column, noise):
    import pandas as pd

    frame = pd.DataFrame({"hour": range(ROWS), "speed": SPEED}).assign(power=column)
    return release_table(frame, noise)


@FEW
@given(series(), series())
def test_pandas_frames(one, other):
    assert_twins(partial(released_frame, one), partial(released_frame, other))


amounts = st.floats(0.01, 1e4) | st.integers(1, 500).map(float)


@st.composite
def networks(draw, secret):
    """Private values of the triangle, and how its text writes them."""
    values = sorted(draw(amounts) for _ in SECRETS[secret].values)  # lower limits come first
    return tuple(values), draw(st.sampled_from(sorted(SPELLINGS)))


def released_network(secret, values, spelling, noise):
    parts = SECRETS[secret].parts(values)
    write = partial(FORMATS["matpower"].write, parts=parts, show=SPELLINGS[spelling])
    return _command(SECRETS[secret]).release("triangle.m", write, noise)


@pytest.mark.parametrize("secret", ["capacity", "load", "generator-limit", "cost"])
@settings(FEW, max_examples=100 if FULL else 3)
@given(data=st.data())
def test_matpower_files(secret, data):
    one, other = (data.draw(networks(secret)) for _ in range(2))
    run = partial(released_network, secret)
    assert_twins(partial(run, *one), partial(run, *other))
