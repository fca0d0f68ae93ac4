"""``gridveil grid``: look at a network, sample models, solve them, release and evaluate."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gridveil.cli import grid_solve_dc as dc
from gridveil.cli import parsing
from gridveil.cli.case_options import CaseArgument, Reading, takes
from gridveil.cli.common_options import JsonOption, QuietOption
from gridveil.cli.console import out, plain, print_json
from gridveil.cli.grid_evaluate import evaluate
from gridveil.cli.grid_release import release
from gridveil.cli.grid_solve_ac import check_only_dc, solve_ac
from gridveil.cli.output_files import PARQUET, PICTURE, check_output

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gridveil.grid.model.checks import Problem
    from gridveil.grid.model.network import Network

app = typer.Typer(help="Release networks; populations of optimal power flow.", no_args_is_help=True)
app.command()(release)
app.command()(evaluate)


@app.command()
@takes(Reading, "reading")
def info(
    case: CaseArgument,
    reading: Reading,
    solving: Annotated[
        bool,
        typer.Option("--solve/--no-solve", help="Solve the case and models sampled about it."),
    ] = True,
    as_json: JsonOption = False,
) -> None:
    """Summarise a network, and explain every problem in it. Exit code 1 if there are any.

    With it, what could be private in its file, what a release would publish, and what it drops.
    Exit code 2 if it can't be read as a network at all. It looks at the real values, for their
    owner: what it prints must not be published. Nothing is charged.

    Example: [cyan]gridveil grid info rts96[/]
    """
    from gridveil.grid.model.checks import ProblemsFound, check

    if Path(case).suffix.lower() == ".nc" and reading.snapshot is reading.snapshots is None:
        reading = replace(reading, snapshots="all")
    try:
        network = check(reading.network(case))
    except ProblemsFound as error:
        _show_problems(case, error.problems, as_json=as_json)
        raise typer.Exit(1) from None
    from gridveil.grid.file_facts import file_facts
    from gridveil.grid.owner_preview import advice, preview
    from gridveil.release.bundle import OWNER_MARK

    notes = [*network.notes, *_notes(network), *advice(network)]
    found = preview(network) if solving else None
    known = file_facts(network)
    if as_json:
        shown = {"mark": OWNER_MARK, **_summary(network), "notes": notes}
        solved = None if found is None else found.to_json()
        file = None if known is None else known.to_json()
        print_json({**shown, "file": file, "solved": solved, "problems": []})
    else:
        from rich.markup import escape

        out().print(f"[bold red]{OWNER_MARK}[/]")
        out().print(escape(repr(replace(network, notes=()))))
        for note in [*notes, *([] if found is None else found.words)]:
            out().print(f"  note        {escape(note)}")
        for word, line in [] if known is None else known.rows():
            out().print(f"  {word:<16}{escape(line)}")


@app.command()
@takes(Reading, "reading")
def population(
    *,
    case: CaseArgument,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The Parquet file.", show_default=False)
    ],
    size: Annotated[int, typer.Option(help="How many models.")] = 1000,
    spread: Annotated[
        float, typer.Option(help="Loads and generator limits vary by this share either way.")
    ] = 0.125,
    costs: Annotated[
        str,
        typer.Option(
            help="12.5%: the network's own costs vary by this share either way. none: they stay as "
            "they are. 80:100: uniform in this range in $/MWh instead, as in the paper."
        ),
    ] = "12.5%",
    private: Annotated[
        str,
        typer.Option(help="The parameter that a release will protect, or several: capacity,load."),
    ] = "capacity",
    seed: Annotated[int, typer.Option(help="Seed of the public draw.")] = 0,
    reading: Reading,
    quiet: QuietOption = False,
) -> None:
    """Sample a population of OPF models on a network, as public multipliers.

    With --snapshots around these, each as often as the others; they are for this case read with
    the same --snapshots.

    Example: [cyan]gridveil grid population rts96 --size 1000 -o models.parquet[/]
    """
    from gridveil.grid import sample_population

    check_output(output, PARQUET, (case,))
    network = reading.network(case)
    made = sample_population(
        network, size, spread=spread, costs=parsing.costs(costs), seed=seed, private=private
    )
    made.write(output)
    if not quiet:
        from rich.markup import escape

        out().print(escape(repr(made)))
        out().print(f"Written to {plain(output)}")


@app.command()
@takes(Reading, "reading")
def solve(
    *,
    case: CaseArgument,
    population_file: Annotated[
        Path | None,
        typer.Option(
            "--population",
            help="A population's Parquet file. Default: the case alone, or its snapshots.",
        ),
    ] = None,
    ac: Annotated[
        bool,
        typer.Option("--ac", help="AC power flow instead: voltages, losses, ratings in MVA."),
    ] = False,
    outages: Annotated[
        str | None,
        typer.Option(
            "--contingencies",
            help="Outages that every dispatch must survive: all, or a file with one branch in "
            "each line.",
        ),
    ] = None,
    emergency: Annotated[
        float | None,
        typer.Option(help="Ratings after an outage, as a multiple of the normal ones: 1.2."),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="strict, relaxed, shed or limits; joined by + for several. Default: strict."
        ),
    ] = None,
    slack_price: Annotated[
        float | None, typer.Option(help="Price of what the model lets one buy, $/MWh.")
    ] = None,
    convention: Annotated[
        str | None,
        typer.Option(help="series (as PowerModels) or matpower. Default: series."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Write one row per model as Parquet: costs, dispatch, flows and nodal prices.",
        ),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw the network, loading by line: a PNG or SVG file.")
    ] = None,
    workers: Annotated[int | None, typer.Option(help="Solve in this many processes.")] = None,
    cluster: Annotated[
        str | None, typer.Option(help="Solve on the Dask cluster with this scheduler address.")
    ] = None,
    reading: Reading,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Solve the optimal power flow of a network, or of every model of a population.

    In DC by default. With --ac a model counts as served only if a point was found that keeps to
    power balance and every limit by plain arithmetic; with outages, after each of them as well.

    Example: [cyan]gridveil grid solve rts96 --population models.parquet --json[/]
    """
    from gridveil.cli.console import counted
    from gridveil.grid import Certified, check, solve_population
    from gridveil.grid.model.population import Population
    from gridveil.grid.model.sampling import own_models

    if ac:
        only_dc = {"--model": model, "--slack-price": slack_price, "--convention": convention}
        check_only_dc({**only_dc, "--workers": workers, "--cluster": cluster})
    wanted = None if outages is None else Certified.read("contingencies", outages)
    check_output(output, PARQUET, (case, population_file))
    check_output(plot, PICTURE, (case, population_file))
    network = reading.network(case)
    check(network)
    models = own_models(network)
    if population_file is not None:
        models = Population.read(population_file, network)
    given = Certified(contingencies=wanted, emergency=emergency).outages(network)
    if ac:
        how: dict[str, Any] = {"as_json": as_json, "quiet": quiet}
        solve_ac(network, models, given, output=output, plot=plot, **how)
        return
    kinds = tuple((model or "strict").split("+"))
    size = 1 if models is None else models.size
    keep = dc.kept(kinds, size, output=output, plot=plot, as_json=as_json)
    with counted("solving", quiet=quiet or as_json) as progress, _executor(cluster) as executor:
        found = solve_population(
            network,
            models,
            model=kinds,  # type: ignore[arg-type]
            slack_price=slack_price,
            convention=convention or "series",  # type: ignore[arg-type]
            keep=keep,
            executor=executor,
            workers=workers,
            progress=progress,
            contingencies=given,
        )
    if output is not None:
        dc.write(found, output)
    if plot is not None:
        dc.plot(network, models, found, plot)
    dc.show(network, found, given, kinds=kinds, as_json=as_json, quiet=quiet)


