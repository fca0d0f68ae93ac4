"""AC power flow of pandapower nets: the same equations as pandapower's, releases, refusals."""

import copy
import warnings
from dataclasses import fields

import numpy as np
import pytest
from grid.flowing import AGREED, MISSED, missed

from gridveil import grid
from gridveil.errors import InputError
from gridveil.grid.io import pandapower as fmt
from gridveil.grid.opf.ac.numbers import AcNumbers, ac_numbers
from gridveil.grid.opf.ac.programme import Programme

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pp = pytest.importorskip("pandapower", reason="pandapower is not installed")
    from pandapower import networks as nw
pytest.importorskip("casadi", reason="casadi is not installed")

pytestmark = pytest.mark.filterwarnings("ignore")


def multivoltage(**changed):
    """Three windings, shunts, an impedance, switches; without what the DC model refuses."""
    net = nw.example_multivoltage()
    net.xward = net.xward.iloc[:0]
    net.trafo["i0_percent"] = 1.5
    for name, value in changed.items():
        net.trafo[name] = value
    return net


def opened(end, kind):
    net = multivoltage()
    table = {"t": "trafo", "t3": "trafo3w"}[kind]
    at = net[table].index[0]
    pp.create_switch(net, int(net[table].at[at, end]), int(at), kind, closed=False)
    return net


def with_shunts_at_an_impedance():
    net = multivoltage()
    net.impedance[["gf_pu", "bf_pu", "gt_pu", "bt_pu"]] = 0.01, 0.02, 0.03, -0.04
    net.line["g_us_per_km"] = 2.0
    return net


def charged_to_a_dead_bus():
    net = nw.case14()
    net.line["c_nf_per_km"] = 900.0
    net.bus.loc[11, "in_service"] = False
    pp.create_switch(net, int(net.line.at[2, "from_bus"]), 2, "l", closed=False)
    return net


def with_a_dc_line():
    """A mesh at 110 kV with three windings, a DC line, storages and a shunt in two steps."""
    net = pp.create_empty_network(sn_mva=10.0)
    for volts in (110.0, 110.0, 20.0, 10.0):
        pp.create_bus(net, volts, min_vm_pu=0.9, max_vm_pu=1.1)
    pp.create_ext_grid(net, 0, min_p_mw=-200.0, max_p_mw=200.0)
    for a, b in ((0, 1), (1, 0)):
        pp.create_line_from_parameters(net, a, b, 5.0, 0.1, 0.4, 9.0, 0.51, max_loading_percent=90)
    pp.create_transformer3w(net, 1, 2, 3, "63/25/38 MVA 110/20/10 kV", tap_pos=3)
    net.trafo3w[["shift_mv_degree", "shift_lv_degree"]] = 30.0, 150.0
    pp.create_dcline(net, 1, 2, 4.1, 2.0, 0.05, 1.0, 1.0, max_p_mw=9.0)
    pp.create_storage(net, 3, 1.7, 10.0, q_mvar=0.4, scaling=0.5)
    pp.create_sgen(net, 2, 2.3, 0.3, scaling=0.9)
    pp.create_shunt(net, 2, 0.7, 0.05, vn_kv=21.0, step=2, max_step=3)
    pp.create_load(net, 2, 6.1, 1.1)
    pp.create_load(net, 3, 5.3, 1.3, controllable=True, min_p_mw=0, max_p_mw=9)
    pp.create_poly_cost(net, 0, "ext_grid", 20.0)
    return net


NETS = {
    "case14": nw.case14,
    "cigre_mv": lambda: nw.create_cigre_network_mv(with_der="pv_wind"),
    "multivoltage": lambda: multivoltage(
        leakage_resistance_ratio_hv=0.3, leakage_reactance_ratio_hv=0.7, tap_side="lv", tap_pos=2
    ),
    "open below": lambda: opened("lv_bus", "t"),
    "open in the middle": lambda: opened("mv_bus", "t3"),
    "shunts of an impedance": with_shunts_at_an_impedance,
    "dead bus": charged_to_a_dead_bus,
    "dc line": with_a_dc_line,
}


def controllable(net):
    """Which loads are units."""
    if "controllable" not in net.load:
        return np.zeros(len(net.load), dtype=bool)
    return net.load.controllable.fillna(False).astype(bool).to_numpy()


