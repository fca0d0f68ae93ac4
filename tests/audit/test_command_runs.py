"""What an audit sees of a command: a made-up one leaks in every way there is, and each is found."""

import json
import os
import shutil
import sqlite3
import sys
import warnings
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Annotated

import pytest
import typer
from support.making import make_account

from gridveil.auditing.checks import Sizes
from gridveil.auditing.command_runs import Command, ledger_rows, listened, run_command
from gridveil.auditing.file_replays import Twins, installed, replays
from gridveil.auditing.transcript import Recorder
from gridveil.auditing.transcript_audits import Replay
from gridveil.auditing.verdicts import NotRun
from gridveil.auditing.wind_files import POWER, command, csv_text
from gridveil.privacy.ledger import Ledger
from gridveil.privacy.noise import SecureNoise

LEAKS = {
    "stdout": lambda value, **_: typer.echo(value),
    "stderr": lambda value, **_: typer.echo(value, err=True),
    "stdout past Python": lambda value, **_: os.write(1, value.encode()),
    "warnings": lambda value, **_: warnings.warn(value, RuntimeWarning, stacklevel=1),
    "exit code": lambda value, **_: sys.exit(int(value)),
    "files left": lambda value, file, **_: (file.parent / value).touch(),
    "ledger": lambda value, ledger, **_: make_account(Ledger(ledger), epsilon=value),
    "nothing": lambda value, **_: typer.echo("Released."),
}


def app_that(leaks):
    app = typer.Typer()

    @app.command()
    def release(
        file: Path,
        output: Annotated[Path, typer.Option()],
        ledger: Annotated[Path, typer.Option()],
        dataset: Annotated[str, typer.Option()],
        yes: Annotated[bool, typer.Option("--yes")] = False,
    ) -> None:
        assert dataset
        assert yes  # nobody can be asked
        assert not output.exists()
        leaks(file.read_text(), file=file, ledger=ledger)

    return app


@pytest.mark.parametrize("leak", LEAKS)
def test_whatever_a_command_lets_out_is_seen(leak):
    app = app_that(LEAKS[leak])
    runs = [
        lambda noise, value=value: Command((), ()).release(
            "x.txt", partial(Path.write_text, data=value), noise, app
        )
        for value in ("3", "4")
    ]
    found = Replay("leak", runs, Sizes(2, 2), ["three", "four"]).run(fast=True, error=1e-6)
    part = leak.removesuffix(" past Python")
    assert found.broken == (leak != "nothing"), found.finding
    if found.broken:
        assert f"other bytes in {part} (2)" in found.finding
        assert found.finding.endswith("; first: three, then four")


def test_a_bundle_is_seen_and_so_is_the_ledger():
    write = partial(_write, csv_text(POWER["halves"]))
    parts = command("laplace", "--capacity", "1000").release("r.csv", write, Recorder())
    assert parts["exit code"] == b"0"
    assert {"bundle/records.csv", "bundle/release.json", "bundle/report.html"} <= parts.keys()
    assert [name for name, *_ in json.loads(parts["ledger"])] == ["entries", "ledger"]
    assert b"salt" not in parts["ledger"]
    assert b'"alpha": "1/10"' in parts["ledger"]


def _write(data, path):
    path.write_bytes(data)


def test_two_runs_on_the_same_file_are_the_same_but_for_their_noise():
    write = partial(_write, csv_text(POWER["halves"]))
    release = command("laplace", "--capacity", "1000").release
    one, other = (release("r.csv", write, SecureNoise()) for _ in range(2))
    different = {name for name in one if one[name] != other[name]}
    assert different == {"bundle/answers.parquet", "bundle/records.csv", "bundle/report.html"}


def test_every_table_of_a_ledger_is_seen(tmp_path):
    ledger = Ledger(tmp_path / "one.sqlite")
    make_account(ledger, epsilon=3)
    shutil.copy(ledger.path, tmp_path / "other.sqlite")
    assert ledger_rows(tmp_path / "one.sqlite") == ledger_rows(tmp_path / "other.sqlite")
    with closing(sqlite3.connect(tmp_path / "other.sqlite")) as connection, connection:
        connection.execute("CREATE TABLE more (power TEXT)")
        connection.execute("INSERT INTO more VALUES ('100.5')")
    assert b"100.5" in ledger_rows(tmp_path / "other.sqlite")


def test_an_interrupt_ends_the_audit_too():
    with pytest.raises(KeyboardInterrupt):
        run_command([], SecureNoise(), lambda *_, **__: sys.exit(130))


def test_the_screen_is_given_back(capfd, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    with listened() as heard:
        print("inside")
        assert "FORCE_COLOR" not in os.environ
    print("outside")
    assert os.environ["FORCE_COLOR"] == "1"
    assert heard["stdout"] == b"inside\n"
    assert capfd.readouterr().out == "outside\n"


def test_an_audit_without_its_package_is_not_run_and_has_not_passed():
    found = installed("x", "no_such_package", lambda: pytest.fail("it ran"))
    assert isinstance(found, NotRun)
    verdict = found.run(fast=True, error=1e-6)
    assert not verdict.ran
    assert verdict.samples == 0
    assert verdict.words == "not run: no_such_package is not installed"
    assert verdict.to_json()["ran"] is False


def test_every_twin_is_replayed():
    seen = []
    writers = {name: partial(_write, b"") for name in "abcd"}
    twins = Twins("x", Command((), ()), writers)
    assert list(twins.runs()) == list("abcd")
    runs = {name: lambda noise, name=name: seen.append(name) or {} for name in "abcd"}
    assert not replays("x", runs).run(fast=True, error=1e-6).broken
    assert seen == list("abcd")
    seen.clear()
    replays("x", runs).run(fast=False, error=1e-6)
    assert "".join(seen) == "abcdbcdacdab"
