"""Sensitivities of what a grid release asks, on the whole numbers that noise is added to."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from grid.drawing import SINGLE, TOGETHER, draw
from grid.reference import random_network
from hypothesis import given, settings
from hypothesis import strategies as st
from support.sizes import FULL

from gridveil.errors import InputError, ReleaseAborted
from gridveil.grid.cases import rts96
from gridveil.grid.methods.cost_query import CostQuery
from gridveil.grid.methods.entries_query import EntriesQuery
from gridveil.grid.model.declarations import Declared
from gridveil.grid.model.population import Population
from gridveil.grid.model.public_network import split_parts
from gridveil.grid.model.release_problem import ReleaseProblem
from gridveil.grid.model.sampling import sample_population
from gridveil.grid.opf.engine import Status, solve_population
from gridveil.grid.release import release
from gridveil.privacy.account import Account, Budget
from gridveil.privacy.ledger import Ledger
from gridveil.privacy.noise import laplace_epsilon, noisy_max_epsilon
from gridveil.privacy.sealed import Range, seal, seal_together

RANGES = {
    "capacity": (1.0, 300.0),
    "load": (-150.0, 400.0),
    "generator_limit": (-200.0, 500.0),
    "cost": (-50.0, 150.0),
    "reactive_load": (-90.0, 120.0),
}
ALPHAS = st.sampled_from([Fraction(1, 3), Fraction(7, 100), Fraction(5), Fraction(30)])
SETS = [*SINGLE, *TOGETHER, "generator_limit,cost", "capacity,load,generator_limit,cost"]
SETS += ["load,reactive_load"]


class Silent:
    """No noise: it remembers the whole numbers that a mechanism handed over, and the scale."""

    secure = False
    name = "none"

    def laplace(self, values, scale):
        self.steps, self.scale = values, scale
        return values

    def noisy_max(self, scores, scale):
        self.steps, self.scale = scores, scale
        return int(np.argmax(scores))


def asked(ask, public, values):
    """What `ask(account, sealed)` gives without noise, and what the noise would be added to."""
    noise = Silent()
    account = Account(Budget(1), noise, [], None, None)
    parts = [
        seal(values[part], name=name, unit="MW", range=public.ranges[name])
        for name, part in public.parts.items()
    ]
    return ask(account, seal_together(parts)), noise


def parts_of(parameters, seed=3):
    names = parameters.split(",")
    network = random_network(seed, buses=5, extra=1)
    reactive = np.array([3.0, -4.0, 0.0, 5.0, 6.0])
    network = replace(network, buses=replace(network.buses, reactive_load=reactive))
    ranges = {name: Range(*RANGES[name]) for name in names}
    return split_parts(network, names, ranges, declared=Declared(public_curves=True))[1], names


def draw_values(data, public):
    share = data.draw(
        st.lists(
            st.floats(0, 1) | st.sampled_from([0.0, 1.0]),
            min_size=public.entries,
            max_size=public.entries,
        )
    )
    return public.low + np.array(share) * (public.high - public.low)


def step(data, values, places, alpha, public):
    """Move one of these entries by up to alpha, inside its box; and by how much."""
    entry = data.draw(st.sampled_from(places))
    share = data.draw(st.sampled_from([-1.0, 1.0]) | st.floats(-1, 1))
    other = values.copy()
    other[entry] = np.clip(values[entry] + share * alpha, public.low[entry], public.high[entry])
    return other, entry, other[entry] - values[entry]


@pytest.mark.parametrize("parameters", SETS)
@settings(max_examples=1000 if FULL else 15)
@given(
    st.data(),
    ALPHAS,
    ALPHAS,
    st.sampled_from([0, Fraction(2, 5), Fraction(1, 3), 1 - Fraction(1, 10**20)]),
)
def test_no_two_neighbours_are_further_apart_than_the_sensitivity(
    parameters, data, alpha, other_alpha, share
):
    public, names = parts_of(parameters)
    alphas = {name: alpha if k == 0 else other_alpha for k, name in enumerate(names)}
    query = EntriesQuery(
        ReleaseProblem(public, Population(1), Fraction(1)),
        alphas,
        total_share=Fraction(share) if {"load", "cost"} & set(names) else Fraction(0),
    )
    values = draw_values(data, public)
    name = data.draw(st.sampled_from(names))
    places = list(range(public.entries))[public.parts[name]]
    other, _, _ = step(data, values, places, float(alphas[name]), public)
    check_apart(query, public, values, other)


@pytest.mark.parametrize("parameters", ["load", "capacity,load"])
@settings(max_examples=1000 if FULL else 30)
@given(st.data(), ALPHAS)
def test_with_a_published_total_two_loads_move(parameters, data, alpha):
    public, names = parts_of(parameters)
    query = EntriesQuery(
        ReleaseProblem(public, Population(1), Fraction(1)),
        dict.fromkeys(names, alpha),
        published_total=True,
    )
    values = draw_values(data, public)
    places = list(range(public.entries))[public.parts["load"]]
    other, entry, moved = step(data, values, places, float(alpha), public)
    second = data.draw(st.sampled_from([place for place in places if place != entry]))
    other[second] = np.clip(other[second] - moved, public.low[second], public.high[second])
    check_apart(query, public, values, other)


def check_apart(query, public, values, other):
    epsilon = Fraction(1, 2)
    _, noise = asked(lambda a, s: query.ask(a, s, epsilon), public, values)
    _, again = asked(lambda a, s: query.ask(a, s, epsilon), public, other)
    distance = int(np.abs(noise.steps - again.steps).sum())
    assert noise.scale == again.scale
    assert laplace_epsilon(noise.scale, distance) <= epsilon


def test_weights_above_one_would_need_more_noise(monkeypatch):
    # Control: the check fails for weights that the coefficients were not made for.
    public, _ = parts_of("cost")
    problem = ReleaseProblem(public, Population(1), Fraction(1))
    query = EntriesQuery(problem, {"cost": Fraction(5)}, total_share=Fraction(2, 5))
    assert query._weights.max() == 1
    assert query._weights.min() < 1
    values = (public.low + public.high) / 2
    other = values.copy()
    other[int(np.argmax(query._weights))] += 5
    check_apart(query, public, values, other)
    monkeypatch.setattr(query, "_weights", 1.5 * query._weights)
    with pytest.raises(AssertionError):
        check_apart(query, public, values, other)


def test_half_the_coefficient_is_needed_for_a_published_total():
    # Control: the check fails for the noise that one moving load would need.
    public, _ = parts_of("load")
    problem = ReleaseProblem(public, Population(1), Fraction(1))
    query = EntriesQuery(problem, {"load": Fraction(5)})
    values = (public.low + public.high) / 2
    other = values.copy()
    other[0] += 5
    check_apart(query, public, values, other)
    other[1] -= 5
    with pytest.raises(AssertionError):
        check_apart(query, public, values, other)


def test_both_powers_of_a_load_at_once_would_need_twice_the_noise():
    # Control: active and reactive power are two entries, with a step each.
    public, _ = parts_of("load,reactive_load")
    problem = ReleaseProblem(public, Population(1), Fraction(1))
    alphas = {"load": Fraction(5), "reactive_load": Fraction(3)}
    query = EntriesQuery(problem, alphas, total_share=Fraction(2, 5))
    values = (public.low + public.high) / 2
    active, reactive = (public.parts[name].start for name in ("load", "reactive_load"))
    for entry, step in ((active, 5), (reactive, 3), (reactive + 1, -3)):
        other = values.copy()
        other[entry] += step
        check_apart(query, public, values, other)
    other[active] += 5
    with pytest.raises(AssertionError):
        check_apart(query, public, values, other)


@settings(max_examples=1000 if FULL else 30)
@given(st.data(), st.sampled_from(SETS), st.sampled_from([0, Fraction(2, 5)]))
def test_answers_are_the_values_and_their_sum(data, parameters, share):
    """Nothing in the box is clipped, whatever its coefficient is."""
    public, names = parts_of(parameters)
    share = Fraction(share) if {"load", "cost"} & set(names) else Fraction(0)
    problem = ReleaseProblem(public, Population(1), Fraction(1))
    query = EntriesQuery(
        problem,
        {name: Fraction(3 + k) for k, name in enumerate(names)},
        total_share=share,
    )
    values = draw_values(data, public)
    found, _ = asked(lambda a, s: query.ask(a, s, Fraction(1)), public, values)
    assert np.abs(found.values - values).max() <= 2e-3 * found.scale.max()
    if share:
        summed = problem.summed
        assert summed.name == ("load" if "load" in names else "cost")
        total = summed.weights(public) @ values[public.parts[summed.name]]
        assert found.total == pytest.approx(total, abs=2e-3 * found.total_scale)
    else:
        assert found.total is None


def scales(parameters, epsilon, alphas, **how):
    public, _ = parts_of(parameters)
    problem = ReleaseProblem(public, Population(1), Fraction(1))
    query = EntriesQuery(problem, alphas, **how)
    middle = (public.low + public.high) / 2
    found, _ = asked(lambda a, s: query.ask(a, s, epsilon), public, middle)
    return {name: set(found.scale[part]) for name, part in public.parts.items()}, found


def test_noise_is_as_wide_as_documented():
    near = {"rel": 3e-3}
    five, thirty = Fraction(5), Fraction(30)
    alone, _ = scales("capacity", Fraction(1, 2), {"capacity": five})
    assert [*alone["capacity"]] == [pytest.approx(10, **near)]
    # Several parameters: as much noise as each would have alone.
    both, _ = scales("capacity,load", Fraction(1, 2), {"capacity": five, "load": thirty})
    assert [*both["capacity"]] == [pytest.approx(10, **near)]
    assert [*both["load"]] == [pytest.approx(60, **near)]
    # A total at a share of 2/5 of the loads' epsilon; capacities do not pay for it.
    bought, found = scales(
        "capacity,load", 1, {"capacity": five, "load": thirty}, total_share=Fraction(2, 5)
    )
    assert [*bought["capacity"]] == [pytest.approx(5, **near)]
    assert [*bought["load"]] == [pytest.approx(50, **near)]
    assert found.total_scale == pytest.approx(75, **near)
    # A published one: twice the noise on loads, none of it on capacities.
    known, found = scales(
        "capacity,load", 1, {"capacity": five, "load": thirty}, published_total=True
    )
    assert [*known["capacity"]] == [pytest.approx(5, **near)]
    assert [*known["load"]] == [pytest.approx(60, **near)]
    assert found.total is None
    alone, _ = scales("load", 1, {"load": thirty}, published_total=True)
    assert [*alone["load"]] == [pytest.approx(60, **near)]


def test_what_counts_little_in_a_sum_pays_little_for_it():
    share = Fraction(11, 20)
    _, found = scales("cost", 1, {"cost": Fraction(5)}, total_share=share)
    public, _ = parts_of("cost")
    weights = ReleaseProblem(public, Population(1), Fraction(1)).summed.weights(public)
    assert weights.min() < weights.max() == 1
    assert found.scale == pytest.approx(5 / (1 - 0.55 * weights), rel=3e-3)
    assert found.total_scale == pytest.approx(5 / 0.55, rel=3e-3)


def cost_query(seed, parameters):
    """A drawn case with a usable range, and its query; None where models have no cost."""
    case = draw(seed, parameters)
    names = parameters.split(",")
    limits = {name: Range(*RANGES[name]) for name in names}
    public = split_parts(case.network, names, limits, declared=Declared(public_curves=True))[1]
    problem = ReleaseProblem(public, case.problem.models, case.problem.price)
    alphas = {name: Fraction(2 + k) for k, name in enumerate(names)}
    try:
        return case, problem, CostQuery(problem, alphas), alphas
    except InputError:
        return case, problem, None, alphas


def in_the_box(rng, public):
    share = rng.choice([0.0, 1.0, 0.5, rng.random()], public.entries)
    return public.low + share * (public.high - public.low)


@pytest.mark.parametrize("parameters", [*SINGLE, *TOGETHER])
@settings(max_examples=300 if FULL else 4)
@given(st.integers(0, 2**32 - 1))
def test_the_public_range_holds_all_costs(parameters, seed):
    case, problem, query, _ = cost_query(seed, parameters)
    if query is None:
        return
    for _ in range(2):
        network = problem.public.with_values(in_the_box(case.rng, problem.public))
        price = None if problem.slack == ("strict",) else float(problem.price)
        found = solve_population(network, problem.models, model=problem.slack, slack_price=price)
        assert (query.range.low <= found.bound).all()
        assert (found.cost <= query.range.high).all()


@pytest.mark.parametrize("parameters", [*SINGLE, *TOGETHER])
@settings(max_examples=300 if FULL else 4)
@given(st.integers(0, 2**32 - 1))
def test_costs_and_scores_of_neighbours_are_within_the_noise(parameters, seed):
    case, problem, query, alphas = cost_query(seed, parameters)
    if query is None:
        return
    public, models, epsilon = problem.public, problem.models, Fraction(1, 2)
    values = in_the_box(case.rng, public)
    name = case.rng.choice(public.parameters)
    part = public.parts[name]
    entry = int(case.rng.integers(part.start, part.stop))
    other = values.copy()
    other[entry] += float(alphas[name]) * (1 if values[entry] < public.high[entry] else -1)
    other = np.clip(other, public.low, public.high)
    zero = np.zeros(models.size)
    steps = []
    for given_values in (values, other):
        _, noise = asked(lambda a, s: query.worst(a, s, zero, epsilon), public, given_values)
        steps.append(noise.steps)
    moved = steps[1] - steps[0]
    # Where scores are monotone, a constant on all of them changes no choice.
    spread = int(np.abs(moved).max())
    if problem.monotone:
        spread = int(max(moved.max(), 0) - min(moved.min(), 0))
    assert noisy_max_epsilon(noise.scale, spread, monotone=problem.monotone) <= epsilon
    one = Population(1, **{key: array[:1] for key, array in models.arrays().items()})
    costs = [
        asked(lambda a, s: query.cost(a, s, one, epsilon), public, v)[1] for v in (values, other)
    ]
    distance = int(np.abs(costs[0].steps - costs[1].steps).sum())
    assert laplace_epsilon(costs[0].scale, distance) <= epsilon


def test_a_released_cost_that_is_missing_is_as_good_as_the_highest():
    _, problem, query, _ = cost_query(5, "capacity")
    values = (problem.public.low + problem.public.high) / 2
    shown = np.array([0.0, np.nan, -np.inf, 1.0])
    chosen, _ = asked(lambda a, s: query.worst(a, s, shown, Fraction(1)), problem.public, values)
    assert chosen == 1


PAPER = rts96(variant="paper")


def make(tmp_path, models, **how):
    return release(
        PAPER,
        models,
        epsilon=1,
        alpha=5,
        method="paper",
        rounds=1,
        ledger=tmp_path / "own.sqlite",
        dataset="rts",
        **how,
    )


def spent(tmp_path):
    return Ledger(tmp_path / "own.sqlite").totals("rts")


def test_models_without_a_cost_are_refused_before_any_charge(tmp_path):
    # Where costs alone are private nothing can be bought: a model that lines can't serve has none.
    buses = len(PAPER.buses)
    lines = np.vstack([np.ones(len(PAPER.branches)), np.full(len(PAPER.branches), 0.4)])
    models = Population(2, load=np.ones((2, buses)), capacity=lines)
    with pytest.raises(InputError, match=r"1 models .* the first is model 1"):
        make(tmp_path, models, parameter="cost", range=(0, 200))
    assert spent(tmp_path).charges == 0


def test_costs_and_other_parameters_together_are_refused_before_any_charge(tmp_path):
    with pytest.raises(InputError, match="can't release costs together"):
        release(
            PAPER.linearised(),
            Population(2),
            parameter="generator_limit,cost",
            alpha={"generator_limit": 5, "cost": 1},
            epsilon=1,
            method="paper",
            ledger=tmp_path / "own.sqlite",
            dataset="rts",
        )
    assert spent(tmp_path).charges == 0


def test_limits_that_decide_about_private_costs_are_refused_with_them(tmp_path):
    # One limit that moves would move the slope of a curve between limits too: two entries.
    units = PAPER.generators
    points = (np.array([[0.0, 0.0], [50.0, 900.0]]), *units.points[1:])
    with pytest.raises(InputError, match="breakpoints are limits in most cases"):
        release(
            replace(PAPER, generators=replace(units, points=points)),
            Population(2),
            parameter="generator_limit,cost",
            alpha={"generator_limit": 5, "cost": 1},
            epsilon=1,
            ledger=tmp_path / "own.sqlite",
            dataset="rts",
        )
    assert spent(tmp_path).charges == 0


def raising(found):
    raise ValueError("capacity of line 7 is 175")


FAULTS = {
    "raises": raising,
    "uncertified": lambda found: replace(
        found,
        status=np.full(len(found), Status.UNCERTIFIED),
        bound=found.cost - 0.01 * np.abs(found.cost),
    ),
    "misses a limit": lambda found: replace(found, violation=np.full(len(found), 1e-3)),
    "steep": lambda found: replace(found, room_price=np.full(len(found), 1e12)),
    "failed": lambda found: replace(
        found, status=np.full(len(found), Status.FAILED), cost=np.full(len(found), np.nan)
    ),
    "infeasible": lambda found: replace(
        found, status=np.full(len(found), Status.INFEASIBLE), cost=np.full(len(found), np.inf)
    ),
    "none": None,
}


@pytest.mark.parametrize("fault", sorted(FAULTS))
def test_a_private_solve_that_fails_aborts_charged_and_silent(tmp_path, monkeypatch, fault):
    private = []

    def solve(network, models, **how):
        found = solve_population(network, models, **how)
        # The first call is on public values, for the range.
        private.append(network)
        change = FAULTS[fault]
        return found if len(private) == 1 or change is None else change(found)

    monkeypatch.setattr("gridveil.grid.methods.cost_query.solve_population", solve)
    models = sample_population(PAPER, 5, costs=(80, 100), seed=0)
    if FAULTS[fault] is None:
        # Control: the same path without a fault.
        make(tmp_path, models)
        assert (spent(tmp_path).charges, spent(tmp_path).aborts) == (1, 0)
        return
    with pytest.raises(ReleaseAborted) as caught:
        make(tmp_path, models)
    assert (spent(tmp_path).charges, spent(tmp_path).aborts) == (1, 1)
    assert spent(tmp_path).spent == 1
    assert "175" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_decimals_of_exact_neighbours_are_within_the_noise():
    """Their floats are further apart than alpha, by a rounding: enough to reach another step."""
    network = rts96()
    _, public = split_parts(network, ("capacity",), {"capacity": (1.0, 1000.0)})
    alpha = Fraction("30.015624999999999999")
    problem = ReleaseProblem(public, sample_population(network, 1), Fraction(100))
    query = EntriesQuery(problem, {"capacity": alpha})
    grid = query.sensitivity.default_grid()
    one, other = (float(text) for text in ("200.0078125", "230.023437499999999999"))
    apart = abs(np.rint(other / float(grid)) - np.rint(one / float(grid)))
    assert apart <= query.sensitivity.steps(grid)
    # Without room for reading it would not be.
    bare = replace(query.sensitivity, tolerance=Fraction(0))
    assert apart > bare.steps(bare.default_grid())
