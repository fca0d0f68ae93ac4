"""``gridveil grid evaluate``: compare a release with the real network."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gridveil.cli.case_options import Reading, takes
from gridveil.cli.common_options import JsonOption
from gridveil.cli.console import out, print_json, table
from gridveil.cli.grid_series import SeriesOption, TimeOption, evaluate_loads
from gridveil.cli.output_files import REPORT, check_output

if TYPE_CHECKING:
    from gridveil.grid.evaluation import Evaluation
    from gridveil.grid.model_comparison import ModelErrors


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
