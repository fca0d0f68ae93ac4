"""Reactive power of loads as a private parameter beside the active one."""

from dataclasses import replace

import numpy as np
import pytest
from grid.making import pglib

from gridveil import grid
from gridveil.auditing.grid_files import FORMATS
from gridveil.errors import InputError, LedgerRefused
from gridveil.grid import cases, read_case, sample_population, solve_ac
from gridveil.grid.model.checks import ProblemsFound
from gridveil.privacy.ledger import Ledger

pytestmark = [
    pytest.mark.filterwarnings("ignore:Seeded noise"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]
BOTH = "load,reactive_load"
ALPHA = {"load": 2, "reactive_load": 1}


def with_reactive(network, reactive):
    return replace(network, buses=replace(network.buses, reactive_load=reactive))


def signed(network):
    """The network with reactive loads of either sign, and one where there is no active load."""
    reactive = network.buses.reactive_load.copy()
    reactive[np.flatnonzero(reactive)[::3]] *= -1
    reactive[np.flatnonzero(network.buses.load == 0)[0]] = 12.0
    return with_reactive(network, reactive)


def plan_of(network, models, **options):
    return grid.plan(
        network, models, **{"parameter": BOTH, "epsilon": 1, "alpha": ALPHA, **options}
    )


@pytest.fixture(scope="module")
def made():
    network = signed(cases.rts96())
    models = sample_population(network, 3, spread=0.03, private="load")
    plan = plan_of(network, models)
    return network, plan, plan.run(plan.study(4))


def test_reactive_loads_are_released_with_noise_of_their_own(made, tmp_path):
    network, plan, release = made
    scale = plan.prepared.entries.scale(plan.prepared.epsilons["entries"])
    parts = release.public.parts
    assert scale[parts["reactive_load"]] == pytest.approx(1, rel=0.01)  # alpha/epsilon
    assert scale[parts["load"]].min() > 3  # 2 MW, less what the total takes
    ours, theirs = network.buses.reactive_load, release.data.buses.reactive_load
    private = ours != 0
    assert (np.sign(theirs) * np.sign(ours) >= 0).all()
    assert (theirs[~private] == 0).all()
    # Values are on a grid of 0.01 Mvar: one in 200 may be what it was.
    assert (theirs[private] != ours[private]).mean() > 0.8
    assert np.abs(theirs - ours).mean() < 3
    assert (ours[private] < 0).any()
    release.write(tmp_path / "out")
    assert np.array_equal(read_case(tmp_path / "out" / "network.m").buses.reactive_load, theirs)


def test_one_query_asks_for_both_and_costs_no_more(made):
    _, plan, release = made
    assert len(plan.asked()) == len(release.account.records) == 1
    assert release.account.records[0].epsilon == 1
    words = str(release.statement.body["guarantee"])
    assert "two entries" in words
    assert "power_factor" not in release.statement.body["settings"]
    assert "load" not in release.statement.body["published_in_clear"]


def test_the_same_answers_leave_the_same_bytes_whatever_the_private_values_are(tmp_path):
    """Twins whose reactive loads differ by far, and answers of one of them for both."""
    network = signed(cases.rts96())
    twin = with_reactive(network, network.buses.reactive_load * 3.7)
    models = sample_population(network, 2, spread=0.03, private="load")
    found = []
    for one in (network, twin):
        _, public = one.split(
            ("load", "reactive_load"), {"load": (0, 500), "reactive_load": (-99, 99)}
        )
        path = tmp_path / "released.m"
        public.with_values(np.where(public.signs > 0, 8.0, -8.0)).write_release(
            path, ("load", "reactive_load")
        )
        found.append((path.read_bytes(), plan_of(one, models).unusual, str(plan_of(one, models))))
    assert found[0] == found[1]
    # The control: reactive loads that are public, since loads are, are told apart.
    clear = []
    for one in (network, twin):
        _, public = one.split("capacity", (1, 5000))
        clear.append(public.with_values(np.full(public.entries, 70.0)).buses.reactive_load)
    assert not np.array_equal(*clear)


def test_ac_repair_moves_reactive_loads_too():
    network = read_case(pglib("pglib_opf_case14_ieee"))
    models = sample_population(network, 3, spread=0.03, private="load")
    assert solve_ac(network, models).served.all()
    values = []
    for ac in (False, True):
        plan = plan_of(network, models, alpha={"load": 1, "reactive_load": 60}, ac=ac)
        release = plan.run(plan.study(3))
        values.append(release.values[release.public.parts["reactive_load"]])
        served = solve_ac(release.data, models).served
        assert served.all() == ac  # noise of 60 Mvar is more than these units can make up for
    assert np.abs(values[1] - values[0]).max() > 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"parameter": "reactive_load"}, "private only beside load"),
        ({"parameter": BOTH, "power_factor": 0.9}, "not released itself"),
        ({"parameter": BOTH, "alpha": 5}, "different units"),
        ({"parameter": BOTH, "alpha": {"load": 5, "reactive_load": "20%"}}, "share of each value"),
        ({"parameter": BOTH, "only": {"load": "area=1"}}, "Give both the same rule"),
    ],
)
def test_what_is_refused_before_a_charge(options, words):
    with pytest.raises(InputError, match=words):
        grid.plan(cases.rts96(), **{"epsilon": 1, "alpha": ALPHA, **options})


