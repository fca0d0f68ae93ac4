"""``gridveil study`` as a person meets it."""

import json

import pandas as pd
import pytest
from typer.testing import CliRunner

from gridveil.cli.commands import app
from gridveil.wind.demo import demo_records


def run(*arguments):
    return CliRunner().invoke(app, ["study", *map(str, arguments)])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study") / "fig3"
    done = run("fig3", "--fast", "--runs", 2, "--rows", 50, "--workers", 1, "-o", folder)
    assert done.exit_code == 0, done.output
    assert "not a release" in done.stdout
    assert "Loss of the regression" in done.stdout
    return folder


def test_a_study_leaves_its_results_figures_and_words(folder):
    table = pd.read_parquet(folder / "results.parquet")
    assert len(table) == 2 * 3 * 3
    assert (folder / "figure.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (folder / "figure.svg").read_text()
    assert "seeded noise" in (folder / "summary.md").read_text().lower()


def test_it_continues(folder):
    again = run("fig3", "--fast", "--runs", 2, "--rows", 50, "--json", "-o", folder)
    assert again.exit_code == 0, again.output
    told = json.loads(again.stdout)
    assert told["runs"] == 18
    assert "results.parquet" in told["files"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--runs", 2, "--rows", 60), "settings rows was 50 and is 60"),
        (("--runs", 1, "--rows", 50), "2 runs a cell, more than the 1"),
        (("--runs", 2, "--rows", 50, "--workers", 1, "--cluster", "x"), "not both"),
        (("--alpha", "5%,zero"), "alpha must be a positive number"),
        (("--epsilon", "-1"), "epsilon must be a positive number"),
    ],
)
def test_bad_input_is_exit_code_2(folder, arguments, words):
    refused = run("fig3", "--fast", "-o", folder, *arguments)
    assert refused.exit_code == 2
    assert words in refused.stderr


def test_a_frontier_on_one_s_own_public_records(tmp_path):
    demo_records(60).to_pandas().to_csv(tmp_path / "public.csv", index=False)
    given = ("frontier", tmp_path / "public.csv", "--capacity", 2750, "--runs", 2)
    few = ("--alpha", "15%", "--epsilon", "1,2", "--workers", 1, "-o", tmp_path / "out")
    done = run(*given, *few)
    assert done.exit_code == 0, done.output
    assert "60 public records of a file" in done.stdout.replace("\n", " ")
    (tmp_path / "public.csv").write_text((tmp_path / "public.csv").read_text() + "5,100\n")
    changed = run(*given, *few)
    assert changed.exit_code == 2
    assert "settings digest was" in changed.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nowhere.csv",), "can't be read"),
        (("nowhere.csv", "--turbine", "GE103/2750"), "--turbine has no meaning"),
        (("--speed", "v"), "--speed has no meaning"),
        (("--models", "9"), "--models has no meaning for wind"),
        (("rts96", "--rows", "90"), "--rows has no meaning for a network"),
        (("rts96", "--method", "tuned"), "no method 'tuned'"),
        (("nowhere.m",), "can't be read"),
        (("--turbine", "V0/0"), "no power curve"),
        (("--method", "magic"), "no method 'magic'"),
    ],
)
def test_bad_stand_ins(tmp_path, arguments, words):
    refused = run("frontier", *arguments, "-o", tmp_path / "out")
    assert refused.exit_code == 2
    assert words in refused.stderr


def test_a_frontier_on_a_network(tmp_path):
    few = ("--models", 20, "--alpha", 5, "--epsilon", 4, "--runs", 2, "--workers", 1)
    done = run("frontier", "rts96-paper", *few, "-o", tmp_path / "out")
    assert done.exit_code == 0, done.output
    assert "Accuracy against epsilon and alpha: grid" in done.stdout
    table = pd.read_parquet(tmp_path / "out" / "results.parquet")
    assert (table.infeasible == 0).all()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("fig4", "--rounds", "0"), "The rounds '0' can't be read"),
        (("fig4", "--line", "500", "--models", "5"), "There is no line 500"),
        (("fig5", "--rounds", "one"), "The rounds 'one' can't be read"),
        (("honest", "--part", "sea"), "There is no part 'sea'"),
    ],
)
def test_bad_input_of_grid_studies(tmp_path, arguments, words):
    refused = run(*arguments, "-o", tmp_path / "out")
    assert refused.exit_code == 2
    assert words in refused.stderr


def test_an_interrupt_says_that_it_continues(tmp_path, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("gridveil.studies.run_study", stop)
    stopped = run("fig2", "--fast", "-o", tmp_path / "out")
    assert stopped.exit_code == 130
    assert "the same command continues" in stopped.stderr


@pytest.mark.parametrize("study", ["fig2", "fig3", "fig4", "fig5", "honest", "frontier"])
def test_every_study_has_help(study):
    assert run(study, "--help").exit_code == 0
