"""Every reader on damaged, odd and hostile files: an error of ours or a sound result, in time.

Hypothesis chooses the mutations here, and shrinks what it finds; `make faults` tries 100,000
inputs a reader with the same ones.
"""

import gzip
import itertools
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from faults import run as campaign
from fuzz import bundles, grids, ledgers, winds
from fuzz.atheris_run import SKIPPED
from fuzz.harness import Count, Hang, run, time_limit, try_one
from fuzz.mutations import VALUES, mutate_tree, random_choices
from fuzz.targets import TARGETS, Target
from fuzz.verdicts import WrongSuccess, wrong_unless
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.sizes import FULL

from gridveil.errors import GridveilError

HERE = settings(
    max_examples=2000 if FULL else 40,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.mark.parametrize("name", TARGETS)
@HERE
@given(data=st.data())
def test_any_file_is_read_soundly_or_refused(name, data, tmp_path):
    target = TARGETS[name]
    made = target.make(lambda n: data.draw(st.integers(0, n - 1)))
    with time_limit():
        target.check(made, tmp_path)


@pytest.mark.parametrize("name", TARGETS)
@HERE
@given(data=st.binary(max_size=200))
def test_any_bytes_are_refused_or_read(name, data, tmp_path):
    with time_limit():
        TARGETS[name].check(data, tmp_path)


@pytest.mark.parametrize("name", TARGETS)
def test_a_run_of_random_mutations(name):
    count = run(TARGETS[name], 20_000 if FULL else 100, first_seed=10**9)
    assert count.clean, count.found
    assert count.taken < count.inputs
    assert count.taken or name == "bundle, verify"  # no damage to a bundle is harmless


# -- files made to take long, or to take all the memory --------------------------------------------

LARGE = {
    "wind records, CSV": [
        b"\0" + b"a" * 3_000_000,
        b"\0" + b"ws,kw," + b"x," * 100_000 + b"y\n1,2\n",
        b"\0ws,kw\n" + b'"' * 1_000_001,
        b"\0ws,kw\n" + b"1,2\n" * 200_000 + b"1\n",
        b"\0ws,kw\n" + b'"' + b"\n" * 1_000_000,
        b"\0ws,kw\n" + b"9" * 1_000_000 + b",1\n",
        b"\3ws,kw,t,note\n" + b"1,2,3," + b"=" * 1_000_000 + b"\n",
    ],
    "network, MATPOWER": [
        b"%{\n" * 100_000,
        b"mpc.bus = " + b"[" * 500_000,
        b"'" * 500_001,
        b"mpc.a=1;\n" * 50_000,
        b"mpc." + b"a." * 200_000,
        grids.CASE.replace(b"mpc.bus = [\n", b"mpc.bus = [\n" + b"1 " * 200_000 + b"\n"),
        grids.CASE.replace(
            b"mpc.bus = [\n",
            b"mpc.bus = [\n" + b"7 1 0 0 0 0 1 1 0 1 1 1 1\n" * 5000,
        ),
        grids.CASE.replace(b"'one'", b"'" + b"x" * 500_000 + b"'"),
    ],
    "bundle, verify": [
        b"\0" + b"[" * 1_000_000,
        b"\0" + b'{"a":' * 200_000,
        b"\0" + b"9" * 1_000_000,
        b"\0" + b" " * 9_000_000,
        b"\0"
        + json.dumps(
            {**json.loads(bundles.BUNDLE["release.json"]), "files": [{}] * 20_000}
        ).encode(),
        b"\0" + bundles.BUNDLE["release.json"].replace(b'"1"', b'"' + b"9" * 190 + b'"'),
    ],
    "ledger, SQLite": [
        b"\1" + json.dumps(["charge", {"charged": "1e999999999", "adjacency": {}}]).encode(),
        b"\1" + json.dumps(["charge", {"charged": "9" * 100_000, "adjacency": {}}]).encode(),
        b"\1" + json.dumps(["cap", {"cap": "1/0"}]).encode(),
        b"\1" + json.dumps(["charge", {"charged": "-1"}]).encode(),
        b"\0" + ledgers.LEDGER + b"\0" * 1_000_000,
    ],
}


@pytest.mark.parametrize(
    ("name", "number"), [(name, i) for name, found in LARGE.items() for i in range(len(found))]
)
def test_large_and_deep_files_have_an_answer_in_time(name, number, tmp_path):
    count = Count(name)
    with time_limit():
        try_one(TARGETS[name], LARGE[name][number], tmp_path, count, f"file {number}")
    assert count.clean, count.found


def test_a_small_file_that_unpacks_to_a_large_one_has_an_answer_in_time(tmp_path):
    path = tmp_path / "bomb.csv.gz"
    path.write_bytes(gzip.compress(b"ws,kw\n" + b"1,1\n" * 2_000_000, 1))
    with time_limit():
        assert winds.read_records(path, **winds.NAMED).rows == 2_000_000
    path.write_bytes(gzip.compress(b"\0" * 30_000_000, 1))
    with time_limit(), pytest.raises(GridveilError):
        winds.read_records(path, **winds.NAMED)


# -- the harness itself ----------------------------------------------------------------------------


def test_mutations_leave_their_own_values_alone():
    before = json.dumps(VALUES)
    for seed in range(2000):
        choose, tree = random_choices(seed), {"a": [1, {"b": 2}], "c": {"d": []}}
        for _ in range(6):
            mutate_tree(tree, choose)
        json.dumps(tree)  # raises where something holds itself
    assert json.dumps(VALUES) == before


@pytest.mark.parametrize(("code", "counted"), [(0, [0]), (77, [1]), (70, [1]), (SKIPPED, [])])
def test_what_atheris_finds_is_not_taken_for_its_absence(monkeypatch, code, counted):
    ended = subprocess.CompletedProcess([], code, stdout="", stderr="")
    monkeypatch.setattr("faults.run.subprocess.run", lambda *_, **__: ended)
    assert [one["wrong"] for one in campaign._atheris(["ledger, SQLite"], 5)] == counted


def broken(how: str) -> Target:
    def check(data: bytes, folder: Path) -> bool:
        if data[0] == 3:
            if how == "raises":
                raise KeyError("x")
            if how == "waits":
                time.sleep(60)
            while how == "computes":
                pass
            if how == "dies":
                os.kill(os.getpid(), signal.SIGKILL)
            wrong_unless(how != "lies", "it lies")
        return True

    return Target(how, lambda choose: bytes([choose(5)]), check)


@pytest.mark.parametrize(
    ("how", "counter"),
    [
        ("raises", "tracebacks"),
        ("lies", "wrong"),
        ("dies", "crashes"),
        ("waits", "hangs"),
        ("computes", "hangs"),
    ],
)
def test_the_harness_counts_what_it_is_for(monkeypatch, how, counter):
    # The others end by themselves, however slow the machine is.
    if how == "waits":
        monkeypatch.setattr("fuzz.harness.ASLEEP", 0.3)
    if how == "computes":
        monkeypatch.setattr("fuzz.harness.PATIENCE", 0.1)
    inputs = 6
    count = run(broken(how), inputs)
    assert count.inputs == inputs
    assert getattr(count, counter) > 0
    assert not count.clean


def test_the_time_limit_ends_what_hangs():
    with pytest.raises(Hang), time_limit(asleep=0.05):
        time.sleep(60)
    with pytest.raises(Hang), time_limit(0.05):
        for _ in itertools.count():
            pass


def test_the_checks_find_a_reader_that_takes_what_it_should_not(tmp_path, monkeypatch):
    monkeypatch.setattr("gridveil.release.verification._statement", lambda *_: _fine())
    changed = bundles.BUNDLE["release.json"].replace(b"Ten made-up", b"Two made-up")
    with pytest.raises(WrongSuccess, match="a changed bundle passes"):
        bundles.check_bundle(b"\0" + changed, tmp_path)


def _fine():
    from gridveil.release.verification import Finding

    return Finding("statement", True, "fine")
