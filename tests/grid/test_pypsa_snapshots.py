"""Several snapshots of a PyPSA network as models. Runs where PyPSA is installed.

PyPSA's own examples are not in its package: GRIDVEIL_PYPSA_EXAMPLES names a folder that has them
(ac-dc-meshed.nc, model-energy.nc, scigrid-de.nc).
"""

import os
import warnings
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("pypsa", reason="PyPSA is not installed")
import pypsa
from grid.test_pypsa import assert_same, optimize, other_numbers, pytestmark, wide
from typer.testing import CliRunner

from gridveil import grid
from gridveil.cli.commands import app
from gridveil.errors import InputError, NotPrivateWarning
from gridveil.grid.evaluation import evaluate
from gridveil.grid.io import pypsa as fmt
from gridveil.grid.io import read_case
from gridveil.grid.model.sampling import own_models
from gridveil.planning.choice import Choice
from gridveil.planning.release_kind import make_kinds

__all__ = ["pytestmark"]
TIMES = pd.date_range("2024-03-01", periods=5, freq="6h")
FACTORS = [1.0, 0.8, 0.55, 0.9, 0.7]


def moving():
    """Loads, availability, ratings, a set power, costs and storage that vary over five times."""
    n = wide()
    n.set_snapshots(TIMES)
    for k in range(5):
        n.loads_t.p_set[f"load {k}"] = (13.0 + 3 * k) * np.roll(FACTORS, k)
    n.generators_t.p_max_pu["slack"] = [0.95, 0.8, 0.4, 0.9, 0.99]
    n.generators_t.p_max_pu["unit"] = FACTORS
    n.generators_t.p_set["fixed"] = [7.9, 6.1, 0.0, 5.0, 7.0]
    n.generators_t.marginal_cost["peaker"] = [63.0, 70.0, 55.0, 61.0, 20.0]
    n.lines_t.s_max_pu["line 0"] = [0.8, 0.9, 1.1, 0.7, 1.0]
    n.add("StorageUnit", "dam", bus="node 3", p_nom=12.0, max_hours=100.0)
    n.storage_units["state_of_charge_initial"] = 500.0
    n.storage_units_t.p_set["dam"] = [2.0, -1.5, 0.0, 2.5, -3.0]
    n.snapshot_weightings["objective"] = [6.0, 6.0, 6.0, 6.0, 12.0]
    return n


def test_every_model_is_what_optimize_takes_its_snapshot_for():
    network = read_case(moving(), snapshots="all")
    models = own_models(network)
    found = grid.solve_population(network, models, convention="matpower")
    for at, time in enumerate(TIMES):
        n = optimize(moving(), time)
        # PyPSA counts a snapshot by its weight.
        theirs = n.objective / n.snapshot_weightings.objective[time]
        assert found.cost[at] == pytest.approx(theirs, rel=1e-6), time
    assert len({round(cost, 3) for cost in found.cost}) == 5


def test_populations_are_sampled_around_the_snapshots(tmp_path):
    moving().export_to_netcdf(str(tmp_path / "net.nc"))
    read = f"{tmp_path / 'net.nc'} --snapshots all"
    run, out = CliRunner().invoke, tmp_path / "m.parquet"
    done = run(app, f"grid population {read} --size 5 --spread 0 --costs none -o {out}")
    assert done.exit_code == 0, done.output
    network = read_case(tmp_path / "net.nc", snapshots="all")
    own, same = own_models(network), grid.Population.read(out, network)
    assert own.arrays().keys() <= same.arrays().keys()
    for name, array in same.arrays().items():
        assert np.array_equal(array, own.arrays().get(name, np.ones_like(array))), name
    many = grid.sample_population(network, 20, spread=0.1, seed=3)
    ratio = many.load / np.repeat(own.load, 4, axis=0)
    assert 0.9 <= np.nanmin(ratio) < 0.92 < 1.08 < np.nanmax(ratio) <= 1.1
    priced = grid.sample_population(network, 20, costs=(80, 100))
    assert priced.cost_factor is None  # those of the network's own costs, which it has not
    words = f"grid release {read} --population {out} --alpha 1 --range 1:300 --dataset a --dry-run"
    assert run(app, f"{words} -o {tmp_path / 'out'}").exit_code == 0
    refused = run(app, f"grid population {read} --private load -o {out}")
    assert refused.exit_code == 2
    assert "vary over the snapshots" in " ".join(refused.output.split())


