"""Every hour of a released series served: the hours are the models, and each has loads of its own.

Capacities, generators and costs are public, so whether loads can be served is a question about
released and public data: it costs nothing to ask for every hour. Nothing ties the hours to each
other, so each hour that is not served is moved by itself to the nearest loads that are, and workers
can share the hours.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import as_completed
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from gridveil.grid.model.population import Population
from gridveil.grid.model.problem import ReleaseProblem
from gridveil.grid.model.public import PublicNetwork
from gridveil.grid.opf.engine import Solutions, solve_population
from gridveil.grid.opf.workers import processes
from gridveil.grid.restoration.master import Aim, Unsolved
from gridveil.grid.restoration.project import serve
from gridveil.release.plan import Progress, silent

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

_MANY = 0.1  # of all hours: more that are moved mean that network and loads do not fit
_AT_ONCE = 20  # hours that a worker moves before it reports


@dataclass(frozen=True, eq=False)
class Served:
    """A series whose hours can be served.

    Parameters
    ----------
    values
        ``(hours, loads)``.
    moved
        Which hours were moved.
    unserved
        Which could not be served by any loads in the public range.
    """

    values: Floats
    moved: Bools
    unserved: Bools

    def doubts(self) -> list[str]:
        """What the reader of a release must know: hours that can't be served, or were moved."""
        hours, moved, unserved = len(self.moved), int(self.moved.sum()), int(self.unserved.sum())
        found = []
        if unserved:
            found.append(f"{unserved:,} of {hours:,} hours can't be served by the network.")
        if moved > _MANY * hours:
            found.append(
                f"{moved:,} of {hours:,} hours were moved so that the network serves them: its "
                "generators and limits may not be those of all these hours."
            )
        return found


def solve_hours(
    public: PublicNetwork,
    values: Floats,
    *,
    keep: tuple[str, ...] = ("cost",),
    workers: int | None = None,
    progress: Progress = silent,
) -> Solutions:
    """The dispatch of every hour, on a network with these loads, ``(hours, private entries)``."""
    load = np.zeros((len(values), len(public.buses)))
    load[:, public.support["load"]] = values
    # Loads of 1 MW, times what they are: multipliers of released numbers, which are public.
    ones = public.with_values(np.ones(public.entries))

    def said(done: int, of: int) -> None:
        progress(f"solving every hour: {done:,} of {of:,}")

    return solve_population(
        ones, Population(len(values), load=load), keep=keep, workers=workers, progress=said
    )


def serve_hours(
    public: PublicNetwork,
    values: Floats,
    price: Fraction,
    decimals: int,
    *,
    workers: int = 1,
    progress: Progress = silent,
) -> Served:
    """Move every hour that can't be served to the nearest loads that can be.

    A MW counts less at a large load: each is moved by about the same share.
    """
    cost = solve_hours(
        public, values, workers=workers if workers > 1 else None, progress=progress
    ).cost
    short = np.flatnonzero(~np.isfinite(cost))
    moved, unserved = np.zeros(len(values), dtype=bool), np.zeros(len(values), dtype=bool)
    found = values.copy()
    moved[short] = True
    chunks = [short[at : at + _AT_ONCE] for at in range(0, len(short), _AT_ONCE)]
    bare = replace(public, source=None, changes=())
    done = 0
    for places, (loads, failed) in _moved(bare, values, price, decimals, chunks, workers):
        found[places], unserved[places] = loads, failed
        done += len(places)
        progress(f"serving every hour: {done:,} of {len(short):,} moved")
    return Served(found, moved, unserved)


def _moved(
    public: PublicNetwork,
    values: Floats,
    price: Fraction,
    decimals: int,
    chunks: list[Ints],
    workers: int,
) -> Iterator[tuple[Ints, tuple[Floats, Bools]]]:
    if workers < 2 or len(chunks) < 2:
        for places in chunks:
            yield places, _nearest_served(public, values[places], price, decimals)
        return
    with processes(workers) as pool:
        futures = {
            pool.submit(_nearest_served, public, values[places], price, decimals): places
            for places in chunks
        }
        for future in as_completed(futures):
            yield futures[future], future.result()


def _nearest_served(
    public: PublicNetwork, values: Floats, price: Fraction, decimals: int
) -> tuple[Floats, Bools]:
    """The nearest loads that can be served, hour by hour, and the hours that have none."""
    problem = ReleaseProblem(public, Population(1), price)
    found, failed = values.copy(), np.zeros(len(values), dtype=bool)
    for place, loads in enumerate(values):
        size = np.maximum(np.abs(loads), 0.01 * max(float(np.abs(loads).max()), 1e-9))
        aim = Aim(loads, 1 / size**2, public.low, public.high)
        try:
            served = serve(aim, problem, margin=0.0, decimals=decimals)
        except Unsolved:
            failed[place] = True
            continue
        found[place], failed[place] = served.values, bool(served.unserved)
    return found, failed
