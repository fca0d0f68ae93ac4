"""Run a study: make the missing runs, store the results, and write figure and summary."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gridveil.studies.figure_style import save_figure
from gridveil.studies.results_folder import Store, write_atomically
from gridveil.studies.study_plan import NOTE, Plan, Run
from gridveil.studies.workers import Result, by_cluster, by_processes

if TYPE_CHECKING:
    import pandas as pd

SUMMARY_FILE = "summary.md"

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Findings:
    """A finished study: its folder, its results and its summary."""

    folder: Path
    table: pd.DataFrame
    summary: str


def run_study(
    plan: Plan,
    folder: Path | str,
    *,
    workers: int | None = None,
    cluster: str | None = None,
    progress: Progress | None = None,
) -> Findings:
    """Make every run of a plan that has no result in the folder, then draw and summarise.

    It can be stopped at any time, and continues when it is called again. The results do not
    depend on that, nor on which worker computes them.

    Parameters
    ----------
    plan
        The study, its number of runs and its seed.
    folder
        The folder of the results: ``results.parquet``, ``figure.png``, ``figure.svg`` and
        ``summary.md``.
    workers
        How many processes; the number of cores by default.
    cluster
        Address of a Dask scheduler, in place of processes.
    progress
        Called with the number of runs done and the number of all runs.

    Raises
    ------
    InputError
        If the folder has results of other settings.
    GridveilError
        If a run failed or a worker died; finished results are kept.
    """
    say = progress or (lambda done, total: None)
    with Store(folder, plan) as store:
        runs = plan.all_runs()
        missing = [run for run in runs if run.key not in store.done]
        shared = plan.study.prepare()
        done = len(runs) - len(missing)
        say(done, len(runs))
        for run, measured in _work(plan, shared, missing, workers, cluster):
            store.add(run, measured)
            done += 1
            say(done, len(runs))
        table = store.finish().to_pandas()
        summary = f"> {NOTE}\n\n{plan.study.words(table, shared).strip()}\n"
        save_figure(plan.study.draw(table, shared), store.folder)
        write_atomically(
            store.folder / SUMMARY_FILE, lambda path: path.write_bytes(summary.encode())
        )
        return Findings(store.folder, table, summary)


def _work(
    plan: Plan, shared: Any, runs: Sequence[Run], workers: int | None, cluster: str | None
) -> Iterator[Result]:
    if not runs:
        return iter(())
    if cluster is not None:
        return by_cluster(plan, shared, runs, cluster)
    return by_processes(plan, shared, runs, (os.cpu_count() or 1) if workers is None else workers)
