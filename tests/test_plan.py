"""Plan, charge, run: a plan opens and charges nothing, and an account pays for one run."""

import copy
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import gridveil as gv
from gridveil.errors import InputError, NotPrivateWarning, PlanWarning
from gridveil.grid.methods.cost_query import CostQuery
from gridveil.grid.model.public_facts import public_facts
from gridveil.privacy.ledger import Ledger
from gridveil.privacy.noise import SecureNoise


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "ledger.sqlite")


@pytest.fixture(params=["wind", "grid"])
def plan(request):
    return make(request.param, "laplace")


def make(kind, method, **options):
    if kind == "wind":
        speed = np.linspace(3, 12, 40)
        power = np.clip((speed - 3) / 9, 0, 1)
        records = gv.wind.read_records(
            pa.table({"speed": speed, "power": power}), speed="speed", power="power", capacity=1.0
        )
        return gv.wind.plan(records, epsilon=1, alpha="15%", method=method, **options)
    network = gv.grid.cases.rts96()
    private = options.get("parameter", "capacity")
    models = gv.grid.sample_population(network, 3, costs=0.1, private=private)
    given = {"range": (50, 1000), **options}
    return gv.grid.plan(network, models, epsilon=1, alpha=30, method=method, **given)


def test_a_plan_charges_nothing(plan, ledger):
    assert "epsilon 1 for one of" in repr(plan)
    assert ledger.entries() == []


WIND = [("wind", method, {}) for method in ("tuned", "wpo", "laplace")]
GRID = [
    ("grid", "certified", {}),
    ("grid", "certified", {"parameter": "load", "range": (0, 500)}),
    ("grid", "paper", {"rounds": 2}),
    ("grid", "laplace", {}),
]


@pytest.mark.parametrize(("kind", "method", "options"), [*WIND, *GRID])
def test_a_plan_says_what_will_be_asked(kind, method, options):
    """Queries, scales and epsilons, in the words of the statement that the run then has."""
    planned = make(kind, method, **options)
    with pytest.warns(NotPrivateWarning):
        account = planned.study(1)
    mechanisms = planned.run(account).statement.body["mechanisms"]
    told = [one for one in planned.asked() for _ in range(one.times)]
    if method == "paper":
        told.sort(key=lambda one: one.query)  # its rounds take turns
        mechanisms.sort(key=lambda one: one["query"])
    assert [(one.query, str(one.epsilon)) for one in told] == [
        (one["query"], one["epsilon"]) for one in mechanisms
    ]
    assert [one.scale for one in told] == [f"{o['scale']:.4g} {o['unit']}" for o in mechanisms]
    assert sum(one.times * one.epsilon for one in planned.asked()) == 1
    for one in planned.asked():
        assert one.in_words(Fraction(1)) in repr(planned)
    assert all(sentence in repr(planned) for sentence in planned.in_words)


def test_every_run_needs_an_account_of_its_own(plan, ledger):
    account = plan.charge(ledger, dataset="north farm")
    release = plan.run(account)
    assert release.statement.dp_valid
    with pytest.raises(InputError, match="used before"):
        plan.run(account)
    again = plan.run(plan.charge(ledger, dataset="north farm"))
    assert again.statement.body["ledger"]["spent_so_far"] == "2"


def test_an_account_of_another_plan_is_refused(plan, ledger):
    network = gv.grid.cases.rts96()
    models = gv.grid.sample_population(network, 3, costs=0.1)
    other = gv.grid.plan(network, models, epsilon=1, alpha=20, method="laplace", range=(50, 1000))
    with pytest.raises(InputError, match="another release"):
        plan.run(other.charge(ledger, dataset="a network"))


def test_an_account_of_a_twin_plan_is_refused(plan, ledger):
    """Other data of the same size and alpha: one charge must not pay for both."""
    twin = copy.deepcopy(plan.terms)
    other = type(plan).__new__(type(plan))
    other.__dict__.update(plan.__dict__, terms=twin, _accounts=[])
    with pytest.raises(InputError, match="another release"):
        other.run(plan.charge(ledger, dataset="decoy"))


def test_one_charge_pays_for_one_run_whoever_asks(plan, ledger):
    account = plan.charge(ledger, dataset="north farm")
    with ThreadPoolExecutor(4) as pool:
        runs = [pool.submit(plan.run, account) for _ in range(4)]
    assert sum(run.exception() is None for run in runs) == 1


def test_a_source_that_draws_nothing_carries_no_guarantee(plan, ledger):
    class Nothing(SecureNoise):
        def laplace(self, values, scale):
            return values

    with pytest.raises(InputError, match="no guarantee"):
        plan.charge(ledger, dataset="north farm", noise=Nothing())
    assert ledger.entries() == []


def test_a_plan_that_a_study_changed_can_t_be_charged(ledger):
    network = gv.grid.cases.rts96()
    models = gv.grid.sample_population(network, 2, costs=0.1)
    paper = gv.grid.plan(
        network, models, epsilon=1, alpha=30, method="paper", rounds=1, range=(50, 1000)
    )
    weak = CostQuery(paper.problem, {"capacity": Fraction(1, 1000)})
    with pytest.raises(InputError, match="changed for a study"):
        paper.with_costs(weak).charge(ledger, dataset="a network")


def test_a_study_has_no_guarantee(plan):
    with pytest.warns(NotPrivateWarning):
        account = plan.study(1)
    assert not plan.run(account).statement.dp_valid


def test_what_is_unusual_is_said_before_the_charge(plan, ledger, monkeypatch):
    monkeypatch.setattr(type(plan), "unusual", ("No column orders the rows. Name one.",))
    assert "Unusual:\n  No column orders the rows." in repr(plan)
    assert plan.to_json()["unusual"] == ["No column orders the rows. Name one."]
    with (
        pytest.warns(PlanWarning, match=r"^Unusual: No column orders the rows"),
        pytest.raises(InputError, match="dataset"),
    ):
        plan.charge(ledger)  # without a name
    assert ledger.entries() == []


def test_groups_are_those_that_owners_ask_about():
    (one,) = make("grid", "laplace").terms.adjacency
    lines = gv.grid.cases.rts96().branches
    ends = np.concatenate([lines.from_bus, lines.to_bus])
    assert one.groups["the substation with the most lines"] == np.bincount(ends).max()
    assert one.groups["the whole network"] == one.entries == len(lines)
    levels = [words for words in one.groups if words.endswith("kV level")]
    voltage = public_facts(gv.grid.cases.rts96(), "branches")["voltage"]
    assert [one.groups[words] for words in levels] == [
        np.unique(voltage, return_counts=True)[1].max()
    ]
    times = pd.date_range("2024-01-01", periods=432, freq="10min")
    table = pd.DataFrame({"v": np.linspace(3, 12, 432), "p": 0.5, "t": times, "w": "A"})
    known = gv.wind.read_records(table, speed="v", power="p", capacity=1, time="t", turbine="w")
    (one,) = gv.wind.plan(known, epsilon=1, alpha="15%").terms.adjacency
    assert one.groups == {"one day of one turbine": 144, "one whole turbine": 432}
    planned = gv.wind.plan(known, epsilon=2, protect="day", method="synthetic")
    assert planned.terms.adjacency[0].groups == {"one whole turbine": 3}
    assert "for one whole turbine (3 days) it is 6." in planned.in_words[1]
