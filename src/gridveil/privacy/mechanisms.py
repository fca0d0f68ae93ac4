"""The only code that looks at private data: it takes epsilon from an account and adds noise.

Every mechanism goes through the same steps, in this order:

1. check the public parameters and calibrate the noise by OpenDP's privacy map;
2. spend the epsilon (a refusal leaves everything as it was);
3. open the seal and compute the query's answer;
4. clip the answer to its public range and round it to the public grid;
5. add noise.

Steps 1 and 2 depend on public numbers only. A query that fails in step 3 aborts the release with
its epsilon spent and an error that says nothing of the reason, which may be private. It calls back
into the query that it was given: nothing else of a release runs while a seal is open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Generic, NoReturn, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from gridveil.errors import InputError, LedgerError, ReleaseAborted, unwarned
from gridveil.privacy.account import Account, Record
from gridveil.privacy.exact_numbers import Exact, exact
from gridveil.privacy.noise import Integers
from gridveil.privacy.sealed import Range, Sealed, unseal
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
    range: Range | None = None,
    unit: str | None = None,
    grid: Fraction | None = None,
) -> Noisy[Vector]:
    """Answer a vector query on sealed data with independent Laplace noise on every coordinate.

    Parameters
    ----------
    query
        Maps the opened data to a vector; the data itself by default.
    sensitivity
        How far the answer moves between neighbours, in L1.
    size, range, unit
        Of the answer: its length, the public range it is clipped to, its unit. By default those of
        the sealed data.
    grid
        A power of two that answers are rounded to; chosen from the sensitivity by default.

    Raises
    ------
    InputError, BudgetRefused
        Before anything was spent or opened.
    ReleaseAborted
        If the query failed; its epsilon stays spent.
    """
    record = _laplace_record(sealed, name, sensitivity, epsilon, size, range, unit, grid)
    if query is not None:
        sensitivity.check_moving(record.size)
    account.spend(record)
    value = _quietly(account, lambda: _noised(account, _answer(sealed, query, record), record))
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
    range: Range,
    unit: str,
    grid: Fraction | None = None,
) -> Noisy[float]:
    """Answer a query that gives one number. Parameters as in `laplace`."""
    how: dict[str, Any] = {"name": name, "sensitivity": sensitivity, "epsilon": epsilon}
    how |= {"range": range, "unit": unit, "grid": grid}
    noisy = laplace(account, sealed, query=query, size=1, **how)
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
    record = _laplace_record(sealed, name, sensitivity, epsilon, grid=grid)
    account.spend(record)

    def noisy() -> Iterator[Vector]:
        rows, blocks = 0, _noised_blocks(account, sealed, record)
        while (block := _quietly(account, lambda: next(blocks, None))) is not None:
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
    range: Range,
    unit: str,
    monotone: bool,
    grid: Fraction | None = None,
) -> Noisy[int]:
    """Choose the index of a large score, by exponential noise. The score itself stays private.

    ``sensitivity`` is how far *each* of the ``size`` scores can move between neighbours. Scores
    are ``monotone`` if a step to a neighbour moves none up while another goes down: they need half
    the noise. Everything else is as in `laplace`.
    """
    _check_size(size)
    calibration = calibrate_noisy_max(
        sensitivity, exact(epsilon, name="epsilon"), range, monotone=monotone, grid=grid
    )
    kind = "monotone scores" if monotone else "scores of any kind"
    record = Record(
        name, f"noisy max, exponential, {kind}", unit, size, sensitivity, calibration, range
    )
    account.spend(record)

    def choose() -> int:
        scores = _quantise(_answer(sealed, query, record), record)
        return account.noise.noisy_max(scores, calibration.scale)

    chosen = _quietly(account, choose)
    account.answered(record, np.array([float(chosen)]))
    return Noisy(chosen, record)


def _laplace_record(
    sealed: Sealed[Any],
    name: str,
    sensitivity: Sensitivity,
    epsilon: Exact,
    size: int | None = None,
    range: Range | None = None,
    unit: str | None = None,
    grid: Fraction | None = None,
) -> Record:
    range, unit = range or sealed.range, unit or sealed.unit
    size = _check_size(len(sealed) if size is None else size)
    calibration = calibrate_laplace(sensitivity, exact(epsilon, name="epsilon"), range, grid)
    return Record(name, "discrete Laplace", unit, size, sensitivity, calibration, range)


def _check_size(size: int) -> int:
    if size < 1:
        raise InputError("There are no values to release.", remedy="Give at least one row.")
    return size


def _quietly(account: Account, compute: Callable[[], V]) -> V:
    """Run a computation on private data; abort the release if it fails, whatever the reason.

    Its exception is dropped with all its frames before the abort is raised, which so has no private
    number in its text, its context or the variables of its traceback. Warnings, of NumPy or another
    library, are not shown either: one of an overflow would tell that private values led to it.
    """
    try:
        with np.errstate(all="ignore"), unwarned:
            return compute()
    except _FROM_OUTSIDE:
        raise
    except BaseException:  # noqa: BLE001 - whatever it is, a panic of Rust too, it may be private
        pass
    _abort(account)


def _answer(sealed: Sealed[T], query: Callable[[T], Any] | None, record: Record) -> Vector:
    contents = unseal(sealed)
    given = contents if query is None else query(contents)
    answer = _checked(np.atleast_1d(np.asarray(given, dtype=np.float64)))
    if len(answer) != record.size:
        raise ValueError
    return answer


def _checked(answer: Vector) -> Vector:
    # OpenDP does not check what it is given.
    if answer.ndim != 1 or not np.isfinite(answer).all():
        raise ValueError
    return answer


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


def _noised(account: Account, answer: Vector, record: Record) -> Vector:
    steps = account.noise.laplace(_quantise(answer, record), record.calibration.scale)
    return np.asarray(steps * float(record.calibration.grid), dtype=np.float64)


def _noised_blocks(account: Account, sealed: Sealed[Blocks], record: Record) -> Iterator[Vector]:
    # A generator that failed holds nothing any more: no private block is left in a frame.
    for block in unseal(sealed)():
        yield _noised(account, _checked(block), record)


def _quantise(answer: Vector, record: Record) -> Integers:
    # The grid is a power of two, so the division is exact.
    steps = np.rint(record.range.clip(answer) / float(record.calibration.grid))
    return steps.astype(np.int64)
