"""The wind part of the demo: made-up records about a real turbine's curve."""

from __future__ import annotations

import math
from pathlib import Path

from gridveil.cli.demo import Part, Say, Shown
from gridveil.errors import InputError

_ALPHA = "15%"
_EPSILON = 1
_ROWS = 1000


def _run(bundle: Path, ledger: Path, say: Say) -> Shown:
    say("making up records")
    source = _write_source(bundle.parent)
    placed = _release(source, bundle, ledger, say)
    say("comparing with the real records")
    error = _curve_error(placed, source)
    return Shown(
        placed,
        (
            f"{math.exp(_EPSILON):.2f}",
            f"the most that moving a record by {_ALPHA} of capacity changes any outcome's odds",
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
    made = release(records, epsilon=_EPSILON, alpha=_ALPHA, ledger=ledger, progress=say)
    say("writing the bundle and its report")
    return made.write(bundle, force=True)


def _curve_error(bundle: Path, source: Path) -> float:
    from gridveil.wind.evaluation import evaluate

    (turbine,) = evaluate(bundle, source).turbines
    return turbine.curve_error


PART = Part(
    name="wind",
    title="Wind power records",
    text=f"{_ROWS:,} made-up records of a GE 2.75-103 turbine; each may move by {_ALPHA} of "
    f"capacity, epsilon {_EPSILON}",
    steps=9,
    run=_run,
)
