"""The same answers in the same order, whatever solves the models."""

import os
import signal
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import suppress

import numpy as np
import pytest
from grid.reference import random_network

from gridveil.errors import GridveilError
from gridveil.grid.model.population import Population
from gridveil.grid.opf.engine import Status, solve_population
from gridveil.grid.opf.workers import processes

KEEP = ("dispatch", "flow", "line_price", "nodal_price", "limit_price", "shed", "overload")
FIELDS = ("cost", "status", "bound", "gap", "dispatch", "flow", "line_price", "nodal_price")


@pytest.fixture(scope="module")
def network():
    return random_network(4, tight=1.1)


@pytest.fixture(scope="module")
def population():
    rng = np.random.default_rng(0)
    load = rng.uniform(0.7, 1.1, (60, 6))
    load[7] = 30.0  # one that is infeasible
    return Population(60, load=load, cost=rng.uniform(80, 100, (60, 8)))


@pytest.fixture(scope="module")
def expected(network, population):
    found = solve_population(network, population, keep=KEEP, chunk=5)
    assert found.status[7] == Status.INFEASIBLE
    assert (np.delete(found.status, 7) == Status.OPTIMAL).mean() > 0.8
    return found


def same(found, expected):
    for name in FIELDS:
        assert getattr(found, name).tobytes() == getattr(expected, name).tobytes(), name


class Backwards:
    """An executor that runs everything at the end, last first."""

    def __init__(self):
        self.waiting = []

    def submit(self, function, *args):
        self.waiting.append((Future(), function, args))
        if len(self.waiting) == 12:
            for future, work, given in reversed(self.waiting):
                future.set_result(work(*given))
        return self.waiting[-1][0]


def test_the_order_of_work_does_not_matter(network, population, expected):
    same(solve_population(network, population, keep=KEEP, chunk=5, executor=Backwards()), expected)


def test_threads(network, population, expected):
    with ThreadPoolExecutor(3) as pool:
        same(solve_population(network, population, keep=KEEP, chunk=5, executor=pool), expected)


def test_processes(network, population, expected):
    seen = []
    found = solve_population(
        network, population, keep=KEEP, chunk=5, workers=2, progress=lambda *n: seen.append(n)
    )
    same(found, expected)
    assert len(seen) == 12
    assert seen[-1] == (60, 60)
    assert sorted(seen) == seen


def test_a_dead_process_is_an_error_and_not_an_answer(network, population):
    with ProcessPoolExecutor(1) as pool:
        victim = pool.submit(os.getpid).result()
        os.kill(victim, signal.SIGKILL)
        with pytest.raises(GridveilError, match="worker process died"):
            solve_population(network, population, chunk=5, executor=pool)


@pytest.mark.filterwarnings("ignore")
def test_a_dask_cluster_of_which_a_worker_is_killed(network, population, expected):
    distributed = pytest.importorskip("distributed")
    dask_config = pytest.importorskip("dask.config")
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
    )
    # Answers that died with the worker are asked for again once asking it has timed out. Workers
    # keep the usual time: a loaded machine needs it to start another one.
    patience = dask_config.set({"distributed.comm.timeouts.connect": "3s"})
    with cluster, distributed.Client(cluster) as client, patience:
        workers = client.run(os.getpid)
        assert len(set(workers.values())) == 2
        same(solve_population(network, population, keep=KEEP, chunk=5, executor=client), expected)
        killed = []

        def kill_one(done, total):
            if not killed and done >= total // 2:
                killed.append(next(iter(workers.values())))
                os.kill(killed[0], signal.SIGKILL)

        found = solve_population(
            network, population, keep=KEEP, chunk=2, executor=client, progress=kill_one
        )
        assert killed
        same(found, solve_population(network, population, keep=KEEP, chunk=2))
        with suppress(TimeoutError):  # closing a cluster while it restarts a worker takes long
            client.wait_for_workers(2, timeout=60)
        through = client.get_executor(pure=False)
        same(solve_population(network, population, keep=KEEP, chunk=5, executor=through), expected)


def test_workers_have_one_thread_of_blas_each(monkeypatch):
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    monkeypatch.setenv("MKL_NUM_THREADS", "3")
    with processes(1) as pool:
        seen = [
            pool.submit(os.getenv, name).result()
            for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
        ]
    assert seen == ["1", "3"]
    assert "OPENBLAS_NUM_THREADS" not in os.environ
