"""Hostile names and text: they reach files, pages and screens as data, or are refused first."""

import csv
import io
import json
import re
import shutil

import numpy as np
import pytest
from faults.campaigns import make_scene, release
from rich.console import Console
from support.making import make_release
from typer.testing import CliRunner

from gridveil import wind
from gridveil.cli import console
from gridveil.cli.commands import app
from gridveil.errors import InputError, LedgerError
from gridveil.privacy.ledger import Ledger
from gridveil.privacy.ledger import place as location
from gridveil.privacy.ledger.identity import checked_name, name_key
from gridveil.privacy.statement import STATEMENT_FILE
from gridveil.release.bundle import check_target
from gridveil.release.verification import verify_bundle

NAMED = {"speed": "speed", "power": "power", "capacity": 2000}


def run(*arguments):
    return CliRunner(env={"COLUMNS": "200"}).invoke(app, [str(one) for one in arguments])


def table(path, *, names=("speed", "power", "note"), note="fine"):
    with path.open("w", newline="", encoding="utf-8") as stream:
        rows = csv.writer(stream)
        rows.writerow(names)
        rows.writerows([3 + row / 10, 100 + row, note if row == 7 else "calm"] for row in range(60))
    return path


# -- formulas --------------------------------------------------------------------------------------

FORMULAS = [
    "=1+1", "+cmd()", "-2+3+cmd|' /C calc'!A0", "@SUM(A1)", "\t=1", "\r=1", " =1", "x;=1",
    "\uff1d1", "=HYPERLINK(\"http://x\")", "a\n=1", "-x", "+49 170",
]  # fmt: skip
HARMLESS = [
    "-1.5", "+4", "-", "--", "-1,5", "1e-3", "-5%", "2020-01-01", "T-1", "a, b", "", "a@b.de",
    "x=y", "5 + 4",
]  # fmt: skip


@pytest.mark.parametrize("note", FORMULAS)
@pytest.mark.parametrize("role", ["public", "turbine", "key"])
def test_text_that_a_spreadsheet_would_run_is_refused_before_the_charge(
    tmp_path, ledger, role, note
):
    source = table(tmp_path / "scada.csv", note=note)
    given = {role: ["note"] if role == "public" else "note"}
    with pytest.raises(InputError, match=r"'note' of scada\.csv .* row 8 .*--formulas keep"):
        wind.read_records(source, **NAMED, **given)


@pytest.mark.parametrize("note", HARMLESS)
def test_numbers_dashes_and_plain_text_are_no_formulas(tmp_path, note):
    source = table(tmp_path / "scada.csv", note=note)
    assert not wind.read_records(source, **NAMED, public=["note"]).formulas


def test_a_formula_that_is_kept_is_not_changed_and_the_statement_says_so(tmp_path, ledger):
    source = table(tmp_path / "scada.csv", note="=1+1")
    records = wind.read_records(source, **NAMED, public=["note"], formulas="keep")
    made = wind.release(
        records, epsilon=1, alpha=0.1, method="laplace", dataset="farm", ledger=ledger
    )
    placed = made.write(tmp_path / "out")
    assert "=1+1" in (placed / "records.csv").read_text()
    assert any("spreadsheet" in line for line in made.statement.body["limitations"])
    assert "do not open it in a spreadsheet" in (placed / "report.html").read_text()


def test_streamed_text_is_looked_at_too(tmp_path):
    rows = "".join(f"{i},{3 + i / 9},5,{'=1' if i == 30 else 'x'}\n" for i in range(50))
    (tmp_path / "long.csv").write_text("t,speed,power,note\n" + rows)
    with pytest.raises(InputError, match="row 31"):
        wind.read_records(tmp_path / "long.csv", **NAMED, key="t", public=["note"], stream=True)


@pytest.mark.parametrize("name", ["=cmd()", "@x", "-power", "\t=speed"])
def test_names_of_columns_are_looked_at(tmp_path, name):
    source = table(tmp_path / "scada.csv", names=("speed", "power", name))
    with pytest.raises(InputError, match="The name of column"):
        wind.read_records(source, **NAMED, public=[name])
    kept = wind.read_records(source, **NAMED, public=[name], formulas="keep")
    assert kept.published == ("speed", name)


def test_parquet_is_data_and_no_spreadsheet(tmp_path):
    import pandas as pd

    frame = pd.read_csv(table(tmp_path / "scada.csv", note="=1+1"))
    assert not wind.read_records(frame, **NAMED, public=["note"]).formulas


def test_the_command_refuses_and_keeps(tmp_path):
    source = table(tmp_path / "scada.csv", note="=1+1")
    arguments = [
        "wind", "release", source, "--speed", "speed", "--power", "power", "--capacity", 2000,
        "--alpha", "15%", "--method", "laplace", "--public", "note", "--ledger", tmp_path / "l",
        "--dataset", "farm",
        "-o", tmp_path / "out",
    ]  # fmt: skip
    refused = run(*arguments)
    assert refused.exit_code == 2
    assert "--formulas keep" in refused.stderr
    assert not (tmp_path / "l").exists()
    assert run(*arguments, "--formulas", "keep").exit_code == 0
    assert run("wind", "evaluate", tmp_path / "out", "--against", source).exit_code == 0
    assert run(*arguments, "--formulas", "maybe").exit_code == 2


