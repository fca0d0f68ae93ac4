"""release.toml: the same words as the long commands, from the same options, and nothing else."""

import json
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gridveil.auditing.triangle_network import triangle_text
from gridveil.cli import release_toml
from gridveil.cli.commands import app
from gridveil.cli.typed_options import parameters_of
from gridveil.grid.methods import METHODS
from gridveil.grid.series.options import METHODS as SERIES
from gridveil.wind.methods import BY_NAME

WIND = {
    "kind": "wind",
    "data": "records.csv",
    "output": "out",
    "dataset": "farm",
    "speed": "speed",
    "power": "power",
    "capacity": 100,
    "alpha": 0.1,
    "method": "laplace",
}


def run(*words):
    return CliRunner().invoke(app, list(map(str, words)))


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GRIDVEIL_LEDGER", str(tmp_path / "ledger.sqlite"))
    (tmp_path / "records.csv").write_text("speed,power\n3,10\n5,20\n7,60\n")
    (tmp_path / "triangle.m").write_text(triangle_text({}))


def write(path, **values):
    lines = [f"{name} = {json.dumps(value)}" for name, value in values.items()]
    path.write_text("\n".join(lines))
    return path


@pytest.mark.parametrize("kind", release_toml.KINDS)
def test_the_keys_are_the_options_of_the_command(kind):
    """A new option must be seen here: whether it goes into the statement is for a person to say."""
    keys = set(parameters_of(release_toml.release_command(kind)))
    owners = {"data", "output", "ledger", "dataset", "distinct"}
    assert owners <= keys
    assert not keys & {"yes", "dry_run", "json", "quiet", "force", "help"}
    public = {
        "wind": {
            "speed", "power", "capacity", "alpha", "epsilon", "protect", "method", "unit",
            "public", "key", "time", "time_format", "turbine", "sep", "decimal", "missing",
            "formulas", "features", "stream", "encoding",
        },
        "grid": {
            "alpha", "parameter", "epsilon", "method", "range", "public_curves", "only",
            "unlimited_above", "full_availability", "max_loading", "power_factor", "protect",
            "time", "public_dispatch", "limit_ratios",
        },
    }[kind]  # fmt: skip
    methods = {"wind": BY_NAME, "grid": {**METHODS, **SERIES}}[kind].values()
    options = {name for method in methods for name in method.about()}
    own = {"population", "series", "snapshot", "snapshots"} if kind == "grid" else set()
    assert keys == owners | own | public | options


def test_a_file_does_what_the_command_does(tmp_path):
    file = write(tmp_path / "release.toml", **WIND)
    shown = run("release", file, "--dry-run", "--json")
    words = "--speed speed --power power --capacity 100 --alpha 0.1 --method laplace -o out"
    command = run("wind", "release", "records.csv", *words.split(), "--dry-run", "--json")
    assert shown.exit_code == command.exit_code == 0, shown.output
    assert shown.stdout == command.stdout
    made = run("release", file, "--json")
    assert made.exit_code == 0, made.output
    request = json.loads(made.stdout)["statement"]["request"]
    assert request == {
        "kind": "wind", "speed": "speed", "power": "power", "capacity": "100", "alpha": "0.1",
        "method": "laplace",
    }  # fmt: skip


def test_a_bundle_to_repeat_names_no_ledger_and_no_paths(tmp_path):
    assert run("release", write(tmp_path / "release.toml", **WIND)).exit_code == 0
    path = tmp_path / "out" / "release.json"
    statement = json.loads(path.read_text())
    others = dict.fromkeys(("ledger", "distinct", "data", "output", "dataset"), "elsewhere")
    path.write_text(json.dumps(statement | {"request": statement["request"] | others}))
    words = ["init", "again.toml", "--from", "out"]
    made = CliRunner().invoke(app, words, input="records.csv\nfarm\nnext\n")
    assert made.exit_code == 0, made.output
    again = tomllib.loads((tmp_path / "again.toml").read_text())
    assert again == {**WIND, "output": "next", "capacity": "100", "alpha": "0.1"}


