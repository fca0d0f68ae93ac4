"""A newcomer's first release: questions, a file, the plan, the release, the recipient's check."""

import sys
import tomllib

import pandas as pd
import pytest

from gridveil.privacy.ledger import Ledger
from gridveil.wind.demo import demo_records

if sys.platform == "win32":
    pytest.skip("there are no pseudo-terminals", allow_module_level=True)

from newcomer.terminal import Terminal

TALK = [
    ("(wind or grid): ", "solar"),
    ("(wind or grid): ", "wind"),
    ("data: ", "scada.txt"),
    ("data: ", "scada.csv"),
    ("speed: ", "wind"),
    ("speed: ", "wind_speed"),
    ("power: ", "power"),
    ("capacity: ", "2750"),
    ("time: ", "when"),
    ("turbine: ", ""),
    ("alpha: ", "15%"),
    ("epsilon [1]: ", ""),
    ("dataset: ", "north farm"),
    ("output [release]: ", ""),
]


@pytest.fixture
def terminal(tmp_path):
    times = pd.date_range("2024-01-01", periods=200, freq="10min")
    table = demo_records(200).to_pandas().assign(when=times)
    table.to_csv(tmp_path / "scada.csv", index=False)
    opened = Terminal(tmp_path)
    yield opened
    opened.close()


def test_from_questions_to_a_checked_bundle(terminal, tmp_path):
    shown, code = terminal.run("gridveil init", *TALK)
    assert "Write wind or grid." in shown
    assert "There is no such column. There are: wind_speed, power, when." in shown
    assert "Wrote release.toml. Nothing was charged." in shown
    assert code == 0

    shown, code = terminal.run("gridveil release --dry-run")
    assert "order of rows: by the time 'when', as written, without a zone" in shown
    assert "rows: 200; none left out" in shown
    assert "Unusual:" not in shown
    assert not (tmp_path / "ledger.sqlite").exists()

    shown, code = terminal.run("gridveil release")
    assert "Takes for granted:" in shown  # a person sees the plan
    assert "Released 200 records" in shown
    assert "Charged 1 to 'north farm'" in shown
    assert code == 0
    assert Ledger(tmp_path / "ledger.sqlite").totals("north farm").spent == 1

    shown, code = terminal.run("gridveil verify release")
    assert code == 0

    shown, code = terminal.run("gridveil release")
    assert "--force" in shown  # before anything is charged a second time
    assert code == 2
    assert Ledger(tmp_path / "ledger.sqlite").totals("north farm").spent == 1

    again = [("data: ", "scada.csv"), ("dataset: ", "north farm"), ("output [release]: ", "next")]
    shown, code = terminal.run("gridveil init again.toml --from release", *again)
    assert code == 0
    first, second = (
        tomllib.loads((tmp_path / f).read_text()) for f in ("release.toml", "again.toml")
    )
    assert second == {**first, "output": "next"}


def test_whoever_says_yes_gets_what_was_asked_for(terminal, tmp_path):
    line = (
        "gridveil wind release scada.csv --speed wind_speed --power power --capacity 2750 "
        "--alpha 15% --method laplace --dataset farm -o out"
    )
    shown, code = terminal.run(line, ("Release all the same? [y/N]: ", "y"))
    assert "Name the column of times with --time" in shown
    assert "Released 200 records" in shown
    assert code == 0
    shown, code = terminal.run(f"{line}-2 --yes")
    assert "unusual: No column orders the rows" in shown
    assert code == 0
    assert Ledger(tmp_path / "ledger.sqlite").totals("farm").spent == 2


def test_questions_about_a_network_are_asked_as_its_help_shows_them(terminal, tmp_path):
    answers = [
        ("(wind or grid): ", "grid"),
        ("data: ", "rts96"),
        ("parameter [capacity]: ", ""),
        ("alpha: ", "20%"),
        ("range: ", "50:1000"),
        ("epsilon [1]: ", ""),
        ("dataset: ", "grid"),
        ("output [release]: ", ""),
    ]
    shown, code = terminal.run("gridveil init", *answers)
    assert "by public class: 380kV:100,others:20" in shown
    assert "[none]" not in shown
    assert code == 0
    shown, code = terminal.run("gridveil release --dry-run")
    assert "120 values in MW, each protected by 20% of its value" in shown
    assert "[none]" not in shown
    assert code == 0
