"""``gridveil demo``: from built-in data to checked bundles, as an owner would make them.

The data is public, so the demo may show what an owner alone may see otherwise: how close a release
comes to the real data.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from gridveil.cli.common_options import QuietOption
from gridveil.cli.console import out
from gridveil.errors import InputError

Say = Callable[[str], None]

_EPSILON = 1
_ROWS, _SHARE = 1000, "15%"
_MODELS, _MEGAWATTS = 1000, 30
_RANGE = (50, 1000)  # MW: where capacities of lines at these voltages lie, whoever's they are


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
    from gridveil.release.bundle import check_target

    for part in (WIND, GRID):
        check_target(output / part.name, force=True)
    if not quiet:
        out().print(
            "Releases of built-in public data, made the way an owner would make them.\n"
            "Nothing leaves this machine.\n"
        )
    found = [_run(part, output, quiet=quiet) for part in (WIND, GRID)]
    if not quiet:
        _show_end(found)


def _run(part: Part, output: Path, *, quiet: bool) -> Shown:
    from gridveil.cli.console import counted_steps
    from gridveil.release.verification import verify_bundle

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
    from gridveil.release.plan import REPORT_FILE

    console = out()
    for shown in found:
        console.print(f"[bold]The two numbers that matter, {shown.bundle.name}[/]")
        for name, (number, words) in (("privacy", shown.privacy), ("accuracy", shown.accuracy)):
            console.print(f"  {name:<9} [bold]{number:>6}[/]  {words}")
        console.print(f"  [bold]The report:[/] {shown.bundle / REPORT_FILE}\n")


def _wind(bundle: Path, ledger: Path, say: Say) -> Shown:
    say("making up records")
    source = _write_source(bundle.parent)
    placed = _release(source, bundle, ledger, say)
    say("comparing with the real records")
    error = _curve_error(placed, source)
    return Shown(
        placed,
        (
            f"{math.exp(_EPSILON):.2f}",
            f"the most that moving a record by {_SHARE} of capacity changes any outcome's odds",
        ),
        (
            f"{error:.1%}",
            "of capacity: the typical distance between the power curves fitted to released and "
            "to real records",
        ),
    )


def _write_source(folder: Path) -> Path:
    import io

    from pyarrow import csv

    from gridveil.wind.demo import demo_records

    made = io.BytesIO()
    csv.write_csv(demo_records(_ROWS), made)
    source = folder / "turbine.csv"
    if source.exists() and source.read_bytes() != made.getvalue():
        raise InputError(
            f"{source} is there already, and is not the demo's.",
            remedy="Name another folder with --output.",
        )
    source.write_bytes(made.getvalue())
    return source


def _release(source: Path, bundle: Path, ledger: Path, say: Say) -> Path:
    from gridveil.wind import read_records, release
    from gridveil.wind.demo import CAPACITY

    say("reading")
    records = read_records(
        source, speed="wind_speed", power="power", capacity=CAPACITY, name="demo turbine"
    )
    made = release(records, epsilon=_EPSILON, alpha=_SHARE, ledger=ledger, progress=say)
    say("writing the bundle and its report")
    return made.write(bundle, force=True)


def _curve_error(bundle: Path, source: Path) -> float:
    from gridveil.wind.evaluation import evaluate

    (turbine,) = evaluate(bundle, source).turbines
    return turbine.curve_error


WIND = Part(
    name="wind",
    title="Wind power records",
    text=f"{_ROWS:,} made-up records of a GE 2.75-103 turbine; each may move by {_SHARE} of "
    f"capacity, epsilon {_EPSILON}",
    steps=9,
    run=_wind,
)


def _grid(bundle: Path, ledger: Path, say: Say) -> Shown:
    from gridveil import grid
    from gridveil.grid.methods import PENALTY
    from gridveil.grid.model_comparison import Reference

    say("sampling models")
    network = grid.cases.rts96(variant="paper")
    population = grid.sample_population(network, _MODELS, costs=(80.0, 100.0))
    made = grid.release(
        network,
        population,
        epsilon=_EPSILON,
        alpha=_MEGAWATTS,
        range=_RANGE,
        dataset="demo grid",
        ledger=ledger,
        progress=say,
    )
    say("writing the bundle and its report")
    placed = made.write(bundle, force=True)
    say("comparing with the real network")
    errors = Reference(network, population).errors(made.data, penalty=PENALTY)
    return Shown(
        placed,
        (
            f"{math.exp(_EPSILON):.2f}",
            f"the most that moving a capacity by {_MEGAWATTS} MW changes any outcome's odds",
        ),
        (
            f"{errors.cost_error:.2f}%",
            f"mean distance of the models' costs; {errors.infeasible:.0f}% of {_MODELS:,} models "
            "infeasible",
        ),
    )


GRID = Part(
    name="grid",
    title="Line capacities",
    text=f"108 lines of RTS-96 at 60% of capacity, {_MODELS:,} optimal power flow models; a "
    f"capacity may move by {_MEGAWATTS} MW, epsilon {_EPSILON}",
    steps=7,
    run=_grid,
)
