"""Every error a user can meet: what is wrong, and what to do about it.

An error is an output of the program, so its text may speak of shapes, types, missing values
and public numbers, never of a private value.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable
from contextlib import ExitStack
from fractions import Fraction
from threading import Lock

# Digits and signs alone, with one between two digits that no name or number of a bus has.
_DATA = re.compile(r"[\s\d.,;|:eET+-]*\d[.,;|\t]\d[\s\d.,;|:eET+-]*")


class GridveilError(Exception):
    """Base of all errors of GridVeil.

    Parameters
    ----------
    what
        What is wrong and where, in one sentence.
    remedy
        What the user can do about it.
    """

    exit_code = 1

    def __init__(self, what: str, *, remedy: str | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.remedy = remedy

    def __str__(self) -> str:
        return self.what if self.remedy is None else f"{self.what} {self.remedy}"


class InputError(GridveilError, ValueError):
    """Public input that can't be used. Nothing was charged and nothing was written."""

    exit_code = 2


class SealedError(GridveilError, TypeError):
    """An attempt to look at private values outside a mechanism."""


class LedgerError(GridveilError):
    """The ledger can't be used: damaged, of a newer version, or in an unsafe place."""

    exit_code = 2


class LedgerRefused(GridveilError):
    """The ledger will not allow this release. Nothing was charged."""

    exit_code = 3


class BudgetRefused(LedgerRefused):
    """More epsilon was asked for than is left. Nothing was charged.

    Parameters
    ----------
    requested, remaining
        What was asked for, and what is left.
    of
        What it is left of.
    times
        How many times the release's epsilon was counted.
    overspent
        What was spent above a cap that came later.
    """

    def __init__(
        self,
        requested: Fraction,
        remaining: Fraction,
        *,
        of: str,
        times: int = 1,
        overspent: Fraction = Fraction(0),
    ) -> None:
        self.requested = requested
        self.remaining = remaining
        self.difference = requested - remaining + overspent
        super().__init__(
            f"Not enough epsilon left for {of}: requested {show_exact(requested)}, "
            f"remaining {show_exact(remaining)}, short by {show_exact(self.difference)}."
            + (
                f" What is spent is above the cap by {show_exact(overspent)} already."
                if overspent
                else ""
            )
            + (
                f" Its reference alpha is larger: at this alpha epsilon counts {times} times."
                if times > 1
                else ""
            ),
            remedy="Ask for less epsilon, or raise the cap if your policy allows it "
            "(gridveil ledger cap).",
        )


class ReleaseAborted(GridveilError):
    """A computation on private data failed after its epsilon was charged.

    The text never says why: the reason may depend on private values.
    """


class WriteError(GridveilError, OSError):
    """A bundle could not be written. Nothing of it is left on the disk; its charge stays."""


class NotPrivateWarning(UserWarning):
    """What follows uses seeded noise and carries no privacy guarantee."""


class LedgerWarning(UserWarning):
    """Something about a charge that looks like a slip. It says so before anything is charged."""


class PlanWarning(UserWarning):
    """Public facts make a planned release doubtful. It says so before anything is charged."""


class _Unwarned:
    """Show no warning of any library while some thread is inside.

    Filters of warnings belong to all threads. If each put back those that it found, the first to
    leave would show the warnings of the others, and the last would hide all later ones.
    """

    def __init__(self) -> None:
        self._lock, self._inside, self._before = Lock(), 0, ExitStack()

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._before.enter_context(warnings.catch_warnings())
            self._inside += 1
            warnings.simplefilter("ignore")

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._before.close()


unwarned = _Unwarned()
"""Entered wherever private values are read or looked at: a warning may depend on them."""


def reason(problem: OSError) -> str:
    """Why the operating system refused something, in its own words."""
    return problem.strerror or "the system refused it"


def wrong_type(expected: str, given: object, *, remedy: str) -> InputError:
    """The refusal of an argument of another type; it shows the type alone, never the value.

    >>> wrong_type("Network", "case.m", remedy="Read one with read_case.")
    InputError('Expected a Network, got str.')
    """
    return InputError(f"Expected a {expected}, got {type(given).__name__}.", remedy=remedy)


def no_headings(found: Iterable[object]) -> str:
    """What to say of headings that hold decimal numbers: they are a first row, maybe a private one.

    >>> no_headings(["time", "bus 1", "101"])
    ''
    >>> no_headings(["2024-01-01 00:00", "31.4"]) == no_headings(["7,5;31,4"]) != ""
    True
    """
    some = any(_DATA.fullmatch(str(one)[:200]) for one in found)
    return "Its headings are numbers: put a line with the names of columns on top." if some else ""


def show_exact(value: Fraction) -> str:
    """Write a rational number the way a person would: ``1/3``, ``0.25``, ``2``.

    >>> show_exact(Fraction(1, 4)), show_exact(Fraction(1, 3))
    ('0.25', '1/3')
    """
    if value.denominator == 1:
        return str(value.numerator)
    power = 0
    rest = value.denominator
    for prime in (2, 5):
        count = 0
        while rest % prime == 0:
            rest //= prime
            count += 1
        power = max(power, count)
    if rest != 1 or power > 12:
        return f"{value.numerator}/{value.denominator}"
    digits = str(abs(value.numerator) * 10**power // value.denominator).rjust(power + 1, "0")
    sign = "-" if value < 0 else ""
    return f"{sign}{digits[:-power]}.{digits[-power:]}"
