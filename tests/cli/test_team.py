"""The ledger of a team by commands: set-up, releases, who spent what, moves, exports, backups."""

import json
import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest
from plan.making import asked, planner_of
from pyarrow import csv
from support import databases
from support.making import charge, make_release
from typer.testing import CliRunner

from gridveil.cli.commands import app
from gridveil.planning.wind import Wind
from gridveil.privacy.ledger import Ledger
from gridveil.wind.demo import demo_records

PAGE = Path(__file__).parents[2] / "docs" / "privacy" / "team-ledger.md"
SECRET = "hunter2canary"


def run(*arguments):
    return CliRunner().invoke(app, [str(one) for one in arguments])


def no_password(address):
    return re.sub(r":[0-9a-f]{32}@", "@", address)


@pytest.fixture
def backend(monkeypatch):
    if why := databases.missing():
        pytest.skip(why)
    found = databases.Databases()
    monkeypatch.setenv("PGPASSWORD", found.server.password)
    yield found
    found.close()


@pytest.fixture
def place(backend):
    return backend.new()


@pytest.fixture
def records(tmp_path):
    path = tmp_path / "scada.csv"
    csv.write_csv(demo_records(200), path)
    return path


def release(records, target, *more):
    return run(
        "wind", "release", records, "--speed", "wind_speed", "--power", "power",
        "--capacity", 2750, "--alpha", "15%", "--epsilon", 1, "--method", "laplace",
        "--dataset", "north farm", "-o", target, *more,
    )  # fmt: skip


# -- a release -------------------------------------------------------------------------------------


def test_a_release_is_charged_to_the_team(backend, place, records, tmp_path, monkeypatch):
    monkeypatch.setenv("GRIDVEIL_LEDGER", backend.analyst(place))  # with its password
    shown = release(records, tmp_path / "out")
    assert shown.exit_code == 0, shown.output
    where = no_password(backend.analyst(place))
    assert where in " ".join(shown.output.split()).replace("\n", "")
    checked = run("ledger", "verify", "--bundle", tmp_path / "out")
    assert (checked.exit_code, checked.stdout[:2]) == (0, "ok")
    printed = shown.output + checked.output + run("ledger", "show").output
    printed += run("ledger", "show", "north farm").output
    printed += release(records, tmp_path / "other", "--json").output
    assert backend.server.password not in printed
    for path in tmp_path.rglob("*"):
        assert path.is_dir() or backend.server.password.encode() not in path.read_bytes()
    assert Ledger(place).totals("north farm").spent == 2


def test_a_cap_of_the_owner_holds_for_the_analyst(backend, place, records, tmp_path):
    owner, analyst = no_password(place), no_password(backend.analyst(place))
    cap = ("ledger", "cap", "north farm", "1", "--alpha", "15%", "--ledger")
    refused = run(*cap, analyst)
    assert refused.exit_code == 3
    assert "Ask the ledger's owner" in " ".join(refused.output.split())
    assert run(*cap, owner).exit_code == 0
    assert release(records, tmp_path / "a", "--ledger", analyst).exit_code == 0
    over = release(records, tmp_path / "b", "--ledger", analyst)
    assert over.exit_code == 3
    assert not (tmp_path / "b").exists()


@pytest.mark.parametrize(
    "command",
    [
        ("ledger", "show"),
        ("ledger", "verify"),
        ("ledger", "create"),
        ("ledger", "export", "-o", "x.json"),
        ("ledger", "cap", "farm", "1"),
        ("ledger", "reference", "farm", "--alpha", "30"),
        ("plan", "--no-browser"),
        ("wind", "release", "x.csv", "-o", "out"),
        ("grid", "release", "x.m", "-o", "out"),
    ],
)
def test_a_password_on_the_command_line_is_refused(command):
    address = f"postgresql://ana:{SECRET}@127.0.0.1:1/gridveil"
    shown = run(*command, "--ledger", address)
    assert shown.exit_code == 2, shown.output
    assert "A password on the command line" in " ".join(shown.output.split())
    assert SECRET not in shown.output


