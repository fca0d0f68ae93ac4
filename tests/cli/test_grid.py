"""``gridveil grid`` as a person or a script meets it."""

import json
import re
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest
from grid.making import tables, write_case
from typer.testing import CliRunner

from gridveil import grid
from gridveil.cli.commands import app
from gridveil.grid import Population, cases, read_case
from gridveil.grid.io.matpower.tables import PD, PMAX, RATE_A
from gridveil.grid.model.sampling import default_models
from gridveil.grid.picture import bus_positions
from gridveil.release.bundle import OWNER_MARK


def run(*arguments):
    return CliRunner().invoke(app, [str(one) for one in arguments])


def test_info_in_words_and_json():
    shown = run("grid", "info", "rts96")
    assert shown.exit_code == 0, shown.output
    assert "73" in shown.stdout
    found = json.loads(run("grid", "info", "rts96-paper", "--json").stdout)
    assert (found["buses"], found["branches"], found["problems"]) == (73, 108, [])


def test_info_tells_its_owner_before_anything_is_spent(tmp_path):
    """A case that no model has a solution on would cost epsilon, and then could not be compared."""
    parts = tables()
    parts["branch"][:, RATE_A] = 0.5
    path = write_case(tmp_path, parts)
    shown = run("grid", "info", path)
    assert shown.exit_code == 0, shown.output
    assert OWNER_MARK in shown.stdout
    assert "The case has no solution as it is" in shown.stdout
    assert "None of 100 models" in shown.stdout
    found = json.loads(run("grid", "info", path, "--json").stdout)
    assert found["mark"] == OWNER_MARK
    solved = {"case": False, "models": 100, "served": 0, "snapshots": False}
    assert found["solved"] == solved
    assert "models" not in run("grid", "info", path, "--no-solve").stdout
    good = json.loads(run("grid", "info", "rts96-paper", "--json").stdout)["solved"]
    models = grid.sample_population(cases.rts96(variant="paper"), 100)
    costs = grid.solve_population(cases.rts96(variant="paper"), models).cost
    served = int(np.isfinite(costs).sum())
    assert good == {"case": True, "models": 100, "served": served, "snapshots": False}


def test_info_proposes_placeholders_and_a_release_says_nothing_of_them(tmp_path):
    parts = tables()
    parts["branch"][0, RATE_A] = 9900
    path = write_case(tmp_path, parts)
    assert "1 branches have ratings of 9,000 MW or more" in run("grid", "info", path).stdout
    assert "--unlimited-above 9000" in run("grid", "info", path).stdout
    assert "9,000" not in run("grid", "info", "rts96").stdout
    options = ["--alpha", "5", "--range", "1:500", "--method", "laplace", "--dataset", "case"]
    made = run(
        "grid", "release", path, *options, "--ledger", tmp_path / "l", "-o", tmp_path / "out"
    )
    assert made.exit_code == 0, made.output
    assert "9900" not in made.output
    assert "unlimited" not in made.output


def test_info_shows_every_note(monkeypatch):
    noted = replace(cases.rts96(), notes=tuple(f"note {place}" for place in range(6)))
    monkeypatch.setattr("gridveil.cli.case_options.Reading.network", lambda *_: noted)
    shown = run("grid", "info", "rts96", "--no-solve").stdout
    assert [shown.count(f"note        note {place}") for place in range(6)] == [1] * 6
    assert "and 3 more" not in shown
    assert "and 3 more" in repr(noted)


def test_info_counts_what_the_range_of_a_release_would_clip(tmp_path):
    parts = tables()
    parts["gen"][0, PMAX] = 9999
    path = write_case(tmp_path, parts)
    shown = run("grid", "info", path, "--no-solve").stdout
    assert "1 of " in shown
    assert "values of generator_limit lie outside [" in shown
    assert "--range generator_limit=LOW:HIGH" in shown
    assert "lie outside" not in run("grid", "info", "rts96", "--no-solve").stdout


