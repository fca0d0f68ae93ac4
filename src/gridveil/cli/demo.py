"""``gridveil demo``: from built-in data to checked bundles, as an owner would make them.

The data is public, so the demo may show what an owner alone may see otherwise: how close a release
comes to the real data.

Each part is a module that has a `Part`; `_parts` names them in the order in which they run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from gridveil.cli.console import QuietOption, out

Say = Callable[[str], None]


@dataclass(frozen=True)
class Shown:
    """What the demo says of a bundle at the end: the two numbers that matter.

    Parameters
    ----------
    bundle
        Its folder.
    privacy
        A number, and what it means.
    accuracy
        A number, and what it means.
    """

    bundle: Path
    privacy: tuple[str, str]
    accuracy: tuple[str, str]


@dataclass(frozen=True)
class Part:
    """One release of the demo.

    Parameters
    ----------
    name
        Of its bundle's folder.
    title, text
        What is released, and how, in a line each.
    steps
        How often ``run`` says what it does next.
    run
        Makes the release: takes the bundle's folder, the demo's own ledger, and a function that
        says in a few words what is done next.
    """

    name: str
    title: str
    text: str
    steps: int
    run: Callable[[Path, Path, Say], Shown]


def command(
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder to write to.")] = Path(
        "demo-release"
    ),
    quiet: QuietOption = False,
) -> None:
    """Make releases of built-in data, check them, and name their reports.

    They are charged to a ledger of the demo's own, in the same folder.

    Example: [cyan]gridveil demo -o demo-release[/]
    """
    from gridveil.bundle import check_target

    parts = _parts()
    for part in parts:
        check_target(output / part.name, force=True)
    if not quiet:
        out().print(
            "Releases of built-in public data, made the way an owner would make them.\n"
            "Nothing leaves this machine.\n"
        )
    found = [_run(part, output, quiet=quiet) for part in parts]
    if not quiet:
        _show_end(found)


def _parts() -> tuple[Part, ...]:
    from gridveil.cli import demo_grid, demo_wind

    return demo_wind.PART, demo_grid.PART


def _run(part: Part, output: Path, *, quiet: bool) -> Shown:
    from gridveil.cli.progress import counted_steps
    from gridveil.verification import verify_bundle

    if not quiet:
        out().print(f"[bold]{part.title}[/]\n  {part.text}")
    with counted_steps(part.name, part.steps + 1, quiet=quiet) as say:
        shown = part.run(output / part.name, output / "ledger.sqlite", say)
        say("checking the bundle")
        findings = verify_bundle(shown.bundle)
    failed = [one.text for one in findings if not one.ok]
    if failed:
        raise RuntimeError("the demo made a bundle that its own check fails")
    if not quiet:
        out().print(
            f"  [green]ok[/]  the recipient's {len(findings)} checks pass: "
            f"[cyan]gridveil verify {shown.bundle}[/]\n"
        )
    return shown


def _show_end(found: list[Shown]) -> None:
    from gridveil.release import REPORT_FILE

    console = out()
    for shown in found:
        console.print(f"[bold]The two numbers that matter, {shown.bundle.name}[/]")
        for name, (number, words) in (("privacy", shown.privacy), ("accuracy", shown.accuracy)):
            console.print(f"  {name:<9} [bold]{number:>6}[/]  {words}")
        console.print(f"  [bold]The report:[/] {shown.bundle / REPORT_FILE}\n")