def test_a_number_that_is_missing_is_named_and_one_that_is_endless_is_clipped():
    network = cases.rts96()
    models = sample_population(network, 1, private="load")
    reactive = network.buses.reactive_load.copy()
    reactive[2] = np.inf
    plan_of(with_reactive(network, reactive), models)
    reactive[2] = np.nan
    with pytest.raises(ProblemsFound, match="bus 103: not a finite number"):
        plan_of(with_reactive(network, reactive), models)


def test_loads_that_are_declared_public_keep_their_reactive_power(tmp_path):
    network = cases.rts96()
    models = sample_population(network, 1, private=BOTH)
    plan = plan_of(network, models, only="area=1", method="laplace")
    release = plan.run(plan.study(1))
    release.write(tmp_path / "out")
    ours, theirs = network.buses.reactive_load, read_case(tmp_path / "out" / "network.m").buses
    hidden = release.public.support["reactive_load"]
    assert 0 < hidden.sum() < (ours != 0).sum()
    assert np.array_equal(theirs.reactive_load[~hidden], ours[~hidden])
    assert (theirs.reactive_load[hidden] != ours[hidden]).all()


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("partly", [False, True])
def test_files_of_every_format_have_the_released_reactive_loads(kind, partly, tmp_path):
    if FORMATS[kind].needs is not None:
        pytest.importorskip(FORMATS[kind].needs, reason=f"{FORMATS[kind].needs} is not installed")
    path = tmp_path / FORMATS[kind].file
    how = FORMATS[kind].forms.get("float64", str)
    FORMATS[kind].write(path, {"reactive_load": (9.0, -24.0)}, how)
    network = read_case(path)
    assert network.buses.reactive_load[network.buses.load > 0].tolist() == [9.0, -24.0]
    models = sample_population(network, 1, private=BOTH)
    last = network.buses.name[int(np.flatnonzero(network.buses.load)[-1])]
    rule = f"name={last}" if partly else None
    plan = plan_of(network, models, method="laplace", only=rule)
    release = plan.run(plan.study(1))
    again = tmp_path / f"released{path.suffix}"
    release.data.write_release(again, release.public.parameters)
    theirs = read_case(again).buses.reactive_load
    assert theirs == pytest.approx(release.data.buses.reactive_load)
    kept = theirs == network.buses.reactive_load
    assert kept[network.buses.load > 0].tolist() == [partly, False]


def test_what_a_release_of_capacities_published_can_not_be_private(tmp_path):
    network = cases.rts96()
    ledger = Ledger(tmp_path / "ledger.sqlite")
    models = sample_population(network, 1, private=BOTH)
    how = {"epsilon": 1, "dataset": "rts96", "ledger": ledger, "method": "laplace"}
    grid.release(network, None, alpha=30, **how)
    with pytest.raises(LedgerRefused, match="load"):
        grid.release(network, models, parameter=BOTH, alpha=ALPHA, **how)
