"""Solve chunks of models one after another or by workers, with the same answers either way.

How a population is cut into chunks depends only on it and its network, and every chunk starts with
a new solver. So an answer does not depend on which process computed it, nor on what else that
process computed.

Workers get plain arrays, by value. Private data must not be sent to them: code that holds private
data leaves `executor` and `workers` out, and the models are solved in its own process.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import (
    BrokenExecutor,
    Executor,
    Future,
    ProcessPoolExecutor,
)
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from gridveil.errors import GridveilError, InputError
from gridveil.grid.model.network import Network
from gridveil.grid.model.population import Population
from gridveil.grid.opf.certificates import Certified, overload
from gridveil.grid.opf.fallbacks import Ladder, Status
from gridveil.grid.opf.formulation import Batch, Formulation, Settings

Found = TypeVar("Found")


def connect(address: str) -> Any:
    """Connect to a Dask scheduler; close the client, or use it in a ``with`` block.

    The client does not become Dask's default, so other uses of Dask in this process are not
    affected, even if the connection fails.

    Raises
    ------
    InputError
        If Dask is not installed or the scheduler does not answer.
    """
    try:
        from distributed import Client
    except ImportError:
        raise InputError(
            "A cluster needs Dask, which is not installed.",
            remedy="pip install 'gridveil[cluster]'",
        ) from None
    try:
        return Client(  # type: ignore[no-untyped-call]
            address, timeout=10, set_as_default=False
        )
    except (OSError, ValueError):
        raise InputError(
            f"There is no Dask scheduler at {address}.", remedy="Check the address."
        ) from None


Floats = NDArray[np.float64]
Part = dict[str, NDArray[Any]]
Progress = Callable[[int, int], None]

_THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")
# Chunks are cut so that their largest arrays have about this many entries.
CHUNK_ENTRIES = 2_000_000
SMALLEST_CHUNK, LARGEST_CHUNK = 16, 256


@dataclass(frozen=True, eq=False)
class Chunk:
    """Some models for a worker: the network and settings as bytes, and plain arrays."""

    setting: bytes
    population: Population
    capacity: Floats
    keep: frozenset[str]


def chunk_size(network: Network, outages: int = 0) -> int:
    """Choose how many models a chunk has."""
    width = len(network.buses) + len(network.generators) + len(network.branches) * (1 + outages)
    least = 1 if outages else SMALLEST_CHUNK
    return int(np.clip(CHUNK_ENTRIES // max(width, 1), least, LARGEST_CHUNK))


def cut(population: Population, size: int) -> Iterator[Population]:
    """Cut a population into chunks of models, in order."""
    names = ("load", "p_min", "p_max", "cost", "cost_factor", "capacity")
    for start in range(0, population.size, size):
        count = min(size, population.size - start)
        arrays = {name: getattr(population, name) for name in names}
        some = {n: a[start : start + count] for n, a in arrays.items() if a is not None}
        yield replace(population, size=count, **some)


def pack(network: Network, settings: Settings, own_costs: bool) -> bytes:
    """Pickle what all chunks have in common, without the network's source."""
    return pickle.dumps((replace(network, source=None), settings, own_costs))


def formulate(
    network: Network, settings: Settings, own_costs: bool, like: Formulation | None = None
) -> Formulation:
    """Build the formulation; reuse the flows of `like`, another one of the same network."""
    return Formulation(
        network,
        settings.convention,
        own_costs=own_costs,
        pieces=settings.pieces,
        slack=settings.slack,
        flows=None if like is None else like.flows,
        contingencies=settings.contingencies,
    )


