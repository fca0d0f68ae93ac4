"""The wind studies: what they run is the release itself, and what they say follows from it."""

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest

import gridveil as gv
from gridveil.errors import InputError, NotPrivateWarning
from gridveil.studies.fig2 import Fig2
from gridveil.studies.fig3 import Fig3
from gridveil.studies.frontier_wind import FrontierWind
from gridveil.studies.honest_wind import HonestWind
from gridveil.studies.published_noise_wind import SHARE, published_wind, squared_loss_epsilon
from gridveil.studies.study_plan import Plan
from gridveil.studies.wind_turbine import (
    GAMMA,
    RIDGE,
    WindWorld,
    curve_turbine,
    file_turbine,
    paper_turbine,
)
from gridveil.wind.demo import power_curve


@pytest.fixture(scope="module")
def world():
    return WindWorld(paper_turbine(60, seed=3))


def table_of(study, losses):
    """A made-up table: the losses of every cell by method."""
    plan = Plan(study, len(next(iter(losses.values()))))
    rows = [
        {**plan.cells[run.place], "run": run.number, "rmse": 0.1, "curve_error": 0.1,
         "loss": losses[plan.cells[run.place]["method"]][run.number]}
        for run in plan.all_runs()
    ]  # fmt: skip
    return pd.DataFrame(rows)


# -- the stand-in ----------------------------------------------------------------------------------


def test_the_paper_s_records():
    turbine = paper_turbine(1000, seed=0)
    assert turbine.features == gv.wind.RBF(5)
    assert 2.5 <= turbine.speed.min() < 2.6
    assert 12.4 < turbine.speed.max() <= 12.5
    assert (turbine.power.min(), turbine.power.max()) == (0.0, 1.0)
    away = turbine.power - np.interp(turbine.speed, *power_curve())
    assert 0.08 < away.std() < 0.1  # clipping takes a little of 0.1


@pytest.mark.parametrize("method", ["laplace", "wpo", "tuned"])
@pytest.mark.filterwarnings("ignore::gridveil.errors.NotPrivateWarning")
def test_a_run_is_the_release_with_that_seed(world, method):
    cell = {"method": method, "alpha": 0.15, "epsilon": 1.0}
    records = gv.wind.read_records(
        pd.DataFrame({"at": range(60), "v": world.turbine.speed, "p": world.turbine.power}),
        speed="v", power="p", capacity=1.0, key="at",
    )  # fmt: skip
    made = gv.wind.release(
        records, epsilon=1, alpha=0.15, method=method, features=gv.wind.RBF(5), seed=99
    )
    np.testing.assert_array_equal(np.concatenate(list(made.blocks())), world.release(cell, 99))


def test_a_seeded_release_warns(world):
    with pytest.warns(NotPrivateWarning):
        world.release({"method": "laplace", "alpha": 0.15, "epsilon": 1.0}, 1)


def test_what_is_measured(world):
    X, y = world.X, world.turbine.power
    inverse = np.linalg.inv(X.T @ X + RIDGE * np.eye(5))
    other = np.clip(y + 0.1, 0, 1)
    beta, moved = inverse @ X.T @ y, inverse @ X.T @ other
    found = world.compare(other)
    assert found["loss"] == pytest.approx(np.linalg.norm(X @ moved - other))
    assert found["rmse"] == pytest.approx(np.sqrt(np.mean((other - y) ** 2)))
    assert found["curve_error"] == pytest.approx(np.sqrt(np.mean((X @ (moved - beta)) ** 2)))
    assert found["weight_error"] == pytest.approx(np.linalg.norm(moved - beta))
    assert world.loss == pytest.approx(np.linalg.norm(X @ beta - y))


# -- the published code ----------------------------------------------------------------------------


def test_the_published_restoration_of_the_squared_loss_gives_the_same_records(world):
    """Its problem, written with the square as in the code, against what the study solves."""
    alpha, seed = 0.15, 5
    rng = np.random.default_rng(seed)
    X, y, ridge = world.X, world.turbine.power, world.fit.ridge
    noisy = y + rng.laplace(0, alpha / SHARE, len(y))
    squared = world.loss**2 + rng.laplace(0, ridge.delta_loss(alpha) ** 2 / SHARE)
    weights = world.weights + rng.laplace(0, ridge.delta_beta(alpha) / SHARE)
    records, loss = cp.Variable(len(y)), cp.Variable()
    beta = np.linalg.solve(X.T @ X + RIDGE * np.eye(5), X.T) @ records
    cost = cp.abs(loss - squared) + GAMMA * (
        cp.norm(beta - weights) + cp.norm(records - noisy)
    )  # fmt: skip
    problem = cp.Problem(
        cp.Minimize(1e3 * cost),
        [records >= 0, records <= 1, cp.sum_squares(X @ beta - records) <= loss],
    )
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)
    np.testing.assert_allclose(published_wind(world, alpha, 1.0, seed), records.value, atol=2e-3)


