"""Bundles: whole or not at all, never over something else, never without their charge."""

import multiprocessing
import os
import random
import signal
import time
from pathlib import Path

import pytest
from support.making import make_release
from support.sizes import FULL

from gridveil.errors import InputError, LedgerError
from gridveil.privacy.ledger import Ledger
from gridveil.privacy.statement import STATEMENT_FILE, Statement
from gridveil.release import bundle
from gridveil.release.bundle import check_target, write_bundle
from gridveil.release.verification import verify_bundle

FORK = multiprocessing.get_context("fork")


@pytest.fixture
def release(ledger):
    return make_release(ledger)


def siblings(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name.startswith("."))


def test_a_bundle_has_data_statement_and_report(release, tmp_path):
    placed = release.write(tmp_path / "new" / "out")
    assert sorted(path.name for path in placed.iterdir()) == [
        "answers.parquet",
        "numbers.csv",
        "release.json",
        "report.html",
    ]
    assert all(finding.ok for finding in verify_bundle(placed))
    assert siblings(placed.parent) == []


def test_the_ledger_notes_the_release(release, ledger, tmp_path):
    assert len(ledger.totals("numbers").unreleased) == 1
    release.write(tmp_path / "out")
    assert ledger.totals("numbers").unreleased == set()


def test_a_ledger_that_fails_at_the_end_does_not_hide_the_bundle(release, tmp_path, monkeypatch):
    def full(*_):
        raise LedgerError("The disk is full.")

    monkeypatch.setattr(Ledger, "record_release", full)
    with pytest.warns(RuntimeWarning, match=r"The bundle was written, but .* disk is full"):
        placed = release.write(tmp_path / "out")
    assert all(finding.ok for finding in verify_bundle(placed))


def test_an_existing_bundle_is_kept_without_force(release, tmp_path):
    placed = release.write(tmp_path / "out")
    before = (placed / STATEMENT_FILE).read_bytes()
    with pytest.raises(InputError, match=r"bundle at .* already"):
        release.write(placed)
    assert (placed / STATEMENT_FILE).read_bytes() == before


def test_force_replaces_a_bundle_whole(release, ledger, tmp_path):
    placed = release.write(tmp_path / "out")
    (placed / "stray.txt").write_text("left over")
    again = make_release(ledger).write(tmp_path / "out", force=True)
    assert again == placed
    assert not (placed / "stray.txt").exists()
    assert siblings(tmp_path) == []


@pytest.mark.parametrize("force", [False, True])
def test_a_folder_that_is_no_bundle_is_never_replaced(tmp_path, force):
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").write_bytes(b"cat")
    with pytest.raises(InputError, match="not empty and is not a bundle"):
        check_target(tmp_path / "photos", force=force)
    assert (tmp_path / "photos" / "cat.jpg").read_bytes() == b"cat"


@pytest.mark.parametrize("force", [False, True])
def test_files_and_links_are_never_replaced(tmp_path, force):
    (tmp_path / "file").write_text("x")
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    for name in ("file", "link"):
        with pytest.raises(InputError, match="a file or a link"):
            check_target(tmp_path / name, force=force)


def test_an_empty_folder_may_be_filled(release, tmp_path):
    (tmp_path / "out").mkdir()
    assert release.write(tmp_path / "out") == tmp_path / "out"


def test_a_place_that_can_not_be_written_is_refused_before_the_charge(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(InputError, match=r"can't be written .* Permission denied"):
        check_target(tmp_path / "out")


def test_a_failure_leaves_nothing_and_the_release_can_be_written_elsewhere(release, tmp_path):
    def full(path):
        path.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    broken = {"a.csv": lambda path: path.write_bytes(b"a"), "b.csv": full}
    with pytest.raises(OSError, match="No space left"):
        write_bundle(tmp_path / "out", broken, release.statement)
    assert not (tmp_path / "out").exists()
    assert siblings(tmp_path) == []
    assert release.write(tmp_path / "elsewhere").exists()


def test_a_name_taken_in_the_meantime_loses_nothing(release, tmp_path):
    def taken(path):
        path.write_bytes(b"x")
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "other").write_text("someone else's")

    placed, _ = write_bundle(tmp_path / "out", {"a.csv": taken}, release.statement)
    assert placed == tmp_path / "out-2"
    assert (tmp_path / "out" / "other").read_text() == "someone else's"


def test_force_puts_the_old_bundle_back_if_the_new_one_can_not_be_placed(
    release, tmp_path, monkeypatch
):
    placed = release.write(tmp_path / "out")
    before = (placed / STATEMENT_FILE).read_bytes()
    rename = Path.rename

    def broken(self, target):
        if self.name.endswith(".partial"):
            raise OSError(5, "Input/output error")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", broken)
    with pytest.raises(OSError, match="Input/output"):
        release.write(tmp_path / "out", force=True)
    assert (placed / STATEMENT_FILE).read_bytes() == before


def test_what_a_dead_process_left_is_swept_away_and_a_living_one_kept(release, tmp_path):
    dead = FORK.Process(target=int)
    dead.start()
    dead.join()
    stale = tmp_path / f".out.{dead.pid}-abcd.partial"
    young = tmp_path / f".out.{dead.pid}-ef01.partial"
    alive = tmp_path / f".out.{os.getppid()}-abcd.partial"
    other = tmp_path / f".outer.{dead.pid}-abcd.partial"
    for path in (stale, young, alive, other):
        path.mkdir()
    long_ago = time.time() - 2 * bundle._STALE_AFTER
    for path in (stale, alive, other):
        os.utime(path, (long_ago, long_ago))
    release.write(tmp_path / "out")
    assert [p.exists() for p in (stale, young, alive, other)] == [False, True, True, True]


def _release_once(folder: Path) -> None:
    make_release(Ledger(folder / "ledger.sqlite")).write(folder / "out", force=True)
    os._exit(0)


def test_kills_leave_no_half_bundle_and_no_bundle_without_its_charge(tmp_path):
    make_release(Ledger(tmp_path / "warm.sqlite")).write(tmp_path / "warm")  # imports, once
    rng = random.Random(2)
    bundles = killed = tries = 0
    whole = 0.0
    least, enough = (200, 20) if FULL else (40, 4)
    # How long a release takes depends on what else the machine does: it is measured again.
    while tries < least or min(killed, bundles) < enough:
        if tries % 10 == 0:
            begun = time.monotonic()
            _run_and_kill(tmp_path, after=600.0)
            whole = time.monotonic() - begun
        tries += 1
        killed += _run_and_kill(tmp_path, after=rng.uniform(0, 1.1 * whole))
        ledger = Ledger(tmp_path / "ledger.sqlite")
        assert ledger.problems() == []
        if (tmp_path / "out").exists():
            bundles += 1
            assert all(finding.ok for finding in verify_bundle(tmp_path / "out"))
            statement = Statement.from_json((tmp_path / "out" / STATEMENT_FILE).read_bytes())
            assert ledger.bundle_problems(statement.body["ledger"]) == []
        assert tries < 10 * least, "the kills do not land inside releases"


def _run_and_kill(folder: Path, after: float) -> bool:
    """Whether the release was still under way when it was killed."""
    worker = FORK.Process(target=_release_once, args=(folder,))
    worker.start()
    worker.join(timeout=after)
    if worker.is_alive():
        os.kill(worker.pid, signal.SIGKILL)
    worker.join()
    return worker.exitcode == -signal.SIGKILL
