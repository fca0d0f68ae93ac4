"""What the commands say of the ledger: caps, charges and what is left."""

import json

import pytest
from pyarrow import csv
from typer.testing import CliRunner

from gridveil import grid
from gridveil.cli.commands import app
from gridveil.errors import BudgetRefused
from gridveil.privacy.adjacency import Adjacency
from gridveil.privacy.ledger import Ledger, Terms
from gridveil.privacy.sealed import Range
from gridveil.wind.demo import demo_records


def run(*arguments):
    return CliRunner().invoke(app, [str(one) for one in arguments])


@pytest.fixture
def book(tmp_path):
    made = Ledger(tmp_path / "ledger.sqlite")
    charge(made, "farm", 1)
    charge(made, "other", 1)
    return made


def charge(book, dataset, epsilon):
    power = Adjacency.of("power", alpha=1, unit="MW", range=Range(0, 10), entries=5)
    return book.charge(Terms(dataset, epsilon=epsilon, adjacency=[power], purpose="a test"))


def test_what_is_spent_above_a_cap_is_missing_too(book):
    book.set_cap("farm", "0.5", alpha={"power": 1})
    with pytest.raises(BudgetRefused, match=r"remaining 0, short by 0\.6") as refused:
        charge(book, "farm", "0.1")
    assert "above the cap by 0.5 already" in str(refused.value)
    book.set_cap("farm", "1.25")
    with pytest.raises(BudgetRefused, match=r"remaining 0\.25, short by 0\.75") as refused:
        charge(book, "farm", 1)
    assert "already" not in str(refused.value)


def test_a_cap_shows_its_dataset_alone(book):
    shown = run("ledger", "cap", "farm", 5, "--alpha", "power=1", "--ledger", book.path)
    assert shown.exit_code == 0
    assert "farm" in shown.stdout
    assert "other" not in shown.stdout
    assert shown.stderr == ""


def test_a_cap_on_a_new_name_says_so(book):
    shown = run("ledger", "cap", "fram", 5, "--alpha", 30, "--ledger", book.path)
    assert shown.exit_code == 0
    assert "'fram' is a new name in this ledger" in shown.stderr
    again = run("ledger", "cap", "fram", 4, "--ledger", book.path)
    assert again.stderr == ""


def test_a_cap_below_what_is_spent_is_warned_of(book):
    shown = run("ledger", "cap", "farm", "0.5", "--alpha", "power=1", "--ledger", book.path)
    assert shown.exit_code == 0
    assert "below what is spent already, by 0.5" in shown.stderr
    assert run("ledger", "cap", "farm", "--remove", "--ledger", book.path).stderr == ""


def test_a_reference_is_declared_raised_and_shown(book):
    raised = run("ledger", "reference", "farm", "--alpha", "power=3", "--ledger", book.path)
    assert raised.exit_code == 0, raised.output
    assert "power 3 MW" in raised.stdout
    assert raised.stderr == ""
    assert book.totals("farm").spent == 3
    shown = run("ledger", "show", "farm", "--ledger", book.path).stdout
    assert "power 3" in shown
    assert "Spent 3 in all." in shown
    lowered = run("ledger", "reference", "farm", "--alpha", "power=2", "--ledger", book.path)
    assert lowered.exit_code == 2
    assert "never lowered" in lowered.stderr


def test_a_raise_above_the_cap_is_allowed_and_said(book):
    run("ledger", "cap", "farm", 2, "--alpha", "power=1", "--ledger", book.path)
    raised = run("ledger", "reference", "farm", "--alpha", "power=3", "--ledger", book.path)
    assert raised.exit_code == 0
    assert "below what is spent already, by 1" in raised.stderr


def test_what_is_declared_before_any_charge_is_shown(tmp_path):
    path = tmp_path / "ledger.sqlite"
    shown = run("ledger", "reference", "grid", "--alpha", "30", "--ledger", path)
    assert shown.exit_code == 0
    assert " 30 MW " in shown.stdout
    listed = json.loads(run("ledger", "show", "--json", "--ledger", path).stdout)
    assert listed["datasets"][0]["reference_alpha"] == {"*": {"alpha": "30", "unit": "MW"}}


def test_the_reason_why_data_is_distinct_is_shown(book):
    power = Adjacency.of("power", alpha=1, unit="MW", range=Range(0, 10), entries=5)
    book.charge(
        Terms("twin", epsilon=1, adjacency=[power], purpose="a test", distinct="another mast")
    )
    shown = run("ledger", "show", "twin", "--ledger", book.path)
    assert "distinct data: another mast" in " ".join(shown.stdout.split())


@pytest.mark.parametrize("kind", ["wind", "grid"])
def test_a_release_says_what_it_was_charged(tmp_path, kind):
    csv.write_csv(demo_records(60), tmp_path / "t.csv")
    grid.sample_population(grid.cases.rts96(), 3).write(tmp_path / "few.parquet")
    path = tmp_path / "ledger.sqlite"
    release = {
        "wind": ["wind", "release", tmp_path / "t.csv", "--speed", "wind_speed", "--power"]
        + ["power", "--capacity", 2750, "--alpha", "15%"],
        "grid": [
            "grid",
            "release",
            "rts96",
            "--alpha",
            30,
            "--population",
            tmp_path / "few.parquet",
        ],
    }[kind]
    release += ["--method", "laplace", "--dataset", "mine", "--ledger", path]
    first = run(*release, "-o", tmp_path / "one")
    assert first.exit_code == 0, first.output
    assert f"Charged 1 to 'mine' in {path} (1 spent so far; no cap)." in first.stdout
    Ledger(path).set_cap("mine", 5, alpha={"wind": "15%", "grid": 30}[kind])
    second = run(*release, "-o", tmp_path / "two", "--epsilon", "0.5")
    end = f"Charged 0.5 to 'mine' in {path} (1.5 spent so far; 3.5 left of the cap 5).\n"
    assert second.stdout.endswith(end)
    third = json.loads(run(*release, "-o", tmp_path / "three", "--json").stdout)
    assert third["charge"] == {
        "dataset": "mine",
        "ledger": str(path),
        "charged": "1",
        "spent": "5/2",
        "cap": "5",
        "remaining": "5/2",
    }
    assert run(*release, "-o", tmp_path / "four", "-q").output == ""
