"""Progress on the screen: what is being done, and for how long."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from gridveil.cli.console import err


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
        yield lambda words: progress.update(task, description=f"{title}: {words}")


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
