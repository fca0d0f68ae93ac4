"""The noisy answers and the error bars in a bundle: what mechanisms returned, and nothing else."""

import json
import shutil
import warnings
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gridveil as gv
from gridveil.privacy.statement import STATEMENT_FILE
from gridveil.release.bundle import ANSWERS_FILE, DEVIATIONS_FILE
from gridveil.release.verification import wrong_answers

pytestmark = pytest.mark.filterwarnings("ignore:Seeded noise", "ignore:Noise on every record")


def farm(rows=1500):
    rng = np.random.default_rng(4)
    speed = rng.uniform(3, 13, rows)
    power = 500 * np.clip((speed - 3) / 8 + rng.normal(0, 0.05, rows), 0, 1)
    time = pd.date_range("2015-01-01", periods=rows, freq="10min")
    return pd.DataFrame({"t": time, "v": speed, "p": power})


def wind(folder, method, table=None, **call):
    records = gv.wind.read_records(
        farm() if table is None else table, speed="v", power="p", capacity=500, time="t"
    )
    whole = {"alpha": 1} if method == "synthetic" else {"alpha": 0.15}
    paid = {} if "seed" in call else {"ledger": folder / "ledger.sqlite", "dataset": "farm"}
    made = gv.wind.release(records, epsilon=1, method=method, **whole, **paid, **call)
    return made.write(folder / "out")


