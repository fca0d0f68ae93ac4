"""Limits after outages: against networks without the branch, against CVXPY, and in releases."""

import json
from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest
from grid.reference import random_network
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from gridveil import grid
from gridveil.cli.commands import app
from gridveil.errors import InputError
from gridveil.grid.opf import flows as flows_module
from gridveil.grid.opf.flows import Flows

seeds = st.integers(0, 10_000)
FEW = settings(max_examples=15, deadline=None)


def run(*arguments):
    return CliRunner().invoke(app, [str(one) for one in arguments])


def ring(ratings=(100.0, 100.0, 100.0, 100.0)):
    """Two buses with cheap and dear power, two ways between them, and a spur."""
    return grid.Network(
        name="ring",
        base_mva=100.0,
        buses=grid.Buses(
            name=list("abcd"),
            load=[0.0, 90.0, 0.0, 10.0],
            shunt=np.zeros(4),
            reference=[True, False, False, False],
            in_service=np.ones(4, bool),
        ),
        generators=grid.Generators(
            name=["cheap", "dear"],
            bus=[0, 1],
            p_min=[0.0, 0.0],
            p_max=[200.0, 200.0],
            in_service=[True, True],
            quadratic=[0.0, 0.0],
            linear=[10.0, 50.0],
            constant=[0.0, 0.0],
            points=[None, None],
        ),
        branches=grid.Branches(
            name=["a-b", "a-c", "c-b", "b-d"],
            from_bus=[0, 0, 2, 1],
            to_bus=[1, 2, 1, 3],
            resistance=np.zeros(4),
            reactance=[0.1, 0.05, 0.05, 0.1],
            tap=np.ones(4),
            shift=np.zeros(4),
            capacity=ratings,
            in_service=np.ones(4, bool),
            angle_min=np.full(4, -np.inf),
            angle_max=np.full(4, np.inf),
        ),
    )


def without(network, line):
    on = network.branches.in_service.copy()
    on[line] = False
    return replace(network, branches=replace(network.branches, in_service=on))


def worst_miss(network, convention, damage=1.0):
    """How far flows after outages are from those of the network without the branch."""
    given = grid.contingencies(network)
    flows = Flows(network, convention, given)
    rng = np.random.default_rng(0)
    injection = rng.normal(size=(2, len(network.buses)))
    for island in range(flows.islands):
        there = flows.island == island
        injection[:, there] -= injection[:, there].mean(1, keepdims=True)
    injection[:, flows.island < 0] = 0.0
    lines = len(network.branches)
    before = flows.shift_flow + flows.of(injection - flows.shift_injection)[:, :lines]
    flows.outages.factor = damage * flows.outages.factor
    after = flows.after(before)[:, lines:]
    worst = 0.0
    for line in given.lines:
        left = Flows(without(network, line), convention)
        truth = left.shift_flow + left.of(injection - left.shift_injection)
        mine = flows.outages.lost == line
        watched = flows.outages.watched[mine]
        worst = max(worst, np.abs(after[:, mine] - truth[:, watched]).max(initial=0.0))
        # Those that are not watched keep their flow.
        rest = np.setdiff1d(np.flatnonzero(left.live), watched)
        worst = max(worst, np.abs(before[:, rest] - truth[:, rest]).max(initial=0.0))
    return worst


@FEW
@given(seeds, st.sampled_from(["series", "matpower"]))
def test_flows_after_an_outage_are_those_without_the_branch(seed, convention):
    network = random_network(seed, buses=7, extra=4, islands=1 + seed % 2)
    assert worst_miss(network, convention) < 1e-8


def test_on_rts96_too_and_wrong_factors_are_found():
    network = grid.cases.rts96()
    assert worst_miss(network, "series") < 1e-8
    assert worst_miss(network, "series", damage=0.99) > 1e-4


@FEW
@given(seeds)
def test_dense_and_sparse_rows_agree(seed):
    network = random_network(seed, buses=8, extra=3)
    given = grid.contingencies(network)
    dense = Flows(network, "series", given)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flows_module, "DENSE_ENTRIES", 0)
        sparse = Flows(network, "series", given)
    every = np.arange(dense.height)
    values = np.random.default_rng(seed).normal(size=(2, dense.height))
    np.testing.assert_allclose(dense.rows(every), sparse.rows(every), atol=1e-9)
    np.testing.assert_allclose(dense.back(values), values @ dense.rows(every), atol=1e-9)
    np.testing.assert_allclose(sparse.back(values), values @ dense.rows(every), atol=1e-9)


