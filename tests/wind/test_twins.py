"""Twins: sources with the same public part and any private power leave the same bytes.

Power differs in its values, types, text, chunks and row groups. The second release gets the noisy
answers of the first, so all that is released must be equal to the last byte; whatever is not
came from private data without a mechanism.
"""

from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from support.sizes import FULL

from gridveil import wind
from gridveil.auditing.bundle_bytes import bundle_parts
from gridveil.auditing.scratch_ledgers import MADE_UP, new_name, throwaway_ledger
from gridveil.auditing.transcript import Recorder, Replayer
from gridveil.errors import InputError

CAPACITY = 2000.0
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)  # making a failure smaller takes minutes
SPEEDS = [3.0, 5.0, 5.0, 8.0, 12.0]  # two rows are alike unless the key tells them apart
NOTES = ["a", None, "=1", "b", "a"]


# -- the same power in every guise -----------------------------------------------------------------


def cast(kind):
    return lambda numbers: pa.array(numbers).cast(kind)


def decimals(numbers, places=2):
    return pa.array(
        [None if v is None else Decimal(round(v * 100)).scaleb(-places) for v in numbers]
    )


def whole(numbers):
    return pa.array([None if v is None else round(v) for v in numbers])


def small(kind):
    def made(numbers):
        return pa.array([None if v is None else round(abs(v)) % 100 for v in numbers], kind)

    return made


def words(kind):
    return lambda numbers: pa.array([None if v is None else repr(v) for v in numbers], kind)


ARROW = {
    "float64": cast(pa.float64()),
    "float32": cast(pa.float32()),
    "float16": lambda numbers: pa.array(
        np.array(numbers, dtype="f8").astype("f2"), from_pandas=True
    ),
    "int64": whole,
    "int8": small(pa.int8()),
    "uint64": small(pa.uint64()),
    "bool": lambda numbers: pa.array([None if v is None else v > 9 for v in numbers]),
    "decimal": decimals,
    "larger decimal": lambda numbers: decimals([None if v is None else 1e4 * v for v in numbers]),
    "decimal256": lambda numbers: decimals(numbers).cast(pa.decimal256(70, 3)),
    "text": words(pa.string()),
    "view": words(pa.string_view()),
    "dictionary": lambda numbers: whole(numbers).dictionary_encode(),
    "words": lambda numbers: words(pa.large_string())(numbers).dictionary_encode(),
}

OBJECTS = {
    "floats": float,
    "integers": round,
    "huge": lambda v: 10**400 * round(v),
    "decimals": lambda v: Decimal(repr(v)),
    "texts": lambda v: f" +{abs(v):e}",
    "32 bits": np.float32,
    "truths": lambda v: v > 9,
    "several": lambda v: [v, round(v), repr(v), Decimal(repr(v)), v > 9, 2**70][round(abs(v)) % 6],
}

CELLS = [
    repr,
    lambda v: str(round(v)),
    lambda v: f"{v:e}",
    lambda v: f" +{abs(v)}",
    lambda v: f'"{v}"',
    lambda v: f"{abs(v):0300.2f}",
    lambda v: f"{round(v)}e3000",
]
GAPS = ["", "NA", "nan", '" "', "#N/A", "null"]


def objects(numbers, make):
    return [None if v is None else make(v) for v in numbers]


def public_table(keyed):
    columns = {"ws": SPEEDS, "note": NOTES, "flag": pa.array([1, 2, 2, 4, 5], pa.int16())}
    return pa.table({**columns, "t": [9, 10, 11, 12, 13]} if keyed else columns)


def as_pandas(numbers, keyed, draw, folder):
    frame = public_table(keyed).to_pandas()
    how = draw(st.sampled_from(["numpy", "object", "Float64", "Int64", "arrow", "category"]))
    if how == "numpy":
        kind = draw(st.sampled_from(["float64", "float32", "int64"]))
        if kind == "int64" and None not in numbers:
            numbers = [round(v) for v in numbers]
        kw = pd.Series(numbers, dtype=kind if None not in numbers else "float64")
    elif how == "object":
        kw = pd.Series(
            objects(numbers, OBJECTS[draw(st.sampled_from(list(OBJECTS)))]), dtype=object
        )
    elif how == "arrow":
        made = ARROW[draw(st.sampled_from(list(ARROW)))](numbers)
        kw = pd.Series(made, dtype=pd.ArrowDtype(made.type))
    elif how == "category":
        kw = pd.Series(objects(numbers, round), dtype=object).astype("category")
    else:
        kw = pd.Series(objects(numbers, round), dtype=how)
    frame.insert(1, "kw", kw)
    return frame


def as_polars(numbers, keyed, draw, folder):
    frame = pl.DataFrame(public_table(keyed))
    if draw(st.booleans()):
        kw = pl.Series("kw", objects(numbers, OBJECTS[draw(st.sampled_from(list(OBJECTS)))]),
                       dtype=pl.Object)  # fmt: skip
    else:
        kinds = [pl.Float64, pl.Float32, pl.Int128, pl.Int64, pl.Decimal(30, 4), pl.String]
        kw = pl.Series("kw", objects(numbers, round)).cast(draw(st.sampled_from(kinds)))
        if kw.dtype == pl.String and draw(st.booleans()):
            kw = kw.cast(pl.Categorical)
    frame.insert_column(1, kw)
    return frame.lazy() if draw(st.booleans()) and kw.dtype != pl.Object else frame


def as_arrow(numbers, keyed, draw, folder):
    array = ARROW[draw(st.sampled_from(list(ARROW)))](numbers)
    cut = draw(st.integers(0, len(numbers)))
    kw = pa.chunked_array([array.slice(0, cut), array.slice(cut)])
    return public_table(keyed).add_column(1, "kw", kw)


