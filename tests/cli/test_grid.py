"""``gridveil grid`` as a person or a script meets it."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from gridveil.cli.main import app
from gridveil.grid import Population, cases
from gridveil.grid.layout import bus_positions


def run(*arguments):
    return CliRunner().invoke(app, [str(one) for one in arguments])


def test_info_in_words_and_json():
    shown = run("grid", "info", "rts96")
    assert shown.exit_code == 0, shown.output
    assert "73" in shown.stdout
    found = json.loads(run("grid", "info", "rts96-paper", "--json").stdout)
    assert (found["buses"], found["branches"], found["problems"]) == (73, 108, [])


def test_a_case_alone_has_one_cost():
    found = json.loads(run("grid", "solve", "rts96", "--json").stdout)
    assert found["cost"] == pytest.approx(found["bound"], rel=1e-8)
    assert found["status"] == "optimal"


def test_a_population_is_sampled_solved_and_written(tmp_path):
    models, out = tmp_path / "models.parquet", tmp_path / "costs.parquet"
    made = run("grid", "population", "rts96-paper", "--size", 20, "-o", models)
    assert made.exit_code == 0, made.output
    solved = run("grid", "solve", "rts96-paper", "--population", models, "-o", out)
    assert solved.exit_code == 0, solved.output
    costs = pq.read_table(out)["cost"].to_numpy()
    assert len(costs) == 20
    found = json.loads(
        run("grid", "solve", "rts96-paper", "--population", models, "--json", "--workers", 2).stdout
    )
    assert found["cost"] == costs.tolist()


def test_a_population_for_several_private_parameters(tmp_path):
    models = tmp_path / "models.parquet"
    made = run(
        "grid", "population", "rts96", "--size", 2, "--private", "load,capacity", "-o", models
    )
    assert made.exit_code == 0, made.output
    assert "private     capacity, load" in made.output
    assert Population.read(models, cases.rts96()).private == ("capacity", "load")


def test_a_relaxed_model_never_costs_more_than_a_strict_one(tmp_path):
    strict = json.loads(run("grid", "solve", "rts96-paper", "--json").stdout)["cost"]
    relaxed = json.loads(
        run(
            "grid", "solve", "rts96-paper", "--model", "relaxed", "--slack-price", 10, "--json"
        ).stdout
    )["cost"]
    assert relaxed <= strict


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_a_picture_is_drawn(tmp_path, suffix):
    path = tmp_path / f"loading.{suffix}"
    assert run("grid", "solve", "rts96", "--plot", path, "-q").exit_code == 0
    assert path.stat().st_size > 10_000


@pytest.mark.parametrize(
    "arguments",
    [
        ("info", "nowhere.m"),
        ("solve", "rts96", "--model", "magic"),
        ("solve", "rts96", "--model", "relaxed"),
        ("solve", "rts96", "--convention", "mine"),
        ("solve", "rts96", "--population", "nowhere.parquet"),
        ("solve", "rts96", "--workers", "0"),
        ("population", "rts96", "--size", "0", "-o", "x.parquet"),
        ("population", "rts96", "--costs", "cheap", "-o", "x.parquet"),
        ("population", "rts96", "--private", "cost", "-o", "x.parquet"),
        ("population", "rts96", "--private", "load,cost", "-o", "x.parquet"),
        ("population", "rts96", "--private", "load,voltage", "-o", "x.parquet"),
        ("population", "rts96", "--spread", "2", "-o", "x.parquet"),
    ],
)
def test_bad_input_exits_with_2(arguments, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run("grid", *arguments)
    assert result.exit_code == 2, result.output
    assert "error:" in result.stderr
    assert list(tmp_path.glob("*.parquet")) == []


def test_close_buses_are_drawn_close():
    network = cases.rts96()
    place = bus_positions(network)
    assert place.shape == (73, 2)
    assert np.isfinite(place).all()
    assert len(np.unique(place.round(6), axis=0)) == 73
    lines = network.branches
    ends = np.linalg.norm(place[lines.from_bus] - place[lines.to_bus], axis=1)
    every = np.linalg.norm(place[:, None] - place[None], axis=2)
    assert ends.mean() < every.mean() / 2
