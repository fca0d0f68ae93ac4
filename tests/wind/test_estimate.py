"""Estimates from noisy answers: right on average, and better than either source alone."""

import numpy as np
import pytest

from gridveil.wind.features import RBF
from gridveil.wind.methods.tuned_budget import (
    plan_split,
    public_setting,
    residual_correlation,
)
from gridveil.wind.methods.tuned_estimate import (
    estimate_loss,
    estimate_spread,
    estimate_weights,
    posterior_loss,
)
from gridveil.wind.methods.tuned_weight_mix import weight_mix
from gridveil.wind.regression import fit_features
from gridveil.wind.row_blocks import ArrayRows


@pytest.fixture(scope="module")
def world():
    """Public speeds, made-up records, and their regression."""
    rng = np.random.default_rng(5)
    speed = rng.uniform(2.5, 12.5, 2000)
    curve = 1 / (1 + np.exp(-(speed - 7.5)))
    y = np.clip(curve + rng.normal(0, 0.1, len(speed)), 0, 1)
    rows = ArrayRows({"speed": speed}, RBF(5))
    ridge = fit_features(rows)
    return speed, y, ridge, weight_mix(ridge)


def noisy_rows(speed, y, b, rng):
    return ArrayRows({"speed": speed}, RBF(5), y + rng.laplace(0, b, len(y)))


def estimate_many(world, *, b, scale, radius, spread_scale, runs):
    speed, y, ridge, mix = world
    beta = ridge.weights(y)
    found = []
    for seed in range(1000, 1000 + runs):
        rng = np.random.default_rng(seed)
        rows = noisy_rows(speed, y, b, rng)
        answer = mix @ beta + rng.laplace(0, scale, 5)
        weights = estimate_weights(rows, ridge, b, mix, answer, scale)
        f = np.clip(RBF(5)({"speed": speed}) @ weights.beta, 0, 1)
        away = np.abs(y - f)
        asked = np.where(away <= radius, away**2, 2 * radius * away - radius**2).sum()
        asked = asked + rng.laplace(0, spread_scale) if radius else 0.0
        loss = estimate_loss(rows, ridge, weights, b, radius, asked, spread_scale)
        found.append((weights.beta, weights.covariance, loss))
    return beta, ridge.loss(y), found


def test_weights_are_unbiased_and_as_precise_as_they_say(world):
    beta, _, found = estimate_many(world, b=0.2, scale=0.5, radius=0.0, spread_scale=0, runs=150)
    errors = np.array([one[0] - beta for one in found])
    deviation = errors.std(0)
    assert (np.abs(errors.mean(0)) < 5 * deviation / np.sqrt(len(found))).all()
    said = np.sqrt(np.mean([np.diag(one[1]) for one in found], axis=0))
    assert (0.75 * said < deviation).all()
    assert (deviation < 1.33 * said).all()


def test_joining_beats_either_source(world):
    _, _, ridge, mix = world
    b, scale = 0.2, 10.0
    free = np.sqrt(
        2 * b * b * np.trace(ridge.whitening.W @ ridge.whitening.G @ ridge.whitening.W.T)
    )
    inverse = np.linalg.inv(mix)
    asked = np.sqrt(2 * scale**2 * np.trace(inverse @ inverse.T))
    beta, _, found = estimate_many(world, b=b, scale=scale, radius=0.0, spread_scale=0, runs=60)
    joined = np.sqrt(np.mean([np.sum((one[0] - beta) ** 2) for one in found]))
    assert joined < min(free, asked)


@pytest.mark.parametrize(("radius", "spread_scale"), [(0.0, 0.0), (0.25, 0.4), (1.0, 1.0)])
def test_the_loss_is_right_on_average(world, radius, spread_scale):
    _, loss, found = estimate_many(
        world, b=0.15, scale=0.5, radius=radius, spread_scale=spread_scale, runs=150
    )
    losses = np.array([one[2] for one in found])
    assert abs(losses.mean() / loss - 1) < 0.03


def test_the_posterior_loss_follows_a_precise_answer_and_is_never_zero():
    assert posterior_loss(9.0, 1e-8, 0.0, 1000) == pytest.approx(3.0, rel=1e-4)
    assert posterior_loss(9.0, 1e-8, 1e-3, 1000) == pytest.approx(3.0, rel=1e-3)
    assert 0 < posterior_loss(-50.0, 4.0, 3.0, 1000) < 3
    assert posterior_loss(1e6, 4.0, 3.0, 1000) <= np.sqrt(1000)


def test_the_spread_model_sees_outliers_where_there_are_some(world):
    speed, y, ridge, _ = world
    rng = np.random.default_rng(0)
    odd = y.copy()
    far = rng.random(len(y)) < 0.1
    odd[far] = rng.uniform(0, 1, far.sum())
    b = 0.03
    shares = []
    for values in (y, odd):
        rows = noisy_rows(speed, values, b, rng)
        shares.append(estimate_spread(rows, ridge.weights(values), ridge.loss(values), b).outliers)
    assert shares[0] <= 0.01
    assert shares[1] >= 0.04


def test_plans_add_up_and_follow_the_noise(world):
    _, _, ridge, mix = world
    plans = [
        plan_split(public_setting(ridge, mix, alpha=alpha, epsilon=1.0, nominal=0.1))
        for alpha in (0.02, 0.1, 0.3, 1.0)
    ]
    for plan in plans:
        assert plan.records + plan.weights + plan.spread == 1
        assert min(plan.records, plan.weights) > 0
        assert 0 <= plan.radius <= 1
    assert plans[0].spread == 0  # little noise: the records say enough
    assert plans[2].spread > plans[1].spread
    assert plans[0].records > plans[2].records


def test_denoising_keeps_what_linear_shrinkage_does_and_more():
    for b in (0.02, 0.1, 0.5):
        linear = 0.1 / np.sqrt(0.01 + 2 * b * b)
        assert linear * (1 - 1e-6) <= residual_correlation(0.1, b) <= 1
    assert residual_correlation(0.1, 2.0) > 1.35 * 0.1 / np.sqrt(0.01 + 8)


def test_the_mix_beats_asking_for_the_weights_themselves(world):
    _, _, ridge, mix = world

    def error(A):
        inverse = np.linalg.inv(A)
        return ridge.sensitivity(A, 1.0) * np.sqrt(np.trace(inverse @ inverse.T))

    assert error(mix) < 0.7 * error(np.eye(5))
