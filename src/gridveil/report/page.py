"""``report.html``, from a statement and sections of released data; and the owner's report.

A release overrides `Release.sections` and `Release.loading`: sections of text, pictures and tables,
and code to load it. Everything in them is made from released and public data.

A page needs no network and runs no script: its own policy forbids both. Every text goes through
Jinja2's escaping: a column named ``<script>`` is shown, not run. Templates call back into the few
functions of this module that they are given.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from gridveil.errors import show_exact
from gridveil.privacy.guarantee_words import (
    certainty,
    largest_factor,
    range_unit,
    show_certainty,
    show_far,
    show_groups,
    show_step,
    show_steps,
    show_unit,
)
from gridveil.privacy.statement import Statement

if TYPE_CHECKING:
    from jinja2 import Environment

NOT_PROTECTED = (
    "What is published in clear, how many entries there are, and which are missing.",
    "Facts that follow from public data and physics (for example that wind makes power).",
    "What the owner's own folder, logs or backups hold: the guarantee covers this bundle.",
    "How long the release took to compute.",
)

_READERS = {".csv": "read_csv", ".gz": "read_csv", ".parquet": "read_parquet"}
_COLOURS = 4


@dataclass(frozen=True)
class Picture:
    """A picture, such as `charts.Chart` makes.

    Parameters
    ----------
    source
        An inline ``<svg>``, which takes the colours of the page.
    alt
        The picture in words, for those who can't see it.
    caption
        A line under it.
    legend
        What each colour of the page stands for: its class (``"c1"`` to ``"c4"``, ``"c0"`` for
        grey) and words.
    """

    source: str
    alt: str
    caption: str = ""
    legend: Sequence[tuple[str, str]] = ()

    def __post_init__(self) -> None:
        if not self.source.startswith("<svg"):
            raise ValueError("a picture is an inline <svg>")


@dataclass(frozen=True)
class Table:
    """A table: its caption, column names, and rows of text; the first column names the row.

    Cells are numbers, which stay on one line, or with `words` sentences.
    """

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    words: bool = False


@dataclass(frozen=True)
class Section:
    """A part of the report that belongs to one kind of release.

    >>> Section(
    ...     "The released network",
    ...     "Capacities of 120 lines.",
    ...     pictures=[Picture("<svg></svg>", alt="A map of 73 buses.")],
    ...     tables=[Table("Capacities, MW", ("line", "released"), [("1-2", "175")])],
    ... ).title
    'The released network'

    Parameters
    ----------
    title
        The heading.
    text
        A paragraph under it, or several.
    pictures
        Shown in this order under the text.
    figures
        Rows of a small table: name and value.
    tables
        Larger tables, below.
    warnings
        What the reader must not overlook, under the text.
    """

    title: str
    text: str | Sequence[str]
    pictures: Sequence[Picture] = ()
    figures: Sequence[tuple[str, str]] = ()
    tables: Sequence[Table] = ()
    warnings: Sequence[str] = ()

    @property
    def paragraphs(self) -> Sequence[str]:
        """The paragraphs of the text."""
        return (self.text,) if isinstance(self.text, str) else self.text


@dataclass(frozen=True)
class Snippet:
    """Code that loads the release: the tool's name, and a few lines."""

    tool: str
    code: str


def report_page(
    statement: Statement,
    data_files: Sequence[str],
    sections: Sequence[Section] = (),
    loading: Sequence[Snippet] = (),
    quality: Sequence[str] = (),
) -> str:
    """The text of ``report.html``.

    Parameters
    ----------
    statement
        What was guaranteed.
    data_files
        Names of the released files.
    sections
        What this kind of release shows of its data.
    loading
        Code that loads it.
    quality
        How good it is, a sentence each; the noise of every answer if there is nothing to say.
    """
    ledger = statement.body["ledger"]
    return _render(
        "report.html",
        statement=statement.body,
        steps=None if ledger is None else show_steps(ledger),
        valid=statement.dp_valid,
        strength=statement.strength,
        words=statement.in_words,
        epsilon=statement.epsilon,
        shares=_shares(statement),
        changes=_changes(statement),
        sections=sections,
        loading=loading,
        quality=quality or _noise(statement),
        data_files=data_files,
        not_protected=NOT_PROTECTED,
    )


