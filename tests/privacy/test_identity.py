"""Which dataset a release is charged to: names, and fingerprints of what is public."""

import re
import shutil
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from grid.releasing import PARAMETERS, models_for, request, tiny, with_values
from hypothesis import given
from hypothesis import strategies as st
from support.making import adjacency
from typer.testing import CliRunner

from gridveil import grid, wind
from gridveil.cli.commands import app
from gridveil.errors import InputError, LedgerError, LedgerRefused, LedgerWarning
from gridveil.grid.model.sketch import sketch_network
from gridveil.privacy.ledger import Ledger, Terms
from gridveil.privacy.ledger.identity import SIZE, Sketch, mixed

HASHES = st.sets(st.integers(0, 2**64 - 1), max_size=200)


@pytest.fixture
def ledger(backend):
    return Ledger(backend.new())


def sketch(numbers, kind="wind"):
    return Sketch.of(kind, [mixed(np.array(sorted(numbers), dtype=np.uint64))])


def charge(ledger, dataset, of=None, distinct=None):
    return ledger.charge(
        Terms(
            dataset,
            epsilon=1,
            adjacency=[adjacency()],
            purpose="a test",
            sketch=of,
            distinct=distinct,
        )
    )


# -- sketches --------------------------------------------------------------------------------------


@given(HASHES, st.integers(1, 7))
def test_a_sketch_is_the_smallest_hashes_whatever_the_blocks(hashes, parts):
    values = np.array(sorted(hashes, key=lambda one: one % 101), dtype=np.uint64)
    made = Sketch.of("wind", np.array_split(values, parts))
    assert list(made.hashes) == sorted(hashes)[:SIZE]
    assert Sketch.from_json(made.to_json()) == made


@pytest.mark.parametrize(
    ("one", "other", "low", "high"),
    [
        (range(1000), range(1000), 1, 1),
        (range(1000), range(1000, 2000), 0, 0),
        (range(20), range(20), 1, 1),
        (range(10_000), range(1000), 1, 1),  # a part of it
        (range(1000), range(100, 1100), 0.7, 1),  # a month more, a month less
        (range(1000), range(900, 1900), 0, 0.3),
        ([], range(10), 0, 0),
    ],
)
def test_the_overlap_is_estimated(one, other, low, high):
    assert low <= sketch(one).overlap(sketch(other)) <= high
    assert sketch(one).overlap(sketch(other)) == sketch(other).overlap(sketch(one))


def test_sketches_of_different_kinds_have_nothing_in_common():
    assert sketch(range(9), "wind").overlap(sketch(range(9), "network")) == 0


@pytest.mark.parametrize(
    "body",
    [
        {"kind": "wind", "hashes": "0" * 15},
        {"kind": "wind", "hashes": "0" * 32},
        {"kind": "wind", "hashes": "g" * 16},
        {"kind": "wind", "hashes": "f" * 16 + "0" * 16},
        {"kind": "wind", "hashes": "".join(f"{k:016x}" for k in range(SIZE + 1))},
        {"kind": "wind"},
        [],
    ],
)
def test_a_sketch_that_makes_no_sense_is_damage(ledger, body):
    charge(ledger, "farm")
    forged = {**ledger.entries()[0].body, "sketch": body}
    ledger.write(lambda book: book.append("charge", "farm", forged))
    with pytest.raises(LedgerError, match="can't be understood"):
        ledger.totals("farm")


# -- names -----------------------------------------------------------------------------------------


def test_a_name_is_asked_for(ledger):
    with pytest.raises(InputError, match="needs a name") as caught:
        charge(ledger, None, sketch(range(9)))
    assert "--dataset NAME" in caught.value.remedy
    assert ledger.entries() == []


def test_data_that_is_known_needs_no_name(ledger):
    charge(ledger, "North Farm", sketch(range(100)))
    with pytest.warns(LedgerWarning, match="new name in this ledger, which has 'North Farm'"):
        charge(ledger, "south", sketch(range(1000, 1100)))
    with pytest.warns(LedgerWarning, match="looks like that of 'North Farm', and is charged to it"):
        made = charge(ledger, None, sketch(range(110)))
    assert (made.dataset, made.spent) == ("North Farm", 2)
    with pytest.raises(InputError, match="needs a name"):
        charge(ledger, None, sketch(range(5000, 5100)))
    with pytest.raises(InputError, match="looks like that of 'North Farm', 'south'"):
        charge(ledger, None, sketch([*range(100), *range(1000, 1100)]))


@pytest.mark.filterwarnings("error")
def test_a_new_name_is_warned_of_among_names_of_its_kind(ledger):
    charge(ledger, "farm", sketch(range(9), "wind"))
    charge(ledger, "grid", sketch(range(9), "network"))
    with pytest.warns(LedgerWarning, match="which has 'grid'. Updated"):
        charge(ledger, "grid 2", sketch(range(10, 19), "network"))
    with pytest.warns(LedgerWarning, match="which has 'farm', 'grid', 'grid 2'. Updated"):
        charge(ledger, "of unknown kind")


