"""Wind releases from end to end: the guarantee, the bundle, and what bad input does."""

import json
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.making import adjacency
from support.sizes import FULL
from typer.testing import CliRunner

from gridveil import wind
from gridveil.cli.commands import app
from gridveil.errors import InputError, LedgerRefused, NotPrivateWarning, ReleaseAborted
from gridveil.privacy.ledger import Ledger, Terms
from gridveil.privacy.sealed import unseal
from gridveil.privacy.statement import STATEMENT_FILE, Statement
from gridveil.release.verification import verify_bundle
from gridveil.wind.demo import CAPACITY, demo_records, power_curve
from gridveil.wind.evaluation import evaluate

METHODS = ("tuned", "wpo", "laplace")
CANARY = 1234.567891


def paper_records(rows=300, **options):
    given = {"name": "wind records", **options}
    return wind.read_records(
        demo_records(rows), speed="wind_speed", power="power", capacity=CAPACITY, **given
    )


def run(*arguments):
    return CliRunner().invoke(app, [str(one) for one in arguments])


@pytest.fixture
def scada(tmp_path):
    """A small SCADA file: a key, a text column, a column nobody named, standby power, gaps."""
    rng = np.random.default_rng(2)
    rows = 400
    speed = rng.uniform(0, 22, rows).round(2)
    power = np.interp(speed, *power_curve()) * CAPACITY + rng.normal(0, 60, rows)
    frame = pd.DataFrame(
        {
            "time": pd.date_range("2024-01-01", periods=rows, freq="10min").astype(str),
            "wind": speed,
            "power_kw": power.round(1),
            "secret_setpoint": power.round(1),
            "status": ["run"] * rows,
        }
    )
    path = tmp_path / "north farm.csv"
    frame.to_csv(path, index=False)
    return path


COMMAND = ("--speed", "wind", "--power", "power_kw", "--capacity", CAPACITY, "--alpha", "15%")
COMMAND += ("--dataset", "north farm")


# -- the release -----------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_every_method_makes_a_sound_bundle(method, ledger, tmp_path):
    made = wind.release(paper_records(), epsilon=1, alpha="15%", method=method, ledger=ledger)
    placed = made.write(tmp_path / "out")
    assert all(finding.ok for finding in verify_bundle(placed))
    assert made.statement.dp_valid
    assert ledger.totals("wind records").spent == 1
    assert sum(record.epsilon for record in made.account.records) == 1
    assert made.account.budget.remaining == 0
    released = pq.read_table(placed / "records.parquet")
    assert released.column_names == ["wind_speed", "power"]
    power = released["power"].to_numpy()
    assert ((power >= 0) & (power <= CAPACITY)).all()
    assert len(power) == 300
    assert released["wind_speed"].to_pylist() == sorted(released["wind_speed"].to_pylist())
    assert made.data.equals(released)


@pytest.mark.parametrize("method", METHODS)
def test_seeded_releases_repeat_and_carry_no_guarantee(method, tmp_path):
    values = []
    for _ in range(2):
        with pytest.warns(NotPrivateWarning):
            made = wind.release(paper_records(), epsilon=1, alpha=0.15, method=method, seed=4)
        values.append(np.concatenate(list(made.blocks())))
    assert (values[0] == values[1]).all()
    assert not made.statement.dp_valid


def test_wpo_is_the_papers_split_and_keeps_the_noisy_loss(ledger):
    made = wind.release(paper_records(1000), epsilon=1, alpha="5%", method="wpo", ledger=ledger)
    halves = [record.epsilon for record in made.account.records]
    assert halves == [Fraction(1, 2), Fraction(1, 4), Fraction(1, 4)]
    assert made.restorations[0].certified
    assert made.account.records[2].size == 5  # independent noise on every weight
    assert made.statement.body["restoration"]["gap"] < 1e-6


