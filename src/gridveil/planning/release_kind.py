"""What the page knows of a kind of release: its settings, its stand-in, its command.

An adapter (`planning.wind`, `planning.grid`) is a subclass of `Kind`. It never opens the owner's
file: what she types about it is text for the command.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

from gridveil.errors import InputError, show_exact
from gridveil.planning.choice import Choice
from gridveil.privacy.adjacency import Adjacency
from gridveil.privacy.exact_numbers import exact
from gridveil.release.options import Options
from gridveil.report.page import Picture

_TABLES = (".csv", ".gz", ".parquet", ".pq")


@dataclass(frozen=True)
class Option:
    """One of several things to choose from: its name in commands, a title, and a line of text."""

    name: str
    title: str
    text: str = ""


@dataclass(frozen=True)
class Metric:
    """How far a release is from the stand-in, in one number; less is better.

    Parameters
    ----------
    name, title, unit
        The number's.
    text
        What it is, in a sentence.
    """

    name: str
    title: str
    unit: str
    text: str


@dataclass(frozen=True)
class Steps:
    """A kind of steps: amounts, shares of each value, or one for each public class.

    Parameters
    ----------
    name, title
        On the page.
    alphas
        From the lowest to the highest of the slider; none for no slider.
    alpha
        The first choice.
    unit
        What stands behind the field.
    """

    name: str
    title: str
    alphas: tuple[str, ...]
    alpha: str
    unit: str


@dataclass(frozen=True)
class Parameter:
    """A private parameter, and the alphas that make sense for it.

    Parameters
    ----------
    name, title
        In commands, and for people.
    unit
        Of alpha on the page.
    alphas
        From the lowest to the highest of the slider.
    alpha
        The first choice.
    meaning
        What alpha means, in a sentence.
    range_hint
        What to type for the public range; empty if the range is fixed.
    steps
        The kinds of steps to choose from, if there are several.
    """

    name: str
    title: str
    unit: str
    alphas: tuple[str, ...]
    alpha: str
    meaning: str
    range_hint: str = ""
    steps: tuple[Steps, ...] = ()


T = TypeVar("T", Option, Parameter)


@dataclass(frozen=True)
class Field:
    """A text that the owner types for the command: its name, title, first value and a hint."""

    name: str
    title: str
    value: str
    hint: str = ""
    optional: bool = False


@dataclass(frozen=True)
class SizeTable:
    """What can be told of entries of the stand-in by size, and a warning if alpha does not fit."""

    title: str
    rows: Sequence[tuple[str, ...]]
    warning: str | None


@dataclass(frozen=True)
class Share:
    """One mechanism's part of epsilon, in percent."""

    query: str
    percent: float


@dataclass(frozen=True)
class Run:
    """One seeded release of the stand-in.

    Parameters
    ----------
    values
        A number for each metric; none if it can't be measured.
    shares
        Where epsilon went.
    pictures
        The release beside the stand-in, one picture for each private parameter.
    """

    values: Mapping[str, float]
    shares: Sequence[Share]
    pictures: Sequence[Picture]


class Session(ABC):
    """A choice with everything worked out that its runs share."""

    @abstractmethod
    def run(self, seed: int) -> Run:
        """Make a seeded release of the stand-in, and measure it."""


