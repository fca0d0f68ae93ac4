"""Flows, certificates and the ladder: proofs must fail where an answer is wrong."""

from dataclasses import replace

import numpy as np
import pytest
from grid.making import pglib
from grid.reference import random_network, with_branches, with_generators
from hypothesis import given, settings
from hypothesis import strategies as st

from gridveil.errors import InputError
from gridveil.grid.io import read_case
from gridveil.grid.model.population import Population
from gridveil.grid.opf import fallbacks as ladder_module
from gridveil.grid.opf import flows as flows_module
from gridveil.grid.opf.angles import AngleModel, fits
from gridveil.grid.opf.certificates import certify
from gridveil.grid.opf.columns import Slack
from gridveil.grid.opf.engine import Status, solve_population
from gridveil.grid.opf.flows import Flows
from gridveil.grid.opf.formulation import Formulation
from gridveil.grid.opf.highs import LinearModel, Way
from gridveil.grid.opf.lazy_rows import Outcome, solve_lazily, without_numbers

seeds = st.integers(0, 10_000)
FEW = settings(max_examples=25)


def formulation(network, slack=None):
    form = Formulation(network, "series", own_costs=True, pieces=None, slack=slack or Slack())
    return form, form.batch(Population(1), network.branches.capacity)


@FEW
@given(seeds)
def test_sparse_and_dense_flows_agree(seed):
    network = random_network(seed, buses=9, islands=2)
    dense = Flows(network)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flows_module, "DENSE_ENTRIES", 0)
        sparse = Flows(network)
    rng = np.random.default_rng(seed)
    injection, values = rng.normal(size=(3, 9)), rng.normal(size=(3, len(network.branches)))
    lines = np.arange(len(network.branches))
    assert dense.dense is not None
    assert sparse.dense is None
    np.testing.assert_allclose(dense.of(injection), sparse.of(injection), atol=1e-12)
    np.testing.assert_allclose(dense.back(values), sparse.back(values), atol=1e-12)
    np.testing.assert_allclose(dense.rows(lines), sparse.rows(lines), atol=1e-12)
    np.testing.assert_allclose(dense.rows(lines), sparse.rows(lines[::-1])[::-1], atol=1e-12)


def test_a_row_has_the_same_bits_whatever_is_computed_with_it():
    """So a worker, who needs other rows, has the answers of the process that sent the models."""
    network = read_case(pglib("pglib_opf_case1354_pegase"))
    lines = np.arange(0, len(network.branches), 7)
    flows = Flows(network)
    together = flows.rows(lines)
    assert flows.dense is None
    for few in (1, 5):
        parts = np.split(lines[::-1], range(few, len(lines), few))
        apart = np.concatenate([Flows(network).rows(part) for part in parts])[::-1]
        assert apart.tobytes() == together.tobytes()


def test_few_rows_are_remembered(monkeypatch):
    network = random_network(2, buses=9)
    whole = Flows(network)
    monkeypatch.setattr(flows_module, "DENSE_ENTRIES", 0)
    monkeypatch.setattr(flows_module, "CACHED_ENTRIES", 9)
    flows = Flows(network)
    for lines in ([0, 1], [2, 3], [0, 3]):
        np.testing.assert_allclose(
            flows.rows(np.array(lines)), whole.rows(np.array(lines)), atol=1e-12
        )


def test_parallel_lines_share_by_susceptance():
    network = random_network(1)
    flows, last = Flows(network), len(network.branches) - 2
    ratio = flows.b[last] / flows.b[0]
    np.testing.assert_allclose(flows.rows(np.array([last])), ratio * flows.rows(np.array([0])))


def test_cancelling_reactances_are_refused():
    network = random_network(1)
    b = len(network.branches)
    x, on = network.branches.reactance.copy(), network.branches.in_service.copy()
    on[:] = False
    on[[0, b - 2]] = True
    x[b - 2] = -x[0]
    only = with_branches(network, in_service=on, reactance=x, resistance=np.zeros(b))
    with pytest.raises(InputError, match="cancel"):
        solve_population(only)


