"""How far off a plan says that a release will be, beside how far it is."""

import re

import numpy as np
import pandas as pd
import pytest

import gridveil as gv
from gridveil.wind import ArrayRows, fit_features
from gridveil.wind.demo import demo_records

CAPACITY, RUNS = 2750, 6


@pytest.mark.filterwarnings("ignore::gridveil.errors.NotPrivateWarning")
@pytest.mark.parametrize(("rows", "epsilon"), [(1000, 1), (300, 1), (1000, "0.3")])
def test_the_expected_error_of_the_curve_is_about_what_is_measured(rows, epsilon):
    """Its control: noise on the records alone says several times as much."""
    table = demo_records(rows).to_pandas()
    records = gv.wind.read_records(table, speed="wind_speed", power="power", capacity=CAPACITY)
    plan = gv.wind.plan(records, epsilon=epsilon, alpha="0.15", method="tuned")
    features = gv.wind.RBF(5)

    def curve(frame):
        speed = frame.wind_speed.to_numpy()
        fit = fit_features(ArrayRows({"speed": speed}, features))
        return fit.weights(frame.power.to_numpy() / CAPACITY)

    X, real = features({"speed": table.wind_speed.to_numpy()}), curve(table)
    made = [plan.run(plan.study(seed)).data for seed in range(RUNS)]
    squares = [np.mean((X @ (curve(one) - real)) ** 2) for one in made]
    measured = float(np.sqrt(np.mean(squares)))
    expected = plan.prepared.curve
    assert measured / 1.6 < expected < 1.6 * measured
    assert plan.prepared.curve_error(plan.fits, plan.guarantee) > 2.5 * measured
    assert f"off by about {expected:.1%} of capacity" in plan.assumed["accuracy"]


def farm(days):
    """Two turbines about a curve, with residuals of 5% of capacity, by the hour."""
    draws = np.random.default_rng(5)
    times = pd.date_range("2024-01-01", periods=24 * days, freq="1h")
    found = []
    for name in "AB":
        speed = np.clip(8 + np.cumsum(draws.normal(0, 0.8, len(times))) % 12 - 6, 0.5, 20)
        curve = np.clip((speed - 3) / 9, 0, 1)
        share = np.clip(curve + draws.normal(0, 0.05, len(times)) * (curve > 0), 0, 1)
        found.append(
            pd.DataFrame({"turbine": name, "time": times, "wind_speed": speed, "power": share})
        )
    return pd.concat(found)


@pytest.mark.filterwarnings("ignore::gridveil.errors.NotPrivateWarning")
def test_synthetic_says_how_far_noise_moves_means():
    table = farm(366)
    columns = {"speed": "wind_speed", "power": "power", "time": "time", "turbine": "turbine"}
    records = gv.wind.read_records(table, **columns, capacity=1, unit="pu")
    plan = gv.wind.plan(records, epsilon=2, protect="day", method="synthetic")
    claimed = re.findall(r"by (?:at most )?about ([\d.]+)%", plan.assumed["accuracy"])
    mean, month = (float(one) / 100 for one in claimed)
    errors = []
    for seed in range(RUNS):
        both = plan.run(plan.study(seed)).data.merge(table, on=["turbine", "time"])
        errors.append((both.power_x - both.power_y).groupby(both.time.dt.month).mean().to_numpy())
    assert mean / 5 < np.sqrt(np.mean(np.mean(errors, axis=1) ** 2)) < 1.2 * mean
    assert month / 2.5 < np.sqrt(np.mean(np.square(errors))) < 1.5 * month


def test_synthetic_without_times_says_nothing_of_months():
    records = gv.wind.read_records(
        demo_records(2000), speed="wind_speed", power="power", capacity=CAPACITY
    )
    said = gv.wind.plan(records, epsilon=1, method="synthetic").assumed["accuracy"]
    assert "moves the mean power by at most about" in said
    assert "month" not in said


def test_too_few_days_say_that_months_were_not_asked():
    columns = {"speed": "wind_speed", "power": "power", "time": "time", "turbine": "turbine"}
    records = gv.wind.read_records(farm(40), **columns, capacity=1, unit="pu")
    plan = gv.wind.plan(records, epsilon="0.5", protect="day", method="synthetic")
    assert "too much noise to ask for months" in plan.assumed["accuracy"]


@pytest.mark.filterwarnings("ignore::gridveil.errors.NotPrivateWarning")
def test_synthetic_says_that_its_curve_never_falls():
    records = gv.wind.read_records(
        demo_records(200), speed="wind_speed", power="power", capacity=CAPACITY
    )
    said = gv.wind.release(records, epsilon=1, method="synthetic", seed=1).statement.body
    assert any("never falls as the wind gets stronger" in one for one in said["limitations"])