def test_the_same_data_under_a_second_name_is_refused(ledger):
    charge(ledger, "scada", sketch(range(100)))
    before = ledger.entries()
    with pytest.raises(LedgerRefused, match="much the same as that of 'scada'") as caught:
        charge(ledger, "scada final", sketch(range(100)))
    assert '--dataset "scada"' in caught.value.remedy
    assert '--distinct "REASON"' in caught.value.remedy
    assert ledger.entries() == before
    assert charge(ledger, "Scada", sketch(range(100))).spent == 2


def test_a_reason_is_kept_and_asked_for_once(ledger):
    charge(ledger, "one", sketch(range(100)))
    made = charge(ledger, "two", sketch(range(100)), distinct="  the twin on the\tsame mast ")
    assert made.spent == 1
    kept = ledger.entries("two")[0].body["distinct"]
    assert kept == {"from": ["one"], "reason": "the twin on the same mast"}
    assert charge(ledger, "two", sketch(range(100))).spent == 2
    assert charge(ledger, "one", sketch(range(100))).spent == 2
    with pytest.raises(LedgerRefused):
        charge(ledger, "three", sketch(range(100)))


@pytest.mark.parametrize("reason", ["", " \n", "x" * 501, "\x1b[31m"])
def test_a_reason_is_some_words(ledger, reason):
    with pytest.raises(InputError, match="1 to 500 printable"):
        charge(ledger, "one", sketch(range(9)), distinct=reason)
    assert ledger.entries() == []


# -- wind ------------------------------------------------------------------------------------------


def frame(rows=400, seed=1, decimals=2):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "time": pd.date_range("2024-01-01", periods=rows, freq="10min"),
            "speed": rng.uniform(0, 25, rows).round(decimals),
            "power": rng.uniform(0, 2000, rows).round(1),
            "temperature": rng.uniform(-5, 30, rows).round(1),
        }
    )


def read(source, **options):
    given = {"speed": "speed", "power": "power", "capacity": 2000, "key": "time", **options}
    return wind.read_records(source, **given)


@pytest.mark.parametrize("key", ["time", None])
def test_no_power_changes_the_sketch_of_records(key):
    table = frame()
    first = read(table, key=key).sketch()
    for power in (0.0, np.linspace(-5, 1e9, len(table)), table.power[::-1].to_numpy()):
        assert read(table.assign(power=power), key=key).sketch() == first
    assert read(table.assign(speed=table.speed + 1), key=key).sketch() != first


def test_a_sketch_is_the_same_whatever_the_container(tmp_path):
    table = frame()
    table.to_csv(tmp_path / "a.csv", index=False)
    table.sample(frac=1, random_state=1).to_parquet(tmp_path / "b.parquet")
    table.assign(speed=table.speed.astype("float32")).to_parquet(tmp_path / "c.parquet")
    spaced = table.assign(time=[f" {time}" for time in table.time])
    first = read(table).sketch()
    assert len(first.hashes) == SIZE
    assert read(spaced).sketch() == first
    assert read(tmp_path / "a.csv").sketch() == first
    assert read(tmp_path / "b.parquet").sketch() == first
    assert read(tmp_path / "c.parquet").sketch() == first
    assert read(pa.Table.from_pandas(table)).sketch() == first
    assert read(table, public=["temperature"]).sketch() == first
    ordered = tmp_path / "d.parquet"
    pq.write_table(pa.Table.from_pandas(table), ordered, row_group_size=7)
    assert read(ordered, stream=True).sketch() == first


def test_text_of_many_lengths_is_told_apart():
    names = [f"{'x' * (k % 23)}{k}" for k in range(400)]
    one = read(frame().assign(time=names))
    assert len(one.sketch().hashes) == SIZE
    other = read(frame().assign(time=[f"{name}." for name in names]))
    assert one.sketch().overlap(other.sketch()) == 0


def test_turbines_without_times_are_told_apart_by_how_often_each_speed_is_there():
    one, two = (read(frame(20_000, seed, 1), key=None).sketch() for seed in (1, 2))
    assert one.overlap(two) < Fraction(1, 4)
    again = read(frame(20_000, 1, 1).sample(frac=1, random_state=3), key=None).sketch()
    assert one == again


