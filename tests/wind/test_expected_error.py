"""How far a plan says that tuned's power curve will be off, beside how far it is."""

import numpy as np
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
