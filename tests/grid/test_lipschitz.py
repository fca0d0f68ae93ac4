"""The hunt for a cost that moves further than its constant; and the paper's assumption, caught."""

from fractions import Fraction

import numpy as np
import pytest
from grid.drawing import SINGLE, TOGETHER, difference, draw, off
from hypothesis import given, settings
from hypothesis import strategies as st
from support.sizes import FULL

from gridveil.errors import InputError
from gridveil.grid.cases import rts96
from gridveil.grid.model.parameters import PARAMETERS
from gridveil.grid.model.population import Population
from gridveil.grid.model.public_network import split_parts
from gridveil.grid.model.release_problem import ReleaseProblem, highest_cost
from gridveil.grid.model.sampling import sample_population
from gridveil.grid.opf.engine import solve_population

ALL = SINGLE + TOGETHER
ALPHAS = (0.1, 1.0, 5.0, 30.0, 200.0)
STEPS = 3
# 11 sets of parameters, 3 steps each: over 10,000 tries in the full setting.
EXAMPLES = 310 if FULL else 10
SEEDS = st.integers(0, 2**32 - 1)


def moves(seed, parameters):
    """Steps to neighbours: how far each model's cost moved, what was allowed, and the case."""
    case = draw(seed, parameters)
    alpha = float(case.rng.choice(ALPHAS))
    here = case.solve(case.values, keep=("room_price",))
    for _ in range(STEPS):
        values, entry = case.neighbour(alpha)
        there = case.solve(values, keep=("room_price",))
        # Whether a model has a cost depends on public data alone.
        assert (np.isfinite(here.cost) == np.isfinite(there.cost)).all()
        some = np.isfinite(here.cost)
        moved = difference(there, here)[some]
        slack = (off(here) + off(there))[some]
        # A certificate that says nothing would hide a violation.
        assert (slack <= 1e-3 * (1 + np.abs(here.cost[some]))).all()
        steepness = float(case.problem.steepness(case.kind_of(entry)))
        yield moved, slack, steepness * alpha, case


@pytest.mark.parametrize("parameters", ALL)
@settings(max_examples=EXAMPLES)
@given(SEEDS)
def test_no_cost_moves_further_than_its_constant_nor_apart_where_monotone(parameters, seed):
    for moved, slack, constant, case in moves(seed, parameters):
        assert (np.abs(moved) <= constant + slack).all()
        assert not (case.problem.monotone and apart(moved, slack))


def apart(moved, slack):
    """Whether some costs rise and others fall."""
    return (moved > slack).any() and (moved < -slack).any()


@pytest.mark.parametrize(
    ("parameters", "share"),
    # For costs the constant is that of the largest unit, which seldom is the one that moves.
    [("capacity", 0.95), ("load", 0.95), ("generator_limit", 0.95), ("cost", 0.6)],
)
def test_the_hunt_comes_close_to_the_constants(parameters, share):
    # Control: a constant that is a little smaller is caught.
    shares = [
        np.max((np.abs(moved) - slack) / constant, initial=0.0)
        for seed in range(15)
        for moved, slack, constant, _ in moves(seed, parameters)
    ]
    assert share < max(shares) <= 1


@pytest.mark.parametrize("parameters", ["load", "cost"])
def test_costs_that_move_apart_are_found(parameters):
    # Control: the hunt for them ends with a catch where they are not monotone.
    assert any(
        apart(moved, slack) for seed in range(60) for moved, slack, _, _ in moves(seed, parameters)
    )


def test_costs_are_monotone_just_where_no_unit_both_produces_and_consumes():
    network = rts96()
    public = split_parts(network.linearised(), "cost", {"cost": (0, 200)})[1]
    assert ReleaseProblem(public, Population(3), Fraction(1)).monotone
    p_min = network.generators.p_min.copy()
    p_min[3] = -5.0
    sink = network.with_limits(p_min, network.generators.p_max)
    public = split_parts(sink.linearised(), "cost", {"cost": (0, 200)})[1]
    assert not ReleaseProblem(public, Population(3), Fraction(1)).monotone


def strict_moves(seed):
    """The paper's Assumption 2: strict costs against the highest cost of a unit."""
    case = draw(seed, "capacity")
    values = np.abs(case.values) + 20.0
    alpha = float(case.rng.choice(ALPHAS[:3]))
    highest = highest_cost(case.problem.public, case.problem.models)
    here = case.solve(values, model="strict")
    for entry in range(len(values)):
        there = values.copy()
        there[entry] += alpha
        found = case.solve(there, model="strict")
        moved = np.abs(difference(found, here))
        # Where a model is not served by one of the two, its cost moves without end: not counted.
        yield np.max(moved[np.isfinite(moved)], initial=0.0) / (highest * alpha)


def test_the_papers_assumption_fails_the_same_hunt():
    assert max(share for seed in (5, 14, 17) for share in strict_moves(seed)) > 2


