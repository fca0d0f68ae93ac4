"""pandapower's own networks, and what they contain. Runs where pandapower is installed."""

import copy
import warnings

import numpy as np
import pandas as pd
import pytest
from grid import census
from support.sizes import FULL

from gridveil import grid
from gridveil.errors import InputError
from gridveil.grid.model.sampling import own_models

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pp = pytest.importorskip("pandapower", reason="pandapower is not installed")

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]
PARAMETERS = census.PARAMETERS
KEPT = ("trafo3w", "dcline", "storage", "switch")


def many_kinds():
    """Three-winding transformers with taps, a DC line, storage, static units and all switches."""
    net = pp.create_empty_network(sn_mva=10.0)
    for volts in (110.0, 110.0, 20.0, 10.0, 20.0, 10.0, 110.0):
        pp.create_bus(net, volts)
    pp.create_ext_grid(net, 0, min_p_mw=-200.0, max_p_mw=200.0)
    for a, b in ((0, 1), (1, 6), (6, 0), (2, 4)):
        pp.create_line_from_parameters(net, a, b, 5.0, 0.1, 0.4, 9.0, 0.51, max_loading_percent=90)
    pp.create_transformer3w(net, 1, 2, 3, "63/25/38 MVA 110/20/10 kV", tap_pos=3)
    pp.create_transformer3w(net, 6, 4, 5, "63/25/38 MVA 110/10/10 kV", tap_pos=-2)
    net.trafo3w["max_loading_percent"] = [71.3, 83.9]
    net.trafo3w[["shift_mv_degree", "shift_lv_degree"]] = 30.0, 30.0
    net.trafo3w.loc[1, ["vn_mv_kv", "shift_mv_degree"]] = 20.0, 30.0
    pp.create_dcline(net, 6, 2, 4.1, 2.0, 0.05, 1.0, 1.0, max_p_mw=9.0)
    pp.create_storage(net, 3, 1.7, 10.0, scaling=0.5)
    pp.create_storage(net, 5, -0.9, 10.0, max_p_mw=2.0, controllable=False)
    pp.create_sgen(net, 4, 2.3)
    for bus, power in ((2, 6.1), (3, 5.3), (4, 7.7), (5, 3.9)):
        pp.create_load(net, bus, power, 1.1)
    spare = pp.create_bus(net, 20.0)
    pp.create_switch(net, 2, spare, "b")
    pp.create_load(net, spare, 1.3)
    pp.create_switch(net, 6, 1, "l", closed=False)
    pp.create_poly_cost(net, 0, "ext_grid", 20.0)
    return net


def flows(network):
    """Flows of all branches of the model."""
    found = grid.solve_population(network, keep=("flow",), convention="matpower")
    assert np.isfinite(found.cost).all()
    return found.flow[0]


@pytest.mark.parametrize("opened", [None, 2, 3])
def test_flows_are_those_of_a_dc_power_flow(opened):
    net = many_kinds()
    if opened is not None:
        # Behind an open winding there is nothing left but the other transformer's side.
        net.load.loc[net.load.bus == 3, "in_service"] = opened != 3
        net.storage.loc[0, "in_service"] = opened != 3
        pp.create_switch(net, opened, 0, "t3", closed=False)
    network = grid.read_case(net)
    ours = flows(network)
    net.line.loc[1, "in_service"] = False  # as the open switch at it has it
    pp.rundcpp(net, numba=False)
    lines = len(net.line)
    assert np.allclose(ours[:lines], net.res_line.p_from_mw, atol=1e-6)
    hv, mv, lv = ours[lines:].reshape(3, -1)
    assert np.allclose(hv, net.res_trafo3w.p_hv_mw, atol=1e-3), "less the no-load losses"
    assert np.allclose(mv, -net.res_trafo3w.p_mv_mw, atol=1e-3)
    assert np.allclose(lv, -net.res_trafo3w.p_lv_mw, atol=1e-3)