@FEW
@given(seeds, st.sampled_from([Slack(), Slack(lines=True, price=50), Slack(buses=True, price=50)]))
def test_a_certificate_holds_for_wrong_answers_too(seed, slack):
    # Any prices give a bound that is not above the cost; any columns a cost not below it.
    network = random_network(seed, tight=1.2)
    form, batch = formulation(network, slack)
    right = solve_lazily(LinearModel(form), batch, 0)
    if right.outcome is not Outcome.SOLVED:
        return
    good = certify(form, batch, [right])
    rng = np.random.default_rng(seed)
    wrong = replace(
        right,
        x=right.x + rng.normal(0, 5, right.x.shape),
        balance=right.balance + rng.normal(0, 3, right.balance.shape),
        prices=right.prices + rng.normal(0, 1, right.prices.shape),
    )
    bad = certify(form, batch, [wrong])
    slip = 1e-9 * abs(good.cost[0])
    assert good.gap[0] <= 1e-9
    assert bad.bound[0] <= good.cost[0] + slip
    if bad.violation[0] <= 1e-9:
        assert bad.cost[0] >= good.bound[0] - slip
    assert bad.gap[0] > 1e-9


@FEW
@given(seeds)
def test_units_without_an_upper_limit_are_certified(seed):
    # Also from p_min < 0, where the box of such a unit begins below zero.
    network = random_network(seed, tight=1.2)
    p_max = np.where(np.arange(8) % 2 == 1, np.inf, network.generators.p_max)
    found = solve_population(with_generators(network, p_max=p_max))
    high = np.where(np.isinf(p_max), 1e4, p_max)
    bounded = solve_population(with_generators(network, p_max=high))
    assert found.certified.all()
    np.testing.assert_allclose(found.cost, bounded.cost, rtol=1e-9)
    assert (found.bound <= bounded.cost * (1 + 1e-12)).all()


def test_infeasible_models_have_infinite_costs_and_a_proof():
    network = random_network(4, tight=1.3)
    lines = len(network.branches)
    too_much = Population(3, load=np.array([[1.0], [20.0], [-20.0]]) * np.ones((1, 6)))
    found = solve_population(network, too_much, keep=("dispatch", "nodal_price"))
    assert list(found.status) == [Status.OPTIMAL, Status.INFEASIBLE, Status.INFEASIBLE]
    assert list(np.isinf(found.cost)) == [False, True, True]
    assert np.isnan(found.dispatch[1:]).all()
    congested = solve_population(network, capacity=np.full(lines, 1.0))
    assert congested.status[0] == Status.INFEASIBLE
    assert congested.bound[0] == np.inf
    negative = solve_population(network, capacity=np.full(lines, -1.0))
    assert negative.status[0] == Status.INFEASIBLE


def test_a_curved_infeasible_model_is_proved_infeasible():
    network = random_network(4, curved=True)
    found = solve_population(network, capacity=np.full(len(network.branches), 1.0))
    assert found.status[0] == Status.INFEASIBLE


def test_a_model_without_a_lowest_cost_is_unbounded():
    network = random_network(4, tight=100.0)
    endless = np.full(8, np.inf)
    paid = with_generators(network, p_max=endless, p_min=-endless)
    assert solve_population(paid).status[0] == Status.UNBOUNDED
    assert solve_population(paid).cost[0] == -np.inf


def wrong_first(monkeypatch, until):
    """Let every rung before `until` give a slightly wrong answer."""
    real = ladder_module.solve_lazily
    calls = []

    def lie(solver, batch, k, most=np.inf):
        calls.append(solver)
        answer = real(solver, batch, k, most)
        if len(calls) > until:
            return answer
        return replace(answer, balance=answer.balance + 0.01)

    monkeypatch.setattr(ladder_module, "solve_lazily", lie)


@pytest.mark.parametrize(
    ("until", "status"),
    [
        (0, Status.OPTIMAL),
        (1, Status.FROM_SCRATCH),
        (2, Status.INTERIOR),
        (3, Status.TIGHT),
        (4, Status.UNCERTIFIED),
    ],
)
def test_the_ladder_is_climbed_where_the_proof_fails(monkeypatch, until, status):
    network = random_network(4, tight=1.3)
    right = solve_population(network).cost[0]
    wrong_first(monkeypatch, until)
    found = solve_population(network)
    assert found.status[0] == status
    assert found.certified[0] == (status != Status.UNCERTIFIED)
    assert found.cost[0] == pytest.approx(right, rel=1e-9)
    assert (found.gap[0] <= 1e-9) == (status != Status.UNCERTIFIED)


@pytest.mark.parametrize(("until", "status"), [(1, Status.FROM_SCRATCH), (2, Status.TIGHT)])
def test_the_quadratic_ladder_is_climbed(monkeypatch, until, status):
    network = random_network(4, tight=1.3, curved=True)
    right = solve_population(network).cost[0]
    monkeypatch.setattr(ladder_module, "polished", lambda form, batch, answer: answer)
    wrong_first(monkeypatch, until)
    found = solve_population(network)
    assert found.status[0] == status
    assert found.cost[0] == pytest.approx(right, rel=1e-9)