def test_a_password_among_the_arguments_of_a_copy_is_refused(tmp_path):
    address = f"postgresql://ana:{SECRET}@127.0.0.1:1/gridveil"
    charge(Ledger(tmp_path / "a.sqlite"))
    for pair in ((address, tmp_path / "b"), (tmp_path / "a.sqlite", address)):
        shown = run("ledger", "copy", *pair)
        assert shown.exit_code == 2
        assert "command line" in shown.output
        assert SECRET not in shown.output


def test_the_plan_page_shows_what_is_left_for_the_team(backend, place):
    ledger = Ledger(place)
    ledger.set_cap("north farm", 5, alpha="15%")
    planner = planner_of(lambda: [Wind()], backend.analyst(place))
    try:
        told = planner.answer(asked())
        start = planner.start()
    finally:
        planner.close()
    assert "of its cap 5" in told["budget"]["text"]
    assert no_password(backend.analyst(place)) in told["command"]
    assert backend.server.password not in json.dumps([told, start], default=str)


# -- who spent what --------------------------------------------------------------------------------


@pytest.fixture
def spent(backend, place):
    ledger, analyst = Ledger(place), Ledger(backend.analyst(place))
    ledger.set_cap("farm", 10, alpha={"power": "0.1"})
    for one, epsilon in ((ledger, 1), (analyst, 2), (analyst, "0.5")):
        charge(one, epsilon)
    make_release(analyst)
    return no_password(place)


def rows(by, place, *more):
    shown = run("ledger", "show", *more, "--by", by, "--ledger", place, "--json")
    assert shown.exit_code == 0, shown.output
    return json.loads(shown.stdout)["rows"]


def test_who_spent_how_much(spent):
    found = {(row["group"], row["dataset"]): row for row in rows("user", spent)}
    assert found["ana", "farm"]["charged"] == "5/2"
    assert found["ana", "farm"]["charges"] == 2
    assert found[databases.OWNER, "farm"]["charged"] == "1"
    assert {row["left"] for row in found.values() if row["dataset"] == "farm"} == {"13/2"}
    shown = run("ledger", "show", "--by", "user", "--ledger", spent)
    assert "ana" in shown.stdout


def test_what_was_spent_by_dataset_and_month(spent):
    (farm,) = rows("dataset", spent, "farm")
    assert (farm["charged"], farm["cap"], farm["left"]) == ("7/2", "10", "13/2")
    (month,) = rows("month", spent, "farm")
    assert re.fullmatch(r"\d{4}-\d{2}", month["group"])
    assert (month["charged"], month["spent"]) == ("7/2", "7/2")
    shown = run("ledger", "show", "--by", "month", "--ledger", spent)
    assert "█" in shown.stdout
    assert "░" in shown.stdout


def test_a_chart_is_drawn(spent, tmp_path):
    for name, starts in (("spent.svg", b"<?xml"), ("spent.png", b"\x89PNG")):
        shown = run("ledger", "show", "--chart", tmp_path / name, "--ledger", spent)
        assert shown.exit_code == 0, shown.output
        assert (tmp_path / name).read_bytes().startswith(starts)
    assert run("ledger", "show", "--chart", tmp_path / "x.txt", "--ledger", spent).exit_code == 2


def test_a_file_does_not_know_its_users(tmp_path):
    ledger = Ledger(tmp_path / "ledger.sqlite")
    charge(ledger, 1)
    (row,) = rows("user", ledger.path)
    assert (row["group"], row["charged"], row["cap"]) == ("not known", "1", None)
    shown = run("ledger", "show", "--by", "user", "--ledger", ledger.path)
    assert "does not know who" in shown.stdout


# -- moves, exports, backups -----------------------------------------------------------------------


