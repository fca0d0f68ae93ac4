"""The network model: immutable, splits by parameter, and is whole again with values."""

import pickle
from dataclasses import FrozenInstanceError, replace
from itertools import combinations

import numpy as np
import pytest
from grid.making import tables, write_case
from grid.reference import random_network
from hypothesis import given
from hypothesis import strategies as st

from gridveil.errors import InputError, SealedError
from gridveil.grid import Buses, cases, read_case
from gridveil.grid.model.costs import clip_points, cost_at, slopes
from gridveil.grid.model.declarations import Declared
from gridveil.grid.model.parameters import PARAMETERS
from gridveil.grid.model.public_network import split_parts
from gridveil.privacy.sealed import Range, unseal

RANGES = {
    "capacity": (1, 5000),
    "load": (-100, 1000),
    "generator_limit": (-100, 1000),
    "cost": (-50, 200),
    "reactive_load": (-100, 1000),
}
SUBSETS = [
    names
    for count in range(1, 6)
    for names in combinations(PARAMETERS, count)
    if "reactive_load" not in names or "load" in names
]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return read_case(write_case(tmp_path_factory.mktemp("tiny")))


def test_nothing_can_be_changed(tiny):
    with pytest.raises(ValueError, match="read-only"):
        tiny.branches.capacity[0] = 1
    with pytest.raises(ValueError, match="read-only"):
        tiny.generators.points[1][0, 0] = 1
    with pytest.raises(FrozenInstanceError):
        tiny.name = "other"
    mine = np.ones(3)
    changed = tiny.with_load(mine)
    mine[0] = 7
    assert changed.buses.load[0] == 1


def test_columns_must_match():
    with pytest.raises(InputError, match="2 names and 1 entries of load"):
        Buses(("a", "b"), [1.0], [0, 0], [True, False], [True, True])
    with pytest.raises(InputError, match="load are not all numbers"):
        Buses(("a",), ["secret"], [0], [True], [True])


def test_repr_says_what_there_is(tiny):
    assert repr(tiny) == (
        "Network 'tiny' on 100 MVA\n"
        "  buses       3, load 150.0 MW on 2\n"
        "  branches    3, 2 of them limited\n"
        "  generators  3, capacity 219.0 MW"
    )


def test_repr_counts_loads_in_service_as_it_sums_them(tiny):
    buses = replace(tiny.buses, in_service=tiny.buses.load == tiny.buses.load.max())
    shown = repr(replace(tiny, buses=buses))
    assert f"3 (2 out of service), load {tiny.buses.load.max():.1f} MW on 1\n" in shown


def ranges(names):
    return {name: RANGES[name] for name in names}


@pytest.mark.parametrize("names", SUBSETS)
def test_split_and_back(tiny, names):
    whole = tiny.linearised() if "cost" in names else tiny
    sealed, public = split_parts(
        whole, names[::-1], ranges(names), declared=Declared(public_curves=True)
    )
    assert public.parameters == names
    assert (sealed.name, len(sealed)) == (", ".join(names), public.entries)
    vectors = unseal(sealed)
    vector = np.concatenate(vectors)
    assert (public.low <= vector).all()
    assert (vector <= public.high).all()
    np.testing.assert_array_equal(public.signs, np.sign(vector))
    assert len(public.entry_names()) == public.entries
    again = public.with_values(vector)
    for name, held in zip(names, vectors, strict=True):
        np.testing.assert_array_equal(vector[public.parts[name]], held)
        table, columns = PARAMETERS[name].table, PARAMETERS[name].columns
        for column in columns:
            np.testing.assert_array_equal(
                getattr(getattr(again, table), column), getattr(getattr(whole, table), column)
            )
            with pytest.raises(SealedError, match=rf"{column} is private .*split by {name}\)"):
                getattr(getattr(public, table), column)
    np.testing.assert_array_equal(public.branches.reactance, whole.branches.reactance)