def solve_part(
    ladder: Ladder, population: Population, capacity: Floats, keep: frozenset[str]
) -> Part:
    """Solve one chunk, and return the results named in `keep`."""
    form, lines = ladder.form, len(ladder.form.flows.b)
    batch = form.batch(population, capacity)
    status, found = ladder.solve(batch)
    part: Part = {
        "status": status,
        "cost": found.cost,
        "bound": found.bound,
        "gap": found.gap,
        "violation": found.violation,
        "error": batch.bounds.error,
    }
    extra: dict[str, Callable[[], Part]] = {
        "dispatch": lambda: {"dispatch": form.columns.dispatch(found.x)},
        "flow": lambda: {"flow": np.where(form.flows.live, found.flow[:, :lines], 0.0)},
        "line_price": lambda: {"line_price": _line_price(form, batch, found.prices)},
        "nodal_price": lambda: {"nodal_price": _at_buses(form, found.nodal)},
        "limit_price": lambda: form.columns.limit_prices(population, found.nodal),
        "shed": lambda: {"shed": form.columns.shed(found.x, form.flows.buses)},
        "overload": lambda: {"overload": overload(batch, found.flow - batch.base)[:, :lines]},
        "room_price": lambda: {"room_price": _room_price(found)},
    }
    unsolved = status > Status.UNCERTIFIED
    for name in sorted(keep - {"cost"}):
        for key, values in extra[name]().items():
            part[key] = np.where(unsolved[:, None] if values.ndim > 1 else unsolved, np.nan, values)
    return part


def _line_price(form: Formulation, batch: Batch, prices: Floats) -> Floats:
    # A limit that comes from an angle is not a capacity, so its price does not count.
    found = np.asarray(np.where(batch.rated, prices, 0.0).sum(1))
    if form.flows.outages is None:
        return found
    normal, after = np.split(found, [len(form.flows.b)], axis=1)
    return np.asarray(normal + form.flows.outages.to_ratings(after))


def _room_price(found: Certified) -> Floats:
    # The price of an island's balance is the nodal price of its reference bus.
    return np.asarray(found.prices.sum((1, 2)) + np.abs(found.nodal).sum(1))


def _at_buses(form: Formulation, nodal: Floats) -> Floats:
    return np.where(form.flows.island < 0, np.nan, nodal)


@lru_cache(maxsize=1)
def _formulation(setting: bytes) -> tuple[Formulation, Settings]:
    # Called only in workers, so only with public data. It holds no result of any solve.
    network, settings, own_costs = pickle.loads(setting)
    return formulate(network, settings, own_costs), settings


def solve_chunk(chunk: Chunk) -> Part:
    """Solve one chunk in a worker, with a new solver."""
    form, settings = _formulation(chunk.setting)
    ladder = Ladder(form, tolerance=settings.tolerance, all_rows=settings.rows == "all")
    return solve_part(ladder, chunk.population, chunk.capacity, chunk.keep)


def by_workers(
    executor: Any, work: Callable[..., Found], asked: Iterable[tuple[Any, ...]]
) -> Iterator[Found]:
    """Run calls on an executor or a Dask client; yield their results in order."""
    if hasattr(executor, "get_executor"):
        # A Dask client: if a worker dies, its call goes to another one.
        executor = executor.get_executor(pure=False, retries=3)
    futures: list[Future[Found]] = []
    try:
        # `submit` fails too once the executor knows that one of its processes died.
        for words in asked:
            futures.append(executor.submit(work, *words))
        for future in futures:
            yield future.result()
    except BrokenExecutor as error:
        raise GridveilError(
            "A worker process died before its models were solved.",
            remedy="Is there enough memory for so many workers? Try fewer, or none.",
        ) from error
    finally:
        for future in futures:
            future.cancel()


def solve_by_workers(executor: Any, chunks: list[Chunk], progress: Progress | None) -> list[Part]:
    """Solve chunks on an executor or a Dask client; return the results in order."""
    total = sum(chunk.population.size for chunk in chunks)
    parts: list[Part] = []
    done = 0
    for part in by_workers(executor, solve_chunk, ((chunk,) for chunk in chunks)):
        done += chunks[len(parts)].population.size
        parts.append(part)
        if progress is not None:
            progress(done, total)
    return parts


@contextmanager
def processes(workers: int) -> Iterator[Executor]:
    """Start worker processes by "spawn", so that they inherit no memory of this process.

    Each gets one BLAS thread, unless the user set another number, so that the workers together use
    as many threads as there are workers.
    """
    context = multiprocessing.get_context("spawn")
    # Workers start when work is submitted, and read these variables when they load NumPy.
    added = {name: "1" for name in _THREADS if name not in os.environ}
    os.environ.update(added)
    try:
        with ProcessPoolExecutor(workers, mp_context=context) as pool:
            yield pool
    finally:
        for name in added:
            os.environ.pop(name, None)
