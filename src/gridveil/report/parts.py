"""What a release adds to the report: sections of text, pictures and tables; and code to load it.

A release overrides `Release.sections` and `Release.loading`. Everything in them is public: it is
made from released and public data.

>>> Section(
...     "The released network",
...     "Capacities of 120 lines.",
...     pictures=[Picture("<svg></svg>", alt="A map of 73 buses.")],
...     tables=[Table("Capacities, MW", ("line", "released"), [("1-2", "175")])],
... ).title
'The released network'
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


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
        """The text, a paragraph each."""
        return (self.text,) if isinstance(self.text, str) else self.text


@dataclass(frozen=True)
class Snippet:
    """Code that loads the release: the tool's name, and a few lines."""

    tool: str
    code: str