# -- paths -----------------------------------------------------------------------------------------

LONG = "x" * 300


@pytest.mark.parametrize("name", [f"{LONG}", f"{LONG}/out", "a\0b", "~nobody-here/out", "x" * 245])
def test_bundles_are_never_written_to_names_that_can_not_be_used(tmp_path, name):
    target = name if name.startswith("~") else f"{tmp_path}/{name}"
    with pytest.raises(InputError, match="can't be written"):
        check_target(target)


@pytest.mark.parametrize("name", [LONG, f"{LONG}/ledger", "a\0b", "~nobody-here/ledger"])
def test_ledgers_are_never_made_under_names_that_can_not_be_used(tmp_path, name):
    with pytest.raises(LedgerError):
        Ledger(name if name.startswith("~") else f"{tmp_path}/{name}")


@pytest.mark.parametrize("name", [LONG, f"{LONG}/x", "~nobody-here/x"])
def test_commands_explain_paths_that_can_not_be_used(tmp_path, name):
    place = name if name.startswith("~") else f"{tmp_path}/{name}"
    for arguments in (
        ["verify", place],
        ["ledger", "show", "--ledger", place],
        ["ledger", "cap", "farm", "1", "--alpha", "30", "--ledger", place],
        ["wind", "evaluate", place, "--against", place],
        ["wind", "release", place, "-o", place, "--speed", "a", "--power", "b", "--capacity", 1,
         "--alpha", "1%"],
        ["wind", "release", place, "-o", tmp_path / "o", "--speed", "a", "--power", "b",
         "--capacity", 1, "--alpha", "1%"],
        ["grid", "info", f"{place}.m"],
        ["grid", "solve", "rts96", "--population", place],
    ):  # fmt: skip
        result = run(*arguments)
        assert result.exit_code in (1, 2), (arguments, result.output)
        assert "internal error" not in result.output, (arguments, result.output)
        assert "error:" in result.stderr


def test_no_name_in_a_statement_leads_out_of_its_folder(ledger, tmp_path):
    placed = make_release(ledger).write(tmp_path / "out")
    (tmp_path / "secret.csv").write_text("x")
    body = json.loads((placed / STATEMENT_FILE).read_text())
    for name in ("../secret.csv", "/etc/hosts", "..\\secret.csv", "a\x00b", ".hidden", "a\nb"):
        body["files"][0]["name"] = name
        (placed / STATEMENT_FILE).write_text(json.dumps(body))
        assert [one.check for one in verify_bundle(placed) if not one.ok] == ["statement"]


@pytest.mark.parametrize(
    "name",
    ["a\x1bb", "a\u202eb", "a\u200bb", "farm\ufe0f", "\u3164", "\ud800", "x" * 201],
)
def test_datasets_have_names_that_can_be_seen(name):
    with pytest.raises(InputError, match="1 to 200 printable"):
        checked_name(name)


def test_spellings_that_look_the_same_share_one_budget():
    assert name_key("North  Farm") == name_key("north farm") == name_key("\uff4eorth farm")
    assert name_key("north-farm") == name_key("North_Farm") == name_key("(north) farm!")
    assert name_key("feeder 1-1") != name_key("feeder 11")
    assert name_key("---") != name_key("...")
    assert name_key("caf\u00e9") == name_key("cafe\u0301")
    assert name_key("farm") != name_key("f\u0430rm")  # Cyrillic: another letter, as documented


def test_a_mount_with_any_letters_in_its_name_is_known(tmp_path, monkeypatch):
    line = r"36 35 98:0 / {} rw,noatime master:1 - nfs4 server:/export rw" + "\n"
    for escaped, place in (
        ("/mnt/donn\u00e9es", "/mnt/donn\u00e9es"),
        (r"/mnt/a\040b", "/mnt/a b"),
    ):
        text = line.format(escaped).encode()
        monkeypatch.setattr(location.Path, "read_bytes", lambda self, text=text: text)
        assert location._linux_mounts() == [(location.Path(place), "nfs4")]


# -- pages and pictures ----------------------------------------------------------------------------

HOSTILE = [
    "<script>alert(1)</script>", "\"><img src=x onerror=alert(1)>", "{{ 7*7 }}", "$\\frac$",
    "a$b$c", "${x}", "[/]", "[red]x", "\x1b[2J", "\u202edrawkcab", "a\tb", "\u6771\u4eac",
]  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_column_name_goes_all_the_way(tmp_path, ledger, name):
    import pandas as pd

    frame = pd.DataFrame({name: np.linspace(3, 12, 40), "power": 50.0, "turbine": name})
    records = wind.read_records(
        frame, speed=name, power="power", turbine="turbine", capacity=100, unit=name, name="farm"
    )
    made = wind.release(
        records, epsilon=1, alpha=0.1, method="laplace", dataset="farm", ledger=ledger
    )
    placed = made.write(tmp_path / "out")
    page = (placed / "report.html").read_text(encoding="utf-8")
    assert not re.search(r"<(script|img (?!src=\"data:))", page)
    assert "49" not in page or "7*7" in page or "{{" not in name
    assert all(finding.ok for finding in verify_bundle(placed))
    assert name in made.data.columns


