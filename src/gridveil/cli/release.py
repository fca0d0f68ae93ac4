"""``gridveil release``: make the release that a file describes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gridveil.cli.common_options import ForceOption, JsonOption, QuietOption
from gridveil.cli.release_orders import DryRunOption, YesOption
from gridveil.cli.release_toml import FILE, read_file, release_command


def command(
    ctx: typer.Context,
    file: Annotated[
        Path, typer.Argument(help="The file, from gridveil init or from the plan page.")
    ] = Path(FILE),
    force: ForceOption = False,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Make the release that a file describes.

    It does what gridveil wind release or grid release does with the same options. Paths in the
    file are those of the folder that you are in.

    Example: [cyan]gridveil release release.toml --dry-run[/]
    """
    kind, words = read_file(file)
    spoken = {
        "--force": force,
        "--dry-run": dry_run,
        "--yes": yes,
        "--json": as_json,
        "--quiet": quiet,
    }
    words = [*(word for word, said in spoken.items() if said), *words]
    run = release_command(kind)
    with run.make_context(f"gridveil {kind} release", words, obj=ctx.obj) as inner:
        run.invoke(inner)
