"""Render ``report.html`` from a statement and pictures of released data.

The page needs no network and runs no script. Every text goes through Jinja2's escaping: a column
named ``<script>`` is shown, not run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from gridveil.errors import show_exact
from gridveil.privacy.statement import Statement

if TYPE_CHECKING:
    from jinja2 import Template

NOT_PROTECTED = (
    "What is published in clear, and how many entries there are.",
    "Facts that follow from public data and physics (for example that wind makes power).",
    "What the owner's own folder, logs or backups hold: the guarantee covers this bundle.",
    "How long the release took to compute.",
)

_LOADING: Mapping[str, str] = {
    ".csv": "import pandas as pd\n\ndata = pd.read_csv({name!r})",
    ".parquet": "import pandas as pd\n\ndata = pd.read_parquet({name!r})",
}


@dataclass(frozen=True)
class Section:
    """A part of the report that belongs to one kind of release.

    Parameters
    ----------
    title
        The heading.
    text
        A paragraph under it.
    picture
        A ``data:`` address of a picture, or None.
    alt
        The picture in words.
    figures
        Rows of a small table: name and value.
    """

    title: str
    text: str
    picture: str | None = None
    alt: str = ""
    figures: tuple[tuple[str, str], ...] = ()


def report_page(
    statement: Statement, data_files: Sequence[str], sections: Sequence[Section] = ()
) -> str:
    """The text of ``report.html``."""
    return _template().render(
        statement=statement.body,
        valid=statement.dp_valid,
        words=statement.in_words,
        shares=_shares(statement),
        sections=sections,
        loading=[(name, text) for name in data_files if (text := _loading(name))],
        data_files=data_files,
        not_protected=NOT_PROTECTED,
    )


@cache
def _template() -> Template:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("gridveil.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["exact"] = lambda text: show_exact(Fraction(text))
    environment.filters["number"] = lambda value: f"{value:.4g}"
    return environment.get_template("report.html")


def _shares(statement: Statement) -> list[dict[str, Any]]:
    total = statement.epsilon
    return [
        {**one, "percent": f"{float(100 * Fraction(one['epsilon']) / total):.3g}"}
        for one in statement.body["mechanisms"]
    ]


def _loading(name: str) -> str | None:
    template = _LOADING.get(PurePath(name).suffix)
    return None if template is None else template.format(name=name)
