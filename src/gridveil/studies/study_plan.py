"""The base class of studies, and their plan: cells of public settings, each with many seeded runs.

A run is determined by its cell and its number: its seed is a hash of the study's seed and these
two. So its result does not depend on which process computes it, when, or what else is computed. The
noise is seeded, and the data is public or made up: a study is not a release, and nothing in it is
private.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from importlib import metadata
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from gridveil import __version__
from gridveil.errors import InputError

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


Cell = Mapping[str, str | int | float]
"""The public settings of a run: method, alpha and the like."""

Measures = dict[str, Any]
"""The measures of one run, by name."""

NOTE = "Seeded noise: a study, not a release. It carries no privacy guarantee."

_FORMAT = 1
_LIBRARIES = ("clarabel", "highspy", "numpy", "scipy")


class Study(ABC):
    """One study: what is varied, what a run does, and how the results are reported.

    A study is a frozen dataclass of public settings that can be pickled: workers get a copy.
    """

    name: ClassVar[str]
    measures: ClassVar[Mapping[str, pa.DataType]]

    def settings(self) -> dict[str, Any]:
        """Return everything that determines the results, ready for JSON."""
        return asdict(self)  # type: ignore[call-overload, no-any-return]

    @abstractmethod
    def cells(self) -> list[Cell]:
        """List the cells in the order of the table; all have the same keys and types of values."""

    @abstractmethod
    def prepare(self) -> Any:
        """Prepare what all runs share: public data, computed once and sent to every worker."""

    def world(self, shared: Any) -> Any:
        """Make what one worker keeps between its runs; a run must not change later runs by it."""
        return shared

    @abstractmethod
    def run(self, world: Any, cell: Cell, seed: int) -> Measures:
        """Make one run, and measure it."""

    @abstractmethod
    def draw(self, table: pd.DataFrame, shared: Any) -> Figure:
        """Draw the figure."""

    @abstractmethod
    def words(self, table: pd.DataFrame, shared: Any) -> str:
        """Write the summary, in Markdown."""


@dataclass(frozen=True)
class Run:
    """One run: the place of its cell, its number in the cell, and its seed."""

    place: int
    number: int
    seed: int

    @property
    def key(self) -> tuple[int, int]:
        """The cell and number that identify the run."""
        return self.place, self.number


@dataclass(frozen=True)
class Plan:
    """A study with its number of runs per cell and its seed."""

    study: Study
    runs: int
    seed: int = 0

    def __post_init__(self) -> None:
        if self.runs < 1:
            raise InputError(f"A study needs 1 run or more, not {self.runs}.")
        if self.seed < 0:
            raise InputError(f"A seed is a whole number of 0 or more, not {self.seed}.")

    @cached_property
    def cells(self) -> list[Cell]:
        """The study's cells."""
        return self.study.cells()

    def all_runs(self) -> list[Run]:
        """List every run; all cells' first runs come first, to estimate the time left well."""
        return [
            Run(place, number, run_seed(self.seed, cell, number))
            for number in range(self.runs)
            for place, cell in enumerate(self.cells)
        ]

    @property
    def schema(self) -> pa.Schema:
        """The columns of the results: the cell, the run, and the measures."""
        kinds = {str: pa.string(), int: pa.int64(), float: pa.float64()}
        settings = {name: kinds[type(value)] for name, value in self.cells[0].items()}
        columns = {"cell": pa.int64(), **settings, "run": pa.int64(), "seed": pa.uint64()}
        return pa.schema({**columns, **self.study.measures})

    def row(self, run: Run, measured: Measures) -> dict[str, Any]:
        """Make one row of the results."""
        known = {"cell": run.place, "run": run.number, "seed": run.seed}
        return {**known, **self.cells[run.place], **measured}

    def header(self) -> dict[str, Any]:
        """Return the facts that must be equal for runs to belong in one table."""
        return {
            "note": NOTE,
            "format": _FORMAT,
            "study": self.study.name,
            "settings": json.loads(json.dumps(self.study.settings())),
            "seed": self.seed,
            "versions": {"gridveil": __version__}
            | {name: metadata.version(name) for name in _LIBRARIES},
        }


def run_seed(seed: int, cell: Cell, number: int) -> int:
    """Compute a run's own seed, of 64 bits.

    >>> run_seed(0, {"alpha": 0.1}, 7)
    3901151104515634557
    """
    text = json.dumps([seed, dict(cell), number], sort_keys=True)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