def secured_cost(network, models, given):
    """The cost of one model by CVXPY, with the flows of every network that is left."""
    units, lines = network.generators, network.branches
    on = np.flatnonzero(units.in_service & network.buses.in_service[units.bus])
    p = cp.Variable(len(on))
    at = np.zeros((len(network.buses), len(on)))
    at[units.bus[on], np.arange(len(on))] = 1
    drawn = network.buses.load * models.load[0] + network.buses.shunt
    island = Flows(network).island
    drawn = np.where(island < 0, 0.0, drawn)
    rules = [p >= units.p_min[on], p <= units.p_max[on]]
    rules += [cp.sum((at @ p - drawn)[island == one]) == 0 for one in range(island.max() + 1)]
    states = [(network, 1.0), *((without(network, line), given.emergency) for line in given.lines)]
    for place, (state, factor) in enumerate(states):
        flows = Flows(state)
        rated = np.flatnonzero(flows.live & np.isfinite(lines.capacity))
        flow = flows.dense @ (at @ p - drawn)
        rules.append(cp.abs(flow[rated]) <= factor * lines.capacity[rated])
        if not place:
            bound = flows.live & np.isfinite(flows.high_angle)
            rules += [flow[bound] <= flows.high_angle[bound], flow[bound] >= flows.low_angle[bound]]
    cost = units.linear[on] @ p + units.constant[on].sum()
    problem = cp.Problem(cp.Minimize(cost), rules)
    problem.solve(solver=cp.CLARABEL)
    return problem.value


@settings(max_examples=5, deadline=None)
@given(seeds)
def test_costs_and_prices_agree_with_all_networks_at_once(seed):
    network = random_network(seed, buses=6, extra=3, tight=1.5).linearised()
    given = grid.contingencies(network, "all", 1.1)
    load = np.random.default_rng(seed).uniform(0.9, 1.0, (1, len(network.buses)))
    models = grid.Population(1, load=load)
    found = grid.solve_population(network, models, contingencies=given, keep=("line_price",))
    assert found.certified.all()
    truth = secured_cost(network, models, given)
    if not np.isfinite(found.cost[0]):
        assert truth is None or not np.isfinite(truth)
        return
    assert found.cost[0] == pytest.approx(truth, rel=1e-6, abs=1e-4)
    line = int(found.line_price[0].argmax())
    if found.line_price[0, line] < 1e-6:
        return
    slopes = []  # which cuts are made of; a kink has two
    for step in (1e-3, -1e-3):
        rated = network.branches.capacity.copy()
        rated[line] += step
        moved = grid.solve_population(network, models, contingencies=given, capacity=rated)
        slopes.append((found.cost[0] - moved.cost[0]) / step)
    assert slopes[0] - 1e-4 <= found.line_price[0, line] <= slopes[1] + 1e-4


def test_the_second_way_must_carry_the_lost_flow():
    # 100 MW of load, two ways of 50 MW each: unsecured, all of it is cheap (a-b takes 50).
    network = ring((60.0, 60.0, 60.0, 60.0))
    assert grid.solve_population(network).cost[0] == pytest.approx(1000.0)
    given = grid.contingencies(network)
    assert given.left_out == (3,)  # the spur
    # After the loss of either way the other one carries everything: 60 MW of it.
    found = grid.solve_population(network, contingencies=given, keep=("dispatch", "line_price"))
    np.testing.assert_allclose(found.dispatch[0], [60.0, 40.0], atol=1e-6)
    assert found.line_price[0].sum() == pytest.approx(40.0)
    loose = grid.contingencies(network, ["a-b"], 1.5)
    found = grid.solve_population(network, contingencies=loose, keep=("dispatch",))
    np.testing.assert_allclose(found.dispatch[0], [90.0, 10.0], atol=1e-6)


