"""Commands that are loaded when they are first asked for: ``gridveil --help`` needs none."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator, MutableMapping
from dataclasses import dataclass
from typing import Any

import typer

from gridveil.cli.console import no_emoji


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
            return _without_emoji(typer.main.get_group(holder).commands[self.name])
        holder.command(self.name)(module.command)
        return _without_emoji(typer.main.get_command(holder))


def _without_emoji(command: Any) -> Any:
    """The command, in whose help texts ``80:100:`` stays what it is."""
    for one in (command, *command.params):
        for name in ("help", "short_help", "epilog"):
            if text := getattr(one, name, None):
                setattr(one, name, no_emoji(text))
    for one in getattr(command, "commands", {}).values():
        _without_emoji(one)
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
