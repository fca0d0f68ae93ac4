"""``gridveil grid``: look at a network, sample models, solve them, release and evaluate."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gridveil.cli.cases import CaseArgument, read
from gridveil.cli.console import (
    JsonOption,
    QuietOption,
    check_outputs,
    out,
    plain,
    print_json,
    table,
)
from gridveil.cli.grid_release import evaluate, release
from gridveil.errors import InputError

if TYPE_CHECKING:
    from gridveil.grid.network import Network
    from gridveil.grid.opf import Solutions
    from gridveil.grid.population import Population

app = typer.Typer(help="Release networks; populations of optimal power flow.", no_args_is_help=True)
app.command()(release)
app.command()(evaluate)


@app.command()
def info(case: CaseArgument, as_json: JsonOption = False) -> None:
    """Summarise a network, and explain every problem in it. Exit code 1 if there are any.

    Example: [cyan]gridveil grid info rts96[/]
    """
    from gridveil.grid import problems

    network = read(case)
    found = problems(network)
    if as_json:
        print_json({**_summary(network), "problems": [str(problem) for problem in found]})
    else:
        from rich.markup import escape

        out().print(escape(repr(network)))
        for problem in found:
            out().print(f"[bold red]problem:[/] {plain(problem)}")
    raise typer.Exit(1 if found else 0)


@app.command()
def population(
    case: CaseArgument,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The Parquet file.", show_default=False)
    ],
    size: Annotated[int, typer.Option(help="How many models.")] = 1000,
    spread: Annotated[
        float, typer.Option(help="Loads and generator limits vary by this share either way.")
    ] = 0.125,
    costs: Annotated[
        str | None,
        typer.Option(help="80,100: costs uniform in this range, $/MWh. 0.1: vary by this share."),
    ] = "80,100",
    private: Annotated[
        str,
        typer.Option(help="The parameter that a release will protect, or several: capacity,load."),
    ] = "capacity",
    seed: Annotated[int, typer.Option(help="Seed of the public draw.")] = 0,
    quiet: QuietOption = False,
) -> None:
    """Sample a population of OPF models on a network, as public multipliers.

    Example: [cyan]gridveil grid population rts96 --size 1000 -o models.parquet[/]
    """
    from gridveil.grid import sample_population

    network = read(case)
    made = sample_population(
        network, size, spread=spread, costs=_costs(costs), seed=seed, private=private
    )
    made.write(output)
    if not quiet:
        from rich.markup import escape

        out().print(escape(repr(made)))
        out().print(f"Written to {plain(output)}")


@app.command()
def solve(
    case: CaseArgument,
    population_file: Annotated[
        Path | None,
        typer.Option("--population", help="A population's Parquet file. Default: the case alone."),
    ] = None,
    model: Annotated[
        str, typer.Option(help="strict, relaxed, shed or limits; joined by + for several.")
    ] = "strict",
    slack_price: Annotated[
        float | None, typer.Option(help="Price of what the model lets one buy, $/MWh.")
    ] = None,
    convention: Annotated[
        str, typer.Option(help="series (as PowerModels) or matpower.")
    ] = "series",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write one row a model as Parquet.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw the network, loading by line: a PNG or SVG file.")
    ] = None,
    workers: Annotated[int | None, typer.Option(help="Solve in this many processes.")] = None,
    cluster: Annotated[
        str | None, typer.Option(help="Solve on the Dask cluster with this scheduler address.")
    ] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Solve the DC optimal power flow of a network, or of every model of a population.

    Example: [cyan]gridveil grid solve rts96 --population models.parquet --json[/]
    """
    from gridveil.cli.progress import counted
    from gridveil.grid import check, solve_population
    from gridveil.grid.population import Population

    check_outputs(output, plot)
    if plot is not None and plot.suffix not in (".png", ".svg"):
        raise InputError(f"{plot} is no picture's name.", remedy="Let it end in .png or .svg.")
    network = read(case)
    check(network)
    models = None if population_file is None else Population.read(population_file, network)
    with counted("solving", quiet=quiet or as_json) as progress, _executor(cluster) as executor:
        found = solve_population(
            network,
            models,
            model=tuple(model.split("+")),  # type: ignore[arg-type]
            slack_price=slack_price,
            convention=convention,  # type: ignore[arg-type]
            keep=("flow",) if plot else ("cost",),
            executor=executor,
            workers=workers,
            progress=progress,
        )
    if output is not None:
        _write(found, output)
    if plot is not None:
        _plot(network, models, found, plot)
    _show(network, found, as_json=as_json, quiet=quiet)


