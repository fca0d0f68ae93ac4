"""The options of commands that read a case: its name, and how its file is to be read.

The decorator `takes` gives a command the options of a dataclass such as `Reading`. It calls back
into the command once these are gathered.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

if TYPE_CHECKING:
    from gridveil.grid.model.network import Network

BUILT_IN = {"rts96": None, "rts96-paper": "paper"}
"""Names of built-in networks, and the variant that each stands for."""

CaseArgument = Annotated[
    str,
    typer.Argument(
        metavar="CASE",
        help="A MATPOWER (.m), PSS/E (.raw), pandapower (.json), PyPSA (.nc), XIIDM (.xiidm), "
        "CGMES (.zip), UCTE (.uct) or IEEE-CDF (.txt) file, or the built-in rts96 or rts96-paper.",
        show_default=False,
    ),
]
SnapshotOption = Annotated[
    str | None,
    typer.Option("--snapshot", help="PyPSA: the snapshot to read; needed if there are several."),
]
SnapshotsOption = Annotated[
    str | None,
    typer.Option(
        "--snapshots",
        help="PyPSA, pandapower with profiles: read several, as models: all, 'every 24h', or a "
        "file with one per line.",
    ),
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


@dataclass(frozen=True)
class Reading:
    """How a case is to be read; every command that reads one has these options."""

    snapshot: SnapshotOption = None
    snapshots: SnapshotsOption = None
    full_availability: AvailabilityOption = False
    max_loading: LoadingOption = None

    def network(self, case: str) -> Network:
        """Read the case that was named: a file, or a built-in network."""
        from gridveil.grid import cases, read_case

        if case in BUILT_IN and not Path(case).exists():
            return cases.rts96(variant=BUILT_IN[case])
        return read_case(case, **vars(self))


def takes(kind: type, name: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of a dataclass in place of the parameter that gets it."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(kind).parameters

        @wraps(command)
        def with_options(**given: Any) -> None:
            made = kind(**{one: given.pop(one) for one in own})
            command(**given, **{name: made})

        hints = get_type_hints(kind, include_extras=True)
        hints |= get_type_hints(command, include_extras=True)
        parameters: list[inspect.Parameter] = []
        for one in inspect.signature(command).parameters.values():
            parameters += own.values() if one.name == name else [one]
        shape = inspect.Parameter.KEYWORD_ONLY
        parameters = [one.replace(annotation=hints[one.name], kind=shape) for one in parameters]
        with_options.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        with_options.__annotations__ = {one.name: one.annotation for one in parameters}
        return with_options

    return decorate