def test_what_the_model_does_not_hold_is_named():
    net = many_kinds()
    net["profiles"] = {"load": net.load[["p_mw"]]}
    said = " ".join(grid.read_case(net).notes)
    for words in ("1 DC lines", "2 storages", "2 three-winding", "profiles", "closed switch"):
        assert words in said


def test_a_plain_round_trip_changes_nothing(tmp_path):
    net = many_kinds()
    grid.read_case(net).write(tmp_path / "net.json")
    assert pp.toolbox.nets_equal(net, pp.from_json(str(tmp_path / "net.json")))


@pytest.mark.parametrize("parameter", PARAMETERS)
def test_these_elements_are_in_the_released_file(parameter, tmp_path):
    net = many_kinds()
    given = {"parameter": parameter, "epsilon": 1, "alpha": 1, "range": (0.1, 300)}
    made = grid.release(grid.read_case(net), **given, method="laplace", seed=1)
    made.data.write_release(tmp_path / "out.json", parameter)
    again = pp.from_json(str(tmp_path / "out.json"))
    for table in KEPT:
        rows = net[table].drop(columns=["name", "std_type"], errors="ignore")
        for name in rows.columns:
            if (
                table == "trafo3w"
                and parameter == "capacity"
                and name[:2] in ("sn", "vk", "i0", "ma")
            ):
                continue
            if name in ("id_characteristic_table", "tap_dependency_table", "in_ka"):
                continue
            assert census.same_columns(rows[name].tolist(), again[table][name].tolist()), name
    if parameter == "capacity":
        assert again.trafo3w.sn_hv_mva.tolist() == [10.0, 10.0]
        assert "max_loading_percent" not in again.trafo3w
    pp.runpp(again, numba=False)
    assert again.converged
    read = grid.read_case(again)
    assert np.allclose(read.branches.reactance, made.data.branches.reactance, rtol=1e-12)
    ours, theirs = made.data.branches.capacity, read.branches.capacity
    assert np.allclose(ours, theirs, rtol=1e-14, atol=0), "current and power are a factor apart"


def test_the_rating_of_a_three_winding_transformer_leaves_no_trace():
    def left(factor):
        net = copy.deepcopy(many_kinds())
        for side in ("hv", "mv", "lv"):
            net.trafo3w[f"sn_{side}_mva"] *= factor
            net.trafo3w[[f"vk_{side}_percent", f"vkr_{side}_percent"]] *= factor
        net.trafo3w["i0_percent"] /= factor
        net.trafo3w["max_loading_percent"] *= factor
        public = grid.plan(
            grid.read_case(net), epsilon=1, alpha=1, range=(1, 300), method="laplace"
        ).problem.public
        return public.source.data.trafo3w

    assert left(1.0).equals(left(1.731))


FACTORS = {"H0_pload": [0.4, 0.7, 1.0, 0.6], "G1_pload": [0.2, 0.9, 0.8, 0.3]}
SUN = [0.0, 0.8, 0.5, 0.1]


def with_profiles():
    """The net with profiles as SimBench has them; a load and all else without one is constant."""
    net = many_kinds()
    times = ["01.01.2016 00:00", "01.01.2016 06:00", "01.01.2016 12:00", "02.01.2016 00:00"]
    net["profiles"] = {
        "load": pd.DataFrame({"time": times, **FACTORS, "H0_qload": 0.5}),
        "renewables": pd.DataFrame({"time": times, "PV3": SUN}),
    }
    net.load["profile"] = ["H0", "G1", "H0", None, "G1"]
    net.sgen["profile"] = "PV3"
    return net


def test_profiles_are_models_of_the_net_at_their_times(tmp_path):
    pp.to_json(with_profiles(), str(tmp_path / "net.json"))
    network = grid.read_case(tmp_path / "net.json", snapshots="all")
    found = grid.solve_population(network, own_models(network), convention="matpower")
    assert len(found.cost) == 4
    for at in range(4):
        net = many_kinds()
        own = {"H0": FACTORS["H0_pload"][at], "G1": FACTORS["G1_pload"][at], None: 1.0}
        net.load["p_mw"] *= [own[name] for name in with_profiles().load.profile]
        net.sgen["p_mw"] *= SUN[at]
        alone = grid.solve_population(grid.read_case(net), convention="matpower")
        assert found.cost[at] == pytest.approx(alone.cost[0], rel=1e-12)
    assert len(set(found.cost.round(6))) == 4
    assert own_models(grid.read_case(tmp_path / "net.json")) is None


