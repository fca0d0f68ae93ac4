"""What the commands print: results on standard output, progress and problems on standard error."""

from __future__ import annotations

import json
import os
import re
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from gridveil.errors import GridveilError
from gridveil.report.visible_text import visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


_EMOJI = re.compile(r":(?=\S*?:)")  # what could begin a name such as :100:
_LONG = 40  # letters of a word that may be a path
_ENDLESS = 100_000  # columns: more than any table has


def out() -> Console:
    """Standard output, for results."""
    return _screen()(highlight=False, soft_wrap=True, emoji=False)


def err() -> Console:
    """Standard error, for progress and problems."""
    return _screen()(stderr=True, highlight=False, soft_wrap=True, emoji=False)


def print_json(value: Any) -> None:
    """Print a value for a script, in ASCII: no name in it can speak to the terminal."""
    typer.echo(json.dumps(value, indent=2))


def table(*columns: str, title: str | None = None) -> Table:
    """An empty table in the house style; its cells are data, shown as they are."""
    from rich import box

    shown = None if title is None else plain(title)
    made = _plain_table()(box=box.SIMPLE_HEAD, title=shown, title_justify="left", pad_edge=False)
    for column in columns:
        made.add_column(column, overflow="fold")
    return made


def plain(text: object) -> str:
    """Data for the screen, on one line: no markup, no sequence that a terminal would obey."""
    from rich.markup import escape

    return no_emoji(escape(visible(str(text)).replace("\n", "\\n").replace("\t", "\\t")))


def no_emoji(markup: str) -> str:
    """Markup that shows ``80:100:`` as it is, also where rich reads names of emoji in it.

    The help of typer does, and can't be told otherwise. Rich looks for names between two tags, so
    a tag that does nothing behind a colon hides them.

    >>> no_emoji("80:100: and 1:2")
    '80:[none][/none]100: and 1:2'
    """
    return _EMOJI.sub(":[none][/none]", markup)


@cache
def _screen() -> type[Console]:
    from rich.console import Console
    from rich.measure import Measurement
    from rich.table import Table
    from rich.text import Text

    class Screen(Console):
        """A console that lets no text speak to the terminal but its own markup."""

        def print(self, *objects: Any, **options: Any) -> None:
            shown = [visible(one) if isinstance(one, str) else one for one in objects]
            if self.is_terminal:
                shown = [self._wrapped(one) if isinstance(one, str) else one for one in shown]
            for one in shown:
                if isinstance(one, Table) and not _has_width(self):
                    endless = self.options.update(width=_ENDLESS)
                    one.width = Measurement.get(self, endless, one).maximum
            super().print(*shown, **options)

        def _wrapped(self, text: str) -> Text:
            """Text whose lines end between words, but for what may be copied: a command, a path.

            Those are left to the terminal, which copies a line that it had to break as one.
            """
            made = Text.from_markup(text, emoji=False)
            lines = made.split("\n", allow_blank=True)
            return Text("\n").join(self._broken(line) for line in lines)

        def _broken(self, line: Text) -> Text:
            words = line.plain.split()
            indent = len(line.plain) - len(line.plain.lstrip()) + 2
            room = self.width - indent
            if line.cell_len <= self.width or any("gridveil" in one for one in words):
                return line
            if max(map(len, words), default=0) > min(room, _LONG):
                return line
            first, *more = line[indent - 2 :].wrap(self, room)
            for part in (first, *more):
                part.rstrip()
            return Text("\n" + " " * indent).join([Text(" " * (indent - 2)) + first, *more])

    return Screen


def _has_width(console: Console) -> bool:
    """Whether lines end somewhere: on a terminal, or where the user says so; never in a file."""
    return console.is_terminal or "COLUMNS" in os.environ


@cache
def _plain_table() -> type[Table]:
    from rich.table import Table

    class PlainTable(Table):
        """A table whose cells are data."""

        def add_row(self, *cells: Any, **options: Any) -> None:
            super().add_row(*[plain(c) if isinstance(c, str) else c for c in cells], **options)

    return PlainTable


def show_error(error: GridveilError, command: str) -> None:
    """Say what is wrong and what to do; the command's help if the error does not know."""
    from rich.markup import escape

    console = err()
    console.print(f"[bold red]error:[/] {escape(error.what)}")
    console.print(f"       {escape(error.remedy or f'See {command} --help for an example.')}")


def show_unexpected(error: BaseException) -> None:
    """Report a bug by its type and place alone: its message may hold private values."""
    from rich.markup import escape

    places = [
        f"{Path(frame.filename).name}:{frame.lineno} ({frame.name})"
        for frame in traceback.extract_tb(error.__traceback__)
        if "gridveil" in Path(frame.filename).parts
    ]
    console = err()
    console.print(f"[bold red]internal error:[/] {type(error).__name__}")
    console.print(f"       at {escape(' > '.join(places[-4:]))}")
    console.print(
        "       This is a bug in GridVeil: please report the two lines above. Its message is "
        "withheld, since it may hold private values."
    )


@contextmanager
def steps(title: str, *, quiet: bool) -> Iterator[Callable[[str], None]]:
    """Show one line that names the step under way; gives a function that names the next."""
    console = err()
    if quiet or not console.is_terminal:
        yield lambda words: None
        return
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(title)
        yield lambda words: progress.update(task, description=f"{title}: {plain(words)}")


@contextmanager
def counted_steps(title: str, total: int, *, quiet: bool) -> Iterator[Callable[[str], None]]:
    """Show a bar that moves on with every step, and stays full when all is done.

    Steps that begin with the same words up to a comma are rounds of one, and move it once.
    """
    console = err()
    if quiet or not console.is_terminal:
        yield lambda words: None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn(" "),
        BarColumn(28),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task(title, total=total)
        done: set[str] = set()

        def say(words: str) -> None:
            done.add(words.partition(",")[0])
            progress.update(task, completed=len(done) - 1, description=plain(words))

        yield say
        progress.update(task, completed=total, description="done")


@contextmanager
def counted(title: str, *, quiet: bool) -> Iterator[Callable[[int, int], None] | None]:
    """Show a bar with the time left; gives a function that takes how many of how many are done."""
    console = err()
    if quiet or not console.is_terminal:
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeRemainingColumn as TimeLeft

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeLeft())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(title, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)
