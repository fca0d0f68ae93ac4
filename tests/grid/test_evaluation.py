"""The owner's comparison of a release with the real network: text, JSON and report."""

import json

import numpy as np
import pytest
from grid.making import tables, write_case
from grid.releasing import linear_tables, models_for
from typer.testing import CliRunner

from gridveil import grid
from gridveil.cli.commands import app
from gridveil.grid import read_case
from gridveil.grid.evaluation import evaluate, parameter_errors
from gridveil.grid.model_comparison import Reference
from gridveil.grid.opf.engine import solve_population


def run(*arguments):
    return CliRunner(env={"COLUMNS": "150"}).invoke(app, [str(one) for one in arguments])


def wide_tables():
    """Three buses whose lines and units serve any model that the tests sample."""
    parts = linear_tables()
    parts["branch"][:2, 5:8] = 300
    parts["gen"][:2, 8] = 300
    parts["gen"][:2, 9] = 0
    return parts


def bundle_of(folder, parts, parameter, ledger, **options):
    """A release of a case in a folder: the case's path, and the bundle's."""
    case = write_case(folder, parts)
    network = read_case(case)
    given = {"epsilon": 1, "alpha": 1, "method": "laplace", **options}
    models = given.pop("models", None) or models_for(network, parameter, size=20)
    made = grid.release(
        network, models, parameter=parameter, dataset="tiny", ledger=ledger, **given
    )
    return case, made.write(folder / "out")


def shown(bundle, case, folder):
    """What the command prints, its JSON, and the text of the owner's report."""
    report = folder / "owner.html"
    text = run("grid", "evaluate", bundle, "--against", case, "--report", report)
    assert text.exit_code == 0, text.output
    found = json.loads(run("grid", "evaluate", bundle, "--against", case, "--json").stdout)
    return text.stdout, found, report.read_text()


def test_costs_with_curves_are_compared_with_the_curves_too(tmp_path, ledger):
    parts = wide_tables()
    parts["gencost"][:3, 4:7] = [[0.2, 20, 500], [0.1, 30, 0], [0, 40, 0]]
    case, bundle = bundle_of(tmp_path, parts, "cost", ledger, range=(0, 200), alpha=0.01)
    text, found, page = shown(bundle, case, tmp_path)
    real, released = read_case(case), read_case(bundle / "network.m")
    models = grid.Population.read(bundle / "population.parquet", released)
    costs = [solve_population(one, models).cost for one in (real, real.linearised(), released)]
    expected = [100 * np.mean(np.abs(costs[2] - one) / one) for one in costs[:2]]
    assert found["population_with_curves"]["cost_error"] == pytest.approx(expected[0], rel=1e-6)
    assert found["population"]["cost_error"] == pytest.approx(expected[1], rel=1e-6)
    assert expected[0] > 5 > 1 > expected[1]
    for words in ("population, linear costs", "population, real curves", "never seen, real curves"):
        assert words in text
        assert words in page
    assert "what a user of the data sees" in text
    assert "what a user of the data sees" in page


def test_linear_costs_are_compared_once(tmp_path, ledger):
    case, bundle = bundle_of(tmp_path, wide_tables(), "cost", ledger, range=(0, 200))
    text, found, page = shown(bundle, case, tmp_path)
    assert found["population_with_curves"] is None
    assert found["unseen_with_curves"] is None
    assert "curves" not in text
    assert "real curves" not in page


@pytest.mark.parametrize("make", [linear_tables, tables], ids=["linear", "curved"])
def test_the_statement_always_says_that_released_costs_are_linear(make, tmp_path, ledger):
    """Always, and in the same words: nothing in it comes from the private costs."""
    network = read_case(write_case(tmp_path, make()))
    made = grid.release(
        network, parameter="cost", epsilon=1, alpha=1, dataset="tiny", ledger=ledger
    )
    (said,) = [line for line in made.statement.body["limitations"] if "one slope" in line]
    assert "replaced by its mean slope" in said
    assert "constants are replaced by 0" in said


def test_values_outside_the_range_are_counted(tmp_path, ledger):
    parts = wide_tables()
    case, bundle = bundle_of(tmp_path, parts, "load", ledger, range=(0, 80))
    text, found, page = shown(bundle, case, tmp_path)
    words = "1 of 2 real values of load lay outside [0, 80] MW and were clipped."
    assert words in text
    assert words in page
    (one,) = found["parameters"]
    assert (one["clipped"], one["range"]) == (1, [0, 80])


def test_values_are_not_counted_without_a_range(tmp_path):
    network = read_case(write_case(tmp_path, linear_tables()))
    (one,) = parameter_errors(network, network, ["load"])
    assert one.clipped is None


def test_figures_that_do_not_exist_are_dashes(tmp_path, ledger):
    """No line is congested on the real network, and no model is served on the released one."""
    case, bundle = bundle_of(tmp_path, wide_tables(), "capacity", ledger, range=(1, 2))
    text, found, page = shown(bundle, case, tmp_path)
    assert found["population"]["infeasible"] == 100
    assert found["population"]["price_error"] is None
    assert found["population"]["missed"] is None
    assert "- / -" in text
    assert "nan" not in text
    assert "nan%" not in page
    words = (
        "Population: the cost error holds penalties of 3,000 $/MWh for limits that are broken on "
        "the released network, in 20 models."
    )
    assert words in text
    assert words in page


def test_no_penalty_is_named_where_none_was_paid(tmp_path, ledger):
    case, bundle = bundle_of(tmp_path, wide_tables(), "cost", ledger, range=(0, 200))
    text, found, _ = shown(bundle, case, tmp_path)
    assert found["population"]["penalised"] == 0
    assert "penalties" not in text


def test_models_without_a_solution_on_the_real_network_are_named(tmp_path, ledger):
    parts = wide_tables()
    network = read_case(write_case(tmp_path, parts))
    # The lines of the first model carry next to nothing.
    capacity = np.ones((4, 3))
    capacity[0] = 0.01
    models = grid.Population(4, capacity=capacity, private=("cost",))
    case, bundle = bundle_of(tmp_path, parts, "cost", ledger, models=models, range=(0, 200))
    text, found, page = shown(bundle, case, tmp_path)
    assert (found["population"]["models"], found["population"]["size"]) == (3, 4)
    words = "Population: compared 3 of 4: 1 have no solution on the real network."
    assert words in text
    assert words in page
    assert Reference(network, models).served.tolist() == [False, True, True, True]


def test_evaluate_reads_a_network_as_well_as_a_file(tmp_path, ledger):
    case, bundle = bundle_of(tmp_path, wide_tables(), "load", ledger, range=(0, 200))
    assert evaluate(bundle, read_case(case)).to_json() == evaluate(bundle, case).to_json()


def test_what_a_notebook_shows_of_it_is_its_mark_and_no_figure(tmp_path, ledger):
    case, bundle = bundle_of(tmp_path, wide_tables(), "load", ledger, range=(0, 200))
    assert repr(evaluate(bundle, case)) == (
        "<GRIDVEIL OWNER ONLY - NOT FOR PUBLICATION: evaluation of load, laplace>"
    )
