"""What can be planned, with built-in data or a public file for a stand-in."""

from __future__ import annotations

from pathlib import Path

from gridveil.errors import InputError
from gridveil.planning.kind import Kind

_TABLES = (".csv", ".gz", ".parquet", ".pq")


def make_kinds(
    public: Path | None = None,
    *,
    speed: str = "wind_speed",
    power: str = "power",
    capacity: float | None = None,
) -> list[Kind]:
    """Every kind of release; the one that the public file belongs to comes first.

    Parameters
    ----------
    public
        A table of records or a network that its owner declared public; None for built-in data.
    speed, power, capacity
        The table's columns, and its nameplate capacity in the unit of power.

    Raises
    ------
    InputError
        If the file can't be read.
    """
    from gridveil.grid import read_case
    from gridveil.planning.grid import Grid
    from gridveil.planning.wind import Wind
    from gridveil.wind import read_records

    if public is None:
        return [Wind(), Grid()]
    if public.suffix not in _TABLES:
        return [Grid(read_case(public)), Wind()]
    if capacity is None:
        raise InputError(
            f"The nameplate capacity of {public} is missing.", remedy="Add --capacity NUMBER."
        )
    return [Wind(read_records(public, speed=speed, power=power, capacity=capacity)), Grid()]