def test_answers_that_no_release_can_use_are_asked_again():
    Path("farm.csv").write_text("speed,power\n3,10\n")
    answers = ["wind", "farm.csv", "speed", "power", "2 MW", "2000", "", "", "drop", "15", "15%"]
    asked = CliRunner().invoke(
        app, ["init", "mine.toml"], input="\n".join([*answers, "-1", "0.5", "farm", "out", ""])
    )
    assert asked.exit_code == 0, asked.output
    for words in (
        "The capacity '2 MW' can't be used. Write 2750, or T1=2750 T2=3000.",
        "alpha must be a positive number, and 'drop' is not",
        "alpha is a share of capacity, at most 1, and 15 is more",
        "epsilon must be a positive number, and '-1' is not",
    ):
        assert words in asked.output
    text = Path("mine.toml").read_text()
    assert text.startswith("# Run it with: gridveil release mine.toml (")
    found = tomllib.loads(text)
    assert (found["capacity"], found["alpha"], found["epsilon"]) == ("2000", "15%", "0.5")


def test_capacities_of_several_turbines_are_answered_with_blanks():
    Path("farm.csv").write_text("w,speed,power\nA 1,3,10\nA 2,5,20\nA 1,7,60\nA 2,8,70\n")
    answers = ["wind", "farm.csv", "speed", "power", "A 1=100 200", "A 1=100 A 2=200", "", "w"]
    answers += ["15%", "1", "farm", "out", ""]
    asked = CliRunner().invoke(app, ["init"], input="\n".join(answers))
    assert asked.exit_code == 0, asked.output
    assert "The capacity '200' can't be used" in asked.output
    planned = run("release", "release.toml", "--dry-run")
    assert planned.exit_code == 0, planned.output


def test_steps_for_several_parameters_are_answers(tmp_path):
    (tmp_path / "net.m").write_bytes(b"")  # of which nothing is read
    answers = ["grid", "net.m", "capacity,load", "capacity=x", "capacity=20,load=5", "", "1", "n"]
    asked = CliRunner().invoke(app, ["init"], input="\n".join([*answers, "out", ""]))
    assert asked.exit_code == 0, asked.output
    assert "alpha must be a positive number, and 'x' is not" in asked.output
    assert 'alpha = "capacity=20,load=5"' in (tmp_path / "release.toml").read_text()


def test_a_file_with_snapshots_is_asked_for_them(tmp_path):
    (tmp_path / "net.nc").write_bytes(b"")  # of which nothing is read
    answers = ["grid", "net.nc", "every 24h", "capacity", "20", "50:500", "1", "net", "out", ""]
    asked = CliRunner().invoke(app, ["init"], input="\n".join(answers))
    assert asked.exit_code == 0, asked.output
    assert 'snapshots = "every 24h"' in (tmp_path / "release.toml").read_text()


@pytest.mark.parametrize(
    ("place", "wrong", "words"),
    [
        (2, "capacities", "'capacities' is not a parameter"),
        (3, "abc", "alpha must be a positive number"),
        (3, "380kV:x,others:5", "alpha must be a positive number"),
        (4, "900:50", "got 900 and 50"),
        (4, "much", "where numbers are needed"),
        (5, "many", "epsilon must be a positive number"),
        (6, "", "An answer is needed here."),
    ],
)
def test_an_answer_that_no_release_takes_is_asked_again(tmp_path, place, wrong, words):
    """A file with it would be written, and refused by the next command."""
    answers = ["grid", "triangle.m", "capacity", "20", "50:500", "1", "net", "out"]
    asked = CliRunner().invoke(
        app, ["init"], input="\n".join([*answers[:place], wrong, *answers[place:], ""])
    )
    assert asked.exit_code == 0, asked.output
    assert words in " ".join(asked.output.split())
    found = tomllib.loads((tmp_path / "release.toml").read_text())
    assert (found["alpha"], found["range"], found["epsilon"]) == ("20", "50:500", "1")


def test_ranges_of_several_parameters_are_answered_with_blanks(tmp_path):
    ranges = "capacity=50:500 load=0:300"
    answers = ["grid", "triangle.m", "capacity,load", "capacity=20,load=5", ranges, "1", "net"]
    asked = CliRunner().invoke(app, ["init"], input="\n".join([*answers, "out", ""]))
    assert asked.exit_code == 0, asked.output
    planned = run("release", tmp_path / "release.toml", "--dry-run")
    assert planned.exit_code == 0, planned.output
    assert "outside [0, 300]" in planned.stdout