def test_the_papers_assumption_fails_on_its_own_test_system():
    network = rts96(variant="paper")
    models = sample_population(network, 200, costs=(80, 100), seed=0)
    highest = models.cost.max()
    # Loads: a MW more costs more than any unit, in many models.
    load = solve_population(network, models, keep=("nodal_price",))
    assert (load.nodal_price.max(1) > 1.01 * highest).mean() > 0.2
    # Capacities: with 5% less of each, every model is still served, and some lines are worth much.
    capacity = 0.95 * network.branches.capacity
    strict = solve_population(network, models, capacity=capacity, keep=("line_price",))
    assert np.isfinite(strict.cost).all()
    model, line = np.unravel_index(strict.line_price.argmax(), strict.line_price.shape)
    assert strict.line_price[model, line] > 3 * highest
    # And not in the limit alone: that line with a MW more moves the cost by more than assumed.
    more = capacity + (np.arange(len(capacity)) == line)
    found = solve_population(network, models, capacity=more)
    assert strict.cost[model] - found.cost[model] > 1.5 * highest
    # The Lipschitz cost at that price values no line higher.
    soft = solve_population(
        network,
        models,
        capacity=capacity,
        model="relaxed",
        slack_price=float(highest),
        keep=("line_price",),
    )
    assert soft.line_price.max() <= highest * (1 + 1e-9)


SMALL = 1e-3


def derivative(case, entry, costs):
    """Central differences of the models' costs, nan where the two sides differ."""
    found = []
    for step in (-SMALL, SMALL):
        values = case.values.copy()
        values[entry] += step
        found.append((case.solve(values).cost - costs) / step)
    left, right = found
    scale = 1e-2 * np.maximum(1.0, np.abs(left))
    return np.where(np.abs(left - right) <= scale, (left + right) / 2, np.nan)


@pytest.mark.parametrize("parameters", ALL)
@settings(max_examples=30 if FULL else 2)
@given(SEEDS)
def test_slopes_are_derivatives(parameters, seed):
    assert compared(seed, parameters) >= 0


def compared(seed, parameters):
    """Compare slopes with differences; how many were there that are not zero."""
    case = draw(seed, parameters)
    found = case.solve(case.values, keep=case.problem.keep)
    if not np.isfinite(found.cost).all():
        return 0
    slope = case.problem.slope(found, case.problem.models)
    assert slope.shape == (4, len(case.values))
    count = 0
    for entry in case.rng.choice(len(case.values), 5):
        expected = derivative(case, entry, found.cost)
        some = np.isfinite(expected)
        near = 2e-2 * np.maximum(1.0, np.abs(expected[some]))
        assert (np.abs(slope[some, entry] - expected[some]) <= near).all()
        count += int((np.abs(expected[some]) > 1e-3).sum())
    return count


@pytest.mark.parametrize("parameters", SINGLE)
def test_slopes_other_than_zero_are_among_them(parameters):
    # Control: the test above compares something.
    assert sum(compared(seed, parameters) for seed in range(6)) >= 10


@pytest.mark.parametrize("parameters", [*SINGLE, *TOGETHER[:4]])
@settings(max_examples=200 if FULL else 4)
@given(SEEDS)
def test_planes_are_on_one_side_of_the_costs(parameters, seed):
    """Below them where costs are convex in the private vector, above where they are concave."""
    case = draw(seed, parameters)
    here = case.solve(case.values, keep=("room_price", *case.problem.keep))
    step = case.rng.normal(0, 20, len(case.values))
    there = case.solve(case.values + step, keep=("room_price",))
    some = np.isfinite(here.cost) & np.isfinite(there.cost)
    slope = case.problem.slope(here, case.problem.models)[some]
    above = difference(there, here)[some] - slope @ step
    slack = (off(here) + off(there))[some] + 1e-6 * (1 + np.abs(slope) @ np.abs(step))
    assert case.problem.curvature in (1, -1)
    assert (case.problem.curvature * above >= -slack).all()


def test_constants_take_the_largest_multiplier():
    network = rts96()
    lines = len(network.branches)
    public = split_parts(network, "capacity", {"capacity": (1, 5000)})[1]
    winter = Population(2, capacity=np.vstack([np.ones(lines), np.full(lines, 1.25)]))
    problem = ReleaseProblem(public, winter, Fraction(100))
    assert problem.steepness(PARAMETERS["capacity"]) == 125
    assert (
        ReleaseProblem(public, Population(2), Fraction(100)).steepness(PARAMETERS["capacity"])
        == 100
    )


def test_the_constant_of_costs_is_the_largest_output():
    network = rts96().linearised()
    public = split_parts(network, "cost", {"cost": (0, 200)})[1]
    units = network.generators
    double = Population(2, p_max=np.vstack([np.ones(len(units)), np.full(len(units), 2.0)]))
    found = ReleaseProblem(public, double, Fraction(100)).steepness(PARAMETERS["cost"])
    mask = units.in_service & (units.linear != 0)
    assert float(found) == pytest.approx(2 * units.p_max[mask].max(), rel=1e-12)
    assert found >= Fraction(2 * units.p_max[mask].max())


def test_no_cost_is_asked_for_where_no_bound_is_known():
    network = rts96().linearised()
    ranges = {"cost": (0, 200), "generator_limit": (-500, 500)}
    public = split_parts(network, "cost,generator_limit", ranges)[1]
    with pytest.raises(InputError, match="no bound"):
        ReleaseProblem(public, Population(3), Fraction(100)).check_cost_query()
