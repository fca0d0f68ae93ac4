"""``gridveil audit``: what is claimed, what attacks prove, and whether the two agree."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gridveil import __version__
from gridveil.cli.common_options import QuietOption
from gridveil.cli.console import counted, out, table
from gridveil.cli.output_files import VERDICTS, check_output
from gridveil.errors import InputError

if TYPE_CHECKING:
    from gridveil.auditing.verdicts import Verdict


def command(
    fast: Annotated[
        bool, typer.Option("--fast", help="Fewer samples, without the slowest audits.")
    ] = False,
    only: Annotated[
        str | None,
        typer.Option(
            "--only",
            metavar="NAME",
            help="Only audits whose names begin so.",
            show_default=False,
        ),
    ] = None,
    workers: Annotated[int, typer.Option(help="How many processes.", min=1)] = 1,
    to_json: Annotated[
        Path | None,
        typer.Option(
            "--json", metavar="FILE", help="Write the verdicts to this file.", show_default=False
        ),
    ] = None,
    quiet: QuietOption = False,
) -> None:
    """Attack every mechanism and whole releases, and say what that proves.

    All on made-up data, with a ledger that is thrown away. Exit code 0 if no claim is broken, 1 if
    one is. An audit that needs a package which is not installed is shown as not run.

    Example: [cyan]gridveil audit --workers 2[/]
    """
    from gridveil.auditing.catalogue import matching
    from gridveil.auditing.runner import run_audits

    makers = matching(only, fast=fast)
    check_output(to_json, VERDICTS)
    with counted("audit", quiet=quiet) as progress:
        verdicts = run_audits(makers, fast=fast, workers=workers, progress=progress)
    if to_json is not None:
        _write(to_json, _as_json(verdicts, fast=fast))
    _show(verdicts, quiet=quiet)
    raise typer.Exit(1 if any(one.broken for one in verdicts) else 0)


def _show(verdicts: list[Verdict], *, quiet: bool) -> None:
    from rich.markup import escape
    from rich.text import Text

    from gridveil.auditing.runner import FALSE_ALARM
    from gridveil.auditing.verdicts import show_confidence

    console = out()
    broken = [one for one in verdicts if one.broken]
    if not quiet:
        shown = table("audit", "check", "claimed", "proved at least", "samples", "verdict")
        shown.columns[0].no_wrap = True
        for one in verdicts:
            shown.add_row(
                one.name,
                one.check,
                "" if one.claimed is None else f"{one.claimed:g}",
                "" if one.proved is None else f"{one.proved:.2f}",
                f"{one.samples:,}",
                Text(*_mark(one)),
            )
        console.print(shown)
        console.print(
            f"Audits: {sum(one.ran for one in verdicts)}. A correct program fails any of them with "
            f"probability {FALSE_ALARM:g} at most (each proof holds at "
            f"{show_confidence(1 - FALSE_ALARM / len(verdicts))} confidence)."
        )
    for one in broken:
        console.print(f"[bold red]BROKEN[/] {one.name}: {escape(one.words)}")
        console.print(f"       {escape(one.finding)}")
    left_out = [one for one in verdicts if not one.ran]
    if not quiet:
        for one in left_out:
            console.print(f"[yellow]not run[/] {one.name}: {escape(one.finding)}")
    if not quiet and not broken:
        checked = "Every claim" if not left_out else "Every claim that was checked"
        console.print(f"[green]{checked} is consistent with what was seen.[/]")


def _mark(one: Verdict) -> tuple[str, str]:
    """A verdict in a word, and its colour."""
    if not one.ran:
        return "not run", "yellow"
    return ("BROKEN", "bold red") if one.broken else ("consistent", "green")


def _as_json(verdicts: list[Verdict], *, fast: bool) -> str:
    from gridveil.auditing.runner import FALSE_ALARM

    body = {
        "gridveil": __version__,
        "setting": "fast" if fast else "full",
        "false_alarm": FALSE_ALARM,
        "broken": sum(one.broken for one in verdicts),
        "not_run": sum(not one.ran for one in verdicts),
        "verdicts": [one.to_json() for one in verdicts],
    }
    return json.dumps(body, indent=2, ensure_ascii=False) + "\n"


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as problem:
        raise InputError(
            f"{path} can't be written: {problem.strerror}.", remedy="Name another file."
        ) from None
