"""What the page shows follows from the choice, the ledger and public data; nothing else is read."""

import shlex
from fractions import Fraction

import numpy as np
import pytest
from plan.making import CHOICE, asked, planner_of, settled
from support.making import adjacency, make_account

from gridveil import wind
from gridveil.errors import InputError, NotPrivateWarning
from gridveil.planning.choice import Choice
from gridveil.planning.release_kind import command_line
from gridveil.planning.wind import Wind, WindSession
from gridveil.privacy.adjacency import Adjacency
from gridveil.privacy.ledger import Ledger, Terms
from gridveil.privacy.sealed import Range
from gridveil.wind.demo import CAPACITY, demo_records


@pytest.fixture
def planner(tmp_path):
    made = planner_of(lambda: [Wind()], tmp_path / "ledger.sqlite")
    yield made
    made.close()


def test_the_guarantee_is_said_in_the_statements_words(planner, ledger):
    records = wind.read_records(
        demo_records(200), speed="wind_speed", power="power", capacity=CAPACITY
    )
    made = wind.release(
        records, epsilon=1, alpha="15%", method="laplace", dataset="north farm", ledger=ledger
    )
    told = planner.answer(asked())["guarantee"]
    assert tuple(told["words"]) == made.statement.in_words
    epsilons = [Fraction(one["epsilon"]) for one in told["changes"]]
    assert epsilons == [1, 7, 200]
    assert told["changes"][0]["certainty"] == "73.2%"


def test_accuracy_has_a_spread_and_gets_better_with_epsilon(planner):
    weak, strong = (settled(planner, asked(epsilon=eps))["accuracy"] for eps in ("0.5", "5"))
    assert weak["runs"] == weak["of"] == 20
    for one, other in zip(weak["metrics"], strong["metrics"], strict=True):
        assert one["low"] <= one["mean"] <= one["high"]
        assert one["mean"] > other["mean"]
    assert weak["metrics"][0]["low"] < weak["metrics"][0]["high"]
    assert [one["source"][:4] for one in weak["pictures"]] == ["<svg"]
    assert weak["sweep"].startswith("<svg")
    assert [share["percent"] for share in weak["shares"]] == [100]


@pytest.mark.parametrize("method", ["tuned", "wpo", "laplace"])
def test_a_run_is_what_a_seeded_release_is(method):
    records = wind.read_records(
        demo_records(200), speed="wind_speed", power="power", capacity=CAPACITY
    )
    choice = Choice("wind", (("power", Fraction(3, 20)),), method, Fraction(1), 200)
    with pytest.warns(NotPrivateWarning):
        run = WindSession(records, choice).run(3)
    with pytest.warns(NotPrivateWarning):
        made = wind.release(records, epsilon=1, alpha="15%", method=method, seed=3)
    # The stand-in is public; it is released in the order of its speeds.
    real = demo_records(200).to_pandas().sort_values("wind_speed")["power"].to_numpy() / CAPACITY
    error = np.concatenate(list(made.blocks())) - real
    assert run.values["record"] == pytest.approx(100 * np.sqrt(np.mean(error**2)), rel=1e-9)


def test_the_command_is_what_was_chosen(planner, tmp_path):
    fields = {"file": "my file.csv", "output": "-out", "decimal": ",", "encoding": "cp1252"}
    fields |= {"unit": "MW", "missing": "drop"}
    told = planner.answer(asked(fields=fields, dataset="north  farm"))
    words = shlex.split(told["command"])
    assert words == [
        "gridveil", "wind", "release", "my file.csv", "--speed", "wind", "--power", "power_kw",
        "--capacity", "2750", "--unit", "MW", "--decimal", ",", "--encoding", "cp1252",
        "--missing", "drop", "--alpha", "15%",
        "--epsilon", "1", "--method", "laplace", "-o", "./-out", "--dataset", "north farm",
        "--ledger", str(tmp_path / "ledger.sqlite"),
    ]  # fmt: skip


def test_without_a_name_there_is_no_command(planner, tmp_path):
    """A name made up here would make two datasets of one in the ledger."""
    told = planner.answer(asked(dataset=" "))
    assert told["command"] is None
    assert told["budget"] is None
    assert told["faults"]["dataset"].startswith("The ledger needs a name for the data.")


