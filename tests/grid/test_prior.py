"""Estimates from noisy values: where they help, that they never hurt much, and their edges."""

import os
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.sizes import FULL

from gridveil.grid.restoration import learned_prior
from gridveil.grid.restoration.learned_prior import Blocks, estimate

RATINGS = np.array([105.0, 240.0, 300.0, 360.0])
SEEDS = range(20) if FULL else range(3)


def drawn(make, count, scale, seed, *, low=1.0, high=10_000.0, **how):
    """True values, noisy ones and the estimate."""
    rng = np.random.default_rng(seed)
    true = make(rng, count)
    noisy = true + rng.laplace(0, scale, count)
    return true, noisy, estimate(noisy, scale, low, high, **how)


def error(make, count, scale, **how):
    """Mean errors over some seeds: of clipped noise, and of the estimate."""
    raw, better = [], []
    for seed in SEEDS:
        true, noisy, found = drawn(make, count, scale, seed, **how)
        raw.append(np.abs(np.clip(noisy, 1.0, 10_000.0) - true).mean())
        better.append(np.abs(found.mean - true).mean())
    return np.mean(raw), np.mean(better)


def few(rng, count):
    return rng.choice(RATINGS, count)


SPREAD = {
    "near": lambda rng, count: rng.uniform(50, 500, count),
    "far": lambda rng, count: rng.uniform(1, 9_999, count),
    "skewed": lambda rng, count: np.exp(rng.normal(5, 1, count)),
}


@pytest.mark.parametrize(("scale", "share"), [(5.0, 0.5), (15.0, 0.8), (30.0, 0.95)])
def test_few_values_in_common_are_found(scale, share):
    raw, better = error(few, 120, scale)
    assert better < share * raw


@pytest.mark.parametrize("scale", [0.3, 5.0, 30.0, 300.0])
@pytest.mark.parametrize("kind", sorted(SPREAD))
def test_values_with_nothing_in_common_lose_little(kind, scale):
    raw, better = error(SPREAD[kind], 120, scale)
    assert better < 1.12 * raw


def test_a_coarse_grid_would_lose_much(monkeypatch):
    # Control: with few points, also where there are no values, the test above fails.
    monkeypatch.setattr(learned_prior, "_APART", np.inf)
    monkeypatch.setattr(learned_prior, "_MOST_POINTS", 2_000)
    raw, better = error(SPREAD["far"], 120, 0.3)
    assert better > 1.5 * raw


def test_a_catalogue_is_all_there_is():
    for scale in (5.0, 15.0):
        true, noisy, found = drawn(few, 120, scale, 0, catalogue=[*RATINGS, 5000.0])
        assert np.abs(found.mean - true).mean() < 0.6 * np.abs(noisy - true).mean()
        assert ((found.mean >= 105) & (found.mean <= 5000)).all()
    # With little noise every entry is the rating that it has.
    true, _, found = drawn(few, 120, 2.0, 0, catalogue=RATINGS)
    assert np.abs(found.mean - true).max() < 1e-3
    # And with one rating there is no doubt.
    assert (drawn(few, 10, 30.0, 0, catalogue=[240.0])[2].mean == 240).all()


def test_how_common_a_rating_is_is_learned():
    noisy = np.r_[np.full(99, 100.0), 151.0]
    found = estimate(noisy, 30.0, 0.0, 1e4, catalogue=[100.0, 200.0])
    # Nearer to 200, but nothing else is near it.
    assert found.mean[-1] < 125


@given(
    st.lists(st.floats(-1e5, 1e5), min_size=1, max_size=10),
    st.floats(1e-3, 1e5),
    st.floats(-1e4, 1e4),
    st.floats(0, 1e4),
)
def test_estimates_are_in_the_box(noisy, scale, low, width):
    found = estimate(np.array(noisy), scale, low, low + width)
    assert ((found.mean >= low) & (found.mean <= low + width)).all()
    assert np.isfinite(found.variance).all()
    assert (found.variance >= 2 * scale**2 / 100).all()


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_degenerate_values(scale):
    # All equal.
    assert estimate(np.full(5, 120.0), scale, 0.0, 1e4).mean == pytest.approx(120, rel=1e-12)
    # Nothing to choose.
    assert (estimate(np.arange(5.0), scale, 7.0, 7.0).mean == 7).all()
    # One entry.
    assert estimate(np.array([33.0]), scale, 0.0, 1e4).mean == pytest.approx(33)
    # Far outside the box.
    assert (estimate(np.full(5, 1e9), scale, 0.0, 1e4).mean == 1e4).all()
    # The variance is that of the noise, or of the values.
    spread = estimate(np.array([10.0, 20.0, 5000.0]), scale, 0.0, 1e4).variance
    assert (spread <= np.maximum(1e8, 10 * scale**2)).all()


def test_noise_that_drowns_everything_leaves_what_is_in_common():
    rng = np.random.default_rng(0)
    true = rng.choice(RATINGS, 500)
    noisy = true + rng.laplace(0, 1e4, 500)
    found = estimate(noisy, 1e4, 1.0, 1e4)
    # Clipped noise is off by thousands; the estimates are near one another, and nearer.
    assert np.ptp(found.mean) < 0.5 * np.ptp(np.clip(noisy, 1, 1e4))


@pytest.mark.parametrize("scale", [0.5, 30.0])
def test_running_sums_are_those_of_the_matrix(scale):
    rng = np.random.default_rng(0)
    values = np.r_[rng.uniform(0, 100, 40), rng.uniform(150, 180, 10)]
    even = learned_prior._Even(values, scale)
    dense = np.exp(-np.abs(values[:, None] - even.points) / scale)
    near = {"rel": 1e-5, "abs": 1e-6}
    for _ in range(3):
        weights = rng.random(len(even.points))
        assert even.times(weights) == pytest.approx(dense @ weights, **near)
        weights = rng.random(len(values))
        assert even.under(weights) == pytest.approx(weights @ dense, **near)


def test_thousands_of_entries_fit_in_memory():
    tracemalloc.start()
    try:
        true, noisy, found = drawn(few, 5_000, 5.0, 0)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 50e6
    assert np.abs(found.mean - true).mean() < 0.3 * np.abs(noisy - true).mean()


@pytest.mark.parametrize("shape", [(1, 1), (3, 5000), (7, 40), (1000, 60), (2049, 300)])
def test_blocks_multiply_like_the_matrix(shape):
    rng = np.random.default_rng(0)
    matrix, right, left = rng.random(shape), rng.random(shape[1]), rng.random(shape[0])
    blocks = Blocks(matrix)
    np.testing.assert_allclose(blocks.times(right), matrix @ right, rtol=1e-12)
    np.testing.assert_allclose(blocks.under(left), left @ matrix, rtol=1e-12)
    if shape[1] < 100:
        np.testing.assert_allclose(blocks.weighed(left), matrix.T * left @ matrix, rtol=1e-12)


_HASH = """
import hashlib
import numpy as np
from gridveil.grid.restoration.covariate_prior import _density, _robust
rng = np.random.default_rng(0)
basis = rng.random((6000, 40))
found = [_density(rng.random((6000, 60))), _robust(basis, rng.random(6000), rng.random(6000))]
print(hashlib.sha256(np.concatenate(found).tobytes()).hexdigest())
"""


def test_what_is_learned_does_not_depend_on_threads():
    found = {
        subprocess.run(
            [sys.executable, "-c", _HASH],
            env=os.environ | {"OPENBLAS_NUM_THREADS": threads, "OMP_NUM_THREADS": threads},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for threads in ("1", "2")
    }
    assert len(found) == 1
