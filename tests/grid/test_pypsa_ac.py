"""AC power flow of PyPSA networks: the same equations as PyPSA's, releases, refusals."""

import logging
import warnings
from dataclasses import fields

import numpy as np
import pytest
from grid.flowing import AGREED, MISSED, missed

from gridveil import grid
from gridveil.errors import InputError
from gridveil.grid.opf.ac.numbers import AcNumbers, ac_numbers

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pypsa = pytest.importorskip("pypsa", reason="PyPSA is not installed")
pytest.importorskip("casadi", reason="casadi is not installed")

pytestmark = pytest.mark.filterwarnings("ignore")
logging.getLogger("pypsa").setLevel(logging.ERROR)


def five_buses(model="t", snapshots=("now",)):
    """Transformers with taps on both sides and of a type, shunts, storages and a link."""
    n = pypsa.Network(snapshots=list(snapshots), name="five buses")
    for k, volts in enumerate((110.0, 110.0, 20.0, 380.0, 20.0)):
        n.add("Bus", f"bus {k}", v_nom=volts)
    wire = {"x": 8.0, "r": 1.0, "b": 3e-5, "g": 1e-6, "s_nom": 100.0}
    n.add("Line", "high", bus0="bus 0", bus1="bus 1", **wire)
    n.add("Line", "low", bus0="bus 2", bus1="bus 4", x=0.5, r=0.2, b=1e-4, s_nom=40.0)
    core = {"model": model, "x": 0.12, "r": 0.01, "b": -0.02, "g": 0.003}
    n.add("Transformer", "first", bus0="bus 1", bus1="bus 2", s_nom=63.0, tap_ratio=1.03,
          phase_shift=2.0, **core)  # fmt: skip
    n.add("Transformer", "second", bus0="bus 0", bus1="bus 4", s_nom=40.0, tap_ratio=0.97,
          tap_side=1, **core)  # fmt: skip
    n.add("Transformer", "typed", bus0="bus 3", bus1="bus 1", type="160 MVA 380/110 kV",
          tap_position=2)  # fmt: skip
    n.add("ShuntImpedance", "shunt", bus="bus 3", g=3e-6, b=2e-5)
    n.add("Load", "load 2", bus="bus 2", p_set=20.0, q_set=7.0)
    n.add("Load", "load 3", bus="bus 3", p_set=12.0, q_set=4.0)
    n.add("Load", "load 4", bus="bus 4", p_set=10.0, q_set=3.0)
    n.add("Generator", "slack", bus="bus 0", control="Slack", p_nom=200.0, marginal_cost=10.0)
    n.add("Generator", "unit", bus="bus 4", control="PV", p_nom=20.0, marginal_cost=5.0)
    n.add("Generator", "fixed", bus="bus 2", p_nom=9.0, p_set=3.0, q_set=0.7)
    n.add("StorageUnit", "battery", bus="bus 2", p_nom=5.0, p_set=2.0, q_set=0.7)
    n.add("Store", "store", bus="bus 2", e_nom=5.0, p_set=0.5, q_set=0.2)
    n.add("Link", "link", bus0="bus 1", bus1="bus 4", p_nom=9.0, p_set=3.0, efficiency=0.95)
    n.buses[["v_mag_pu_min", "v_mag_pu_max"]] = 0.92, 1.08
    return n


def voltages(n):
    """Complex voltages of PyPSA's own power flow, and the power that is injected at buses."""
    found = n.pf(x_tol=1e-10)
    assert bool(found.converged.all().all())
    size, turn, active, reactive = (
        getattr(n.buses_t, name).iloc[0].reindex(n.buses.index).to_numpy()
        for name in ("v_mag_pu", "v_ang", "p", "q")
    )
    return size * np.exp(1j * turn), active + 1j * reactive


@pytest.mark.parametrize("model", ["t", "pi"])
def test_voltages_of_its_own_power_flow_solve_our_equations(model):
    n = five_buses(model)
    n.generators["p_set"] = [0.0, 8.0, 3.0]
    network = grid.read_case(n)
    voltage, power = voltages(n)
    # What is at each bus goes the other way: what all elements of our model inject.
    units = np.array([power[0], 0.0, 3.0 + 0.7j])
    table = network.buses
    drawn = table.load + table.fixed_load + 1j * (table.reactive_load + table.fixed_reactive_load)
    units[1] = power[4] + drawn[4]
    assert power[2] == pytest.approx(units[2] - drawn[2], abs=1e-9)
    assert missed(network, voltage, units) <= AGREED
    # The controls: with the other model, the tap on the other side, or no shunt, they don't.
    for change in (
        lambda other: other.transformers.__setitem__("model", "pi" if model == "t" else "t"),
        lambda other: other.transformers.__setitem__("tap_side", 0),
        lambda other: other.remove("ShuntImpedance", "shunt"),
    ):
        other = five_buses(model)
        change(other)
        assert missed(grid.read_case(other), voltage, units) > MISSED