def flowed(net):
    """Voltages and powers of pandapower's own power flow, in the model's order."""
    pp.runpp(net, tolerance_mva=1e-9, numba=False)
    assert net.converged
    found = net.res_bus.vm_pu * np.exp(1j * np.radians(net.res_bus.va_degree))
    voltage = [found.to_numpy()]
    if len(net.trafo3w):
        stars = net.res_trafo3w
        turn = np.exp(1j * np.radians(stars.va_internal_degree))
        voltage.append((stars.vm_internal_pu * turn).to_numpy())
    moving = controllable(net)
    powers = [net.res_ext_grid, net.res_gen, net.res_sgen, -net.res_load[moving]]
    units = np.concatenate([(one.p_mw + 1j * one.q_mvar).to_numpy(complex) for one in powers])
    # The ends of a DC line hold their voltage.
    held = np.zeros(sum(len(part) for part in voltage), dtype=complex)
    for end in ("from", "to"):
        reactive = net.res_dcline[f"q_{end}_mvar"].to_numpy()
        np.add.at(held, net.bus.index.get_indexer(net.dcline[f"{end}_bus"]), -1j * reactive)
    return np.concatenate(voltage), np.nan_to_num(units), held


@pytest.mark.parametrize("name", NETS)
def test_voltages_of_its_own_power_flow_solve_our_equations(name):
    net = NETS[name]()
    network = grid.read_case(net)
    voltage, units, held = flowed(net)
    assert missed(network, voltage, units, held) <= AGREED
    # The controls: without what only AC knows, or with another vector group, they don't.
    other = copy.deepcopy(net)
    other.line["c_nf_per_km"], other.trafo["i0_percent"], other.trafo["pfe_kw"] = 0.0, 0.0, 0.0
    other.trafo3w["i0_percent"] = 0.0
    assert missed(grid.read_case(other), voltage, units, held) > MISSED


def own_flow(net, network, found):
    """Put the outputs and voltages of a solution into a net, and run its own power flow."""
    size, units, start = found.voltage[0], network.generators, 0
    for table in ("ext_grid", "gen", "sgen"):
        mine = slice(start, start + len(net[table]))
        start = mine.stop
        if table != "ext_grid":
            net[table]["p_mw"] = found.dispatch[0][mine]
        if table == "sgen":
            net.sgen["q_mvar"], net.sgen["scaling"] = found.reactive[0][mine], 1.0
        else:
            net[table]["vm_pu"] = size[units.bus[mine]]
    moving = controllable(net)
    net.load.loc[moving, "p_mw"] = -found.dispatch[0][start:]
    net.load.loc[moving, "q_mvar"] = -found.reactive[0][start:]
    for end in ("from", "to"):
        net.dcline[f"vm_{end}_pu"] = size[net.bus.index.get_indexer(net.dcline[f"{end}_bus"])]
    pp.runpp(net, tolerance_mva=1e-9, numba=False)
    assert net.converged
    apart = net.res_bus.vm_pu.to_numpy() - size[: len(net.bus)]
    ends = {"line": ("from", "to"), "trafo": ("hv", "lv"), "impedance": ("from", "to")}
    power = [
        np.max(
            [np.hypot(net[f"res_{t}"][f"p_{e}_mw"], net[f"res_{t}"][f"q_{e}_mvar"]) for e in es], 0
        )
        for t, es in ends.items()
        if len(net[t])
    ]
    full = np.concatenate(power) / network.branches.capacity[: sum(map(len, power))]
    return np.nanmax(np.abs(apart)), np.nanmax(full * network.branches.in_service[: len(full)])


RELEASES = {
    "capacity": ("cigre_mv", {"alpha": 2}),
    "load,reactive_load": ("cigre_mv", {"alpha": {"load": 0.5, "reactive_load": 0.2}}),
    "load": ("dc line", {"alpha": 0.5, "power_factor": 0.95}),
    "generator_limit": ("cigre_mv", {"alpha": 1}),
    "capacity,cost": ("dc line", {"alpha": {"capacity": 2, "cost": 0.5}}),
}


