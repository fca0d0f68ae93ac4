"""Queries: how far computed answers move between neighbours, hunted down on the grid itself.

The noise source here adds none, so what comes back is the quantised answer. Between neighbours it
may move by no more steps than the mechanism paid for.
"""

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.making import adjacency
from support.sizes import FULL

from gridveil.errors import NotPrivateWarning
from gridveil.privacy.account import Account, Budget, study_account
from gridveil.privacy.sealed import unseal
from gridveil.wind.features import RBF, Polynomial
from gridveil.wind.queries import (
    SHARE_TOLERANCE,
    above,
    ask_records,
    huber,
    loss_query,
    records_sensitivity,
    share_step,
    spread_query,
    weights_query,
)
from gridveil.wind.records import read_records
from gridveil.wind.regression import fit_records


class NoNoise:
    """Adds nothing: shows the quantised answer."""

    name = "none"
    secure = False

    def laplace(self, values, scale):
        return values

    def noisy_max(self, scores, scale):
        return int(np.argmax(scores))


def silent() -> Account:
    return Account(Budget(10), NoNoise(), [adjacency()], None, None)


def records_of(speed, power, turbine=None):
    columns = {"v": speed, "p": power, "n": np.arange(len(speed))}
    if turbine is not None:
        columns["t"] = [f"T{k}" for k in turbine]
    return read_records(
        pa.table(columns), speed="v", power="p", capacity=1.0, key="n", public=[],
        turbine=None if turbine is None else "t",
    )  # fmt: skip


def ask(kind, speed, power, alpha, turbine, features):
    """The answer in grid steps, and the steps that the mechanism pays for."""
    records = records_of(speed, power, turbine)
    fits = fit_records(records, features, 1e-3)
    account = silent()
    if kind == "records":
        into = np.empty(len(speed))
        ask_records(account, records, alpha, Fraction(1), into)
        values = into
    elif kind == "weights":
        mixes = [np.random.default_rng(features.width).normal(size=(4, features.width))] * len(fits)
        answer = weights_query(fits, mixes, alpha).ask(account, records, Fraction(1))
        values = _unscaled(account, answer)
    elif kind == "loss":
        answer = loss_query(fits, alpha).ask(account, records, Fraction(1))
        values = _unscaled(account, answer)
    else:
        curves = [np.linspace(-0.3, 1.2, features.width)] * len(fits)
        radius = Fraction(1, 4)
        answer = spread_query(fits, curves, radius, alpha).ask(account, records, Fraction(1))
        values = np.concatenate(answer.values)
    calibration = account.records[0].calibration
    return values / float(calibration.grid), calibration.steps


def _unscaled(account, answer):
    scale = account.records[0].calibration.scale_in_units
    return np.concatenate(
        [value * (scale / own) for value, own in zip(answer.values, answer.scales, strict=True)]
    )


@pytest.mark.parametrize("kind", ["records", "weights", "loss", "spread"])
@settings(max_examples=2500 if FULL else 40)
@given(
    seed=st.integers(0, 10**6),
    rows=st.integers(2, 40),
    alpha=st.fractions(Fraction(1, 50), 1, max_denominator=100),
    turbines=st.integers(1, 3),
    width=st.integers(2, 5),
    extreme=st.booleans(),
)
def test_neighbours_stay_within_the_steps_that_are_paid_for(
    kind, seed, rows, alpha, turbines, width, extreme
):
    rng = np.random.default_rng(seed)
    speed = rng.uniform(2.5, 12.5, rows)
    turbine = None if turbines == 1 else np.sort(rng.integers(0, turbines, rows))
    power = rng.choice([0.0, 1.0], rows) if extreme else rng.uniform(0, 1, rows)
    moved = power.copy()
    at = rng.integers(rows)
    power[at] = min(power[at], 1 - float(alpha))
    moved[at] = power[at] + float(alpha) * (1 - 1e-15)
    features = RBF(width) if seed % 2 else Polynomial(width - 1, 0, 15)
    one, steps = ask(kind, speed, power, alpha, turbine, features)
    other, _ = ask(kind, speed, moved, alpha, turbine, features)
    assert np.abs(one - other).sum() <= steps + 1e-6


def test_the_bound_of_the_spread_is_reached_and_no_smaller_one_would_do():
    # One record at the far end from a curve that is 0 there.
    alpha, radius = Fraction(1, 10), Fraction(1, 4)
    bound = huber(Fraction(1), radius) - huber(1 - alpha, radius)
    assert bound == 2 * radius * alpha
    speed = np.array([5.0, 6.0])
    features = RBF(2)
    answers = []
    for end in (0.9, 1.0):
        records = records_of(speed, np.array([end, 0.0]))
        fits = fit_records(records, features, 1e-3)
        account = silent()
        query = spread_query(fits, [np.zeros(2)], radius, alpha)
        found = query.ask(account, records, Fraction(1))
        answers.append(found.values[0][0])
    assert answers[1] - answers[0] == pytest.approx(float(bound), rel=2e-3)


@given(
    st.fractions(-1, 1, max_denominator=60),
    st.fractions(-1, 1, max_denominator=60),
    st.fractions(Fraction(1, 20), 1, max_denominator=20),
)
def test_hubers_function_moves_most_at_the_far_end(one, other, radius):
    alpha = abs(one - other)
    bound = huber(Fraction(1), radius) - huber(1 - alpha, radius)
    assert abs(huber(one, radius) - huber(other, radius)) <= bound