def _executor(address: str | None) -> Any:
    from contextlib import nullcontext

    if address is None:
        return nullcontext()
    from gridveil.grid.opf.workers import connect

    return connect(address)


def _show_problems(case: str, found: Sequence[Problem], *, as_json: bool) -> None:
    if as_json:
        print_json({"name": Path(case).stem, "problems": [str(problem) for problem in found]})
        return
    out().print(f"{plain(case)} can't be used as it is.")
    for problem in found:
        out().print(f"[bold red]problem:[/] {plain(problem)}")


def _summary(network: Network) -> dict[str, Any]:
    return {
        "name": network.name,
        "buses": len(network.buses),
        "branches": len(network.branches),
        "generators": len(network.generators),
        "load_mw": _load(network),
        "generation_mw": _generation(network),
    }


def _notes(network: Network) -> list[str]:
    """What an owner should know of a network that has no problems."""
    load, generation = _load(network), _generation(network)
    if load <= generation:
        return []
    return [
        f"The load of {load:,.1f} MW is above the generation capacity in service of "
        f"{generation:,.1f} MW."
    ]


def _load(network: Network) -> float:
    return float(network.buses.load[network.buses.in_service].sum())


def _generation(network: Network) -> float:
    units = network.generators
    return float(units.p_max[units.in_service].sum())
