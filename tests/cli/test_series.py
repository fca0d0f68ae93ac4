"""``gridveil grid release --series`` as a person or a script meets it."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from gridveil.cli.commands import app
from gridveil.grid import cases
from gridveil.release.bundle import OWNER_MARK
from gridveil.release.verification import verify_bundle


def run(*arguments):
    return CliRunner().invoke(app, [str(one) for one in arguments])


@pytest.fixture
def loads(tmp_path):
    network = cases.rts96()
    used = network.buses.load != 0
    names = [name for name, one in zip(network.buses.name, used, strict=True) if one]
    hours = np.arange(48)
    shape = 0.6 + 0.1 * np.sin(hours / 24 * 2 * np.pi)
    frame = pd.DataFrame(shape[:, None] * network.buses.load[used], columns=names)
    frame.insert(0, "when", pd.date_range("2024-01-01", periods=48, freq="h"))
    frame.to_parquet(tmp_path / "loads.parquet")
    return tmp_path / "loads.parquet"


def ordered(loads, *more):
    asked = ("--parameter", "load", "--series", loads, "--alpha", 5, "--dataset", "town")
    places = ("--ledger", loads.parent / "l.db", "-o", loads.parent / "out")
    return run("grid", "release", "rts96", *asked, *places, *more)


def test_a_year_is_released_from_the_command_line(loads):
    made = ordered(loads, "--protect", "day", "--hours", "none")
    assert made.exit_code == 0, made.output
    assert "Released 51 loads over 2 days" in made.stdout
    assert "touches two of them: epsilon 2" in made.stdout.replace("\n", " ")
    assert all(finding.ok for finding in verify_bundle(loads.parent / "out"))
    released = pd.read_parquet(loads.parent / "out" / "loads.parquet")
    assert released.shape == (48, 52)
    settings = json.loads((loads.parent / "out" / "release.json").read_text())["settings"]
    assert (settings["protect"], settings["clock"], settings["hours"]) == (
        "day",
        "as written",
        "none",
    )


def test_a_file_makes_the_release_and_the_statement_holds_its_public_part(loads):
    folder = loads.parent
    (folder / "release.toml").write_text(
        f"""kind = "grid"
data = "rts96"
parameter = "load"
series = "{loads}"
protect = "week"
texture = "10%"
hours = "none"
alpha = "5"
epsilon = "2"
dataset = "town"
ledger = "{folder / "l.db"}"
output = "{folder / "out"}"
"""
    )
    made = run("release", folder / "release.toml")
    assert made.exit_code == 0, made.output
    body = json.loads((folder / "out" / "release.json").read_text())
    request = body["request"]
    assert (request["protect"], request["texture"], request["hours"]) == ("week", "10%", "none")
    assert not request.keys() & {"series", "ledger", "dataset", "output"}
    assert body["settings"]["texture"] == 0.1


def test_a_dry_run_shows_what_would_be_asked(loads):
    shown = ordered(loads, "--dry-run", "--time", "when")
    assert shown.exit_code == 0, shown.output
    assert "sum of each load over all days" in shown.stdout
    assert not (loads.parent / "out").exists()
    assert not (loads.parent / "l.db").exists()


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--protect", "month"), "protect is 'month'"),
        (("--parameter", "capacity"), "--series holds loads"),
        (("--method", "paper"), "releases values of one time"),
        (("--only", "zone=1"), "--only has no meaning for --series"),
        (("--snapshots", "all"), "--snapshots has no meaning for --series"),
        (("--alpha", "5%"), "one amount in MW"),
        (("--time", "nothing"), "has no column 'nothing'"),
        (("--margin", "0.1"), "margin"),
    ],
)
def test_what_means_nothing_for_a_series_is_refused(loads, more, words):
    refused = ordered(loads, *more)
    assert refused.exit_code == 2, refused.output
    assert words in refused.stderr.replace("\n", " ")
    assert not (loads.parent / "l.db").exists()


@pytest.mark.parametrize("more", [("--protect", "day"), ("--time", "when"), ("--method", "series")])
def test_options_of_a_series_need_one(tmp_path, more):
    asked = ("--parameter", "load", "--alpha", 5, "--dataset", "town", "-o", tmp_path / "out")
    refused = run("grid", "release", "rts96", *asked, *more)
    assert refused.exit_code == 2
    assert "is for loads over time" in refused.stderr.replace("\n", " ")


def test_the_owner_compares_a_release_with_the_real_series(loads):
    assert ordered(loads, "--hours", "none").exit_code == 0
    out, report = loads.parent / "out", loads.parent / "owner.html"
    asked = ("grid", "evaluate", out, "--against", "rts96", "--series", loads)
    shown = run(*asked, "--report", report)
    assert shown.exit_code == 0, shown.output
    assert OWNER_MARK in shown.stdout
    assert "hours with congestion" in shown.stdout
    page = report.read_text()
    assert OWNER_MARK in page
    assert "Load duration curve" in page
    found = json.loads(run(*asked, "--json").stdout)
    real = pd.read_parquet(loads).drop(columns="when").to_numpy()
    released = pd.read_parquet(out / "loads.parquet").drop(columns="when").to_numpy()
    assert found["rmse"] == pytest.approx(np.sqrt(((released - real) ** 2).mean()))
    assert found["at_mean"] == pytest.approx(np.sqrt(real.var(axis=0).mean()))
    inside = run(*asked, "--report", out / "owner.html")
    assert inside.exit_code == 2
