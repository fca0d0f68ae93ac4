"""Every real audit in its fast setting, the command, and noise after a fork.

A run of these tests calls correct code broken with probability 1e-4 at most: half of it is for all
audits, and half for the one that the command runs.
"""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from support.sizes import FULL
from typer.testing import CliRunner

from gridveil.auditing import runner
from gridveil.auditing.attacks import values
from gridveil.auditing.catalogue import AUDITS, FULL_ONLY, matching
from gridveil.auditing.checks import Frequency, Pair, Sizes
from gridveil.auditing.mechanisms import ALPHA, _adjacency, _one, _sealed
from gridveil.auditing.runner import FALSE_ALARM
from gridveil.auditing.scratch_ledgers import account_with
from gridveil.auditing.verdicts import NotRun
from gridveil.cli.commands import app
from gridveil.errors import InputError
from gridveil.privacy.mechanisms import laplace
from gridveil.privacy.noise import SecureNoise


@pytest.mark.parametrize("name", AUDITS if FULL else matching(None, fast=True))
def test_every_claim_is_consistent(name):
    found = AUDITS[name]()
    assert found.name == name
    verdict = found.run(fast=not FULL, error=FALSE_ALARM / 2 / len(AUDITS))
    if not verdict.ran:
        pytest.skip(verdict.words)
    assert not verdict.broken, f"{verdict.words} ({verdict.finding})"


def test_copies_have_the_noise_of_one():
    scales = set()
    for copies in (1, 1000):
        account = account_with(SecureNoise(), _adjacency())
        data = _sealed(np.full(copies, 20.0))
        record = laplace(account, data, name="q", sensitivity=_one(), epsilon=2).record
        scales.add(record.calibration.scale_in_units)
    assert len(scales) == 1
    assert scales.pop() == pytest.approx(float(ALPHA) / 2, rel=1e-2)


def test_noise_after_a_fork_is_not_the_same_twice():
    # In a process of its own: forking one that has threads is asking for trouble.
    code = """
import os
import numpy as np
from gridveil.privacy.noise import SecureNoise
noise, zeros = SecureNoise(), np.zeros(20, np.int64)
noise.laplace(zeros, 1e6)
read, write = os.pipe()
if os.fork() == 0:
    os.write(write, noise.laplace(zeros, 1e6).tobytes())
    os._exit(0)
here = noise.laplace(zeros, 1e6)
os.wait()
there = np.frombuffer(os.read(read, 4096), np.int64)
print(len(there), int((here == there).sum()))
"""
    if not hasattr(os, "fork"):
        pytest.skip("this system can't fork")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout == "20 0\n"


# -- the command -----------------------------------------------------------------------------------


def run(*arguments):
    return CliRunner().invoke(app, ["audit", *map(str, arguments)])


def test_the_command_shows_a_table_and_writes_json(tmp_path):
    path = tmp_path / "audit.json"
    result = run("--fast", "--only", "laplace-s", "--json", path)
    assert result.exit_code == 0, result.output
    assert "laplace-support" in result.stdout
    assert "Every claim is consistent" in result.stdout
    body = json.loads(path.read_text())
    assert body["setting"] == "fast"
    assert body["broken"] == 0
    assert [one["name"] for one in body["verdicts"]] == ["laplace-scalar", "laplace-support"]
    assert body["verdicts"][0]["words"].endswith("consistent")


def test_a_broken_claim_is_exit_code_1(monkeypatch, tmp_path):
    def zeros(n):
        return np.zeros(n)

    def ones(n):
        return np.ones(n)

    pair = Pair("nothing hidden", zeros, ones)
    found = Frequency("bad", 1, [pair], [values()], Sizes(200, 200))
    monkeypatch.setitem(AUDITS, "bad", lambda: found)
    result = run("--only", "bad")
    assert result.exit_code == 1
    assert "BROKEN bad: claimed 1; proved at least" in result.stdout
    quiet = run("--only", "bad", "--quiet")
    assert quiet.exit_code == 1
    assert quiet.stdout.startswith("BROKEN")


def test_what_is_not_run_is_neither_broken_nor_consistent(monkeypatch, tmp_path):
    left_out = NotRun("left-out", "replay", "a package is not installed")
    monkeypatch.setitem(AUDITS, "left-out", lambda: left_out)
    path = tmp_path / "audit.json"
    result = run("--only", "left-out", "--json", path)
    assert result.exit_code == 0
    assert "Audits: 0." in result.stdout
    assert "not run left-out: a package is not installed" in result.stdout
    assert "Every claim that was checked is consistent" in result.stdout
    body = json.loads(path.read_text())
    assert body["not_run"] == 1
    assert body["verdicts"][0]["ran"] is False


def test_bad_input_is_named_before_any_work(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "run_audits", lambda *_, **__: pytest.fail("it ran"))
    assert run("--only", "nothing").exit_code == 2
    assert run("--json", tmp_path / "nowhere" / "x.json").exit_code == 2
    with pytest.raises(InputError, match="There is no audit 'nothing'"):
        matching("nothing")


def test_names_choose_by_how_they_begin():
    assert list(matching("laplace-v")) == ["laplace-vector"]
    assert set(matching("wind")) == {name for name in AUDITS if name.startswith("wind-")}
    assert matching(None) == AUDITS
    assert matching(None, fast=True).keys() == AUDITS.keys() - FULL_ONLY
    assert AUDITS.keys() >= FULL_ONLY


@pytest.mark.filterwarnings("error:Unusual")
@pytest.mark.parametrize(
    "name", [name for name in AUDITS if name.startswith("wind-") and name.endswith("-ratio")]
)
def test_audits_of_records_warn_of_nothing(name):
    """Their made-up data is as usual as can be: a screen of warnings would hide one that counts."""
    AUDITS[name]().run(fast=True, error=FALSE_ALARM)
