"""Studies that are stopped, killed, failing, or done by others: the same table in the end."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from studies import toy
from studies.toy import Toy
from support.processes import hear_interrupts
from support.sizes import FULL

from gridveil.errors import GridveilError, InputError
from gridveil.studies import Plan, run_study
from gridveil.studies.results_folder import RESULTS_FILE, Store

RUNS = 30 if FULL else 12
TESTS = Path(toy.__file__).parents[1]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The results of an uninterrupted study, and its folder."""
    folder = tmp_path_factory.mktemp("whole") / "study"
    return run_study(Plan(Toy(), RUNS), folder, workers=1)


def start(folder, log, halt, workers=2):
    """A process that waits to be stopped once so many runs are done."""
    source = os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", ""), *sys.path])
    own = {"PYTHONPATH": source, "TOY_LOG": str(log), "TOY_PAUSE": "0.05", "TOY_HALT": str(halt)}
    return subprocess.Popen(
        [sys.executable, "-m", "studies.toy", str(folder), str(RUNS), str(workers)],
        env=os.environ | own,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=hear_interrupts,
    )


def follow(process, until):
    """Read its progress until so many runs are done; how many were."""
    done = 0
    for line in process.stdout:
        done = int(line.split()[0])
        if done >= until:
            break
    return done


def on_disk(folder):
    with Store(folder, Plan(Toy(), RUNS)) as store:
        return {run.seed for run in Plan(Toy(), RUNS).all_runs() if run.key in store.done}


def started(log):
    return [int(line.split()[-1]) for line in log.read_text().splitlines()] if log.exists() else []


def test_a_whole_study(whole):
    assert len(whole.table) == 4 * RUNS
    assert whole.table.groupby("cell").run.apply(list).map(lambda r: r == list(range(RUNS))).all()
    names = {path.name for path in whole.folder.iterdir() if path.is_file()}
    assert names == {"study.json", "results.parquet", "figure.png", "figure.svg", "summary.md"}
    assert "not a release" in whole.summary
    assert (whole.folder / "summary.md").read_text() == whole.summary


def test_killed_at_random_points_it_gives_the_same_table_and_repeats_nothing(whole, tmp_path):
    rng = np.random.default_rng(1)
    folder = tmp_path / "study"
    total = 4 * RUNS
    kills = 0
    kept: set[int] = set()
    for session in range(1000):
        log = tmp_path / f"log-{session}"
        step = total // (20 if FULL else 4)
        wanted = len(kept) + int(rng.integers(1, 2 * step))
        process = start(folder, log, halt=wanted + 3)
        reached = follow(process, wanted)
        if reached < total:
            os.kill(process.pid, signal.SIGKILL)
            kills += 1
        process.communicate()
        assert not kept & set(started(log))  # what was on disk is not done again
        if reached == total:
            break
        now = on_disk(folder)
        assert kept < now  # and something of this session was kept
        kept = now
    assert process.returncode == 0
    assert kills >= (10 if FULL else 2)
    for name in (RESULTS_FILE, "figure.svg", "summary.md"):
        assert (folder / name).read_bytes() == (whole.folder / name).read_bytes(), name


def test_an_interrupt_keeps_everything_that_was_done(whole, tmp_path):
    folder = tmp_path / "study"
    process = start(folder, tmp_path / "log", halt=24)
    follow(process, 20)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all processes
    told = process.stdout.read()  # with the lines that were read ahead of the 20th
    _, problems = process.communicate()
    done = int(told.split()[-2]) if told.strip() else 20
    assert process.returncode != 0
    assert "KeyboardInterrupt" in problems
    assert "SpawnProcess" not in problems  # its workers say nothing
    kept = on_disk(folder)
    assert done <= len(kept) <= done + 1  # the interrupt may come before a result is told of
    again = run_study(Plan(Toy(), RUNS), folder, workers=2)
    assert again.table.equals(whole.table)


def test_a_finished_study_does_nothing_but_draw(whole, tmp_path, monkeypatch):
    (whole.folder / "figure.png").unlink()
    monkeypatch.setenv("TOY_LOG", str(tmp_path / "log"))
    again = run_study(Plan(Toy(), RUNS), whole.folder, workers=2)
    assert again.table.equals(whole.table)
    assert started(tmp_path / "log") == []
    assert (whole.folder / "figure.png").exists()


def test_more_runs_are_added_to_those_there_are(whole, tmp_path, monkeypatch):
    run_study(Plan(Toy(), 10), tmp_path / "study", workers=1)
    monkeypatch.setenv("TOY_LOG", str(tmp_path / "log"))
    run_study(Plan(Toy(), RUNS), tmp_path / "study", workers=2)
    assert len(started(tmp_path / "log")) == 4 * (RUNS - 10)
    written = (tmp_path / "study" / RESULTS_FILE).read_bytes()
    assert written == (whole.folder / RESULTS_FILE).read_bytes()


@pytest.mark.parametrize(
    ("method", "words"),
    [("fail", "ValueError: no such method"), ("die", "worker process died")],
)
def test_a_run_that_fails_stops_the_study_and_keeps_the_rest(tmp_path, method, words):
    plan = Plan(Toy(methods=("this", method)), 3)
    with pytest.raises(GridveilError, match=words):
        run_study(plan, tmp_path / "study", workers=1)
    with Store(tmp_path / "study", plan) as store:
        assert store.done == {(0, 0), (1, 0)}


def test_no_workers_are_refused(tmp_path):
    with pytest.raises(InputError, match="1 worker or more"):
        run_study(Plan(Toy(), 1), tmp_path / "study", workers=0)


def test_a_cluster_that_is_not_there(tmp_path):
    pytest.importorskip("distributed")
    with pytest.raises(InputError, match="There is no Dask scheduler"):
        run_study(Plan(Toy(), 1), tmp_path / "study", cluster="nowhere://x")
    # Nothing else that uses Dask is sent to the scheduler that was not there.
    from dask.delayed import delayed

    assert delayed(sum)([1, 2]).compute() == 3


@pytest.mark.filterwarnings("ignore")
def test_a_dask_cluster_gives_the_same_table(whole, tmp_path):
    distributed = pytest.importorskip("distributed")
    cluster = distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=True, dashboard_address=":0"
    )
    with cluster:
        found = run_study(Plan(Toy(), RUNS), tmp_path / "study", cluster=cluster.scheduler_address)
    assert found.table.equals(whole.table)
