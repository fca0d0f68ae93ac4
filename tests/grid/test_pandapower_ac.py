"""Released networks in pandapower's own power flow, which knows nothing of GridVeil's."""

import numpy as np
import pytest

from gridveil import grid

pp = pytest.importorskip("pandapower")
pytest.importorskip("casadi")
pytest.importorskip("matpowercaseframes")

from_mpc = pytest.importorskip("pandapower.converter.matpower").from_mpc

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module", params=["capacity", "load"])
def released(request, tmp_path_factory):
    """The network file of a release that is certified in AC, and what was released."""
    network = grid.cases.rts96()
    models = grid.sample_population(network, 2, spread=0.05, private=request.param)
    more = {"power_factor": 0.98} if request.param == "load" else {}
    made = grid.release(
        network, models, parameter=request.param, epsilon=1, alpha=10, ac=True, seed=1, **more
    )
    folder = made.write(tmp_path_factory.mktemp("bundle") / "out")
    return folder / "network.m"


def loaded(path):
    """The file in pandapower, with buses numbered in the file's order.

    The converter takes all taps to be on the high-voltage side; those of RTS-96 are on the other.
    """
    net = from_mpc(str(path))
    net.trafo["tap_side"] = "lv"
    pp.toolbox.reindex_buses(net, {old: new for new, old in enumerate(net.bus.index)})
    return net


def set_to(net, network, found):
    """Put the outputs and voltages of a solution in place of the file's."""
    for table in ("gen", "sgen", "ext_grid"):
        net[table] = net[table].iloc[:0]
    net.poly_cost, net.pwl_cost = net.poly_cost.iloc[:0], net.pwl_cost.iloc[:0]
    active = np.bincount(network.generators.bus, found.dispatch[0], len(network.buses))
    for place in np.unique(network.generators.bus).tolist():
        if network.buses.reference[place]:
            pp.create_ext_grid(net, place, vm_pu=found.voltage[0, place])
        else:
            pp.create_gen(net, place, p_mw=active[place], vm_pu=found.voltage[0, place])


def loading(net, network):
    """MVA at the worse end of every line and transformer over its rating, by pairs of buses."""
    worst = []
    rated = {}
    lines = network.branches
    for a, b, rating in zip(lines.from_bus, lines.to_bus, lines.capacity, strict=True):
        rated.setdefault(frozenset((int(a), int(b))), []).append(float(rating))
    for table, ends in (("line", ("from", "to")), ("trafo", ("hv", "lv"))):
        own, found = net[table], net[f"res_{table}"]
        for k in own.index:
            pair = frozenset(int(own.loc[k, f"{end}_bus"]) for end in ends)
            power = max(np.hypot(*found.loc[k, [f"p_{e}_mw", f"q_{e}_mvar"]]) for e in ends)
            worst.append(power / min(rated[pair]) if len(set(rated[pair])) == 1 else 0.0)
    return np.array(worst)


def test_the_power_flow_converges_and_overloads_nothing(released):
    network = grid.read_case(released)
    found = grid.solve_ac(network)
    assert found.served.all()
    net = loaded(released)
    assert len(net.bus) == len(network.buses)
    set_to(net, network, found)
    pp.runpp(net, tolerance_mva=1e-8)
    assert net.converged
    np.testing.assert_allclose(net.res_bus.vm_pu, found.voltage[0], atol=1e-5)
    assert float(net.res_ext_grid.p_mw.sum() + net.res_gen.p_mw.sum()) == pytest.approx(
        found.dispatch[0].sum(), abs=1e-3
    )
    assert loading(net, network).max() <= 1 + 1e-5
    limits = network.buses.v_min - 1e-6, network.buses.v_max + 1e-6
    assert ((net.res_bus.vm_pu >= limits[0]) & (net.res_bus.vm_pu <= limits[1])).all()
    reactive = np.bincount(net.gen.bus, net.res_gen.q_mvar, len(network.buses))
    units = network.generators
    most = np.bincount(units.bus, units.q_max, len(network.buses))
    some = net.gen.bus.to_numpy()
    assert (reactive[some] <= most[some] + 1e-3).all()


def test_an_overload_would_be_seen(released):
    network = grid.read_case(released)
    found = grid.solve_ac(network)
    net = loaded(released)
    set_to(net, network, found)
    net.gen["p_mw"] *= 0.8  # the control: the slack bus makes up for it, over its own lines
    pp.runpp(net)
    assert loading(net, network).max() > 1


def test_a_released_file_of_its_own_still_converges(tmp_path):
    net = pp.networks.case39()
    network = grid.read_case(net)
    models = grid.sample_population(network, 2, spread=0.05)
    made = grid.release(network, models, epsilon=1, alpha=10, seed=1)
    back = pp.from_json(str(made.write(tmp_path / "out") / "network.json"))
    pp.runpp(back)
    assert back.converged
