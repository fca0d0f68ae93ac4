"""Write the command reference from the command line itself, when the site is built."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

_PLACE = "<!-- the commands -->"
_MARKUP = re.compile(r"\[/?[a-z ]*\]")
_EXAMPLE = re.compile(r"Example:\s*(.+)", re.DOTALL)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put the reference in its place."""
    return markdown.replace(_PLACE, "\n".join(reference())) if _PLACE in markdown else markdown


def reference() -> Iterator[str]:
    """The Markdown of every command, group by group."""
    import typer

    from gridveil.cli.commands import app

    root: Any = typer.main.get_command(app)
    yield from _options(root, "gridveil")
    for name, command in sorted(root.commands.items()):
        if hasattr(command, "commands"):
            yield f"## gridveil {name}\n\n{_plain(command.help)}\n"
            for part, inner in command.commands.items():
                yield from _command(inner, f"gridveil {name} {part}", "###")
        else:
            yield from _command(command, f"gridveil {name}", "##")


def _command(command: Any, path: str, heading: str) -> Iterator[str]:
    words = _plain(command.help)
    example = _EXAMPLE.search(words)
    yield f"{heading} {path}\n"
    yield _EXAMPLE.sub("", words).strip() + "\n"
    if example:
        yield f"```bash\n{' '.join(example[1].split())}\n```\n"
    yield from _options(command, path)


def _options(command: Any, path: str) -> Iterator[str]:
    shown = [one for one in command.params if not getattr(one, "hidden", False)]
    rows = [_row(one) for one in shown if one.name not in _SHELL]
    if rows:
        yield f"| {'argument or option' if path != 'gridveil' else 'option'} | meaning | default |"
        yield "|---|---|---|"
        yield from rows
        yield ""


_SHELL = ("install_completion", "show_completion", "help")


def _row(parameter: Any) -> str:
    names = ", ".join(parameter.opts)
    if parameter.param_type_name == "argument":
        names = parameter.metavar or str(parameter.name).upper()
    value = parameter.default
    if parameter.required:
        default = "required"
    elif value is None or value is False or value in ((), []) or callable(value):
        default = ""
    else:
        default = f"`{value}`"
    return f"| `{names}` | {_plain(parameter.help).replace('|', '&#124;')} | {default} |"


def _plain(text: str | None) -> str:
    """Help without the marks that colour it."""
    return _MARKUP.sub("", (text or "").replace("\b", "")).strip()