def test_one_parameter_is_a_vector_and_several_are_a_tuple(tiny):
    sealed, public = tiny.split("capacity", (1, 100))
    assert (sealed.name, sealed.unit, len(sealed)) == ("capacity", "MW", 2)
    assert unseal(sealed).tolist() == [80, 70]
    assert public.ranges == {"capacity": Range(1, 100)}
    network = tiny.linearised()
    for names in ("cost, capacity", ("capacity", "cost"), ["cost", "capacity"]):
        sealed, public = network.split(names, {"cost": (0, 100), "capacity": Range(1, 300)})
        assert (sealed.name, sealed.unit) == ("capacity, cost", "MW, $/MWh")
        assert (sealed.shape, sealed.range) == ((5,), Range(0, 300))
        assert [len(vector) for vector in unseal(sealed)] == [2, 3]
        assert public.parameters == ("capacity", "cost")
        assert public.parts == {"capacity": slice(0, 2), "cost": slice(2, 5)}
        assert public.entry_names()[1:3] == ("capacity 2-3", "cost g1")
    assert repr(public) == (
        "PublicNetwork 'tiny' on 100 MVA\n"
        "  private     capacity: 2 entries in MW, in [1, 300]\n"
        "  private     cost: 3 entries in $/MWh, in [0, 100]\n"
        "  public      3 buses, 3 branches, 3 generators"
    )


def test_the_box_of_an_entry_is_on_its_side_of_zero(tiny):
    network = tiny.with_load([-20, 90, 60])
    _, public = network.split(
        "load,generator_limit", ranges(["load", "generator_limit"]), public_curves=True
    )
    assert public.entry_names() == (
        *("load 1", "load 2", "load 3"),
        *("generator_limit g1 p_min", "generator_limit g3 p_min", "generator_limit g2 p_min"),
        *("generator_limit g1 p_max", "generator_limit g3 p_max", "generator_limit g2 p_max"),
    )
    assert public.signs.tolist() == [-1, 1, 1, 1, 1, -1, 1, 1, -1]
    assert public.low.tolist() == [-100, 0, 0, 0, 0, -100, 0, 0, -100]
    assert public.high.tolist() == [0, 1000, 1000, 1000, 1000, 0, 1000, 1000, 0]
    with pytest.raises(ValueError, match="read-only"):
        public.signs[0] = 1
    sealed, public = network.split("load", (10, 75))
    assert (public.low.tolist(), public.high.tolist()) == ([10, 10, 10], [10, 75, 75])
    assert unseal(sealed).tolist() == [10, 75, 60]
    sealed, public = network.split("load", (-75, -10))
    assert (public.low.tolist(), public.high.tolist()) == ([-75, -10, -10], [-10, -10, -10])
    assert unseal(sealed).tolist() == [-20, -10, -10]
    _, public = network.split("capacity", (5, 75))
    assert (public.low.tolist(), public.high.tolist()) == ([5, 5], [75, 75])


@given(
    st.lists(st.floats(-500, 500).filter(bool), min_size=3, max_size=3),
    st.floats(-400, 300),
    st.floats(1, 300),
)
def test_a_sealed_value_is_in_its_box(loads, low, width):
    base = cases.rts96()
    network = base.with_load(np.resize(loads, len(base.buses)))
    sealed, public = network.split("load", (low, low + width))
    values = unseal(sealed)
    assert ((public.low <= values) & (values <= public.high)).all()
    inside = (public.low >= low) & (public.high <= low + width)
    assert inside.all()
    assert (public.signs * values >= -max(low, -low - width, 0)).all()


@pytest.mark.parametrize("names", SUBSETS)
def test_public_network_holds_no_private_number(tmp_path, names):
    parts = tables()
    place = {
        "capacity": ("branch", [5], np.array([[71.13], [72.17], [0]])),
        "load": ("bus", [2], np.array([[0], [73.19], [74.23]])),
        "generator_limit": (
            "gen",
            [8, 9],
            np.array([[175.29, 15.31], [176.37, 21.41], [-1.43, -9.47]]),
        ),
        "cost": ("gencost", [5], np.array([[77.53], [78.59], [79.61], [0], [0], [0]])),
        "reactive_load": ("bus", [3], np.array([[0], [-13.67], [14.71]])),
    }
    if "cost" in names:
        parts["gencost"][:, 4:] = 0
        parts["gencost"][:, 0] = 2
    else:
        parts["gencost"][1, [4, 8, 9]] = 21.41, 176.37, 5500
    for table, columns, values in (place[name] for name in names):
        parts[table][:, columns] = values
    network = read_case(write_case(tmp_path, parts))
    _, public = network.split(names, ranges(names), public_curves=True)
    held = pickle.dumps(public)
    whole = pickle.dumps(replace(network, source=None))
    for value in np.concatenate([place[name][2].ravel() for name in names]):
        if value:
            assert np.float64(value).tobytes() in whole
            assert np.float64(value).tobytes() not in held
            assert repr(float(value)).encode() not in held


