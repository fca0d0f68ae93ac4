"""The studies of ``gridveil study frontier``, from what the user named as a stand-in."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from gridveil.errors import InputError

if TYPE_CHECKING:
    from gridveil.studies.study_plan import Study


def records_study(source: str | None, **given: Any) -> Study:
    """A study of wind releases, on a file of public records or on made-up ones."""
    from gridveil.studies.frontier_wind import FrontierWind
    from gridveil.wind.release import METHODS

    _check_method(given, METHODS)
    if source is None:
        return FrontierWind(**given)
    names = {"speed": "wind_speed", "power": "power"}
    columns = tuple(given.pop(name, default) for name, default in names.items())
    return FrontierWind(
        **given, turbine="", rows=0, noise=0.0, source=source, digest=_digest(source),
        columns=columns,
    )  # fmt: skip


def network_study(source: str, **given: Any) -> Study:
    """A study of grid releases, on a public network."""
    from gridveil.grid.methods import METHODS
    from gridveil.studies.frontier_grid import FrontierGrid
    from gridveil.studies.grid_case import BUILT_IN

    _check_method(given, tuple(METHODS))
    digest = None if source in BUILT_IN else _digest(source)
    return FrontierGrid(**given, source=source, digest=digest)


def _check_method(given: dict[str, Any], methods: tuple[str, ...]) -> None:
    if "method" in given and given["method"] not in methods:
        raise InputError(
            f"There is no method {given['method']!r}.", remedy=f"Use {', '.join(methods)}."
        )


def _digest(source: str) -> str:
    from gridveil.release.bundle import sha256_of

    try:
        return sha256_of(Path(source))
    except OSError as problem:
        raise InputError(f"{source} can't be read: {problem.strerror}.") from None
