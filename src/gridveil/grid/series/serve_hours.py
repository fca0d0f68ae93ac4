"""Make the network serve every hour of a released series.

Each hour is a model with its own loads. Capacities, generators and costs are public, so whether
loads can be served is a question about released and public data, and asking it costs no epsilon.
Hours do not depend on each other: each one that can't be served is moved to the nearest loads that
can be, and workers can share the hours.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from gridveil.grid.model.population import Population
from gridveil.grid.model.public_network import PublicNetwork
from gridveil.grid.model.release_problem import ReleaseProblem
from gridveil.grid.opf.engine import Solutions, solve_population
from gridveil.grid.opf.workers import by_workers, processes
from gridveil.grid.restoration.master import Aim, Unsolved
from gridveil.grid.restoration.project import serve
from gridveil.release.plan import Progress, silent

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

_MANY = 0.1  # if a larger share of hours is moved, network and loads may not fit together
_AT_ONCE = 20  # hours that a worker moves before it reports
_TRIED = 48  # about how many hours are timed
_START = 10.0  # seconds that workers must save, since processes take time to start
KEPT = ("cost", "line_price")
"""The results that are kept of an hour's dispatch."""


@dataclass(frozen=True, eq=False)
class Served:
    """A series after hours that could not be served were moved.

    Parameters
    ----------
    values
        ``(hours, loads)``.
    moved
        Which hours were moved.
    unserved
        Which hours can't be served with any loads in the public range.
    solved
        The dispatch of every hour with prices of lines; None if it was not solved.
    """

    values: Floats
    moved: Bools
    unserved: Bools
    solved: Solutions | None = None

    def settled(self, values: Floats, again: Solutions) -> Served:
        """Return the same with final values and the new dispatch of the hours that were moved."""
        assert self.solved is not None
        mixed = {}
        for one in fields(again):
            new, old = getattr(again, one.name), getattr(self.solved, one.name)
            if new is not None:
                mixed[one.name] = old.copy()
                mixed[one.name][self.moved] = new
        unserved = self.unserved | ~np.isfinite(mixed["cost"])
        return replace(self, values=values, unserved=unserved, solved=Solutions(**mixed))

    def doubts(self) -> list[str]:
        """Return warnings for readers of a release: hours that can't be served, or were moved."""
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


class Workers:
    """Processes or an executor that share the hours; processes start only if that is faster.

    Parameters
    ----------
    count
        The most processes to start.
    executor
        An executor or a Dask client to use instead.

    Starting processes takes seconds, and many series are solved in less, so a few hours are timed
    first. Hours are cut into the same chunks either way, so answers do not depend on the choice.
    """

    def __init__(self, count: int = 1, executor: Any = None) -> None:
        self._count, self._executor = count, executor
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        """Use it in a ``with`` block, which ends the processes."""
        return self

    def __exit__(self, *problem: object) -> None:
        """End the processes that were started."""
        self._stack.close()

    def for_work(self, seconds: float) -> Any:
        """Return an executor for work that takes this process `seconds`, or None to do it here."""
        if self._executor is None and seconds * (1 - 1 / self._count) > _START:
            self._executor = self._stack.enter_context(processes(self._count))
        return self._executor

    @property
    def any(self) -> bool:
        """Whether there are workers to choose."""
        return self._count > 1 or self._executor is not None


def solve_hours(
    public: PublicNetwork,
    values: Floats,
    *,
    keep: tuple[str, ...] = ("cost",),
    workers: Workers | None = None,
    progress: Progress = silent,
) -> Solutions:
    """Solve the dispatch of every hour with these loads, ``(hours, private entries)``."""
    load = np.zeros((len(values), len(public.buses)))
    load[:, public.support["load"]] = values
    # The network has loads of 1 MW, and the hours are its multipliers: released, so public.
    ones = public.with_values(np.ones(public.entries))

    def said(done: int, of: int) -> None:
        progress(f"solving every hour: {done:,} of {of:,}")

    executor = None
    if workers is not None and workers.any:
        some = load[:: max(len(load) // _TRIED, 1)]
        began = time.perf_counter()
        solve_population(ones, Population(len(some), load=some))
        executor = workers.for_work((time.perf_counter() - began) * len(load) / len(some))
    hours = Population(len(values), load=load)
    return solve_population(ones, hours, keep=keep, executor=executor, progress=said)


def serve_hours(
    public: PublicNetwork,
    values: Floats,
    box: tuple[Floats, Floats],
    price: Fraction,
    decimals: int,
    *,
    workers: Workers | None = None,
    progress: Progress = silent,
) -> Served:
    """Move every hour that can't be served to the nearest loads that can be.

    ``box`` has the lower and upper ends of each load's public range. A MW counts less at a large
    load, so that loads move by similar shares.
    """
    helpers = Workers() if workers is None else workers
    solved = solve_hours(public, values, keep=KEPT, workers=helpers, progress=progress)
    short = np.flatnonzero(~np.isfinite(solved.cost))
    moved, unserved = np.zeros(len(values), dtype=bool), np.zeros(len(values), dtype=bool)
    found = values.copy()
    moved[short] = True
    chunks = [short[at : at + _AT_ONCE] for at in range(0, len(short), _AT_ONCE)]
    bare = replace(public, source=None, changes=())
    done = 0
    for places, (loads, failed) in _moved(bare, values, box, price, decimals, chunks, helpers):
        found[places], unserved[places] = loads, failed
        done += len(places)
        progress(f"serving every hour: {done:,} of {len(short):,} moved")
    return Served(found, moved, unserved, solved)


def _moved(
    public: PublicNetwork,
    values: Floats,
    box: tuple[Floats, Floats],
    price: Fraction,
    decimals: int,
    chunks: list[Ints],
    workers: Workers,
) -> Iterator[tuple[Ints, tuple[Floats, Bools]]]:
    began = time.perf_counter()
    for number, places in enumerate(chunks):
        left = (time.perf_counter() - began) / max(number, 1) * (len(chunks) - number)
        executor = workers.for_work(left) if number else None
        if executor is None:
            yield places, _nearest_served(public, values[places], box, price, decimals)
            continue
        asked = ((public, values[some], box, price, decimals) for some in chunks[number:])
        yield from zip(chunks[number:], by_workers(executor, _nearest_served, asked), strict=True)
        return


def _nearest_served(
    public: PublicNetwork,
    values: Floats,
    box: tuple[Floats, Floats],
    price: Fraction,
    decimals: int,
) -> tuple[Floats, Bools]:
    """Find the nearest loads that can be served, hour by hour, and the hours without any."""
    problem = ReleaseProblem(public, Population(1), price)
    found, failed = values.copy(), np.zeros(len(values), dtype=bool)
    for place, loads in enumerate(values):
        size = np.maximum(np.abs(loads), 0.01 * max(float(np.abs(loads).max()), 1e-9))
        aim = Aim(loads, 1 / size**2, *box)
        try:
            served = serve(aim, problem, margin=0.0, decimals=decimals)
        except Unsolved:
            failed[place] = True
            continue
        found[place], failed[place] = served.values, bool(served.unserved)
    return found, failed