def test_notes_of_the_reader_stay_with_the_owner(tiny):
    """They may have been made from private values: how many units have no limit, for example."""
    noted = replace(tiny, notes=("3 units have no limit",))
    _, public = noted.split("load", (-10, 100))
    assert public.with_values(public.high).notes == ()
    assert "no limit" not in f"{public!r}{public.with_values(public.high)!r}"


def test_only_the_support_is_private(tiny):
    _, public = tiny.split("capacity", Range(1, 100))
    assert public.entry_names() == ("1-2", "2-3")
    assert np.isinf(public.with_values([5, 6]).branches.capacity[2])
    _, public = tiny.split("load", (-10, 100))
    assert public.entry_names() == ("2", "3")
    _, public = tiny.split("generator_limit", (-10, 200), public_curves=True)
    assert public.entry_names()[:2] == ("g1 p_min", "g3 p_min")


def test_values_outside_the_range_are_clipped(tiny):
    sealed, _ = tiny.split("capacity", (1, 75))
    assert unseal(sealed).tolist() == [75, 70]


def test_splits_that_are_refused(tiny):
    with pytest.raises(InputError, match="positive lower end"):
        tiny.split("capacity", (0, 100))
    with pytest.raises(InputError, match="not a parameter that can be private"):
        tiny.split("reactance", (0, 100))
    with pytest.raises(InputError, match="linearised"):
        tiny.split("cost", (0, 100))
    with pytest.raises(InputError, match="two finite ends"):
        tiny.split("load", (0, np.inf))
    for odd in (5, (1, 2, 3), ("a", "b"), None):
        with pytest.raises(InputError, match="pair of numbers"):
            tiny.split("load", odd)
    _, public = tiny.split("capacity", (1, 100))
    with pytest.raises(InputError, match="not all numbers"):
        public.with_values(["a", "b"])
    with pytest.raises(InputError, match="needs 2 numbers"):
        public.with_values([1, 2, 3])
    with pytest.raises(InputError, match="needs 2 numbers"):
        public.with_values([1, np.nan])


@pytest.mark.parametrize(
    ("names", "limits", "says"),
    [
        ("capacity,load", (1, 100), "capacity and load need a public range each"),
        ("capacity,load", {"capacity": (1, 100)}, "are for capacity, and private is"),
        ("load", {"capacity": (1, 100), "load": (1, 100)}, "are for capacity, load, and private"),
        ("load", {}, "are for nothing"),
        ("capacity,load", {"capacity": (0, 9), "load": (0, 9)}, "capacities starts at 0"),
        ("capacity,load", {"capacity": (1, 9), "load": 5}, "pair of numbers"),
        ("load,load", {"load": (0, 9)}, "named twice"),
        ("load,", {"load": (0, 9)}, "'' is not a parameter"),
        (("load", "voltage"), {"load": (0, 9)}, "'voltage' is not a parameter"),
        ((), {}, "type tuple names no parameter"),
        ((71.13, "load"), {"load": (0, 9)}, "type float is not a parameter"),
        (np.array([71.13]), {"load": (0, 9)}, "type ndarray names no parameter"),
        ("load,cost", {"load": (0, 9), "cost": (0, 9)}, "linearised"),
        ("generator_limit,cost", {"generator_limit": (0, 9), "cost": (0, 9)}, "linearised"),
    ],
)
def test_several_parameters_that_are_refused(tiny, names, limits, says):
    for cut in (tiny.split, lambda *given: split_parts(tiny, *given)):
        with pytest.raises(InputError, match=says) as caught:
            cut(names, limits)
        assert "71.13" not in str(caught.value)


def test_linearised_costs_are_mean_slopes(tiny):
    linear = tiny.linearised().generators
    assert linear.linear.tolist() == pytest.approx([20 + 0.02 * 130, 1900 / 80, 40])
    assert not linear.quadratic.any()
    assert linear.points == (None, None, None)


def test_islands():
    network = cases.rts96()
    assert set(network.islands()) == {0}
    inside = [len({end[0] for end in name.split("-")}) == 1 for name in network.branches.name]
    cut = replace(network, branches=replace(network.branches, in_service=inside))
    areas = np.array([int(name[0]) - 1 for name in network.buses.name])
    np.testing.assert_array_equal(cut.islands(), areas)


def test_read_case_tells_what_it_can_read():
    with pytest.raises(InputError, match=r"ends in one of \.m, \.json, \.nc"):
        read_case("grid.xlsx")
    with pytest.raises(InputError, match="Expected a network, got an object of type dict"):
        read_case({})


def test_a_mat_file_is_to_be_saved_as_m(tmp_path):
    with pytest.raises(InputError, match=r"case\.mat.*savecase"):
        read_case(tmp_path / "case.mat")


