"""Models solved together: the same costs and prices as HiGHS, and never an unproved one."""

from dataclasses import replace

import numpy as np
import pytest
from grid.reference import random_network
from hypothesis import given, settings
from hypothesis import strategies as st

from gridveil.grid.model.population import Population
from gridveil.grid.opf import batch_simplex
from gridveil.grid.opf import fallbacks as ladder_module
from gridveil.grid.opf.batch_simplex import applies, solve_together
from gridveil.grid.opf.certificates import certify
from gridveil.grid.opf.columns import Slack
from gridveil.grid.opf.engine import Status, solve_population
from gridveil.grid.opf.formulation import Formulation, Settings
from gridveil.grid.opf.highs import LinearModel
from gridveil.grid.opf.lazy_rows import solve_lazily
from gridveil.grid.opf.workers import formulate

MODELS = [{}, {"model": "relaxed", "slack_price": 40.0}, {"model": "relaxed", "slack_price": 1e4}]


def sample(seed, size=40):
    rng = np.random.default_rng(seed)
    return Population(
        size,
        load=rng.uniform(0.6, 1.3, (size, 6)),
        p_max=rng.uniform(0.8, 1.2, (size, 8)),
        capacity=rng.uniform(0.7, 1.3, (size, 13)),
    )


def network_of(seed, **how):
    network = random_network(seed, extra=6, **how)
    lines = len(network.branches)
    return network, replace(sample(seed), capacity=sample(seed).capacity[:, :1] * np.ones(lines))


def one_by_one(form, batch):
    model = LinearModel(form)
    return lambda k: solve_lazily(model, batch, k)


def count_alone(monkeypatch):
    """Count the models that were not solved together."""
    real, alone = ladder_module.solve_lazily, []
    monkeypatch.setattr(
        ladder_module, "solve_lazily", lambda *given_: alone.append(1) or real(*given_)
    )
    return alone


@settings(max_examples=40)
@given(st.integers(0, 10_000), st.sampled_from(MODELS), st.booleans(), st.floats(0.4, 1.5))
def test_together_and_one_by_one_agree(seed, how, pieces, tight):
    network, population = network_of(seed, tight=tight, pieces=pieces)
    together = solve_population(network, population, **how)
    alone = solve_population(network, population, rows="all", **how)
    np.testing.assert_array_equal(np.isinf(together.cost), np.isinf(alone.cost))
    finite = np.isfinite(alone.cost)
    np.testing.assert_allclose(together.cost[finite], alone.cost[finite], rtol=1e-9)
    assert together.certified.all()


def follow_the_first(monkeypatch):
    """Make every batch start from its first model's basis, however small it is."""
    for name, value in (("MANY_BROKEN", (-1, -1)), ("LARGE_TABLE", -1), ("FEWEST_LIKE", 2)):
        monkeypatch.setattr(batch_simplex, name, value)
    monkeypatch.setattr(batch_simplex, "PROBE", 8)


@pytest.mark.parametrize("how", MODELS)
@pytest.mark.parametrize("seed", range(6))
def test_models_that_start_from_a_solved_one_agree(monkeypatch, seed, how):
    network, population = network_of(seed, tight=0.9)
    alone = solve_population(network, population, rows="all", **how)
    follow_the_first(monkeypatch)
    together = solve_population(network, population, **how)
    np.testing.assert_array_equal(np.isinf(together.cost), np.isinf(alone.cost))
    finite = np.isfinite(alone.cost)
    np.testing.assert_allclose(together.cost[finite], alone.cost[finite], rtol=1e-9)
    assert together.certified.all()


def test_most_models_can_start_from_a_solved_one(monkeypatch):
    network, population = network_of(11, tight=1.2)
    follow_the_first(monkeypatch)
    alone = count_alone(monkeypatch)
    how = {"model": "relaxed", "slack_price": 1e4}
    found = solve_population(network, population, **how)
    assert (found.status == Status.OPTIMAL).all()
    # The first, and those left at the end of the probe and of the rest.
    assert 0 < len(alone) <= 1 + 2 * batch_simplex.FEW_LEFT


@settings(max_examples=25)
@given(st.integers(0, 10_000), st.sampled_from(MODELS[:2]), st.floats(0.6, 1.5))
def test_every_answer_of_all_together_is_right(seed, how, tight):
    network, population = network_of(seed, tight=tight)
    form = formulate(network, Settings(**how), True)
    batch = form.batch(population, network.branches.capacity)
    if not applies(form, batch):
        return
    hopeless = (batch.bounds.low > batch.bounds.high).any(1)
    hopeless |= form.balance(batch.bounds.high)[:, 0] < batch.demand[:, 0]
    hopeless |= form.balance(batch.bounds.low)[:, 0] > batch.demand[:, 0]
    found = solve_together(form, batch, ~hopeless, one_by_one(form, batch))
    for k, answer in found.items():
        assert certify(form, batch.one(k), [answer]).gap[0] <= 1e-9


@pytest.mark.parametrize("how", MODELS)
def test_most_models_are_solved_together(monkeypatch, how):
    alone = count_alone(monkeypatch)
    network, population = network_of(11, tight=1.2)
    found = solve_population(network, population, **how)
    assert np.isin(found.status, [Status.OPTIMAL, Status.INFEASIBLE]).all()
    assert len(alone) <= (found.status == Status.INFEASIBLE).sum() * 2


def test_a_wrong_answer_of_all_together_goes_on_to_the_warm_solver(monkeypatch):
    network, population = network_of(11, tight=1.5)
    right = solve_population(network, population)
    real = ladder_module.solve_together

    def wrong(*given_):
        return {k: replace(a, balance=a.balance + 0.1) for k, a in real(*given_).items()}

    monkeypatch.setattr(ladder_module, "solve_together", wrong)
    alone = count_alone(monkeypatch)
    found = solve_population(network, population)
    assert len(alone) >= (right.status == Status.OPTIMAL).sum()
    np.testing.assert_array_equal(found.status, right.status)
    np.testing.assert_allclose(found.cost, right.cost, rtol=1e-9)


def test_what_can_not_be_solved_together_is_left_out():
    network, population = network_of(3)

    def form(**slack):
        return Formulation(
            network, "series", own_costs=True, pieces=None, slack=Slack(price=9.0, **slack)
        )

    strict = form()
    batch = strict.batch(population, network.branches.capacity)
    assert applies(strict, batch)
    assert not applies(strict, batch.one(0))
    shed = form(buses=True)
    assert not applies(shed, shed.batch(population, network.branches.capacity))
    negative = strict.batch(population, np.full(len(network.branches), -1.0))
    wanted = np.ones(len(population.load), bool)
    assert solve_together(strict, negative, wanted, one_by_one(strict, negative)) == {}