def as_csv(numbers, keyed, draw, folder):
    table = public_table(keyed)
    cells = st.sampled_from(CELLS)
    kw = [draw(st.sampled_from(GAPS)) if v is None else draw(cells)(v) for v in numbers]
    lines = ["kw," + ",".join(table.column_names)]
    for text, row in zip(kw, table.to_pylist(), strict=True):
        lines.append(",".join([text, *("" if v is None else str(v) for v in row.values())]))
    (folder / "twin.csv").write_text("\n".join(lines))
    return folder / "twin.csv"


def as_parquet(numbers, keyed, draw, folder):
    table = as_arrow(numbers, keyed, draw, folder)
    groups = draw(st.integers(1, 5))
    options = {"use_dictionary": draw(st.booleans()), "write_statistics": draw(st.booleans())}
    pq.write_table(table, folder / "twin.parquet", row_group_size=groups, **options)
    return folder / "twin.parquet"


def as_folder(numbers, keyed, draw, folder):
    table = public_table(keyed)
    for at, part in enumerate((slice(0, 2), slice(2, 5))):
        kw = ARROW[draw(st.sampled_from(list(ARROW)))](numbers[part])
        rows = table.slice(part.start, part.stop - part.start).add_column(1, "kw", kw)
        pq.write_table(rows, folder / f"{at}.parquet")
    return folder


SOURCES = {
    "pandas": as_pandas,
    "polars": as_polars,
    "arrow": as_arrow,
    "csv": as_csv,
    "parquet": as_parquet,
    "folder": as_folder,
}


# -- releases of twins -----------------------------------------------------------------------------


@st.composite
def twins(draw, how):
    """Two ways to make a source of one kind, and the public options that they share."""
    keyed = draw(st.booleans())
    missing = draw(st.sets(st.integers(0, 4), max_size=2))
    stream = keyed and how in ("csv", "parquet", "folder") and draw(st.booleans())
    number = st.floats(-50, 2500).map(lambda v: round(v, 3)) | st.sampled_from([0.0, 100.0, 100.5])
    pair = []
    for _ in range(2):
        numbers = [None if at in missing else draw(number) for at in range(5)]
        pair.append(lambda folder, n=numbers: SOURCES[how](n, keyed, draw, folder))
    options = {"key": "t" if keyed else None, "stream": stream or None}
    return pair, options, draw(st.sampled_from(["laplace", "wpo"]))


def released(source, options, method, noise) -> wind.WindRelease:
    records = wind.read_records(
        source, speed="ws", power="kw", capacity=CAPACITY, public=["note", "flag"], missing="drop",
        formulas="keep", name="twin", **options,
    )  # fmt: skip
    plan = wind.plan(
        records, epsilon=1, alpha="15%", method=method, features=wind.RBF(2, 3.0, 12.0)
    )
    return plan.run(
        plan.charge(throwaway_ledger(), dataset=new_name(), distinct=MADE_UP, noise=noise)
    )


def shown(table) -> tuple:
    """All of a table that can be seen: its kind, types, chunks and values."""
    if isinstance(table, pl.DataFrame):
        return table.schema, table.n_chunks("all"), table.to_dicts()
    if isinstance(table, pd.DataFrame):
        return dict(table.dtypes), list(table.index), table.attrs, table.to_csv()
    return table.schema.to_string(), [c.num_chunks for c in table.columns], table.to_pydict()


def published(release) -> dict:
    return {**bundle_parts(release), "release.data": shown(release.data)}


def differing(one, other) -> list[str]:
    """The names of what differs: pytest would take minutes to compare the pages themselves."""
    return sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))


def power_type(table) -> object:
    return table.schema.field("kw").type if isinstance(table, pa.Table) else table["kw"].dtype


@pytest.mark.parametrize("how", SOURCES)
@settings(max_examples=1000 if FULL else 15, phases=PHASES)
@given(data=st.data())
def test_twins_leave_the_same_bytes(how, data, tmp_path_factory):
    pair, options, method = data.draw(twins(how))
    recorder = Recorder()
    noise, found = recorder, []
    for make in pair:
        made = released(make(Path(tmp_path_factory.mktemp("twin"))), options, method, noise)
        found.append(published(made))
        assert power_type(made.data) in (np.float64, pl.Float64, pa.float64())
        noise = Replayer(recorder.transcript)
    assert differing(*found) == []


def test_a_public_difference_is_noticed():
    # The control: twins that are not.
    recorder = Recorder()
    table = public_table(keyed=True).append_column("kw", pa.array([1.0] * 5))
    other = table.set_column(2, "flag", pa.array([1, 2, 2, 4, 6], pa.int16()))
    one = published(released(table, {"key": "t"}, "laplace", recorder))
    noise = Replayer(recorder.transcript)
    again = published(released(other, {"key": "t"}, "laplace", noise))
    assert {"records.parquet", "release.data"} <= set(differing(one, again))
    assert noise.faithful


@settings(max_examples=1000 if FULL else 25)
@given(data=st.data(), row=st.integers(0, 4), word=st.sampled_from(["12 kW", "-", "1_0", "x"]))
def test_twins_with_a_cell_that_is_not_a_number_are_refused_alike(data, row, word):
    messages = set()
    for _ in range(2):
        make = OBJECTS[data.draw(st.sampled_from(list(OBJECTS)))]
        kw = [make(data.draw(st.floats(-50, 2500))) for _ in range(5)]
        kw[row] = word
        frame = pd.DataFrame({"ws": SPEEDS, "kw": pd.Series(kw, dtype=object)})
        with pytest.raises(InputError) as refused:
            wind.read_records(frame, speed="ws", power="kw", capacity=CAPACITY)
        messages.add(str(refused.value))
    assert len(messages) == 1
