"""The command line as a person or a script meets it."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from support.sizes import FULL
from typer.testing import CliRunner

from gridveil import __version__
from gridveil.cli import main
from gridveil.cli.commands import COMMANDS, app
from gridveil.cli.console import out, plain
from gridveil.privacy.ledger import Ledger

CANARY = 31.41592653


def run(*arguments, typed=None):
    return CliRunner().invoke(app, [str(a) for a in arguments], input=typed)


@pytest.fixture(scope="module", autouse=True)
def _few_models():
    """The demo with fewer models, since it runs here again and again; its own size if FULL."""
    with pytest.MonkeyPatch.context() as patch:
        if not FULL:
            patch.setattr("gridveil.cli.demo._MODELS", 40)
        yield


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made") / "demo"
    result = run("demo", "-o", folder)
    assert result.exit_code == 0, result.output
    return folder, result.stdout


@pytest.fixture
def demo(made, tmp_path):
    return shutil.copytree(made[0], tmp_path / "demo")


def test_alone_it_greets():
    result = run()
    assert result.exit_code == 0
    assert "Three things to do" in result.stdout


def test_the_script_greets_as_the_app_does(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["gridveil"])
    main.run()
    assert capsys.readouterr().out == run().stdout


def test_the_greeting_is_styled_on_a_terminal_alone(monkeypatch, capsys):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    main.greet()
    assert "\x1b[1mGridVeil\x1b[0m" in capsys.readouterr().out
    monkeypatch.setenv("NO_COLOR", "1")
    main.greet()
    assert "\x1b" not in capsys.readouterr().out


def test_version():
    assert run("--version").stdout == f"gridveil {__version__}\n"


def test_the_script_runs():
    done = subprocess.run(
        [sys.executable, "-c", "from gridveil.cli.main import run; run()", "--version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"gridveil {__version__}\n"


def commands(group=None, words=()):
    """Every command that there is, as the words that one types."""
    group = typer.main.get_command(app) if group is None else group
    yield words
    for name in getattr(group, "commands", {}):
        yield from commands(group.commands[name], (*words, name))


@pytest.mark.parametrize("words", list(commands()), ids=" ".join)
def test_every_command_has_help_and_those_that_do_something_an_example(words):
    shown = run(*words, "--help")
    assert shown.exit_code == 0
    text = " ".join(shown.stdout.replace("│", " ").split())
    assert "COMMAND" in text or f"Example: gridveil {' '.join(words)}" in text


@pytest.mark.parametrize("words", list(commands()), ids=" ".join)
def test_help_shows_no_emoji_for_what_stands_between_colons(words):
    shown = run(*words, "--help").stdout
    frames = "│╭╮╰╯─…"
    strange = {one for one in shown if not (one.isascii() or one in frames)}
    assert strange == set()


def test_a_range_of_costs_is_shown_as_it_is_typed():
    shown = " ".join(run("grid", "population", "--help").stdout.replace("│", " ").split())
    assert "80:100" in shown


def test_data_between_colons_stays_as_it_is(capsys):
    out().print(plain("a:100:b"))
    out().print("c:100:d")
    assert capsys.readouterr().out == "a:100:b\nc:100:d\n"


# Examples that take long, or never end by themselves; tests of their own run these commands.
LONG = ("gridveil plan", "gridveil audit", "gridveil study")
TEAM = ("gridveil ledger create", "gridveil ledger copy")  # with a server, in test_team
SIZE = "--size 1000" if FULL else "--size 40"
ANSWERS = "wind demo-release/turbine.csv wind_speed power 2750 - - 15% - turbine from-file\n"
ORDER = (
    "demo",
    "init",
    "release",
    "wind release",
    "wind evaluate",
    "verify",
    "grid population",
    "grid solve",
)


def example(words):
    shown = run(*words, "--help").stdout.replace("│", " ")
    found = re.search(r"Example: (gridveil.*?)(?:╭|$)", " ".join(shown.split()))
    return found and found[1].strip()


def test_every_example_works_when_it_is_pasted(tmp_path, monkeypatch):
    """In this order, since some examples use what others have made.

    Networks are released and evaluated with fewer models than by default, but for FULL.
    """
    monkeypatch.chdir(tmp_path)
    few = {"grid release": "--population few.parquet", "grid evaluate": "--unseen few.parquet"}
    if not FULL:
        made = run("grid", "population", "rts96-paper", "--size", 5, "-o", "few.parquet")
        assert made.exit_code == 0, made.output
    lines = [line for words in commands() if (line := example(words))]
    lines = [line for line in lines if not line.startswith(LONG + TEAM)]
    place = {name: at for at, name in enumerate(ORDER)}
    lines.sort(key=lambda line: min(place[n] if f"gridveil {n} " in line else 99 for n in ORDER))
    assert len(lines) == 16
    for line in lines:
        if "grid evaluate" in line:  # a file that the wind's example has written
            (tmp_path / "owner.html").unlink()
        more = [words for name, words in few.items() if f"gridveil {name} " in line and not FULL]
        words = shlex.split(" ".join([line.replace("--size 1000", SIZE), *more]))[1:]
        result = run(*words, typed=ANSWERS.replace(" ", "\n").replace("-\n", "\n"))
        assert result.exit_code == 0, f"{line}\n{result.output}"


@pytest.mark.parametrize("one", [one for part in COMMANDS.values() for one in part])
def test_the_table_of_commands_says_what_their_help_says(one):
    shown = run(one.name, "--help").stdout
    assert " ".join(one.help.split()) in " ".join(shown.replace("│", " ").split())
    assert one.help in run("--help").stdout


def test_a_slip_of_the_pen_is_answered_with_what_was_meant():
    result = run("legder")
    assert result.exit_code == 2
    assert "Did you mean 'ledger'?" in result.stderr


def test_demo_says_the_two_numbers_and_names_its_report(made):
    folder, shown = made
    assert (folder / "wind" / "report.html").is_file()
    assert str(folder / "wind" / "report.html") in shown
    assert re.search(r"privacy +2\.72 ", shown)
    assert re.search(r"accuracy +[\d.]+% ", shown)


def test_demo_again_is_charged_again(demo):
    assert run("demo", "-q", "-o", demo).exit_code == 0
    assert Ledger(demo / "ledger.sqlite").totals("demo turbine").spent == 2


def test_quiet_demo_says_nothing(tmp_path):
    assert run("demo", "-q", "-o", tmp_path / "demo").output == ""


def test_verify_in_words_and_json(demo):
    good = run("verify", demo / "wind")
    assert good.exit_code == 0
    assert "This bundle is sound." in good.stdout
    (demo / "wind" / "extra").write_text("x")
    bad = run("verify", demo / "wind", "--json")
    assert bad.exit_code == 1
    assert json.loads(bad.stdout)["ok"] is False
    assert "FAIL" in run("verify", demo / "wind", "--quiet").stdout


def test_what_a_changed_statement_says_is_not_called_ok(demo, tmp_path):
    """Who forged it would have his sentence repeated with a green ok."""
    folder = shutil.copytree(demo / "wind", tmp_path / "forged")
    path = folder / "release.json"
    path.write_text(path.read_text().replace('"dp_valid": true', '"dp_valid":  true'))
    shown = run("verify", folder)
    assert shown.exit_code == 1
    assert "ok   Changing one of" in run("verify", demo / "wind").stdout
    assert "??   Changing one of" in shown.stdout
    assert "ok   Charged as entry" not in shown.stdout


def test_help_is_broken_where_the_screen_ends(monkeypatch):
    """Whatever the width of the terminal that the tests run in."""
    monkeypatch.setattr("typer.rich_utils.MAX_WIDTH", 80)
    shown = run("ledger", "verify", "--help").stdout
    assert any(line.strip() == "code 0 if all is well, 1 if not." for line in shown.splitlines())


def test_verify_of_nothing_is_bad_input(tmp_path):
    result = run("verify", tmp_path / "nowhere")
    assert result.exit_code == 2
    assert "error: There is no folder" in result.stderr


def test_ledger_show_cap_and_verify(demo):
    ledger = ("--ledger", demo / "ledger.sqlite")
    assert "demo turbine" in run("ledger", "show", *ledger).stdout
    shown = json.loads(run("ledger", "show", "demo turbine", "--json", *ledger).stdout)
    assert shown["spent"] == "1"
    assert [entry["kind"] for entry in shown["entries"]] == ["charge", "release"]
    assert run("ledger", "cap", "demo turbine", "1.5", "--alpha", "15%", *ledger).exit_code == 0
    listed = json.loads(run("ledger", "show", "--json", *ledger).stdout)
    assert listed["datasets"][0]["remaining"] == "1/2"
    whole = run("ledger", "verify", "--bundle", demo / "wind", *ledger)
    assert whole.exit_code == 0
    assert "chain is whole and holds the charges of 1 bundle" in whole.stdout


def test_a_reached_cap_refuses_with_exit_code_3(demo):
    cap = ("ledger", "cap", "demo turbine", "1.5", "--alpha", "15%")
    run(*cap, "--ledger", demo / "ledger.sqlite")
    refused = run("demo", "-o", demo)
    assert refused.exit_code == 3
    assert "requested 1, remaining 0.5, short by 0.5" in refused.stderr
    run("ledger", "cap", "demo turbine", "--remove", "--ledger", demo / "ledger.sqlite")
    assert run("demo", "-o", demo).exit_code == 0


def test_ledger_verify_finds_a_cut_tail(demo):
    path = demo / "ledger.sqlite"
    path.unlink()
    Ledger(path)
    result = run("ledger", "verify", "--bundle", demo / "wind", "--ledger", path)
    assert result.exit_code == 1
    assert "FAIL" in result.stdout


def test_a_ledger_that_is_not_there(tmp_path):
    result = run("ledger", "show", "--ledger", tmp_path / "none")
    assert result.exit_code == 2
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("arguments", [["cap", "x"], ["cap", "x", "1", "--remove"], ["show", "x"]])
def test_bad_ledger_commands(tmp_path, arguments):
    ledger = tmp_path / "ledger"
    Ledger(ledger)
    assert run("ledger", *arguments, "--ledger", ledger).exit_code == 2
    assert Ledger(ledger).entries() == []


def _fail_with(monkeypatch, error):
    def fail(*_, **__):
        private = CANARY
        raise error(f"could not use {private}")

    monkeypatch.setattr("gridveil.cli.demo._release", fail)


def test_a_bug_shows_no_message_and_no_locals(monkeypatch, tmp_path):
    _fail_with(monkeypatch, ValueError)
    result = run("demo", "-o", tmp_path / "demo")
    assert result.exit_code == 1
    assert "internal error: ValueError" in result.stderr
    assert "demo.py" in result.stderr
    assert "31.4" not in result.output


def test_an_interrupt_says_what_is_left(monkeypatch, tmp_path):
    _fail_with(monkeypatch, KeyboardInterrupt)
    result = run("demo", "-o", tmp_path / "demo")
    assert result.exit_code == 130
    assert "a charge that was made stays spent" in result.stderr
    assert "31.4" not in result.output


def test_tracebacks_never_show_locals():
    assert app.pretty_exceptions_show_locals is False
    assert app.pretty_exceptions_enable is False


def test_a_reader_that_goes_away_is_no_bug():
    script = Path(sys.executable).with_name("gridveil")
    with subprocess.Popen(
        [script, "study", "fig5", "--help"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == b""
