"""Networks on the page: what it says is what a release would do."""

import shlex
from fractions import Fraction

import numpy as np
import pytest
from plan.making import asked, planner_of, settled

from gridveil import grid
from gridveil.errors import InputError, NotPrivateWarning
from gridveil.grid.model.parameters import PARAMETERS
from gridveil.planning.choice import Choice
from gridveil.planning.grid import Grid
from gridveil.privacy.ledger import Ledger

FIELDS = {"file": "case.m", "population": "", "snapshots": "", "output": "out"}


@pytest.fixture
def planner(tmp_path, monkeypatch):
    monkeypatch.setattr(Grid, "effort", lambda *_: (2, 0))
    made = planner_of(lambda: [Grid()], tmp_path / "ledger.sqlite")
    yield made
    made.close()


def private(name="capacity", alpha="30", range=""):
    return {"name": name, "alpha": alpha, "range": range}


def question(*given, **changes):
    base = {"kind": "grid", "private": list(given) or [private()], "method": "certified"}
    fields = {**FIELDS, **changes.pop("fields", {})}
    return {**asked(), **base, "size": "20", **changes, "fields": fields}


def test_accuracy_on_models_that_no_run_saw(planner):
    told = settled(planner, question())["accuracy"]
    assert told["problem"] is None
    means = {one["name"]: one["mean"] for one in told["metrics"]}
    assert 5 < means["value-capacity"] < 40  # MW; noise of scale 30, and a free look at the prior
    assert means["infeasible"] < 20
    assert [one["source"][:4] for one in told["pictures"]] == ["<svg"]
    assert told["sweep"] is None


def test_the_words_are_those_of_the_statement(planner, ledger):
    network = grid.cases.rts96(variant="paper")
    models = grid.sample_population(network, 2)
    made = grid.release(
        network, models, epsilon=1, alpha=30, method="laplace", dataset="grid", ledger=ledger
    )
    told = planner.answer(question())["guarantee"]
    assert tuple(told["words"]) == made.statement.in_words


@pytest.mark.parametrize("parameter", ["capacity", "load", "generator_limit", "cost"])
def test_every_parameter_can_be_run(parameter):
    kind = Grid()
    choice = Choice("grid", ((parameter, Fraction(1)),), "laplace", Fraction(1), 20)
    with pytest.warns(NotPrivateWarning):
        run = kind.session(choice).run(0)
    assert {"cost", f"value-{parameter}"} <= set(run.values)
    assert sum(share.percent for share in run.shares) == pytest.approx(100)


def test_the_command(planner, tmp_path):
    told = planner.answer(question(private("load"), method="laplace", fields={"population": "m.p"}))
    assert shlex.split(told["command"]) == [
        "gridveil", "grid", "release", "case.m", "--parameter", "load", "--alpha", "30",
        "--epsilon", "1", "--method", "laplace", "--population", "m.p", "-o", "out",
        "--dataset", "north farm", "--ledger", str(tmp_path / "ledger.sqlite"),
    ]  # fmt: skip


def test_snapshots_are_for_files_that_have_some(planner):
    some = {"file": "net.nc", "snapshots": "every 24h"}
    words = shlex.split(planner.answer(question(fields=some))["command"])
    assert words[words.index("--snapshots") + 1] == "every 24h"
    told = planner.answer(question(fields={"file": "case.m", "snapshots": "all"}))
    assert list(told["faults"]) == ["field-snapshots"]
    assert "A .m file has no snapshots" in told["faults"]["field-snapshots"]
    told = planner.answer(question(private("load"), fields=some))
    assert "--series FILE" in told["faults"]["field-snapshots"]
    assert told["command"] is None


def test_the_public_range_is_part_of_the_guarantee_and_the_command(planner):
    told = planner.answer(question(private(range="50:1000")))
    assert "anywhere in [50, 1000], epsilon is 32" in " ".join(told["guarantee"]["words"])
    words = shlex.split(told["command"])
    assert words[words.index("--range") + 1] == "50:1000"


