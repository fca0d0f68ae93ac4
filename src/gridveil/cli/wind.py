"""``gridveil wind``: release wind power records, and evaluate a release for its owner."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gridveil.cli.common_options import ForceOption, JsonOption, LedgerOption, QuietOption
from gridveil.cli.console import out, print_json, table
from gridveil.cli.output_files import REPORT, check_output
from gridveil.cli.release_orders import (
    DatasetOption,
    DistinctOption,
    DryRunOption,
    Order,
    OutputOption,
    YesOption,
    takes_options_of,
)
from gridveil.errors import InputError
from gridveil.release.options import read_options
from gridveil.wind.methods import BY_NAME

if TYPE_CHECKING:
    from gridveil.release.plan import Progress
    from gridveil.wind.evaluation import Evaluation
    from gridveil.wind.release import WindPlan

app = typer.Typer(help="Release wind power records.", no_args_is_help=True)


@app.command()
@takes_options_of(BY_NAME)
def release(
    *,
    ctx: typer.Context,
    source: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE", help="CSV or Parquet files, or a folder of them.", show_default=False
        ),
    ],
    output: OutputOption = None,
    speed: Annotated[str, typer.Option(help="Column of wind speed (public).", show_default=False)],
    power: Annotated[str, typer.Option(help="Column of power (private).", show_default=False)],
    capacity: Annotated[
        list[str],
        typer.Option(
            help="Public nameplate capacity in the unit of power; TURBINE=NUMBER, repeated, for "
            "turbines of different size.",
            show_default=False,
        ),
    ],
    alpha: Annotated[
        str | None,
        typer.Option(
            help="How far one record may move, as a share of capacity: 15% or 0.15. Synthetic "
            "protects the whole range, and needs none.",
            show_default=False,
        ),
    ] = None,
    epsilon: Annotated[str, typer.Option(help="The guarantee: 1, 0.5 or 1/3.")] = "1",
    protect: Annotated[
        str,
        typer.Option(
            help="What epsilon is for: a record, or all records of a turbine in a calendar hour, "
            "day or week (needs --time)."
        ),
    ] = "record",
    method: Annotated[str, typer.Option(help=f"{', '.join(BY_NAME)}, or auto.")] = next(
        iter(BY_NAME)
    ),
    unit: Annotated[str, typer.Option(help="Unit of power and capacity.")] = "kW",
    public: Annotated[
        list[str] | None,
        typer.Option(help="A further column to publish in clear. May be repeated."),
    ] = None,
    key: Annotated[
        str | None, typer.Option(help="A public column that orders the rows, such as the time.")
    ] = None,
    time: Annotated[
        str | None,
        typer.Option(help="A public column of dates and times, which orders the rows too."),
    ] = None,
    time_format: Annotated[
        str | None,
        typer.Option(help="How text dates are written, as %d/%m/%Y %H:%M, if it may be unclear."),
    ] = None,
    sep: Annotated[
        str | None, typer.Option(help="The sign between fields of CSV files; found by default.")
    ] = None,
    decimal: Annotated[
        str, typer.Option(help="The sign before decimals in CSV files: . or ,")
    ] = ".",
    encoding: Annotated[
        str,
        typer.Option(
            help="How the text of CSV files is stored: cp1252, latin-1, utf-16, ... The release is "
            "UTF-8."
        ),
    ] = "utf-8",
    turbine: Annotated[
        str | None, typer.Option(help="A public column that names each row's turbine.")
    ] = None,
    missing: Annotated[
        str, typer.Option(help="Rows with missing values: refuse or drop.")
    ] = "refuse",
    formulas: Annotated[
        str, typer.Option(help="Text that a spreadsheet would run: refuse or keep.")
    ] = "refuse",
    features: Annotated[
        str | None,
        typer.Option(
            help="Features of the regression: rbf(5, 2.5, 12.5), polynomial(3, 0, 25), "
            "bspline(8, 0, 25), columns(NAME), joined by +. Default: bumps every 2.5 m/s."
        ),
    ] = None,
    options: Any = None,
    stream: Annotated[
        bool, typer.Option("--stream", help="Read the files again on every pass.")
    ] = False,
    dataset: DatasetOption = None,
    distinct: DistinctOption = None,
    ledger: LedgerOption = None,
    force: ForceOption = False,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Release wind power records with a differential-privacy guarantee.

    Example: [cyan]gridveil wind release demo-release/turbine.csv --speed wind_speed
    --power power --capacity 2750 --alpha 15% --epsilon 1 --dataset turbine -o out[/]
    """
    from gridveil.wind import plan, read_records

    def make(progress: Progress) -> WindPlan:
        records = read_records(
            source[0] if len(source) == 1 else source,
            speed=speed,
            power=power,
            capacity=_capacity(capacity),
            unit=unit,
            public=public or (),
            key=key,
            time=time,
            time_format=time_format,
            turbine=turbine,
            sep=sep,
            decimal=decimal,
            encoding=encoding,
            missing=missing,  # type: ignore[arg-type]
            formulas=formulas,  # type: ignore[arg-type]
            name=dataset,
            stream=stream or None,
        )
        return plan(
            records,
            epsilon=epsilon,
            alpha=alpha,
            protect=protect,
            method=method,
            features=None if features is None else _features(features),
            progress=progress,
            **read_options(BY_NAME, method, options),
        )

    Order.of("wind", ctx, source).carry_out(
        make, lambda made: (f"{made.records.rows:,} records", ())
    )


