"""The campaigns of faults: each tries one kind many times and counts what went wrong."""

import errno
import os
import random
import shutil
import signal
import sqlite3
import tempfile
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import partial
from pathlib import Path
from unittest import mock

from faults.children import fork, on_a_disk_of, read_only, run_together, shown
from faults.releasing import (
    ALPHA,
    CAP,
    DATASET,
    Scene,
    Tally,
    check_aftermath,
    make_scene,
    release,
)
from faults.tracing import CALLS, GROWING, Verdict, calls_of, fail_from, kill_at, run_traced
from support.making import adjacency

from gridveil.errors import BudgetRefused, GridveilError
from gridveil.privacy.ledger import Ledger, Terms
from gridveil.privacy.ledger import file as ledger_module
from gridveil.privacy.ledger.file import FORMAT

SCENES = {"first release": False, "release in place of another": True}
STEP = {"power": "0.1"}  # of charges that are made here without a release


def kills(
    folder: Path, most: int | None = None, *, only: Collection[str] = CALLS.values()
) -> list[Tally]:
    """Kill a release just before each of its changing system calls, or before some of them."""
    found = []
    for name, earlier in SCENES.items():
        scene = make_scene(folder / name.replace(" ", "-"), earlier=earlier)
        tally = Tally(f"kill -9 in a {name}")
        numbers = [number for number, call in enumerate(_calls(scene)) if call in only]
        for number in some(numbers, most):
            _attempt(scene, tally, kill_at(number), f"kill at call {number}", expect=-9)
        found.append(tally)
    return found


def kills_anywhere(folder: Path, count: int) -> Tally:
    """Kill a release before any of its system calls, those that change nothing included."""
    scene = make_scene(folder / "anywhere", earlier=True)
    trial = scene.copy(folder / "trial")
    calls = len(calls_of(lambda: release(trial), every=True))
    tally = Tally("kill -9 at any system call, by chance")
    for number in some(range(calls), count):
        # Runs differ by some calls: one that ended before its kill is killed earlier.
        while _attempt(scene, tally, kill_at(number), f"kill at call {number}", every=True) != -9:
            number -= 1 + number // 10
            if number < 0:
                tally.losses.append("a kill never landed")
                break
    tally.note = f"of {calls:,} calls"
    return tally


def grid_kills(folder: Path, most: int | None = None) -> Tally:
    """Kill a grid release as `kills` does a wind release."""
    tally = Tally("kill -9 in a grid release in place of another")
    with mock.patch("gridveil.grid.release.GridRelease.sections", return_value=()):
        scene = make_scene(folder / "grid", earlier=True, kind="grid")
        for number in some(range(len(_calls(scene))), most):
            _attempt(scene, tally, kill_at(number), f"kill at call {number}", expect=-9)
    return tally


def full_disk(folder: Path, most: int | None = None) -> list[Tally]:
    """Let the disk be full from each call on that needs room."""
    found = []
    for name, earlier in SCENES.items():
        scene = make_scene(folder / name.replace(" ", "-"), earlier=earlier)
        tally = Tally(f"disk full in a {name}")
        needy = [i for i, call in enumerate(_calls(scene)) if call in GROWING]
        for number in some(needy, most):
            verdict = fail_from(number, GROWING, errno.ENOSPC)
            _attempt(scene, tally, verdict, f"full from call {number}")
        found.append(tally)
    return found


def input_output_errors(folder: Path, most: int | None = None) -> list[Tally]:
    """Let each changing call fail once with an input/output error."""
    found = []
    for name, earlier in SCENES.items():
        scene = make_scene(folder / name.replace(" ", "-"), earlier=earlier)
        tally = Tally(f"I/O error in a {name}")
        for number, call in some(list(enumerate(_calls(scene))), most):
            verdict = fail_from(number, {call}, errno.EIO, once=True)
            _attempt(scene, tally, verdict, f"{call} {number} fails")
        found.append(tally)
    return found