def test_tuned_is_close_to_the_real_records(ledger):
    # One run at a small alpha: far inside what chance allows (see benchmarks/wind_accuracy.py).
    records = paper_records(2000)
    made = wind.release(records, epsilon=1, alpha="5%", ledger=ledger)
    real = np.concatenate(list(unseal(records.power)()))
    released = np.concatenate(list(made.blocks()))
    assert np.sqrt(np.mean((released - real) ** 2)) < 0.075
    assert np.abs(released - real).max() > 0.01


def test_a_users_own_split_is_used(ledger):
    made = wind.release(
        paper_records(), epsilon=2, alpha=0.1, split=["0.6", "0.3", "0.1"], ledger=ledger
    )
    assert [record.epsilon for record in made.account.records] == [
        Fraction(6, 5),
        Fraction(1, 5),
        Fraction(3, 5),
    ]


def test_turbines_are_released_together_for_one_epsilon(ledger, tmp_path):
    rng = np.random.default_rng(0)
    table = demo_records(900).append_column("unit", pa.array(rng.choice(list("AB"), 900)))
    records = wind.read_records(
        table,
        speed="wind_speed",
        power="power",
        capacity={"A": CAPACITY, "B": 2 * CAPACITY},
        turbine="unit",
        name="farm",
    )
    for method in METHODS:
        made = wind.release(records, epsilon=1, alpha=0.1, method=method, ledger=ledger)
        assert sum(record.epsilon for record in made.account.records) == 1
        assert len(made.restorations) == 2
        assert all(f.ok for f in verify_bundle(made.write(tmp_path / method)))


def test_features_of_every_kind(ledger):
    table = demo_records(300).append_column("temp", pa.array(np.linspace(-5, 30, 300)))
    records = wind.read_records(
        table, speed="wind_speed", power="power", capacity=CAPACITY, public=["temp"], name="farm"
    )
    for features in (
        wind.Polynomial(3, 2, 13),
        wind.BSpline(6, low=2, high=13),
        wind.RBF(5) + wind.Columns("temp", scale=30),
    ):
        made = wind.release(records, epsilon=1, alpha=0.1, features=features, ledger=ledger)
        assert made.restorations[0].gap < 1e-5


def test_default_features_are_the_papers_on_the_papers_speeds():
    from gridveil.wind.regression import default_features

    assert default_features(paper_records(1000)) == wind.RBF(5, 2.5, 12.5)


# -- nothing private leaves ------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_canaries_are_nowhere_in_the_bundle_or_on_the_screen(kind, tmp_path, monkeypatch):
    rows = 60
    table = pa.table(
        {
            "speed": np.linspace(3, 12, rows),
            "power": np.full(rows, CANARY),
            "copy_of_power": np.full(rows, CANARY),
            "note": [f"power was {CANARY}"] * rows,
        }
    ).replace_schema_metadata({"origin": f"{CANARY}"})
    source = tmp_path / f"data.{kind}"
    if kind == "csv":
        table.to_pandas().to_csv(source, index=False)
    else:
        pq.write_table(table, source)
    shown = ""
    for method in METHODS:
        result = run(
            "wind", "release", source, "--speed", "speed", "--power", "power", "--capacity",
            2750, "--alpha", "15%", "--method", method, "-o", tmp_path / method, "--ledger",
            tmp_path / "ledger", "--dataset", "farm", "--yes",
        )  # fmt: skip
        assert result.exit_code == 0, result.output
        shown += result.output
        for path in (tmp_path / method).iterdir():
            content = path.read_bytes()
            # A noisy record has six of its digits in one run of a thousand, and ten in 5 million.
            looked_for = b"1234.567891" if path.stem == "records" else b"1234.56"
            assert looked_for not in content
            assert looked_for not in content.replace(b",", b"")
            assert b"note" not in content or path.suffix == ".html"
            assert b"copy_of_power" not in content
    assert "1234.56" not in shown
    assert b"1234.56" not in (tmp_path / "ledger").read_bytes()


