"""The options of the release commands are those of the methods' classes."""

import json

import pytest
from typer.testing import CliRunner

from gridveil.auditing.triangle_network import triangle_text
from gridveil.cli.commands import app
from gridveil.grid.methods import METHODS
from gridveil.wind.methods import BY_NAME

COMMANDS = {"wind": BY_NAME, "grid": METHODS}
OPTIONS = [
    (kind, method, name)
    for kind, methods in COMMANDS.items()
    for method, options in methods.items()
    for name in options.about()
]
NEEDED = {"total_share": "load", "published_total": "load"}
TOGETHER = {"emergency": ("--contingencies", "all"), "time_limit": ("--restoration", "exact")}


def run(*words):
    return CliRunner().invoke(app, list(map(str, words)))


def shown(kind):
    return " ".join(run(kind, "release", "--help").stdout.replace("│", " ").split())


def release(kind, folder, method, *more, parameter="capacity"):
    file = folder / ("records.csv" if kind == "wind" else "triangle.m")
    file.write_text("speed,power\n3,10\n5,20\n7,60\n" if kind == "wind" else triangle_text({}))
    alpha = "100%" if method == "synthetic" else "10%"
    words = {
        "wind": ["--speed", "speed", "--power", "power", "--capacity", 100, "--alpha", alpha],
        "grid": ["--parameter", parameter, "--alpha", 10],
    }[kind]
    words = [kind, "release", file, *words, "--method", method, "-o", folder / "out", *more]
    return run(*words, "--ledger", folder / "ledger.sqlite", "--dataset", "data")


@pytest.mark.parametrize("kind", COMMANDS)
def test_methods_and_their_options_are_in_the_help(kind):
    text = shown(kind)
    also = ", or auto" if kind == "wind" else ""
    assert f"{', '.join(COMMANDS[kind])}{also}. [default: {next(iter(COMMANDS[kind]))}]" in text
    for options in COMMANDS[kind].values():
        for name, about in options.about().items():
            assert f"--{name.replace('_', '-')} " in text
            assert about.help.partition(" ")[2] in text
            assert (about.default or "Default:") in text


@pytest.mark.parametrize(("kind", "method", "name"), OPTIONS)
def test_an_example_is_taken_and_nonsense_is_answered_with_it(kind, method, name, tmp_path):
    about = COMMANDS[kind][method].about()[name]
    option = f"--{name.replace('_', '-')}"
    parameter = NEEDED.get(name, "capacity")
    more = TOGETHER.get(name, ()) if kind == "grid" else ()
    flag = COMMANDS[kind][method].default(name) is False
    text = () if flag else ("250" if name == "published_total" else about.example,)
    given = (option, *text, *more, "--dry-run")
    taken = release(kind, tmp_path, method, *given, parameter=parameter)
    assert taken.exit_code == 0, taken.output
    if about.read is str or flag:
        return  # the check, and not the reader, knows what is wrong; a flag has no text
    wrong = release(kind, tmp_path, method, option, "nonsense", *more, "--dry-run")
    assert wrong.exit_code == 2
    assert ("a share of epsilon" if name == "split" else about.example) in wrong.stderr


@pytest.mark.parametrize(
    ("kind", "method", "option", "name", "value"),
    [
        ("wind", "tuned", "--nominal=20%", "nominal", 0.2),
        ("grid", "certified", "--margin=3%", "margin", 0.03),
    ],
)
def test_what_was_typed_is_in_the_statement(kind, method, option, name, value, tmp_path):
    done = release(kind, tmp_path, method, option, "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["statement"]["settings"][name] == value


@pytest.mark.parametrize(
    ("kind", "method", "option"),
    [("wind", "wpo", "--nominal=20%"), ("grid", "paper", "--margin=1")],
)
def test_an_option_of_another_method_is_refused(kind, method, option, tmp_path):
    refused = release(kind, tmp_path, method, option, "--dry-run")
    assert refused.exit_code == 2
    assert "has no meaning for method" in refused.stderr