def test_polishing_makes_a_rough_answer_exact(monkeypatch):
    network = random_network(4, tight=1.3, curved=True)
    real = ladder_module.solve_lazily
    right = solve_population(network).cost[0]
    calls = []

    def rough(solver, batch, k, most=np.inf):
        calls.append(k)
        answer = real(solver, batch, k, most)
        return replace(answer, x=answer.x * (1 + 1e-5), balance=answer.balance * (1 + 1e-5))

    monkeypatch.setattr(ladder_module, "solve_lazily", rough)
    found = solve_population(network)
    assert found.status[0] == Status.OPTIMAL
    assert len(calls) == 1
    assert found.gap[0] <= 1e-12
    assert found.cost[0] == pytest.approx(right, rel=1e-9)


def test_a_solver_that_gives_up_is_a_status(monkeypatch):
    monkeypatch.setattr(
        ladder_module,
        "solve_lazily",
        lambda solver, batch, k, most=np.inf: without_numbers(Outcome.FAILED, solver.form),
    )
    found = solve_population(random_network(4))
    assert found.status[0] == Status.FAILED
    assert np.isnan(found.cost[0])
    assert found.gap[0] == np.inf
    assert not found.certified[0]


def test_infeasibility_is_not_believed_without_proof(monkeypatch):
    real = ladder_module.solve_lazily
    calls = []

    def lie(solver, batch, k, most=np.inf):
        calls.append(k)
        return (
            without_numbers(Outcome.INFEASIBLE, solver.form)
            if len(calls) == 1
            else real(solver, batch, k, most)
        )

    network = random_network(4, tight=1.3)
    right = solve_population(network).cost[0]
    monkeypatch.setattr(ladder_module, "solve_lazily", lie)
    found = solve_population(network)
    assert found.status[0] == Status.FROM_SCRATCH
    assert found.cost[0] == pytest.approx(right, rel=1e-9)


def test_every_way_of_highs_solves_a_model():
    form, batch = formulation(random_network(4, tight=1.3))
    ways = (Way(), Way(presolve="on"), Way(solver="ipm", presolve="on"), Way(tolerance=1e-10))
    gaps = [
        certify(form, batch, [solve_lazily(LinearModel(form, way), batch, 0)]).gap[0]
        for way in ways
    ]
    assert max(gaps) <= 1e-9


SLACKS = [
    Slack(),
    Slack(lines=True, price=50),
    Slack(buses=True, price=50),
    Slack(lines=True, buses=True, price=1),
]


@FEW
@given(seeds, st.sampled_from(SLACKS))
def test_angles_and_rows_of_the_ptdf_give_the_same_proved_cost(seed, slack):
    network = random_network(seed, buses=9, islands=2, tight=1.1)
    form, batch = formulation(network, slack)
    by_rows = solve_lazily(LinearModel(form), batch, 0)
    angles = AngleModel(form)
    assert angles.tighten()
    assert not angles.tighten()
    by_angles = solve_lazily(angles, batch, 0)
    assert by_angles.outcome == by_rows.outcome
    if by_rows.outcome is not Outcome.SOLVED:
        return
    first, second = (certify(form, batch, [answer]) for answer in (by_rows, by_angles))
    assert second.gap[0] <= 1e-9
    assert second.violation[0] <= 1e-6
    assert second.cost[0] == pytest.approx(first.cost[0], rel=1e-9, abs=1e-9)


