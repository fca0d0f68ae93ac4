"""Prices against finite differences of the cost, on random networks."""

import dataclasses

import numpy as np
import pytest
from grid.reference import random_network, with_generators
from hypothesis import given, settings
from hypothesis import strategies as st

from gridveil.grid.model.population import Population
from gridveil.grid.opf.engine import solve_population

KEEP = ("line_price", "nodal_price", "limit_price")
STEP = 1e-3
MODELS = {
    "strict": {},
    "relaxed": {"model": "relaxed", "slack_price": 60.0},
    "shed": {"model": "shed", "slack_price": 60.0},
    "limits": {"model": "limits", "slack_price": 40.0},
}


def draw(seed, curved, pieces):
    return random_network(seed, tight=0.9, curved=curved, pieces=pieces)


def slope(cost, curved):
    """The derivative from three costs a step apart, or None where there is none."""
    low, middle, high = cost
    if not np.isfinite(cost).all():
        return None
    left, right = (middle - low) / STEP, (high - middle) / STEP
    # Linear pieces: both sides are the same to rounding, or there is a kink.
    bend = 5e-3 if curved else 1e-6
    return (left + right) / 2 if abs(left - right) <= bend * max(1.0, abs(right)) else None


def compare(found, expected):
    return abs(found - expected) <= 1e-6 * max(1.0, abs(expected))


def moved(values, k):
    for step in (-STEP, STEP):
        other = values.copy()
        other[k] += step
        yield other


def checked(network, how, curved):
    """Compare every price with its finite difference; how many derivatives there were."""
    base = solve_population(network, keep=KEEP, **how)
    if not np.isfinite(base.cost[0]):
        return 0
    units = network.generators

    def with_limit(name, values):
        return with_generators(network, **{name: values})

    cases = {
        "line_price": (network.branches.capacity, network.with_capacity, -1),
        "nodal_price": (network.buses.load, network.with_load, 1),
        "p_max_price": (units.p_max, lambda v: with_limit("p_max", v), -1),
        "p_min_price": (units.p_min, lambda v: with_limit("p_min", v), 1),
    }
    count = 0
    for name, (values, make, sign) in cases.items():
        prices = getattr(base, name)[0]
        for k in range(len(values)):
            low, high = (solve_population(make(v), **how).cost[0] for v in moved(values, k))
            expected = slope(np.array([low, base.cost[0], high]), curved)
            if expected is not None:
                assert compare(prices[k], sign * expected), (name, k, prices[k], sign * expected)
                count += abs(expected) > 1e-9
    return count


@settings(max_examples=10)
@given(st.integers(0, 10_000), st.sampled_from(sorted(MODELS)), st.booleans())
def test_prices_are_derivatives(seed, model, pieces):
    checked(draw(seed, False, pieces), MODELS[model], False)


@pytest.mark.parametrize("pieces", [False, True])
def test_prices_of_limits_that_cross_are_derivatives(pieces):
    # Noisy limits often do, and their prices are what mends them.
    found = 0
    for seed in range(4):
        network = draw(seed, False, pieces)
        units = network.generators
        some = np.arange(len(units)) % 2 == 0
        low = np.where(some, units.p_max + 1.5, units.p_min)
        high = np.where(some, units.p_min - 1.5, units.p_max)
        crossed = with_generators(network, p_min=low, p_max=high)
        assert (low > high).any()
        found += checked(crossed, MODELS["limits"], False)
    assert found > 10


@settings(max_examples=4)
@given(st.integers(0, 10_000), st.sampled_from(["strict", "relaxed"]))
def test_prices_of_quadratic_costs_are_derivatives(seed, model):
    checked(draw(seed, True, False), MODELS[model], True)


@pytest.mark.parametrize("model", sorted(MODELS))
def test_derivatives_other_than_zero_are_among_them(model):
    # Control: the tests above compare something.
    assert sum(checked(draw(seed, False, False), MODELS[model], False) for seed in (3, 4)) > 10


def test_a_wrong_price_is_found():
    # Control: the comparison fails for a price that is off by 1e-5.
    assert not compare(1.00001, 1.0)
    assert slope(np.array([0.0, 0.0, STEP]), False) is None


def test_capacity_multipliers_scale_the_derivative_and_not_the_price():
    network = random_network(4, tight=1.0)
    half = Population(1, capacity=np.full((1, len(network.branches)), 0.9))
    found = solve_population(network, half, keep=KEEP, **MODELS["relaxed"])
    binding = int(found.line_price[0].argmax())
    assert found.line_price[0, binding] > 1
    low, high = (
        solve_population(network, half, capacity=f, **MODELS["relaxed"]).cost[0]
        for f in moved(network.branches.capacity, binding)
    )
    assert (high - low) / (2 * STEP) == pytest.approx(-0.9 * found.line_price[0, binding], rel=1e-6)


def test_the_price_of_an_angle_limit_is_not_the_capacitys():
    network = random_network(4, tight=5.0)
    tiny = np.full(len(network.branches), 0.5)
    bound = dataclasses.replace(
        network,
        branches=dataclasses.replace(network.branches, angle_max=tiny, angle_min=-tiny),
    )
    found = solve_population(bound, keep=KEEP, model="relaxed", slack_price=60.0)
    free = solve_population(network, model="relaxed", slack_price=60.0)
    assert found.cost[0] > free.cost[0] + 1
    assert (found.line_price == 0).all()
