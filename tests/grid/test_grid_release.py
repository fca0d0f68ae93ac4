"""Grid releases from end to end: every method and parameter, the ledger, the statement."""

import json
import re
from dataclasses import fields, replace
from fractions import Fraction

import numpy as np
import pytest
from grid.releasing import (
    ALPHA,
    COLUMNS,
    ENTRIES,
    LIMITS,
    METHODS,
    SETS,
    SINGLE,
    models_for,
    possible,
    request,
    tiny,
)
from support.sizes import FULL

from gridveil import grid
from gridveil.errors import InputError, LedgerRefused, NotPrivateWarning
from gridveil.grid import read_case
from gridveil.grid.evaluation import parameter_errors
from gridveil.grid.opf.engine import solve_population
from gridveil.grid.release import GridRelease
from gridveil.privacy.schema import schema_problems
from gridveil.privacy.statement import STATEMENT_FILE, Statement
from gridveil.release.verification import verify_bundle

PAPER = {"method": "paper", "rounds": 2}


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    return tiny(tmp_path_factory.mktemp("case"))


@pytest.fixture(scope="module")
def rts96():
    return grid.cases.rts96(variant="paper")


@pytest.fixture
def plain(monkeypatch):
    """Reports without their map, which takes most of the time of a small bundle."""
    monkeypatch.setattr(GridRelease, "sections", lambda self: ())


def settings_of(method):
    return PAPER if method == "paper" else {"method": method}


def quietly(*arguments, **options):
    with pytest.warns(NotPrivateWarning):
        return grid.release(*arguments, **options)


# -- every method and parameter --------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("names", SETS, ids=",".join)
def test_every_method_and_parameter_is_charged_once(network, names, method, ledger):
    models = models_for(network, names)
    call = request(names, ledger=ledger, dataset="grid", **settings_of(method))
    if not possible(names, method):
        with pytest.raises(InputError, match="can't release costs together"):
            grid.release(network, models, **call)
        assert ledger.entries() == []
        return
    made = grid.release(network, models, **call)

    (charge,) = ledger.entries()
    assert charge.kind == "charge"
    assert charge.body["epsilon"] == charge.body["charged"] == "1"
    total = ["total load"] if "load" in names else []
    assert charge.body["private"] == sorted([*names, *total])
    assert charge.body["clear"] == sorted(set(COLUMNS) - set(names))
    totals = ledger.totals("grid")
    assert {name: one.alpha for name, one in totals.reference.items()} == {
        name: ALPHA[name] for name in names
    }

    assert made.account.budget.remaining == 0
    assert sum(record.epsilon for record in made.account.records) == 1
    assert made.statement.dp_valid
    check_values(network, made, names)


def check_values(network, made, names):
    """Released values are rounded and in their range; all else is as it was."""
    assert len(made.values) == sum(ENTRIES[name] for name in names)
    np.testing.assert_array_equal(made.values, np.round(made.values, 2))
    start = 0
    for name in names:
        some = made.values[start : start + ENTRIES[name]]
        low, high = LIMITS[name]
        assert ((some >= low) & (some <= high)).all()
        start += ENTRIES[name]
    private = {column for name in names for column in COLUMNS[name][1]}
    # A private cost is the linear term: the constant goes with it.
    dropped = {"constant"} if "cost" in names else set()
    # Reactive numbers are near multiples of active ones.
    dropped |= {"q_min", "q_max"} if "generator_limit" in names else set()
    dropped |= {"reactive_load"} if "load" in names else set()
    for table in ("buses", "generators", "branches"):
        ours, theirs = getattr(network, table), getattr(made.data, table)
        for column in fields(ours)[1:]:
            before, after = getattr(ours, column.name), getattr(theirs, column.name)
            if column.name in private:
                mask = np.isfinite(before) & (before != 0)
                assert (before[mask] != after[mask]).any()
                np.testing.assert_array_equal(before[~mask], after[~mask])
            elif column.name not in dropped:
                np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("names", [*SINGLE, ("capacity", "load")], ids=",".join)
