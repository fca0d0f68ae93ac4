"""The checker names every problem it finds."""

from dataclasses import replace

import numpy as np
import pytest
from grid.making import write_case

from gridveil.errors import InputError
from gridveil.grid import Branches, Buses, Generators, Network, cases, check, problems, read_case


@pytest.fixture
def tiny(tmp_path):
    return read_case(write_case(tmp_path))


def change(network, table, **columns):
    return replace(network, **{table: replace(getattr(network, table), **columns)})


def found(network):
    return [f"{p.element}: {p.what}" for p in problems(network)]


def test_good_networks_have_no_problem(tiny):
    assert problems(tiny) == []
    assert check(cases.rts96()).name == "rts96"


BAD = {
    "nan load": ("buses", {"load": [0, np.nan, 1]}, "bus 2: not a finite number"),
    "infinite limit": ("generators", {"p_max": [np.inf, 100, 0]}, "generator g1: not a finite"),
    "nan capacity": ("branches", {"capacity": [1, np.nan, 1]}, "branch 2-3: not a finite"),
    "unknown bus": ("generators", {"bus": [0, 3, 1]}, "generator g3: there is no such bus"),
    "negative place": ("branches", {"to_bus": [1, 2, -1]}, "branch 1-3: there is no such bus"),
    "no impedance": (
        "branches",
        {"reactance": [0, 0.2, 0.3], "resistance": [0, 0, 0]},
        "branch 1-2: it has no impedance",
    ),
    "duplicate": ("buses", {"name": ("1", "2", "2")}, "bus 2: the name is not unique"),
    "empty name": ("buses", {"name": ("1", "2", " ")}, "bus ' ': the name is empty"),
    "negative capacity": ("branches", {"capacity": [-1, 1, 1]}, "branch 1-2: the capacity is neg"),
    "crossed limits": ("generators", {"p_min": [130, 20, -9]}, "generator g1: the lower limit"),
    "concave": ("generators", {"quadratic": [-1, 0, 0]}, "generator g1: the quadratic cost"),
    "not convex": (
        "generators",
        {"points": (None, np.array([[0, 0], [1, 20], [2, 30.0]]), None)},
        "generator g3: the piecewise-linear cost is not convex",
    ),
    "points too steep": (
        "generators",
        {"points": (None, np.array([[0, 0], [1e-320, 3200.0]]), None)},
        "generator g3: the piecewise-linear cost has a segment of no finite slope",
    ),
    "points too far apart": (
        "generators",
        {"points": (None, np.array([[-1e308, -1e308], [1e308, 1e308]]), None)},
        "generator g3: the piecewise-linear cost has a segment of no finite slope",
    ),
    "points back": (
        "generators",
        {"points": (None, np.array([[0, 0], [0, 30.0]]), None)},
        "generator g3: the outputs of a piecewise-linear cost do not go up",
    ),
    "one point": (
        "generators",
        {"points": (None, np.array([[0, 0.0]]), None)},
        "generator g3: a piecewise-linear cost needs two points",
    ),
    "no reference": ("buses", {"reference": [False] * 3}, "island of bus 1: it has no reference"),
    "two": ("buses", {"reference": [True] * 3}, "island of bus 1: it has 3 reference buses"),
    "no generator": (
        "generators",
        {"in_service": [False] * 3},
        "island of bus 1: it has load and no generator",
    ),
    "all out": ("buses", {"in_service": [False] * 3}, "network: no bus is in service"),
    "loop": ("branches", {"to_bus": [0, 2, 2]}, "branch 1-2: both ends are the same bus"),
    "tap": ("branches", {"tap": [-1, 1, 1]}, "branch 1-2: the ratio is not positive"),
    "angles": (
        "branches",
        {"angle_min": [5, 0, 0], "angle_max": [1, 1, 1]},
        "branch 1-2: the lower angle limit is above",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_each_problem_is_found(tiny, case):
    table, columns, message = BAD[case]
    bad = change(tiny, table, **columns)
    assert any(line.startswith(message) for line in found(bad)), found(bad)
    with pytest.raises(InputError, match="problem"):
        check(bad)


def test_no_problem_shows_a_value_that_may_be_private(tiny):
    for table, columns in (
        ("branches", {"capacity": [-71.37, 1, 1]}),
        ("generators", {"p_min": [71.37, 20, -9], "p_max": [-71.37, 100, 0]}),
        ("generators", {"quadratic": [-71.37, 0, 0]}),
        ("generators", {"points": (None, np.array([[0, 0], [1, 71.37], [2, 7.137]]), None)}),
    ):
        with pytest.raises(InputError, match="problem") as error:
            check(change(tiny, table, **columns))
        assert "7137" not in str(error.value).replace(".", "")


def test_all_problems_are_found_at_once(tiny):
    bad = tiny
    for case in ("nan load", "negative capacity", "crossed limits", "no reference", "not convex"):
        table, columns, _ = BAD[case]
        bad = change(bad, table, **columns)
    messages = [BAD[c][2] for c in ("nan load", "negative capacity", "no reference")]
    for message in messages:
        assert any(line.startswith(message) for line in found(bad))
    assert len(found(bad)) == 5


def test_the_error_lists_ten_and_counts_the_rest():
    network = cases.rts96()
    bad = network.with_capacity(np.full(120, -1.0))
    with pytest.raises(InputError, match="120 problems") as error:
        check(bad)
    assert str(error.value).count("\n  - ") == 10
    assert "and 110 more" in str(error.value)


def test_empty_network():
    none = Network(
        "none",
        0.0,
        Buses((), [], [], [], []),
        Generators((), [], [], [], [], [], [], [], ()),
        Branches((), [], [], [], [], [], [], [], [], [], []),
    )
    lines = found(none)
    assert len(lines) == 4
    assert "network: the base power is not positive" in lines


def test_out_of_service_elements_may_be_odd(tiny):
    off = change(tiny, "branches", in_service=[False, True, True], reactance=[0, 0.2, 0.3])
    assert problems(change(off, "branches", resistance=[0, 0, 0])) == []


def test_islands_with_their_own_reference_are_fine(tiny):
    cut = change(tiny, "branches", in_service=[True, False, False])
    assert found(cut) == ["island of bus 3: it has no reference bus"]
    assert problems(change(cut, "buses", reference=[True, False, True])) == []


def test_a_load_that_a_shunt_makes_up_for_is_still_one(tiny):
    # Whether the two cancel out is private where loads are.
    shut = change(tiny, "generators", in_service=[False] * 3)
    for load in ([-5.0, 0, 0], [-5.1, 0, 0]):
        lines = found(change(shut, "buses", load=load, shunt=[5.0, 0, 0]))
        assert lines == ["island of bus 1: it has load and no generator in service"]
