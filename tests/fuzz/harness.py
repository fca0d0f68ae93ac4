"""Long runs over a reader: in a child that is watched, so that a hang or a crash is counted too."""

import mmap
import os
import resource
import signal
import struct
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from json import dumps, loads
from pathlib import Path

from faults.children import fork
from fuzz.mutations import random_choices
from fuzz.targets import Target
from fuzz.verdicts import WrongSuccess

PATIENCE = 30.0  # seconds of computing for one input; the slowest honest one takes a part of one
ASLEEP = 600.0  # seconds by the clock, for one that waits for something: the machine may be busy
MEMORY = 6 << 30  # bytes of address space for a child
KEPT = 5  # findings that are kept in full


class Hang(BaseException):
    """An input took too long."""


@dataclass
class Count:
    """What came of many inputs."""

    reader: str
    inputs: int = 0
    taken: int = 0
    tracebacks: int = 0
    hangs: int = 0
    crashes: int = 0
    wrong: int = 0
    seconds: float = 0.0
    found: list[str] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        return not (self.tracebacks or self.hangs or self.crashes or self.wrong)

    def add(self, other: "Count") -> None:
        for name in ("inputs", "taken", "tracebacks", "hangs", "crashes", "wrong"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.found = (self.found + other.found)[:KEPT]


def run(target: Target, inputs: int, first_seed: int = 0) -> Count:
    """Try so many inputs, each made from a seed of its own."""
    total = Count(target.name)
    begun = time.monotonic()
    seed, end = first_seed, first_seed + inputs
    while seed < end:
        count, seed = _run_child(target, seed, end)
        total.add(count)
    total.seconds = time.monotonic() - begun
    return total


def try_one(target: Target, data: bytes, folder: Path, count: Count, name: str) -> None:
    """Try one input in this process, and count what came of it."""
    count.inputs += 1
    try:
        count.taken += target.check(data, folder)
    except WrongSuccess as wrong:
        count.wrong += 1
        count.found.append(f"{target.name}, {name}: {wrong}")
    except Exception as error:  # noqa: BLE001 - whatever it is, it should have been one of ours
        count.tracebacks += 1
        where = traceback.extract_tb(error.__traceback__)[-1]
        text = f"{type(error).__name__} at {Path(where.filename).name}:{where.lineno}: {error}"
        count.found.append(f"{target.name}, {name}: {text[:300]}")


@contextmanager
def time_limit(computing: float = PATIENCE, asleep: float = ASLEEP) -> Iterator[None]:
    """Raise `Hang` in what computes or waits for longer."""

    def stop(*_: object) -> None:
        raise Hang(f"no answer within {computing:g} s of computing, or {asleep:g} s by the clock")

    timers = (signal.SIGPROF, signal.ITIMER_PROF), (signal.SIGALRM, signal.ITIMER_REAL)
    before = [signal.signal(heard, stop) for heard, _ in timers]
    for (_, timer), seconds in zip(timers, (computing, asleep), strict=True):
        signal.setitimer(timer, seconds)
    try:
        yield
    finally:
        for (heard, timer), handler in zip(timers, before, strict=True):
            signal.setitimer(timer, 0)
            signal.signal(heard, handler)


def _run_child(target: Target, seed: int, end: int) -> tuple[Count, int]:
    """Run seeds in a child until it is done, hangs or dies; the next seed to try."""
    now = mmap.mmap(-1, 8)  # the seed that the child is at
    with tempfile.TemporaryDirectory(dir=_memory()) as folder:
        result = Path(folder) / "count.json"
        child = fork()
        if child == 0:
            _be_child(target, range(seed, end), Path(folder), now, result)
        status = _watch(child, now)
        count = Count(**loads(result.read_text())) if result.exists() else Count(target.name)
    if status == 0:
        return count, end
    (at,) = struct.unpack("q", now[:8])
    count = Count(target.name, inputs=at - seed + 1)
    count.found.append(f"{target.name}, seed {at}: {'hang' if status is None else status}")
    count.hangs, count.crashes = int(status is None), int(status is not None)
    return count, at + 1


def _watch(child: int, now: mmap.mmap) -> int | None:
    """The exit code of a child, or None if it had to be ended because it hung."""
    last, since = b"", time.monotonic()
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            return None if code == -signal.SIGPROF else code
        if now[:8] != last:
            last, since = now[:8], time.monotonic()
        if time.monotonic() - since > ASLEEP:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return None
        time.sleep(0.02)


def _be_child(target: Target, seeds: range, folder: Path, now: mmap.mmap, result: Path) -> None:
    try:
        most = _reserved() + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        warnings.simplefilter("error")
        count = Count(target.name)
        signal.signal(signal.SIGPROF, signal.SIG_DFL)  # ends it, even inside a library
        for seed in seeds:
            now[:8] = struct.pack("q", seed)
            signal.setitimer(signal.ITIMER_PROF, PATIENCE)
            data = target.make(random_choices(seed))
            try_one(target, data, folder, count, f"seed {seed}")
        count.found = count.found[:KEPT]
        result.write_text(dumps(asdict(count)))
        os._exit(0)
    finally:
        os._exit(70)


def _reserved() -> int:
    """Addresses that this process has reserved already, in bytes: some libraries take gigabytes."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except OSError:
        return 0
    return pages * resource.getpagesize()


def _memory() -> str | None:
    return "/dev/shm" if os.path.isdir("/dev/shm") else None