def test_a_public_network_on_the_page_is_run_with_its_snapshots(tmp_path):
    moving().export_to_netcdf(str(tmp_path / "net.nc"))
    with pytest.raises(InputError, match="--snapshots all"):
        make_kinds(tmp_path / "net.nc")
    kind = make_kinds(tmp_path / "net.nc", reading={"snapshots": "every 12h"})[0]
    assert kind.size == ("snapshots", 3, 3, 3)
    assert "its 3 snapshots" in kind.stand_in
    choice = Choice("grid", (("capacity", Fraction(1)),), "certified", Fraction(1), 3)
    with pytest.warns(NotPrivateWarning):
        assert np.isfinite(kind.session(choice).run(0).values["value-capacity"])
    with pytest.raises(InputError, match="vary over the snapshots"):
        kind.neighbours(Choice("grid", (("load", Fraction(1)),), "certified", Fraction(1), 3))


def test_which_snapshots_are_read(tmp_path):
    def labels(asked):
        return list(read_case(moving(), snapshots=asked).source.data.labels)

    assert labels("every 12h") == list(TIMES[::2]) == labels("every 2")
    (tmp_path / "some.txt").write_text(f"{TIMES[3]}\n\n{TIMES[1]}\n")
    assert labels(tmp_path / "some.txt") == [TIMES[1], TIMES[3]] == labels([TIMES[3], TIMES[1]])
    for bad, words in (("every week", "every"), ("none.txt", "no file"), (["1999"], "no snapshot")):
        with pytest.raises(InputError, match=words):
            labels(bad)
    with pytest.raises(InputError, match=r"for loads over time \(--series\) what it has"):
        read_case(moving())
    with pytest.raises(InputError, match=f"they run from {TIMES[0]} to {TIMES[-1]}"):
        read_case(moving(), snapshot="yesterday")
    with pytest.raises(InputError, match="several were asked for"):
        read_case(moving(), snapshots="all", snapshot=TIMES[0])


SERIES = {
    "capacity": ("generators_t.p_max_pu", "generators_t.marginal_cost", "lines_t.s_max_pu"),
    "generator_limit": ("generators_t.p_max_pu", "lines_t.s_max_pu"),
    "cost": ("generators_t.p_max_pu", "generators_t.p_set", "lines_t.s_max_pu"),
}


def publishable(parameter):
    n = moving()
    if parameter == "generator_limit":
        n.generators_t.p_set = n.generators_t.p_set.drop(columns="fixed")
    if parameter == "cost":
        n.generators_t.marginal_cost = n.generators_t.marginal_cost.drop(columns="peaker")
    return n


@pytest.mark.parametrize("parameter", SERIES)
def test_a_release_has_all_snapshots_and_serves_them(parameter, tmp_path):
    n = publishable(parameter)
    network = read_case(n, snapshots="all")
    made = grid.release(network, parameter=parameter, epsilon=1, alpha=1, seed=3, range=(0.5, 300))
    assert made.population.size == 5
    assert np.isfinite(made.solutions.cost).all()
    bundle = made.write(tmp_path / "bundle")
    again = pypsa.Network(str(bundle / "network.nc"))
    assert list(again.snapshots) == list(TIMES)
    assert again.snapshot_weightings.objective.tolist() == n.snapshot_weightings.objective.tolist()
    for name in ("loads_t.p_set", "storage_units_t.p_set", *SERIES[parameter]):
        table, column = name.split(".")
        ours, theirs = (getattr(getattr(one, table), column).to_numpy() for one in (n, again))
        assert np.array_equal(ours, theirs), name
    read = read_case(bundle / "network.nc")
    for table, column in (("branches", "capacity"), ("generators", "p_max"), ("buses", "load")):
        ours, theirs = (getattr(getattr(one, table), column) for one in (made.data, read))
        assert np.allclose(ours, theirs, rtol=1e-14, atol=0), column
    assert np.array_equal(read.generators.linear, made.data.generators.linear)
    assert evaluate(bundle, network).population.infeasible == 0


@pytest.mark.parametrize("parameter", SERIES)
def test_what_is_left_is_the_same_whatever_the_private_numbers_are(parameter):
    def left(change):
        n = publishable(parameter)
        n.storage_units_t.p = n.storage_units_t.p_set * 1.7
        if change:
            series = {name: n.c[c].dynamic[name].copy() for c, name in SHARES}
            n = other_numbers(n, (parameter,))
            for component, name in SHARES:  # public
                n.c[component].dynamic[name] = series[name]
        return fmt.strip(read_case(n, snapshots="all").source.data, parameter).network

    assert_same(left(change=True), left(change=False))


SHARES = [("Generator", "p_max_pu"), ("Generator", "p_min_pu"), ("Line", "s_max_pu")]


