"""Run a command in this process for an audit, and collect everything that it puts out.

That is the screen, the exit code, warnings, the files that exist afterwards, every byte of the
bundle, and every row of the ledger, except the time and what is random in any run.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Any

from gridveil.auditing.bundle_bytes import folder_parts
from gridveil.auditing.scratch_ledgers import scratch
from gridveil.auditing.transcript import Outcome
from gridveil.privacy.ledger import Ledger
from gridveil.privacy.noise import NoiseSource

DATASET = "audited data"
"""The name of the data in the ledger."""

LEDGER = "ledger.sqlite"
"""The name of the ledger's file in a workplace."""

_BUNDLE = "bundle"
# Columns of the ledger's tables, and keys of its entries, that no two runs share.
_RANDOM = frozenset({"time", "previous", "hash", "salt", "statement"})
# With these variables the output is that of a terminal, which shows how long each step takes.
_TERMINAL = ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE")
_INTERRUPTED = 130


@dataclass(frozen=True)
class Command:
    """A release command on one file.

    Parameters
    ----------
    words
        The words before the file: ``("wind", "release")``.
    options
        The options after it, without output, ledger and dataset.
    """

    words: tuple[str, ...]
    options: tuple[str, ...]

    def release(
        self,
        file: str,
        write: Callable[[Path], None],
        noise: NoiseSource,
        app: Callable[..., Any] | None = None,
    ) -> Outcome:
        """Write a file, release it with this noise, and collect all output.

        Every run is in the same folder with a copy of the same empty ledger, so that paths on the
        screen, and everything that depends on the ledger's number, are the same.

        Parameters
        ----------
        file
            The file's name.
        write
            Writes the file.
        noise
            The noise source of the release.
        app
            The command-line application; gridveil's own by default.
        """
        with workplace() as place:
            write(place / file)
            ledger, bundle = place / LEDGER, place / _BUNDLE
            typed = [*self.words, str(place / file), *self.options, "--dataset", DATASET]
            typed += ["--ledger", str(ledger), "--output", str(bundle), "--yes"]
            parts = dict(run_command(typed, noise, app))
            left = sorted(path.relative_to(place).as_posix() for path in place.rglob("*"))
            parts["files left"] = "\n".join(left).encode()
            parts["ledger"] = ledger_rows(ledger)
            if bundle.is_dir():
                parts |= {f"bundle/{name}": data for name, data in folder_parts(bundle).items()}
        return parts


def run_command(
    typed: list[str], noise: NoiseSource, app: Callable[..., Any] | None = None
) -> Outcome:
    """Run a command in this process; return its exit code, its output and its warnings."""
    from gridveil.cli.release_orders import Listening

    if app is None:
        from gridveil.cli.commands import app as commands

        app = commands
    with listened() as heard:
        try:
            code = app(typed, prog_name="gridveil", obj=Listening(noise))
        except SystemExit as end:
            code = end.code
    if code == _INTERRUPTED:
        raise KeyboardInterrupt
    return {**heard, "exit code": str(code).encode()}


def ledger_rows(path: Path) -> bytes:
    """Read every row of every table of a ledger, without random values and times."""
    with closing(sqlite3.connect(path)) as connection:
        connection.row_factory = sqlite3.Row
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        rows = [
            [name, *(_kept(dict(row)) for row in connection.execute(f'SELECT * FROM "{name}"'))]
            for (name,) in sorted(map(tuple, tables))
        ]
    return json.dumps(rows, indent=1).encode()


def _kept(row: Mapping[str, Any]) -> dict[str, Any]:
    found = {}
    for name, value in row.items():
        if name in _RANDOM:
            continue
        if isinstance(value, str) and value.startswith("{"):
            value = _kept(json.loads(value))
        found[name] = value
    return found


@contextmanager
def workplace() -> Iterator[Path]:
    """Make a folder with an empty ledger, always at the same path, so that runs look the same."""
    place = scratch() / "files"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    shutil.copy(_empty_ledger(), place / LEDGER)
    yield place
    shutil.rmtree(place)


@cache
def _empty_ledger() -> Path:
    return Path(Ledger(scratch() / "empty ledger.sqlite").path)


@contextmanager
def listened() -> Iterator[dict[str, bytes]]:
    """Capture all output and warnings; the dictionary is filled at the end.

    Solvers bypass Python's own streams, so the system's are captured.
    """
    heard: dict[str, bytes] = {}
    before = {name: os.environ.pop(name) for name in _TERMINAL if name in os.environ}
    try:
        with (
            _tapped("stdout", 1, heard),
            _tapped("stderr", 2, heard),
            warnings.catch_warnings(record=True) as warned,
        ):
            warnings.simplefilter("always")
            yield heard
    finally:
        os.environ.update(before)
    said = [f"{one.category.__name__}: {one.message}" for one in warned]
    heard["warnings"] = "\n".join(said).encode()


@contextmanager
def _tapped(name: str, number: int, heard: dict[str, bytes]) -> Iterator[None]:
    stream: IO[str] = getattr(sys, name)
    stream.flush()
    kept = os.dup(number)
    with tempfile.TemporaryFile() as tape:
        own = os.fdopen(os.dup(tape.fileno()), "w", encoding="utf-8", errors="backslashreplace")
        os.dup2(tape.fileno(), number)
        setattr(sys, name, own)
        try:
            yield
        finally:
            own.close()
            setattr(sys, name, stream)
            os.dup2(kept, number)
            os.close(kept)
            tape.seek(0)
            heard[name] = tape.read()
