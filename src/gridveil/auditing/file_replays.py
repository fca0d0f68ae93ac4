"""Replays from files: twins that differ in private values, and in how these change a file.

The other replays start with data that was read. These start with files: a reader infers types from
values, a number has many spellings, a tool sorts rows by power. Twins have the same public part and
the same layout (format, delimiter, compression, size of row groups, named columns). Everything
else may differ: private values, their types and text, the size of the file, the order of rows if
it is not public. With the same noisy answers all of them must give the same screen, exit code,
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

from gridveil.auditing.checks import Sizes
from gridveil.auditing.command_runs import Command
from gridveil.auditing.transcript import Outcome, Run
from gridveil.auditing.transcript_audits import Replay
from gridveil.auditing.verdicts import Audit, NotRun
from gridveil.privacy.noise import SecureNoise

Write = Callable[[Path], None]
"""A function that writes one of several twins to a path."""


@dataclass(frozen=True)
class Twins:
    """Files for which a command must give the same output.

    Parameters
    ----------
    file
        The name of each file.
    command
        The command that releases them.
    writers
        Functions that write each file, by a few words that say what is special about it.
    """

    file: str
    command: Command
    writers: Mapping[str, Write]

    def runs(self) -> dict[str, Run]:
        """Return a function for each file that releases it, for a replay."""
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
    """Make an audit that records releases and replays them on all others.

    Parameters
    ----------
    name, runs
        The audit's name, and the releases by their names.
    fast
        How many replays a fast audit makes; by default the first release on all others.
    rounds
        How many of the releases a full audit records and replays on all others.
    refused
        Whether all of them must be refused.
    """
    others = len(runs) - 1
    sizes = Sizes(others if fast is None else min(fast, others), others * min(rounds, len(runs)))
    return Replay(name, list(runs.values()), sizes, list(runs), refused)


def installed(name: str, package: str | None, make: Callable[[], Audit]) -> Audit:
    """Make an audit that needs a package, or one that says that the package is not installed."""
    if package is not None:
        try:
            with warnings.catch_warnings():  # an import warns only once, in the first run
                warnings.simplefilter("ignore")
                importlib.import_module(package)
        except ImportError:
            return NotRun(name, "replay", f"{package} is not installed")
    return make()
