"""The grid's sensitivity rule and OpenDP's privacy map, each with a control that must fail."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gridveil.errors import InputError
from gridveil.privacy.noise import laplace_epsilon, noisy_max_epsilon
from gridveil.privacy.sealed import Range
from gridveil.privacy.sensitivity import (
    Sensitivity,
    calibrate_laplace,
    calibrate_noisy_max,
    power_of_two_below,
)

LIMITS = Range(-1e4, 1e4)

alphas = st.fractions(min_value=Fraction(1, 1000), max_value=1000, max_denominator=10**6)
epsilons = st.fractions(min_value=Fraction(1, 1000), max_value=20, max_denominator=10**6)
grids = st.integers(-24, 4).map(lambda exponent: Fraction(2) ** exponent)


@given(alphas, epsilons, st.none() | grids, st.integers(1, 50))
def test_laplace_map_stays_within_the_charge(alpha, epsilon, grid, moving):
    made = calibrate_laplace(Sensitivity(alpha, "test", moving), epsilon, LIMITS, grid)
    assert laplace_epsilon(made.scale, made.steps) <= epsilon
    assert made.mapped == laplace_epsilon(made.scale, made.steps)
    # The control: a scale 10% smaller breaks the promise.
    assert laplace_epsilon(0.9 * made.scale, made.steps) > epsilon


@given(alphas, epsilons, st.none() | grids, st.booleans(), st.sampled_from([0, 1, 10**-3]))
def test_noisy_max_map_stays_within_the_charge(alpha, epsilon, grid, monotone, tolerance):
    sensitivity = Sensitivity(alpha, "test", tolerance=Fraction(tolerance))
    made = calibrate_noisy_max(sensitivity, epsilon, LIMITS, monotone=monotone, grid=grid)
    assert noisy_max_epsilon(made.scale, made.steps, monotone=monotone) <= epsilon
    assert noisy_max_epsilon(0.9 * made.scale, made.steps, monotone=monotone) > epsilon


def test_scores_of_any_kind_cost_twice_what_monotone_ones_do():
    sensitivity = Sensitivity(Fraction(1), "test")
    any_kind = calibrate_noisy_max(sensitivity, Fraction(1), LIMITS, monotone=False)
    monotone = calibrate_noisy_max(sensitivity, Fraction(1), LIMITS, monotone=True)
    assert any_kind.scale == pytest.approx(2 * monotone.scale)


@given(alphas, st.integers(1, 40), st.fractions(0, 1, max_denominator=1000))
def test_a_default_grid_costs_under_a_thousandth(alpha, moving, tolerance):
    sensitivity = Sensitivity(alpha, "test", moving, tolerance)
    made = calibrate_laplace(sensitivity, Fraction(1), Range(-1, 1))
    ideal = float(sensitivity.bound)
    assert ideal <= made.scale_in_units <= 1.0011 * ideal


def _worst_pair(rng: np.random.Generator, distance: float, grid: float, moving: int):
    """Two answers ``distance`` apart in L1 that rounding drives as far apart as it can."""
    share = rng.dirichlet(np.ones(moving)) * distance
    start = rng.integers(-50, 50, moving) + 0.5  # on the edge between two steps
    low = start * grid - rng.uniform(0, 1e-3, moving) * share
    return low, low + share


def _search(rule, tries: int) -> int:
    """How many violations of a sensitivity rule a search on the grid finds."""
    rng = np.random.default_rng(20)
    found = 0
    for _ in range(tries):
        grid = 2.0 ** rng.integers(-6, 3)
        moving = int(rng.integers(1, 12))
        distance = float(rng.uniform(0.01, 20) * grid)
        low, high = _worst_pair(rng, distance, grid, moving)
        exact_distance = sum(
            (abs(Fraction(a) - Fraction(b)) for a, b in zip(high, low, strict=True)), Fraction(0)
        )
        moved = int(np.abs(np.rint(high / grid) - np.rint(low / grid)).sum())
        found += moved > rule(exact_distance, Fraction(grid), moving)
    return found


def test_the_grid_rule_survives_a_search_and_the_rule_without_k_does_not():
    def ours(distance, grid, moving):
        return Sensitivity(distance, "test", moving).steps(grid)

    assert _search(ours, 3000) == 0
    assert _search(lambda d, g, k: ours(d, g, k) - k, 3000) > 100
    assert _search(lambda d, g, k: ours(d, g, k) - k + 1, 3000) > 100  # k counted once


@settings(max_examples=300)
@given(
    value=st.floats(0.01, 5),
    tolerance=st.floats(0, 0.5),
    exponent=st.integers(-4, 2),
    seed=st.integers(0, 10**6),
)
def test_monotone_scores_with_numerical_error_stay_within_their_steps(
    value, tolerance, exponent, seed
):
    # Choices of noisy max depend on differences of scores alone, so what must be bounded is
    # the spread of the moves; the rule for exact monotone scores is the control.
    rng = np.random.default_rng(seed)
    grid = 2.0**exponent
    scores = (rng.integers(-9, 9, 30) + rng.choice([0.5, 0.4999, 0.5001], 30)) * grid
    moved = scores + rng.choice([0.0, value], 30)
    error = tolerance * rng.choice([-1, 1], (2, 30))
    moves = np.rint((moved + error[0]) / grid) - np.rint((scores + error[1]) / grid)
    # A hair more than the sampled numbers, for the rounding of this test's own arithmetic.
    hair = Fraction(1, 10**9)
    sensitivity = Sensitivity(
        Fraction(value) + hair, "test", tolerance=Fraction(tolerance) + (hair if tolerance else 0)
    )
    assert moves.max() - min(moves.min(), 0) <= sensitivity.score_steps(
        Fraction(grid), monotone=True
    )


def test_the_rule_for_exact_monotone_scores_fails_under_numerical_error():
    # Two scores, one goes up by 1, neither should go down; errors of 1 push the other down by 2.
    exact = Sensitivity(Fraction(1), "test").score_steps(Fraction(1), monotone=True)
    with_error = Sensitivity(Fraction(1), "test", tolerance=Fraction(1)).score_steps(
        Fraction(1), monotone=True
    )
    spread = (1 + 2) - (-2)
    assert exact < spread <= with_error


@given(st.fractions(min_value=Fraction(1, 10**12), max_value=10**12))
def test_power_of_two_below(value):
    power = power_of_two_below(value)
    assert power <= value < 2 * power
    assert power.numerator == 1 or power.denominator == 1
    assert (power.numerator * power.denominator).bit_count() == 1


@pytest.mark.parametrize("grid", [Fraction(1, 3), Fraction(-1, 2), Fraction(3)])
def test_a_grid_is_a_power_of_two(grid):
    with pytest.raises(InputError, match="power of two"):
        calibrate_laplace(Sensitivity(Fraction(1), "test"), Fraction(1), LIMITS, grid)


def test_a_range_beyond_exact_steps_is_refused():
    with pytest.raises(InputError, match="more steps"):
        calibrate_laplace(Sensitivity(Fraction(1, 10**9), "x"), Fraction(1), Range(0, 1e9))


def test_an_epsilon_too_small_is_refused():
    with pytest.raises(InputError, match="epsilon is too small"):
        calibrate_laplace(Sensitivity(Fraction(1), "x"), Fraction(1, 10**14), LIMITS)
