"""Readings are unbiased and the posterior mean is one: checked by quadrature."""

import itertools

import numpy as np
import pytest
from scipy import integrate, stats

from gridveil.wind.methods.tuned_estimate import (
    log_likelihood,
    matched,
    normal_posterior,
    tail_reading,
    unbias,
)

LEVELS = (0.0, 0.02, 0.3, 0.77, 1.0)
SCALES = (0.03, 0.2, 1.5)


def expectation(function, y, b):
    """E[function(y + Lap(b))], kinks at the box's ends and at y."""
    edges = sorted({y - 60 * b, 0.0, y, 1.0, y + 60 * b, *np.linspace(0, 1, 41)})
    total = 0.0
    for low, high in itertools.pairwise(edges):
        total += integrate.quad(
            lambda x: float(function(np.array([x]))[0]) * np.exp(-abs(x - y) / b) / (2 * b),
            low,
            high,
            limit=100,
        )[0]
    return total


@pytest.mark.parametrize("b", SCALES)
@pytest.mark.parametrize("y", LEVELS)
def test_readings_and_their_variances_are_unbiased(y, b):
    mean = expectation(lambda x: unbias(x, b)[0], y, b)
    assert mean == pytest.approx(y, abs=1e-6)
    variance = expectation(lambda x: (unbias(x, b)[0] - y) ** 2, y, b)
    assert expectation(lambda x: unbias(x, b)[1], y, b) == pytest.approx(variance, rel=1e-5)
    assert variance <= 2 * b * b * (1 + 1e-9)  # never worse than the noisy record itself


@pytest.mark.parametrize("radius", [0.0, 0.25])
@pytest.mark.parametrize("f", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("y", LEVELS)
def test_tail_readings_are_unbiased(y, f, radius):
    b = 0.2
    wanted = max(abs(y - f) - radius, 0.0) ** 2
    read = expectation(lambda x: tail_reading(x, np.array([f]), b, radius)[0], y, b)
    assert read == pytest.approx(wanted, abs=2e-5)
    spread = expectation(
        lambda x: (tail_reading(x, np.array([f]), b, radius)[0] - wanted) ** 2, y, b
    )
    variance = expectation(lambda x: tail_reading(x, np.array([f]), b, radius)[1], y, b)
    assert variance == pytest.approx(spread, rel=2e-2, abs=1e-5)


@pytest.mark.parametrize("r0", [-0.6, 0.0, 0.1, 2.0])
def test_the_normal_posterior_is_one(r0):
    s, b = 0.1, 0.3

    def joint(r):
        return stats.norm.pdf(r, 0, s) * np.exp(-abs(r0 - r) / b) / (2 * b)

    points = [0.0, r0] if abs(r0) < 1 else [0.0]
    density = integrate.quad(joint, -1, 1, points=points)[0]
    mean = integrate.quad(lambda r: r * joint(r), -1, 1, points=points)[0] / density
    found, height = normal_posterior(np.array([r0]), s, b)
    assert found[0] == pytest.approx(mean, abs=1e-7)
    assert height[0] == pytest.approx(density, rel=1e-6)


@pytest.mark.parametrize("y0", [-0.5, 0.0, 0.31, 0.9, 1.0, 3.0])
@pytest.mark.parametrize("f", [0.0, 0.5, 0.97])
@pytest.mark.parametrize(
    ("s", "b", "outliers"), [(0.1, 0.15, 0.02), (0.02, 0.5, 0.1), (0.3, 0.05, 0.001)]
)
def test_the_likelihood_is_one(y0, f, s, b, outliers):
    c = min(max(y0, 0.0), 1.0)
    kinks = sorted({0.0, c, f, *np.linspace(0, 1, 51), 1.0})

    def joint(y):
        density = (1 - outliers) * stats.norm.pdf(y, f, s) + outliers
        return density * np.exp(-abs(y - c) / b)

    mass = sum(integrate.quad(joint, low, high)[0] for low, high in itertools.pairwise(kinks))
    mass += (1 - outliers) * stats.norm.cdf(-f / s) * np.exp(-c / b)
    mass += (1 - outliers) * stats.norm.cdf((f - 1) / s) * np.exp(-(1 - c) / b)
    found = log_likelihood(np.array([y0]), np.array([f]), np.array([s]), b, outliers)
    assert found[0] == pytest.approx(np.log(mass), abs=1e-5)


@pytest.mark.parametrize("f", [0.02, 0.5, 0.9])
@pytest.mark.parametrize("b", [0.03, 0.3])
def test_matched_records_are_distributed_as_the_real_ones(f, b):
    # Two samples of 20,000: a right map passes with probability over 1 - 1e-6.
    rng = np.random.default_rng(8)
    s, outliers, size = 0.1, 0.05, 20_000
    real = np.clip(rng.normal(f, s, size), 0, 1)
    far = rng.random(size) < outliers
    real[far] = rng.random(far.sum())
    y0 = real + rng.laplace(0, b, size)
    found = matched(y0, np.full(size, f), np.full(size, s), b, outliers)
    assert stats.ks_2samp(np.round(found, 6), np.round(real, 6)).pvalue > 1e-6
    if b > s:
        # The controls, which need some noise to differ: clipped noisy records, and a spread that
        # is 20% off.
        assert stats.ks_2samp(np.clip(y0, 0, 1), real).pvalue < 1e-6
        wrong = matched(y0, np.full(size, f), np.full(size, 1.2 * s), b, outliers)
        assert stats.ks_2samp(np.round(wrong, 6), np.round(real, 6)).pvalue < 1e-6


def test_matched_records_keep_the_order_of_the_noisy_ones():
    y0 = np.linspace(-2, 3, 500)
    found = matched(y0, np.full(500, 0.4), np.full(500, 0.1), 0.2, 0.01)
    assert (np.diff(found) >= -1e-9).all()
    assert found[0] < 0.15 < 0.7 < found[-1]


def test_far_out_values_break_nothing():
    y0 = np.array([-1e6, 1e6, 0.5])
    found = matched(y0, np.array([1.0, 0.0, 0.5]), np.full(3, 1e-3), 1e-4, 0.001)
    assert np.isfinite(found).all()
    assert ((found >= 0) & (found <= 1)).all()
