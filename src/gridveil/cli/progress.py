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
