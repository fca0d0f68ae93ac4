"""Release a network's loads over time: plan, charge, run.

`plan_series` checks everything public; running the plan asks queries of the sealed series, rebuilds
it from noisy answers and makes the network serve every hour. `release_series` does plan, charge and
run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridveil.errors import InputError, wrong_type
from gridveil.grid.disclosures import file_words
from gridveil.grid.io import module_of
from gridveil.grid.methods.base import TROUBLE
from gridveil.grid.model.default_ranges import ranges_of
from gridveil.grid.model.network import Network
from gridveil.grid.model.population import Population
from gridveil.grid.model.public_network import PublicNetwork, RangeLike, split
from gridveil.grid.model.release_problem import check_writable, highest_cost
from gridveil.grid.model.sketch import sketch_network
from gridveil.grid.restoration.rounding import decimals_for
from gridveil.grid.series.budget import TYPICAL, planned
from gridveil.grid.series.clock import check_block
from gridveil.grid.series.disclosures import (
    MEANS_ALONE,
    assumed,
    made_up,
    series_facts,
    unusual,
)
from gridveil.grid.series.load_table import LoadSeries
from gridveil.grid.series.options import METHODS, Series
from gridveil.grid.series.queries import Frame, all_queries
from gridveil.grid.series.rebuild import Answers, Box, rebuild, textured
from gridveil.grid.series.released import Prepared, SeriesRelease
from gridveil.grid.series.serve_hours import KEPT, Served, Workers, serve_hours, solve_hours
from gridveil.privacy.account import Account, Budget
from gridveil.privacy.adjacency import ALTOGETHER, BLOCKS, ENTRY, Adjacency, blocks_in
from gridveil.privacy.exact_numbers import Exact
from gridveil.privacy.ledger import Ledger, Sketch, Terms
from gridveil.privacy.sealed import Range, Sealed, seal
from gridveil.release.options import options_of
from gridveil.release.plan import Asked, Plan, Progress, silent

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class SeriesPlan(Plan[SeriesRelease]):
    """A release of load series that was checked and prepared; made by `plan_series`."""

    def __init__(
        self,
        sealed: Sealed[Floats],
        public: PublicNetwork,
        options: Series,
        adjacency: Adjacency,
        epsilon: Fraction,
        prepared: Prepared,
        executor: Any = None,
    ) -> None:
        block = adjacency.block
        of = f"each {'load' if block == ALTOGETHER else block}"
        super().__init__(
            Terms(
                dataset=None,
                epsilon=epsilon,
                adjacency=(adjacency,),
                clear=["capacity", "generator_limit", "cost"],
                private=["load", "total load"],
                purpose=f"load series of a network, method {options.method}, protecting {of}",
            )
        )
        self.sealed = sealed
        self.public = public
        self.options = options
        self.prepared = prepared
        self.executor = executor

    def asked(self) -> Sequence[Asked]:
        """See `Plan.asked`."""
        queries = self.prepared.queries
        return [
            Asked(queries[name].words, f"{queries[name].scale(part):.4g} MW", part)
            for name, part in self.prepared.epsilons.items()
        ]

    @property
    def assumed(self) -> dict[str, str]:
        """See `Plan.assumed`."""
        return assumed(self.prepared, self.options) | file_words(self.public)

    @property
    def unusual(self) -> tuple[str, ...]:
        """See `Plan.unusual`."""
        return *super().unusual, *unusual(self.public, self.prepared, self.options)

    def sketch(self) -> Sketch:
        """See `Plan.sketch`; this is the network's sketch."""
        return sketch_network(self.public)

    def _run(self, account: Account, progress: Progress) -> SeriesRelease:
        prepared = self.prepared
        answers = {}
        for name, part in prepared.epsilons.items():
            query = prepared.queries[name]
            progress(query.words)
            answers[name] = query.answer(account, self.sealed, prepared.frame, part)
        progress("rebuilding the series")
        trouble: dict[str, Any] = {}
        values, said = self._rebuilt(answers, trouble)
        served = self._served(values, trouble, progress)
        known = series_facts(account, self.public, self.options, prepared, served, said, trouble)
        return SeriesRelease(account, known, self.public, prepared, served, said)

    def _rebuilt(self, answers: Answers, trouble: dict[str, Any]) -> tuple[Floats, list[str]]:
        """Rebuild the series from the answers; if that fails, from the loads' means alone.

        Also returns what a reader must know about how it was made. A failure here is trouble with
        noisy numbers after the epsilon was spent: mean loads are better than nothing.
        """
        prepared, clock = self.prepared, self.prepared.frame.clock
        try:
            found = rebuild(clock, prepared.box, answers, self.options.waves)
            if self.options.texture:
                found = textured(found, self.options.texture)
            said = made_up(self.options.texture)
        except TROUBLE as problem:
            trouble |= {"restoration_failed": type(problem).__name__, "texture": 0.0}
            said = [MEANS_ALONE]
            found = rebuild(clock, prepared.box, {"year": answers["year"]}, self.options.waves)
        low, high = prepared.box.low, prepared.box.high
        return np.clip(np.round(found.reshape(clock.size, -1), prepared.decimals), low, high), said

    def _served(self, values: Floats, trouble: dict[str, Any], progress: Progress) -> Served:
        plain = Served(values, np.zeros(len(values), bool), np.zeros(len(values), bool))
        if self.options.hours == "none":
            return plain
        price = Fraction(max(highest_cost(self.public, Population(1)), 1.0))
        prepared = self.prepared
        try:
            with Workers(self.options.workers, self.executor) as workers:
                found = serve_hours(
                    self.public,
                    prepared.at_buses(values),
                    prepared.bus_box,
                    price,
                    prepared.decimals,
                    workers=workers,
                    progress=progress,
                )
                moved = found.moved
                if not moved.any():
                    return replace(found, values=values)
                values[moved] = prepared.to_loads(found.values[moved], values[moved])
                final = prepared.at_buses(values[moved])
                again = solve_hours(self.public, final, keep=KEPT, workers=workers)
                return found.settled(values, again)
        except TROUBLE as problem:
            trouble["restoration_failed"] = type(problem).__name__
            return replace(plain, unserved=np.ones(len(values), bool))


