"""The code that a report shows does load its bundle, in the tools that are installed here."""

import importlib.util
import warnings

import numpy as np
import pandas as pd
import pytest

from gridveil import grid
from gridveil.wind import read_records, release
from gridveil.wind.demo import CAPACITY, demo_records


def run(snippets, folder, monkeypatch):
    """Run the code of every tool that is here; what its names stand for, tool by tool."""
    monkeypatch.chdir(folder)
    found = {}
    for one in snippets:
        library = one.tool.split(",")[0].lower()
        if one.tool == "MATPOWER" or importlib.util.find_spec(library) is None:
            continue
        names = {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the libraries' own
            exec(compile(one.code, one.tool, "exec"), names)
        found.setdefault(library, {}).update(names)
    return found


@pytest.mark.parametrize("kind", ["csv", "parquet", "csv with commas"])
def test_wind_records_load(kind, tmp_path, monkeypatch, ledger):
    source, table = tmp_path / f"farm.{kind.split()[0]}", demo_records(60).to_pandas()
    commas = {"decimal": ","} if "commas" in kind else {}
    if kind == "parquet":
        table.to_parquet(source)
    else:
        table.to_csv(source, index=False, sep=";" if commas else ",", **commas)
    records = read_records(source, speed="wind_speed", power="power", capacity=CAPACITY, **commas)
    made = release(records, epsilon=1, alpha="15%", dataset="mine", ledger=ledger)
    found = run(made.loading(), made.write(tmp_path / "out"), monkeypatch)
    assert "pandas" in found
    assert all(len(names["data"]) == 60 for names in found.values())
    assert (found["pandas"]["low"] < found["pandas"]["high"]).all()
    assert found["pandas"]["deviation"] > 0


@pytest.mark.parametrize("method", ["tuned", "wpo", "laplace"])
def test_the_mean_of_noisy_records_is_a_share_of_capacity(method, tmp_path, monkeypatch, ledger):
    table = demo_records(2000).to_pandas()
    records = read_records(table, speed="wind_speed", power="power", capacity=CAPACITY)
    made = release(records, epsilon=10, alpha="15%", method=method, dataset="mine", ledger=ledger)
    found = run(made.loading(), made.write(tmp_path / "out"), monkeypatch)["pandas"]
    real = (table.power / CAPACITY).clip(0, 1).mean()
    assert abs(found["mean"] - real) < 6 * found["deviation"] < 0.02


def test_noisy_sums_are_named_and_choices_are_left_out(tmp_path, monkeypatch, ledger):
    table = demo_records(60).to_pandas()
    records = read_records(table, speed="wind_speed", power="power", capacity=CAPACITY)
    made = release(records, epsilon=1, method="synthetic", dataset="mine", ledger=ledger)
    found = run(made.loading(), made.write(tmp_path / "out"), monkeypatch)["pandas"]
    sums, asked = found["sums"], made.statement.body["mechanisms"]
    scales = {one["query"]: one["scale"] for one in asked if one["noise"].startswith("discrete")}
    assert len(scales) < len(asked)  # the first is a choice among curves, whose noise has no mean
    assert (sums.scale == sums["query"].map(scales)).all()
    assert set(sums["query"]) == set(scales)
    assert (found["deviation"] > 0).all()
    assert "encoding='utf-8'" in made.loading()[-1].code  # statements are, on every system


def matpower(path):
    grid.cases.rts96(variant="paper").write(path)


def pandapower(path):
    pp = pytest.importorskip("pandapower", reason="pandapower is not installed")
    from pandapower.converter.matpower.from_mpc import from_mpc

    matpower(path.with_suffix(".m"))
    pp.to_json(from_mpc(str(path.with_suffix(".m"))), str(path))


def pypsa(path):
    library = pytest.importorskip("pypsa", reason="PyPSA is not installed")
    n = library.Network()
    for name in ("a", "b"):
        n.add("Bus", name, v_nom=110.0)
    n.add("Line", "ab", bus0="a", bus1="b", x=4.0, s_nom=100.0)
    n.add("Load", "need", bus="b", p_set=50.0)
    n.add("Generator", "slack", bus="a", control="Slack", p_nom=200.0, marginal_cost=20.0)
    n.export_to_netcdf(path)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.parametrize(
    ("kind", "make", "tools"),
    [
        ("m", matpower, {"pandas", "gridveil", "pandapower"}),
        ("json", pandapower, {"pandas", "gridveil", "pandapower"}),
        ("nc", pypsa, {"pandas", "gridveil", "pypsa"}),
    ],
    ids=["m", "json", "nc"],
)
def test_a_network_loads(kind, make, tools, tmp_path, monkeypatch, ledger):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        make(tmp_path / f"case.{kind}")
    network = grid.read_case(tmp_path / f"case.{kind}")
    models = grid.sample_population(network, 3)
    made = grid.release(network, models, epsilon=1, alpha=10, dataset="mine", ledger=ledger)
    found = run(made.loading(), made.write(tmp_path / "out"), monkeypatch)
    assert set(found) == {tool for tool in tools if importlib.util.find_spec(tool) is not None}
    assert len(found["pandas"]["models"]) == len(found["gridveil"]["costs"]) == 3
    # Costs differ from those of the tools above, and whoever compares them must know why.
    own = next(one for one in made.loading() if one.tool == "GridVeil")
    assert 'convention="matpower"' in own.code
    buses = len(network.buses)
    if "pandapower" in found:
        assert len(found["pandapower"]["net"].bus) == buses
    if "pypsa" in found:
        assert len(found["pypsa"]["network"].buses) == buses


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_loads_over_time_load_with_their_network(tmp_path, monkeypatch, ledger):
    """A study of a year needs the network that the loads belong to."""
    network = grid.cases.rts96()
    used = np.flatnonzero(network.buses.load)
    times = pd.date_range("2024-01-01", periods=24, freq="h", name="time")
    names = [network.buses.name[bus] for bus in used]
    loads = pd.DataFrame(np.outer(np.full(24, 0.5), network.buses.load[used]), times, names)
    series = grid.read_series(loads, network)
    how = {"epsilon": 1, "alpha": 5, "range": (0, 500), "dataset": "mine", "ledger": ledger}
    made = grid.release_series(network, series, **how)
    assert {"MATPOWER", "pandapower"} <= {one.tool for one in made.loading()}
    found = run(made.loading(), made.write(tmp_path / "out"), monkeypatch)
    assert found["pandas"]["loads"].shape[0] == 24
