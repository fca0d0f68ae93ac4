"""Make runs in worker processes of this machine, or on a Dask cluster.

A worker gets the study and what its runs share once, and then one run after another. Workers
inherit no memory, use one thread each, and end when this process does, however it ends.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
import traceback
import warnings
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from gridveil.errors import GridveilError, InputError, NotPrivateWarning
from gridveil.studies.study_plan import Measures, Plan, Run

Result = tuple[Run, Measures]

_AHEAD = 2  # runs sent to a worker in advance, so that it never waits for the next
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


def by_processes(plan: Plan, shared: Any, runs: Sequence[Run], workers: int) -> Iterator[Result]:
    """Yield results of runs as they arrive from worker processes.

    Raises
    ------
    GridveilError
        If a run failed or a worker died.
    """
    if workers < 1:
        raise InputError(f"A study needs 1 worker or more, not {workers}.")
    left = deque(runs)
    packed = pickle.dumps((plan, shared))
    with _processes(min(workers, len(runs)), packed) as pool:
        held = {pipe: [left.popleft() for _ in range(min(_AHEAD, len(left)))] for pipe in pool}
        for pipe, some in held.items():
            for run in some:
                _send(pipe, run)
        while any(held.values()):
            ready = set(wait([pipe for pipe, some in held.items() if some]))
            for pipe in (pipe for pipe in pool if pipe in ready):
                yield held[pipe].pop(0), _receive(pipe)
                if left:
                    held[pipe].append(left.popleft())
                    _send(pipe, held[pipe][-1])


def _send(pipe: Connection, run: Run) -> None:
    # If a worker has just died, its last results are read first; reading then reports its death.
    with suppress(BrokenPipeError):
        pipe.send(run)


def by_cluster(plan: Plan, shared: Any, runs: Sequence[Run], address: str) -> Iterator[Result]:
    """Yield results of runs as they arrive from the Dask cluster with this scheduler address."""
    from gridveil.grid.opf.workers import connect  # loaded here: it needs all of the grid package

    with connect(address) as client:
        from distributed import as_completed

        packed = client.scatter(pickle.dumps((plan, shared)), broadcast=True)
        futures = [client.submit(_do, packed, run, pure=False, retries=3) for run in runs]
        which = {future.key: run for future, run in zip(futures, runs, strict=True)}
        done = as_completed(futures, loop=client.loop)  # type: ignore[no-untyped-call]
        for future in done:
            yield which[future.key], _unpacked(future.result())
            future.release()


def _receive(pipe: Connection) -> Measures:
    try:
        answer = pipe.recv()
    except (EOFError, OSError):
        raise GridveilError(
            "A worker process died. The results that were there are kept.",
            remedy="Is there enough memory for so many workers? Try fewer: the same command "
            "continues.",
        ) from None
    return _unpacked(answer)


def _unpacked(answer: Measures | str) -> Measures:
    if isinstance(answer, str):
        raise GridveilError(
            f"A run failed: {answer}",
            remedy="The results that were there are kept; the same command continues.",
        )
    return answer


@contextmanager
def _processes(count: int, packed: bytes) -> Iterator[list[Connection]]:
    """Start workers, and end them at the end of this context."""
    context = multiprocessing.get_context("spawn")
    pipes: list[Connection] = []
    workers: list[BaseProcess] = []
    try:
        with _one_thread_each(), _deaf_to_interrupts():
            for _ in range(count):
                ours, theirs = context.Pipe()
                workers.append(context.Process(target=_serve, args=(theirs,), daemon=True))
                workers[-1].start()
                theirs.close()
                pipes.append(ours)
        for pipe in pipes:
            pipe.send_bytes(packed)
        yield pipes
    finally:
        for pipe in pipes:
            pipe.close()
        for worker in workers:
            worker.kill()
            worker.join()


def _serve(pipe: Connection) -> None:
    """Run a worker: receive the study, then make runs until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        packed = pipe.recv_bytes()
        while True:
            run = pipe.recv()
            pipe.send(_do(packed, run))
    except (EOFError, OSError):
        return


def _do(packed: bytes, run: Run) -> Measures | str:
    """Make one run; if it fails, return a text, since not every exception can be pickled."""
    try:
        plan, world = _desk(packed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotPrivateWarning)
            return plan.study.run(world, plan.cells[run.place], run.seed)
    except Exception as error:  # noqa: BLE001 - the data is public, and so is the reason
        where = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__}: {error} ({where.name}, line {where.lineno})"


@lru_cache(maxsize=1)
def _desk(packed: bytes) -> tuple[Plan, Any]:
    plan, shared = pickle.loads(packed)
    return plan, plan.study.world(shared)


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Let processes that start here use one thread for linear algebra: sums have one order."""
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Let processes that start here ignore interrupts; this process ends them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
