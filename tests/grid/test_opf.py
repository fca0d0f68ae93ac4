"""The engine's costs against an independent model on angles, and its other answers."""

import dataclasses
import warnings

import numpy as np
import pytest
from grid.reference import (
    angle_model,
    random_network,
    reference_cost,
    with_branches,
    with_generators,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from gridveil.errors import InputError
from gridveil.grid.model.population import Population
from gridveil.grid.opf import quadratic as quadratic_module
from gridveil.grid.opf.engine import Engine, Status, solve_population
from gridveil.grid.opf.quadratic import QuadraticModel

seeds = st.integers(0, 10_000)
FEW = settings(max_examples=25)
KEEP = ("dispatch", "flow", "line_price", "nodal_price", "limit_price", "shed", "overload")


def agree(found, expected):
    if np.isinf(expected):
        return bool(np.isinf(found))
    return abs(found - expected) <= 1e-6 * max(1.0, abs(expected))


@FEW
@given(seeds, st.sampled_from(["series", "matpower"]), st.booleans())
def test_strict_costs_are_those_of_the_angle_model(seed, convention, pieces):
    network = random_network(seed, pieces=pieces)
    found = solve_population(network, convention=convention)
    assert agree(found.cost[0], reference_cost(network, convention=convention))
    assert found.status[0] in (Status.OPTIMAL, Status.INFEASIBLE)


@FEW
@given(seeds, st.sampled_from(["relaxed", "shed", "limits", ("relaxed", "limits")]), st.booleans())
def test_models_with_slack_cost_what_the_angle_model_says(seed, model, pieces):
    network = random_network(seed, tight=0.5, pieces=pieces)
    found = solve_population(network, model=model, slack_price=100.0)
    assert agree(found.cost[0], reference_cost(network, model=model, price=100.0))
    assert found.certified.all()


@pytest.mark.parametrize("seed", range(20100, 20130))
def test_a_low_price_is_bounded_by_branches_that_are_not_there_at_first(seed):
    # Without the branches 20 $/MWh would make some units run away against each other.
    network = random_network(seed, buses=9, tight=0.7)
    found = solve_population(network, model=("relaxed", "limits"), slack_price=20.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # CVXPY warns where a model is unbounded
        problem, _ = angle_model(network, model=("relaxed", "limits"), price=20.0)
        problem.solve(solver="HIGHS")
    if problem.status == "optimal":
        assert agree(found.cost[0], problem.value)
        assert found.status[0] == Status.OPTIMAL
    else:
        assert found.status[0] == Status.UNBOUNDED


@FEW
@given(seeds, st.sampled_from(["strict", "relaxed", "shed", "limits"]))
def test_quadratic_costs_are_exact(seed, model):
    network = random_network(seed, curved=True, tight=0.8)
    price = None if model == "strict" else 90.0
    found = solve_population(network, model=model, slack_price=price)
    assert agree(found.cost[0], reference_cost(network, model=model, price=price))
    assert found.certified.all()


def test_rows_that_do_not_bind_for_long_are_dropped_and_come_back(monkeypatch):
    down = np.linspace(1.5, 0.5, 8)
    models = Population(16, load=np.concatenate([down, down[::-1]])[:, None] * np.ones(9))
    counts, real = [], QuadraticModel.load

    def counted(self, batch, k):
        real(self, batch, k)
        counts.append(len(self.rows.place))
        assert len(self._branch_rows) == len(self.rows.place) == self.rows.has.sum()

    monkeypatch.setattr(QuadraticModel, "load", counted)
    costs: dict[int, list[float]] = {0: [], 100: []}
    steps = {}
    for idle, known in costs.items():
        monkeypatch.setattr(quadratic_module, "IDLE", idle)
        counts.clear()
        for seed in range(6):
            network = random_network(seed, buses=9, curved=True, tight=0.8)
            found = solve_population(network, models, model="relaxed", slack_price=90.0)
            assert found.certified.all()
            known.extend(found.cost)
        steps[idle] = np.diff(np.reshape(counts, (6, 16)), axis=1)
    np.testing.assert_allclose(costs[0], costs[100], rtol=1e-8)
    assert steps[0].min() < 0 < steps[0][:, 8:].max()
    assert steps[100].min() >= 0


@FEW
@given(seeds, st.sampled_from([2, 10, 50]))
def test_pieces_of_a_quadratic_cost_are_off_by_no_more_than_stated(seed, pieces):
    network = random_network(seed, curved=True, tight=2.0)
    exact, cut = solve_population(network), solve_population(network, quadratic=pieces)
    if np.isinf(exact.cost[0]):
        assert np.isinf(cut.cost[0])
        return
    slip = 1e-8 * abs(exact.cost[0])
    assert -slip <= cut.cost[0] - exact.cost[0] <= cut.error[0] + slip
    assert exact.error[0] == 0


@FEW
@given(seeds)
def test_islands_are_balanced_one_by_one(seed):
    network = random_network(seed, buses=8, islands=2, tight=1.5)
    found = solve_population(network, keep=("dispatch",))
    assert agree(found.cost[0], reference_cost(network))
    if np.isfinite(found.cost[0]):
        half = np.arange(8) < 4
        made = [found.dispatch[0][half[network.generators.bus] == side].sum() for side in (0, 1)]
        drawn = network.buses.load + network.buses.shunt
        assert made == pytest.approx([drawn[~half].sum(), drawn[half].sum()], abs=1e-9)


@FEW
@given(seeds)
def test_a_high_price_makes_the_relaxed_model_strict(seed):
    network = random_network(seed, tight=1.2)
    strict = solve_population(network).cost[0]
    relaxed = solve_population(network, model="relaxed", slack_price=1e6).cost[0]
    assert relaxed == pytest.approx(strict, rel=1e-8) if np.isfinite(strict) else relaxed > 1e5


@FEW
@given(seeds, st.sampled_from(["strict", "relaxed"]), st.booleans())
def test_lazy_rows_and_all_rows_agree(seed, model, curved):
    network = random_network(seed, tight=0.8, curved=curved)
    population = Population(3, load=np.array([[1.0], [0.7], [1.1]]) * np.ones((1, 6)))
    how = {"model": model, "slack_price": None if model == "strict" else 500.0}
    lazy = solve_population(network, population, rows="lazy", **how)
    full = solve_population(network, population, rows="all", **how)
    np.testing.assert_allclose(lazy.cost, full.cost, rtol=1e-9)
    np.testing.assert_array_equal(lazy.status, full.status)


@FEW
@given(seeds, st.floats(-50, 50))
def test_every_capacity_has_a_relaxed_cost_that_moves_by_the_price_at_most(seed, step):
    network = random_network(seed)
    rng = np.random.default_rng(seed)
    capacity = rng.uniform(-40, 60, len(network.branches))
    line = int(rng.integers(len(capacity)))
    other = capacity + step * (np.arange(len(capacity)) == line)
    cost = [
        solve_population(network, capacity=f, model="relaxed", slack_price=70.0).cost[0]
        for f in (capacity, other)
    ]
    assert np.isfinite(cost).all()
    assert abs(cost[1] - cost[0]) <= 70.0 * abs(step) * (1 + 1e-9) + 1e-6


def test_flows_dispatch_and_limits_of_a_solution():
    network = random_network(4, tight=1.3)
    found = solve_population(network, keep=KEEP)
    assert found.status[0] == Status.OPTIMAL
    p, flow = found.dispatch[0], found.flow[0]
    units, lines = network.generators, network.branches
    drawn = network.buses.load + network.buses.shunt
    net = np.bincount(units.bus, p, 6) - drawn
    out = np.bincount(lines.from_bus, flow, 6) - np.bincount(lines.to_bus, flow, 6)
    np.testing.assert_allclose(net, out, atol=1e-8)
    assert (np.abs(flow) <= lines.capacity + 1e-6).all()
    assert p[0] == 0
    assert flow[-1] == 0
    assert (found.line_price >= 0).all()
    assert (found.shed == 0).all()
    assert found.overload.max() <= 1e-6
    cost = units.linear * p + units.constant
    assert found.cost[0] == pytest.approx(cost[units.in_service].sum(), rel=1e-12)


def test_lines_are_congested_where_more_room_would_save_money():
    network = random_network(4, tight=1.05)
    found = solve_population(network, keep=KEEP)
    assert found.congested.any()
    assert not found.congested.all()
    for line in range(len(network.branches)):
        wider = network.branches.capacity.copy()
        wider[line] += 0.01
        saved = found.cost[0] - solve_population(network.with_capacity(wider)).cost[0]
        assert (saved > 1e-6) == found.congested[0, line]
    with pytest.raises(InputError, match="Prices of lines were not kept"):
        _ = solve_population(network).congested


def test_a_model_without_a_solution_has_no_congested_line():
    network = random_network(4)
    found = solve_population(network.with_capacity(np.full(len(network.branches), 1e-3)), keep=KEEP)
    assert np.isinf(found.cost[0])
    assert not found.congested.any()


def test_what_is_shed_and_overloaded_is_told():
    network = random_network(4)
    heavy = network.with_load(network.buses.load * 10)
    shed = solve_population(heavy, model="shed", slack_price=1000.0, keep=("shed", "dispatch"))
    missing = heavy.buses.load.sum() + heavy.buses.shunt.sum() - shed.dispatch.sum()
    assert shed.shed.sum() == pytest.approx(missing)
    over = solve_population(
        network, capacity=np.zeros(len(network.branches)), model="relaxed", slack_price=10.0,
        keep=("overload", "flow"),
    )  # fmt: skip
    np.testing.assert_allclose(over.overload, np.abs(over.flow), atol=1e-9)


def test_a_population_scales_what_it_says():
    network = random_network(7, tight=1.5)
    rng = np.random.default_rng(0)
    units, lines = len(network.generators), len(network.branches)
    population = Population(
        2,
        load=rng.uniform(0.8, 1.0, (2, 6)),
        p_max=rng.uniform(0.9, 1.1, (2, units)),
        p_min=rng.uniform(0.5, 1.0, (2, units)),
        cost=rng.uniform(80, 100, (2, units)),
        capacity=rng.uniform(0.9, 1.2, (2, lines)),
    )
    found = solve_population(network, population)
    for k in range(2):
        one = network.with_load(network.buses.load * population.load[k])
        one = one.with_capacity(network.branches.capacity * population.capacity[k])
        one = with_generators(
            one,
            p_min=one.generators.p_min * population.p_min[k],
            p_max=one.generators.p_max * population.p_max[k],
            linear=population.cost[k],
            constant=np.zeros(units),
        )
        assert found.cost[k] == pytest.approx(reference_cost(one), rel=1e-7)


def test_cost_factors_scale_every_kind_of_cost():
    network = random_network(5, curved=True, pieces=True, tight=2.0)
    twice = Population(2, cost_factor=np.array([[1.0], [2.0]]) * np.ones((1, 8)))
    cost = solve_population(network, twice).cost
    assert cost[1] == pytest.approx(2 * cost[0], rel=1e-8)
    with pytest.raises(InputError, match="concave"):
        solve_population(network, Population(1, cost_factor=-np.ones((1, 8))))


def test_units_whose_limits_cross_are_paid_for_in_the_limits_model():
    network = random_network(3, tight=3.0)
    p_min = network.generators.p_min.copy()
    p_min[2] = network.generators.p_max[2] + 10
    crossed = with_generators(network, p_min=p_min)
    assert solve_population(crossed).status[0] == Status.INFEASIBLE
    found = solve_population(crossed, model="limits", slack_price=200.0)
    assert found.cost[0] == pytest.approx(reference_cost(crossed, model="limits", price=200.0))


def test_a_dead_bus_is_left_out():
    network = random_network(6, tight=3.0)
    on = np.ones(6, bool)
    on[5] = False
    dead = dataclasses.replace(network, buses=dataclasses.replace(network.buses, in_service=on))
    found = solve_population(dead, keep=("nodal_price",))
    assert agree(found.cost[0], reference_cost(dead))
    assert np.isnan(found.nodal_price[0, 5])
    assert np.isfinite(found.nodal_price[0, :5]).all()


@pytest.mark.parametrize("size", [1, 20])
def test_networks_without_units_or_branches_have_answers(size):
    network = random_network(3)
    population = Population(size, load=np.ones((size, 6)))
    dark = with_generators(network, in_service=np.zeros(8, bool))
    assert (solve_population(dark, population).status == Status.INFEASIBLE).all()
    idle = dataclasses.replace(
        dark, buses=dataclasses.replace(dark.buses, load=np.zeros(6), shunt=np.zeros(6))
    )
    for model in (
        {},
        {"model": "relaxed", "slack_price": 5.0},
        {"model": "shed", "slack_price": 5.0},
    ):
        found = solve_population(idle, population, keep=KEEP, **model)
        assert found.certified.all()
        assert (found.cost == 0).all()
        assert (found.dispatch == 0).all()
    alone = with_branches(network, in_service=np.zeros(len(network.branches), bool))
    shed = solve_population(alone, population, model="shed", slack_price=100.0)
    assert shed.cost == pytest.approx(reference_cost(alone, model="shed", price=100.0))


def test_bad_input_is_refused_with_a_remedy():
    network = random_network(0)
    bad = [
        {"model": "loose"},
        {"model": "relaxed"},
        {"slack_price": 5.0},
        {"model": ("strict", "shed"), "slack_price": 5.0},
        {"quadratic": 0},
        {"quadratic": 5, "model": "limits", "slack_price": 5.0},
        {"keep": ("everything",)},
        {"capacity": [1.0]},
        {"population": Population(2, load=np.ones((2, 3)))},
        {"population": Population(1, load=np.full((1, 6), np.nan))},
        {"population": Population(0)},
        {"workers": 0},
        {"chunk": 0},
        {"workers": 2, "executor": object()},
    ]
    for given_ in bad:
        with pytest.raises(InputError):
            solve_population(network, **given_)
    with pytest.raises(InputError, match="Network"):
        solve_population("case14.m")
    x = network.branches.reactance.copy()
    x[0] = 0
    nothing = with_branches(network, reactance=x, resistance=np.zeros(len(x)))
    with pytest.raises(InputError, match="l0 has no impedance"):
        solve_population(nothing)
    points = list(network.generators.points)
    points[1] = np.array([[0.0, 0.0], [10.0, 100.0], [20.0, 120.0]])
    with pytest.raises(InputError, match="not convex"):
        solve_population(with_generators(network, points=tuple(points)))
    with pytest.raises(InputError, match="not convex"):
        solve_population(with_generators(network, quadratic=-np.ones(8)))


def test_an_engine_stays_warm_and_can_be_made_fresh():
    network = random_network(1, tight=1.2)
    rng = np.random.default_rng(1)
    population = Population(20, cost=rng.uniform(80, 100, (20, 8)))
    engine = Engine(network)
    first = engine.solve(population)
    again = engine.solve(population)
    alone = solve_population(network, population)
    np.testing.assert_allclose(first.cost, again.cost, rtol=1e-10)
    fresh = engine.solve(population, fresh=True)
    np.testing.assert_array_equal(fresh.cost, alone.cost)
    assert "20 optimal" in repr(alone)


def test_progress_counts_models():
    seen = []
    population = Population(5, load=np.ones((5, 6)))
    solve_population(
        random_network(2), population, chunk=2, progress=lambda *done: seen.append(done)
    )
    assert seen == [(2, 5), (4, 5), (5, 5)]
