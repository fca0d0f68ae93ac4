"""Replays from files: twins that differ in private values, and in what these leave on a file.

The other replays begin with data that was read. These begin with files: a reader infers types from
values, a number has many spellings, a tool sorts rows by power. Twins have the same public part and
the same layout (format, delimiter, compression, size of row groups, named columns). Everything
else may differ: private values, their types and text, the size of the file, the order of rows where
it is not public. With the same noisy answers all of them must leave the same screen, exit code,
ledger and bundle.

A new format is an entry in the table of `wind_files` or `grid_files`.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from gridveil.auditing.checks import Audit, NotRun, Sizes
from gridveil.auditing.commands import Command
from gridveil.auditing.transcript import Outcome, Replay, Run
from gridveil.privacy.noise import SecureNoise

Write = Callable[[Path], None]
"""Writes one of several twins to a path."""


@dataclass(frozen=True)
class Twins:
    """Files that must not be told apart by what a command makes of them.

    Parameters
    ----------
    file
        The name that each has.
    command
        What releases them.
    writers
        How each is written, by a few words that say what is special about it.
    """

    file: str
    command: Command
    writers: Mapping[str, Write]

    def runs(self) -> dict[str, Run]:
        """The release of each of them, for a replay."""
        return {words: partial(self._release, write) for words, write in self.writers.items()}

    def _release(self, write: Write, noise: SecureNoise) -> Outcome:
        return self.command.release(self.file, write, noise)


def replays(
    name: str,
    runs: Mapping[str, Run],
    *,
    fast: int | None = None,
    rounds: int = 3,
    refused: bool = False,
) -> Audit:
    """Replay each on all others.

    Parameters
    ----------
    name, runs
        The audit's name, and the releases with what they are called.
    fast
        How many replays a fast audit makes; the first on all others by default.
    rounds
        How many of the runs a full audit records, and replays on all others.
    refused
        Whether all of them are meant to be refused.
    """
    others = len(runs) - 1
    sizes = Sizes(others if fast is None else min(fast, others), others * min(rounds, len(runs)))
    return Replay(name, list(runs.values()), sizes, list(runs), refused)


def installed(name: str, package: str | None, make: Callable[[], Audit]) -> Audit:
    """An audit that needs a package; where that is not installed, one that says so."""
    if package is not None:
        try:
            with warnings.catch_warnings():  # those of an import come once, in the first run alone
                warnings.simplefilter("ignore")
                importlib.import_module(package)
        except ImportError:
            return NotRun(name, "replay", f"{package} is not installed")
    return make()
