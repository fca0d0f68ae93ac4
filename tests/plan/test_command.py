"""``gridveil plan`` as a process: it prints its address, answers there, and ends with Ctrl+C."""

import json
import signal
import subprocess
import sys
import urllib.request

import pytest
from plan.making import asked
from support.processes import hear_interrupts
from support.sizes import PATIENCE
from typer.testing import CliRunner

from gridveil.cli.commands import app
from gridveil.wind.demo import CAPACITY, demo_records

RUN = "from gridveil.cli.main import run; run()"


@pytest.fixture
def start(tmp_path):
    begun = []

    def run(*words):
        command = [sys.executable, "-c", RUN, "plan", "--quiet", "--no-browser"]
        command += ["--ledger", str(tmp_path / "ledger.sqlite"), *map(str, words)]
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=None if sys.platform == "win32" else hear_interrupts,
        )
        begun.append(process)
        return process, process.stdout.readline().strip()

    yield run
    for process in begun:
        process.kill()
        process.communicate()


def answer(url, question):
    request = urllib.request.Request(
        f"{url}api/plan",
        json.dumps(question).encode(),
        {"Content-Type": "application/json", "Origin": url[: url.index("/", 8)]},
    )
    with urllib.request.urlopen(request, timeout=PATIENCE) as reply:
        return json.load(reply)


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGINT for another process")
def test_it_answers_and_ends_without_a_trace(start, tmp_path):
    process, url = start()
    told = answer(url, asked())
    assert told["command"].startswith("gridveil wind release")
    process.send_signal(signal.SIGINT)
    _, problems = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert "Traceback" not in problems
    assert list(tmp_path.iterdir()) == []  # no ledger was made


def test_a_public_file_is_its_stand_in(start, tmp_path):
    text = demo_records(120).to_pandas().to_csv(sep=";", decimal=",", index=False)
    (tmp_path / "open.csv").write_text(text, "utf-16")
    written = ("--decimal", ",", "--encoding", "utf-16")
    _, url = start("--public", tmp_path / "open.csv", "--capacity", CAPACITY, *written)
    with urllib.request.urlopen(f"{url}api/start", timeout=PATIENCE) as reply:
        first, second = json.load(reply)["kinds"]
    assert "120 records of open, which you named public" in first["stand_in"]
    assert second["name"] == "grid"


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--decimal", ","], "decimal is about a file that is public"),
        (["--public", "open.csv", "--capacity", "1", "--snapshots", "all"], "is for networks"),
        (["--public", "case.m", "--encoding", "cp1252"], "encoding is for tables of records"),
        (
            ["--public", "case.m", "--max-loading", "80"],
            "max_loading is for networks of pandapower",
        ),
    ],
)
def test_options_of_a_public_file_that_it_has_not_are_refused(words, why):
    done = CliRunner().invoke(app, ["plan", "--no-browser", *words])
    assert done.exit_code != 0
    assert why in str(done.exception) + " ".join(done.output.split())
