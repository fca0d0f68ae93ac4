"""Restoration by convex-concave steps: against proved optima, and against its own bound."""

from fractions import Fraction

import numpy as np
import pytest
from grid.instances import random_instance
from grid.test_restore_exact import INSTALLED, optimum, restore
from support.sizes import FULL

from gridveil.grid.model.population import Population
from gridveil.grid.model.public_network import split_parts
from gridveil.grid.model.release_problem import ReleaseProblem
from gridveil.grid.opf.engine import solve_population
from gridveil.grid.restoration.master import Unsolved
from gridveil.grid.restoration.paper_steps import Matcher

# In these one line must be narrowed, or two, or three together.
SOME = (0, 4, 7, 9, 16, 24, 33, 86)
SEEDS = range(100) if FULL else SOME
CLOSE = 1e-6


def steps(instance):
    """The same restoration by convex-concave steps."""
    low, high = float(instance.low.min()), float(instance.high.max())
    _, public = instance.network.split("capacity", (low, high))
    problem = ReleaseProblem(public, instance.models, Fraction(3000))
    return Matcher(problem, instance.low, instance.high).match(
        instance.models, instance.goal, instance.start
    )


def off(found, best):
    return (found.objective - best.objective) / max(1.0, abs(best.objective))


@pytest.mark.parametrize("seed", SEEDS)
def test_steps_reach_the_proved_optimum(seed):
    instance, best = optimum(seed)
    found = steps(instance)
    assert best.proved
    assert abs(off(found, best)) <= CLOSE
    assert found.bound <= best.objective + 1e-9 * max(1.0, best.objective)
    assert found.objective == pytest.approx(instance.objective(found.values), rel=1e-9)
    # SCIP, which takes longer: that it proves the same optima as HiGHS is a test of its own too.
    for solver in set(INSTALLED) - {"highs"} if FULL else ():
        other = restore(instance, solver, warm=found.values)
        assert other.proved
        assert abs(off(found, other)) <= CLOSE


def test_without_lines_held_down_they_end_elsewhere(monkeypatch):
    """The control: optima that one search from the usual points does not find."""
    monkeypatch.setattr("gridveil.grid.restoration.paper_capacity._TRIES", 0)
    missed = [abs(off(steps(random_instance(seed)), optimum(seed)[1])) > 1e-3 for seed in SOME]
    assert np.mean(missed) > 0.5


def test_lines_that_can_never_bind_are_not_held_down():
    instance = random_instance(0)
    _, public = instance.network.split("capacity", (0.5, 1e6))
    wide = np.full(len(instance.start), 1e5)
    problem = ReleaseProblem(public, instance.models, Fraction(3000))
    found = Matcher(problem, wide, 2 * wide).match(instance.models, instance.goal, wide)
    # Nothing moves any cost, so nothing moves.
    np.testing.assert_array_equal(found.values, wide)
    assert found.objective >= found.bound


def loads(seed):
    """Loads as what is restored: no models in the programme, but planes."""
    instance = random_instance(seed, models=1)
    units, buses = len(instance.network.generators), len(instance.network.buses)
    models = Population(
        1, p_max=np.full((1, units), 1.2), cost=instance.models.cost, load=np.ones((1, buses))
    )
    public = split_parts(instance.network, "load", {"load": (-500.0, 500.0)})[1]
    support = public.support["load"]
    real = instance.network.buses.load[support]
    rng = np.random.default_rng(seed)
    start = np.clip(real + rng.laplace(0, 0.1 * np.abs(real)), public.low, public.high)
    cost = solve_population(instance.network, models).cost
    return public, models, cost * 1.02, start


@pytest.mark.parametrize("seed", range(3))
def test_loads_are_restored_too_and_never_below_the_bound(seed):
    public, models, goals, start = loads(seed)
    matcher = Matcher(ReleaseProblem(public, models, Fraction(3000)), public.low, public.high)
    found = matcher.match(models, goals, start)
    cost = solve_population(public.with_values(found.values), models).cost
    objective = np.abs(cost - goals).sum() + np.abs(found.values - start).sum()
    assert found.objective == pytest.approx(objective, rel=1e-6)
    assert found.bound <= found.objective + 1e-6
    # A goal above the cost is met by a little more load somewhere.
    assert np.abs(cost - goals).sum() <= 1e-3 * goals.sum()
    # Planes of the first call are still there in the second, which ends where it did.
    again = matcher.match(models, goals, start)
    assert again.objective == pytest.approx(found.objective, rel=1e-6)


def test_a_box_that_serves_nobody_is_said_to_be_one():
    public, models, goals, start = loads(0)
    ends = np.full(len(start), 400.0), np.full(len(start), 500.0)
    matcher = Matcher(ReleaseProblem(public, models, Fraction(3000)), *ends)
    with pytest.raises(Unsolved, match="serve the chosen models"):
        matcher.match(models, goals, start)