def test_hostile_text_stays_text(planner):
    hostile = "$(touch owned); `x` '\"<script>"
    told = planner.answer(asked(fields={"file": hostile}))
    assert shlex.split(told["command"])[3] == hostile


def test_a_command_line_for_this_computer():
    assert shlex.split(command_line(["a b", "c"])) == ["a b", "c"]


@pytest.mark.parametrize(
    ("field", "text", "words"),
    [
        ("file", " ", "The command needs this"),
        ("file", "x" * 401, "longer than 400"),
        ("output", "", "Fill it in"),
        ("speed", "", "Fill it in"),
        ("power", "wind", "can't be public and private"),
        ("capacity", "big", "not a positive number"),
        ("capacity", "-1", "not a positive number"),
        ("capacity", "", "Fill it in"),
        ("decimal", ";", "a point or a comma"),
        ("encoding", "utf-88", "is not known"),
        ("missing", "fill", "Write drop or refuse"),
    ],
)
def test_a_bad_text_is_told_at_its_field_and_leaves_no_command(planner, field, text, words):
    told = planner.answer(asked(fields={field: text}))
    assert list(told["faults"]) == [f"field-{field}"]
    assert words in told["faults"][f"field-{field}"]
    assert told["command"] is told["budget"] is None
    assert told["guarantee"]["words"]  # which does not depend on it


def test_a_bad_name_is_told_at_its_field(planner):
    told = planner.answer(asked(dataset="a\x07b"))
    assert list(told["faults"]) == ["dataset"]
    assert told["command"] is None


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"private": [{"name": "speed", "alpha": "1"}]}, "parameters"),
        ({"private": []}, "parameters"),
        ({"private": "power"}, "parameters"),
        ({"private": [{"name": "power", "alpha": "15", "range": "0:1"}]}, "range-power"),
        ({"method": "magic"}, "method"),
        *(
            ({"private": [{"name": "power", "alpha": alpha}]}, "alpha-power")
            for alpha in ("0", "101", "lots", "", "15%%", None)
        ),
        *(({"epsilon": epsilon}, "epsilon") for epsilon in ("-1", "1e9", "", None, ["1"])),
        *(({"size": size}, "size") for size in ("5", "10000000", "ten", "٣٠٠", "9" * 5000)),
    ],
)
def test_a_fault_is_told_at_its_field_and_leaves_no_figure(planner, change, field):
    told = planner.answer({**asked(), **change})
    assert list(told.pop("faults")) == [field]
    assert told.pop("read") == {}
    assert set(told.values()) == {None}


def test_every_fault_is_told_at_once(planner):
    told = planner.answer(asked(epsilon="x", size="y", fields={"capacity": "z"}))
    assert set(told["faults"]) == {"epsilon", "size", "field-capacity"}


def test_what_is_no_kind_is_an_input_error(planner):
    with pytest.raises(InputError, match="no such kind"):
        planner.answer({**asked(), "kind": "water"})


@pytest.mark.parametrize(("text", "alpha"), [("15", "0.15"), ("15%", "0.15"), ("1/3", "1/300")])
def test_a_share_is_read_in_percent(planner, text, alpha):
    told = planner.answer(asked(private=[{"name": "power", "alpha": text}]))
    assert f"by up to {alpha} of capacity" in told["guarantee"]["words"][0]
    assert told["read"] == {"epsilon": 1.0, "alpha-power": pytest.approx(100 * Fraction(alpha))}


def test_the_guarantee_has_the_class_of_its_strength(planner):
    strong, weak = (planner.answer(asked(epsilon=one))["guarantee"] for one in ("0.5", "50"))
    assert strong["strength"]["level"] == "strong"
    assert weak["strength"]["level"] == "weak"


# -- the ledger ------------------------------------------------------------------------------------


def test_no_ledger_is_made_by_looking(planner, tmp_path):
    assert planner.answer(asked())["budget"]["state"] == "none"
    assert list(tmp_path.glob("*.sqlite")) == []


def test_the_budget_is_the_ledgers(planner, tmp_path):
    book = Ledger(tmp_path / "ledger.sqlite")
    book.set_cap("North Farm", 3, alpha="15%")
    told = planner.answer(asked())["budget"]
    assert told["state"] == "good"
    assert "'North Farm' has spent 0" in told["text"]
    assert "Then 2 is left of its cap 3." in told["text"]
    refused = planner.answer(asked(epsilon="3.5"))["budget"]
    assert refused["state"] == "refused"
    assert "Only 3 is left" in refused["text"]
    assert "no cap is set" in planner.answer(asked(dataset="other"))["budget"]["text"]
    assert len(book.entries()) == 2