def test_tables_and_lists_stand_for_repeated_options(tmp_path):
    (tmp_path / "farm.csv").write_text("t,w,speed,power\n1,A,3,10\n2,A,5,20\n1,B,7,60\n2,B,8,70\n")
    more = {"data": ["farm.csv"], "turbine": "w", "key": "t"}
    file = write(tmp_path / "a.toml", **{**WIND, **more, "capacity": ["A=100", "B=200"]})
    listed = run("release", file, "--dry-run").stdout
    file.write_text(file.read_text().replace('["A=100", "B=200"]', "{A = 100, B = 200}"))
    assert run("release", file, "--dry-run").stdout == listed
    assert "100 to 200 kW" in listed
    grid = {"kind": "grid", "data": "triangle.m", "output": "out", "dataset": "net"}
    grid |= {"parameter": "capacity,load", "method": "laplace"}
    file = write(tmp_path / "b.toml", **grid)
    with file.open("a") as stream:
        stream.write("\nalpha = {capacity = 10, load = 5}")
        stream.write('\nrange = {capacity = "1:500", load = "0:500"}')
    shown = run("release", file, "--dry-run")
    assert shown.exit_code == 0, shown.output
    assert "protected by 10 MW" in shown.stdout
    assert "protected by 5 MW" in shown.stdout


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"kind": "solar"}, 'kind = "wind" or kind = "grid"'),
        ({"epsilonn": 1}, "Did you mean epsilon? Known are: kind, data, output, speed"),
        ({"yes": True}, "has 'yes', which gridveil wind release does not know"),
        ({"power": None}, 'has no power. Add a line power = "...": Column of power (private).'),
        ({"stream": "yes"}, "stream is not true or false. Write true."),
        ({"alpha": True}, "alpha is neither a text nor a number"),
        ({"method": "best"}, "no method 'best'"),
        ({"speed": "--dry-run"}, "has no column '--dry-run'"),  # a value is never an option
        ({"data": "--dry-run"}, "no file --dry-run"),
    ],
)
def test_what_can_not_be_used_is_refused_with_its_remedy(tmp_path, change, words):
    values = {name: value for name, value in {**WIND, **change}.items() if value is not None}
    done = run("release", write(tmp_path / "release.toml", **values))
    assert done.exit_code == 2, done.output
    assert words in " ".join(done.stderr.split())
    assert not (tmp_path / "ledger.sqlite").exists()


@pytest.mark.parametrize(
    ("text", "words"),
    [(b"alpha = ", "can't be read"), (b"\xff\xfe", "UTF-8"), (None, "gridveil init")],
)
def test_a_file_that_is_not_toml_is_refused(tmp_path, text, words):
    file = tmp_path / "release.toml"
    if text is not None:
        file.write_bytes(text)
    done = run("release", file)
    assert done.exit_code == 2
    assert words in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    "text", ['a "quoted" \\ name', "päivä 💨", "tab\tand\nline", "del\x7f", ""]
)
def test_texts_survive_a_file(text):
    made = release_toml.file_text("wind", {"data": text, "public": [text, "b"], "stream": True})
    assert tomllib.loads(made) == {
        "kind": "wind", "data": text, "public": [text, "b"], "stream": True,
    }  # fmt: skip


def test_the_words_of_a_command_become_a_file():
    words = [
        "a.m",
        "--range",
        "capacity=1:500",
        "--range",
        "load=0:5",
        "--public-curves",
        "-o",
        "x",
    ]
    assert release_toml.values_of("grid", words) == {
        "data": "a.m",
        "range": ["capacity=1:500", "load=0:5"],
        "public_curves": True,
        "output": "x",
    }


def test_without_a_terminal_an_unusual_plan_needs_yes(tmp_path):
    file = write(tmp_path / "release.toml", **{**WIND, "epsilon": 50})
    refused = run("release", file)
    assert refused.exit_code == 2
    said = " ".join(refused.stderr.split())
    assert "unusual: Epsilon 50 is next to no protection" in said
    assert "add --yes if it is meant. Nothing was charged." in said
    assert not (tmp_path / "ledger.sqlite").exists()
    silent = run("release", file, "--quiet")
    assert silent.exit_code == 2
    assert "Epsilon 50 is next to no protection" in silent.stderr
    made = run("release", file, "--yes")
    assert made.exit_code == 0, made.output