@pytest.mark.parametrize(("asked", "count"), [("every 24h", 2), ("every 3", 2), ("FILE", 1)])
def test_a_release_serves_the_times_that_were_asked_for(asked, count, tmp_path):
    if asked == "FILE":
        asked = tmp_path / "times.txt"
        asked.write_text("2016-01-01 12:00:00\n")
    network = grid.read_case(with_profiles(), snapshots=asked)
    made = grid.release(network, epsilon=1, alpha=1, range=(1, 300), seed=1)
    assert made.population.size == count
    assert np.isfinite(made.solutions.cost).all()
    folder = made.write(tmp_path / "out")
    assert "profiles" not in pp.from_json(str(folder / "network.json"))
    again = grid.Population.read(folder / "population.parquet", network)
    assert np.array_equal(again.load, made.population.load)


def test_populations_are_sampled_around_the_times():
    network = grid.read_case(with_profiles(), snapshots="every 24h")
    own, made = own_models(network), grid.sample_population(network, 6, spread=0.1)
    assert (np.abs(made.load - np.repeat(own.load, 3, axis=0)) <= 0.1 + 1e-12).all()
    assert not np.allclose(made.load[0], made.load[1])
    with pytest.raises(InputError, match="vary over the snapshots"):
        grid.sample_population(network, 6, private="capacity,load")


def test_profiles_that_can_not_be_models_are_refused():
    given = {"epsilon": 1, "alpha": 1, "range": (0.1, 300)}
    with pytest.raises(InputError, match="vary over the snapshots"):
        grid.plan(grid.read_case(with_profiles(), snapshots="all"), **given, parameter="load")
    with pytest.raises(InputError, match="has no profiles"):
        grid.read_case(many_kinds(), snapshots="all")
    net = with_profiles()
    net.load.loc[2, "profile"] = "G9"
    with pytest.raises(InputError, match="no column 'G9_pload'"):
        grid.read_case(net, snapshots="all")
    net = with_profiles()
    net.profiles["load"].loc[1, "H0_pload"] = np.nan
    with pytest.raises(InputError, match="missing or not finite"):
        grid.read_case(net, snapshots="all")
    with pytest.raises(InputError, match="has no snapshot 'never'"):
        grid.read_case(with_profiles(), snapshots=["never"])
    net = with_profiles()
    net.profiles["renewables"]["PV3"] = -1.0
    with pytest.raises(InputError, match="below 0"):
        grid.read_case(net, snapshots="all")


NETS = [
    *("case5", "case6ww", "case9", "case14", "case24_ieee_rts", "case30", "case33bw"),
    *("case39", "case57", "case_ieee30", "create_cigre_network_hv"),
    *("create_cigre_network_mv", "create_cigre_network_lv", "four_loads_with_branches_out"),
    *("example_simple", "panda_four_load_branch", "simple_four_bus_system", "GBreducednetwork"),
]
MORE = ["case89pegase", "case118", "case145", "case300", "iceland", "mv_oberrhein"]


@pytest.mark.parametrize("name", [*NETS, *(MORE if FULL else ())])
def test_a_net_of_pandapower_goes_through(name, tmp_path):
    """Read, released, written and read again by pandapower: all columns as the list says."""
    for parameter in PARAMETERS if FULL else ("capacity",):
        found = census.examine("pandapower", name, parameter, tmp_path)
        assert found.outcome in ("passed", "none"), (parameter, found.why)
        net = pp.from_json(str(tmp_path / "released.json"))
        assert isinstance(net, pp.pandapowerNet)
    assert (tmp_path / "released.json").exists()
