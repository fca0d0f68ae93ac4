"""``gridveil verify``: what was checked, and what was found, in plain words."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from gridveil.cli.console import out, print_json
from gridveil.verification import verify_bundle


def run_verify(folder: Path, *, as_json: bool, quiet: bool) -> int:
    """Print the findings and give back the exit code."""
    findings = verify_bundle(folder)
    ok = all(finding.ok for finding in findings)
    if as_json:
        print_json({"ok": ok, "findings": [asdict(finding) for finding in findings]})
    else:
        from rich.markup import escape

        console = out()
        for finding in findings:
            if quiet and finding.ok:
                continue
            mark = "[green]ok  [/]" if finding.ok else "[bold red]FAIL[/]"
            console.print(f"{mark} {escape(finding.text)}")
        if not quiet:
            verdict = "[green]This bundle is sound.[/]" if ok else "[bold red]Do not rely on it.[/]"
            console.print(verdict)
    return 0 if ok else 1