def flipped_ledger(folder: Path, most: int | None = None) -> Tally:
    """Change each byte of a ledger: it is refused, or nothing of what it says has changed."""
    path, whole = ledger_file(folder)
    tally = Tally("one byte of the ledger changed")
    unnoticed = 0
    rng = random.Random(7)
    for place in some(range(len(whole)), most):
        damaged = bytearray(whole)
        damaged[place] ^= rng.randrange(1, 256)
        unnoticed += try_damaged(path, bytes(damaged), tally, f"byte {place}")
    tally.note = f"{unnoticed} in unused space or beside the entries changed nothing"
    return tally


def cut_ledger(folder: Path, most: int | None = None) -> Tally:
    """Cut a ledger short, or empty it: it is refused."""
    path, whole = ledger_file(folder)
    tally = Tally("the ledger cut short")
    for length in some(range(len(whole)), most):
        if try_damaged(path, whole[:length], tally, f"cut to {length} bytes"):
            tally.losses.append(f"cut to {length} bytes and not noticed")
    return tally


def flipped_log(folder: Path, most: int | None = None) -> Tally:
    """Change each byte of the log that a kill in the middle of a charge left beside the ledger.

    SQLite takes a damaged log for one that a power cut ended early, and drops its tail. Nothing was
    released for such a charge: once a charge is made, it is in the ledger's own file.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "ledger.sqlite"
    Ledger(path).set_cap(DATASET, CAP, alpha=STEP)
    _charge_and_die(path, before_log_is_put_away=True)
    whole, log = path.read_bytes(), path.with_name(f"{path.name}-wal").read_bytes()
    tally = Tally("one byte of the log changed that a kill in the middle of a charge left")
    if _spent(path, whole, log, tally, "nothing changed") != 1:
        tally.losses.append("a whole log was dropped")
    dropped = 0
    rng = random.Random(8)
    for place in some(range(len(log)), most):
        damaged = bytearray(log)
        damaged[place] ^= rng.randrange(1, 256)
        dropped += _spent(path, whole, bytes(damaged), tally, f"byte {place}") == 0
    tally.note = (
        f"in {dropped} cases SQLite took the log for one that a power cut ended, and dropped the "
        "charge in it, for which nothing had been drawn yet"
    )
    return tally


def lost_log(folder: Path, rounds: int = 40) -> Tally:
    """Lose the log of a ledger as soon as a charge was made, while another program has it open."""
    tally = Tally("the log beside the ledger lost once a charge was made")
    for number in range(rounds):
        path = folder / str(number) / "ledger.sqlite"
        path.parent.mkdir(parents=True)
        Ledger(path).set_cap(DATASET, CAP, alpha=STEP)
        _charge_and_die(path, before_log_is_put_away=False)
        if _spent(path, path.read_bytes(), b"", tally, f"round {number}") != 1:
            tally.losses.append(f"round {number}: the charge was in the log alone")
    return tally


def _charge_and_die(path: Path, *, before_log_is_put_away: bool) -> None:
    child = fork()
    if child == 0:
        connection = sqlite3.connect(path)  # keeps the log from being put away at the end
        connection.execute("SELECT * FROM entries").fetchall()
        ledger = Ledger(path)
        if before_log_is_put_away:
            ledger_module._put_log_away = lambda _: os.kill(os.getpid(), signal.SIGKILL)
        _charge(ledger)
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)


def at_once(folder: Path, rounds: int = 40, processes: int = 4) -> Tally:
    """Several releases at once where the cap leaves room for one."""
    scene = make_scene(folder / "template", earlier=True)
    Ledger(scene.ledger).set_cap(DATASET, 2, alpha=ALPHA)
    tally = Tally(f"{processes} releases at once, room for one")
    for number in range(rounds):
        here = scene.copy(folder / "here")
        ended = run_together([lambda here=here: release(here)] * processes)
        tally.tried += 1
        what = f"round {number}"
        if sorted(code for code, _ in ended) != [0, *[3] * (processes - 1)]:
            tally.overspends.append(f"{what}: ended with {[code for code, _ in ended]}")
        Ledger(here.ledger).set_cap(DATASET, 3, alpha=ALPHA)
        check_aftermath(here, tally, what, "".join(text for _, text in ended))
    return tally


def small_disk(folder: Path, free: Iterable[int]) -> Tally:
    """A release on a real disk with so many bytes free."""
    templates = [
        make_scene(folder / f"scene-{earlier}", earlier=earlier) for earlier in SCENES.values()
    ]
    here = folder / "here"
    here.mkdir()
    tally = Tally("a small disk, really full")
    fitted = 0
    for size in free:
        for one in templates:
            work = on_a_disk_of(1 << 24, here, partial(_fill_and_release, one, here, size))
            ((code, text),) = run_together([work])
            tally.tried += 1
            fitted += "ended with 0" in text
            if code != 0:
                tally.losses.append(f"{size} bytes free: {text[-600:]}")
    tally.note = f"{fitted} releases had room enough"
    return tally


def locked_folder(folder: Path) -> Tally:
    """A release into a read-only folder, and one whose ledger is in a read-only folder."""
    tally = Tally("a read-only folder")
    for earlier in SCENES.values():
        scene = make_scene(folder / f"scene-{earlier}", earlier=earlier)
        for options in ((), ("--ledger", str(folder / f"elsewhere-{earlier}.sqlite"))):
            before = {p: p.read_bytes() for p in scene.folder.rglob("*") if p.is_file()}
            ended = run_together([read_only(scene.folder, partial(release, scene, *options))])
            tally.tried += 1
            what = f"earlier {earlier}, {options}"
            if ended[0][0] not in (1, 2):
                tally.overspends.append(f"{what}: ended with {ended[0]}")
            if before != {p: p.read_bytes() for p in scene.folder.rglob("*") if p.is_file()}:
                tally.losses.append(f"{what}: something changed")
            if options and Ledger(options[1]).totals(DATASET).spent:
                tally.overspends.append(f"{what}: charged for nothing")
            check_aftermath(scene, tally, what, ended[0][1])
            scene = scene.after(scene.spent + 1)
    return tally


def short_files(folder: Path, limits: Iterable[int]) -> Tally:
    """A release where no file may grow beyond a limit."""
    import resource

    scene = make_scene(folder / "template", earlier=True)
    tally = Tally("files that may not grow")
    for limit in limits:
        here = scene.copy(folder / "here")

        def limited(here: Scene = here, limit: int = limit) -> int:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
            return release(here)

        ((code, text),) = run_together([limited])
        tally.tried += 1
        if code not in (0, 1, 2):
            tally.tracebacks.append(f"{limit} bytes a file: ended with {code}")
        check_aftermath(here, tally, f"{limit} bytes a file", text)
    return tally


def clock_back(folder: Path, rounds: int = 20) -> Tally:
    """Releases while the clock goes back, a day each time."""
    tally = Tally("the clock going backwards")
    scene = make_scene(folder / "scene", earlier=False)
    for number in range(rounds):
        here = scene.after(number)
        with at_time(datetime(2030, 1, 30, tzinfo=UTC) - timedelta(days=number)):
            code = release(here)
            tally.tried += 1
            if code != 0:
                tally.losses.append(f"release {number} ended with {code}")
            check_aftermath(here, tally, f"release {number}", retry=False)
    times = [entry.time for entry in Ledger(scene.ledger).entries()]
    if times != sorted(times, reverse=True):
        tally.losses.append("the clock did not go back")
    return tally


@contextmanager
def at_time(moment: datetime) -> Iterator[None]:
    """Let every clock that a release reads show a moment."""

    class Clock(datetime):
        @classmethod
        def now(cls, tz: object = None) -> datetime:
            return moment

    with (
        mock.patch("gridveil.privacy.ledger.entries.datetime", Clock),
        mock.patch("gridveil.privacy.statement.datetime", Clock),
        mock.patch("gridveil.release.bundle.time.time", moment.timestamp),
    ):
        yield


def newer_ledger(folder: Path) -> Tally:
    """A ledger that a newer version wrote is left as it is, and nothing is released."""
    tally = Tally("a ledger from a newer version")
    scene = make_scene(folder / "scene", earlier=True)
    for version in (FORMAT + 1, FORMAT + 2, 2**31 - 1):
        connection = sqlite3.connect(scene.ledger)
        connection.execute(f"PRAGMA user_version = {version}")
        connection.close()
        before = {path: path.read_bytes() for path in scene.folder.rglob("*") if path.is_file()}
        ((code, text),) = run_together([partial(release, scene)])
        tally.tried += 1
        after = {path: path.read_bytes() for path in scene.folder.rglob("*") if path.is_file()}
        if code not in (1, 2) or "newer GridVeil" not in text or before != after:
            tally.losses.append(f"format {version}: ended with {code}: {text[-300:]}")
    return tally


def some(all_of: Sequence, most: int | None) -> Iterable:
    """All of them, or a random sample in their order."""
    if most is None or most >= len(all_of):
        return all_of
    return [all_of[i] for i in sorted(random.Random(5).sample(range(len(all_of)), most))]


def _calls(scene: Scene) -> list[str]:
    trial = scene.copy(scene.folder.with_name(f"{scene.folder.name}-trial"))
    return calls_of(lambda: release(trial))


def _attempt(
    scene: Scene,
    tally: Tally,
    verdict: Verdict,
    what: str,
    *,
    expect: int | None = None,
    every: bool = False,
) -> int:
    here = scene.copy(scene.folder.with_name(f"{scene.folder.name}-here"))
    with tempfile.TemporaryFile() as screen:
        code = run_traced(lambda: release(here), verdict, screen, every=every)
        text = shown(screen)
    tally.tried += 1
    if expect is not None and code != expect:
        tally.losses.append(f"{what}: ended with {code}")
    check_aftermath(here, tally, what, text)
    return code


def ledger_file(folder: Path) -> tuple[Path, bytes]:
    """A ledger of a few datasets whose cap leaves nothing."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "ledger.sqlite"
    ledger = Ledger(path)
    for number in range(CAP):
        _charge(ledger)
        ledger.charge(
            Terms(f"other {number}", epsilon="1/3", adjacency=[adjacency()], purpose="a test")
        )
    ledger.set_cap(DATASET, CAP, alpha=STEP)
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return path, path.read_bytes()


