"""The ``gridveil`` command, and how its errors reach a person.

Exit codes: 0 for success, 1 for a failed check or an aborted release, 2 for bad input, 3 for a
refusal by the ledger, 130 for an interrupt.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from gridveil import __version__
from gridveil.cli import grid, ledger, wind
from gridveil.cli.console import JsonOption, QuietOption, show_error, show_unexpected
from gridveil.errors import GridveilError

_GREETING = """\
[bold]GridVeil[/] publishes power-system data with a differential-privacy guarantee that holds.

Three things to do here:
  [bold cyan]gridveil demo[/]             make a release of built-in data, and its report
  [bold cyan]gridveil verify FOLDER[/]    check a bundle that you were sent
  [bold cyan]gridveil ledger show[/]      see how much epsilon each of your datasets has spent

[dim]gridveil --help lists every command.[/]"""


class Commands(TyperGroup):
    """The root group: turns errors into words and exit codes, never into a traceback."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except GridveilError as error:
            show_error(error)
            raise typer.Exit(error.exit_code) from None
        except KeyboardInterrupt:
            typer.echo(
                "\nInterrupted. No half-made bundle is left; a charge that was made stays spent "
                "(gridveil ledger show).",
                err=True,
            )
            raise typer.Exit(130) from None
        except Exception as error:
            if type(error).__module__.startswith(("typer.", "click.")):
                raise  # usage errors and exits are theirs to show
            show_unexpected(error)
            raise typer.Exit(1) from None


app = typer.Typer(
    cls=Commands,
    no_args_is_help=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    pretty_exceptions_show_locals=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(wind.app, name="wind")
app.add_typer(grid.app, name="grid")
app.add_typer(ledger.app, name="ledger")


def run() -> None:
    """Entry point of the ``gridveil`` script."""
    app(prog_name="gridveil")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"gridveil {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def root(
    ctx: typer.Context,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Publish power-system data with a differential-privacy guarantee that holds."""
    if ctx.invoked_subcommand is None:
        from gridveil.cli.console import out

        out().print(_GREETING)


@app.command()
def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder to write to.")] = Path(
        "demo-release"
    ),
    quiet: QuietOption = False,
) -> None:
    """Make a release of built-in data, with a ledger of its own, and name its report.

    Example: [cyan]gridveil demo -o demo-release[/]
    """
    from gridveil.cli.demo import run_demo

    run_demo(output, quiet=quiet)


@app.command()
def verify(
    folder: Annotated[Path, typer.Argument(help="The bundle's folder.", show_default=False)],
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Check a bundle as its recipient would. Exit code 0 if all is well, 1 if not.

    Example: [cyan]gridveil verify out/[/]
    """
    from gridveil.cli.verify import run_verify

    raise typer.Exit(run_verify(folder, as_json=as_json, quiet=quiet))