def test_the_papers_test_system(rts96, names, method, ledger):
    if method == "paper" and not FULL and names not in (("capacity",), ("cost",)):
        pytest.skip("it takes seconds: GRIDVEIL_FULL=1 runs it")
    rounds = {"rounds": 3 if FULL else 1} if method == "paper" else {}
    costs = 0.1 if "cost" in names else (80.0, 100.0)
    models = models_for(rts96, names, 6, spread=0.125, costs=costs)
    alpha = {name: 1 if name == "cost" else 15 for name in names}
    call = {
        "epsilon": 1,
        "alpha": alpha,
        "method": method,
        "dataset": "tiny",
        "ledger": ledger,
        **rounds,
    }
    made = grid.release(rts96, models, parameter=names, **call)
    assert ledger.totals("tiny").spent == 1
    settings = made.statement.body["settings"]
    assert not [name for name in settings if "failed" in name]
    served = np.isfinite(made.solutions.cost)
    if method == "certified":
        assert served.all()
        assert settings["models_not_served"] == 0
        # Neither are the values far from where noise alone would put them.
        errors = parameter_errors(rts96.linearised(), made.data, names)
        assert all(one.mean < 6 * alpha[one.parameter] for one in errors)
    if method == "paper":
        assert len(settings["models_matched"]) == rounds["rounds"]
        assert 0 <= made.statement.body["restoration"]["gap"] <= 1


@pytest.mark.usefixtures("usual_models")
def test_the_default_population_is_sampled_around_the_network(network, ledger):
    made = grid.release(
        network, epsilon=1, alpha=5, method="laplace", dataset="tiny", ledger=ledger
    )
    assert made.population.size == 1000
    assert made.population.private == ("capacity",)
    assert made.population.cost is None
    assert not made.population.problems(network)


def test_all_four_parameters_in_one_text(network, ledger):
    names = "cost, capacity,load ,generator_limit"
    asked = {"epsilon": 2, "alpha": ALPHA, "range": LIMITS, "dataset": "tiny", "ledger": ledger}
    made = grid.release(network, models_for(network, names), parameter=names, **asked)
    assert made.public.parameters == tuple(COLUMNS)
    (record,) = made.account.records
    assert record.epsilon == 2
    # The entries, and the total load.
    assert record.size == sum(ENTRIES.values()) + 1
    assert record.sensitivity.moving == 2
    # Coefficients are floats of 1/alpha: together they move by 1 to the last digits.
    assert abs(record.sensitivity.value - 1) < 1e-15


# -- the mechanisms --------------------------------------------------------------------------------


def test_certified_spends_all_on_the_entries(network, ledger):
    models = models_for(network, "capacity")
    made = grid.release(network, models, epsilon="1/3", alpha=5, dataset="tiny", ledger=ledger)
    (record,) = made.account.records
    assert (record.epsilon, record.sensitivity.value) == (Fraction(1, 3), 5)
    assert record.calibration.scale_in_units == pytest.approx(15, rel=2e-3)


def test_the_papers_split_and_its_noise(network, ledger):
    models = models_for(network, "capacity", costs=(20, 90))
    made = grid.release(
        network,
        models,
        epsilon=1,
        alpha=5,
        method="paper",
        rounds=3,
        price=100,
        dataset="tiny",
        ledger=ledger,
    )
    first, *others = made.account.records
    assert first.epsilon == Fraction(1, 2)
    assert [record.epsilon for record in others] == [Fraction(1, 12)] * 6
    for choice, cost in zip(others[::2], others[1::2], strict=True):
        # One entry that moves by 5 MW moves a cost by 500 $/h, and monotone scores need no more.
        assert choice.sensitivity.value == cost.sensitivity.value == 500
        assert choice.calibration.scale_in_units == pytest.approx(500 * 12, rel=0.02)
        assert cost.calibration.scale_in_units == pytest.approx(500 * 12, rel=0.02)
    settings = made.statement.body["settings"]
    chosen = settings["models_matched"]
    assert len(chosen) == 3
    assert set(chosen) <= set(range(4))