def test_the_runs_keep_to_the_public_range(planner):
    wide, narrow = (
        settled(planner, question(private("capacity", "20", text), method="laplace"))["accuracy"]
        for text in ("", "290:310")
    )
    error = {
        name: {one["name"]: one["mean"] for one in found["metrics"]}["value-capacity"]
        for name, found in {"wide": wide, "narrow": narrow}.items()
    }
    assert error["wide"] < 40  # MW: the noise
    assert error["narrow"] > 60  # most lines of the stand-in are clipped


@pytest.mark.parametrize("text", ["wide", "1:2:3", "1000:50", "0:500", "nan:5", "load=1:5"])
def test_a_range_that_is_none_is_told(planner, text):
    told = planner.answer(question(private(range=text)))
    assert list(told["faults"]) == ["range-capacity"]
    assert told["command"] is told["guarantee"] is told["accuracy"] is None


@pytest.mark.parametrize("text", ["lots", "-3", "", "30 MW"])
def test_an_alpha_is_read_as_on_the_command_line(planner, text):
    """A percentage of what? 10% of a MW was taken for 0.1 MW, and hid nothing."""
    network = grid.cases.rts96(variant="paper")
    with pytest.raises(InputError) as caught:
        grid.release(network, epsilon=1, alpha=text)
    told = planner.answer(question(private(alpha=text)))
    assert told["faults"] == {"alpha-capacity": str(caught.value)}
    assert told["command"] is told["guarantee"] is told["accuracy"] is told["budget"] is None


BOTH = (private("load", "10"), private("capacity", "30", "50:1000"))


def test_several_parameters_at_once(planner, tmp_path):
    told = settled(planner, question(*BOTH))
    assert shlex.split(told["command"])[3:14] == [
        "case.m", "--parameter", "capacity,load", "--alpha", "capacity=30,load=10",
        "--epsilon", "1", "--range", "capacity=50:1000", "-o", "out",
    ]  # fmt: skip
    assert told["accuracy"]["problem"] is None
    means = {one["name"]: one["mean"] for one in told["accuracy"]["metrics"]}
    assert means["value-capacity"] > 5
    assert means["value-load"] > 1
    assert len(told["accuracy"]["pictures"]) == 2
    changes = [one["change"] for one in told["guarantee"]["changes"]]
    assert "one entry of capacity, by 30 MW" in changes
    assert "one entry of load, by 10 MW" in changes


def test_the_words_for_several_are_those_of_the_statement(planner, ledger):
    network = grid.cases.rts96(variant="paper")
    made = grid.release(
        network,
        grid.sample_population(network, 2, private="capacity,load"),
        parameter="capacity,load",
        epsilon=1,
        alpha={"capacity": 30, "load": 10},
        range={"capacity": (50, 1000)},
        method="laplace",
        dataset="rts96",
        ledger=ledger,
    )
    told = planner.answer(question(*BOTH))["guarantee"]
    assert tuple(told["words"]) == made.statement.in_words


@pytest.mark.parametrize(
    "names",
    [("load", "cost"), ("generator_limit", "cost"), ("load", "reactive_load"), tuple(PARAMETERS)],
)
def test_any_of_them_go_together(names):
    ranges = {"capacity": (1.0, 5e3), "load": (-1e3, 1e3), "generator_limit": (-1e3, 1e3)}
    ranges["reactive_load"] = (-1e3, 1e3)
    limits = tuple((name, ranges[name]) for name in names if name in ranges)
    private = tuple((one, Fraction(1)) for one in names)
    choice = Choice("grid", private, "laplace", Fraction(1), 20, limits)
    with pytest.warns(NotPrivateWarning):
        run = Grid().session(choice).run(0)
    assert {f"value-{name}" for name in names} <= set(run.values)


def test_what_the_method_can_not_release_is_told(planner):
    told = planner.answer(question(private(), private("cost", "1"), method="paper"))
    assert "The paper's method can't release costs together" in told["faults"]["method"]
    assert told["command"] is None


