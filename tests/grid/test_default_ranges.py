"""The range of private values where the owner names none: from public facts, for any size."""

import numpy as np
import pytest
from grid.making import tables, write_case
from grid.releasing import models_for, tiny

from gridveil import grid
from gridveil.errors import InputError
from gridveil.grid import read_case
from gridveil.grid.cases import rts96
from gridveil.grid.evaluation import evaluate
from gridveil.grid.model.default_ranges import default_range
from gridveil.grid.model.network import scaled
from gridveil.grid.release import plan


@pytest.mark.parametrize(
    ("names", "name", "expected"),
    [
        ("capacity", "capacity", (1, 50_000)),
        ("load", "load", (-20_000, 20_000)),
        ("generator_limit", "generator_limit", (-100_000, 100_000)),
        ("cost", "cost", (-1000, 1000)),
        ("capacity,load", "capacity", (1, 50_000)),
        ("capacity,generator_limit", "capacity", (0.1, 20_000)),
        ("load,generator_limit", "load", (-50_000, 50_000)),
    ],
)
def test_ranges_follow_from_what_is_public(names, name, expected):
    assert default_range(rts96(), tuple(names.split(",")), name) == expected


@pytest.mark.parametrize("size", [1e-5, 1e-3, 1, 30])
@pytest.mark.parametrize("name", ["capacity", "load", "generator_limit"])
def test_no_value_is_clipped_whatever_the_size(name, size):
    network = scaled(rts96(), 1 / size)
    low, high = default_range(network, (name,), name)
    values = {
        "capacity": network.branches.capacity,
        "load": network.buses.load,
        "generator_limit": np.concatenate([network.generators.p_min, network.generators.p_max]),
    }[name]
    there = values[values != 0]
    assert low <= there.min()
    assert there.max() <= high <= 100 * 10_215 * size


@pytest.mark.parametrize("names", ["capacity", "load", "generator_limit", "capacity,load"])
def test_ranges_never_read_what_is_private(names, tmp_path):
    """Twins that differ in private values alone have the same ranges."""
    found = []
    for factor in (1.0, 700.0):
        network = rts96()
        parts = names.split(",")
        if "capacity" in parts:
            network = network.with_capacity(network.branches.capacity * factor)
        if "load" in parts:
            network = network.with_load(network.buses.load * factor)
        if "generator_limit" in parts:
            units = network.generators
            network = network.with_limits(units.p_min * factor, units.p_max * factor)
        found.append([default_range(network, tuple(parts), name) for name in parts])
    assert found[0] == found[1]


def test_where_nothing_is_public_the_owner_is_asked():
    names = ("capacity", "load", "generator_limit")
    for name in names:
        # From 1 MW on all small loads and units would count as 1 MW.
        low = 1 if name == "capacity" else 0
        with pytest.raises(InputError, match=f"--range {name}={low}:5000"):
            default_range(rts96(), names, name)
    unlimited = rts96().with_capacity(np.full(120, np.inf))
    with pytest.raises(InputError, match="Nothing public tells how large values of load"):
        plan(unlimited, parameter="load,generator_limit", epsilon=1, alpha=5)


def test_release_and_evaluation_state_the_same_range(tmp_path, ledger):
    network = tiny(tmp_path)
    models = models_for(network, "load")
    made = grid.release(
        network,
        models,
        parameter="load",
        epsilon=1,
        alpha=4,
        method="laplace",
        dataset="tiny",
        ledger=ledger,
    )
    found = evaluate(made.write(tmp_path / "out"), network)
    stated = made.statement.body["guarantee"]["neighbours"][0]["range"]
    assert list(found.parameters[0].range) == stated
    assert stated[0] == 0  # all loads draw power


def test_a_small_capacity_is_not_raised(tmp_path):
    """A rating of 0.4 MW in a network of a few MW was clipped to 1 MW."""
    parts = tables()
    for table, columns in (("bus", [2]), ("gen", [8, 9]), ("branch", [5, 6, 7])):
        parts[table][:, columns] *= 0.004
    network = read_case(write_case(tmp_path, parts))
    low, _ = default_range(network, ("capacity",), "capacity")
    assert low <= network.branches.capacity.min() < 1
