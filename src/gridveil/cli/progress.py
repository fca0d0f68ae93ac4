"""Progress on the screen: what is being done, and for how long."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from gridveil.cli.console import err, plain


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