def network(folder, **call):
    case = gv.grid.cases.rts96(variant="paper")
    private = call.get("parameter", "capacity")
    models = gv.grid.sample_population(case, 4, private=private)
    paid = {"ledger": folder / "ledger.sqlite", "dataset": "grid"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return gv.grid.release(case, models, epsilon=1, **{**paid, **call}).write(folder / "out")


def read(folder):
    body = json.loads((folder / STATEMENT_FILE).read_text())
    return pd.read_parquet(folder / ANSWERS_FILE), body["mechanisms"]


@pytest.mark.parametrize("method", ["tuned", "wpo", "laplace", "synthetic"])
def test_wind_bundles_hold_every_answer(tmp_path, method):
    out = wind(tmp_path, method)
    answers, mechanisms = read(out)
    assert {one.check: one.ok for one in gv.verify(out)}["answers"]
    for number, mechanism in enumerate(mechanisms):
        mine = answers[answers["mechanism"] == number]
        chosen = "noisy max" in mechanism["noise"]
        assert len(mine) == (1 if chosen else mechanism["size"])
        assert mine["scale"].isna().all() if chosen else (mine["scale"] > 0).all()
    assert (out / DEVIATIONS_FILE).exists() == (method == "tuned")


def test_noisy_records_are_on_the_grid_and_not_clipped(tmp_path):
    answers, mechanisms = read(wind(tmp_path, "tuned"))
    noisy = answers.loc[answers["mechanism"] == 0, "value"].to_numpy()
    steps = noisy / float(Fraction(mechanisms[0]["grid"]))
    assert np.array_equal(steps, np.rint(steps))
    assert noisy.min() < 0
    assert noisy.max() > 1
    # They tell the energy: noise has mean 0.
    real = farm()["p"] / 500
    deviation = np.sqrt(2 * len(noisy)) * mechanisms[0]["scale"]
    assert abs(noisy.sum() - real.sum()) < 5 * deviation


@pytest.mark.parametrize(
    "call",
    [
        {"alpha": 30, "range": (50, 1000)},
        {"alpha": "20%", "range": (50, 1000), "method": "laplace"},
        {"alpha": 15, "parameter": "load"},  # with a sum: each number has a factor of its own
    ],
)
def test_grid_bundles_hold_every_answer_and_error_bars(tmp_path, call):
    out = network(tmp_path, **call)
    assert {one.check: one.ok for one in gv.verify(out)}["answers"]
    answers, mechanisms = read(out)
    errors = pd.read_parquet(out / DEVIATIONS_FILE)
    entries = mechanisms[0]["size"] - ("parameter" in call)
    assert len(errors) == entries
    assert (errors["deviation"] > 0).all()
    amounts = np.exp(answers["value"]) if call["alpha"] == "20%" else answers["value"]
    apart = np.abs(amounts[:entries].to_numpy() - errors["value"].to_numpy())
    scale = answers["scale"][:entries] * (amounts[:entries] if call["alpha"] == "20%" else 1)
    assert np.median(apart / scale) < 3


def test_error_bars_of_limits_are_written_if_all_lower_ones_are_zero(tmp_path):
    case = gv.grid.cases.rts96()
    case = case.with_limits(np.zeros(len(case.generators)), case.generators.p_max)
    models = gv.grid.sample_population(case, 5, private="generator_limit")
    call = {"parameter": "generator_limit", "alpha": 10, "epsilon": 1, "method": "laplace"}
    paid = {"ledger": tmp_path / "ledger.sqlite", "dataset": "grid"}
    out = gv.grid.release(case, models, **call, **paid).write(tmp_path / "out")
    errors = pd.read_parquet(out / DEVIATIONS_FILE)
    assert set(errors["parameter"]) == {"p_max"}
    assert len(errors) == np.count_nonzero(case.generators.p_max)


@pytest.mark.parametrize(("parameter", "alpha"), [("capacity", 30), ("load", 15), ("load", 5)])
def test_error_bars_of_a_network_hold_most_real_values(parameter, alpha):
    case = gv.grid.cases.rts96(variant="paper")
    models = gv.grid.sample_population(case, 5, private=parameter)
    plan = gv.grid.plan(case, models, epsilon=1, alpha=alpha, parameter=parameter)
    far = []
    for seed in range(4):
        made = plan.without_warning().run(plan.without_warning().study(seed))
        kind = made.public.support[parameter]
        real = (case.branches.capacity if parameter == "capacity" else case.buses.load)[kind]
        far.append(np.abs(made.values - real) / made.deviations)
    assert np.mean(np.array(far) <= 2) > 0.92  # loads at 15 MW had 87%
    assert np.mean(np.array(far) <= 0.1) < 0.5  # the control


def test_error_bars_of_records_hold_most_real_values(tmp_path):
    out = wind(tmp_path, "tuned", seed=1)
    released = pd.read_parquet(out / "records.parquet")
    errors = pd.read_parquet(out / DEVIATIONS_FILE)
    apart = np.abs(released["p"] - farm()["p"])
    assert np.mean(apart <= 2 * errors["deviation"]) > 0.85
    assert np.mean(apart <= 0.1 * errors["deviation"]) < 0.5  # the control


def test_the_same_answers_are_the_same_bytes(tmp_path):
    one, other, third = tmp_path / "a", tmp_path / "b", tmp_path / "c"
    for folder, seed in ((one, 7), (other, 7), (third, 8)):
        wind(folder, "tuned", seed=seed)
    for name in (ANSWERS_FILE, DEVIATIONS_FILE):
        assert (one / "out" / name).read_bytes() == (other / "out" / name).read_bytes()
        assert (one / "out" / name).read_bytes() != (third / "out" / name).read_bytes()


# -- what verify finds -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    return wind(tmp_path_factory.mktemp("sound"), "wpo")


CHANGES = {
    "a number off the grid": lambda table: set_value(table, "value", 5, 0.123456),
    "a number that is missing": lambda table: table.slice(1),
    "less noise": lambda table: set_value(table, "scale", 5, -1.0),
    "another mechanism": lambda table: set_value(table, "mechanism", 5, 99),
    "another order": lambda table: set_value(table, "place", 5, 7),
    "other columns": lambda table: table.rename_columns(["a", "b", "c", "d"]),
    "text": lambda table: pa.table({name: ["x"] for name in table.column_names}),
}


def set_value(table, name, row, value):
    column = table[name].to_pylist()
    column[row] = value
    at = table.column_names.index(name)
    return table.set_column(at, table.schema.field(name), pa.array(column, table.schema.types[at]))


@pytest.mark.parametrize("change", CHANGES)
def test_answers_that_do_not_fit_are_found(sound, tmp_path, change):
    folder = shutil.copytree(sound, tmp_path / "out")
    _, mechanisms = read(folder)
    assert wrong_answers(folder / ANSWERS_FILE, mechanisms) == []
    pq.write_table(CHANGES[change](pq.read_table(folder / ANSWERS_FILE)), folder / ANSWERS_FILE)
    assert wrong_answers(folder / ANSWERS_FILE, mechanisms)
    assert not {one.check: one.ok for one in gv.verify(folder)}["answers"]


def test_a_file_that_is_none_is_found(sound, tmp_path):
    (tmp_path / ANSWERS_FILE).write_bytes(b"PAR1 and more")
    assert wrong_answers(tmp_path / ANSWERS_FILE, read(sound)[1]) == [
        "answers.parquet can't be read"
    ]