def test_a_curve_of_one_line_has_no_inner_points():
    base = cases.rts96().generators
    line = np.array([[10.0, 105.0], [60.0, 605.0]])
    units = replace(base, points=(line,) + (None,) * (len(base) - 1))
    assert clip_points(units, 20, 30).points[0].tolist() == [[20, 205], [30, 305]]
    assert clip_points(units, 20, 20).points[0].tolist() == [[20, 205], [21, 215]]


@given(
    st.lists(st.floats(0.5, 50), min_size=2, max_size=6),
    st.lists(st.floats(0, 100), min_size=6, max_size=6),
    st.floats(-50, 150),
    st.floats(1, 300),
)
def test_clipped_curves_keep_their_lines(widths, steep, low, width):
    x = np.concatenate([[0], np.cumsum(widths)])
    y = np.concatenate([[10], 10 + np.cumsum(np.sort(steep)[: len(widths)] * widths)])
    points = np.column_stack([x, y])
    base = cases.rts96().generators
    units = replace(base, points=(points,) + (None,) * (len(base) - 1))
    clipped = clip_points(units, low, low + width).points[0]
    assert clipped[0, 0] == min(low, points[1, 0] - 1)
    assert clipped[-1, 0] == max(low + width, points[-2, 0] + 1)
    np.testing.assert_array_equal(clipped[1:-1], points[1:-1])
    assert (np.diff(slopes(clipped)) > -1e-3).all()
    for at in np.linspace(low, low + width, 7):
        # Slopes of the end segments are rounded to 1e-4 $/MWh.
        assert cost_at(clipped, at) == pytest.approx(cost_at(points, at), abs=1e-4 * 400 + 0.02)


def curve(low, high, inner):
    """A piecewise-linear cost between two limits, sampled from a quadratic one."""
    x = np.concatenate([[low], inner, [high]])
    return np.column_stack([x, 0.02 * x**2 + 13 * x])


@pytest.mark.parametrize("inner", [np.linspace(47.3, 311.9, 4)[1:-1], [60.0, 100.0, 200.0], []])
def test_curves_that_tell_a_unit_s_limits_are_refused_where_these_are_private(inner):
    network = random_network(1)
    units = network.generators
    points = (curve(47.3, 311.9, inner), *(None,) * (len(units) - 1))
    network = replace(network, generators=replace(units, points=points))
    with pytest.raises(InputError, match="piecewise-linear costs") as caught:
        network.split("generator_limit", (-500, 500))
    assert units.name[0] in str(caught.value)
    _, public = network.split("generator_limit", (-500, 500), public_curves=True)
    # The control: what the curve gives away once it is published.
    x = public.generators.points[0][1:-1, 0]
    if len(x) == 2:
        assert [2 * x[0] - x[1], 2 * x[1] - x[0]] == pytest.approx([47.3, 311.9])
    assert public.generators.points[0][[0, -1], 0].tolist() == [-500, 500]
    # Other parameters leave the curve as it is, and private costs leave none.
    network.split("capacity", (1, 500))
    network.linearised().split("generator_limit,cost", ranges(["generator_limit", "cost"]))


def test_two_points_that_are_published_give_limits_away():
    """Why they are refused: the slope and the intercept in clear, and the units that fit them."""
    rng = np.random.default_rng(9)
    network = random_network(1)
    units, found = network.generators, 0
    for _ in range(10):
        low, high = np.sort(rng.integers(10, 250, 2)) + (0, 20)
        points = np.round(curve(low, high, []), 2)
        one = replace(units, points=(points, *(None,) * (len(units) - 1)))
        _, public = replace(network, generators=one).split(
            "generator_limit", (-500, 500), public_curves=True
        )
        x = np.arange(10, 271)
        y = np.round(0.02 * x**2 + 13 * x, 2)
        a, b = np.meshgrid(np.arange(len(x)), np.arange(len(x)), indexing="ij")
        a, b = a[a < b], b[a < b]
        slope = (y[b] - y[a]) / (x[b] - x[a])
        lines = np.column_stack([slope, y[a] - slope * x[a]])
        (x0, y0), (x1, y1) = public.generators.points[0]
        told = np.array([(y1 - y0) / (x1 - x0), y0 - (y1 - y0) / (x1 - x0) * x0])
        fits = (np.abs(lines - told) < (6e-5, 6e-3)).all(1)
        found += fits.sum() == 1 and [x[a[fits][0]], x[b[fits][0]]] == [low, high]
    assert found >= 5
