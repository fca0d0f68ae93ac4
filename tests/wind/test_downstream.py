"""What recipients do with records, measured beside the real ones for the owner."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from gridveil import wind
from gridveil.cli.commands import app
from gridveil.wind import downstream as use
from gridveil.wind.downstream import Series
from gridveil.wind.evaluation import evaluate

pytestmark = pytest.mark.filterwarnings("ignore::gridveil.privacy.seeded.NotPrivateWarning")

STEP = 600
DAYS = 40


def farm():
    """Two turbines that share half of what they are off their curve by, over New Year."""
    draws = np.random.default_rng(8)
    rows = DAYS * 144
    times = pd.date_range("2023-12-12", periods=rows, freq=f"{STEP}s")
    shared = draws.standard_normal(rows)
    parts = []
    for name in ("A", "B"):
        speed = np.clip(8 + 3 * np.sin(np.arange(rows) / 90) + draws.normal(0, 1, rows), 0, 24)
        away = 0.05 * (shared + draws.standard_normal(rows)) / np.sqrt(2)
        power = np.clip(1 / (1 + np.exp(8 - speed)) + away, 0, 1)
        parts.append(pd.DataFrame({"who": name, "when": times, "v": speed, "p": 2000 * power}))
    return pd.concat(parts, ignore_index=True)


@pytest.fixture(scope="module")
def frame():
    return farm()


@pytest.fixture(scope="module")
def series(frame):
    turbine = (frame["who"] == "B").to_numpy().astype(np.int64)
    seconds = frame["when"].to_numpy().astype("datetime64[s]").astype(np.int64)
    return Series(turbine, seconds, frame["v"].to_numpy(), STEP)


def test_the_real_records_are_their_own_best_release(frame, series):
    real = frame["p"].to_numpy() / 2000
    assert use.curve_error(series.bins, real, real) == 0
    assert use.month_error(series, real, real) == 0
    assert use.distance(real, real) == 0
    other = np.clip(real + 0.1, 0, 1)
    assert use.curve_error(series.by_turbine, real, other) > 0.05
    assert use.month_error(series, real, other) > 0.1
    assert 0.05 < use.distance(real, other) <= 0.1


def test_pairs_stay_with_their_turbine_and_skip_gaps(series):
    here, after = series.pairs(6)
    assert len(here) == 2 * (DAYS * 144 - 6)
    assert (series.turbine[here] == series.turbine[after]).all()
    kept = np.delete(np.arange(len(series.speed)), [100, 101])
    holey = Series(series.turbine[kept], series.seconds[kept], series.speed[kept], STEP)
    here, after = holey.pairs(1)
    assert (holey.seconds[after] - holey.seconds[here] == STEP).all()
    assert len(here) == len(series.pairs(1)[0]) - 3


def test_memory_and_ramps_of_a_known_process(series):
    draws = np.random.default_rng(2)
    steps = draws.standard_normal(len(series.speed))
    power = 0.5 + 0.05 * (steps + np.roll(steps, 1)) / np.sqrt(2)
    found = use.memory(series, power)
    assert found[0] == pytest.approx(0.5, abs=0.05)
    assert np.abs(found[1:]).max() < 0.05
    # Var(x' - x) is twice the variance less the covariance: 2 (1 - 1/2) times 0.05 squared.
    assert np.std(use.ramps(series, power)) == pytest.approx(0.05, rel=0.05)


def test_turbines_that_go_together_are_seen_to(frame, series):
    real = frame["p"].to_numpy() / 2000
    assert use.together(series, real) == pytest.approx(0.5, abs=0.15)
    shuffled = real.copy()
    half = len(real) // 2
    shuffled[half:] = np.roll(shuffled[half:], 144 * 7)
    assert abs(use.together(series, shuffled)) < 0.15
    one = Series(series.turbine[:half], series.seconds[:half], series.speed[:half], STEP)
    assert np.isnan(use.together(one, real[:half]))


def test_a_forecast_trained_on_noise_is_worse(frame, series):
    real = frame["p"].to_numpy() / 2000
    noise = np.random.default_rng(3).random(len(real))
    for steps in (1, 6):
        best = use.forecast_error(series, real, real, steps)
        assert best < use.persistence_error(series, real, steps)
        assert use.forecast_error(series, noise, real, steps) > 1.5 * best


@pytest.mark.parametrize("method", ["tuned", "laplace"])
def test_the_owner_sees_it_beside_the_real_records(frame, method, ledger, tmp_path):
    frame = frame.iloc[::2]  # every 20 minutes
    frame.to_csv(tmp_path / "real.csv", index=False)
    records = wind.read_records(
        tmp_path / "real.csv", speed="v", power="p", capacity=2000, turbine="who", time="when"
    )
    made = wind.release(
        records, epsilon=1, alpha="15%", method=method, dataset="farm", ledger=ledger
    )
    out = made.write(tmp_path / "out")
    found = {one.name: one for one in evaluate(out, tmp_path / "real.csv").downstream.figures}
    real = frame["p"] / 2000
    assert found["capacity factor"].real == pytest.approx(real.mean(), abs=1e-6)
    released = made.data.sort_values(["who", "when"])["p"] / 2000
    assert found["capacity factor"].released == pytest.approx(released.mean(), abs=1e-6)
    by_turbine = [found[f"capacity factor, {name}"].real for name in "AB"]
    assert by_turbine == pytest.approx([real[frame["who"] == name].mean() for name in "AB"])
    assert (found["capacity factor"].prior is None) == (method == "laplace")
    if method == "tuned":
        curve = found["curve in bins of 0.5 m/s, rms error"]
        assert curve.real is None
        assert curve.released < 0.5 * curve.prior
    words = ["wind", "evaluate", str(out), "--against", str(tmp_path / "real.csv")]
    shown = CliRunner().invoke(app, [*words, "--report", str(tmp_path / "owner.html")])
    assert shown.exit_code == 0, shown.output
    assert "forecast 6 steps ahead" in shown.output
    page = (tmp_path / "owner.html").read_text()
    for part in ("Capacity factor by month", "2023-12", "Ramps over 20 minutes", "Power curves"):
        assert part in page
    told = json.loads(CliRunner().invoke(app, [*words, "--json"]).stdout)
    assert {one["name"] for one in told["downstream"]} == set(found)


def test_records_without_times_have_fewer_figures(frame):
    few = frame.iloc[:200].assign(row=np.arange(200))
    records = wind.read_records(few, speed="v", power="p", capacity=2000, key="row")
    from gridveil.privacy.sealed import unseal
    from gridveil.wind.downstream_report import look_downstream

    blocks = unseal(records.by_turbine)
    found = look_downstream(records, blocks, blocks, None)
    assert [one.name for one in found.figures if "forecast" in one.name] == []
    assert len(found.section.pictures) == 2