def test_one_model_and_one_round_is_the_earlier_mechanism(network, ledger):
    """With m = T = 1 the paper's algorithm is the obfuscation of one model that came before it."""
    one = models_for(network, "capacity", 1)
    made = grid.release(
        network,
        one,
        epsilon=1,
        alpha=5,
        method="paper",
        rounds=1,
        range=(1, 500),
        dataset="tiny",
        ledger=ledger,
    )
    assert made.statement.body["settings"]["models_matched"] == [0]
    parts = [record.epsilon for record in made.account.records]
    assert parts == [Fraction(1, 2), Fraction(1, 4), Fraction(1, 4)]
    assert np.isfinite(made.solutions.cost).all()


def test_scores_of_loads_are_not_monotone(network, ledger):
    names = ("load",)
    made = grid.release(network, models_for(network, names), **request(names, **PAPER))
    choices = [record for record in made.account.records if "noisy max" in record.noise]
    assert choices
    assert all("scores of any kind" in record.noise for record in choices)
    scales = [r.calibration.scale_in_units / float(r.sensitivity.value) for r in choices]
    assert scales == pytest.approx([2 * 8] * 2, rel=0.02)


def test_a_total_that_is_bought_costs_nothing_more(network, ledger):
    names = ("load",)
    made = grid.release(network, models_for(network, names), **request(names, total_share="1/4"))
    (record,) = made.account.records
    assert (record.size, record.epsilon) == (3, 1)
    alpha = float(made.account.adjacency[0].alpha)
    words = re.fullmatch(
        r"every entry of load \(noise (.*) MW\) and the total load \((.*) MW\)", record.query
    )
    # A share of 1/4 for the total leaves 3/4 for the entries.
    assert [float(width) for width in words.groups()] == pytest.approx(
        [alpha * 4 / 3, alpha * 4], rel=0.01
    )
    shares = made.statement.body["settings"]["total_share"]
    assert shares == "0.25"
    for none in (0, "0%", "0.0"):
        without = quietly(
            network, models_for(network, names), **request(names, total_share=none, seed=3)
        )
        assert without.account.records[0].size == 2


def test_a_published_total_doubles_the_noise_and_is_met(network, ledger):
    names, total = ("load",), 140.0
    models = models_for(network, names)
    call = request(names, ledger=ledger, dataset="grid")
    made = grid.release(network, models, published_total=total, **call)
    (record,) = made.account.records
    assert record.sensitivity.value == 2 * ALPHA["load"]
    assert record.sensitivity.moving == 2
    assert made.data.buses.load.sum() == pytest.approx(total, abs=0.02)
    body = made.statement.body
    assert "two entries, one up and one down" in body["guarantee"]["adjacency"]
    assert "total load" in body["published_in_clear"]
    (charge,) = ledger.entries()
    assert list(charge.body["adjacency"]) == ["load"]
    assert "total load" in charge.body["clear"]
    assert "total load" not in charge.body["private"]
    # What was published can't be private again, with nothing charged for asking.
    with pytest.raises(LedgerRefused, match="total load"):
        grid.release(network, models, **call)
    assert ledger.totals("grid").spent == 1


def test_a_total_that_was_private_is_not_published_later(network, ledger):
    names, models = ("load",), models_for(network, ("load",))
    call = request(names, ledger=ledger, dataset="grid")
    grid.release(network, models, **call)
    with pytest.raises(LedgerRefused, match="total load"):
        grid.release(network, models, published_total=150, **call)
    assert ledger.totals("grid").spent == 1


