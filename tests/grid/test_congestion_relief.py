"""Congestion that estimates make by themselves is taken out; what is really there stays."""

from dataclasses import replace

import numpy as np
import pytest

from gridveil import grid
from gridveil.grid.methods.base import PENALTY
from gridveil.grid.model.network import Branches, Buses, Generators, Network
from gridveil.grid.model.release_problem import ReleaseProblem
from gridveil.grid.restoration import congestion_relief
from gridveil.grid.restoration.congestion_relief import relieve
from gridveil.grid.restoration.master import Aim
from gridveil.grid.restoration.project import serve

REAL = [35.0, 40.0, 50.0]


@pytest.fixture(scope="module")
def problem():
    """Cheap power at one end of three parallel lines, dear power and a load at the other."""
    buses = Buses(("1", "2"), [0, 90], [0, 0], [True, False], [True, True])
    none = [0.0, 0.0]
    units = Generators(
        ("cheap", "dear"), [0, 1], none, [200, 200], [True, True], none, [10, 60], none, [None] * 2
    )
    ends = [-np.inf] * 3, [np.inf] * 3
    lines = Branches(
        ("a", "b", "c"),
        *([0] * 3, [1] * 3, [0.0] * 3, [0.1] * 3, [1.0] * 3, [0.0] * 3, REAL, *ends, [True] * 3),
    )
    network = Network("two buses", 100.0, buses, units, lines)
    _, public = network.split("capacity", (1.0, 10_000.0))
    models = grid.sample_population(network, 8, spread=0.05)
    return ReleaseProblem(public, models, 60)


def aim_at(problem, centre, deviation):
    weight = np.full(problem.public.entries, float(deviation)) ** -2
    return Aim(np.array(centre, float), weight, problem.public.low, problem.public.high)


def test_a_line_that_may_well_be_larger_is_moved(problem):
    # The three have one reactance, so the smallest limits all: the dear unit must help.
    found = relieve(aim_at(problem, [24.0, 40.0, 50.0], 15.0), problem, PENALTY)
    assert found.before > 0.5
    assert found.after < 0.3 * found.before
    # What costs nothing stays where it was.
    assert found.aim.centre[1:] == pytest.approx([40, 50], abs=0.1)


def test_little_is_moved_if_estimates_are_sure(problem):
    found = relieve(aim_at(problem, [20.0, 40.0, 50.0], 0.05), problem, PENALTY)
    # The congestion is there: estimates that are this good leave no other reading.
    assert found.before > 0.5
    assert found.after > 0.9 * found.before


def test_the_least_scale_decides_how_much_is_moved(problem, monkeypatch):
    aim = aim_at(problem, [28.0, 40.0, 50.0], 2.0)
    usual = relieve(aim, problem, PENALTY)
    monkeypatch.setattr(congestion_relief, "LEAST", 1.0)
    loose = relieve(aim, problem, PENALTY)
    assert usual.after < loose.after <= loose.before


def test_limits_that_estimates_break_are_not_taken_for_congestion(problem):
    tight = stuck(problem)
    aim = aim_at(tight, [10.0, 40.0, 50.0], 12.0)
    found = relieve(aim, tight, PENALTY)
    assert found.before > 1
    assert found.after < 0.1
    # Control: counted at the penalty, broken limits look like a network that is always congested.
    dear = ReleaseProblem(tight.public, tight.models, PENALTY)
    assert relieve(aim, dear, PENALTY).after > 2 * found.after


def test_a_line_whose_estimate_is_surely_wrong_is_moved(problem, monkeypatch):
    """The cost of an error of many deviations grows with its logarithm, not with its square."""
    aim = aim_at(problem, [24.0, 40.0, 50.0], 0.3)
    least = {"scale": congestion_relief.LEAST}
    found = relieve(aim, problem, PENALTY, **least)
    off = (found.aim.centre - aim.centre) * np.sqrt(aim.weight)
    assert off[0] > 4
    assert off[1:] == pytest.approx([0, 0], abs=0.1)
    # Control: with squares alone it stays where it is expensive.
    monkeypatch.setattr(congestion_relief, "_REWEIGHED", 0)
    squares = relieve(aim, problem, PENALTY, **least)
    assert squares.after > 2 * found.after
    # It is a minimum of what the module says, among the values between.
    every = np.arange(problem.models.size)
    costs = congestion_relief._Congestion(problem, every, PENALTY, aim.high)

    def said(values):
        square = aim.weight * (values - aim.centre) ** 2
        tails = 3 * np.log((5 + np.maximum(square, 1)) / 6) + np.minimum(square, 1) / 2
        return float(tails.sum() + costs.at(values)[0].mean() / congestion_relief.LEAST)

    between = [
        aim.centre + share * (found.aim.centre - aim.centre) for share in np.linspace(0, 1.2, 25)
    ]
    assert said(found.aim.centre) <= min(map(said, between)) + 0.1