def test_a_failure_half_way_is_charged_silent_and_leaves_no_bundle(ledger, monkeypatch, tmp_path):
    from gridveil.wind.regression import Ridge

    def fail(self, y):
        raise ValueError(f"{CANARY}")

    records = paper_records()
    monkeypatch.setattr(Ridge, "weights", fail)
    with pytest.raises(ReleaseAborted) as caught:
        wind.release(records, epsilon=1, alpha=0.1, ledger=ledger)
    assert "1234" not in str(caught.value)
    assert ledger.totals("wind records").spent == 1
    assert ledger.totals("wind records").aborts == 1


# -- what is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong",
    [
        {"epsilon": 0},
        {"epsilon": -1},
        {"epsilon": "many"},
        {"epsilon": "1e-14"},  # noise wider than a number can hold
        {"alpha": 0},
        {"alpha": 1.01},
        {"alpha": "150%"},
        {"method": "best"},
        {"ridge": -1},
        {"ridge": float("nan")},
        {"split": [0.5, 0.5]},
        {"split": [0.5, 0.3, 0.3]},
        {"split": [1, 0, 0]},
        {"gamma_records": 0},
        {"nominal": 0},
        {"nominal": 2},
        {"features": wind.Columns("nowhere")},
        {"features": wind.Columns("power")},
        {"dataset": "\x00"},
        {"method": "laplace", "split": [0.5, 0.25, 0.25]},
    ],
)
def test_bad_public_input_charges_nothing(ledger, wrong):
    call = {"epsilon": 1, "alpha": 0.1, "ledger": ledger, **wrong}
    with pytest.raises(InputError):
        wind.release(paper_records(), **call)
    assert ledger.entries() == []


def test_a_query_that_could_not_be_asked_is_refused_before_the_charge(ledger):
    # So small an alpha asks for a grid that the spread of these rows overflows.
    call = {"epsilon": 1, "alpha": "1e-12", "split": ["0.4", "0.3", "0.3"], "ledger": ledger}
    with pytest.raises(InputError, match="more steps"):
        wind.release(paper_records(5000), **call)
    assert ledger.entries() == []


def test_speeds_that_are_no_speeds_are_refused(ledger):
    for speeds in (np.full(50, 5.0), np.linspace(0, 1e6, 50)):
        table = pa.table({"v": speeds, "p": np.linspace(0, 1, 50)})
        records = wind.read_records(table, speed="v", power="p", capacity=1, name="farm")
        with pytest.raises(InputError, match="no sensible default features"):
            wind.release(records, epsilon=1, alpha=0.1, ledger=ledger)
    assert ledger.entries() == []


def test_constant_speed_few_rows_and_zeros_have_an_answer(ledger):
    one_speed = pa.table({"v": np.full(50, 7.0), "p": np.linspace(0, 1, 50)})
    records = wind.read_records(one_speed, speed="v", power="p", capacity=1, name="farm")
    for method in METHODS:
        wind.release(
            records, epsilon=1, alpha=0.1, method=method, features=wind.RBF(5), ledger=ledger
        )
    for rows in (1, 2, 3):  # fewer records than features
        few = wind.read_records(
            one_speed.slice(0, rows), speed="v", power="p", capacity=1, name="few"
        )
        for method in METHODS:
            made = wind.release(
                few, epsilon=1, alpha=0.1, method=method, features=wind.RBF(5), ledger=ledger
            )
            values = np.concatenate(list(made.blocks()))
            assert ((values >= 0) & (values <= 1)).all()
    zeros = pa.table({"v": np.linspace(3, 12, 500), "p": np.zeros(500)})
    made = wind.release(
        wind.read_records(zeros, speed="v", power="p", capacity=1, name="farm"),
        epsilon=10,
        alpha=0.1,
        ledger=ledger,
    )
    assert np.concatenate(list(made.blocks())).mean() < 0.1