def test_hubers_bound_with_a_tenth_less_fails():
    alpha, radius = Fraction(1, 10), Fraction(1, 2)
    bound = Fraction(9, 10) * (huber(Fraction(1), radius) - huber(1 - alpha, radius))
    assert huber(Fraction(1), radius) - huber(Fraction(9, 10), radius) > bound


@given(st.fractions(0, 10))
def test_above_is_never_below(value):
    assert Fraction(above(value)) >= value


def test_turbines_of_different_size_share_one_bound():
    rng = np.random.default_rng(3)
    turbine = np.repeat([0, 1], [10, 300])
    records = records_of(rng.uniform(3, 12, 310), rng.uniform(0, 1, 310), turbine)
    fits = fit_records(records, RBF(5), 1e-3)
    account = silent()
    mixes = [np.eye(5)] * 2
    answer = weights_query(fits, mixes, Fraction(1, 10)).ask(account, records, Fraction(1))
    # The larger turbine's weights move less, and get less noise.
    assert answer.scales[1] < answer.scales[0] / 3
    for fit, scale in zip(fits, answer.scales, strict=True):
        assert scale >= fit.ridge.delta_beta(0.1)
        assert scale <= 1.01 * fit.ridge.delta_beta(0.1)
    assert account.records[0].sensitivity.moving == 10


@pytest.mark.parametrize("turbines", [1, 3])
def test_the_coordinates_of_all_turbines_count_as_moving(turbines):
    rng = np.random.default_rng(5)
    records = records_of(
        rng.uniform(3, 12, 30), rng.uniform(0, 1, 30), np.repeat(range(turbines), 30 // turbines)
    )
    fits = fit_records(records, RBF(4), 1e-3)
    alpha = Fraction(1, 10)
    queries = [
        weights_query(fits, [np.eye(4)] * turbines, alpha),
        loss_query(fits, alpha),
        spread_query(fits, [np.zeros(4)] * turbines, Fraction(1, 4), alpha),
    ]
    assert [q.sensitivity.moving for q in queries] == [sum(q.sizes) for q in queries]


def test_shares_are_rounded_and_the_sensitivities_cover_it():
    # Exact neighbours: eighths of 3 kW. The computed shares of some are more than alpha apart.
    alpha = Fraction(1, 8)
    low = np.arange(0, 2.625, 2.0**-12)
    table = pa.table({"v": np.arange(len(low)), "low": low, "high": low + 0.375})
    computed = []
    for column in ("low", "high"):
        records = read_records(table, speed="v", power=column, capacity=3.0)
        computed.append(np.concatenate(list(unseal(records.power)())))
    moves = [Fraction(b) - Fraction(a) for a, b in zip(*computed, strict=True)]
    assert max(moves) > alpha
    assert max(moves) <= records_sensitivity(alpha).bound == share_step(alpha)
    for exact, share in zip(low, computed[0], strict=True):
        assert abs(Fraction(share) - Fraction(exact) / 3) <= SHARE_TOLERANCE


def test_other_queries_are_about_the_computed_shares():
    # At a tiny alpha the rounding of shares is a visible part of how far they move.
    alpha = Fraction(1, 2**40)
    rng = np.random.default_rng(5)
    fits = fit_records(records_of(rng.uniform(3, 12, 30), rng.uniform(0, 1, 30)), RBF(4), 1e-3)
    step = float(share_step(alpha))
    assert weights_query(fits, [np.eye(4)], alpha).sensitivity.value >= fits[0].ridge.delta_beta(
        step
    )
    assert loss_query(fits, alpha).sensitivity.value >= fits[0].ridge.delta_loss(step)
    spread = spread_query(fits, [np.zeros(4)], Fraction(1, 4), alpha).sensitivity.value
    assert spread == share_step(alpha) / 2
    assert share_step(Fraction(1)) == 1  # shares are in [0, 1]


@pytest.mark.parametrize("turbine", [None, "who"])
def test_noisy_records_know_nothing_of_the_order_in_the_source(turbine):
    """A source may be sorted by power: rows that are alike in public must not tell it."""
    rows = 400
    power = np.linspace(0, 100, rows)  # in the order of the source, which is that of power
    table = pa.table(
        {"v": np.repeat([5.0, 8.0], rows // 2), "p": power, "who": ["a", "b"] * (rows // 2)}
    )
    sizes = 100.0 if turbine is None else {"a": 100.0, "b": 100.0}
    records = read_records(table, speed="v", power="p", capacity=sizes, turbine=turbine)
    noisy = np.empty(rows)
    planned = [adjacency(alpha="1", unit="of capacity")]
    with pytest.warns(NotPrivateWarning):
        account = study_account(Fraction(1000), adjacency=planned, seed=0)
    ask_records(account, records, Fraction(1), Fraction(20), noisy)
    part = rows // 2 if turbine is None else rows // 4
    for some in np.split(noisy, rows // part):
        assert (np.diff(some) >= 0).all()
    # A key tells rows apart: their order is public, and stays.
    keyed = table.append_column("t", pa.array(range(rows)))
    records = read_records(keyed, speed="v", power="p", capacity=100.0, key="t")
    ask_records(account, records, Fraction(1), Fraction(20), noisy)
    assert (np.diff(noisy) < 0).any()
