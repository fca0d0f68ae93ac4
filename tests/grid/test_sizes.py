"""Networks of any size: what is released follows from the step alone."""

from dataclasses import replace
from functools import cache, partial

import numpy as np
import pytest
from grid.releasing import request, tiny
from support.sizes import FULL

from gridveil.grid import release, sample_population, solve_population
from gridveil.grid.cases import rts96
from gridveil.grid.model.network import scaled, unit_of
from gridveil.grid.restoration.rounding import Rounding, decimals_for
from gridveil.privacy.exact_numbers import exact

pytestmark = pytest.mark.filterwarnings("ignore::gridveil.errors.NotPrivateWarning")

# About 0.07 MW, 1,000 GW, and 1 MW of load; powers of two, so that noise is the same but for them.
SIZES = [2.0**-17, 2.0**7, 2.0**-13][: 3 if FULL else 2]
MODELS = 20 if FULL else 6
RANGES = {"capacity": (50, 1000), "load": (0, 600), "generator_limit": (-50, 800)}


def sized(network, size):
    """The network with every power multiplied, that of the base among them."""
    return scaled(network, 1 / size)


def asked(names, size, **options):
    return {
        "parameter": names,
        "epsilon": 1,
        "alpha": exact(15 * size, name="alpha"),
        "range": {n: tuple(size * end for end in RANGES[n]) for n in names.split(",")},
        "seed": 3,
        **options,
    }


def released(names, method, size):
    """A release of the paper's network at another size, with the same noise but for it."""
    network = rts96(variant="paper")
    models = sample_population(network, MODELS, costs=(80, 100), private=names)
    options = {"rounds": 2} if method == "paper" else {}
    # Facts that only a file has (voltage levels) are in neither of the two.
    given = replace(network, source=None) if size == 1 else sized(network, size)
    return release(given, models, **asked(names, size, method=method, **options))


usual_release = cache(partial(released, size=1))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("names", "method"),
    [
        ("capacity", "certified"),
        ("load", "certified"),
        ("generator_limit", "certified"),
        ("capacity,load", "certified"),
        ("capacity", "paper"),
        ("load", "laplace"),
    ],
)
def test_a_network_of_another_size_is_released_alike(names, method, size):
    usual, other = usual_release(names, method), released(names, method, size)
    # Noise has a scale of 15 or more, and rounding may take a hundredth of it; a cut's room for
    # rounding, in some hundred entries, a little more.
    moved = np.abs(other.values / size - usual.values)
    if method == "paper":
        # Its restoration is not convex: the last digit can decide which line is held down.
        assert np.median(moved) <= 0.15
        return
    assert moved.max() <= 0.5
    served = [np.isfinite(one.solutions.cost) for one in (usual, other)]
    assert served[0].tolist() == served[1].tolist()
    assert other.solutions.cost[served[1]] / size == pytest.approx(
        usual.solutions.cost[served[0]], rel=1e-3
    )


def test_small_loads_are_not_rounded_away():
    network = sized(rts96(variant="paper"), 1e-4)
    total = network.buses.load.sum()
    made = release(network, **asked("load", 1e-6, range=(0, 0.06)))
    # Alpha is a thousandth of a typical load.
    assert made.data.buses.load == pytest.approx(network.buses.load, abs=3e-4)
    assert made.data.buses.load.sum() == pytest.approx(total, rel=1e-3)


def test_decimals_follow_from_the_noise_and_are_in_the_statement(tmp_path):
    names = ("capacity", "cost")
    given = {**request(names), "alpha": {"capacity": 5, "cost": "0.01"}, "seed": 1}
    made = release(tiny(tmp_path), **given)
    stated = made.statement.body["settings"]["decimals"]
    assert stated == {"capacity": 2, "cost": 4}
    for name, decimals in stated.items():
        values = made.values[made.public.parts[name]]
        assert (values == np.round(values, decimals)).all()
        assert (values != np.round(values, decimals - 1)).any()


@pytest.mark.parametrize("scale", [1e-6, 0.0123, 0.99, 1.0, 30.0, 5000.0])
def test_a_rounding_step_is_at_most_a_hundredth_of_the_noise(scale):
    decimals = decimals_for(scale)
    assert 10.0**-decimals <= scale / 100 * (1 + 1e-6)
    assert decimals == 2 or 10.0 ** (1 - decimals) > scale / 100


def test_entries_in_units_are_rounded_as_numbers():
    rounding = Rounding([2, 0], [0.25, 4.0])
    assert rounding(np.array([4.999, 0.3])).tolist() == [1.25 / 0.25, 0.25]
    assert rounding.step(2).tolist() == [0.04, 0.25]


@pytest.mark.parametrize("size", [1e-6, 1e-4, 1.0, 1e3, 1e5])
def test_the_engine_solves_networks_of_any_size_alike(size):
    network = rts96(variant="paper")
    models = sample_population(network, 20, costs=(80, 100))
    keep = ("dispatch", "flow", "line_price", "nodal_price")
    usual = solve_population(network, models, keep=keep)
    found = solve_population(sized(network, size), models, keep=keep)
    assert found.certified.all()
    assert found.cost / size == pytest.approx(usual.cost, rel=1e-9)
    assert found.flow / size == pytest.approx(usual.flow, abs=1e-4)
    assert found.line_price == pytest.approx(usual.line_price, abs=1e-4)
    capacity = sized(network, size).branches.capacity
    again = solve_population(sized(network, size), models, capacity=capacity)
    assert again.cost.tolist() == found.cost.tolist()


def test_a_tiny_network_has_no_solution_where_a_large_one_has_none():
    """A shortfall of 0.5 W is nothing beside MW, and much beside a watt."""
    network = rts96(variant="paper")
    small = sized(network, 2.0**-30)
    assert unit_of(network) == 1.0
    assert unit_of(small) < 1e-6
    tight = small.branches.capacity * 0.3
    assert np.isinf(solve_population(network, capacity=network.branches.capacity * 0.3).cost[0])
    assert np.isinf(solve_population(small, capacity=tight).cost[0])
