"""What the commands print: results on standard output, everything else on standard error."""

from __future__ import annotations

import json
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gridveil.errors import GridveilError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

LedgerOption = Annotated[
    Path | None,
    typer.Option(
        "--ledger",
        help="The ledger's file. Default: GRIDVEIL_LEDGER, else the user's data folder.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for a script.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace a bundle that is there.")]


def out() -> Console:
    """Standard output, for results."""
    from rich.console import Console

    return Console(highlight=False, soft_wrap=True)


def err() -> Console:
    """Standard error, for progress and problems."""
    from rich.console import Console

    return Console(stderr=True, highlight=False, soft_wrap=True)


def print_json(value: Any) -> None:
    """Print a value for a script."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))


def table(*columns: str, title: str | None = None) -> Table:
    """An empty table in the house style."""
    from rich import box
    from rich.table import Table

    made = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", pad_edge=False)
    for column in columns:
        made.add_column(column)
    return made


def show_error(error: GridveilError) -> None:
    """Say what is wrong and what to do."""
    from rich.markup import escape

    console = err()
    console.print(f"[bold red]error:[/] {escape(error.what)}")
    if error.remedy:
        console.print(f"       {escape(error.remedy)}")


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