def test_the_ledger_refuses_power_that_was_published(ledger):
    ledger.charge(
        Terms(
            "wind records", epsilon=1, adjacency=[adjacency("speed")], clear=["power"], purpose="x"
        )
    )
    with pytest.raises(LedgerRefused, match="published in clear"):
        wind.release(paper_records(), epsilon=1, alpha=0.1, ledger=ledger)


def test_a_column_that_was_published_in_clear_is_never_private_later(ledger):
    table = demo_records(100).append_column("setpoint", pa.array(np.linspace(0, 2750, 100)))
    common = {"speed": "wind_speed", "capacity": CAPACITY, "name": "farm"}
    first = wind.read_records(table, power="setpoint", public=["power"], **common)
    wind.release(first, epsilon=1, alpha=0.1, method="laplace", ledger=ledger)
    second = wind.read_records(table, power="power", **common)
    with pytest.raises(LedgerRefused, match="power of 'farm' was published in clear"):
        wind.release(second, epsilon=1, alpha=0.1, ledger=ledger)
    third = wind.read_records(table, power="power", public=["setpoint"], **common)
    with pytest.raises(LedgerRefused):
        wind.release(third, epsilon=1, alpha=0.1, ledger=ledger)
    assert ledger.totals("farm").charges == 1


# -- the command line ------------------------------------------------------------------------------


def test_the_command_makes_a_bundle_and_evaluates_it(scada, tmp_path):
    out = tmp_path / "out"
    made = run("wind", "release", scada, *COMMAND, "--yes", "--key", "time", "-o", out)
    assert made.exit_code == 0, made.output
    assert "epsilon 1" in made.stdout
    assert "report.html" in made.stdout
    released = pd.read_csv(out / "records.csv")
    source = pd.read_csv(scada)
    assert list(released.columns) == ["time", "wind", "power_kw"]
    assert (released["time"] == source["time"]).all()
    assert (released["wind"] == source["wind"]).all()
    assert (released["power_kw"] != source["power_kw"]).mean() > 0.9
    assert run("verify", out).exit_code == 0
    ledger = Ledger()
    assert ledger.totals("north farm").spent == 1
    assert run("ledger", "verify", "--bundle", out).exit_code == 0
    shown = run("wind", "evaluate", out, "--against", scada)
    assert shown.exit_code == 0, shown.output
    assert "OWNER ONLY" in shown.stdout
    found = json.loads(run("wind", "evaluate", out, "--against", scada, "--json").stdout)
    assert found["clipped"] > 0  # standby power
    assert found["turbines"][0]["rmse"] == pytest.approx(
        np.sqrt(np.mean((released["power_kw"] - source["power_kw"].clip(0, CAPACITY)) ** 2))
        / CAPACITY,
        rel=1e-6,
    )


def test_an_evaluation_inside_a_bundle_fails_its_check(scada, tmp_path):
    out = tmp_path / "out"
    run("wind", "release", scada, *COMMAND, "--yes", "-o", out)
    shown = run("wind", "evaluate", out, "--against", scada, "--json").stdout
    (out / "evaluation.json").write_text(shown)
    found = {finding.check for finding in verify_bundle(out) if not finding.ok}
    assert found == {"files", "owner"}


def test_json_and_quiet(scada, tmp_path):
    made = run("wind", "release", scada, *COMMAND, "--yes", "-o", tmp_path / "a", "--json")
    body = json.loads(made.stdout)
    assert body["statement"]["dp_valid"] is True
    assert run("wind", "release", scada, *COMMAND, "--yes", "-o", tmp_path / "b", "-q").output == ""


@pytest.mark.parametrize(
    "extra",
    [
        ("--alpha", "2"),
        ("--epsilon", "0"),
        ("--speed", "nowhere"),
        ("--power", "status"),
        ("--capacity", "big"),
        ("--capacity", "0"),
        ("--features", "magic(3)"),
        ("--features", "rbf(0, 1, 2)"),
        ("--split", "1,2"),
        ("--method", "best"),
        ("--missing", "guess"),
        ("--key", "nowhere"),
    ],
)
def test_bad_input_exits_with_2_writes_nothing_and_charges_nothing(scada, tmp_path, extra):
    arguments = dict(zip(COMMAND[::2], COMMAND[1::2], strict=True)) | {extra[0]: extra[1]}
    flat = [part for pair in arguments.items() for part in pair]
    result = run(
        "wind", "release", scada, *flat, "-o", tmp_path / "out", "--ledger", tmp_path / "l"
    )
    assert result.exit_code == 2, result.output
    assert "error:" in result.stderr
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "l").exists() or Ledger(tmp_path / "l").entries() == []


