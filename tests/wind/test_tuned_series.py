"""Tuned on a series of records: sums without bias, and the order in time restored."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.signal import lfilter

from gridveil import wind
from gridveil.wind.curve_prior import weight_prior
from gridveil.wind.methods.tuned_distribution import Levels
from gridveil.wind.methods.tuned_estimate import Spread
from gridveil.wind.methods.tuned_time_order import (
    Readings,
    SharedDraws,
    draw_scores,
    estimate_shares,
    shared_draws,
)
from gridveil.wind.synthetic.autocorrelation import memory_factors

pytestmark = [
    pytest.mark.filterwarnings("ignore:Seeded noise"),
    pytest.mark.filterwarnings("ignore:Noise on every record"),
]

STEP = 600


def process(rng, rows, memory):
    keep = np.exp(-STEP / memory)
    steps = rng.standard_normal(rows) * np.sqrt(1 - keep**2)
    return lfilter([1.0], [1.0, -keep], steps)


@pytest.fixture(scope="module")
def farm():
    """Two months of one made-up turbine; the second month has 6% less, and some stops."""
    rng = np.random.default_rng([15, 3])
    rows = 8600
    speed = np.clip(6.5 + 3 * process(rng, rows, 30_000.0), 0, 22)
    residual = 0.06 * (0.8 * process(rng, rows, 7_000.0) + 0.6 * rng.standard_normal(rows))
    curve = 1 / (1 + np.exp(-(speed - 8.4) / 1.1))
    time = pd.Timestamp("2015-01-01") + pd.to_timedelta(np.arange(rows) * STEP, unit="s")
    power = np.clip(curve * (1 - 0.06 * (time.month == 2)) + residual, 0, 1)
    power[(speed < 4) | (np.arange(rows) % 1500 < 20)] = 0.0
    return pd.DataFrame({"t": time, "v": speed, "p": power})


def released(farm, *, timed=True, **call):
    table = farm if timed else farm.assign(t=np.arange(len(farm)))
    records = wind.read_records(
        table, speed="v", power="p", capacity=1, **{"time" if timed else "key": "t"}
    )
    call = {"epsilon": 1, "alpha": 0.15, "seed": 3, **call}
    return wind.release(records, **call).data["p"].to_numpy()


def memory(farm, power):
    bins = (farm["v"].to_numpy() * 2).astype(int)
    means = np.bincount(bins, power) / np.maximum(np.bincount(bins), 1)
    away = power - means[bins]
    return np.corrcoef(away[1:], away[:-1])[0, 1]


def months(farm, power):
    month = farm["t"].dt.month.to_numpy()
    return np.array([power[month == one].mean() for one in (1, 2)])


def test_sums_months_and_memory_are_kept(farm):
    real = farm["p"].to_numpy()
    made, plain = released(farm), released(farm, method="laplace")
    assert abs(made.mean() / real.mean() - 1) < 0.03
    assert np.abs(months(farm, made) / months(farm, real) - 1).max() < 0.05
    assert abs(memory(farm, made) - memory(farm, real)) < 0.3
    assert abs(np.mean(made < 1e-9) - np.mean(real < 1e-9)) < 0.1
    ramps = np.diff(made).std() / np.diff(real).std()
    assert 0.6 < ramps < 1.5
    # The control: noise and clipping alone lose all of these.
    assert abs(plain.mean() / real.mean() - 1) > 0.03
    assert abs(memory(farm, plain) - memory(farm, real)) > 0.3
    assert np.diff(plain).std() > 1.5 * np.diff(real).std()


def test_without_times_sums_are_kept_and_the_order_is_that_of_the_noisy_records(farm):
    real = farm["p"].to_numpy()
    made = released(farm, timed=False)
    assert abs(made.mean() / real.mean() - 1) < 0.03
    assert memory(farm, made) < memory(farm, real) - 0.3


def test_a_release_that_says_next_to_nothing_looks_like_a_turbine(farm):
    """With no information the prior is left; WPO's records are half at 0 and half at full power."""
    real = farm["p"].to_numpy()
    far = {"epsilon": "1/144", "alpha": 1}
    made = [np.abs(released(farm, method=name, **far) - real).mean() for name in ("tuned", "wpo")]
    assert made[0] < 0.5 * made[1]


def test_the_prior_is_the_regression_on_usual_curves(farm):
    records = wind.read_records(farm, speed="v", power="p", capacity=1, time="t")
    plan = wind.plan(records, epsilon=1, alpha=0.15)
    mean, covariance = weight_prior(plan.fits[0])
    speeds = np.array([3.0, 8.4, 14.0])
    curve = plan.features({"speed": speeds}) @ mean
    assert curve[0] < 0.1
    assert 0.3 < curve[1] < 0.7
    assert curve[2] > 0.85
    assert np.linalg.eigvalsh(covariance).min() > 0


# -- the parts -------------------------------------------------------------------------------------


def test_levels_find_the_atoms_and_the_mean():
    rng = np.random.default_rng(8)
    f = np.repeat([0.1, 0.5, 0.95], 6000)
    y = np.clip(f + rng.normal(0, 0.1, len(f)), 0, 1)
    y[(f == 0.95) & (rng.random(len(f)) < 0.1)] = 0.0  # stops, which the model knows nothing of
    y0 = y + rng.laplace(0, 0.15, len(f))
    levels = Levels(f, y0, Spread(np.full(10, 0.1), 0.001), 0.15)
    made = levels.power(levels.places(f), rng.standard_normal(len(f)))[0]
    top = f == 0.95
    assert abs(np.mean(made[top] < 0.1) - 0.1) < 0.04
    for level in np.unique(f):
        assert abs(made[f == level].mean() - y[f == level].mean()) < 0.02
    few = np.flatnonzero(top)[:5]
    plain = Levels(f[few], y0[few], Spread(np.full(10, 0.1), 0.001), 0.15)
    # The control: five records are too few to tell.
    assert (
        np.mean(plain.power(plain.places(f[top]), rng.standard_normal(top.sum()))[0] < 0.1) < 0.03
    )