def test_lists_are_checked_by_name_and_number(tmp_path, monkeypatch):
    network = ring()
    assert grid.contingencies(network, ["c-b", 1]).lines == (0, 2)
    with pytest.raises(InputError, match=r"no branch 'x-y'.*called a-b, a-c, c-b"):
        grid.contingencies(network, ["x-y"])
    with pytest.raises(InputError, match="no branch 9"):
        grid.contingencies(network, [9])
    with pytest.raises(InputError, match="a-b is out of service"):
        grid.contingencies(without(network, 0), ["a-b"])
    with pytest.raises(InputError, match="must be 'all', or names"):
        grid.Certified(contingencies="a-b")
    with pytest.raises(InputError, match="none are listed"):
        grid.Certified(emergency=1.2)
    with pytest.raises(InputError, match=r"emergency is 0\.9"):
        grid.Certified(contingencies="all", emergency=0.9)
    with pytest.raises(InputError, match="can't be read"):
        grid.Certified.read("contingencies", str(tmp_path / "none.txt"))
    (tmp_path / "some.txt").write_text("a-b\n\nc-b\n", encoding="utf-8")
    assert grid.Certified.read("contingencies", str(tmp_path / "some.txt")) == ("a-b", "c-b")
    monkeypatch.setattr("gridveil.grid.opf.outages.MOST_PAIRS", 10)
    with pytest.raises(InputError, match="3 outages of a network with 4 branches are too many"):
        grid.contingencies(network)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("parameter", "rated"), [("capacity", 0.65), ("load", 0.8)])
def test_released_networks_survive_every_outage(parameter, rated, tmp_path):
    network = grid.cases.rts96()
    network = network.with_capacity(rated * network.branches.capacity)
    models = grid.sample_population(network, 12, spread=0.05, private=parameter, seed=0)
    ask = {"parameter": parameter, "epsilon": 1, "alpha": 60, "seed": 3}
    made = grid.release(network, models, **ask, contingencies="all", emergency=1.2)
    assert np.isfinite(made.secured.cost).all()
    settings = made.statement.body["settings"]
    assert (settings["contingencies"], settings["emergency"]) == ("all", 1.2)
    assert (settings["outages"], settings["outages_left_out"]) == (118, [52, 90])
    assert settings["models_not_served"] == 0
    # The control: the same noise, without the outages in the projection.
    plain = grid.release(network, models, **ask)
    given = grid.contingencies(network, "all", 1.2)
    left = grid.solve_population(plain.data, models, contingencies=given)
    assert not np.isfinite(left.cost).all()
    assert plain.secured is None
    assert "survives each of 118 listed outages" in " ".join(made.quality())
    found = grid.evaluate(made.write(tmp_path / "out"), network)
    assert found.secured[0].models > 0  # that the real network serves so
    assert found.secured[0].infeasible == 0.0
    assert len(found.to_json()["secured"]) == 2


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_names_of_branches_stay_out_of_plan_and_statement():
    network = grid.cases.rts96()
    models = grid.sample_population(network, 3, seed=0)
    names = network.branches.name
    planned = grid.plan(network, models, epsilon=1, alpha=30, contingencies=[names[51], names[4]])
    assert "branch 52 left out" in planned.assumed["outages"]
    shown = f"{planned!r} {json.dumps(planned.to_json())}"
    assert not any(names[place] in shown for place in (4, 51))
    made = planned.run(planned.study(1))
    settings = made.statement.body["settings"]
    assert settings["contingencies"] == [5, 52]
    assert (settings["outages"], settings["outages_left_out"]) == (1, [52])
    assert names[4] not in made.statement.to_json()


def test_solve_on_the_command_line():
    said = json.loads(
        run("grid", "solve", "rts96-paper", "--contingencies", "all", "--json").stdout
    )
    assert said["outages_left_out"] == ["207-208", "307-308"]
    assert (said["cost"], said["status"]) == (None, "infeasible")
    assert json.loads(run("grid", "solve", "rts96-paper", "--json").stdout)["cost"] > 0
    shown = run("grid", "solve", "rts96", "--contingencies", "all", "--emergency", "1.1")
    assert "cut the network apart: 207-208, 307-308" in shown.stdout


def test_a_release_says_how_many_models_survive(tmp_path, monkeypatch):
    """The report said it, and whoever made the release had to open it to know."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "outages.txt").write_text("101-102\n101-103\n")
    assert run("grid", "population", "rts96", "--size", 3, "-o", "m.parquet").exit_code == 0
    asked = ("--alpha", 5, "--population", "m.parquet", "--dataset", "x", "--ledger", "l.db")
    made = run("grid", "release", "rts96", *asked, "--contingencies", "outages.txt", "-o", "out")
    assert made.exit_code == 0, made.output
    words = " ".join(made.stdout.split())
    assert "The released network serves 3 of 3 models. It serves 3 of 3 models with one" in words
    assert "survives each of 2 listed outages (in DC)." in words