def test_a_taken_folder_is_refused_before_the_charge(scada, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "x").write_text("mine")
    result = run(
        "wind",
        "release",
        scada,
        *COMMAND,
        "--yes",
        "-o",
        tmp_path / "out",
        "--ledger",
        tmp_path / "l",
    )
    assert result.exit_code == 2
    assert not (tmp_path / "l").exists()


def test_a_cap_is_refused_with_exit_code_3(scada, tmp_path):
    ledger = tmp_path / "l"
    cap = ("ledger", "cap", "north farm", "0.5", "--alpha", "15%")
    assert run(*cap, "--ledger", ledger).exit_code == 0
    result = run(
        "wind", "release", scada, *COMMAND, "--yes", "-o", tmp_path / "out", "--ledger", ledger
    )
    assert result.exit_code == 3
    assert "requested 1, remaining 0.5" in result.stderr
    assert not (tmp_path / "out").exists()


def test_evaluating_the_wrong_file_is_refused(scada, tmp_path):
    out = tmp_path / "out"
    run("wind", "release", scada, *COMMAND, "--yes", "-o", out)
    short = tmp_path / "short.csv"
    short.write_text("\n".join(scada.read_text().splitlines()[:50]))
    assert run("wind", "evaluate", out, "--against", short).exit_code == 2
    assert run("wind", "evaluate", tmp_path, "--against", scada).exit_code == 2
    body = json.loads((out / STATEMENT_FILE).read_text())
    body["kind"] = "load"
    (out / STATEMENT_FILE).write_text(Statement(body).to_json(), encoding="utf-8")
    with pytest.raises(InputError, match="no wind power records"):
        evaluate(out, scada)


# -- what real data looks like ---------------------------------------------------------------------


def scada_of_four_turbines(rows_each: int) -> pa.Table:
    """Ten-minute data with gaps, negative standby power, curtailment and float32 columns."""
    rng = np.random.default_rng(11)
    parts = []
    for number in range(4):
        speed = (8 * rng.weibull(2, rows_each)).astype(np.float32)
        power = np.interp(speed, *power_curve()) * 2050 + rng.normal(0, 50, rows_each)
        power[speed < 3] = -rng.uniform(2, 12, (speed < 3).sum())  # standby
        power[rng.random(rows_each) < 0.03] *= 0.4  # curtailed
        power[rng.random(rows_each) < 0.01] = np.nan  # gaps
        times = np.datetime64("2013-01-01") + np.arange(rows_each) * np.timedelta64(10, "m")
        parts.append(
            pa.table(
                {
                    "Date_time": pa.array(times.astype("datetime64[s]")),
                    "Wind_turbine_name": [f"R8074{number}"] * rows_each,
                    "Ws_avg": speed,
                    "P_avg": power.astype(np.float32),
                    "Ba_avg": rng.normal(0, 1, rows_each),
                }
            )
        )
    return pa.concat_tables(parts)