@pytest.mark.parametrize(
    ("alpha", "capacity", "times"), [("30%", 2750, 2), ("15%", 2750, 1), ("15%", 5500, 2)]
)
def test_a_smaller_step_is_charged_more(planner, tmp_path, alpha, capacity, times):
    # The page asks for 15% of 2,750 kW.
    book = Ledger(tmp_path / "ledger.sqlite")
    first = Adjacency.of(
        "power",
        alpha=alpha,
        unit="of capacity",
        range=Range(0.0, 1.0),
        entries=5,
        wholes={"north": Fraction(capacity)},
        measure="kW",
    )
    book.charge(
        Terms("north farm", epsilon=1, adjacency=[first], private=["power_kw"], purpose="test")
    )
    text = planner.answer(asked())["budget"]["text"]
    assert f"would be charged {times}" in text
    assert ("epsilon counts" in text) == (times > 1)


def test_a_release_that_the_ledger_would_refuse_is_told(planner, tmp_path):
    account = make_account(Ledger(tmp_path / "ledger.sqlite"), dataset="north farm")
    assert account.adjacency == (adjacency(),)  # charged in MW
    told = planner.answer(asked())["budget"]
    assert told["state"] == "refused"
    assert "was charged in MW before" in told["text"]
    assert "Give alpha in MW" not in told["text"]  # the page can't


def test_a_column_that_was_private_can_not_be_published(planner, tmp_path):
    book = Ledger(tmp_path / "ledger.sqlite")
    first = Adjacency.of("power", alpha="15%", unit="of capacity", range=Range(0.0, 1.0), entries=5)
    book.charge(Terms("north farm", epsilon=1, adjacency=[first], private=["wind"], purpose="test"))
    told = planner.answer(asked())["budget"]
    assert told["state"] == "refused"
    assert "would undo that guarantee" in told["text"]
    assert "Make it private" not in told["text"]  # the page can't make wind speeds private


def test_a_damaged_ledger_is_told(planner, tmp_path):
    (tmp_path / "ledger.sqlite").write_bytes(b"no database at all" * 100)
    assert planner.answer(asked())["budget"]["state"] == "refused"


# -- runs ------------------------------------------------------------------------------------------


def test_results_are_kept(planner, monkeypatch):
    first = settled(planner, asked())
    monkeypatch.setattr(WindSession, "run", lambda *_: pytest.fail("it was run again"))
    assert planner.answer(asked())["accuracy"] == first["accuracy"]


def test_a_stand_in_that_fails_is_told(planner, monkeypatch):
    def fail(*_):
        raise ZeroDivisionError("no records")

    monkeypatch.setattr(WindSession, "run", fail)
    told = settled(planner, asked())["accuracy"]
    assert "ZeroDivisionError: no records" in told["problem"]
    assert told["runs"] == 0


def test_a_public_file_stands_in(tmp_path):
    records = wind.read_records(
        demo_records(150), speed="wind_speed", power="power", capacity=CAPACITY, name="open data"
    )
    planner = planner_of(lambda: [Wind(records)], tmp_path / "ledger.sqlite")
    try:
        (kind,) = planner.start()["kinds"]
        assert "150 records of open data, which you named public" in kind["stand_in"]
        assert kind["size"]["least"] == kind["size"]["most"] == 150
        assert "between 150 and 150" in planner.answer(asked(size="200"))["faults"]["size"]
        assert planner.answer(asked(size="150"))["command"]
    finally:
        planner.close()


def test_nothing_that_is_typed_is_opened(planner, tmp_path, monkeypatch):
    secret = tmp_path / "secret.csv"
    secret.write_text("wind,power_kw\n7,1234.56789\n")
    before = secret.stat().st_atime_ns
    secret.chmod(0)
    told = settled(planner, asked(fields={"file": str(secret)}))
    assert str(secret) in told["command"]
    assert "1234" not in str(told)
    assert secret.stat().st_atime_ns == before


def test_the_question_of_these_tests_is_the_pages(planner):
    (kind,) = planner.start()["kinds"]
    assert {one["name"] for one in kind["fields"]} == set(CHOICE["fields"])
