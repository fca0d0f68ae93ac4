"""``gridveil demo``: from built-in data to a checked bundle, as an owner would do it.

The data is made up and public, so the demo may show what an owner alone may see otherwise: how
close the release comes to it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from gridveil.bundle import check_target
from gridveil.cli.console import out
from gridveil.cli.progress import steps
from gridveil.cli.verify import run_verify
from gridveil.release import REPORT_FILE

_ALPHA = "15%"
_EPSILON = 1
_ROWS = 1000


def run_demo(output: Path, *, quiet: bool) -> None:
    """Make the demo's releases, check them, and name their reports."""
    console = out()
    bundle = check_target(output / "wind", force=True)
    if not quiet:
        console.print(
            f"[bold]Wind power records[/]: {_ROWS:,} made-up records of a GE 2.75-103 turbine, one "
            f"record private to {_ALPHA} of capacity, epsilon {_EPSILON}"
        )
    with steps("wind release", quiet=quiet) as progress:
        source = _write_source(output)
        placed = _release_wind(source, bundle, output / "ledger.sqlite", progress)
    run_verify(placed, as_json=False, quiet=quiet)
    if not quiet:
        real, released = _losses(placed, source)
        console.print(
            f"\nLoss of the regression: {released:.3f} on the released records, {real:.3f} on the "
            "real ones (only their owner can know)."
        )
        console.print(f"[bold]The report:[/] {placed / REPORT_FILE}")


def _write_source(output: Path) -> Path:
    from pyarrow import csv

    from gridveil.wind.demo import demo_records

    source = output / "turbine.csv"
    csv.write_csv(demo_records(_ROWS), source)
    return source


def _release_wind(
    source: Path, bundle: Path, ledger: Path, progress: Callable[[str], None]
) -> Path:
    from gridveil.wind import read_records, release
    from gridveil.wind.demo import CAPACITY

    progress("reading")
    records = read_records(
        source, speed="wind_speed", power="power", capacity=CAPACITY, name="demo turbine"
    )
    made = release(records, epsilon=_EPSILON, alpha=_ALPHA, ledger=ledger, progress=progress)
    progress("writing")
    return made.write(bundle, force=True)


def _losses(bundle: Path, source: Path) -> tuple[float, float]:
    from gridveil.wind.evaluation import evaluate

    (turbine,) = evaluate(bundle, source).turbines
    return turbine.real_loss, turbine.released_loss