def test_the_plan_of_a_file_says_what_of_it_is_not_in_the_release(tmp_path):
    """The same columns that the release lists afterwards; a second file says no more by numbers."""
    ends = ["--alpha", "5", "--range", "1:500", "--dataset", "case", "-o", tmp_path / "out"]
    plans = []
    for rating in (60, 90):
        parts = tables()
        parts["branch"][0, RATE_A] = rating
        path = write_case(tmp_path, parts)
        plans.append(run("grid", "release", path, *ends, "--dry-run").stdout)
    assert plans[0] == plans[1]
    assert "file: the release is network.m" in plans[0]
    made = run("grid", "release", path, *ends, "--ledger", tmp_path / "l").stdout
    for fate in ("Dropped", "Rewritten"):
        (told,) = [one for one in plans[0].splitlines() if f"{fate.lower()} columns" in one]
        listed = re.findall(rf"{fate}: (.*?) \(", made)
        assert listed
        assert told.split(": ", 1)[1] == "; ".join(listed)


@pytest.mark.usefixtures("usual_models")
def test_a_release_says_how_many_models_it_left_out_and_why(tmp_path):
    """Generation hardly covers the load, so that some sampled models are short of it."""
    parts = tables()
    network = read_case(write_case(tmp_path, parts))
    units = network.generators
    most = float(units.p_max[units.in_service].sum())
    parts["bus"][1, PD] += 0.97 * most - float(network.buses.load.sum())
    path = write_case(tmp_path, parts)
    options = [
        "--alpha",
        "5",
        "--range",
        "1:500",
        "--method",
        "laplace",
        "--dataset",
        "case",
        "--yes",
    ]
    made = run(
        "grid", "release", path, *options, "--ledger", tmp_path / "l", "-o", tmp_path / "out"
    )
    assert made.exit_code == 0, made.output
    settings = json.loads((tmp_path / "out" / "release.json").read_text())["settings"]
    left = settings["models_left_out"]
    assert 0 < left == 1000 - settings["models"]
    words = f"{left:,} of 1,000 sampled models were left out: generation can't match the load"
    assert words in " ".join(made.stdout.split())


def test_info_explains_every_problem_of_a_bad_case(tmp_path):
    parts = tables()
    parts["branch"][:, RATE_A] = -5
    path = write_case(tmp_path, parts)
    shown = run("grid", "info", path)
    assert shown.exit_code == 1, shown.output
    assert shown.stdout.count("problem: branch") == 3
    assert "the capacity is negative (capacity)" in shown.stdout
    found = run("grid", "info", path, "--json")
    assert found.exit_code == 1
    problems = json.loads(found.stdout)["problems"]
    assert len(problems) == 3
    assert "the capacity is negative" in problems[0]


def test_info_counts_every_problem(tmp_path):
    path = tmp_path / "many.m"
    network = cases.rts96()
    network.write(path)
    text = path.read_text()
    path.write_text(text.replace("\t175\t", "\t-175\t"))
    found = json.loads(run("grid", "info", path, "--json").stdout)
    assert len(found["problems"]) == (network.branches.capacity == 175).sum() > 10


def test_info_notes_a_load_above_generation(tmp_path):
    parts = tables()
    parts["bus"][1, PD] = 900
    shown = run("grid", "info", write_case(tmp_path, parts))
    assert shown.exit_code == 0, shown.output
    words = "The load of 960.0 MW is above the generation capacity in service of 219.0 MW."
    assert words in shown.stdout
    found = json.loads(run("grid", "info", tmp_path / "tiny.m", "--json").stdout)
    assert words in found["notes"]
    assert (found["load_mw"], found["generation_mw"]) == (960.0, 219.0)


def test_a_case_alone_has_one_cost():
    found = json.loads(run("grid", "solve", "rts96", "--json").stdout)
    assert found["cost"] == pytest.approx(found["bound"], rel=1e-8)
    assert found["status"] == "optimal"


