"""pandapower nets in and out. Runs where pandapower is installed (tests/optional/run)."""

import copy
import functools
import json
import logging
import sys
import warnings
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from fuzz.mutations import random_choices
from fuzz.tables import check_source, mutate_file, mutate_table
from hypothesis import given, settings
from hypothesis import strategies as st
from support.sizes import FULL

from gridveil import grid
from gridveil.errors import InputError
from gridveil.grid.evaluation import evaluate
from gridveil.grid.io import pandapower as fmt
from gridveil.grid.io import read_case
from gridveil.grid.io.pandapower.costs import unit_places
from gridveil.grid.io.substitutes import light_dispatch
from gridveil.grid.model.population import Population
from gridveil.grid.opf.engine import solve_population
from gridveil.grid.picture import mapped_positions

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pp = pytest.importorskip("pandapower", reason="pandapower is not installed")
    nw = pytest.importorskip("pandapower.networks", reason="pandapower is not installed")

# The library's own warnings are not ours to fix.
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]
PARAMETERS = ("capacity", "load", "generator_limit", "cost")
SETS = [(name,) for name in PARAMETERS] + list(combinations(PARAMETERS, 2)) + [PARAMETERS]


def wide_net():
    return copy.deepcopy(_wide_net())


@functools.cache
def _wide_net():
    """Every element that is read, with numbers that turn up nowhere else."""
    net = pp.create_empty_network(name="wide", sn_mva=100.0, add_stdtypes=True)
    for k in range(7):
        pp.create_bus(net, 20.0 if k == 5 else 110.0, name=f"node {k}", geodata=(k, 2.0 * k))
    for k, (a, b) in enumerate([(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (1, 3)]):
        pp.create_line_from_parameters(
            net, a, b, 10.0 + k, 0.06, 0.4 + k / 100, 9.0, 0.09459 + k / 91, name=f"line {k}",
            max_loading_percent=77.31, parallel=1 + k % 2, df=0.9713,
        )  # fmt: skip
    pp.create_transformer_from_parameters(
        net, 2, 5, 63.137, 110.0, 20.5, 0.41, 11.37, 17.3, 0.23, shift_degree=30.0,
        tap_side="hv", tap_neutral=0, tap_pos=3, tap_step_percent=1.5, tap_step_degree=0.0,
        tap_changer_type="Ratio", max_loading_percent=88.13, name="trafo", df=0.9517,
    )  # fmt: skip
    pp.create_impedance(net, 0, 2, 0.01, 0.0913, 71.239, name="tie")
    pp.create_switch(net, 4, 6, "b", closed=True)
    pp.create_switch(net, 1, 5, "l", closed=False)
    for k, bus in enumerate([1, 2, 3, 5, 6, 6]):
        pp.create_load(
            net, bus, 13.1717 + 3.7 * k, 2.3131 + k / 7, scaling=0.9331 + k / 97, name=f"load {k}",
            controllable=k == 2, min_p_mw=1.1379 + k / 89, max_p_mw=26.9731 + 4.1 * k,
            sn_mva=28.3719 + 4.1 * k,
        )  # fmt: skip
    pp.create_ext_grid(net, 0, min_p_mw=-91.773, max_p_mw=141.991, name="grid")
    pp.create_gen(net, 3, 11.7719, min_p_mw=3.1187, max_p_mw=61.7273, name="gen", sn_mva=61.7273)
    pp.create_gen(net, 1, 9.3719, controllable=False, name="fixed gen")
    pp.create_sgen(net, 4, 7.9133, 1.0, scaling=0.871, controllable=False, name="fixed sgen")
    pp.create_sgen(
        net, 5, 3.0917, controllable=True, min_p_mw=0.3331, max_p_mw=21.3313, name="sgen",
        min_q_mvar=-1.0, max_q_mvar=1.0, scaling=0.8837,
    )  # fmt: skip
    pp.create_shunt(net, 2, 0.5, p_mw=1.7, vn_kv=105.0, step=2)
    for element, kind, price in [(0, "ext_grid", 41.377), (0, "gen", 23.711), (1, "sgen", 9.173)]:
        pp.create_poly_cost(net, element, kind, cp1_eur_per_mw=price)
    # Fixed: a cost that does not count.
    pp.create_poly_cost(net, 0, "sgen", cp1_eur_per_mw=8.191)
    pp.create_poly_cost(net, 2, "load", cp1_eur_per_mw=-57.339)
    return net


def pwl_net():
    net = wide_net()
    net.poly_cost = net.poly_cost[net.poly_cost.et != "gen"]
    points = [[3.1187, 20.0, 22.713], [20.0, 40.0, 38.917], [40.0, 61.7273, 44.131]]
    pp.create_pwl_cost(net, 0, "gen", points)
    return net


def solve(network):
    return solve_population(
        network, Population(1), convention="matpower", keep=("nodal_price", "dispatch")
    )


def frames(net):
    """Every table of the source's own data; what a run leaves behind starts with an underscore."""
    return {k: v for k, v in net.items() if isinstance(v, pd.DataFrame) and not k.startswith("_")}


def assert_same(left, right):
    assert set(left) == set(right)
    for name, frame in frames(left).items():
        pd.testing.assert_frame_equal(frame, right[name], check_exact=True, obj=name)
    assert left.std_types == right.std_types
    assert (left.name, left.f_hz, left.sn_mva) == (right.name, right.f_hz, right.sn_mva)


@pytest.mark.parametrize(
    "case", ["case5", "case6ww", "case9", "case24_ieee_rts", "case30", "case39", "case118"]
)
def test_cost_and_prices_are_those_of_rundcopp(case):
    net = getattr(nw, case)()
    found = solve(fmt.read(net))
    pp.rundcopp(net)
    assert found.cost[0] == pytest.approx(net.res_cost, rel=1e-6)
    np.testing.assert_allclose(found.nodal_price[0], net.res_bus.lam_p, rtol=2e-4)


@pytest.mark.parametrize(
    ("case", "share"), [("case5", 1.0), ("case6ww", 0.7), ("case9", 0.5), ("case24_ieee_rts", 0.7)]
)
def test_prices_of_congested_lines_are_those_of_rundcopp(case, share):
    net = getattr(nw, case)()
    for table in ("line", "trafo"):
        if "max_loading_percent" in net[table]:
            net[table]["max_loading_percent"] *= share
    found = solve(fmt.read(net))
    pp.rundcopp(net)
    assert np.ptp(found.nodal_price[0]) > 1.0, "nothing is congested"
    assert found.cost[0] == pytest.approx(net.res_cost, rel=1e-8)
    np.testing.assert_allclose(found.nodal_price[0], net.res_bus.lam_p, rtol=1e-6)


@pytest.mark.parametrize("make", [wide_net, pwl_net])
def test_every_element_means_what_rundcopp_takes_it_for(make):
    net = make()
    network = fmt.read(net)
    found = solve(network)
    pp.rundcopp(net)
    assert found.cost[0] == pytest.approx(net.res_cost, rel=1e-6)
    alive = network.buses.in_service
    assert alive.tolist() == [True] * 6 + [False]
    np.testing.assert_allclose(found.nodal_price[0][alive], net.res_bus.lam_p[alive], rtol=2e-4)
    assert len(set(np.round(found.nodal_price[0][alive], 3))) > 1, "nothing is congested"


def test_reactances_and_limits_are_those_of_rundcopp_on_a_big_case():
    net = nw.case300()
    branches = fmt.read(net).branches
    pp.rundcopp(net)
    theirs = net._ppc_opf["branch"].real
    np.testing.assert_allclose(branches.reactance, theirs[:, 3], rtol=1e-12)
    np.testing.assert_allclose(branches.tap, theirs[:, 8], rtol=1e-12)
    np.testing.assert_allclose(branches.shift, theirs[:, 9], atol=1e-12)
    np.testing.assert_allclose(branches.capacity, theirs[:, 5], rtol=1e-12)


@pytest.mark.parametrize("make", [wide_net, pwl_net, nw.case30, nw.case39, nw.case118])
def test_a_plain_round_trip_changes_nothing(make, tmp_path):
    net = make()
    before = copy.deepcopy(net)
    assert_same(fmt.write(fmt.read(net)), before)
    assert_same(net, before)
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    pp.to_json(net, str(first))
    fmt.write(read_case(first), second)
    assert json.loads(first.read_text()) == json.loads(second.read_text())


def test_a_line_without_loading_limit_is_unlimited():
    net = wide_net()
    net.line.loc[0, "max_loading_percent"] = np.nan
    network = fmt.read(net)
    assert np.isinf(network.branches.capacity[0])
    again = fmt.read(fmt.write(network.with_capacity(np.full(len(network.branches), np.inf))))
    assert np.isinf(again.branches.capacity).all()


def changed(network, factor):
    """Every value of every kind times a factor, one by one."""
    buses, units, lines = network.buses, network.generators, network.branches
    factors = iter(factor)
    load = buses.load * [next(factors) for _ in range(len(buses))]
    low, high = (limit * [next(factors)] for limit in (units.p_min, units.p_max))
    network = network.with_load(load).with_limits(np.minimum(low, high), high)
    network = network.with_capacity(lines.capacity * [next(factors) for _ in range(len(lines))])
    return network.with_linear_costs(units.linear * next(factors))


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
        np.testing.assert_allclose(ours, theirs, rtol=1e-11, atol=1e-11)


@settings(max_examples=15, deadline=None)
@given(factor=st.lists(st.floats(0.5, 2.0), min_size=40, max_size=40))
def test_random_edits_come_back(factor):
    network = fmt.read(wide_net())
    wanted = changed(network, factor)
    net = fmt.write(wanted)
    assert_values(fmt.read(net), wanted)
    for table in ("bus", "shunt", "switch"):
        pd.testing.assert_frame_equal(net[table], wide_net()[table], check_exact=True)


def test_one_edit_touches_one_column():
    net = wide_net()
    network = fmt.read(net)
    load = network.buses.load.copy()
    load[2] += 1.0
    written = fmt.write(network.with_load(load))
    for name, frame in frames(net).items():
        if name != "load":
            pd.testing.assert_frame_equal(written[name], frame, check_exact=True)
    moved = written.load.compare(net.load)
    assert list(moved.columns.get_level_values(0).unique()) == ["p_mw"]
    assert list(moved.index) == [1]


def test_a_load_where_there_was_none_is_added():
    network = fmt.read(wide_net())
    load = network.buses.load.copy()
    load[0] = 4.5
    assert fmt.read(fmt.write(network.with_load(load))).buses.load[0] == 4.5


# --- releases ------------------------------------------------------------------------------------


def private_numbers(net, network, names):
    """The private values, and every raw number in the net that they are made of."""
    units = network.generators
    raw = {
        "capacity": [
            network.branches.capacity, net.line.max_i_ka, net.line.df, net.trafo.df,
            net.line.max_loading_percent, net.trafo.max_loading_percent,
            net.trafo.sn_mva, net.impedance.sn_mva, net.trafo.vk_percent, net.impedance.xft_pu,
            # What they become on other bases, with all digits.
            network.branches.reactance[len(net.line) :],
            network.branches.resistance[len(net.line) :],
        ],
        "load": [
            network.buses.load, *(net.load[name][~net.load.controllable] for name in
                                  ("p_mw", "q_mvar", "scaling", "min_p_mw", "max_p_mw")),
        ],
        "generator_limit": [units.p_min, units.p_max, net.gen.p_mw, net.sgen.p_mw[:1]],
        "cost": [units.linear, *(p[:, 1] for p in units.points if p is not None)],
    }  # fmt: skip
    raw = [part for name in names for part in raw[name]]
    numbers = np.abs(np.concatenate([np.asarray(part, float) for part in raw]))
    return np.unique(numbers[np.isfinite(numbers) & (numbers != 0) & (numbers != 1)])


def plant(net, numbers, names):
    """Copy the private numbers into every other place of a net."""
    text = " ".join(f"{number:.9g}" for number in numbers)
    some = lambda frame: np.resize(numbers, len(frame))  # noqa: E731
    net.name = text
    net.comment = text
    net.my_numbers = numbers
    net.my_table = pd.DataFrame({"copy": numbers, "text": text})
    net.profiles = {"load": pd.DataFrame({"copy": numbers})}
    net.user_pf_options = {"note": text, "numbers": numbers.tolist()}
    net.std_types["line"][text] = {"max_i_ka": float(numbers[0])}
    for table in list(frames(net)):
        frame = net[table]
        if len(frame) and table not in ("my_table",):
            frame["rate_b"] = some(frame)
            frame["remark"] = text
    for table in ("line", "trafo"):
        net[table]["std_type"] = text
    for table in ("line", "load", "sgen", "gen", "bus"):
        net[table]["type"] = text
    net.bus["zone"] = text
    net.bus["geo"] = json.dumps({"type": "Point", "coordinates": [1, 2], "note": text})
    carriers = {
        "capacity": ("line", "trafo", "impedance"), "load": ("load",),
        "generator_limit": ("gen", "sgen", "ext_grid"), "cost": ("gen", "sgen", "ext_grid"),
    }  # fmt: skip
    for table in {table for name in names for table in carriers[name]}:
        net[table]["name"] = [f"{text} {k}" for k in range(len(net[table]))]
    sizes = {"load": ("load",), "generator_limit": ("gen", "sgen")}
    for table in {table for name in names for table in sizes.get(name, ())}:
        net[table]["sn_mva"] = some(net[table])
    net.gen.loc[0, "p_mw"] = numbers[-1]
    if "cost" in names:
        net.poly_cost["cq1_eur_per_mvar"] = some(net.poly_cost)
    pp.create_measurement(net, "p", "bus", float(numbers[0]), 1.0, 0, name=text)
    pp.create_group(net, "bus", [[0]], name=text)
    for name in ("res_line", "res_bus", "res_gen", "res_load", "res_trafo"):
        net[name] = pd.DataFrame({"p_mw": numbers, "loading_percent": numbers})


def numbers_in(value):
    """Every number in a parsed file, however deep, also in texts."""
    if isinstance(value, dict):
        for part in value.items():
            yield from numbers_in(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from numbers_in(part)
    elif isinstance(value, str):
        try:
            inner = json.loads(value)
        except ValueError:
            return
        yield from numbers_in(inner)
    elif isinstance(value, int | float):
        yield float(value)


def leaks(path, numbers):
    text = Path(path).read_text()
    shown = [number for number in numbers if f"{number:.7g}" in text]
    held = np.abs(np.array(list(numbers_in(json.loads(text)))))
    held = held[np.isfinite(held)]
    close = [n for n in numbers if np.isclose(held, n, rtol=1e-7, atol=0).any()]
    return shown + close


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
    low, high = np.round(units.p_min * 0.95, 1), np.round(units.p_max * 1.05, 1)
    return network.with_limits(np.minimum(low, high), high)


@pytest.mark.parametrize("names", SETS)
@pytest.mark.parametrize("make", [wide_net, pwl_net])
def test_a_release_holds_no_copy_of_the_private_numbers(make, names, tmp_path):
    net = make()
    numbers = private_numbers(net, fmt.read(net), names)
    plant(net, numbers, names)
    network = fmt.read(net)
    path = tmp_path / "release.json"
    fmt.write_release(released(network, names), path, names)
    assert not leaks(path, numbers)
    # The control: the same search on the whole net finds them all.
    fmt.write(network, tmp_path / "all.json")
    assert set(leaks(tmp_path / "all.json", numbers)) == set(numbers)


def all_digits(values, digits=3):
    """In place of `coarse`, as a control: all digits."""
    return np.asarray(values)


def three_digits(values):
    power = np.floor(np.log10(np.where(values, np.abs(values), 1.0)))
    return np.round(values / 10 ** (power - 2)) * 10 ** (power - 2)


def as_published(network, names):
    """The network with the impedances that a release has."""
    if "capacity" not in names:
        return network
    rated, shown = fmt.published_impedance(fmt.strip(network.source.data, names))
    assert rated.sum() == 2
    lines = network.branches
    some = {name: getattr(shown, name) for name in ("resistance", "reactance")}
    for name, values in some.items():
        np.testing.assert_allclose(values, getattr(lines, name), rtol=6e-3)
    return replace(network, branches=replace(lines, **some))


@pytest.mark.parametrize("names", SETS)
def test_a_release_reads_as_the_released_network(names, tmp_path):
    network = fmt.read(wide_net())
    wanted = released(as_published(network, names), names)
    path = tmp_path / "release.json"
    net = fmt.write_release(wanted, path, names)
    again = fmt.read(path)
    assert_values(again, wanted)
    assert again.buses.name == network.buses.name
    ours = solve(wanted).cost[0]
    assert solve(again).cost[0] == pytest.approx(ours, rel=1e-8)
    pp.rundcopp(net)
    assert net.res_cost == pytest.approx(ours, rel=1e-6)


@pytest.mark.parametrize("names", SETS)
def test_a_split_network_is_written_from_what_was_left(names, tmp_path):
    net = wide_net()
    numbers = private_numbers(net, fmt.read(net), names)
    network = fmt.read(net)
    _, public = network.split(names, dict.fromkeys(names, (1.0, 500.0)), public_curves=True)
    filled = public.with_values(np.full(public.entries, 77.5))
    path = tmp_path / "release.json"
    filled.write(path)
    assert not leaks(path, numbers)
    again = fmt.read(path)
    assert_values(again, filled)
    # What restoration saw of the impedances is what is published of them.
    for name in ("resistance", "reactance"):
        np.testing.assert_allclose(
            getattr(again.branches, name), getattr(public.branches, name), rtol=1e-12
        )


def other_numbers(net, names):
    """Other private numbers, and all else that a release must not tell, at the same support."""
    rng = np.random.default_rng(7)

    def scale(table, columns, which=slice(None)):
        for name in columns:
            if name in net[table].columns:
                values = net[table][name].to_numpy(dtype=float)[which]
                rows = net[table].index[which]
                net[table].loc[rows, name] = values * rng.uniform(0.5, 2.0, len(rows))

    moving = net.load.controllable.to_numpy(dtype=bool)
    scale("load", ("p_mw", "q_mvar", "scaling"), moving)
    scale("load", ("min_p_mw", "max_p_mw"), ~moving)
    scale("gen", ("p_mw",), [0])
    scale("sgen", ("p_mw", "scaling", "q_mvar"), [1])
    if "capacity" in names:
        scale("line", ("max_i_ka", "df", "max_loading_percent"))
        scale("trafo", ("df", "max_loading_percent"))
        # Two circuits of twice the length, on another rating: the same impedance.
        net.line[["parallel", "length_km"]] *= 2
        net.line["c_nf_per_km"] /= 4
        net.trafo[["sn_mva", "vk_percent", "vkr_percent"]] *= 1.371
        net.trafo["parallel"], net.trafo["sn_mva"] = 2, net.trafo.sn_mva / 2
        net.trafo["i0_percent"] /= 1.371
        net.trafo["pfe_kw"] /= 2
        net.impedance[["sn_mva", "rft_pu", "rtf_pu", "xft_pu", "xtf_pu"]] *= 1.371
    if "load" in names:
        scale("load", ("p_mw", "q_mvar", "scaling", "sn_mva"))
    if "generator_limit" in names:
        for table in ("gen", "sgen", "ext_grid"):
            scale(table, ("min_p_mw", "max_p_mw", "p_mw", "scaling", "sn_mva", "slack_weight"))
        scale("load", ("min_p_mw", "max_p_mw"))
        scale("load", ("sn_mva",), moving)
    if "cost" in names:
        scale("poly_cost", ("cp1_eur_per_mw",))
        net.pwl_cost["points"] = [
            [[a, b, 1.2 * c] for a, b, c in row] for row in net.pwl_cost.points
        ]
    return net


@pytest.mark.parametrize("names", SETS)
@pytest.mark.parametrize("make", [wide_net, pwl_net])
def test_what_is_left_is_the_same_whatever_the_private_numbers_are(make, names):
    net, other = make(), other_numbers(make(), names)
    assert_same(fmt.strip(other, names), fmt.strip(net, names))
    # The control: of each parameter that is public something is left.
    for name in set(PARAMETERS) - set(names):
        changed = other_numbers(make(), (*names, name))
        with pytest.raises(AssertionError):
            assert_same(fmt.strip(changed, names), fmt.strip(net, names))


KEPT_WITH = {
    "capacity": ("line", ["max_i_ka", "max_loading_percent", "length_km", "parallel", "df"]),
    "load": ("load", ["p_mw", "q_mvar", "scaling"]),
    "generator_limit": ("gen", ["min_p_mw", "max_p_mw", "sn_mva", "max_q_mvar"]),
}


@pytest.mark.parametrize("parameter", KEPT_WITH)
def test_elements_that_are_declared_public_keep_what_they_have(parameter, tmp_path):
    net = wide_net()
    network = read_case(net)
    table, columns = KEPT_WITH[parameter]
    columns = [name for name in columns if name in net[table]]
    still = ~net.load.get("controllable", pd.Series(False, net.load.index)).fillna(False)
    still = still.to_numpy(dtype=bool)
    if parameter == "load":
        place = int(net.load["bus"][still].iloc[0])
        only, hidden = network.buses.name[place], (net.load["bus"] == place).to_numpy() & still
    else:
        owner = network.branches if parameter == "capacity" else network.generators
        at = next(i for i, name in enumerate(owner.name) if name == net[table]["name"].iloc[0])
        only, hidden = owner.name[at], np.arange(len(net[table])) == 0
    given = {"parameter": parameter, "epsilon": 1, "alpha": 1, "range": (0.5, 500)}
    planned = grid.plan(network, **given, method="laplace", only=f"name={only}")
    public = planned.problem.public
    public.with_values(np.full(public.entries, 7.25)).write(tmp_path / "out.json")
    again = pp.from_json(str(tmp_path / "out.json"))
    ours, theirs = net[table], again[table]
    shown = ~hidden if parameter != "load" else ~hidden & still
    assert list(theirs["name"][shown]) == list(ours["name"][shown])
    pd.testing.assert_frame_equal(
        theirs[columns][shown],
        ours[columns][shown],
        check_dtype=False,
        rtol=1e-13,  # of JSON
    )
    assert (theirs[columns][hidden].to_numpy() != ours[columns][hidden].to_numpy()).any()


def test_costs_that_are_declared_public_stay_as_they_were(tmp_path):
    net = pwl_net()
    network = read_case(net)
    (hidden, *_), places = [int(at) for at in net.poly_cost.index], unit_places(net)
    row = net.poly_cost.loc[hidden]
    name = network.generators.name[places[row["et"]][int(row["element"])]]
    given = {"parameter": "cost", "epsilon": 1, "alpha": 1, "range": (-50, 500)}
    planned = grid.plan(network, **given, method="laplace", only=f"name={name}")
    public = planned.problem.public
    assert public.entries == 1
    public.with_values([7.25]).write(tmp_path / "out.json")
    again = pp.from_json(str(tmp_path / "out.json"))
    shown = net.poly_cost.drop(index=hidden).reset_index(drop=True)
    last = again.poly_cost.iloc[len(shown) :]
    for ours, theirs in (
        (shown, again.poly_cost.iloc[: len(shown)]),
        (net.pwl_cost, again.pwl_cost),
    ):
        assert len(ours) == len(theirs)
        for column in ours.columns:
            assert str(ours[column].tolist()) == str(theirs[column].tolist()), column
    assert len(net.pwl_cost)
    assert last["cp1_eur_per_mw"].tolist() == [7.25]
    assert (last[["cp0_eur", "cp2_eur_per_mw2"]] == 0).all(axis=None)
    units = net[row["et"]]
    others = units.index != int(row["element"])
    assert list(again[row["et"]]["name"][others]) == list(units["name"][others])


def rated_net(parallel=1):
    """A transformer with numbers of a few digits, as people write them."""
    net = pp.create_empty_network(sn_mva=100.0)
    for volts in (110.0, 110.0, 20.0):
        pp.create_bus(net, volts)
    pp.create_line_from_parameters(net, 0, 1, 10.0, 0.0, 0.4, 9.0, 0.3, max_loading_percent=100.0)
    pp.create_transformer_from_parameters(
        net, 1, 2, 37.3, 110.0, 20.0, 0.41, 11.2, 0.0, 0.0, max_loading_percent=100.0,
        parallel=parallel,
    )  # fmt: skip
    pp.create_load(net, 2, 20.0)
    pp.create_ext_grid(net, 0, min_p_mw=0.0, max_p_mw=100.0)
    pp.create_poly_cost(net, 0, "ext_grid", cp1_eur_per_mw=10.0)
    return net


def possible_ratings(resistance, reactance, rounded):
    """Pairs (vk in %, rating in MVA), one decimal each, that have this impedance on 100 MVA."""
    short, rating = np.meshgrid(np.arange(50, 201) / 10, np.arange(50, 2001) / 10, indexing="ij")
    # The resistive part has two decimals: the nearest is the best guess.
    lossy = np.round(resistance * rating, 2)
    fits = np.isclose(rounded(lossy / rating), resistance, rtol=1e-9)
    fits &= np.isclose(rounded(np.sqrt(short**2 - lossy**2) / rating), reactance, rtol=1e-9)
    return set(zip(short[fits].tolist(), rating[fits].tolist(), strict=True))


@pytest.mark.parametrize("route", ["file", "split"])
def test_the_rating_of_a_transformer_can_not_be_worked_out(route, tmp_path, monkeypatch):
    network = fmt.read(rated_net())

    def published():
        if route == "split":
            lines = network.split("capacity", (1.0, 500.0))[1].branches
            return lines.resistance[1], lines.reactance[1]
        path = tmp_path / "release.json"
        network.with_capacity([55.0, 41.0]).write_release(path, "capacity")
        (trafo,) = pp.from_json(str(path)).trafo.itertuples()
        assert trafo.sn_mva == 100.0
        whole, lossy = trafo.vk_percent / trafo.sn_mva, trafo.vkr_percent / trafo.sn_mva
        return lossy, np.sqrt(whole**2 - lossy**2)

    found = possible_ratings(*published(), three_digits)
    ratings = np.array([rating for _, rating in found])
    assert (11.2, 37.3) in found
    assert len(set(ratings)) > 40
    assert ratings.min() < 37.3 / 1.5
    assert ratings.max() > 37.3 * 1.5
    assert np.mean(np.abs(ratings - 37.3) < 2) < 0.2
    # The control: with all digits there is one.
    monkeypatch.setattr("gridveil.grid.io.pandapower.published_part.coarse", all_digits)
    assert possible_ratings(*published(), np.asarray) == {(11.2, 37.3)}


def test_units_in_parallel_are_published_as_one(tmp_path):
    """Half the rating twice is the same transformer; so is a line with more circuits."""
    twice = rated_net(parallel=2)
    twice.trafo["sn_mva"] /= 2
    twice.line["parallel"], twice.line["length_km"] = 2, 20.0
    twice.line["c_nf_per_km"] /= 4
    texts = []
    for net in (rated_net(), twice):
        network = fmt.read(net).with_capacity([55.0, 41.0])
        network.write_release(tmp_path / "release.json", "capacity")
        texts.append((tmp_path / "release.json").read_text())
    assert texts[0] == texts[1]
    again = fmt.read(tmp_path / "release.json")
    np.testing.assert_allclose(again.branches.capacity, [55.0, 41.0], rtol=1e-12)


@pytest.mark.parametrize("parameter", PARAMETERS)
def test_a_set_power_is_published_where_a_unit_can_not_move(parameter):
    """As the file has it, unless limits are private; of what can be dispatched nothing is."""
    net = wide_net()
    bare = fmt.strip(net, parameter)
    fixed = parameter != "generator_limit"
    assert bare.gen.p_mw.tolist() == [0.0, 9.3719 if fixed else 0.0]
    assert bare.sgen.p_mw.tolist() == [7.9133 if fixed else 0.0, 0.0]
    assert bare.sgen.scaling.tolist() == [0.871 if fixed else 1.0, 1.0]
    assert bare.gen.scaling.tolist() == [1.0, 1.0]
    assert bare.sgen.q_mvar.tolist() == [1.0 if fixed else 0.0, 0.0]
    moving = bare.load[net.load.controllable]
    assert moving[["p_mw", "q_mvar", "scaling"]].to_numpy().tolist() == [[0.0, 0.0, 1.0]]
    assert bare.gen.sn_mva.isna().tolist() == [not fixed, True]
    # Bounds of a load that can't move are no limits of a unit; those of one that can are.
    still = bare.load[~net.load.controllable]
    for name in ("min_p_mw", "max_p_mw"):
        assert name not in still or still[name].isna().all()
    if fixed:
        assert moving.max_p_mw.tolist() == net.load.max_p_mw[net.load.controllable].tolist()


def test_set_points_know_no_impedance_that_the_file_has_not():
    """An impedance that is given on a private rating has a few digits in the file, and no more."""
    net = nw.case9()
    network = fmt.read(net)
    far = network.branches.reactance * np.linspace(0.1, 9.0, len(network.branches))
    other = replace(network, branches=replace(network.branches, reactance=far))
    assert not np.array_equal(light_dispatch(network), light_dispatch(other))  # the control
    files = [fmt.write_release(one, None, "capacity") for one in (network, other)]
    assert files[0].gen.p_mw.tolist() == files[1].gen.p_mw.tolist()
    assert files[0].gen.p_mw.gt(0).all()


def lossless_net():
    """Without resistance, taps and shifts, where every DC model is the same."""
    net = wide_net()
    net.line["r_ohm_per_km"] = 0.0
    net.impedance[["rft_pu", "rtf_pu"]] = 0.0
    net.trafo[["vkr_percent", "pfe_kw", "shift_degree"]] = 0.0
    net.trafo["tap_pos"], net.trafo["vn_lv_kv"] = 0, 20.0
    return net


@pytest.mark.parametrize("parameter", PARAMETERS)
def test_rundcopp_on_a_bundle_costs_what_its_evaluation_says(parameter, tmp_path, ledger):
    net = lossless_net()
    alpha = {"capacity": 2, "load": 1, "generator_limit": 1, "cost": 1}[parameter]
    made = grid.release(
        fmt.read(net),
        Population(1),
        parameter=parameter,
        epsilon=1,
        alpha=alpha,
        dataset="net",
        ledger=ledger,
    )
    bundle = made.write(tmp_path / "bundle")
    theirs = pp.from_json(str(bundle / "network.json"))
    pp.rundcopp(theirs)
    pp.rundcopp(net)
    assert theirs.res_cost == pytest.approx(made.solutions.cost[0], rel=1e-6)
    said = evaluate(bundle, lossless_net()).population
    assert said.infeasible == 0
    assert said.bias == pytest.approx(100 * (theirs.res_cost / net.res_cost - 1), abs=1e-4)
    assert any("can't be dispatched" in line for line in made.statement.body["limitations"])


def test_a_curve_of_two_points_is_refused_with_private_limits_too():
    net = pwl_net()
    net.pwl_cost.at[0, "points"] = [[3.1187, 61.7273, 22.713]]
    with pytest.raises(InputError, match=r"1 of \d generators have piecewise-linear costs"):
        fmt.read(net).split("generator_limit", (-500, 500))


def test_curves_are_released_with_private_limits_only_where_they_are_public(tmp_path, ledger):
    network = fmt.read(pwl_net())
    asked = {
        "parameter": "generator_limit",
        "epsilon": 1,
        "alpha": 1,
        "dataset": "net",
        "ledger": ledger,
    }
    with pytest.raises(InputError, match="piecewise-linear costs"):
        grid.release(network, Population(1), **asked)
    made = grid.release(network, Population(1), public_curves=True, **asked)
    net = pp.from_json(str(made.write(tmp_path / "bundle") / "network.json"))
    pp.rundcopp(net)
    assert net.res_cost == pytest.approx(solve(made.data).cost[0], rel=1e-5)
    (points,) = net.pwl_cost.points
    assert [points[0][1], points[1][1]] == [20.0, 40.0]


def test_pwl_breakpoints_follow_the_released_limits(tmp_path):
    network = fmt.read(pwl_net())
    wanted = released(network, ["generator_limit"])
    again = fmt.read(fmt.write_release(wanted, None, "generator_limit"))
    unit = network.generators.name.index("gen")
    assert again.generators.points[unit][[0, -1], 0].tolist() == [3.0, 64.8]
    assert solve(again).cost[0] == pytest.approx(solve(wanted).cost[0], rel=1e-5)


def test_curves_of_reactive_costs_tell_nothing_of_private_limits():
    net = pwl_net()
    row = {"power_type": "q", "element": 0, "et": "gen", "points": [[-31.7, 42.3, 1.5]]}
    net.pwl_cost.loc[len(net.pwl_cost)] = row
    bare = fmt.strip(net, "generator_limit")
    assert "q" not in set(bare.pwl_cost["power_type"])
    kept = fmt.strip(net, "capacity")
    assert "q" in set(kept.pwl_cost["power_type"])


@pytest.mark.filterwarnings("default")
def test_warnings_of_the_libraries_are_not_shown(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pp.to_json(wide_net(), str(tmp_path / "net.json"))
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        network = fmt.read(tmp_path / "net.json")
        _, public = network.split("capacity", (1, 500))
        public.with_values(public.high).write(tmp_path / "released.json")
    assert [str(one.message) for one in shown] == []


def test_lines_without_a_loading_limit_are_limited_on_request():
    net = wide_net()
    net.line = net.line.drop(columns="max_loading_percent")
    network = fmt.read(net)
    assert np.isinf(network.branches.capacity[: len(net.line)]).all()
    assert any("6 lines and transformers have no max_loading_percent" in n for n in network.notes)
    limited = grid.read_case(net, max_loading=100)
    rating = net.line.max_i_ka * net.line.df * net.line.parallel * 110 * np.sqrt(3)
    np.testing.assert_allclose(limited.branches.capacity[: len(net.line)], rating)
    with pytest.raises(InputError, match="max_loading is 0"):
        fmt.read(net, max_loading=0)
    with pytest.raises(InputError, match="snapshot is for networks of PyPSA"):
        grid.read_case(net, snapshot="now")


def test_all_elements_that_the_model_does_not_have_are_named_at_once():
    net = wide_net()
    pp.create_ward(net, 1, 1.0, 2.0, 0.0, 0.0)
    pp.create_ward(net, 2, 1.0, 2.0, 0.0, 0.0)
    pp.create_motor(net, 0, 1.0, 0.9)
    with pytest.raises(InputError, match="2 problems") as caught:
        fmt.read(net)
    assert "1 motor in service" in str(caught.value)
    assert "2 ward in service" in str(caught.value)


# --- bad input -----------------------------------------------------------------------------------


def drop_bus(net):
    net.line.loc[0, "from_bus"] = 99


def lose_reactance(net):
    net.line.loc[1, "x_ohm_per_km"] = np.nan


def tap_at_star_point(net):
    pp.create_transformer3w(net, 0, 1, 5, "63/25/38 MVA 110/20/10 kV")
    net.trafo3w["tap_at_star_point"] = True


def add_ward(net):
    pp.create_ward(net, 1, 1.0, 10.0, 0.0, 0.0)


def lose_dcline(net):
    pp.create_dcline(net, 0, 3, 10.0, 1.0, 0.1, 1.0, 1.0)
    net.dcline["to_bus"] = 99


def second_reference(net):
    pp.create_ext_grid(net, 3)


def no_reference(net):
    net.ext_grid["in_service"] = False


def two_costs(net):
    pp.create_poly_cost(net, 0, "gen", 3.0, check=False)


def quadratic_load_cost(net):
    net.poly_cost.loc[net.poly_cost.et == "load", "cp2_eur_per_mw2"] = 1.0


def duplicate_index(net):
    net.line = pd.concat([net.line, net.line.iloc[:1]])


def text_in_numbers(net):
    net.load["p_mw"] = net.load["p_mw"].astype(object)
    net.load.loc[0, "p_mw"] = "much"


def no_buses(net):
    net.bus = net.bus.iloc[:0]


def no_impedance(net):
    net.line.loc[1, ["x_ohm_per_km", "r_ohm_per_km"]] = 0.0


def switch_with_impedance(net):
    net.switch.loc[0, "z_ohm"] = 0.1


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (drop_bus, "line 0 is at bus 99"),
        (lose_reactance, "x_ohm_per_km of table line has no value for line 1"),
        (tap_at_star_point, "tap_at_star_point"),
        (add_ward, "ward 0"),
        (lose_dcline, "dcline 0 is at bus 99"),
        (second_reference, "more than one reference bus"),
        (no_reference, "no reference bus"),
        (two_costs, "more than one cost"),
        (duplicate_index, "index 0 more than once"),
        (text_in_numbers, "p_mw of table load"),
        (no_buses, "no bus"),
        (no_impedance, "no impedance"),
        (switch_with_impedance, "z_ohm"),
    ],
)
def test_a_net_that_is_no_dc_model_is_refused(damage, says):
    net = wide_net()
    damage(net)
    with pytest.raises(InputError, match=says):
        fmt.read(net)


def pieces_apart(net):
    net.poly_cost = net.poly_cost[net.poly_cost.et != "gen"]
    pp.create_pwl_cost(net, 0, "gen", [[0, 10, 20], [12, 500, 30]])


@pytest.mark.parametrize("damage", [quadratic_load_cost, pieces_apart])
def test_values_of_costs_are_refused_if_public_and_not_if_private(damage):
    net = wide_net()
    damage(net)
    network = fmt.read(net)
    asked = {"epsilon": 1, "alpha": 1, "method": "laplace"}
    models = grid.sample_population(network, 2, private="cost", costs=0.1, seed=1)
    made = grid.plan(network, models, parameter="cost", range=(-500, 500), **asked)
    assert made.problem.public.entries
    with pytest.raises(InputError, match=r"not convex|not a finite number"):
        grid.plan(network, parameter="load", range=(-900, 900), **asked)


def test_ratings_without_a_loading_limit_are_no_capacities_until_their_owner_says_so():
    net = wide_net()
    for table in ("line", "trafo"):
        net[table] = net[table].drop(columns="max_loading_percent", errors="ignore")
    net.impedance = net.impedance.iloc[:0]
    with pytest.raises(InputError, match="max_loading_percent") as refusal:
        fmt.read(net).split("capacity", range=(1, 5000))
    assert "--max-loading 100" in refusal.value.remedy
    assert fmt.read(net, max_loading=100).split("capacity", range=(1, 5000))[1].entries


def test_odd_tables_are_read_and_released_or_refused_with_a_reason():
    taken = 0
    for seed in range(2000 if FULL else 120):
        choose = random_choices(seed)
        net = pwl_net() if choose(2) else wide_net()
        for _ in range(1 + choose(2)):
            name, net_table = mutate_table({k: v for k, v in frames(net).items() if len(v)}, choose)
            net[name] = net_table
        taken += check_source(fmt, net, choose)
    assert taken > 20


def test_odd_files_are_read_and_released_or_refused_with_a_reason(tmp_path):
    path = tmp_path / "net.json"
    pp.to_json(pwl_net(), str(path))
    whole, taken = path.read_bytes(), 0
    for seed in range(2000 if FULL else 60):
        choose = random_choices(seed)
        path.write_bytes(mutate_file(whole, choose))
        taken += check_source(fmt, path, choose)
    assert taken > 5


def test_pandapower_logs_nothing_while_a_net_is_read(monkeypatch, caplog, tmp_path):
    """Its module for files has a level of its own."""
    log = logging.getLogger("pandapower.io_utils")
    assert log.level

    def speaks(path):
        log.critical("17.377 MW")
        return wide_net()

    monkeypatch.setattr(pp, "from_json", speaks)
    before = log.level
    (tmp_path / "net.json").write_text("{}")
    fmt.read(tmp_path / "net.json")
    assert not caplog.records
    assert log.level == before


def test_an_element_at_no_bus_is_not_at_a_bus_of_another_number():
    net = wide_net()
    net.bus.index = [-1, *net.bus.index[1:]]
    net.load["bus"] = net.load["bus"].astype(object)
    net.load.loc[0, "bus"] = "nowhere"
    with pytest.raises(InputError, match="whole numbers from 0"):
        fmt.read(net)


@pytest.mark.parametrize("name", ["sn_mva", "f_hz"])
@pytest.mark.parametrize("odd", [None, "100", 0, -1.0, np.inf, np.nan])
def test_a_net_without_a_base_or_frequency_is_refused(name, odd):
    net = wide_net()
    net[name] = odd
    with pytest.raises(InputError, match=name):
        fmt.read(net).split("load", (1, 100))


def test_a_net_that_is_read_with_texts_for_numbers_is_released_with_numbers():
    net = wide_net()
    for table, name in (("sgen", "max_p_mw"), ("line", "max_loading_percent")):
        net[table][name] = net[table][name].map(
            lambda value: None if pd.isna(value) else str(value)
        )
    _, public = fmt.read(net).split("load", (1, 100))
    left = public.source.data
    assert left.sgen.max_p_mw.dtype == left.line.max_loading_percent.dtype == float


def test_what_is_no_net_is_refused(tmp_path):
    with pytest.raises(InputError, match="Expected a pandapower net"):
        fmt.read(3)
    with pytest.raises(InputError, match="no file"):
        fmt.read(tmp_path / "none.json")
    (tmp_path / "bad.json").write_text("{]")
    with pytest.raises(InputError, match="not a pandapower net"):
        fmt.read(tmp_path / "bad.json")
    with pytest.raises(InputError, match="not a parameter"):
        fmt.write_release(fmt.read(wide_net()), None, "voltage")


def test_a_missing_library_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandapower", None)
    with pytest.raises(InputError, match=r"pip install gridveil\[pandapower\]"):
        fmt.read("net.json")


@pytest.mark.parametrize(
    "number", ["5e-324", "-1E-310", "1e309", "-1e+400", "9" * 25, "9" * 400, "0." + "0" * 320 + "1"]
)
def test_no_size_of_a_number_decides_whether_a_net_is_read(number, tmp_path):
    """The reader of JSON refuses what no normal number of 64 bits is; a private load may be one."""
    net = pp.create_empty_network(sn_mva=100.0)
    for _ in range(2):
        pp.create_bus(net, 110.0)
    pp.create_line_from_parameters(net, 0, 1, 10.0, 0.06, 0.4, 9.0, 0.3)
    pp.create_ext_grid(net, 0, min_p_mw=0.0, max_p_mw=90.0)
    pp.create_load(net, 1, 77.125, name=f"of {number}, as {number} MW")
    net.load["meter"] = 1234567890123456789
    pp.to_json(net, str(tmp_path / "net.json"))
    text = (tmp_path / "net.json").read_text()
    assert text.count("77.125") == 1
    (tmp_path / "net.json").write_text(text.replace("77.125", number))
    read = read_case(tmp_path / "net.json")
    load, given = read.buses.load[1], float(number)
    least, most = np.finfo(float).tiny, np.finfo(float).max
    assert np.sign(load) == np.sign(given)
    assert abs(load) == pytest.approx(np.clip(abs(given), least, most), rel=1e-12)
    assert read.source.data.load.name[0] == f"of {number}, as {number} MW"
    assert read.source.data.load.meter[0] == 1234567890123456789


def test_a_release_is_drawn_at_the_coordinates_of_its_file(ledger):
    network = read_case(nw.case39())
    made = grid.release(
        network, epsilon=1, alpha=30, method="laplace", dataset="case39", ledger=ledger
    )
    place = mapped_positions(made.data)
    assert place is not None
    assert (place == mapped_positions(network)).all()
    assert "Places are the coordinates of the file." in made.sections()[0].pictures[0].caption


def test_released_loads_have_the_reactive_power_of_a_public_power_factor():
    network = fmt.read(nw.case14())
    _, public = network.split("load", (0, 200))
    ratio = replace(public, reactive_ratio=0.75)
    net = fmt.write_release(ratio.with_values(np.full(public.entries, 8.0)), None, "load")
    assert net.load.q_mvar.tolist() == [6.0] * public.entries
    bare = fmt.write_release(public.with_values(np.full(public.entries, 8.0)), None, "load")
    assert not bare.load.q_mvar.any()
