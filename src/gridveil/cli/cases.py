"""The case that a command works on: a file, or a built-in network."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from gridveil.grid.network import Network

CaseArgument = Annotated[
    str,
    typer.Argument(
        metavar="CASE",
        help="A MATPOWER (.m), pandapower (.json) or PyPSA (.nc) file, or the built-in rts96 or "
        "rts96-paper.",
        show_default=False,
    ),
]


SnapshotOption = Annotated[
    str | None,
    typer.Option("--snapshot", help="PyPSA: the snapshot to read; needed if there are several."),
]
AvailabilityOption = Annotated[
    bool,
    typer.Option(
        "--full-availability",
        help="PyPSA: generator limits at full availability, whatever series say.",
    ),
]
LoadingOption = Annotated[
    float | None,
    typer.Option(
        "--max-loading",
        help="pandapower: loading in % that limits lines without max_loading_percent.",
    ),
]


def read(
    case: str,
    *,
    snapshot: str | None = None,
    full_availability: bool = False,
    max_loading: float | None = None,
) -> Network:
    """Read it."""
    from gridveil.grid import cases, read_case

    built_in = {"rts96": None, "rts96-paper": "paper"}
    if case in built_in and not Path(case).exists():
        return cases.rts96(variant=built_in[case])
    return read_case(
        case, snapshot=snapshot, full_availability=full_availability, max_loading=max_loading
    )
