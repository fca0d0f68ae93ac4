"""The ledger's file: where it is, how it is made, its one name and its lock."""

import errno
import multiprocessing
import os
import signal
import sqlite3
import stat
import sys
from pathlib import Path

import pytest
from support.making import charge, make_account, race
from support.sizes import PATIENCE

from gridveil.errors import LedgerError
from gridveil.privacy.ledger import Ledger
from gridveil.privacy.ledger import file as ledger_file
from gridveil.privacy.ledger import place as location

FORK = multiprocessing.get_context("fork")


def test_a_ledger_with_two_names_is_refused(tmp_path):
    path, other = tmp_path / "a.sqlite", tmp_path / "b.sqlite"
    ledger = Ledger(path)
    charge(ledger, 1)
    os.link(path, other)
    with pytest.raises(LedgerError, match="has 2 names") as caught:
        charge(ledger, 1)  # it was opened before
    assert "Keep one name" in str(caught.value)
    for name in (path, other):
        with pytest.raises(LedgerError, match="has 2 names"):
            Ledger(name)
    other.unlink()
    assert Ledger(path).totals("farm").spent == 1
    charge(ledger, 1)


def test_two_names_that_can_not_be_seen_exclude_each_other(tmp_path, monkeypatch):
    """As with a folder that is mounted twice: here hard links, which are not looked for."""
    if sys.platform != "linux":
        pytest.skip("the lock on the file is for Linux")
    path, other = tmp_path / "a.sqlite", tmp_path / "b.sqlite"
    Ledger(path).set_cap("raced", 20, alpha={"power": "0.1"})
    monkeypatch.setattr(ledger_file, "refuse_other_names", lambda _: None)
    monkeypatch.setattr(ledger_file, "_PATIENCE", PATIENCE)  # how long one waits for the other
    os.link(path, other)
    results = FORK.Queue()
    workers = [FORK.Process(target=race, args=(name, results)) for name in (path, other)]
    for worker in workers:
        worker.start()
    accepted = sum(results.get(timeout=PATIENCE) for _ in workers)
    for worker in workers:
        worker.join()
    assert accepted == 20
    for name in (path, other):
        assert Ledger(name).totals("raced").spent == 20
        assert Ledger(name).problems() == []


def test_a_ledger_that_stays_locked_is_explained(ledger, monkeypatch):
    if sys.platform != "linux":
        pytest.skip("the lock on the file is for Linux")
    import fcntl

    monkeypatch.setattr(ledger_file, "_PATIENCE", 0.02)
    with ledger.path.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(LedgerError, match="another process keeps it locked"):
            ledger.entries()
    assert ledger.entries() == []


def _open_many(path: Path, barrier) -> None:
    barrier.wait()
    charge(Ledger(path), 1, "first")


def test_eight_processes_can_make_the_ledger_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(ledger_file, "_PATIENCE", PATIENCE)  # how long one waits for all others
    path = tmp_path / "new" / "ledger.sqlite"
    barrier = FORK.Barrier(8)
    workers = [FORK.Process(target=_open_many, args=(path, barrier)) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(timeout=PATIENCE)
    assert [worker.exitcode for worker in workers] == [0] * 8
    assert Ledger(path).totals("first").spent == 8
    assert Ledger(path).problems() == []


def test_only_the_owner_can_read_it(ledger):
    charge(ledger)
    for path in ledger.path.parent.glob("ledger.sqlite*"):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0


def test_an_open_file_is_closed_to_others(tmp_path):
    path = tmp_path / "loose"
    Ledger(path)
    path.chmod(0o644)
    Ledger(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_it_writes_ahead_and_synchronises(ledger):
    with ledger._store.connect() as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)


def test_a_damaged_file_is_explained(tmp_path):
    path = tmp_path / "ledger.sqlite"
    path.write_bytes(b"not a database, but long enough to be looked at" * 99)
    with pytest.raises(LedgerError, match="newest backup"):
        Ledger(path)


def test_a_newer_ledger_is_left_alone(ledger):
    charge(ledger)
    connection = sqlite3.connect(ledger.path)
    connection.execute("PRAGMA user_version = 9")
    connection.close()
    with pytest.raises(LedgerError, match="newer GridVeil"):
        Ledger(ledger.path)


def test_another_database_is_left_alone(tmp_path):
    path = tmp_path / "mine.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE photos (name)")
    connection.close()
    with pytest.raises(LedgerError, match="not a ledger"):
        Ledger(path)


def test_a_folder_is_no_ledger(tmp_path):
    with pytest.raises(LedgerError, match="is a folder"):
        Ledger(tmp_path)