def _charge(ledger: Ledger) -> None:
    ledger.charge(Terms(DATASET, epsilon=1, adjacency=[adjacency()], purpose="a test"))


def _fill_and_release(template: Scene, here: Path, free: int) -> int:
    """On a disk with little room: release, make room, look at what is there."""
    shutil.copytree(template.folder, here, dirs_exist_ok=True)
    room = os.statvfs(here)
    (here / ".ballast").write_bytes(bytes(max(room.f_bavail * room.f_frsize - free, 0)))
    scene = replace(template, folder=here)
    code = release(scene)
    print(f"ended with {code}")
    (here / ".ballast").unlink()
    tally = Tally("small disk")
    check_aftermath(scene, tally, f"{free} bytes free")
    if not tally.clean:
        print(tally.wrong())
    return 0 if tally.clean and code in (0, 1, 2) else 9


def _spent(path: Path, whole: bytes, log: bytes, tally: Tally, what: str) -> Fraction | None:
    """What was spent, by a ledger with this log; None where it is refused."""
    for beside in path.parent.glob(f"{path.name}-*"):
        beside.unlink()
    path.write_bytes(whole)
    path.with_name(f"{path.name}-wal").write_bytes(log)
    tally.tried += 1
    try:
        totals = Ledger(path).totals(DATASET)
    except GridveilError:
        return None
    except Exception as error:  # noqa: BLE001 - anything else is what is looked for
        tally.tracebacks.append(f"{what}: {type(error).__name__}: {error}")
        return None
    if totals.cap != CAP or totals.spent not in (0, 1):
        tally.losses.append(f"{what}: spent {totals.spent} of {totals.cap}")
    return totals.spent


def try_damaged(path: Path, contents: bytes, tally: Tally, what: str) -> bool:
    """Whether a damaged ledger was taken for a whole one; what it then says must be right."""
    for beside in path.parent.glob(f"{path.name}-*"):
        beside.unlink()
    path.write_bytes(contents)
    tally.tried += 1
    try:
        ledger = Ledger(path)
        spent = ledger.totals(DATASET).spent
        _charge(ledger)
    except BudgetRefused:
        if spent != CAP:
            tally.losses.append(f"{what}: spent {spent}")
        return True
    except GridveilError:
        return False
    except Exception as error:  # noqa: BLE001 - anything else is what is looked for
        tally.tracebacks.append(f"{what}: {type(error).__name__}: {error}")
        return False
    tally.overspends.append(f"{what}: spent {spent + Fraction(1)} of {CAP}")
    return True
