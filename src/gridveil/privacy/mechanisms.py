"""The only code that looks at private data: it takes epsilon from an account and adds noise.

Every mechanism goes through the same steps, in this order:

1. check the public parameters and calibrate the noise by OpenDP's privacy map;
2. spend the epsilon (a refusal leaves everything as it was);
3. open the seal and compute the query's answer;
4. clip the answer to its public range and round it to the public grid;
5. add noise.

Steps 1 and 2 depend on public numbers only. A query that fails in step 3 aborts the release with
its epsilon spent and an error that says nothing of the reason, which may be private.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Generic, NoReturn, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from gridveil.errors import InputError, LedgerError, ReleaseAborted
from gridveil.privacy.account import Account
from gridveil.privacy.budget import Exact, exact
from gridveil.privacy.noise import Integers
from gridveil.privacy.record import Record
from gridveil.privacy.sealed import Limits, Sealed, unseal
from gridveil.privacy.sensitivity import Sensitivity, calibrate_laplace, calibrate_noisy_max

Vector = NDArray[np.float64]
_FROM_OUTSIDE = (GeneratorExit, KeyboardInterrupt, SystemExit)

T = TypeVar("T")
V = TypeVar("V")


class Blocks(Protocol):
    """A private column too long for memory, read in blocks of rows, from the first row each time.

    To check of a reader (wind has `HeldPower` and `StreamedPower`): every pass gives the same rows
    in the same order; where blocks end depends on what is public alone; every value is clipped to
    the seal's range as it is read; and no value is kept beyond its block.
    """

    def __call__(self) -> Iterator[Vector]:
        """The blocks, from the first row on."""


@dataclass(frozen=True)
class Noisy(Generic[V]):
    """A noisy answer, free to use, with the record of how it came about."""

    value: V
    record: Record


def laplace(
    account: Account,
    sealed: Sealed[T],
    *,
    query: Callable[[T], Any] | None = None,
    name: str,
    sensitivity: Sensitivity,
    epsilon: Exact,
    size: int | None = None,
    limits: Limits | None = None,
    unit: str | None = None,
    grid: Fraction | None = None,
) -> Noisy[Vector]:
    """Answer a vector query on sealed data with independent Laplace noise on every coordinate.

    Parameters
    ----------
    query
        Maps the opened data to a vector of ``size`` numbers; the data itself by default.
    sensitivity
        How far the answer moves between neighbours, in L1.
    size, limits, unit
        Of the answer: its length, the public range it is clipped to, its unit. The sealed
        data's own by default.
    grid
        A power of two that answers are rounded to; chosen from the sensitivity by default.

    Raises
    ------
    InputError, BudgetRefused
        Before anything was spent or opened.
    ReleaseAborted
        If the query failed; its epsilon stays spent.
    """
    record = _laplace_record(sealed, name, sensitivity, epsilon, size, limits, unit, grid)
    if query is not None:
        sensitivity.check_moving(record.size)
    account.spend(record)
    value = _quietly(lambda: _add_laplace(account, _answer(sealed, query, record.size), record))
    if value is None:
        _abort(account)
    account.answered(record, value.copy())
    return Noisy(value, record)


def laplace_scalar(
    account: Account,
    sealed: Sealed[T],
    *,
    query: Callable[[T], float],
    name: str,
    sensitivity: Sensitivity,
    epsilon: Exact,
    limits: Limits,
    unit: str,
    grid: Fraction | None = None,
) -> Noisy[float]:
    """Answer a query that gives one number. Parameters as in `laplace`."""
    noisy = laplace(
        account,
        sealed,
        query=query,
        name=name,
        sensitivity=sensitivity,
        epsilon=epsilon,
        size=1,
        limits=limits,
        unit=unit,
        grid=grid,
    )
    return Noisy(float(noisy.value[0]), noisy.record)


def laplace_blocks(
    account: Account,
    sealed: Sealed[Blocks],
    *,
    name: str,
    sensitivity: Sensitivity,
    epsilon: Exact,
    grid: Fraction | None = None,
) -> Noisy[Iterator[Vector]]:
    """`laplace` of a column too long for memory: the same noise, block by block.

    The epsilon is spent when this is called, not when the first block is read. The blocks can be
    read once: reading them again would draw other noise on the same data. Whoever collects them
    notes them in the account.
    """
    record = _laplace_record(sealed, name, sensitivity, epsilon, None, None, None, grid)
    account.spend(record)

    def noisy() -> Iterator[Vector]:
        rows = 0
        for block in _noisy_blocks(account, sealed, record):
            if block is None:
                _abort(account)
            rows += len(block)
            yield block
        if rows != record.size:
            _abort(account)

    return Noisy(noisy(), record)


def noisy_max(
    account: Account,
    sealed: Sealed[T],
    *,
    query: Callable[[T], Any],
    name: str,
    sensitivity: Sensitivity,
    epsilon: Exact,
    size: int,
    limits: Limits,
    unit: str,
    monotone: bool,
    grid: Fraction | None = None,
) -> Noisy[int]:
    """Choose the index of a large score, by exponential noise. The score itself stays private.

    ``sensitivity`` is how far *each* of the ``size`` scores can move between neighbours. Scores
    are ``monotone`` if a step to a neighbour moves all of them the same way (none up while another
    goes down): such scores need half the noise. Everything else is as in `laplace`.
    """
    _check_size(size)
    calibration = calibrate_noisy_max(
        sensitivity, exact(epsilon, name="epsilon"), limits, monotone=monotone, grid=grid
    )
    kind = "monotone scores" if monotone else "scores of any kind"
    record = Record(
        name, f"noisy max, exponential, {kind}", unit, size, sensitivity, calibration, limits
    )
    account.spend(record)
    chosen = _quietly(
        lambda: account.noise.noisy_max(
            _quantise(_answer(sealed, query, size), record), calibration.scale
        )
    )
    if chosen is None:
        _abort(account)
    account.answered(record, np.array([float(chosen)]))
    return Noisy(chosen, record)


def _laplace_record(
    sealed: Sealed[Any],
    name: str,
    sensitivity: Sensitivity,
    epsilon: Exact,
    size: int | None,
    limits: Limits | None,
    unit: str | None,
    grid: Fraction | None,
) -> Record:
    limits = limits or sealed.limits
    size = len(sealed) if size is None else size
    _check_size(size)
    calibration = calibrate_laplace(sensitivity, exact(epsilon, name="epsilon"), limits, grid)
    return Record(
        name, "discrete Laplace", unit or sealed.unit, size, sensitivity, calibration, limits
    )


def _check_size(size: int) -> None:
    if size < 1:
        raise InputError("There are no values to release.", remedy="Give at least one row.")


def _quietly(compute: Callable[[], V]) -> V | None:
    """Run a computation on private data; None where it fails, whatever the reason.

    Its exception is dropped with all its frames, so an error that is raised for it afterwards has
    no private number in its text, its context or the variables of its traceback.
    """
    try:
        return compute()
    except _FROM_OUTSIDE:
        raise
    except BaseException:  # noqa: BLE001 - whatever it is, a panic of Rust too, it may be private
        return None


def _answer(sealed: Sealed[T], query: Callable[[T], Any] | None, size: int) -> Vector:
    contents = unseal(sealed)
    given = contents if query is None else query(contents)
    return _checked(np.atleast_1d(np.asarray(given, dtype=np.float64)), (size,))


def _checked(answer: Vector, shape: tuple[int, ...]) -> Vector:
    # OpenDP does not check what it is given.
    if answer.shape != shape or not np.isfinite(answer).all():
        raise ValueError
    return answer


def _noisy_blocks(
    account: Account, sealed: Sealed[Blocks], record: Record
) -> Iterator[Vector | None]:
    """The blocks of a column with noise; None in place of one that failed, and nothing after."""
    try:
        for block in unseal(sealed)():
            yield _add_laplace(account, _checked(block, (len(block),)), record)
        return
    except _FROM_OUTSIDE:
        raise
    except BaseException:  # noqa: BLE001 - as in `_quietly`
        pass
    yield None


def _abort(account: Account) -> NoReturn:
    try:
        account.abort()
        noted = "and the ledger notes the abort"
    except LedgerError:
        noted = "but the ledger could not note the abort"
    raise ReleaseAborted(
        "A computation on the private data failed, and the release was stopped. Its epsilon "
        f"stays spent, {noted}.",
        remedy="The reason is withheld, since it may depend on private values.",
    )


def _add_laplace(account: Account, answer: Vector, record: Record) -> Vector:
    steps = account.noise.laplace(_quantise(answer, record), record.calibration.scale)
    return np.asarray(steps * float(record.calibration.grid), dtype=np.float64)


def _quantise(answer: Vector, record: Record) -> Integers:
    # The grid is a power of two, so the division is exact.
    steps = np.rint(record.limits.clip(answer) / float(record.calibration.grid))
    return steps.astype(np.int64)
