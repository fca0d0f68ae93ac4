"""The root of all commands: each is loaded when it is asked for, and its errors reach a person.

``gridveil --help`` loads none.

Exit codes: 0 for success, 1 for a failed check or an aborted release, 2 for bad input, 3 for a
refusal by the ledger, 130 for an interrupt.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterable, Iterator, MutableMapping
from dataclasses import dataclass
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from gridveil import __version__
from gridveil.cli.console import no_emoji, show_error, show_unexpected
from gridveil.cli.main import greet
from gridveil.errors import GridveilError


@dataclass(frozen=True)
class Command:
    """A command of the root group.

    It lives in ``gridveil.cli.<name>``, which has either an ``app`` (a `typer.Typer` with commands
    of its own) or a function ``command``.

    Parameters
    ----------
    name
        What the user types.
    help
        One line for ``gridveil --help``: the first of the command's own help.
    """

    name: str
    help: str

    def load(self) -> Any:
        """Import the module and build the command."""
        module = importlib.import_module(f"gridveil.cli.{self.name}")
        holder = typer.Typer(add_completion=False, rich_markup_mode="rich")
        if hasattr(module, "app"):
            holder.add_typer(module.app, name=self.name)
            return _shown_well(typer.main.get_group(holder).commands[self.name])
        holder.command(self.name)(module.command)
        return _shown_well(typer.main.get_command(holder))


def _shown_well(command: Any) -> Any:
    """The command, in whose help ``80:100:`` stays what it is, and lines end where the screen does.

    Typer keeps the ends of lines of a docstring, and breaks these lines once more.
    """
    for one in (command, *command.params):
        for name in ("help", "short_help", "epilog"):
            if text := getattr(one, name, None):
                parts = inspect.cleandoc(no_emoji(text)).split("\n\n")
                setattr(one, name, "\n\n".join(part.replace("\n", " ") for part in parts))
    for one in getattr(command, "commands", {}).values():
        _shown_well(one)
    return command


class LazyCommands(MutableMapping[str, Any]):
    """The root group's commands by name; looking one up loads it."""

    def __init__(self, table: Iterable[Command]) -> None:
        self._table = {one.name: one for one in table}
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded:
            self._loaded[name] = self._table[name].load()
        return self._loaded[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._loaded[name] = command

    def __delitem__(self, name: str) -> None:
        del self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*self._table, *self._loaded]))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __contains__(self, name: object) -> bool:
        return name in self._table or name in self._loaded


# One line per command, under the heading that the help shows it under.
COMMANDS = {
    "Start here": (
        Command("demo", "Make releases of built-in data, check them, and name their reports."),
        Command("plan", "Choose alpha and epsilon on a local page; it reads public data only."),
    ),
    "Release": (
        Command("init", "Ask a few questions about a release, and write them to a file."),
        Command("release", "Make the release that a file describes."),
        Command("wind", "Release wind power records."),
        Command("grid", "Release networks; populations of optimal power flow."),
    ),
    "Check and keep count": (
        Command("verify", "Check a bundle as its recipient would."),
        Command("ledger", "See, cap and check what has been spent."),
        Command("audit", "Attack every mechanism and whole releases, and say what that proves."),
    ),
    "Research": (
        Command("study", "The paper's figures with correct privacy, and ours beside them."),
    ),
}


class Commands(TyperGroup):
    """The root group: loads a command when it is run, and turns errors into exit codes."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = LazyCommands(one for part in COMMANDS.values() for one in part)

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of all commands, without loading any."""
        return list(self.commands)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Show every command by its line in the table: none needs to be loaded for that."""
        parts = {title: [(one.name, one.help) for one in part] for title, part in COMMANDS.items()}
        parts["Options"] = [
            (", ".join(one.opts), getattr(one, "help", "")) for one in self.get_params(ctx)
        ]
        width = max(len(name) for rows in parts.values() for name, _ in rows)
        typer.echo(f"\nUsage: {ctx.command_path} COMMAND ...\n\n{self.help}")
        for title, rows in parts.items():
            typer.secho(f"\n{title}", bold=True)
            for name, words in rows:
                typer.echo(f"  {_name(f'{name:<{width}}')}  {words}")
        typer.echo(
            "\nEvery command has --help with an example: "
            f"{_name(f'{ctx.command_path} wind release --help')}\n"
            "Exit codes: 0 success, 1 a failed check, 2 bad input, 3 refused by the ledger.\n"
        )

    def invoke(self, ctx: Any) -> Any:
        """Run a command; no traceback reaches the user."""
        try:
            return super().invoke(ctx)
        except GridveilError as error:
            show_error(error, f"{ctx.command_path} {ctx.invoked_subcommand}")
            raise typer.Exit(error.exit_code) from None
        except KeyboardInterrupt:
            typer.echo(
                "\nInterrupted. No half-made bundle is left; a charge that was made stays spent "
                "(gridveil ledger show).",
                err=True,
            )
            raise typer.Exit(130) from None
        except BrokenPipeError:
            raise  # nobody reads on, as in `gridveil ... | head`: click ends it without a word
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
        greet()


def _name(text: str) -> str:
    return typer.style(text, fg="cyan", bold=True)
