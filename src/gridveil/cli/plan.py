"""``gridveil plan``: open the page on which an owner chooses a guarantee."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from gridveil.cli.case_options import (
    AvailabilityOption,
    LoadingOption,
    SnapshotOption,
    SnapshotsOption,
)
from gridveil.cli.common_options import LedgerOption, QuietOption
from gridveil.cli.console import out
from gridveil.errors import InputError


def command(
    public: Annotated[
        Path | None,
        typer.Option(
            help="A file that is public, to measure accuracy on instead of built-in data: records "
            "(CSV, Parquet) or a network (.m, .raw, .json, .nc, .xiidm)."
        ),
    ] = None,
    speed: Annotated[str, typer.Option(help="Its column of wind speed.")] = "wind_speed",
    power: Annotated[str, typer.Option(help="Its column of power.")] = "power",
    capacity: Annotated[
        float | None, typer.Option(help="Its nameplate capacity, in the unit of power.")
    ] = None,
    sep: Annotated[str | None, typer.Option(help="The sign between its fields.")] = None,
    decimal: Annotated[
        str | None, typer.Option(help="Its sign before decimals: . or , (CSV).")
    ] = None,
    encoding: Annotated[
        str | None, typer.Option(help="How its text is stored, if not as UTF-8: cp1252 (CSV).")
    ] = None,
    snapshot: SnapshotOption = None,
    snapshots: SnapshotsOption = None,
    full_availability: AvailabilityOption = False,
    max_loading: LoadingOption = None,
    ledger: LedgerOption = None,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Where to serve the page; 0: any free port.")
    ] = 0,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")
    ] = True,
    quiet: QuietOption = False,
) -> None:
    """Choose alpha and epsilon on a local page; it reads public data only.

    The page shows, on public data that stands in for yours, how accurate a release would be, what
    the guarantee would mean, what is left of your budget, and the exact command to run. It is
    served to this computer alone. Your data is not opened. End it with Ctrl+C.

    Example: [cyan]gridveil plan[/]
    """
    from functools import partial

    from gridveil.planning.planner import Planner
    from gridveil.planning.release_kind import make_kinds
    from gridveil.planning.server import Server

    reading: dict[str, Any] = {"sep": sep, "decimal": decimal, "encoding": encoding}
    reading |= {"snapshot": snapshot, "snapshots": snapshots, "max_loading": max_loading}
    reading |= {"full_availability": full_availability or None}
    known = {name: one for name, one in reading.items() if one is not None}
    if known and public is None:
        raise InputError(
            f"{next(iter(known))} is about a file that is public, and none is named.",
            remedy="Add --public FILE; what is typed on the page is for your own file.",
        )
    make = partial(make_kinds, public, speed=speed, power=power, capacity=capacity, reading=known)
    try:
        server = Server(planner := Planner(make, ledger), port)
    except OSError as problem:
        raise InputError(
            f"The page can't be served on port {port}: {problem.strerror}.",
            remedy="Name another port, or none for any that is free.",
        ) from None
    if not quiet:
        # The address alone on its line, and unstyled, so that it can be copied or read by a script.
        out().print("The page, for this computer alone (end it with Ctrl+C):")
    typer.echo(server.url)
    if browser:
        import webbrowser

        webbrowser.open(server.url)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        if not quiet:
            out().print("\nThe page is closed.")
    finally:
        server.server_close()
        planner.close()