def test_a_case_alone_has_its_dispatch_flows_and_prices_by_name():
    """Whoever compares prices with another program's needs no Python for it."""
    network = cases.rts96(variant="paper")
    found = json.loads(run("grid", "solve", "rts96-paper", "--json").stdout)
    keep = ("dispatch", "flow", "nodal_price")
    solved = grid.solve_population(network, keep=keep)
    assert list(found["nodal_price"]) == list(network.buses.name)
    assert list(found["nodal_price"].values()) == pytest.approx(solved.nodal_price[0].tolist())
    assert list(found["flow_mw"]) == list(network.branches.name)
    assert list(found["dispatch_mw"]) == list(network.generators.name)
    assert sum(found["dispatch_mw"].values()) == pytest.approx(network.buses.load.sum())
    assert "shed_mw" not in found
    shed = run("grid", "solve", "rts96-paper", "--model", "shed", "--slack-price", 50, "--json")
    assert sum(json.loads(shed.stdout)["shed_mw"].values()) > 0


def test_models_are_written_with_their_dispatch_flows_and_prices(tmp_path):
    network, path = cases.rts96(), tmp_path / "solved.parquet"
    assert run("grid", "solve", "rts96", "-o", path).exit_code == 0
    row = pq.read_table(path).to_pylist()[0]
    sizes = {name: len(row[name]) for name in ("dispatch_mw", "flow_mw", "nodal_price")}
    assert sizes == {
        "dispatch_mw": len(network.generators),
        "flow_mw": len(network.branches),
        "nodal_price": len(network.buses),
    }


def test_outages_that_were_survived_are_counted(tmp_path):
    listed = tmp_path / "outages.txt"
    listed.write_text("101-102\n")
    shown = run("grid", "solve", "rts96", "--contingencies", listed)
    assert "1 of 1 models have a dispatch that survives each of 1 outage." in shown.stdout
    # Without buying capacity, no dispatch of this case survives them all.
    asked = ("grid", "solve", "rts96-paper", "--contingencies", "all")
    assert "0 of 1 models have a dispatch that survives each of 106 outages." in run(*asked).stdout
    bought = run(*asked, "--model", "relaxed", "--slack-price", 50).stdout
    assert "each of 106 outages, with what --model relaxed lets one buy." in bought


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


def test_costs_vary_around_the_networks_own_by_default_as_in_a_release(tmp_path):
    network, path = cases.rts96(), tmp_path / "models.parquet"
    assert run("grid", "population", "rts96", "--private", "cost", "-o", path).exit_code == 0
    made = Population.read(path, network)
    _, public = network.linearised().split("cost", (-50, 200))
    default = default_models(public, size=made.size)
    assert made.cost is None
    assert np.array_equal(made.cost_factor, default.cost_factor)


@pytest.mark.parametrize(
    ("given", "name", "low", "high"),
    [
        ("10%", "cost_factor", 0.9, 1.1),
        ("0.1", "cost_factor", 0.9, 1.1),
        ("80:100", "cost", 80, 100),
        ("80,100", "cost", 80, 100),
    ],
)
def test_costs_of_a_population(tmp_path, given, name, low, high):
    path = tmp_path / "models.parquet"
    run("grid", "population", "rts96", "--size", 50, "--costs", given, "-o", path)
    arrays = Population.read(path, cases.rts96()).arrays()
    assert set(arrays) == {"load", "p_min", "p_max", name}
    assert arrays[name].min() == pytest.approx(low, rel=1e-3)
    assert arrays[name].max() == pytest.approx(high, rel=1e-3)


def test_costs_may_stay_as_they_are(tmp_path):
    path = tmp_path / "models.parquet"
    made = run("grid", "population", "rts96", "--size", 2, "--costs", "none", "-o", path)
    assert made.exit_code == 0, made.output
    assert set(Population.read(path, cases.rts96()).arrays()) == {"load", "p_min", "p_max"}


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
        ("population", "rts96", "--private", "cost", "--costs", "80:100", "-o", "x.parquet"),
        ("population", "rts96", "--private", "load,cost", "--costs", "80,100", "-o", "x.parquet"),
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
