"""The grid studies: what they run is the release itself, and what they say follows from it."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import gridveil as gv
from gridveil.errors import InputError
from gridveil.grid.methods.cost_query import CostQuery
from gridveil.studies import grid_case as case_module
from gridveil.studies import noise_verdicts
from gridveil.studies.fig4 import Fig4
from gridveil.studies.fig5 import Fig5
from gridveil.studies.frontier_grid import FrontierGrid
from gridveil.studies.grid_case import GridWorld, Released, make_case
from gridveil.studies.honest_grid import HonestGrid
from gridveil.studies.published_noise_grid import PublishedCosts, published_scale
from gridveil.studies.study_plan import Plan
from gridveil.studies.wind_turbine import WindWorld, paper_turbine

pytestmark = pytest.mark.filterwarnings("ignore::gridveil.errors.NotPrivateWarning")

MODELS = 24


@pytest.fixture(scope="module")
def world():
    return GridWorld(make_case("rts96-paper", MODELS, seed=0))


def cell(method, alpha=5.0, rounds=1, epsilon=1.0):
    return {"method": method, "alpha": alpha, "rounds": rounds, "epsilon": epsilon}


def table_of(study, measures):
    """A made-up table: the same measures in every run, by method."""
    plan = Plan(study, 2)
    known = {"price_error": 1.0, "congestion": 50.0, "failed": 0, "capacity_error": 10.0}
    known |= {"unseen_infeasible": 0.0, "unseen_cost_error": 0.1}
    rows = [
        {**known, **plan.cells[run.place], "run": run.number}
        | measures[plan.cells[run.place]["method"]]
        for run in plan.all_runs()
    ]
    return pd.DataFrame(rows)


# -- the stand-in ----------------------------------------------------------------------------------


def test_the_models_are_served_and_the_unseen_ones_are_others(world):
    case = world.case
    assert case.population.size == case.unseen.size == MODELS
    assert np.isfinite(case.real.cost).all()
    assert np.isfinite(case.unseen_real.cost).all()
    assert not np.isclose(case.population.load[0], case.unseen.load[0]).all()
    np.testing.assert_allclose(
        gv.grid.solve_population(case.network, case.population).cost, case.real.cost
    )


def test_a_network_that_serves_too_few_models_is_refused(tmp_path):
    network = gv.grid.cases.rts96()
    tight = replace(
        network, branches=replace(network.branches, capacity=0.3 * network.branches.capacity)
    )
    tight.write(tmp_path / "tight.m")
    with pytest.raises(InputError, match="too few for a study"):
        make_case(str(tmp_path / "tight.m"), 5, seed=0)


# -- runs ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["laplace", "certified", "paper"])
def test_a_run_is_the_release_with_that_seed(world, method):
    extra = {"rounds": 1} if method == "paper" else {}
    made = gv.grid.release(
        world.case.network,
        world.case.population,
        epsilon=1,
        alpha=5,
        method=method,
        range=(1, 1e6),
        seed=7,
        **extra,
    )
    np.testing.assert_array_equal(made.values, world.release(cell(method), 7).values)


def test_runs_leave_no_trace(world):
    alone = world.release(cell("certified"), 3).values
    world.release(cell("paper"), 4)
    world.compare(Released(world.capacity, 0))
    np.testing.assert_array_equal(world.release(cell("certified"), 3).values, alone)


def test_the_published_noise_is_too_small_by_16_t_squared(world):
    alpha, epsilon, rounds = Fraction(30), Fraction(1), 10
    correct = float(alpha * world.problem.price) / (1 / (4 * rounds))
    assert correct / published_scale(world, alpha, epsilon, rounds) == pytest.approx(1600)
    asked = PublishedCosts(world, alpha, epsilon, rounds, seed=0)
    model = case_module.take(world.case.population, np.array([5]))
    answers = [asked.cost(None, world.sealed, model, Fraction(1, 40)) for _ in range(200)]
    away = np.abs(np.array(answers) - world.case.lipschitz[5])
    assert away.mean() == pytest.approx(75, rel=0.3)  # the mean of 200 is within 7% by chance


def test_known_costs_are_those_that_the_query_works_out(world):
    query = CostQuery(world.problem, {"capacity": Fraction(5)})
    known = case_module.KnownCosts(world.problem, {"capacity": Fraction(5)}, world.case)
    assert known.range == query.range
    assert known.sensitivity == query.sensitivity
    np.testing.assert_allclose(
        known._costs((world.capacity,), world.problem.models),
        query._costs((world.capacity,), world.problem.models),
        rtol=1e-8,
    )


# -- measures --------------------------------------------------------------------------------------


def test_the_real_capacities_have_no_error(world):
    found = world.compare(Released(world.capacity, 0), unseen=True)
    assert found["infeasible"] == found["unseen_infeasible"] == found["capacity_error"] == 0
    assert found["cost_error"] == pytest.approx(0, abs=1e-6)
    assert found["price_error"] == pytest.approx(0, abs=1e-3)
    assert found["congestion"] == 100


def test_lower_capacities_are_measured_as_the_paper_does(world):
    case = world.case
    values = 0.85 * world.capacity
    network = world.public.with_values(values)
    strict = gv.grid.solve_population(network, case.population)
    relaxed = gv.grid.solve_population(
        network, case.population, model="relaxed", slack_price=3000.0
    )
    found = world.compare(Released(values, 2))
    assert found["infeasible"] == pytest.approx(100 * np.isinf(strict.cost).mean())
    assert 0 < found["infeasible"] < 100
    error = 100 * np.mean(np.abs(case.real.cost - relaxed.cost) / case.real.cost)
    assert found["cost_error"] == pytest.approx(error)
    assert found["capacity_error"] == pytest.approx(0.15 * world.capacity.mean())
    assert 0 < found["congestion"] < 100
    assert found["failed"] == 2


# -- in words --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shared(world):
    return world.case


def test_fig5_says_whether_any_model_is_infeasible(shared):
    study = Fig5(alphas=(5.0, 30.0), rounds=(1, 2), models=MODELS)
    bad = {"infeasible": 12.5, "cost_error": 1.0}
    good = {"infeasible": 0.0, "cost_error": 0.01}
    table = table_of(study, {"published": bad, "paper": bad, "certified": good})
    words = study.words(table, shared)
    assert "**GridVeil, certified**: no model is infeasible in any run, at any alpha" in words
    assert "**paper, correct noise** at T = 2: infeasible models are 12.50%" in words
    assert "no restoration" not in words
    table.loc[0, "failed"] = 1
    assert "In 1 of 20 runs the solver found no restoration" in study.words(table, shared)
    turned = table_of(study, {"published": bad, "paper": bad, "certified": bad})
    assert "**GridVeil, certified**: infeasible models are 12.50%" in study.words(turned, shared)


def test_fig4_holds_all_lines_and_shows_one(shared):
    study = Fig4(alphas=(5.0,), rounds=(1,), models=MODELS, line=3)
    assert study.settings() == replace(study, line=9).settings()
    lines = np.arange(108.0)
    measures = {name: {"capacity": lines} for name in study.versions}
    words = study.words(table_of(study, measures), shared)
    assert f"The real capacity is {shared.network.branches.capacity[2]:g} MW" in words
    assert "| 2 [2, 2] | 2 [2, 2] |" in words
    with pytest.raises(InputError, match="There is no line 109"):
        replace(study, line=109).prepare()


def test_honest_says_what_the_published_noise_costs(shared, monkeypatch):
    monkeypatch.setattr(noise_verdicts, "_CHEAP", noise_verdicts.Sizes(400, 400))
    monkeypatch.setattr(noise_verdicts, "_DEAR", noise_verdicts.Sizes(40, 40))
    study = HonestGrid(alphas=(30.0,), models=MODELS)
    good = {"infeasible": 0.0, "cost_error": 0.01}
    bad = {"infeasible": 31.0, "cost_error": 1.4}
    table = table_of(study, {"published": good, "paper": bad, "certified": good})
    words = study.words(table, shared)
    assert "epsilon of up to 400.75 where 1 is claimed" in words
    assert "serves every model in every run" in words
    assert "leaves 31.0% of the models infeasible" in words
    assert "BROKEN" in words


def test_the_frontier_says_whether_models_are_served(shared):
    study = FrontierGrid(alphas=(5.0, 30.0), epsilons=(1.0,), models=MODELS)
    good = {"certified": {"infeasible": 0.0, "cost_error": 0.01}}
    table = table_of(study, good)
    assert "No models of the population are infeasible in any run." in study.words(table, shared)
    table["unseen_infeasible"] = np.where(table.alpha == 30.0, 0.5, 0.0)
    assert "0.5% (alpha 30 MW)" in study.words(table, shared)
    assert FrontierGrid(source="a.m", digest="1").settings() == (
        FrontierGrid(source="b.m", digest="1").settings()
    )


# -- verdicts --------------------------------------------------------------------------------------


def test_the_audit_breaks_the_published_answers_and_not_the_mechanisms(world, monkeypatch):
    """Correct answers are called broken with probability 1e-4 at most, and the noise is seeded."""
    monkeypatch.setattr(noise_verdicts, "_CHEAP", noise_verdicts.Sizes(4000, 4000))
    monkeypatch.setattr(noise_verdicts, "_DEAR", noise_verdicts.Sizes(300, 300))
    found = noise_verdicts.wind_verdicts(WindWorld(paper_turbine(200, seed=0)), 0.15, 1.0)
    found += noise_verdicts.grid_verdicts(world, 30.0, 1.0, 10)
    broken = {(one.version, one.answer): one.verdict.broken for one in found}
    assert broken == {
        ("published", "loss"): True,
        ("published", "weights"): True,
        ("wpo", "loss"): False,
        ("wpo", "weights"): False,
        ("published", "cost"): True,
        ("paper", "cost"): False,
    }