def test_it_is_the_same_every_time(problem):
    one, two = (relieve(aim_at(problem, [5.0, 40.0, 50.0], 15.0), problem, 3e3) for _ in range(2))
    assert (one.aim.centre == two.aim.centre).all()


def test_values_lie_behind_the_edge_by_what_is_known_of_them(problem):
    """Given that real values serve the models, the mean of normal ones is behind the edge."""
    tight = stuck(problem)
    aim = aim_at(tight, [10.0, 40.0, 50.0], 8.0)
    how = {"margin": 0, "decimals": 3}
    served = [serve(aim, tight, **how, deep=deep) for deep in (False, True)]
    edge, deep = (one.values[0] for one in served)
    assert all(one.short == 0 for one in served)
    # The mean of the tail beyond the edge, drawn.
    rng = np.random.default_rng(0)
    drawn = rng.normal(10.0, 8.0, 2_000_000)
    assert deep == pytest.approx(drawn[drawn >= edge].mean(), abs=0.05)
    assert deep > edge + 1


def test_depth_is_given_up_if_it_costs_service(problem):
    aim = aim_at(stuck(problem), [10.0, 40.0, 50.0], 8.0)
    edge = serve(aim, stuck(problem), margin=0, decimals=3)
    # A box that ends just behind the edge has no room for more.
    tight = replace(aim, high=edge.values + 0.01)
    deep = serve(tight, stuck(problem), margin=0, decimals=3, deep=True)
    assert deep.short == 0
    assert deep.values == pytest.approx(edge.values, abs=0.02)


def stuck(problem):
    """The same without most of the dear unit: the lines decide whether the load is served."""
    models = problem.models
    most = np.tile([1.0, 0.2], (models.size, 1))
    return ReleaseProblem(problem.public, replace(models, p_max=most), problem.price)


@pytest.fixture(scope="module")
def congested():
    """RTS-96 with models, an aim at noisy capacities, and the price of congestion in the sum."""
    network = grid.cases.rts96(variant="paper")
    _, public = network.split("capacity", (1.0, 10_000.0))
    models = grid.sample_population(network, 8, spread=0.05, costs=0.1)
    problem = ReleaseProblem(public, models, 100)
    real = network.branches.capacity[public.support["capacity"]]
    noise = np.random.default_rng(3).laplace(0, 40, len(real))
    return problem, aim_at(problem, np.maximum(0.7 * real + noise, 1.0), 40.0)


def total(problem, aim, values):
    """What is minimised, with the scale at its least."""
    every = np.arange(problem.models.size)
    cost, _ = congestion_relief._Congestion(problem, every, PENALTY, aim.high).at(values)
    moved = aim.weight @ (values - aim.centre) ** 2
    return float(moved + 2 / congestion_relief.LEAST * cost.mean())


def test_model_by_model_the_same_minimum_is_found(congested, monkeypatch):
    """As on large networks: each model has its tangents, and a round looks at some of them."""
    problem, aim = congested
    monkeypatch.setattr(congestion_relief, "_ENOUGH", 0.05)
    monkeypatch.setattr(congestion_relief, "_REWEIGHED", 0)  # the sum is that of squares
    monkeypatch.setattr(congestion_relief, "_ROUNDS", 200)
    together = relieve(aim, problem, PENALTY, scale=congestion_relief.LEAST)
    least = total(problem, aim, together.aim.centre)
    assert least < 0.5 * total(problem, aim, aim.centre)
    for share in (0.005, 0.1):
        with monkeypatch.context() as large:
            large.setattr(congestion_relief, "LARGE", 0)
            large.setattr(congestion_relief, "pieces_for", lambda _: None)
            large.setattr(congestion_relief, "_ROUGHLY", share)
            one_by_one = relieve(aim, problem, PENALTY, scale=congestion_relief.LEAST)
        found = total(problem, aim, one_by_one.aim.centre)
        assert least - 0.06 <= found <= least * (1 + share) + 0.06
        assert one_by_one.before == pytest.approx(together.before, rel=1e-6)


def test_few_draws_are_enough_if_the_scale_is_surely_at_its_least(congested, monkeypatch):
    problem, aim = congested
    real = grid.cases.rts96(variant="paper").branches.capacity[problem.public.support["capacity"]]
    aim = aim_at(problem, 0.8 * real, 60.0)
    looks = []
    each = congestion_relief._Congestion.each

    def counted(costs, values, some):
        looks.append(len(some))
        return each(costs, values, some)

    monkeypatch.setattr(congestion_relief._Congestion, "each", counted)
    scales = []
    for draws in (congestion_relief._FEW_DRAWS, 10**6):
        monkeypatch.setattr(congestion_relief, "_FEW_DRAWS", draws)
        looks.clear()
        scales.append((relieve(aim, problem, PENALTY).after, len(looks)))
    assert scales[0][0] == scales[1][0]  # the same scale, so the same values
    assert scales[0][1] < scales[1][1]