class Kind(ABC):
    """A kind of release."""

    name: str
    title: str
    parameters: tuple[Parameter, ...]
    methods: tuple[Option, ...]
    fields: tuple[Field, ...]
    size: tuple[str, int, int, int]
    """What the stand-in's size counts, its least, first and largest value; all the same: fixed."""

    @abstractmethod
    def effort(self, choice: Choice) -> tuple[int, int]:
        """How many runs measure a choice, and each other epsilon of the chart (0: no chart)."""

    @property
    @abstractmethod
    def stand_in(self) -> str:
        """The public data that accuracy is measured on, in a sentence."""

    @abstractmethod
    def metrics(self, choice: Choice) -> tuple[Metric, ...]:
        """What accuracy is measured by; the chart over epsilon shows the first."""

    def alpha(self, parameter: Parameter, text: str) -> Any:
        """Alpha as the command line reads it; a share is counted in percent here."""
        if parameter.unit == "%":
            return exact(f"{text.removesuffix('%').strip()}%", name="alpha")
        return exact(text, name="alpha", unit=parameter.unit)

    def sizes(self, choice: Choice) -> Sequence[SizeTable]:
        """What can be told of a small, a median and a large entry, if they differ in size."""
        return ()

    def ranges(self, name: str, text: str) -> tuple[float, float]:
        """The public range that the owner typed for a parameter, or `InputError`."""
        raise InputError(f"The range of {name} is fixed.", remedy="Leave it out.")

    def check_method(self, choice: Choice) -> None:
        """Raise `InputError` if the method can't release what is private."""
        return

    def check_field(self, name: str, fields: Mapping[str, str], choice: Choice | None) -> None:
        """Raise `InputError` for a text that the command would not take.

        The rest of the choice may have a fault of its own, and is None then.
        """
        return

    @abstractmethod
    def neighbours(self, choice: Choice) -> Sequence[Adjacency]:
        """Who counts as a neighbour, or `InputError` for an alpha that can't be."""

    def charged(self, choice: Choice, fields: Mapping[str, str]) -> Sequence[Adjacency]:
        """The same as the ledger would be told it by the release."""
        return self.neighbours(choice)

    @abstractmethod
    def session(self, choice: Choice) -> Session:
        """Get ready for the runs of a choice."""

    @abstractmethod
    def command(self, choice: Choice, fields: Mapping[str, str]) -> list[str]:
        """The command that makes the release, word by word."""

    @abstractmethod
    def exposure(self, choice: Choice, fields: Mapping[str, str]) -> tuple[list[str], list[str]]:
        """What the release keeps private and publishes in clear, in the ledger's words."""

    def to_json(self) -> dict[str, Any]:
        """What the page needs to draw its controls."""
        counts, least, first, most = self.size
        return {
            "name": self.name,
            "title": self.title,
            "parameters": [asdict(one) for one in self.parameters],
            "methods": [vars(one) for one in self.methods],
            "fields": [vars(one) for one in self.fields],
            "size": {"counts": counts, "least": least, "first": first, "most": most},
            "stand_in": self.stand_in,
        }

    def parameter(self, name: str) -> Parameter:
        """One of the kind's parameters by its name."""
        return _named(self.parameters, name, "parameter")

    def method(self, name: str) -> Option:
        """One of the kind's methods by its name."""
        return _named(self.methods, name, "method")


def _named(options: Sequence[T], name: str, what: str) -> T:
    for one in options:
        if one.name == name:
            return one
    raise InputError(f"There is no {what} {name[:40]!r}.", remedy="Choose one from the list.")


def method_options(methods: Mapping[str, type[Options]]) -> tuple[Option, ...]:
    """The methods to choose from, each with the first line of what its class says."""
    return tuple(
        Option(name, name, (kind.__doc__ or "").partition("\n")[0])
        for name, kind in methods.items()
    )


def file_word(text: str) -> str:
    """A file name that no command takes for an option."""
    return f"./{text}" if text.startswith("-") else text


def percent(value: Fraction) -> str:
    """A share as the commands take it: ``15%``."""
    return f"{show_exact(100 * value)}%"


def command_line(words: Sequence[str]) -> str:
    """Words as one line for this computer's shell."""
    return subprocess.list2cmdline(words) if os.name == "nt" else shlex.join(words)


def make_kinds(
    public: Path | None = None,
    *,
    speed: str = "wind_speed",
    power: str = "power",
    capacity: float | None = None,
    reading: Mapping[str, Any] | None = None,
) -> list[Kind]:
    """Every kind of release; the one that the public file belongs to comes first.

    Parameters
    ----------
    public
        A table of records or a network that its owner declared public; None for built-in data.
    speed, power, capacity
        The table's columns, and its nameplate capacity in the unit of power.
    reading
        Further options of `read_records` or `read_case`.

    Raises
    ------
    InputError
        If the file can't be read.
    """
    from gridveil.grid import read_case
    from gridveil.grid.io import OPTIONS
    from gridveil.planning.grid import Grid
    from gridveil.planning.wind import Wind
    from gridveil.wind import read_records

    if public is None:
        return [Wind(), Grid()]
    given = dict(reading or {})
    network = public.suffix not in _TABLES
    for name in given:
        if (name in OPTIONS) != network:
            raise InputError(
                f"{name} is for {'tables of records' if network else 'networks'}.",
                remedy=f"Leave {name} out.",
            )
    if network:
        return [Grid(read_case(public, **given)), Wind()]
    if capacity is None:
        raise InputError(
            f"The nameplate capacity of {public} is missing.", remedy="Add --capacity NUMBER."
        )
    records = read_records(public, speed=speed, power=power, capacity=capacity, **given)
    return [Wind(records), Grid()]
