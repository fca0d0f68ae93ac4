"""``gridveil grid release`` and ``grid evaluate``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gridveil.cli import parsing
from gridveil.cli.common_options import ForceOption, JsonOption, LedgerOption, QuietOption
from gridveil.cli.console import out, print_json, table
from gridveil.cli.grid_series import (
    ProtectOption,
    SeriesOption,
    TimeOption,
    check_alone,
    check_method,
    described_series,
    evaluate_loads,
    refuse_without,
    series_alpha,
)
from gridveil.cli.output_files import REPORT, check_output
from gridveil.cli.parsing import (
    CaseArgument,
    Reading,
    takes,
)
from gridveil.cli.release_orders import (
    DatasetOption,
    DistinctOption,
    DryRunOption,
    Order,
    YesOption,
    takes_options_of,
)
from gridveil.grid.methods import METHODS
from gridveil.grid.series.options import METHODS as SERIES
from gridveil.release.options import read_options

if TYPE_CHECKING:
    from gridveil.grid.evaluation import Evaluation
    from gridveil.grid.model_comparison import ModelErrors
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
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The bundle's folder.", show_default=False)
    ],
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


@takes(Reading, "reading")
def evaluate(
    *,
    bundle: Annotated[Path, typer.Argument(help="The bundle's folder.", show_default=False)],
    against: Annotated[
        str, typer.Option("--against", metavar="CASE", help="The real case.", show_default=False)
    ],
    unseen: Annotated[
        Path | None,
        typer.Option(
            help="Models that the release never saw; sampled like its own ones by default."
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(help="Write the owner's report to this HTML file, outside of any bundle."),
    ] = None,
    series: SeriesOption = None,
    time: TimeOption = None,
    reading: Reading,
    as_json: JsonOption = False,
) -> None:
    """Compare a release with the real network: for the owner's eyes only.

    What it prints must not be published, and must not decide whether, when or which release is.

    Example: [cyan]gridveil grid evaluate out-grid --against rts96-paper --report owner.html[/]
    """
    from gridveil.cli.console import steps
    from gridveil.grid import Population
    from gridveil.grid.evaluation import evaluate as compare

    check_output(report, REPORT, (against, unseen, series))
    with steps("evaluating", quiet=as_json):
        real = reading.network(against)
        if series is not None:
            evaluate_loads(bundle, real, series, time, against, report, as_json=as_json)
            return
        models = None if unseen is None else Population.read(unseen, real)
        found = compare(bundle, real, unseen=models)
        written = None if report is None else found.write_report(report)
    if as_json:
        print_json(found.to_json())
        return
    _show_evaluation(found)
    if written is not None:
        from rich.markup import escape

        out().print(f"The owner's report: {escape(str(written))}")


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


def _show_evaluation(found: Evaluation) -> None:
    from rich.markup import escape

    from gridveil.grid.owner_report import (
        AC_COLUMNS,
        ac_rows,
        clipped_words,
        model_rows,
        model_words,
        value_row,
    )
    from gridveil.release.bundle import OWNER_MARK
    from gridveil.report.attack_section import lines

    console = out()
    console.print(f"[bold red]{OWNER_MARK}[/]")
    shown = table("parameter", "entries", "mean error", "largest", "total (real)")
    for one in found.parameters:
        name, entries, mean, largest, released, real = value_row(one)
        shown.add_row(name, entries, mean, largest, f"{released} ({real})")
    console.print(shown)
    shown = table("models", "compared", "infeasible", "cost error", "price error", "congestion")
    for name, errors in model_rows(found):
        shown.add_row(name, *_cells(errors))
    console.print(shown)
    if rows := ac_rows(found):
        shown = table(*AC_COLUMNS)
        for row in rows:
            shown.add_row(*row)
        console.print(shown)
    said = [*clipped_words(found), *model_words(found), *lines(found.inference, found.statement)]
    for line in said:
        console.print(escape(line))
    console.print(
        "Cost error: mean distance of the models' costs, and its sign. Price error: mean over "
        "buses and models, $/MWh. Congestion: congested lines that are not so on the "
        "released network, and the other way round.\n"
        "Do not let these figures decide what to publish: choosing the release that comes closest "
        "to the real data tells more about it than epsilon allows."
    )


def _cells(errors: ModelErrors) -> list[str]:
    from gridveil.grid.owner_report import figure

    error, bias = figure(errors.cost_error, ".4f", "%"), figure(errors.bias, "+.4f", "%")
    return [
        f"{errors.models:,}",
        figure(errors.infeasible, ".2f", "%"),
        "-" if error == "-" else f"{error} ({bias})",
        figure(errors.price_error, ".3f"),
        f"{figure(errors.missed, '.1f', '%')} / {figure(errors.added, '.1f', '%')}",
    ]