def test_what_was_public_in_one_release_is_not_private_in_the_next(network, ledger):
    call = {"epsilon": 1, "dataset": "tiny", "ledger": ledger, "method": "laplace"}
    grid.release(network, models_for(network, "capacity"), alpha=5, **call)
    both = ("capacity", "load")
    with pytest.raises(LedgerRefused, match="load of 'tiny' was published in clear"):
        grid.release(network, models_for(network, both), parameter=both, alpha=5, **call)
    assert len(ledger.entries()) == 1


def test_a_smaller_alpha_is_charged_by_steps_of_the_reference(network, ledger):
    models = models_for(network, "capacity")
    for alpha, spent in ((10, 1), (4, 4), (25, 5)):
        made = grid.release(
            network, models, epsilon=1, alpha=alpha, method="laplace", dataset="tiny", ledger=ledger
        )
        assert ledger.totals("tiny").spent == spent
        # Sums are about one size of a step, and the statement says which.
        recorded = made.statement.body["ledger"]
        assert recorded["spent_so_far"] == str(spent)
        assert recorded["reference_alpha"] == {"capacity": {"alpha": "10", "unit": "MW"}}


def test_a_catalogue_is_recovered_where_noise_is_small(network, ledger):
    models = models_for(network, "capacity")
    call = {"epsilon": 100, "alpha": 5, "dataset": "tiny", "ledger": ledger}
    made = grid.release(network, models, catalogue=[300, 70, 80, 45], **call)
    np.testing.assert_array_equal(made.values, [80, 70])
    assert made.statement.body["settings"]["catalogue"] == [45, 70, 80, 300]


def test_the_margin_serves_models_with_less_capacity(rts96):
    models = models_for(rts96, "capacity", 3, spread=0.125)
    tight = replace(models, capacity=np.full((3, len(rts96.branches)), 1 / 1.1))
    call = {"epsilon": 1, "alpha": 60, "seed": 5}
    with_margin = quietly(rts96, models, margin=0.1, **call)
    assert np.isfinite(solve_population(with_margin.data, tight).cost).all()
    without = quietly(rts96, models, margin=0.0, **call)
    assert np.isfinite(without.solutions.cost).all()
    assert not np.isfinite(solve_population(without.data, tight).cost).all()


def test_a_model_that_nothing_can_serve_is_told_and_the_others_are_served(network, ledger):
    # The first model asks for ten times the load, which no generation in the range covers.
    models = models_for(network, "generator_limit")
    load = models.load.copy()
    load[0] = 50
    made = grid.release(
        network,
        replace(models, load=load),
        **request(("generator_limit",), ledger=ledger),
    )
    settings = made.statement.body["settings"]
    assert settings["models_not_served"] == 1
    assert np.isfinite(made.solutions.cost).tolist() == [False, True, True, True]


def test_the_exact_restoration_is_no_worse_than_the_steps(network):
    models = models_for(network, "capacity", 3, costs=(20, 90))
    call = {"epsilon": 1, "alpha": 5, "method": "paper", "rounds": 1, "range": (1, 500), "seed": 2}
    steps = quietly(network, models, **call)
    exact = quietly(network, models, restoration="exact", time_limit=30, **call)
    assert exact.statement.body["restoration"]["gap"] <= 1e-6
    assert exact.statement.body["settings"]["time_limit"] == 30
    assert steps.statement.body["settings"]["time_limit"] is None


def test_an_exact_restoration_that_fails_falls_back_to_the_steps(network, ledger, monkeypatch):
    from gridveil.errors import GridveilError

    def fail(*_, **__):
        raise GridveilError("HiGHS could not solve the first linear programme.")

    monkeypatch.setattr("gridveil.grid.restoration.paper_exact.restore_exactly", fail)
    models = models_for(network, "capacity", 3, costs=(20, 90))
    call = request(("capacity",), method="paper", rounds=1, restoration="exact", ledger=ledger)
    made = grid.release(network, models, **call)
    assert made.statement.body["restoration"]["solver"] == "convex-concave steps with HiGHS"
    assert ledger.totals("tiny").spent == 1


