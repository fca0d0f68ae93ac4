"""The folder of a study: whole files, nothing twice, and no mixing of settings."""

import json

import pyarrow.parquet as pq
import pytest
from studies.toy import Toy

from gridveil import studies
from gridveil.errors import GridveilError, InputError
from gridveil.studies import Plan
from gridveil.studies.results_folder import RESULTS_FILE, Store


def fill(folder, plan, runs):
    """Add results that are written together at the end, however slow the disk is."""
    with Store(folder, plan) as store:
        store._pause = float("inf")
        for run in runs:
            store.add(run, {"value": run.seed / 2**64, "several": [1.0, float(run.number)]})


@pytest.fixture
def plan():
    return Plan(Toy(), 5)


def finish(folder, plan):
    with Store(folder, plan) as store:
        return store.finish()


def test_the_table_is_the_same_whatever_order_results_came_in(tmp_path, plan):
    runs = plan.all_runs()
    fill(tmp_path / "one", plan, runs)
    fill(tmp_path / "other", plan, runs[7:])
    fill(tmp_path / "other", plan, reversed(runs[:7]))
    tables = [finish(tmp_path / name, plan) for name in ("one", "other")]
    assert tables[0].num_rows == 20
    assert [(r["cell"], r["run"]) for r in tables[0].to_pylist()] == sorted(r.key for r in runs)
    assert tables[0].equals(tables[1])
    written = [(tmp_path / name / RESULTS_FILE).read_bytes() for name in ("one", "other")]
    assert written[0] == written[1]


def test_the_settings_are_in_the_table(tmp_path, plan):
    fill(tmp_path, plan, plan.all_runs())
    header = json.loads(finish(tmp_path, plan).schema.metadata[b"gridveil"])
    assert header == plan.header()
    assert header["settings"]["scale"] == 1.0
    assert "not a release" in header["note"]


def test_results_are_on_disk_at_once_when_they_come_slowly(tmp_path, plan, monkeypatch):
    monkeypatch.setattr(studies.results_folder, "_LONGEST_WAIT", 0.0)
    monkeypatch.setattr(studies.results_folder, "_SHARE", float("inf"))
    with Store(tmp_path, plan) as store:
        store._pause = 0.0
        for count, run in enumerate(plan.all_runs()[:4], 1):
            store.add(run, {"value": 1.0, "several": []})
            assert len(list((tmp_path / "parts").glob("*.parquet"))) == count
        assert list((tmp_path / "parts").glob("*.partial")) == []


def test_many_small_files_are_joined_and_nothing_is_lost(tmp_path, plan, monkeypatch):
    monkeypatch.setattr(studies.results_folder, "_MANY", 4)
    with Store(tmp_path, plan) as store:
        for run in plan.all_runs():
            store.add(run, {"value": 1.0, "several": []})
            store.flush()
        assert len(list((tmp_path / "parts").glob("*.parquet"))) == 5
    with Store(tmp_path, plan) as store:
        assert store.done == {run.key for run in plan.all_runs()}
        assert store.finish().num_rows == 20


def test_doubles_after_a_crash_while_joining_count_once(tmp_path, plan):
    runs = plan.all_runs()
    fill(tmp_path, plan, runs[:3])
    (part,) = (tmp_path / "parts").glob("*.parquet")
    (tmp_path / "parts" / "000009.parquet").write_bytes(part.read_bytes())
    (tmp_path / "parts" / "000010.parquet.partial").write_bytes(b"half")
    fill(tmp_path, plan, runs[3:])
    assert finish(tmp_path, plan).num_rows == 20
    assert list((tmp_path / "parts").iterdir()) == []


def test_more_runs_continue_and_fewer_are_refused(tmp_path, plan):
    fill(tmp_path, plan, plan.all_runs())
    finish(tmp_path, plan)
    more = Plan(Toy(), 7)
    with Store(tmp_path, more) as store:
        assert store.done == {run.key for run in plan.all_runs()}
    with pytest.raises(InputError, match="5 runs a cell, more than the 4"):
        finish(tmp_path, Plan(Toy(), 4))


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (Plan(Toy(scale=2.0), 5), "settings scale was 1.0 and is 2.0"),
        (Plan(Toy(), 5, seed=1), "seed was 0 and is 1"),
        (Plan(Toy(alphas=(0.1,)), 5), "settings alphas was"),
    ],
)
def test_other_settings_are_refused_and_change_nothing(tmp_path, plan, other, words):
    fill(tmp_path, plan, plan.all_runs()[:3])
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(InputError, match=words), Store(tmp_path, other):
        pass
    assert before == {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}


def test_results_of_another_version_are_refused(tmp_path, plan, monkeypatch):
    fill(tmp_path, plan, plan.all_runs()[:3])
    monkeypatch.setattr(studies.study_plan, "__version__", "99")
    with pytest.raises(InputError, match="versions gridveil was"), Store(tmp_path, plan):
        pass


def test_two_at_once_are_refused(tmp_path, plan):
    with (
        Store(tmp_path, plan),
        pytest.raises(InputError, match="Another process"),
        Store(tmp_path, plan),
    ):
        pass
    with Store(tmp_path, plan):
        pass


def test_a_folder_of_something_else_is_left_alone(tmp_path, plan):
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(InputError, match="holds no study"), Store(tmp_path, plan):
        pass
    with pytest.raises(InputError, match="is not a folder"), Store(tmp_path / "thesis.tex", plan):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_damaged_file_is_named(tmp_path, plan):
    fill(tmp_path, plan, plan.all_runs()[:3])
    (part,) = (tmp_path / "parts").glob("*.parquet")
    part.write_bytes(part.read_bytes()[:50])
    with pytest.raises(GridveilError, match=f"{part.name} can't be read"), Store(tmp_path, plan):
        pass
    (tmp_path / "study.json").write_text("{")
    with pytest.raises(InputError, match=r"study\.json can't be read"), Store(tmp_path, plan):
        pass


def test_a_study_that_was_killed_at_its_beginning_can_begin_again(tmp_path, plan):
    (tmp_path / "parts").mkdir()
    (tmp_path / "study.json.partial").write_text("{")
    fill(tmp_path, plan, plan.all_runs())
    assert finish(tmp_path, plan).num_rows == 20
    assert pq.read_table(tmp_path / RESULTS_FILE).num_rows == 20