@FEW
@given(seeds, st.sampled_from([slack for slack in SLACKS if slack.buses]))
def test_columns_that_wait_outside_come_in_where_they_save(seed, slack):
    network = random_network(seed, buses=9, islands=2, tight=0.6)
    form, batch = formulation(network, slack)
    every = certify(form, batch, [solve_lazily(LinearModel(form), batch, 0)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flows_module, "DENSE_ENTRIES", 0)
        form, batch = formulation(network, slack)
    model = LinearModel(form)
    assert model.width == (form.columns.unit >= 0).sum() + 2 * form.islands
    found = certify(form, batch, [solve_lazily(model, batch, 0)])
    assert found.gap[0] <= 1e-9
    assert found.cost[0] == pytest.approx(every.cost[0], rel=1e-9, abs=1e-9)


def test_without_the_columns_that_wait_some_models_are_dearer(monkeypatch):
    monkeypatch.setattr(flows_module, "DENSE_ENTRIES", 0)
    gaps = []
    for closed in (False, True):
        if closed:
            monkeypatch.setattr(LinearModel, "widen", lambda self, answer: False)
        for seed in range(6):
            network = random_network(seed, buses=9, islands=2, tight=0.6)
            form, batch = formulation(network, Slack(lines=True, buses=True, price=50))
            answer = solve_lazily(LinearModel(form), batch, 0)
            gaps.append(certify(form, batch, [answer]).gap[0])
    assert max(gaps[:6]) <= 1e-9
    assert max(gaps[6:]) > 1e-3


@FEW
@given(seeds)
def test_rows_that_do_not_bind_can_be_dropped(seed):
    network = random_network(seed, buses=9, tight=0.8)
    form, _ = formulation(network, Slack(lines=True, price=50))
    rng = np.random.default_rng(seed)
    models = Population(6, load=rng.uniform(0.7, 1.3, (6, 9)))
    batch = form.batch(models, network.branches.capacity)
    kept, dropped = LinearModel(form), LinearModel(form)
    for k in range(6):
        first, second = (solve_lazily(model, batch, k) for model in (kept, dropped))
        costs = [certify(form, batch.one(k), [one]).cost[0] for one in (first, second)]
        assert costs[1] == pytest.approx(costs[0], rel=1e-9)
        dropped.thin()
        assert len(dropped.rows.place) == dropped.rows.has.sum()
        # What is left are the rows that bind.
        assert dropped.rows.has[np.flatnonzero(second.prices.ravel() > 1e-9)].all()
    assert len(dropped.rows.place) <= len(kept.rows.place)


@FEW
@given(seeds)
def test_a_crowded_ladder_goes_over_to_angles_and_finds_the_same(seed):
    network = random_network(seed, buses=9, tight=1.1)
    lines = len(network.branches)
    rng = np.random.default_rng(seed)
    models = Population(4, load=rng.uniform(0.9, 1.1, (4, 9)))
    form, _ = formulation(network, Slack(lines=True, price=50))
    batch = form.batch(models, rng.uniform(1, 30, lines))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flows_module, "DENSE_ENTRIES", 0)
        form, _ = formulation(network, Slack(lines=True, price=50))
        patch.setattr(ladder_module, "applies", lambda form, batch: False)
        _, right = ladder_module.Ladder(form, tolerance=1e-9).solve(batch)
        patch.setattr(ladder_module, "LEAST_ROWS", 0)
        patch.setattr(ladder_module, "SPARSE_MODELS", 0)
        crowded = ladder_module.Ladder(form, tolerance=1e-9)
        status, found = crowded.solve(batch)
    assert crowded._angles is not None or not (right.prices > 0).any()
    assert (status <= Status.TIGHT).all()
    np.testing.assert_allclose(found.cost, right.cost, rtol=1e-9)


def test_a_loose_answer_without_a_proof_is_tightened_where_it_stands(monkeypatch):
    network = random_network(3, buses=9, tight=1.1)
    rng = np.random.default_rng(3)
    models = Population(6, load=rng.uniform(0.9, 1.1, (6, 9)))
    real = AngleModel.run

    def wrong_until_tightened(self):
        answer = real(self)
        return replace(answer, balance=answer.balance + 0.1) if self._loose else answer

    monkeypatch.setattr(AngleModel, "run", wrong_until_tightened)
    monkeypatch.setattr(flows_module, "DENSE_ENTRIES", 0)
    monkeypatch.setattr(ladder_module, "LEAST_ROWS", 0)
    monkeypatch.setattr(ladder_module, "SPARSE_MODELS", 0)
    form, _ = formulation(network, Slack(lines=True, price=50))
    batch = form.batch(models, rng.uniform(1, 10, len(network.branches)))
    statuses = ladder_module.Ladder(form, tolerance=1e-9).solve(batch)[0]
    assert (statuses == Status.OPTIMAL).all()
    # The control: without it they are solved again from scratch.
    monkeypatch.setattr(AngleModel, "tighten", lambda self: False)
    statuses = ladder_module.Ladder(form, tolerance=1e-9).solve(batch)[0]
    assert (statuses == Status.FROM_SCRATCH).any()


def test_limits_that_cross_are_left_to_the_rows():
    network = random_network(4)
    form, _ = formulation(network, Slack(lines=True, price=50))
    batch = form.batch(Population(1), np.full(len(network.branches), -3.0))
    assert not fits(form, batch, 0)
    status, found = ladder_module.Ladder(form, tolerance=1e-9).solve(batch)
    assert status[0] <= Status.TIGHT
    assert found.gap[0] <= 1e-9