def test_scores_have_the_moments_that_readings_say():
    rng = np.random.default_rng(9)
    f = np.full(20_000, 0.5)
    z = rng.standard_normal(len(f))
    y = np.clip(f + 0.1 * z, 0, 1)
    y0 = y + rng.laplace(0, 0.1, len(f))
    levels = Levels(f, y0, Spread(np.full(10, 0.1), 0.001), 0.1)
    mean, variance, told = levels.scores(f, y0)
    assert abs(mean.mean()) < 0.03
    assert np.mean((z - mean) ** 2) == pytest.approx(variance.mean(), rel=0.1)
    assert np.mean(mean * z) == pytest.approx(told.mean(), rel=0.1)
    ranked = levels.ranked(f, y0)
    assert ranked.std() == pytest.approx(1, abs=0.05)
    assert (np.diff(ranked[np.argsort(y0)]) >= 0).all()


def test_drawn_scores_have_the_memory_of_the_real_ones():
    rng = np.random.default_rng(10)
    rows = 20_000
    z = np.sqrt(0.7) * process(rng, rows, 18_000.0) + np.sqrt(0.3) * rng.standard_normal(rows)
    f = np.full(rows, 0.5)
    y0 = np.clip(f + 0.1 * z, 0, 1) + rng.laplace(0, 0.15, rows)
    levels = Levels(f, y0, Spread(np.full(10, 0.1), 0.001), 0.15)
    times = np.arange(rows) * STEP
    shares = estimate_shares(levels, f, y0, times, STEP)
    lagged = memory_factors(STEP) @ shares
    assert abs(lagged - 0.7 * np.exp(-STEP / 18_000)) < 0.12
    made = np.empty(rows)
    draw_scores(levels, f, y0, times, STEP, made)
    again = np.empty(rows)
    draw_scores(levels, f, y0, times, STEP, again)
    assert np.array_equal(made, again)  # seeded by the noisy records
    assert made.std() == pytest.approx(1, abs=0.1)
    assert np.corrcoef(made[1:], made[:-1])[0, 1] == pytest.approx(lagged, abs=0.1)
    # Neighbours in time tell more of a score than its own reading.
    assert np.corrcoef(made, z)[0, 1] > np.corrcoef(levels.ranked(f, y0), z)[0, 1]


def test_gaps_repeated_times_and_single_records_do_no_harm():
    rng = np.random.default_rng(11)
    times = np.array([0, 0, 600, 600, 10**6, 10**6 + 600, 10**9])
    f = np.linspace(0.1, 0.9, len(times))
    y0 = f + rng.laplace(0, 0.1, len(f))
    levels = Levels(f, y0, Spread(np.full(10, 0.1), 0.001), 0.1)
    made = np.empty(len(f))
    draw_scores(levels, f, y0, times, STEP, made)
    assert np.isfinite(made).all()
    one = Levels(f[:1], y0[:1], Spread(np.full(10, 0.1), 0.001), 0.1)
    assert np.isfinite(one.power(one.places(f[:1]), one.ranked(f[:1], y0[:1]))[0]).all()


@pytest.mark.filterwarnings("ignore::gridveil.errors.NotPrivateWarning")
def test_what_turbines_have_in_common_is_restored():
    """Its control: turbines that have nothing in common, and the same draws for each alone."""
    rng = np.random.default_rng(16)
    rows, levels_of = 6000, {}
    common = process(rng, rows, 18_000.0)
    for shared in (0.6, 0.0):
        found = []
        for _ in range(3):
            z = np.sqrt(shared) * common + np.sqrt(1 - shared) * process(rng, rows, 18_000.0)
            f = np.full(rows, 0.5)
            y0 = f + 0.1 * z + rng.laplace(0, 0.1, rows)
            levels = Levels(f, y0, Spread(np.full(10, 0.1), 0.001), 0.1)
            found.append(Readings(levels, f, y0, np.arange(rows) * STEP))
        levels_of[shared] = found
    drawn = {}
    for shared, found in levels_of.items():
        for name in ("together", "alone"):
            normals = SharedDraws(found, 3) if name == "together" else None
            made = [np.empty(rows) for _ in found]
            for one, into in zip(found, made, strict=True):
                draw_scores(one.levels, one.straight, one.y0, one.times, STEP, into, normals)
            drawn[shared, name] = np.corrcoef(made)[np.triu_indices(3, 1)].mean()
    assert drawn[0.6, "alone"] < 0.4
    assert abs(drawn[0.6, "together"] - 0.6) < 0.15
    assert abs(drawn[0.0, "together"]) < 0.15
    # Times with huge gaps, or all the same, would need endless room for nothing.
    one = found[0]
    far = replace(one, times=one.times + 10**10)
    assert shared_draws([one, far], 3) is None
    still = replace(one, times=np.zeros_like(one.times))
    assert shared_draws([still, still], 3) is None
    assert shared_draws([one], 3) is None
    assert shared_draws(found, 3) is not None