def release_series(
    network: Network,
    series: LoadSeries,
    *,
    epsilon: Exact,
    alpha: Exact,
    protect: str = "day",
    dataset: str | None = None,
    distinct: str | None = None,
    ledger: Ledger | Path | str | None = None,
    seed: int | None = None,
    progress: Progress = silent,
    **options: Any,
) -> SeriesRelease:
    """Release a network's loads over time with a differential-privacy guarantee.

    Parameters
    ----------
    network, series, epsilon, alpha, protect, options
        As in `plan_series`: what is private, the guarantee, and how the release is made.
    dataset, distinct, ledger, seed, progress
        As in `gridveil.grid.release`, and so are the errors.
    """
    what: dict[str, Any] = {"epsilon": epsilon, "alpha": alpha, "protect": protect}
    return plan_series(network, series, progress=progress, **what, **options).release(
        ledger, dataset=dataset, distinct=distinct, seed=seed, progress=progress
    )


def plan_series(
    network: Network,
    series: LoadSeries,
    *,
    epsilon: Exact,
    alpha: Exact,
    protect: str = "day",
    method: str | Series = "series",
    range: RangeLike | Mapping[str, RangeLike] | None = None,
    executor: Any = None,
    progress: Progress = silent,
    **options: Any,
) -> SeriesPlan:
    """Check and prepare a release of load series; it opens nothing and charges nothing.

    Parameters
    ----------
    network
        The real network, from `read_case`. Its own loads are not released: the released file has
        the means of the released series in their place.
    series
        From `read_series`.
    epsilon
        The guarantee: 1, 0.5, "1/3".
    alpha
        How far each value that moves may move, MW.
    protect
        What epsilon is for: one ``"entry"``, or all entries of one load in one calendar
        ``"hour"``, ``"day"`` or ``"week"``, or ``"altogether"``.
    method
        ``"series"``, or its options: ``Series(waves=7)``.
    range
        The public range of a load in MW, as in ``(0, 500)``. Values outside are clipped.
    executor
        Any `concurrent.futures.Executor`, or a Dask client, that shares the released hours; the
        private ones stay here.
    progress
        Called with a few words as each step begins.
    options
        Those of `Series`, by name.

    Raises
    ------
    InputError
        For public input that can't be used.
    """
    if not isinstance(network, Network):
        raise wrong_type("Network", network, remedy="Read one with read_case.")
    if not isinstance(series, LoadSeries):
        raise wrong_type("LoadSeries", series, remedy="Read one with read_series.")
    block = check_block(protect)
    chosen = options_of(METHODS, method, options)
    total = Budget(epsilon).total
    progress("public numbers")
    used = series.support
    if not used.any():
        raise InputError("All loads of the series are 0.", remedy="Check the table.")
    _check_covered(network, series)
    kept = np.flatnonzero(used)
    kept = kept[np.argsort(series.bus[kept], kind="stable")]
    entry = np.unique(series.bus[kept], return_inverse=True)[1]
    # Replace the network's own loads by 1 MW each: this shows which exist, and is public.
    standing = np.zeros(len(network.buses))
    standing[series.bus[kept]] = 1.0
    wanted = ranges_of(network, ("load",), range)
    _, public = split(network.with_load(standing), "load", wanted)
    check_writable(public)
    ends = public.ranges["load"]
    low = np.where(series.negative[kept], ends.low, np.clip(0.0, ends.low, ends.high))
    around = Range(float(low.min()), ends.high)
    clock = series.clock
    adjacency = Adjacency.of(
        "load",
        alpha=alpha,
        unit="MW",
        range=around,
        entries=clock.size * len(kept),
        block=block,
        whose="" if block == ENTRY else "load",
        members=clock.members,
        clock=clock.zone,
        groups=_groups(block, clock.members, len(kept)),
        each=clock.size,
    )
    frame = Frame(clock, len(kept), around, adjacency.alpha, block)
    queries = all_queries(frame, chosen.waves)
    for query in queries.values():
        query.check()
    typical = float(TYPICAL * adjacency.alpha) if chosen.typical is None else chosen.typical
    prepared = Prepared(
        series,
        kept,
        entry,
        frame,
        Box(low, np.full(len(kept), ends.high)),
        queries,
        planned(frame, queries, typical, total),
        typical,
        decimals_for(float(adjacency.alpha)),
        _snapshots(network, series),
    )
    sealed = seal(series.private(kept), name="load", unit="MW", range=around)
    return SeriesPlan(sealed, public, chosen, adjacency, total, prepared, executor)