def owner_page(statement: Statement, sections: Sequence[Section], mark: str) -> str:
    """The owner's report: how a release compares with the real data. Never to be published.

    Parameters
    ----------
    statement
        Of the release.
    sections
        The comparisons.
    mark
        What `gridveil verify` finds it by, inside a bundle (`bundle.OWNER_MARK`).
    """
    return _render(
        "owner.html",
        statement=statement.body,
        strength=statement.strength,
        sections=sections,
        mark=mark,
    )


def table_snippets(data_files: Sequence[str], **signs: str) -> tuple[Snippet, ...]:
    """Three lines of pandas for every table among the files; ``signs`` are those of CSV files."""
    written = "".join(f", {name}={sign!r}" for name, sign in signs.items())
    return tuple(
        Snippet("pandas", f"import pandas as pd\n\ndata = pd.{_READERS[suffix]}({name!r}{written})")
        for name in data_files
        if (suffix := PurePath(name).suffix) in _READERS
    )


def shown(value: float, digits: int = 4) -> str:
    """A number for people: so many digits, whatever its size, or a dash if there is none.

    >>> [shown(one) for one in (182277.73, 1234.5, 12.3456, 0.0004321, 0.0, float("nan"))]
    ['182,278', '1,234', '12.35', '0.0004321', '0', '-']
    """
    if not math.isfinite(value):
        return "-"
    return f"{value:,.0f}" if abs(value) >= 10 ** (digits - 1) else f"{value:.{digits}g}"


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("gridveil.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["exact"] = lambda value: show_exact(Fraction(value))
    environment.filters["step"] = _step
    environment.filters["number"] = shown
    environment.filters["factor"] = lambda value: f"{largest_factor(Fraction(value))} times"
    environment.filters["certainty"] = lambda value: show_certainty(certainty(Fraction(value)))
    environment.filters["anchor"] = _anchor
    environment.filters["plain"] = _plain
    environment.filters["sentence"] = lambda text: text[:1].upper() + text[1:]
    return environment


def _render(template: str, **values: Any) -> str:
    return _environment().get_template(template).render(**values)


def _shares(statement: Statement) -> list[dict[str, Any]]:
    total = statement.epsilon
    shares = []
    for number, one in enumerate(statement.body["mechanisms"]):
        share = float(100 * Fraction(one["epsilon"]) / total)
        colour = f"c{number % _COLOURS + 1}"
        shares.append({**one, "share": share, "percent": f"{share:.3g}", "colour": colour})
    return shares


def _noise(statement: Statement) -> list[str]:
    return [
        f"Asked of the private data: {one['query']}, with noise of scale {shown(one['scale'])} "
        f"{one['unit']}."
        for one in statement.body["mechanisms"]
    ]


def _changes(statement: Statement) -> list[tuple[str, Fraction]]:
    """Changes in the private data, small to large, and epsilon for each."""
    guarantee = statement.body["guarantee"]
    found = [
        (
            f"{show_unit(one)} by {show_far(one)}",
            statement.epsilon,
        )
        for one in guarantee["neighbours"]
    ]
    groups = show_groups(guarantee)
    if not groups:
        blocks = {one.get("block", "") for one in guarantee["neighbours"]}
        units = "entries" if "" in blocks else f"such {blocks.pop()}s"
        several = guarantee["epsilon_of_k_entries"].items()
        groups = [(f"{k} {units} at once", Fraction(epsilon)) for k, epsilon in several]
    found += [(f"{words}, each by that much", epsilon) for words, epsilon in groups]
    for one in guarantee["neighbours"]:
        low, high = one["range"]
        where = f"anywhere in [{low:.10g}, {high:.10g}] {range_unit(one['unit'])}"
        words = f"{show_unit(one)}, {where}"
        found.append((words, Fraction(one["epsilon_over_whole_range"])))
    return sorted(found, key=lambda change: change[1])


def _step(one: Mapping[str, Any]) -> str:
    """A step without its unit: ``30``, or ``20%`` if it is a share of each value."""
    return show_step(Fraction(one["alpha"]), one["unit"]).partition(" ")[0]


def _anchor(title: str) -> str:
    """A heading's name for links: letters, digits and dashes."""
    words = "".join(c if c.isascii() and c.isalnum() else " " for c in title.lower()).split()
    return "-".join(["data", *words])


def _plain(value: Any) -> str:
    """A setting as a person would write it."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {_plain(one)}" for name, one in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(_plain(one) for one in value) or "none"
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    return f"{value:.10g}" if isinstance(value, float) else str(value)