def test_half_a_character_in_a_name_does_not_lose_a_release(ledger, tmp_path):
    made = make_release(ledger)
    made.statement.body["summary"] = "half \ud800 a character"
    placed = made.write(tmp_path / "out")
    assert all(finding.ok for finding in verify_bundle(placed))


# -- the screen ------------------------------------------------------------------------------------


def printed(*objects) -> str:
    stream = io.StringIO()
    screen = console._screen()(file=stream, force_terminal=True, soft_wrap=True, highlight=False)
    screen.print(*objects)
    return stream.getvalue()


def test_no_text_speaks_to_the_terminal():
    assert "\x1b[2J" not in printed("a\x1b[2Jb")
    assert "\\x1b[2J" in printed("a\x1b[2Jb")
    assert "\u202e" not in printed("a\u202eb")
    assert "\x1b[1m" in printed("[bold]x[/]")  # its own markup still does


@pytest.mark.parametrize("name", ["[/]", "[red]x[/red]", "[link=http://x]x", "a\nok   sound", "\\"])
def test_tables_and_plain_text_show_names_as_they_are(name):
    shown = console.table("a", title=name)
    shown.add_row(name)
    text = printed(shown)
    assert text.count(name.replace("\n", "\\n")) >= 2
    assert name.replace("\n", "\\n") in printed(f"[bold]{console.plain(name)}[/]")
    assert "\nok " not in text


def test_progress_shows_names_as_they_are(monkeypatch):
    monkeypatch.setattr(
        console, "err", lambda: Console(file=io.StringIO(), force_terminal=True, width=80)
    )
    with console.steps("releasing [/]".replace(" [/]", ""), quiet=False) as say:
        say("restoring [/] \x1b[2J")


def test_json_is_ascii(capsys):
    console.print_json({"name": "\u202e\x9b[2J\ud800"})
    shown = capsys.readouterr().out
    assert shown.isascii()
    assert "\x1b" not in shown


def test_hostile_names_in_the_commands(tmp_path):
    scene = make_scene(tmp_path / "[red]a[/]", earlier=False)
    assert release(scene, "--dataset", "[/] [bold]farm") == 0
    ledger = Ledger(scene.ledger)
    assert "[/] [bold]farm" in run("ledger", "show", "--ledger", ledger.path).stdout
    shown = run("ledger", "show", "[/] [bold]farm", "--ledger", ledger.path)
    assert shown.exit_code == 0
    assert "[/] [bold]farm" in shown.stdout
    shown = run("ledger", "verify", "--ledger", ledger.path, "--bundle", scene.target)
    assert shown.exit_code == 0
    (scene.target / "ok\nThis bundle is sound.\x1b[2J").write_text("x")
    failed = run("verify", scene.target)
    assert failed.exit_code == 1
    assert "\x1b[2J" not in failed.stdout
    assert "ok\nthis" not in failed.stdout.lower()


def test_the_owner_finds_a_statement_that_was_changed(tmp_path):
    scene = make_scene(tmp_path / "scene", earlier=True)
    check = ["ledger", "verify", "--ledger", scene.ledger, "--bundle", scene.target]
    assert run(*check).exit_code == 0
    path = scene.target / STATEMENT_FILE
    path.write_text(path.read_text().replace("wind power records", "solar power records"))
    found = run(*check)
    assert found.exit_code == 1
    assert "not the one that was released" in found.stdout
    shutil.rmtree(scene.target)


def test_an_evaluation_of_a_damaged_bundle_is_refused(tmp_path):
    scene = make_scene(tmp_path / "scene", earlier=True)
    against = ["--against", scene.folder / "records.csv"]
    assert run("wind", "evaluate", scene.target, *against).exit_code == 0
    path = scene.target / STATEMENT_FILE
    for old, new in (('"settings": {', '"settings": {}, "x": {'), ('"speed"', '"spied"')):
        text = path.read_text()
        path.write_text(text.replace(old, new, 1))
        found = run("wind", "evaluate", scene.target, *against)
        assert found.exit_code == 2
        assert "internal error" not in found.output
        path.write_text(text)


def test_streamed_records_need_their_room_before_the_charge(tmp_path, ledger, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    source = tmp_path / "long.csv"
    source.write_text("t,speed,power\n" + "".join(f"{i},{3 + i / 9},5\n" for i in range(50)))
    records = wind.read_records(source, **NAMED, key="t", stream=True)
    monkeypatch.setattr("os.posix_fallocate", full, raising=False)
    with pytest.raises(InputError, match="no room for 50 noisy records"):
        wind.release(records, epsilon=1, alpha=0.1, method="laplace", dataset="farm", ledger=ledger)
    assert ledger.entries() == []