def test_the_epsilon_of_the_published_loss_by_brute_force(world):
    alpha = 0.15
    y, ridge = world.turbine.power, world.fit.ridge
    real = ridge.loss(y) ** 2
    moved = []
    for i in range(len(y)):
        for sign in (-1, 1):
            other = y.copy()
            other[i] = np.clip(other[i] + sign * alpha, 0, 1)
            moved.append(abs(ridge.loss(other) ** 2 - real))
    scale = ridge.delta_loss(alpha) ** 2 / SHARE
    found = squared_loss_epsilon(world, alpha, 1.0)
    assert found == pytest.approx(max(moved) / scale, rel=1e-6)
    assert found > SHARE  # it is not what is claimed


# -- in words --------------------------------------------------------------------------------------


def test_the_words_say_where_the_real_loss_lies():
    study = Fig3(alphas=(0.1, 0.3), rows=60)
    turbine = study.prepare()
    real = WindWorld(turbine).loss
    near = [real - 0.1, real, real + 0.1]
    far = [real + 1, real + 1.1, real + 1.2]
    words = study.words(table_of(study, {"laplace": far, "wpo": near, "tuned": near}), turbine)
    assert "**Laplace**: the real loss is outside the 90% band at every alpha" in words
    assert "**WPO**: the real loss is inside the 90% band at every alpha" in words
    swapped = study.words(table_of(study, {"laplace": near, "wpo": far, "tuned": near}), turbine)
    assert "**WPO**: the real loss is outside" in swapped


def test_a_loss_that_is_inside_at_one_alpha_only():
    study = Fig3(alphas=(0.1, 0.3), methods=("wpo",), rows=60)
    turbine = study.prepare()
    table = table_of(study, {"wpo": [1.0, 2.0, 3.0]})
    real = WindWorld(turbine).loss
    table["loss"] = np.where(table.alpha == 0.1, real, real + 5)
    assert "inside the 90% band at alpha 10% only" in study.words(table, turbine)


def test_each_panel_shows_the_run_with_the_median_loss():
    study = Fig2(alphas=(0.1,), methods=("wpo",), rows=60)
    table = table_of(study, {"wpo": [5.0, 1.0, 3.0, 2.0, 4.0]})
    assert study._typical(table, "wpo", 0.1).run == 2


def test_the_frontier_names_the_least_epsilon_that_is_good():
    study = FrontierWind(epsilons=(0.5, 1.0), alphas=(0.1, 0.3), rows=60)
    turbine = study.prepare()
    table = table_of(study, {"tuned": [1.0, 1.0]})
    real = WindWorld(turbine).loss
    good = (table.alpha == 0.1) & (table.epsilon == 1.0)
    table["loss"] = np.where(good, 1.05 * real, 1.2 * real)
    words = study.words(table, turbine)
    assert "At alpha 10% the loss is kept to 10% on average from epsilon 1 on." in words
    assert "At alpha 30% the loss is kept to 10% on average by none of these." in words


@pytest.mark.parametrize("study", [Fig2, Fig3, HonestWind])
def test_the_paper_s_settings_are_the_defaults(study):
    made = study()
    assert (made.rows, made.epsilon, max(made.alphas)) == (1000, 1.0, 0.3)


# -- a user's own stand-in -------------------------------------------------------------------------


def test_records_of_a_file(tmp_path):
    frame = pd.DataFrame({"v": [3.0, 5.0, np.nan, 12.0], "kw": [0.0, 500.0, 1.0, 2200.0]})
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_parquet(tmp_path / "a.parquet")
    for name in ("a.csv", "a.parquet"):
        turbine = file_turbine(tmp_path / name, "v", "kw", 2000.0)
        np.testing.assert_array_equal(turbine.speed, [3.0, 5.0, 12.0])
        np.testing.assert_array_equal(turbine.power, [0.0, 0.25, 1.0])


@pytest.mark.parametrize(
    ("columns", "capacity", "words"),
    [(("x", "kw"), 1.0, "can't be read"), (("v", "t"), 1.0, "can't be read"),
     (("v", "none"), 1.0, "no whole row"), (("v", "kw"), 0.0, "not a positive number")],
)  # fmt: skip
def test_a_file_that_can_t_be_used(tmp_path, columns, capacity, words):
    frame = pd.DataFrame({"v": [3.0], "kw": [1.0], "t": ["noon"], "none": [np.nan]})
    frame.to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises(InputError, match=words):
        file_turbine(tmp_path / "a.csv", *columns, capacity)


def test_another_turbine_and_one_that_nobody_knows():
    assert len(curve_turbine("E-126/4200", 50, 0.05, 0).speed) == 50
    with pytest.raises(InputError, match="no power curve of a turbine 'V0/0'"):
        curve_turbine("V0/0", 50, 0.05, 0)