def test_what_was_private_before_can_be_so_again(planner, tmp_path):
    network = grid.cases.rts96(variant="paper")
    grid.release(
        network,
        grid.sample_population(network, 2, private="capacity,load"),
        parameter="capacity,load",
        epsilon=1,
        alpha={"capacity": 30, "load": 10},
        method="laplace",
        dataset="north farm",
        ledger=Ledger(tmp_path / "ledger.sqlite"),
    )
    alone = planner.answer(question(private()))["budget"]
    assert "Make it private in this release too" in alone["text"]
    told = planner.answer(question(private(), private("load", "5")))["budget"]
    assert told["state"] == "good"  # as the page was told to do
    assert "would be charged 2" in told["text"]  # alpha 5 where 10 is the reference


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
    told = planner.answer(question(private("load")))["budget"]
    assert told["state"] == "refused"
    assert "was published in clear" in told["text"]


def test_an_alpha_beyond_the_range(planner):
    told = planner.answer(question(private(alpha="1000000")))
    assert "more than the whole range" in told["faults"]["alpha-capacity"]


def test_a_public_network_stands_in():
    kind = Grid(grid.cases.rts96())
    assert "rts96, which you named public" in kind.stand_in
    choice = Choice("grid", (("capacity", Fraction(30)),), "certified", Fraction(1), 20)
    assert [one.entries for one in kind.neighbours(choice)] == [120]


@pytest.mark.parametrize("alpha", ["20%", "230kV:60,others:15", "230kV:20%,others:10%"])
def test_shares_and_steps_by_class_are_those_of_a_release(planner, ledger, alpha):
    told = settled(planner, question(private(alpha=alpha, range="50:1000"), method="laplace"))
    assert told["faults"] == {}
    assert told["accuracy"]["problem"] is None
    words = shlex.split(told["command"])
    assert words[words.index("--alpha") + 1] == alpha
    network = grid.cases.rts96(variant="paper")
    made = grid.release(
        network,
        grid.sample_population(network, 2),
        epsilon=1,
        alpha=dict(one.split(":") for one in alpha.split(",")) if ":" in alpha else alpha,
        range=(50, 1000),
        method="laplace",
        dataset="grid",
        ledger=ledger,
    )
    assert tuple(told["guarantee"]["words"]) == made.statement.in_words


def test_what_can_be_told_by_size():
    ratings = np.geomspace(20, 4000, 108)
    planner = planner_of(
        lambda: [Grid(grid.cases.rts96(variant="paper").with_capacity(ratings))], None
    )
    (amount,) = planner.answer(question())["sizes"]
    assert [row[0].split(":")[0] for row in amount["rows"]] == ["small", "median", "large"]
    assert amount["rows"][2][2] == "over 99.99%"
    assert "does not fit" in amount["warning"]
    (share,) = planner.answer(question(private(alpha="20%")))["sizes"]
    assert {row[1:] for row in share["rows"]} == {("18%", "73.2%")}
    assert share["warning"] is None
    (steps,) = planner.answer(question(private(alpha="230kV:500,others:20")))["sizes"]
    assert steps["warning"] is None
    assert planner.answer(question(private("cost", "1")))["sizes"] == []
    planner.close()


def test_one_amount_fits_lines_of_one_size(planner):
    (found,) = planner.answer(question())["sizes"]
    assert found["warning"] is None


@pytest.mark.parametrize(
    ("given", "method", "field"),
    [
        ([private("cost", "5%")], "certified", "alpha-cost"),
        ([private(alpha="20%")], "paper", "method"),
        ([private(alpha="999kV:5,others:5")], "certified", "alpha-capacity"),
        ([private(alpha="230kV:5,others")], "certified", "alpha-capacity"),
        ([private(alpha="230kV:5,others:20%")], "certified", "alpha-capacity"),
        ([private(alpha="230kV:5,others:20"), private("load", "5")], "certified", "parameters"),
    ],
)
def test_steps_that_the_command_would_not_take_are_told(planner, given, method, field):
    told = planner.answer(question(*given, method=method))
    assert list(told["faults"]) == [field]
    assert told["command"] is told["sizes"] is None