def _snapshots(network: Network, series: LoadSeries) -> tuple[str, ...]:
    source = network.source
    if source is None or source.kind != "pypsa":
        return ()
    names: tuple[str, ...] = module_of("pypsa").load_names(source.data)
    return names if set(series.names) <= set(names) else ()


def _groups(block: str, members: Mapping[str, int], loads: int) -> dict[str, int]:
    """Count the protected blocks in what owners may ask about: a day, a week, a load, all loads."""
    names = {"day": "one day of one load", "week": "one week of one load", ALTOGETHER: "one load"}
    larger = {words: one for one, words in names.items() if BLOCKS[one] > BLOCKS[block]}
    found = {words: blocks_in(one, block, members) for words, one in larger.items()}
    every = "all loads" if block == ALTOGETHER else f"one {block} of all loads"
    return found | ({every: loads} if block != ENTRY and loads > 1 else {})


def _check_covered(network: Network, series: LoadSeries) -> None:
    """Raise `InputError` if a bus with a load, which is public, has no load in the series."""
    left = (network.buses.load != 0) & network.buses.in_service
    left[series.bus] = False
    if left.any():
        name = network.buses.name[int(left.argmax())]
        raise InputError(
            f"{int(left.sum()):,} buses have a load in the network and none in the series "
            f"({name!r}, for example).",
            remedy="Give every load a column, or take those out of the network.",
        )