@pytest.mark.parametrize("parameters", RELEASES)
def test_a_release_in_ac_is_what_pandapower_makes_of_its_file(parameters, tmp_path):
    name, how = RELEASES[parameters]
    network = grid.read_case(NETS[name](), max_loading=100.0)
    private = [one for one in parameters.split(",") if one != "reactive_load"]
    models = grid.sample_population(network, 2, spread=0.03, private=private)
    made = grid.release(network, models, parameter=parameters, epsilon=1, ac=True, seed=1, **how)
    assert made.statement.body["settings"]["models_not_served"] == 0
    assert "AC power flow" in made.quality()[-1]
    folder = made.write(tmp_path / "out")
    again = grid.read_case(folder / "network.json")
    ours, theirs = ac_numbers(made.data), ac_numbers(again)
    for one in fields(AcNumbers)[1:]:
        np.testing.assert_allclose(getattr(ours, one.name), getattr(theirs, one.name), rtol=1e-9)
    found = grid.solve_ac(again)
    assert found.served.all()
    apart, fullest = own_flow(pp.from_json(str(folder / "network.json")), again, found)
    assert apart <= 1e-5
    assert fullest <= 1 + 1e-5
    if parameters == "capacity":
        seen = grid.evaluate(folder, network)
        assert seen.ac[0].models == 2
        assert seen.ac[0].not_served == 0


def named(net):
    with pytest.raises(InputError) as refused:
        grid.solve_ac(grid.read_case(net))
    return str(refused.value)


def test_what_ac_can_not_have_is_named():
    net = nw.case14()
    net.load.loc[3, "const_z_p_percent"] = 20.0
    assert "load 3: its power depends on the voltage" in named(net)
    net = multivoltage()
    net.impedance["rtf_pu"] *= 1.5
    assert "impedance 0: it differs from one end to the other" in named(net)
    net.impedance["in_service"] = False
    grid.read_case(net)
    assert not fmt.ac_gaps(net)


@pytest.mark.parametrize("rating", [100.0, 97.3, 61.7])
def test_no_private_rating_rounds_an_unequal_impedance_away(rating):
    net = multivoltage()
    net.impedance[["sn_mva", "rft_pu", "rtf_pu"]] = rating, 0.07487, 0.07488
    network = grid.read_case(net, max_loading=100.0)
    with pytest.raises(InputError, match="impedance 0: it differs"):
        grid.plan(network, parameter="capacity", epsilon=1, alpha=1, range=(1, 300), ac=True)


def public_columns(net, parameter, **how):
    """Everything that AC reads of the network that restoration sees."""
    network = grid.read_case(net, max_loading=100.0)
    public = grid.plan(network, parameter=parameter, epsilon=1, ac=True, **how).problem.public
    middle = (public.low + public.high) / 2
    seen = ac_numbers(public.with_values(middle))
    numbers = [np.asarray(getattr(seen, one.name)).tobytes() for one in fields(AcNumbers)[1:]]
    units = seen.network.generators
    return [*numbers, units.q_min.tobytes(), units.q_max.tobytes()]


def test_ac_numbers_leave_no_trace_of_private_ratings():
    """Another rating with the same ohms: a transformer that is open below too."""

    def left(factor, leak=1.0):
        net = opened("lv_bus", "t")
        for table, names in (("trafo", ("vk_percent", "vkr_percent")), ("impedance", ())):
            net[table]["sn_mva"] *= factor
            for name in names:
                net[table][name] *= factor
        net.trafo["i0_percent"] *= leak / factor
        net.impedance[["rft_pu", "xft_pu", "rtf_pu", "xtf_pu"]] *= factor
        return public_columns(net, "capacity", alpha=1, range=(1, 300))

    assert left(1.0) == left(1.731)
    assert left(1.0) != left(1.0, leak=2.0), "the control: another no-load current is seen"


def test_the_reactive_power_of_units_goes_with_their_private_limits():
    """A static unit often has a public power factor: its Mvar would tell its private MW."""

    def left(factor, parameter):
        net = NETS["cigre_mv"]()
        net.sgen["q_mvar"] = 0.3 * factor * net.sgen.p_mw
        how = (
            {"alpha": 1, "range": (-20, 60)}
            if parameter == "generator_limit"
            else {"alpha": 1, "range": (1, 300)}
        )
        return public_columns(net, parameter, **how), fmt.strip(net, parameter).sgen.q_mvar.tolist()

    assert left(1.0, "generator_limit") == left(1.7, "generator_limit")
    assert left(1.0, "capacity") != left(1.7, "capacity"), "the control: it is public there"


def test_a_solve_starts_at_the_vector_groups_of_transformers():
    network = grid.read_case(nw.mv_oberrhein(), max_loading=100.0)
    programme = Programme(ac_numbers(network), elastic=False)
    found = grid.solve_ac(network)
    assert found.served.all()
    buses = programme.numbers.buses
    off = found.angle[0, buses] - np.degrees(programme._turned)
    assert np.abs(off).max() < 20
    assert np.abs(found.angle[0, buses]).max() > 100