# -- the statement and the bundle ------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("names", [("capacity",), ("capacity", "load"), ("cost",)], ids=",".join)
def test_a_bundle_verifies_and_comes_back(network, names, method, ledger, tmp_path, plain):
    if not possible(names, method):
        pytest.skip("the paper's method takes costs alone")
    models = models_for(network, names)
    made = grid.release(network, models, **request(names, ledger=ledger, **settings_of(method)))
    placed = made.write(tmp_path / "out")
    assert sorted(path.name for path in placed.iterdir()) == [
        "answers.parquet",
        "deviations.parquet",
        "network.m",
        "population.parquet",
        "release.json",
        "report.html",
    ]
    assert all(finding.ok for finding in verify_bundle(placed)), verify_bundle(placed)
    body = json.loads((placed / STATEMENT_FILE).read_text())
    assert schema_problems(body) == []
    recorded = Statement.from_json((placed / STATEMENT_FILE).read_bytes()).body["ledger"]
    assert ledger.bundle_problems(recorded) == []
    assert body["settings"]["parameters"] == list(names)
    assert body["settings"]["ranges"] == {name: list(LIMITS[name]) for name in names}
    assert [one["alpha"] for one in body["guarantee"]["neighbours"]] == [
        str(ALPHA[name]) for name in names
    ]
    assert body["restoration"] is None or body["restoration"]["sees_private_data"] is False

    again = read_case(placed / "network.m")
    for name in names:
        table, columns = COLUMNS[name]
        for column in columns:
            np.testing.assert_array_equal(
                getattr(getattr(again, table), column), getattr(getattr(made.data, table), column)
            )
    population = grid.Population.read(placed / "population.parquet", again)
    np.testing.assert_allclose(solve_population(again, population).cost, made.solutions.cost)


def test_a_bundle_has_a_map_and_what_the_models_do(network, ledger, tmp_path):
    models = models_for(network, "capacity")
    made = grid.release(network, models, epsilon=1, alpha=5, dataset="tiny", ledger=ledger)
    page = (made.write(tmp_path / "out") / "report.html").read_text()
    assert "The released network serves all of them." in page
    assert "2 of line capacity" in page
    assert "gv.grid.read_case" in page


def test_loading_on_the_map_counts_the_models_own_capacities(network):
    from gridveil.grid.report import _loading

    half = grid.Population(2, capacity=np.array([[1.0] * 3, [0.5] * 3]))
    wide = network.with_capacity([200.0, 200.0, np.inf])
    solutions = solve_population(wide, half, keep=("flow",))
    found = _loading(wide, half, solutions, np.ones(2, bool))
    flow = np.abs(solutions.flow)
    expected = (flow[0] / 200 + flow[1] / 100) / 2
    np.testing.assert_allclose(found, [*expected[:2], 0.0])


def test_the_statement_records_every_setting(network, ledger):
    models = models_for(network, "capacity", costs=(20, 90))
    paper = grid.release(
        network, models, epsilon=1, alpha=5, method="paper", rounds=2, price="95.5",
        penalty=4000, range=(2, 400), ledger=ledger, dataset="south",
    )  # fmt: skip
    settings = paper.statement.body["settings"]
    assert settings["rounds"] == 2
    assert settings["price"] == 95.5
    assert settings["penalty"] == 4000
    assert settings["restoration"] == "steps"
    assert settings["ranges"] == {"capacity": [2, 400]}
    assert settings["models"] == 4
    certified = grid.release(
        network, models, epsilon=1, alpha=5, margin=0.07, ledger=ledger, dataset="south"
    )
    settings = certified.statement.body["settings"]
    assert settings["margin"] == 0.07
    assert "rounds" not in settings
    assert certified.statement.body["ledger"]["spent_so_far"] == "2"
    assert certified.statement.body["summary"].startswith("capacity of network south: 2 entries")