def _costs(text: str | None) -> tuple[float, float] | float | None:
    if text is None or text == "none":
        return None
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if len(numbers) == 1:
        return numbers[0]
    if len(numbers) != 2:
        raise InputError(
            f"The costs {text!r} can't be read.", remedy="Write 80,100 or 0.1 or none."
        )
    return numbers[0], numbers[1]


def _executor(address: str | None) -> Any:
    from contextlib import nullcontext

    if address is None:
        return nullcontext()
    from gridveil.cluster import connect

    return connect(address)


def _write(found: Solutions, path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from gridveil.grid.opf import Status

    columns = {
        "cost": found.cost,
        "status": [Status(status).name.lower() for status in found.status],
        "bound": found.bound,
        "gap": found.gap,
    }
    pq.write_table(pa.table(columns), path)


def _plot(network: Network, models: Population | None, found: Solutions, path: Path) -> None:
    import numpy as np

    from gridveil.grid.picture import draw_network

    if found.flow is None or not np.isfinite(found.cost).any():
        raise InputError(
            "No model is feasible, so there is nothing to draw.",
            remedy="Draw a relaxed one: --model relaxed --slack-price 3000.",
        )
    some = np.isfinite(found.cost)
    loading = np.abs(found.flow[some]) / network.branches.capacity
    if models is not None and models.capacity is not None:
        loading = loading / models.capacity[some]
    title = network.name if len(found) == 1 else f"{network.name}, mean of {some.sum():,} models"
    draw_network(network, np.nan_to_num(loading).mean(0), path, title=title)


def _show(network: Network, found: Solutions, *, as_json: bool, quiet: bool) -> None:
    import numpy as np

    from gridveil.grid.opf import Status

    finite = found.cost[np.isfinite(found.cost)]
    if as_json:
        if len(found) == 1:
            print_json({"cost": _number(found.cost[0]), **_one(found, 0)})
        else:
            costs = [_number(cost) for cost in found.cost]
            print_json({"cost": costs, "infeasible": len(found) - len(finite)})
        return
    if quiet:
        return
    shown = table("models", "status", "cost ($/h): lowest", "mean", "highest", "largest gap")
    for status in Status:
        some = found.status == status
        if some.any():
            costs = found.cost[some]
            ends = (costs.min(), costs.mean(), costs.max()) if np.isfinite(costs).all() else ()
            figures = [f"{cost:,.2f}" for cost in ends] or ["", "", ""]
            gap = f"{found.gap[some].max():.1e}" if ends else ""
            shown.add_row(f"{some.sum():,}", status.name.lower(), *figures, gap)
    out().print(plain(network.name))
    out().print(shown)


def _one(found: Solutions, index: int) -> dict[str, Any]:
    from gridveil.grid.opf import Status

    status = Status(found.status[index]).name.lower()
    return {"status": status, "bound": _number(found.bound[index])}


def _number(value: float) -> float | None:
    import math

    return float(value) if math.isfinite(value) else None


def _summary(network: Network) -> dict[str, Any]:
    lines, units = network.branches, network.generators
    return {
        "name": network.name,
        "buses": len(network.buses),
        "branches": len(lines),
        "generators": len(units),
        "load_mw": float(network.buses.load.sum()),
        "generation_mw": float(units.p_max[units.in_service].sum()),
    }
