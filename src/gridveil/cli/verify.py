"""``gridveil verify``: what was checked, and what was found, in plain words."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gridveil.cli.common_options import JsonOption, QuietOption
from gridveil.cli.console import out, plain, print_json

_COLOURS = {"strong": "green", "medium": "yellow", "steps": "bright_black", "weak": "red"}
"""Of the line that says how strong a guarantee is: the colours of the report."""

_REPEATED = ("guarantee", "strength", "ledger")
"""Findings that repeat what the statement says: nothing is ok about them if it was changed."""


def command(
    folder: Annotated[Path, typer.Argument(help="The bundle's folder.", show_default=False)],
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Check a bundle as its recipient would.

    Whether it is whole, adds up, and holds what it says. Exit code 0 if all is well, 1 if not.

    Example: [cyan]gridveil verify out/[/]
    """
    raise typer.Exit(run_verify(folder, as_json=as_json, quiet=quiet))


def run_verify(folder: Path, *, as_json: bool, quiet: bool) -> int:
    """Print the findings and return the exit code."""
    from dataclasses import asdict

    from gridveil.release.verification import verify_bundle

    findings = verify_bundle(folder)
    ok = all(finding.ok for finding in findings)
    changed = any(finding.check == "statement" and not finding.ok for finding in findings)
    if as_json:
        print_json({"ok": ok, "findings": [asdict(finding) for finding in findings]})
    else:
        console = out()
        for finding in findings:
            if quiet and finding.ok:
                continue
            colour = _COLOURS[finding.level or "strong"]
            mark = f"[{colour}]ok  [/]" if finding.ok else "[bold red]FAIL[/]"
            if finding.ok and changed and finding.check in _REPEATED:
                mark = "[yellow]??  [/]"
            console.print(f"{mark} {plain(finding.text)}")
        if not quiet:
            # Whole and honest, in the colour of how much that protects.
            sound = next((_COLOURS[one.level] for one in findings if one.level), "green")
            verdict = f"[{sound}]This bundle is sound.[/]"
            verdict = verdict if ok else "[bold red]Do not rely on it.[/]"
            console.print(verdict)
    return 0 if ok else 1
