"""Networks on the page: what it says is what a release would do."""

import shlex
from fractions import Fraction

import pytest
from plan.making import asked, planner_of, settled

from gridveil import grid
from gridveil.errors import InputError, NotPrivateWarning
from gridveil.plan.grid import Grid
from gridveil.plan.kind import Choice
from gridveil.privacy.ledger import Ledger

FIELDS = {"file": "case.m", "population": "", "range": "", "output": "out"}


@pytest.fixture
def planner(tmp_path, monkeypatch):
    monkeypatch.setattr(Grid, "effort", lambda *_: (2, 0))
    made = planner_of(lambda: [Grid()], tmp_path / "ledger.sqlite")
    yield made
    made.close()


def question(**changes):
    base = {"kind": "grid", "parameter": "capacity", "method": "certified", "alpha": "30"}
    fields = {**FIELDS, **changes.pop("fields", {})}
    return {**asked(), **base, "size": "20", **changes, "fields": fields}


def test_accuracy_on_models_that_no_run_saw(planner):
    told = settled(planner, question())["accuracy"]
    assert told["problem"] is None
    means = {one["name"]: one["mean"] for one in told["metrics"]}
    assert 5 < means["value"] < 40  # MW; noise of scale 30, and a free look at the prior
    assert means["infeasible"] < 20
    assert told["picture"]["source"].startswith("<svg")
    assert told["sweep"] is None


def test_the_words_are_those_of_the_statement(planner, ledger):
    network = grid.cases.rts96(variant="paper")
    models = grid.sample_population(network, 2)
    made = grid.release(network, models, epsilon=1, alpha=30, method="laplace", ledger=ledger)
    told = planner.answer(question())["guarantee"]
    assert tuple(told["words"]) == made.statement.in_words


@pytest.mark.parametrize("parameter", ["capacity", "load", "generator_limit", "cost"])
def test_every_parameter_can_be_run(parameter):
    kind = Grid()
    choice = Choice("grid", parameter, "laplace", Fraction(1), Fraction(1), 20)
    with pytest.warns(NotPrivateWarning):
        run = kind.session(choice).run(0)
    assert {"cost", "value"} <= set(run.values)
    assert sum(share.percent for share in run.shares) == pytest.approx(100)


def test_the_command(planner, tmp_path):
    told = planner.answer(
        question(parameter="load", method="laplace", fields={"population": "m.p"})
    )
    assert shlex.split(told["command"]) == [
        "gridveil", "grid", "release", "case.m", "--parameter", "load", "--alpha", "30",
        "--epsilon", "1", "--method", "laplace", "--population", "m.p", "-o", "out",
        "--dataset", "north farm", "--ledger", str(tmp_path / "ledger.sqlite"),
    ]  # fmt: skip


def test_the_public_range_is_part_of_the_guarantee_and_the_command(planner):
    told = planner.answer(question(fields={"range": "50:1000"}))
    assert "anywhere in [50, 1000], epsilon is 32" in " ".join(told["guarantee"]["words"])
    words = shlex.split(told["command"])
    assert words[words.index("--range") + 1] == "50:1000"


def test_the_runs_keep_to_the_public_range(planner):
    asked_for = {"method": "laplace", "alpha": "20"}
    wide, narrow = (
        settled(planner, question(**asked_for, fields={"range": text}))["accuracy"]["metrics"]
        for text in ("", "290:310")
    )
    error = {
        name: {one["name"]: one["mean"] for one in found}["value"]
        for name, found in {"wide": wide, "narrow": narrow}.items()
    }
    assert error["wide"] < 40  # MW: the noise
    assert error["narrow"] > 60  # most lines of the stand-in are clipped


@pytest.mark.parametrize("text", ["wide", "1:2:3", "1000:50", "0:500", "nan:5"])
def test_a_range_that_is_none_is_told(planner, text):
    with pytest.raises(InputError):
        planner.answer(question(fields={"range": text}))


def test_what_was_published_in_clear_is_told(planner, tmp_path):
    network = grid.cases.rts96(variant="paper")
    models = grid.sample_population(network, 2)
    grid.release(
        network,
        models,
        epsilon=1,
        alpha=30,
        method="laplace",
        dataset="north farm",
        ledger=Ledger(tmp_path / "ledger.sqlite"),
    )
    assert planner.answer(question())["budget"]["state"] == "good"
    told = planner.answer(question(parameter="load"))["budget"]
    assert told["state"] == "refused"
    assert "was published in clear" in told["text"]


def test_an_alpha_beyond_the_range(planner):
    with pytest.raises(InputError, match="more than the whole range"):
        planner.answer(question(alpha="1000000"))


def test_a_public_network_stands_in():
    kind = Grid(grid.cases.rts96())
    assert "rts96, which you named public" in kind.stand_in
    choice = Choice("grid", "capacity", "certified", Fraction(30), Fraction(1), 20)
    assert kind.adjacency(choice).entries == 120
