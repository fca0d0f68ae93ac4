"""The ``gridveil`` script: greets at once, and loads the commands for all else.

The greeting is printed without typer, whose imports take longer than all the rest of it.
"""

from __future__ import annotations

import os
import sys

_FIRST = (
    ("gridveil demo", "watch releases of built-in data being made, in under a minute"),
    ("gridveil plan", "choose a guarantee for your own data, and get the command"),
    ("gridveil verify FOLDER", "check a bundle that you were sent"),
)
_BOLD, _NAME = "1", "36;1"


def run() -> None:
    """Entry point of the ``gridveil`` script."""
    if len(sys.argv) == 1:
        greet()
        return
    from gridveil.cli.commands import app

    app(prog_name="gridveil")


def greet() -> None:
    """Say what this is, and the three things to do first."""
    lines = [
        f"{_styled('GridVeil', _BOLD)} publishes power-system data with a "
        "differential-privacy guarantee that holds.",
        "",
        "Three things to do here:",
        *(f"  {_styled(f'{name:<24}', _NAME)} {words}" for name, words in _FIRST),
        "",
        "gridveil --help lists every command.",
    ]
    sys.stdout.write("\n".join(lines) + "\n")


def _styled(text: str, style: str) -> str:
    """The text in a style, if a person looks at a terminal that has some."""
    plain = os.name == "nt" or "NO_COLOR" in os.environ or not sys.stdout.isatty()
    return text if plain else f"\x1b[{style}m{text}\x1b[0m"
