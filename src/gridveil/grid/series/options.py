"""The options of a release of load series."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gridveil.errors import InputError
from gridveil.grid.series.queries import MOST_WAVES
from gridveil.release.options import OneOf, Options, Within, option, share


@dataclass(frozen=True)
class Series(Options):
    """Ask for a few sums of the loads, and rebuild the series from the noisy answers.

    Parameters
    ----------
    typical
        A public guess of the mean load in MW, which decides what is worth asking. By default eight
        times alpha.
    waves
        The number of daily profiles asked for the total load, an odd number. More profiles show
        narrower peaks, with more noise.
    texture
        How far an hour of a load differs from its released typical course, as a share of its level:
        a model adds that much spread, and the release says so. A public guess; 0 adds nothing.
    hours
        ``"all"``: the network can serve every hour of the released series. ``"none"``: this is not
        checked.
    workers
        Processes that may share the hours; they are started only if that is faster.
    """

    method: ClassVar[str] = "series"

    typical: float | None = option(
        None,
        help="public guess of the mean load in MW",
        check=Within(1e-9, 1e9),
        example="1.5",
        default="eight times alpha",
    )
    waves: int = option(
        11,
        help="profiles of a day that the total load is asked for, an odd number",
        check=Within(1, MOST_WAVES, whole=True),
        read=int,
        example="11",
    )
    texture: float = option(
        0.0,
        help="model-made spread from hour to hour that is added to every load, a share of it",
        check=Within(0, 1),
        read=share,
        example="10%",
    )
    hours: str = option(
        "all",
        help="which hours of the released series the network must serve: all or none",
        check=OneOf(("all", "none")),
        read=str,
        example="all",
    )
    workers: int = option(
        1,
        help="processes that may share the hours, if that is faster",
        check=Within(1, 256, whole=True),
        read=int,
        example="4",
    )

    def _check_together(self) -> None:
        if self.waves % 2 == 0:
            raise InputError(
                f"waves is {self.waves}.",
                remedy="Give an odd number: a constant, and two profiles for each wave.",
            )


METHODS: dict[str, type[Series]] = {Series.method: Series}
"""The methods of releases of load series, by name."""