def test_a_ledger_is_moved_and_exported_by_commands(backend, records, tmp_path):
    file, team = tmp_path / "ledger.sqlite", no_password(backend.empty())
    assert release(records, tmp_path / "out", "--ledger", file).exit_code == 0
    shown = run("ledger", "copy", file, team, "--analysts", databases.TEAM)
    assert shown.exit_code == 0, shown.output
    assert "is closed" in shown.stdout
    closed = release(records, tmp_path / "again", "--ledger", file)
    assert closed.exit_code == 2
    assert "is kept in postgresql://" in " ".join(closed.output.split())
    assert not (tmp_path / "again").exists()
    assert run("ledger", "verify", "--ledger", team, "--bundle", tmp_path / "out").exit_code == 0
    exported = tmp_path / "export.json"
    for _ in range(2):  # an older export may be replaced
        assert run("ledger", "export", "-o", exported, "--ledger", team).exit_code == 0
    verify = ("ledger", "verify", "--export", exported, "--bundle", tmp_path / "out")
    assert run(*verify).exit_code == 0
    exported.write_text(exported.read_text().replace('"epsilon": "1"', '"epsilon": "1/9"', 1))
    broken = run(*verify)
    assert broken.exit_code == 1
    assert "was changed after it was written" in broken.stdout


def commands(heading):
    """The commands of a section of the administrator's page."""
    section = PAGE.read_text().split(f"## {heading}\n")[1].split("\n## ")[0]
    blocks = re.findall(r"```bash\n(.*?)```", section, re.DOTALL)
    return [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]


def test_the_administrators_page_works_as_it_is_written(backend, records, tmp_path, monkeypatch):
    """Its commands, on the server of the tests and under names of their own."""
    server = backend.server
    names = {"gridveil_owner": "doc_owner", "gridveil_analysts": "doc_team", "ana": "doc_ana"}
    host = str(server.folder).replace("/", "%2F")
    monkeypatch.chdir(tmp_path)
    environment = {
        **os.environ,
        "PATH": f"{databases.programs()}:{os.environ['PATH']}",
        "PGHOST": str(server.folder),
        "PGUSER": databases.ADMIN,
    }

    def follow(line):
        for name, other in names.items():
            line = re.sub(rf"\b{name}\b", other, line)
        line = line.replace("db.example", host).replace("/gridveil", "/doc_ledger")
        line = re.sub(r"(gridveil|--dbname gridveil)(?= gridveil.dump|$)", "doc_ledger", line)
        if "\\password" in line:
            for role in ("doc_owner", "doc_ana"):
                server.sql("postgres", f"ALTER ROLE {role} PASSWORD '{server.password}'")
        elif line.startswith("sudo -u postgres "):
            words = shlex.split(line.removeprefix("sudo -u postgres "))
            if "pg_restore" in words:
                words[-2:-1] = ["--dbname", "doc_ledger"]
            done = subprocess.run(words, env=environment, capture_output=True, check=False)
            assert done.returncode == 0, (words, done.stderr)
        elif line.startswith("export "):
            monkeypatch.setenv(*line.removeprefix("export ").split("=", 1))
        else:
            shown = run(*shlex.split(line)[1:])
            assert shown.exit_code == 0, (line, shown.output)

    setup = commands("Set-up in five commands")
    assert sum(line.startswith(("sudo", "gridveil ledger create")) for line in setup) == 5
    try:
        csv.write_csv(
            demo_records(200).rename_columns(["wind_speed", "power_kw"]), tmp_path / "scada.csv"
        )
        dump, restore, verify = commands("Backup and restore")
        for line in setup[:-1]:
            follow(line)
        follow(dump)
        follow(setup[-1])  # a release after the backup
        follow(verify.split(" --bundle other")[0])
        follow(restore)
        lost = run("ledger", "verify", "--bundle", "out")
        assert lost.exit_code == 1
        assert "an older copy was put back" in " ".join(lost.output.split())
    finally:
        server.sql("postgres", "DROP DATABASE IF EXISTS doc_ledger")
        for role in ("doc_ana", "doc_team", "doc_owner"):
            server.sql("postgres", f"DROP ROLE IF EXISTS {role}")