@app.command()
def evaluate(
    bundle: Annotated[Path, typer.Argument(help="The bundle's folder.", show_default=False)],
    against: Annotated[
        list[str],
        typer.Option("--against", help="The real records. May be repeated.", show_default=False),
    ],
    report: Annotated[
        Path | None,
        typer.Option(help="Write the owner's report to this HTML file, outside of any bundle."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Compare a release with the real records: for the owner's eyes only.

    What it prints must not be published, and must not decide whether, when or which release is.

    Example: [cyan]gridveil wind evaluate out --against demo-release/turbine.csv
    --report owner.html[/]
    """
    from gridveil.cli.console import steps
    from gridveil.wind.evaluation import evaluate as compare

    check_output(report, REPORT, against)
    with steps("evaluating", quiet=as_json):
        found = compare(bundle, against[0] if len(against) == 1 else against)
        written = None if report is None else found.write_report(report)
    if as_json:
        print_json(found.to_json())
        return
    _show_evaluation(found)
    if written is not None:
        from rich.markup import escape

        out().print(f"[bold]The owner's report:[/] {escape(str(written))}")


def _capacity(given: list[str]) -> float | dict[str, float]:
    if len(given) == 1 and "=" not in given[0]:
        return _number(given[0])
    pairs = [one.rpartition("=") for one in given]
    return {name: _number(number) for name, _, number in pairs}


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(
            f"The capacity {text!r} is not a number.",
            remedy="Write --capacity 2750, or --capacity T1=2750 --capacity T2=3000.",
        ) from None


def _features(text: str) -> Any:
    from gridveil.wind.features import parse_features

    try:
        return parse_features(text)
    except ValueError as problem:
        raise InputError(
            f"The features can't be used: {problem}.",
            remedy='For example: --features "rbf(5, 2.5, 12.5) + columns(temperature)".',
        ) from None


def _show_evaluation(found: Evaluation) -> None:
    from gridveil.release.bundle import OWNER_MARK

    console = out()
    console.print(f"[bold red]{OWNER_MARK}[/]")
    shown = table("turbine", "records", "RMSE", "largest", "loss", "weights", "energy")
    for one in found.turbines:
        shown.add_row(
            one.name,
            f"{one.rows:,}",
            f"{one.rmse:.4f}",
            f"{one.largest_error:.3f}",
            f"{one.released_loss:.4g} ({one.real_loss:.4g})",
            f"{one.weight_error:.4f}",
            f"{one.released_energy:.5g} ({one.real_energy:.5g})",
        )
    console.print(shown)
    console.print(
        "RMSE and largest error of a record, error of the weights: shares of capacity. Loss of the "
        "regression, and energy in record-lengths at full power: released (real).\n"
        f"{found.clipped:,} of {found.rows:,} real values lay outside [0, capacity] and were "
        "clipped."
    )
    if found.downstream is not None:
        from gridveil.wind.downstream_report import COLUMNS

        figures = table(*COLUMNS)
        for figure in found.downstream.figures:
            figures.add_row(*figure.texts())
        console.print(figures)
        console.print(
            "What recipients find, in shares of capacity but for errors of energy, correlations "
            "and counts. The prior alone: the same method at an epsilon of a millionth."
        )
    from gridveil.report.attack_section import lines

    for line in lines([found.inference], found.statement):
        console.print(line)
    console.print(
        "Do not let these figures decide what to publish: choosing the release that comes closest "
        "to the real data tells more about it than epsilon allows."
    )
