"""The folder of a study: its settings, and its results as they arrive.

Results are collected in small Parquet files. Each is written under another name, synchronised and
renamed, so that a file is complete however the process ends. A result is on disk within moments of
its run's end; a run whose result is on disk is never repeated.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from gridveil.errors import GridveilError, InputError
from gridveil.release.bundle import synchronise
from gridveil.studies.study_plan import Measures, Plan, Run

HEADER_FILE = "study.json"
RESULTS_FILE = "results.parquet"

_PARTS = "parts"
_LONGEST_WAIT = 0.1  # seconds that results wait to be written together
_SHARE = 0.1  # the share of the time that writing may take
_MANY = 200  # this many small files are joined into one


class Store:
    """The results of a plan in a folder, which one process at a time may use.

    Raises
    ------
    InputError
        If the folder contains something else or results of other settings, or is in use.
    """

    def __init__(self, folder: Path | str, plan: Plan) -> None:
        self.folder = Path(folder).expanduser().absolute()
        self.plan = plan
        self._waiting: list[dict[str, Any]] = []
        self._pause = _LONGEST_WAIT
        self._last = time.monotonic()
        self._lock: int | None = None

    def __enter__(self) -> Store:
        self._check_folder()
        try:
            self._parts.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise InputError(
                f"A study can't be written to {self.folder}: {problem.strerror}.",
                remedy="Name a folder in a place that you may write.",
            ) from None
        self._lock = _hold(self.folder)
        try:
            self._check_header()
            for path in self._parts.glob("*.partial"):
                path.unlink()
            self._rows = self._load()
            self._small = sorted(int(path.stem) for path in self._parts.glob("*.parquet"))
            self._next = max(self._small, default=-1) + 1
        except BaseException:
            self._release()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self.flush()
        finally:
            self._release()

    @property
    def _parts(self) -> Path:
        return self.folder / _PARTS

    @property
    def done(self) -> set[tuple[int, int]]:
        """Keys of the runs whose results were on disk when the store was opened."""
        return set(zip(*(self._rows[name].to_pylist() for name in ("cell", "run")), strict=True))

    def add(self, run: Run, measured: Measures) -> None:
        """Add a result; it is written at once, or together with those of the next moments."""
        self._waiting.append(self.plan.row(run, measured))
        if time.monotonic() - self._last >= self._pause:
            self.flush()

    def flush(self) -> None:
        """Write the results that wait."""
        if not self._waiting:
            return
        began = time.monotonic()
        self._small.append(self._write_part(pa.Table.from_pylist(self._waiting, self.plan.schema)))
        self._waiting.clear()
        if len(self._small) >= _MANY:
            self._join_parts()
        self._last = time.monotonic()
        self._pause = max(_LONGEST_WAIT, (self._last - began) / _SHARE)

    def finish(self) -> pa.Table:
        """Write all results to one table, in canonical order, and return it."""
        self.flush()
        table = self._load()
        header = json.dumps(self.plan.header(), sort_keys=True).encode()
        table = table.replace_schema_metadata({b"gridveil": header})
        write_atomically(self.folder / RESULTS_FILE, lambda path: pq.write_table(table, path))
        for path in self._parts.glob("*.parquet"):
            path.unlink()
        self._small = []
        return table

    def _check_folder(self) -> None:
        if (self.folder / HEADER_FILE).exists():
            return
        if self.folder.exists() and not self.folder.is_dir():
            raise InputError(f"{self.folder} is not a folder.", remedy="Name a new folder.")
        # A study that was killed right at its start leaves these files.
        early = {_PARTS, f"{HEADER_FILE}.partial"}
        if self.folder.exists() and {path.name for path in self.folder.iterdir()} - early:
            raise InputError(
                f"The folder {self.folder} is not empty and holds no study.",
                remedy="Name a new folder.",
            )

    def _check_header(self) -> None:
        path = self.folder / HEADER_FILE
        wanted = self.plan.header()
        if not path.exists():
            text = json.dumps(wanted, indent=2, sort_keys=True) + "\n"
            write_atomically(path, lambda place: place.write_bytes(text.encode()))
            return
        try:
            found = json.loads(path.read_bytes())
        except ValueError:
            raise InputError(
                f"{path} can't be read.", remedy="Name a new folder for the study."
            ) from None
        if unlike := _differences(found, wanted):
            raise InputError(
                f"The results in {self.folder} were made with other settings: {'; '.join(unlike)}.",
                remedy="Use the same settings to continue it, or name a new folder.",
            )

    def _load(self) -> pa.Table:
        """Read all results on disk, each run once, in canonical order."""
        paths = [self.folder / RESULTS_FILE] if (self.folder / RESULTS_FILE).exists() else []
        paths += sorted(self._parts.glob("*.parquet"))
        tables = [self.plan.schema.empty_table(), *(self._read(path) for path in paths)]
        rows = pa.concat_tables(tables)
        keys = list(zip(rows["cell"].to_pylist(), rows["run"].to_pylist(), strict=True))
        first = {key: place for place, key in reversed(list(enumerate(keys)))}
        if any(number >= self.plan.runs for _, number in first):
            most = 1 + max(number for _, number in first)
            raise InputError(
                f"The folder {self.folder} has results of {most:,} runs a cell, more than the "
                f"{self.plan.runs:,} asked for.",
                remedy=f"Ask for --runs {most}, or name a new folder.",
            )
        order = pa.array([first[key] for key in sorted(first)], pa.int64())
        return rows.take(order).combine_chunks()

    def _read(self, path: Path) -> pa.Table:
        try:
            table = pq.ParquetFile(path).read()
            return table.replace_schema_metadata(None).cast(self.plan.schema)
        except (pa.ArrowInvalid, OSError, ValueError):
            raise GridveilError(
                f"The results in {path} can't be read.",
                remedy="Delete this file; its runs will be done again.",
            ) from None

    def _write_part(self, table: pa.Table) -> int:
        number = self._next
        self._next += 1
        write_atomically(self._part(number), lambda path: pq.write_table(table, path))
        return number

    def _part(self, number: int) -> Path:
        return self._parts / f"{number:06d}.parquet"

    def _join_parts(self) -> None:
        """Replace many small files by one; a crash between the two steps only leaves duplicates."""
        paths = [self._part(number) for number in self._small]
        self._write_part(pa.concat_tables([self._read(path) for path in paths]))
        for path in paths:
            path.unlink()
        self._small = []

    def _release(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Write a file under another name, synchronise it, and rename it to its own."""
    partial = path.with_name(f"{path.name}.partial")
    write(partial)
    synchronise(partial)
    partial.replace(path)
    synchronise(path.parent)


def _hold(folder: Path) -> int | None:
    """Lock the folder until the process ends, however it ends."""
    try:
        import fcntl
    except ImportError:  # Windows has no locks on folders
        return None
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise InputError(
            f"Another process is at work on the study in {folder}.",
            remedy="Wait for it, or name another folder.",
        ) from None
    except OSError:
        pass  # a file system without locks
    return handle


def _differences(found: Any, wanted: Any, name: str = "") -> list[str]:
    """Describe how two nested settings differ."""
    if isinstance(found, dict) and isinstance(wanted, dict):
        keys = [*wanted, *(key for key in found if key not in wanted)]
        return [
            words
            for key in keys
            for words in _differences(found.get(key), wanted.get(key), f"{name} {key}".strip())
        ]
    return [] if found == wanted else [f"{name} was {found!r} and is {wanted!r}"]