@pytest.mark.parametrize(
    ("parameter", "damage", "words"),
    [
        ("load", lambda n: None, "series"),
        ("cost", lambda n: None, "series of marginal_cost"),
        ("generator_limit", lambda n: None, "series of p_set"),
        ("capacity", lambda n: n.transformers_t.phase_shift.__setitem__("trafo", 1.0), "varies"),
        (
            "capacity",
            lambda n: n.generators_t.p_min_pu.__setitem__("unit", [-0.1, 0.1, 0, 0, 0]),
            "changes its sign",
        ),
        (
            "capacity",
            lambda n: n.generators_t.p_set.__setitem__("unit", [np.nan, 1, 1, 1, 1]),
            "some of the snapshots only",
        ),
    ],
)
def test_what_can_not_be_models_is_refused(parameter, damage, words):
    n = moving()
    damage(n)
    with pytest.raises(InputError, match=words):
        grid.plan(
            read_case(n, snapshots="all"), parameter=parameter, epsilon=1, alpha=1, range=(1, 300)
        )


@pytest.mark.parametrize("series", [[63.0, 70.0, 55.0, 61.0, 20.0], [63.0, -70.0, 5.0, 6.0, 2.0]])
def test_a_refusal_does_not_depend_on_private_series(series):
    n = moving()
    n.generators_t.marginal_cost["peaker"] = series
    with pytest.raises(InputError, match="series of marginal_cost"):
        grid.sample_population(read_case(n, snapshots="all"), 5, private="cost")
    if min(series) < 0:  # the control: as long as costs are public, the reason may be said
        with pytest.raises(InputError, match="changes its sign"):
            grid.sample_population(read_case(n, snapshots="all"), 5)


@pytest.mark.parametrize("cost", [63.0, np.inf, -np.inf, 1.7e308])
def test_no_warning_tells_an_infinite_private_cost(cost):
    n = moving()
    n.generators_t.marginal_cost = n.generators_t.marginal_cost[[]]
    n.generators.loc["peaker", "marginal_cost"] = cost
    read = read_case(n, snapshots="all")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = grid.sample_population(read, 5, private="cost")
        assert "cost_factor" in made.arrays()


def test_snapshots_on_the_command_line(tmp_path):
    moving().export_to_netcdf(str(tmp_path / "year.nc"))
    case, runner = str(tmp_path / "year.nc"), CliRunner()
    words = ["grid", "release", case, "--snapshots", "every 12h", "--alpha", "1", "--range"]
    words += ["1:300", "--dataset", "wide", "--ledger", str(tmp_path / "ledger"), "--yes"]
    done = runner.invoke(app, [*words, "-o", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    assert len(pypsa.Network(str(tmp_path / "out" / "network.nc")).snapshots) == 3
    against = ["--against", case, "--snapshots", "every 12h"]
    done = runner.invoke(app, ["grid", "evaluate", str(tmp_path / "out"), *against])
    assert done.exit_code == 0, done.output
    done = runner.invoke(app, ["grid", "info", case, "--snapshots", "all"])
    assert "5 of 5 snapshots have a solution" in done.output


@pytest.mark.parametrize(
    ("name", "parameter"),
    [("ac-dc-meshed", "capacity"), ("model-energy", "cost"), ("scigrid-de", "capacity")],
)
def test_the_examples_of_pypsa_are_released(name, parameter, tmp_path):
    path = Path(os.environ.get("GRIDVEIL_PYPSA_EXAMPLES", "")) / f"{name}.nc"
    if not path.is_file():
        pytest.skip("GRIDVEIL_PYPSA_EXAMPLES names no folder with PyPSA's examples")
    n = pypsa.Network(str(path))
    network = read_case(path, snapshots="all" if len(n.snapshots) < 100 else "every 240h")
    given = {"parameter": parameter, "epsilon": 1, "alpha": 10, "range": (1, 5000)}
    made = grid.release(network, **given, seed=1, method="laplace")
    made.data.write_release(tmp_path / "out.nc", parameter)
    again, theirs = read_case(tmp_path / "out.nc"), pypsa.Network(str(tmp_path / "out.nc"))
    assert np.allclose(again.branches.capacity, made.data.branches.capacity, rtol=1e-14, atol=0)
    assert np.array_equal(again.generators.linear, made.data.generators.linear)
    kept = list(theirs.snapshots)
    for table in ("links", "storage_units", "stores", "loads", "buses"):
        ours, other = getattr(n, table), getattr(theirs, table)
        assert list(ours.index) == list(other.index)
        for column in {*ours.columns} & {"p_nom", "p_set", "efficiency", "max_hours", "v_nom"}:
            assert ours[column].tolist() == pytest.approx(other[column].tolist(), nan_ok=True)
    assert np.array_equal(theirs.loads_t.p_set, n.loads_t.p_set.loc[kept])
    assert np.array_equal(theirs.generators_t.p_max_pu, n.generators_t.p_max_pu.loc[kept])