def test_an_equal_run_of_rows_may_cross_blocks():
    """Blocks end at 65,536 rows: equal rows on both sides count once, all of them."""
    rows = 70_000
    table = frame(rows, decimals=1).assign(speed=np.repeat([3.0, 7.0], rows // 2))
    made = read(table, key=None).sketch()
    assert len(made.hashes) == 2
    assert read(table.iloc[:-1], key=None).sketch().overlap(made) == Fraction(1, 2)


def test_a_copied_file_has_no_second_budget(tmp_path):
    table = frame()
    table.to_csv(tmp_path / "scada.csv", index=False)
    shutil.copy(tmp_path / "scada.csv", tmp_path / "scada-final.csv")
    call = {"epsilon": 1, "alpha": "15%", "method": "laplace", "ledger": tmp_path / "ledger"}
    with pytest.raises(InputError, match="needs a name"):
        wind.release(read(tmp_path / "scada.csv"), **call)
    assert not (tmp_path / "ledger").exists()
    made = wind.release(read(tmp_path / "scada.csv"), dataset="north farm", **call)
    assert "(north farm)" in made.statement.body["summary"]
    assert "scada" not in made.statement.to_json()
    final = read(tmp_path / "scada-final.csv")
    with pytest.raises(LedgerRefused, match="'north farm'"):
        wind.release(final, dataset="scada final", **call)
    with pytest.warns(LedgerWarning, match="is charged to it"):
        again = wind.release(final, **call)
    assert again.account.charge.spent == 2


def test_no_hash_is_in_a_bundle(tmp_path, ledger):
    made = wind.release(read(frame()), epsilon=1, alpha="15%", dataset="farm", ledger=ledger)
    placed = made.write(tmp_path / "out")
    (entry, _) = ledger.entries()
    text = entry.body["sketch"]["hashes"]
    hashes = {text[at : at + 16].encode() for at in range(0, len(text), 16)}
    hexadecimal = re.compile(rb"(?=([0-9a-f]{16}))")  # every 16 in a row, wherever they begin
    assert hashes <= {*hexadecimal.findall(b"0" + text.encode())}
    for path in placed.iterdir():
        assert not hashes & {*hexadecimal.findall(path.read_bytes())}


# -- networks --------------------------------------------------------------------------------------


def public_of(network, names, **options):
    asked = request(names)
    _, public = network.split(names, asked["range"], **options)
    return public


def test_no_private_value_and_no_choice_of_them_changes_the_sketch_of_a_network(tmp_path):
    network = tiny(tmp_path)
    first = sketch_network(public_of(network, ("capacity",)))
    assert len(first.hashes) == len({*network.branches.reactance})
    for name in PARAMETERS:
        _, public = network.split(name, request((name,))["range"])
        assert sketch_network(public) == first
        other = with_values(network, name, np.linspace(3, 40, public.entries) * public.signs)
        assert sketch_network(public_of(other, (name,))) == first


def test_real_networks_are_told_apart_and_known_again():
    rts = grid.cases.rts96()
    limits = {"capacity": (1, 5000)}
    _, public = rts.split("capacity", limits)
    first = sketch_network(public)
    assert len(first.hashes) >= 30
    renamed = rts.__class__(
        "other",
        rts.base_mva,
        buses=rts.buses.__class__(
            tuple(f"b{n}" for n in rts.buses.name),
            rts.buses.load,
            rts.buses.shunt,
            rts.buses.reference,
            rts.buses.in_service,
        ),
        generators=rts.generators,
        branches=rts.branches,
    )
    assert sketch_network(renamed.split("capacity", limits)[1]) == first


def test_a_network_under_a_second_name_is_refused(tmp_path, ledger):
    network = tiny(tmp_path)
    call = request(("capacity",), method="laplace", ledger=ledger)
    grid.release(network, models_for(network, "capacity"), **call)
    other = {**request(("load",), method="laplace", ledger=ledger), "dataset": "another"}
    with pytest.raises(LedgerRefused, match="much the same as that of 'tiny'"):
        grid.release(network, models_for(network, "load"), **other)
    made = grid.release(network, models_for(network, "load"), distinct="a training case", **other)
    assert made.account.charge.dataset == "another"


# -- the command -----------------------------------------------------------------------------------


def run(*arguments):
    return CliRunner().invoke(app, [str(one) for one in arguments])


def test_the_command_asks_warns_refuses_and_says(tmp_path):
    frame().to_csv(tmp_path / "a.csv", index=False)
    frame(seed=2).to_csv(tmp_path / "b.csv", index=False)
    common = ["--speed", "speed", "--power", "power", "--capacity", 2000, "--alpha", "15%"]
    common += ["--key", "time", "--method", "laplace", "--ledger", tmp_path / "l"]

    def release(file, out, *more):
        return run("wind", "release", tmp_path / file, *common, "-o", tmp_path / out, *more)

    asked = release("a.csv", "one")
    assert asked.exit_code == 2
    assert "--dataset NAME" in asked.stderr
    assert not (tmp_path / "l").exists()
    first = release("a.csv", "one", "--dataset", "north farm")
    assert (first.exit_code, first.stderr) == (0, "")
    refused = release("a.csv", "two", "--dataset", "farm b")
    assert refused.exit_code == 3
    assert '--dataset "north farm"' in refused.stderr
    assert len(Ledger(tmp_path / "l").entries()) == 2
    said = release("a.csv", "two")
    assert said.exit_code == 0
    assert "warning: No dataset was named: the data looks like that of 'north farm'" in said.stderr
    new = release("b.csv", "three", "--dataset", "farm b")
    assert new.exit_code == 0
    assert "warning: 'farm b' is a new name in this ledger" in new.stderr
    quiet = release("b.csv", "four", "--dataset", "farm c", "--distinct", "a test", "--quiet")
    assert (quiet.exit_code, quiet.output) == (0, "")
    small = release("a.csv", "five", "--dataset", "north farm", "--alpha", "1%")
    assert "warning: alpha of power is 0.01 of capacity, and the reference" in small.stderr