def test_where_it_is(tmp_path, monkeypatch):
    monkeypatch.setenv("GRIDVEIL_LEDGER", str(tmp_path / "from-environment"))
    assert location.ledger_place(tmp_path / "given") == tmp_path / "given"
    assert location.ledger_place() == tmp_path / "from-environment"
    monkeypatch.delenv("GRIDVEIL_LEDGER")
    assert location.ledger_place().name == "ledger.sqlite"


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "fuse.sshfs"])
def test_a_network_file_system_is_refused(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(location, "_linux_mounts", lambda: [(Path("/"), "ext4"), (tmp_path, kind)])
    monkeypatch.setattr(location.sys, "platform", "linux")
    with pytest.raises(LedgerError, match=f"network file system \\({kind}\\)"):
        Ledger(tmp_path / "ledger.sqlite")
    assert not (tmp_path / "ledger.sqlite").exists()


def test_the_nearest_and_latest_mount_counts(tmp_path, monkeypatch):
    mounts = [(Path("/"), "nfs"), (tmp_path, "nfs"), (tmp_path, "ext4"), (tmp_path / "x", "nfs")]
    monkeypatch.setattr(location, "_linux_mounts", lambda: mounts)
    monkeypatch.setattr(location.sys, "platform", "linux")
    assert location.file_system(tmp_path / "not there" / "ledger") == "ext4"


@pytest.mark.skipif(not Path("/proc/self/mountinfo").exists(), reason="needs Linux's /proc")
def test_real_mounts_are_read():
    assert location.file_system(Path("/proc/self")) == "proc"


def test_repr(ledger):
    make_account(ledger)
    assert repr(ledger) == f"Ledger({str(ledger.path)!r}, 1 dataset)"


@pytest.mark.parametrize(("left", "words"), [(b"", "it is empty"), (b"S", "only one byte is left")])
def test_an_emptied_ledger_is_no_new_one(ledger, left, words):
    charge(ledger)
    for beside in ledger.path.parent.glob("ledger.sqlite*"):
        beside.unlink()
    ledger.path.write_bytes(left)
    with pytest.raises(LedgerError, match=words) as caught:
        Ledger(ledger.path)
    assert "newest backup" in caught.value.remedy
    assert ledger.path.read_bytes() == left


def test_an_empty_database_is_no_ledger(tmp_path):
    path = tmp_path / "ledger.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE x (y)")
    connection.execute("DROP TABLE x")
    connection.close()
    assert path.stat().st_size
    with pytest.raises(LedgerError, match="not a ledger"):
        Ledger(path)


@pytest.mark.parametrize("at", ["write", "_synchronise", "_place"])
def test_a_crash_while_it_is_made_leaves_no_ledger(tmp_path, monkeypatch, at):
    """As by a kill: nothing is cleared up, and the next process makes the ledger."""
    path = tmp_path / "ledger.sqlite"
    child = os.fork()
    if child == 0:
        name = "_split" if at == "write" else at
        setattr(ledger_file, name, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
        Ledger(path)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    assert not path.exists()
    (left,) = [one for one in tmp_path.iterdir() if one.name.endswith(".new")]
    os.utime(left, (0, 0))
    charge(Ledger(path), 1)
    assert Ledger(path).totals("farm").spent == 1
    assert not left.exists()


def test_a_kill_after_it_was_made_leaves_one_name_in_the_end(tmp_path):
    path = tmp_path / "ledger.sqlite"
    charge(Ledger(path), 1)
    os.link(path, tmp_path / ".ledger.sqlite.0123.new")
    assert Ledger(path).totals("farm").spent == 1
    assert {one.name for one in tmp_path.iterdir()} == {"ledger.sqlite"}


def test_a_full_disk_while_it_is_made_is_explained(tmp_path, monkeypatch):
    def full(_):
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(ledger_file, "write_new", full)
    with pytest.raises(LedgerError, match="disk is full"):
        Ledger(tmp_path / "ledger.sqlite")
    assert list(tmp_path.iterdir()) == []


def test_the_first_of_two_that_make_it_counts(tmp_path, monkeypatch):
    path = tmp_path / "ledger.sqlite"
    whole = ledger_file._place

    def late(beside, target):
        monkeypatch.setattr(ledger_file, "_place", whole)
        charge(Ledger(path), 1)
        whole(beside, target)

    monkeypatch.setattr(ledger_file, "_place", late)
    assert Ledger(path).totals("farm").spent == 1
    assert [one.name for one in tmp_path.iterdir()] == ["ledger.sqlite"]


def test_it_is_made_on_a_file_system_without_links(tmp_path, monkeypatch):
    def no_link(*_):
        raise PermissionError(errno.EPERM, "no links here")

    monkeypatch.setattr(ledger_file.os, "link", no_link)
    charge(Ledger(tmp_path / "ledger.sqlite"), 1)
    assert Ledger(tmp_path / "ledger.sqlite").totals("farm").spent == 1


def test_it_is_made_where_a_link_leads(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "far" / "ledger")
    (tmp_path / "far").mkdir()
    charge(Ledger(tmp_path / "link"), 1)
    assert Ledger(tmp_path / "far" / "ledger").totals("farm").spent == 1


def test_a_slip_can_not_change_or_delete_an_entry(ledger):
    charge(ledger)
    connection = sqlite3.connect(ledger.path)
    for statement in ("UPDATE entries SET kind = 'x'", "DELETE FROM entries"):
        with pytest.raises(sqlite3.IntegrityError, match="never"):
            connection.execute(statement)
    connection.close()