def test_a_year_of_a_wind_farm_goes_through_without_hand_holding(tmp_path):
    each = 100_000 if FULL else 30_000
    table = scada_of_four_turbines(each)
    source = tmp_path / "la_haute.parquet"
    pq.write_table(table, source)
    result = run(
        "wind", "release", source, "--speed", "Ws_avg", "--power", "P_avg", "--capacity", 2050,
        "--turbine", "Wind_turbine_name", "--key", "Date_time", "--missing", "drop", "--alpha",
        "10%", "-o", tmp_path / "out", "--dataset", "la haute",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    released = pq.read_table(tmp_path / "out" / "records.parquet")
    assert released.column_names == ["Date_time", "Wind_turbine_name", "Ws_avg", "P_avg"]
    assert released.schema.field("P_avg").type == pa.float64()
    assert 3.95 * each < len(released) < 3.97 * each
    assert all(finding.ok for finding in verify_bundle(tmp_path / "out"))
    found = evaluate(tmp_path / "out", source)
    assert found.clipped > 0.3 * each
    for turbine in found.turbines:
        assert turbine.rmse < 0.1
        assert turbine.released_loss == pytest.approx(turbine.real_loss, rel=0.1)
        assert turbine.released_energy == pytest.approx(turbine.real_energy, rel=0.01)


def test_many_rows_of_zeros_have_an_answer(ledger):
    rows = 1_000_000 if FULL else 50_000
    table = pa.table({"v": np.linspace(0, 25, rows), "p": np.zeros(rows)})
    records = wind.read_records(table, speed="v", power="p", capacity=1, name="farm")
    made = wind.release(records, epsilon=1, alpha=0.1, ledger=ledger)
    values = np.concatenate(list(made.blocks()))
    assert values.mean() < 0.05
    assert ((values >= 0) & (values <= 1)).all()


@pytest.mark.parametrize("method", ["laplace", "wpo", "tuned"])
def test_an_error_before_the_noise_releases_nothing(method, tmp_path):
    """Memory that was not written to may hold private records: nothing of it is ever released."""

    def fails(words):
        if words == "noise on every record":
            raise ValueError(words)

    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"v": rng.uniform(3, 12, 2000), "p": rng.uniform(0, 1, 2000)})
    for _ in range(5):
        records = wind.read_records(frame, speed="v", power="p", capacity=1, name="farm")
        with pytest.raises(ValueError, match="noise on every record"):
            wind.release(
                records,
                epsilon=1,
                alpha=0.1,
                method=method,
                dataset="x",
                ledger=tmp_path / "ledger.sqlite",
                progress=fails,
            )


def test_arguments_of_another_type_are_refused_in_words(ledger, tmp_path):
    table = demo_records(50)
    columns = {"speed": "wind_speed", "power": "power", "capacity": CAPACITY}
    records = wind.read_records(table, **columns)
    made = wind.release(records, epsilon=1, alpha="15%", dataset="farm", ledger=ledger)
    given = {"epsilon": 1, "alpha": "15%"}
    for call, expected in (
        (lambda: made.write(5), "folder"),
        (lambda: verify_bundle(5), "folder"),
        (lambda: Ledger(5), "file or address of a ledger"),
        (lambda: ledger.set_cap(5, 1, alpha="15%"), "name of a dataset"),
        (lambda: wind.release(records, **given, dataset=5, ledger=ledger), "name of a dataset"),
        (lambda: wind.read_records(table, **columns, public=5), "list of columns as public"),
        (lambda: wind.read_records(table, **columns, unit=5), "name of the unit"),
    ):
        with pytest.raises(InputError, match=f"^Expected a {expected}, got int.") as caught:
            call()
        assert caught.value.remedy
    with pytest.raises(InputError, match=r"at most 1, as 15% or 0\.15"):
        wind.release(records, epsilon=1, alpha=15, ledger=ledger)
    assert len(repr(ledger.totals("farm"))) < 1500  # hashes of rows are no use to people


@pytest.mark.parametrize("kind", [list, tuple, pd.Index, np.array])
def test_public_columns_are_named_by_what_holds_names(kind):
    table = demo_records(50).to_pandas().assign(place=1.0, height=2.0)
    columns = {"speed": "wind_speed", "power": "power", "capacity": CAPACITY}
    records = wind.read_records(table, **columns, public=kind(["place", "height"]))
    (block,) = records.groups[0].columns(["place", "height"])()
    assert list(block) == ["place", "height"]
