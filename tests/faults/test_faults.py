"""Kills, full and failing disks, damaged ledgers, clocks and races: nothing is lost or overspent.

A sample of each campaign; `make faults` runs all of them, at every system call and every byte.
"""

import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from faults import campaigns
from faults.children import can_mount
from faults.releasing import ALPHA, CAP, DATASET, Tally
from faults.tracing import unavailable
from support.sizes import FULL

from gridveil.privacy.ledger import Ledger

needs_tracing = pytest.mark.skipif(unavailable() is not None, reason=str(unavailable()))
needs_mounts = pytest.mark.skipif(not can_mount(), reason="needs root on Linux, to mount disks")


@pytest.fixture
def folder(tmp_path) -> Iterator[Path]:
    """In memory where there is room: a kill leaves what was written, on a disk or not."""
    memory = Path("/dev/shm")
    if not memory.is_dir():
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=memory) as made:
        yield Path(made)


def sample(few: int) -> int | None:
    return None if FULL else few


def assert_clean(*tallies: Tally) -> None:
    for tally in tallies:
        assert tally.tried
        assert tally.clean, tally.wrong()


@needs_tracing
def test_kills_leave_no_half_bundle_and_no_bundle_without_its_charge(folder):
    assert_clean(*campaigns.kills(folder, sample(4)))


@needs_tracing
def test_kills_at_any_system_call(folder):
    assert_clean(campaigns.kills_anywhere(folder, 60 if FULL else 4))


@needs_tracing
def test_kills_in_a_grid_release(folder):
    assert_clean(campaigns.grid_kills(folder, sample(3)))


@needs_tracing
def test_a_full_disk_is_a_plain_error_and_loses_nothing(folder):
    assert_clean(*campaigns.full_disk(folder, sample(3)))


@needs_tracing
def test_an_input_output_error_is_a_plain_error_and_loses_nothing(folder):
    assert_clean(*campaigns.input_output_errors(folder, sample(3)))


@needs_mounts
def test_a_disk_that_is_really_full(folder):
    assert_clean(campaigns.small_disk(folder, [0, 1 << 16, (1 << 20) + (1 << 16)]))


@needs_mounts
def test_a_read_only_folder_is_refused_before_the_charge(folder):
    assert_clean(campaigns.locked_folder(folder))


def test_files_that_may_not_grow(folder):
    pytest.importorskip("resource", reason="needs limits on files, which this system has not")
    assert_clean(campaigns.short_files(folder, [2000, 9000, 60_000]))


def test_releases_at_once_can_not_overspend_together(folder):
    assert_clean(campaigns.at_once(folder, 40 if FULL else 2))


def test_a_clock_that_goes_back_changes_nothing(folder):
    assert_clean(campaigns.clock_back(folder, 5))


def test_a_newer_ledger_is_left_alone(folder):
    assert_clean(campaigns.newer_ledger(folder))


def test_a_changed_byte_of_the_ledger_never_lowers_what_was_spent(folder):
    tally = campaigns.flipped_ledger(folder, sample(150))
    assert_clean(tally)


def test_a_ledger_that_was_cut_short_is_refused(folder):
    assert_clean(campaigns.cut_ledger(folder, sample(60)))


def test_a_damaged_log_is_no_traceback(folder):
    assert_clean(campaigns.flipped_log(folder, sample(60)))


def test_a_lost_log_loses_no_charge_that_was_made(folder):
    assert_clean(campaigns.lost_log(folder, 40 if FULL else 3))


def test_the_control_a_charge_that_stays_in_the_log_is_lost_with_it(folder, monkeypatch):
    monkeypatch.setattr("gridveil.privacy.ledger.file._put_log_away", lambda _: None)
    tally = campaigns.lost_log(folder, 2)
    assert len(tally.losses) == tally.tried == 2


def test_a_reader_does_not_keep_a_charge_from_being_made(folder, monkeypatch):
    """It stays in the log as long as somebody reads, and nobody waits for that without end."""
    monkeypatch.setattr("gridveil.privacy.ledger.file._READERS", 0.1)
    path = folder / "ledger.sqlite"
    ledger = Ledger(path)
    ledger.set_cap(DATASET, CAP, alpha=ALPHA)
    with closing(sqlite3.connect(path)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM entries").fetchall()
        ledger.set_cap(DATASET, 2 * CAP, alpha=ALPHA)
        assert Ledger(path).totals(DATASET).cap == 2 * CAP
        assert path.with_name("ledger.sqlite-wal").stat().st_size > 0
    assert ledger.problems() == []
    assert Ledger(path).totals(DATASET).cap == 2 * CAP


def test_the_control_a_ledger_that_is_not_checked_overspends(folder, monkeypatch):
    """The campaign finds what it looks for: changed bytes that lower the sum, unchecked."""
    from gridveil.privacy.ledger.file import LedgerFile

    path, whole = campaigns.ledger_file(folder)
    lowered = whole
    for name in (b"charged", b"epsilon"):  # the sum is worked out from both
        before = lowered
        lowered = lowered.replace(b'"%b":"1"' % name, b'"%b":"0"' % name, 1)
        assert lowered != before
    checked, unchecked = Tally("checked"), Tally("unchecked")
    assert not campaigns.try_damaged(path, lowered, checked, "lowered")
    assert checked.clean
    monkeypatch.setattr(LedgerFile, "_problems", lambda *_: [])
    assert campaigns.try_damaged(path, lowered, unchecked, "lowered")
    assert unchecked.overspends


@needs_tracing
def test_the_control_a_bundle_that_is_not_placed_in_one_step_is_found(folder, monkeypatch):
    def in_pieces(partial: Path, target: Path, *, force: bool) -> Path:
        target.mkdir(exist_ok=True)
        for path in sorted(partial.iterdir()):
            path.replace(target / path.name)
        partial.rmdir()
        return target

    monkeypatch.setattr("gridveil.release.bundle._place", in_pieces)
    tallies = campaigns.kills(folder, only={"rename"})
    assert any(tally.half_bundles for tally in tallies)