def test_default_settings_of_the_paper(network, ledger):
    dear = models_for(network, "capacity", costs=(300, 400))
    made = quietly(network, dear, epsilon=1, alpha=5, method="paper", rounds=1, seed=1)
    settings = made.statement.body["settings"]
    # L is the highest public cost, and psi is well above it.
    assert settings["price"] == pytest.approx(dear.cost.max())
    assert settings["penalty"] == pytest.approx(10 * dear.cost.max())
    cheap = models_for(network, "capacity")
    made = quietly(network, cheap, epsilon=1, alpha=5, method="paper", rounds=1, seed=1)
    assert made.statement.body["settings"]["penalty"] == 3000
    assert made.statement.body["settings"]["price"] == pytest.approx(
        (network.generators.linear * cheap.cost_factor.max(0)).max()
    )


# -- seeds -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_seeds_repeat_and_carry_no_guarantee(network, method, tmp_path, plain):
    names = ("capacity", "load")
    models = models_for(network, names)
    call = request(names, **settings_of(method))
    one, same, other = (quietly(network, models, seed=seed, **call) for seed in (4, 4, 5))
    np.testing.assert_array_equal(one.values, same.values)
    assert (one.values != other.values).any()
    assert not one.statement.dp_valid
    assert one.statement.body["ledger"] is None
    assert not (tmp_path / "default-ledger.sqlite").exists()
    found = {
        finding.check for finding in verify_bundle(one.write(tmp_path / "out")) if not finding.ok
    }
    assert found


def test_two_releases_draw_other_noise(network, ledger):
    call = {"epsilon": 1, "alpha": 5, "method": "laplace", "dataset": "tiny", "ledger": ledger}
    models = models_for(network, "capacity")
    one, two = (grid.release(network, models, **call) for _ in range(2))
    assert (one.values != two.values).any()


def test_progress_is_told(network):
    said = []
    models = models_for(network, "capacity")
    call = {"epsilon": 1, "alpha": 5, "method": "paper", "rounds": 2, "seed": 1}
    quietly(network, models, progress=said.append, **call)
    noise, last = "noise on every entry", "looking at what the released limits cost"
    assert said == ["checking the models", noise, "round 1 of 2", "round 2 of 2", last]


# -- options ---------------------------------------------------------------------------------------


def test_options_as_an_object_are_the_same_as_keywords(network):
    models = models_for(network, "capacity")
    call = {"epsilon": 1, "alpha": 5, "range": (1, 500), "seed": 2}
    one = quietly(network, models, method=grid.Certified(margin=0.1, catalogue=[80, 45]), **call)
    two = quietly(network, models, method="certified", margin=0.1, catalogue=[45, 80], **call)
    other = quietly(network, models, method="certified", margin=0.2, **call)
    np.testing.assert_array_equal(one.values, two.values)
    assert one.statement.body["settings"] == two.statement.body["settings"]
    assert other.statement.body["settings"]["margin"] == 0.2


def test_every_option_is_a_setting_of_the_schema():
    from gridveil.grid.methods import METHODS
    from gridveil.privacy.schema import schema

    known = schema()["properties"]["settings"]["properties"]
    needed = {"time_limit": {"restoration": "exact"}, "emergency": {"contingencies": "all"}}
    for kind in METHODS.values():
        assert set(kind.about()) <= set(known)
        for name, about in kind.about().items():
            kind(**needed.get(name, {}), **{name: kind.read(name, about.example)})


def test_wrong_types_are_named_and_never_shown(network, ledger):
    with pytest.raises(InputError, match="Expected a Network, got ndarray"):
        grid.plan(np.array([71.13]), epsilon=1, alpha=5)
    with pytest.raises(InputError, match="Expected a Population, got str"):
        grid.plan(network, "models.parquet", epsilon=1, alpha=5)
    with pytest.raises(InputError, match="Expected a method, got ndarray"):
        grid.plan(network, epsilon=1, alpha=5, method=np.array([71.13]))
