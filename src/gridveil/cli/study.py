"""``gridveil study``: the paper's figures with correct privacy, and ours beside them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gridveil.cli.case_options import takes
from gridveil.cli.common_options import JsonOption, QuietOption
from gridveil.cli.console import err, out, plain, print_json
from gridveil.errors import InputError

if TYPE_CHECKING:
    from gridveil.studies.study_plan import Study

app = typer.Typer(
    help="The paper's figures with correct privacy, and ours beside them.",
    no_args_is_help=True,
)

OutputOption = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", help="The study's folder. Default: study-NAME here.", show_default=False
    ),
]
RunsOption = Annotated[
    int | None, typer.Option(help="Runs a cell. Default: the study's own.", show_default=False)
]
WorkersOption = Annotated[
    int | None,
    typer.Option(help="Worker processes. Default: one for each core.", show_default=False),
]
ClusterOption = Annotated[
    str | None, typer.Option(help="Work on the Dask cluster with this scheduler address.")
]
SeedOption = Annotated[int, typer.Option(help="Seed of the study's noise.")]
FastOption = Annotated[
    bool, typer.Option("--fast", help="A small version of the study, in under a minute.")
]
AlphasOption = Annotated[
    str | None,
    typer.Option("--alpha", help="Adjacencies, joined by commas: 5%,15%,30%.", show_default=False),
]
MegawattsOption = Annotated[
    str | None,
    typer.Option("--alpha", help="Adjacencies in MW, joined by commas: 5,30.", show_default=False),
]
ModelsOption = Annotated[
    int | None,
    typer.Option(help="OPF models of the population. Default: 1000.", min=1, show_default=False),
]
EpsilonOption = Annotated[str, typer.Option(help="Epsilon of every release.")]
RowsOption = Annotated[int, typer.Option(help="How many records.", min=10)]


@dataclass(frozen=True)
class Job:
    """How a study is to be run; every command of a study has these options."""

    output: OutputOption = None
    runs: RunsOption = None
    workers: WorkersOption = None
    cluster: ClusterOption = None
    seed: SeedOption = 0
    fast: FastOption = False
    as_json: JsonOption = False
    quiet: QuietOption = False

    def do(self, study: Study, *, runs: int, fast_runs: int) -> None:
        """Run the study and say what was found."""
        from gridveil.cli.console import counted
        from gridveil.studies import Plan, run_study

        folder = self.output or Path(f"study-{study.name}{'-fast' if self.fast else ''}")
        if self.workers is not None and self.cluster is not None:
            raise InputError("Give a number of workers or a cluster, not both.")
        own = fast_runs if self.fast else runs
        plan = Plan(study, own if self.runs is None else self.runs, self.seed)
        try:
            with counted(f"study {study.name}", quiet=self.quiet or self.as_json) as progress:
                found = run_study(
                    plan, folder, workers=self.workers, cluster=self.cluster, progress=progress
                )
        except KeyboardInterrupt:
            err().print(
                f"\nInterrupted. What was done is kept in {plain(folder)}; the same command "
                "continues."
            )
            raise typer.Exit(130) from None
        if self.as_json:
            files = sorted(path.name for path in found.folder.iterdir() if path.is_file())
            print_json({"folder": str(found.folder), "files": files, "runs": len(found.table)})
        elif not self.quiet:
            from rich.markdown import Markdown

            out().print(Markdown(found.summary), soft_wrap=False)
            out().print(f"\nThe study: {plain(found.folder)}")


def study(command: Callable[..., None]) -> Callable[..., None]:
    """Make a command of a function that gets a `Job`."""
    return app.command()(takes(Job, "job")(command))


@study
def fig2(
    *,
    alpha: AlphasOption = None,
    epsilon: EpsilonOption = "1",
    rows: RowsOption = 1000,
    job: Job,
) -> None:
    """Wind releases for growing alpha: real and released records, and their regressions.

    Example: [cyan]gridveil study fig2 --fast[/]
    """
    from gridveil.studies.fig2 import Fig2

    given = _given(alphas=_shares(alpha, (0.05, 0.3) if job.fast else None))
    job.do(Fig2(**given, epsilon=_number(epsilon, "epsilon"), rows=rows), runs=25, fast_runs=3)


@study
def fig3(
    *,
    alpha: AlphasOption = None,
    epsilon: EpsilonOption = "1",
    rows: RowsOption = 1000,
    job: Job,
) -> None:
    """Loss of the regression on released records against alpha: mean and 90% band.

    Example: [cyan]gridveil study fig3 --runs 300[/]
    """
    from gridveil.studies.fig3 import Fig3

    given = _given(alphas=_shares(alpha, (0.05, 0.15, 0.3) if job.fast else None))
    job.do(Fig3(**given, epsilon=_number(epsilon, "epsilon"), rows=rows), runs=300, fast_runs=10)


@study
def fig4(
    *,
    line: Annotated[int, typer.Option(help="Which line, counted from 1.", min=1)] = 40,
    alpha: MegawattsOption = None,
    rounds: Annotated[
        str | None, typer.Option(help="Iteration limits T, joined by commas.", show_default=False)
    ] = None,
    epsilon: EpsilonOption = "1",
    models: ModelsOption = None,
    job: Job,
) -> None:
    """Distributions of the released capacity of one line, for growing alpha and T.

    Example: [cyan]gridveil study fig4 --line 40[/]
    """
    from gridveil.studies.fig4 import Fig4

    given = _given(
        alphas=_numbers(alpha, "alpha", (5.0, 30.0) if job.fast else None),
        rounds=_counts(rounds, (1, 2) if job.fast else None),
        models=models or (100 if job.fast else None),
    )
    job.do(Fig4(**given, epsilon=_number(epsilon, "epsilon"), line=line), runs=60, fast_runs=4)


@study
def fig5(
    *,
    alpha: MegawattsOption = None,
    rounds: Annotated[
        str | None, typer.Option(help="Iteration limits T, joined by commas.", show_default=False)
    ] = None,
    epsilon: EpsilonOption = "1",
    models: ModelsOption = None,
    job: Job,
) -> None:
    """Infeasible models and cost error against T, with published, correct and certified noise.

    Example: [cyan]gridveil study fig5 --runs 20[/]
    """
    from gridveil.studies.fig5 import Fig5

    given = _given(
        alphas=_numbers(alpha, "alpha", (5.0, 30.0) if job.fast else None),
        rounds=_counts(rounds, (1, 2, 3) if job.fast else None),
        models=models or (100 if job.fast else None),
    )
    job.do(Fig5(**given, epsilon=_number(epsilon, "epsilon")), runs=20, fast_runs=2)


@study
def honest(
    *,
    part: Annotated[str, typer.Option(help="wind, grid or both.")] = "both",
    epsilon: EpsilonOption = "1",
    job: Job,
) -> None:
    """The same results with the published code's noise, with correct noise, and by GridVeil.

    Wind and grid get a folder each inside the study's.

    Example: [cyan]gridveil study honest --part wind --fast[/]
    """
    from gridveil.studies.honest_grid import HonestGrid
    from gridveil.studies.honest_wind import HonestWind

    if part not in ("wind", "grid", "both"):
        raise InputError(f"There is no part {part!r}.", remedy="Use wind, grid or both.")
    amount = _number(epsilon, "epsilon")
    few: dict[str, Any]
    folder = job.output or Path(f"study-honest{'-fast' if job.fast else ''}")
    if part != "grid":
        few = {"alphas": (0.05, 0.15, 0.3)} if job.fast else {}
        replace(job, output=folder / "wind").do(
            HonestWind(epsilon=amount, **few), runs=300, fast_runs=10
        )
    if part != "wind":
        few = {"alphas": (5.0, 30.0), "rounds": 3, "models": 100} if job.fast else {}
        replace(job, output=folder / "grid").do(
            HonestGrid(epsilon=amount, **few), runs=30, fast_runs=3
        )


@study
def frontier(
    *,
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="[SOURCE]",
            help="Public records (CSV or Parquet), or a public network: a MATPOWER, pandapower or "
            "PyPSA file, rts96 or rts96-paper. Default: records about a turbine's curve.",
            show_default=False,
        ),
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(
            help="Of a release. Default: tuned for records, certified for networks.",
            show_default=False,
        ),
    ] = None,
    alpha: Annotated[
        str | None,
        typer.Option(
            help="Adjacencies, joined by commas: 5%,15% of capacity, or 5,15 MW for a network.",
            show_default=False,
        ),
    ] = None,
    epsilon: Annotated[
        str | None,
        typer.Option(help="Epsilons, joined by commas: 0.5,1,2.", show_default=False),
    ] = None,
    speed: Annotated[str | None, typer.Option(help="Records: column of wind speed.")] = None,
    power: Annotated[str | None, typer.Option(help="Records: column of power.")] = None,
    capacity: Annotated[
        float | None, typer.Option(help="Records: capacity, in the unit of power.")
    ] = None,
    turbine: Annotated[
        str | None, typer.Option(help="Without records: the turbine whose curve they are about.")
    ] = None,
    rows: Annotated[
        int | None, typer.Option(help="Without records: how many to make up.", min=10)
    ] = None,
    noise: Annotated[
        float | None,
        typer.Option(help="Without records: their distance from the curve, of capacity.", min=0),
    ] = None,
    models: Annotated[int | None, typer.Option(help="Networks: how many models.", min=1)] = None,
    spread: Annotated[
        float | None, typer.Option(help="Networks: loads and limits vary by this share.", min=0)
    ] = None,
    job: Job,
) -> None:
    """Accuracy against epsilon and alpha on a public stand-in, before any budget is spent.

    Never give it private data: what it prints and writes is not protected.

    Example: [cyan]gridveil study frontier --turbine E-126/4200 --alpha 5%,15%[/]
    """
    from gridveil.cli.frontier_studies import network_study, records_study

    of_network = source is not None and not source.endswith((".csv", ".csv.gz", ".parquet"))
    small = {"epsilons": (0.5, 2.0)} if job.fast else {}
    given = small | _given(epsilons=_numbers(epsilon, "epsilon", None), method=method)
    about_records = {"speed": speed, "power": power, "capacity": capacity}
    about_curve = {"turbine": turbine, "rows": rows, "noise": noise}
    about_network = {"models": models, "spread": spread}
    if of_network and source is not None:
        _refuse(about_records | about_curve, "a network")
        alphas = _numbers(alpha, "alpha", (5.0, 30.0) if job.fast else None)
        about_network["models"] = models or (100 if job.fast else None)
        study = network_study(source, **given, **_given(alphas=alphas, **about_network))
        job.do(study, runs=30, fast_runs=3)
        return
    _refuse(about_network, "wind power records")
    _refuse(about_records if source is None else about_curve, "this stand-in")
    alphas = _shares(alpha, (0.05, 0.3) if job.fast else None)
    details = _given(alphas=alphas, **about_records, **about_curve)
    job.do(records_study(source, **given, **details), runs=200, fast_runs=8)


def _refuse(options: dict[str, Any], what: str) -> None:
    for name, value in options.items():
        if value is not None:
            raise InputError(f"--{name} has no meaning for {what}.", remedy="Leave it out.")


def _given(**options: Any) -> dict[str, Any]:
    """The options that were given; a study has its own defaults."""
    return {name: value for name, value in options.items() if value is not None}


def _numbers(
    text: str | None, name: str, default: tuple[float, ...] | None
) -> tuple[float, ...] | None:
    if text is None:
        return default
    return tuple(sorted({_number(part, name) for part in text.split(",")}))


def _shares(text: str | None, default: tuple[float, ...] | None) -> tuple[float, ...] | None:
    """Alphas of wind power records: shares of capacity."""
    found = _numbers(text, "alpha", default)
    if found is not None and found[-1] > 1:
        raise InputError(
            f"--alpha has {text!r}, and an alpha is a share of capacity, at most 1.",
            remedy="Write --alpha 5%,15% or --alpha 0.05,0.15.",
        )
    return found


def _counts(text: str | None, default: tuple[int, ...] | None) -> tuple[int, ...] | None:
    if text is None:
        return default
    try:
        counts = tuple(sorted({int(part) for part in text.split(",")}))
    except ValueError:
        counts = ()
    if not counts or counts[0] < 1:
        raise InputError(f"The rounds {text!r} can't be read.", remedy="Write 1,5,10.")
    return counts


def _number(text: str, name: str) -> float:
    from gridveil.privacy.exact_numbers import exact

    return float(exact(text, name=name))
