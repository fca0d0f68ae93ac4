"""Loads over time of PyPSA and pandapower networks: read by their names, and written back."""

import numpy as np
import pandas as pd
import pytest

import gridveil as gv

pytestmark = [
    pytest.mark.filterwarnings("ignore::gridveil.errors.NotPrivateWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]

HOURS = 48


def loads(names):
    shape = 0.6 + 0.2 * np.sin(np.arange(HOURS) / 24 * 2 * np.pi)
    times = pd.date_range("2024-01-01", periods=HOURS, freq="h")
    return pd.DataFrame(np.outer(shape, 10.0 + np.arange(len(names))), times, names)


def test_pypsa_snapshots_go_in_and_come_out(tmp_path):
    pypsa = pytest.importorskip("pypsa")
    network = pypsa.Network()
    network.set_snapshots(pd.date_range("2024-01-01", periods=HOURS, freq="h"))
    network.add("Bus", ["a", "b"], v_nom=110.0)
    network.add("Line", "line", bus0="a", bus1="b", x=0.1, r=0.01, s_nom=200.0)
    network.add("Generator", "unit", bus="a", p_nom=200.0, marginal_cost=20.0)
    real = loads(["x", "y", "z"])
    network.add("Load", ["x", "y", "z"], bus=["a", "b", "b"], p_set=real)
    read = gv.grid.read_case(network, snapshot=network.snapshots[0])
    series = gv.grid.read_series(None, read)
    assert series.names == ("x", "y", "z")
    np.testing.assert_allclose(series._values, real.to_numpy())
    made = gv.grid.release_series(read, series, seed=0, epsilon=500, alpha="0.1", range=(0, 100))
    placed = made.write(tmp_path / "out")
    written = pypsa.Network(str(placed / "network.nc"))
    assert len(written.snapshots) == HOURS
    np.testing.assert_allclose(written.loads_t.p_set.to_numpy(), made.values, atol=1e-9)
    assert np.abs(made.values - real.to_numpy()).max() < 3.0


def test_pandapower_loads_are_named_by_index_or_name():
    pandapower = pytest.importorskip("pandapower")
    net = pandapower.create_empty_network()
    for name in ("a", "b"):
        pandapower.create_bus(net, 110.0, name=name)
    pandapower.create_ext_grid(net, 0, min_p_mw=-200.0, max_p_mw=200.0)
    pandapower.create_poly_cost(net, 0, "ext_grid", cp1_eur_per_mw=20.0)
    pandapower.create_line_from_parameters(net, 0, 1, 1.0, 0.01, 0.1, 0.0, 2.0)
    for bus, name in ((0, "x"), (1, "y"), (1, "z")):
        pandapower.create_load(net, bus, 10.0, name=name)
    read = gv.grid.read_case(net, max_loading=100)
    for names in (["0", "1", "2"], ["x", "y", "z"]):
        series = gv.grid.read_series(loads(names), read)
        assert series.bus.tolist() == [0, 1, 1]
        made = gv.grid.release_series(
            read, series, seed=0, epsilon=500, alpha="0.1", range=(0, 100)
        )
        assert made.values.shape == (HOURS, 3)
        assert np.isfinite(made.solutions.cost).all()
        assert made.network.buses.load[1] == pytest.approx(made.values[:, 1:].mean(axis=0).sum())
