"""``gridveil grid release --series``: a network's loads over time."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gridveil.cli.console import out, print_json, table
from gridveil.errors import InputError
from gridveil.grid.series.options import METHODS, Series

if TYPE_CHECKING:
    from gridveil.grid import Network, SeriesRelease

SeriesOption = Annotated[
    Path | None,
    typer.Option(
        "--series",
        help="load: values over time beside the network, .parquet or .csv: a column of times and "
        "one for each load or bus, or time, load and power. The case itself for the snapshots of a "
        "PyPSA network.",
        show_default=False,
    ),
]
ProtectOption = Annotated[
    str | None,
    typer.Option(
        "--protect",
        help="--series: what epsilon is for: one entry, or all entries of one load in one calendar "
        "hour, day or week, or altogether. Default: day.",
        show_default=False,
    ),
]
TimeOption = Annotated[
    str | None,
    typer.Option(
        "--time", help="--series: the column of times, if it can't be told.", show_default=False
    ),
]


def check_alone(given: Mapping[str, Any], parameter: str) -> None:
    """Raise `InputError` for options of ``grid release`` that mean nothing for a series."""
    if parameter != "load":
        raise InputError(
            f"--series holds loads, and --parameter is {parameter}.",
            remedy="Write --parameter load.",
        )
    for name, value in given.items():
        if value is not None:
            raise InputError(f"{name} has no meaning for --series.", remedy=f"Leave {name} out.")


def check_method(method: str, *, usual: str) -> None:
    """Raise `InputError` for a method of another release; the usual one counts as left out."""
    if method not in (usual, Series.method):
        raise InputError(
            f"--method {method} releases values of one time.",
            remedy=f"Leave it out, or write --method {Series.method}.",
        )


def refuse_without(protect: str | None, time: str | None, method: str) -> None:
    """Raise `InputError` for options of a series if there is none."""
    given = {"--protect": protect, "--time": time}
    given["--method series"] = method if method in METHODS else None
    for name, value in given.items():
        if value is not None:
            raise InputError(
                f"{name} is for loads over time.", remedy="Name their table with --series FILE."
            )


def series_alpha(alpha: Any) -> Any:
    """The alpha of loads: one number in MW."""
    found = alpha.get("load") if isinstance(alpha, Mapping) and set(alpha) == {"load"} else alpha
    if isinstance(found, Mapping) or str(found).strip().endswith("%"):
        raise InputError(
            "alpha of a series is one amount in MW.", remedy="Write it as --alpha 0.2."
        )
    return found


def described_series(made: SeriesRelease) -> tuple[str, list[str]]:
    """What was released, and which hours can be served."""
    found, clock = [], made.clock
    moved, unserved = int(made.served.moved.sum()), int(made.served.unserved.sum())
    if made.statement.body["settings"]["hours"] == "all":
        found.append(
            f"  {clock.size - unserved:,} of {clock.size:,} hours can be served; {moved:,} "
            "were moved for it."
        )
    for words in made.served.doubts():
        found.append(f"[bold red]WARNING:[/] {words} Check --range and the generators.")
    return f"{len(made.names):,} loads over {clock.days:,} days", found


def evaluate_loads(
    bundle: Path,
    network: Network,
    series: Path,
    time: str | None,
    case: str,
    report: Path | None,
    *,
    as_json: bool,
) -> None:
    """Compare a release of load series with the real one, and show the figures."""
    from rich.markup import escape

    from gridveil.grid import evaluate_series, read_series
    from gridveil.release.bundle import OWNER_MARK

    real = read_series(None if str(series) == case else series, network, time=time)
    found = evaluate_series(bundle, network, real)
    written = None if report is None else found.write_report(report)
    if as_json:
        print_json(found.to_json())
        return
    console = out()
    console.print(f"[bold red]{OWNER_MARK}[/]")
    shown = table("figure", "value")
    for name, value in found.rows():
        shown.add_row(name, value)
    console.print(shown)
    console.print(
        "Do not let these figures decide what to publish: choosing the release that comes closest "
        "to the real data tells more about it than epsilon allows."
    )
    if written is not None:
        console.print(f"The owner's report: {escape(str(written))}")