def test_dc_reads_what_it_did():
    """Neither the branches to ground nor the model of a transformer has a part in DC."""
    costs = []
    for model in ("t", "pi"):
        n = five_buses(model)
        n.lines["b"] = 0.0
        n.transformers["tap_side"] = 0
        if model == "pi":
            n.remove("ShuntImpedance", "shunt")
        costs.append(grid.solve_population(grid.read_case(n)).cost[0])
    assert costs[0] == costs[1]


def own_flow(n, network, found):
    """Put the outputs and voltages of a solution into a network, and run its own power flow."""
    on = network.buses.in_service
    n.generators["p_set"], n.generators["q_set"] = found.dispatch[0], found.reactive[0]
    slack = network.buses.reference[network.generators.bus]
    n.generators["control"] = np.where(slack, "Slack", "PV")
    n.buses["v_mag_pu_set"] = np.where(on, found.voltage[0], 1.0)
    there, _ = voltages(n)
    full = []
    for component in ("lines", "transformers"):
        names, flow = getattr(n, component).index, getattr(n, f"{component}_t")
        ends = [np.hypot(flow[f"p{k}"].iloc[0], flow[f"q{k}"].iloc[0])[names] for k in (0, 1)]
        full.append(np.maximum(*ends))
    apart = np.abs(np.abs(there) - found.voltage[0])[on].max()
    return apart, (np.concatenate(full) / network.branches.capacity).max()


RELEASES = {
    "capacity": {"alpha": 2},
    "load,reactive_load": {"alpha": {"load": 0.5, "reactive_load": 0.2}},
    "load": {"alpha": 0.5, "power_factor": 0.95},
    "generator_limit": {"alpha": 1},
    "capacity,cost": {"alpha": {"capacity": 2, "cost": 0.5}},
}


@pytest.mark.parametrize("parameters", RELEASES)
def test_a_release_in_ac_is_what_pypsa_makes_of_its_file(parameters, tmp_path):
    network = grid.read_case(five_buses())
    assert grid.solve_ac(network).served.all()
    private = [one for one in parameters.split(",") if one != "reactive_load"]
    models = grid.sample_population(network, 2, spread=0.03, private=private)
    made = grid.release(
        network, models, parameter=parameters, epsilon=1, ac=True, seed=1, **RELEASES[parameters]
    )
    assert made.statement.body["settings"]["models_not_served"] == 0
    assert "AC power flow" in made.quality()[-1]
    folder = made.write(tmp_path / "out")
    again = grid.read_case(folder / "network.nc")
    ours, theirs = ac_numbers(made.data), ac_numbers(again)
    for one in fields(AcNumbers)[1:]:
        np.testing.assert_allclose(getattr(ours, one.name), getattr(theirs, one.name), rtol=1e-9)
    found = grid.solve_ac(again)
    assert found.served.all()
    n = pypsa.Network(str(folder / "network.nc"))
    if parameters == "generator_limit":
        assert not n.generators.q_set.any(), "a share of the private output in many files"
    apart, fullest = own_flow(n, again, found)
    assert apart <= 1e-5
    assert fullest <= 1 + 1e-5
    if parameters == "capacity":
        seen = grid.evaluate(folder, network)
        assert seen.ac[0].models == 2
        assert seen.ac[0].not_served == 0


def test_ac_numbers_leave_no_trace_of_private_ratings():
    """Another rating with the same ohms."""

    def left(factor, leak=1.0):
        n = five_buses()
        n.remove("Transformer", "typed")
        n.remove("Bus", "bus 3")
        n.remove("Load", "load 3")
        n.remove("ShuntImpedance", "shunt")
        n.transformers["s_nom"] *= factor
        n.transformers[["x", "r"]] *= factor
        n.transformers[["b", "g"]] *= leak / factor
        plan = grid.plan(grid.read_case(n), epsilon=1, alpha=1, range=(1, 300), ac=True)
        public = plan.problem.public
        seen = ac_numbers(public.with_values((public.low + public.high) / 2))
        return [np.asarray(getattr(seen, one.name)).tobytes() for one in fields(AcNumbers)[1:]]

    assert left(1.0) == left(1.731)
    assert left(1.0) != left(1.0, leak=2.0), "the control: another no-load current is seen"


def test_several_snapshots_are_refused_in_ac():
    network = grid.read_case(five_buses(snapshots=("now", "then")), snapshots="all")
    with pytest.raises(InputError, match="2 snapshots: reactive loads of several"):
        grid.solve_ac(network)


def test_what_ac_decides_on_its_own_is_noted():
    n = five_buses()
    n.buses[["v_mag_pu_min", "v_mag_pu_max"]] = 0.0, np.inf
    network = grid.read_case(n)
    assert set(network.buses.v_min) == {0.9}
    assert set(network.buses.v_max) == {1.1}
    said = " ".join(network.notes)
    assert "theirs is unlimited" in said
    assert "voltages of 5 of 5 buses between 0.9 and 1.1" in said
