"""``gridveil grid release``: its options, and what it says of the release."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gridveil.cli import parsing
from gridveil.cli.case_options import CaseArgument, Reading, takes
from gridveil.cli.common_options import ForceOption, JsonOption, LedgerOption, QuietOption
from gridveil.cli.grid_series import (
    ProtectOption,
    SeriesOption,
    TimeOption,
    check_alone,
    check_method,
    described_series,
    refuse_without,
    series_alpha,
)
from gridveil.cli.release_orders import (
    DatasetOption,
    DistinctOption,
    DryRunOption,
    Order,
    OutputOption,
    YesOption,
    takes_options_of,
)
from gridveil.grid.methods import METHODS
from gridveil.grid.series.options import METHODS as SERIES
from gridveil.release.options import read_options

if TYPE_CHECKING:
    from gridveil.grid.release import GridRelease
    from gridveil.release.plan import Progress

_UNSERVED = (
    "Compare it with the real network (gridveil grid evaluate), and check --range and the units of "
    "the case (MW, $/MWh)."
)


_USUAL = next(iter(METHODS))
_ALL = {**METHODS, **SERIES}


@takes_options_of(_ALL)
@takes(Reading, "reading")
def release(
    *,
    ctx: typer.Context,
    case: CaseArgument,
    output: OutputOption = None,
    alpha: Annotated[
        str,
        typer.Option(
            help="How far one entry may move, in MW (costs: $/MWh): 30, or "
            "load=10,reactive_load=5 (Mvar); or a share of its own value: 20%; or by public class: "
            "380kV:100,others:20.",
            show_default=False,
        ),
    ],
    parameter: Annotated[
        str,
        typer.Option(
            help="What is private: capacity, load, generator_limit, cost, and reactive_load beside "
            "load; several with commas."
        ),
    ] = "capacity",
    epsilon: Annotated[str, typer.Option(help="The guarantee: 1, 0.5 or 1/3.")] = "1",
    method: Annotated[str, typer.Option(help=f"{', '.join(METHODS)}.")] = _USUAL,
    population: Annotated[
        Path | None,
        typer.Option(
            help="Models that the released network should serve, from gridveil grid population; "
            "sampled around the network by default."
        ),
    ] = None,
    range: Annotated[
        list[str] | None,
        typer.Option(
            "--range",
            help="Public range of private values, where values outside are clipped: 1:5000, or "
            "load=0:500; repeated for several.",
        ),
    ] = None,
    public_curves: Annotated[
        bool,
        typer.Option(
            "--public-curves",
            help="generator_limit: cost curves are public, and not made from the limits.",
        ),
    ] = False,
    public_dispatch: Annotated[
        bool,
        typer.Option(
            "--public-dispatch",
            help="capacity: set points of units are public, and stay as the file has them.",
        ),
    ] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(
            help="Protect these elements alone: voltage>=220, kind=line, name=A*, with commas if "
            "all must hold; load:zone=1 for one of several parameters. The rest is public.",
        ),
    ] = None,
    unlimited_above: Annotated[
        float | None,
        typer.Option(
            help="capacity: ratings from here on (MW) are placeholders. Which lines have one is "
            "public, and they have no limit."
        ),
    ] = None,
    limit_ratios: Annotated[
        str | None,
        typer.Option(
            help="capacity: public ratios of a line's further limits to its capacity: "
            "'1200s=1.1, 600s=1.2, side2=1.05', or 'B=1.1, C=1.2' (from PSS/E 34 on "
            "'2=1.1, 3=1.2'). 1 without one."
        ),
    ] = None,
    series: SeriesOption = None,
    protect: ProtectOption = None,
    time: TimeOption = None,
    power_factor: Annotated[
        float | None,
        typer.Option(
            help="load: the public power factor of all loads, from which their released reactive "
            "power follows: 0.95. Without it they have none."
        ),
    ] = None,
    options: Any = None,
    dataset: DatasetOption = None,
    distinct: DistinctOption = None,
    reading: Reading,
    ledger: LedgerOption = None,
    force: ForceOption = False,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Release parameters of a network with a differential-privacy guarantee.

    With --parameter load --series FILE it releases a year of loads, and protects a load's day.

    Example: [cyan]gridveil grid release rts96-paper --parameter capacity --alpha 30
    --epsilon 1 --dataset rts96 -o out-grid[/]
    """
    from gridveil.grid import Population, plan, plan_series, read_series

    if series is None:
        refuse_without(protect, time, method)
    else:
        alone: dict[str, Any] = {"--population": population, "--power-factor": power_factor}
        alone |= {"--public-curves": public_curves or None, "--snapshots": reading.snapshots}
        alone |= {"--public-dispatch": public_dispatch or None, "--limit-ratios": limit_ratios}
        check_alone({**alone, "--only": only, "--unlimited-above": unlimited_above}, parameter)
        check_method(method, usual=_USUAL)
    inputs = [case, *(str(one) for one in (population, series) if one is not None)]
    order = Order.of("grid", ctx, inputs)

    def make(progress: Progress) -> Any:
        network = reading.network(case)
        if series is not None:
            progress("reading the series")
            return plan_series(
                network,
                read_series(None if str(series) == case else series, network, time=time),
                epsilon=epsilon,
                alpha=series_alpha(parsing.alpha(alpha)),
                protect=protect or "day",
                range=parsing.ranges(range),
                progress=progress,
                **read_options(_ALL, "series", options),
            )
        return plan(
            network,
            None if population is None else Population.read(population, network),
            parameter=parameter,
            epsilon=epsilon,
            alpha=parsing.steps(alpha),
            method=method,
            range=parsing.ranges(range),
            public_curves=public_curves,
            public_dispatch=public_dispatch,
            only=parsing.rules(only),
            unlimited_above=unlimited_above,
            limit_ratios=limit_ratios,
            power_factor=power_factor,
            progress=progress,
            **read_options(_ALL, method, options),
        )

    order.carry_out(make, _described if series is None else described_series)


def _described(made: GridRelease) -> tuple[str, list[str]]:
    import numpy as np
    from rich.markup import escape

    from gridveil.grid.io.released_columns import lines
    from gridveil.grid.report import left_out_words, served_words

    found, size = [], made.population.size
    if made.left_out:
        found.append(f"  {left_out_words(made.left_out, size)}")
    served = int(np.isfinite(made.solutions.cost).sum())
    words = served_words(served, size)
    found.append(f"  {words}" if served == size else f"[bold red]WARNING:[/] {words} {_UNSERVED}")
    said = made.quality()
    # The report says there too how many models survive outages, and how many are served in AC.
    found += [f"  {escape(more)}" for more in said[said.index(words) + 1 :]]
    if made.congestion is not None and made.congestion.doubtful:
        found.append(f"[bold red]WARNING:[/] {made.congestion.words}")
    for fate, columns, reason in lines(made.public.changes):
        if fate != "released":
            found.append(f"  {fate.capitalize()}: {escape(columns)} ({escape(reason[:-1])})")
    return f"{made.public.entries:,} values of {', '.join(made.public.parameters)}", found
