"""A scratch folder, throw-away ledgers and charged accounts for audits on made-up data."""

from __future__ import annotations

import itertools
import tempfile
from fractions import Fraction
from functools import cache, lru_cache
from pathlib import Path

from gridveil.privacy.account import Account, Budget
from gridveil.privacy.adjacency import Adjacency
from gridveil.privacy.ledger import Charge, Ledger, Terms
from gridveil.privacy.noise import SecureNoise

EPSILON = Fraction(1)
"""The epsilon of releases whose likelihood ratios are computed, or whose answers are replayed."""

LOUD = Fraction(4)
"""The epsilon of releases whose outcomes are counted.

Noise shrinks as epsilon grows, so a fault shows equally at any epsilon. But a frequency must differ
much from that on the neighbour to prove anything: the same samples prove a larger share of 4 than
of 1.
"""

_MEMORY = Path("/dev/shm")
_ENTRIES = 6
_calls = itertools.count()
_names = (f"audit {number}" for number in itertools.count(1))


@cache
def scratch() -> Path:
    """Make a folder that is deleted when this process ends; in memory if possible.

    An audit charges a ledger thousands of times, and these ledgers need not be durable.
    """
    folder = tempfile.TemporaryDirectory(
        prefix="gridveil-audit-", dir=_MEMORY if _MEMORY.is_dir() else None
    )
    _kept.append(folder)
    return Path(folder.name)


def throwaway_ledger() -> Ledger:
    """Return a ledger to throw away; a new one after some calls, since old entries cost time."""
    return _ledger(next(_calls) // _ENTRIES)


@lru_cache(maxsize=1)
def _ledger(number: int) -> Ledger:
    return Ledger(scratch() / f"ledger {number}.sqlite")


MADE_UP = "made-up data of an audit, released again and again"
"""The reason given to the ledger why the same data has another name."""


def new_name() -> str:
    """Return a name for a dataset that was not used before."""
    return next(_names)


def account_with(
    noise: SecureNoise, adjacency: Adjacency, epsilon: Fraction = Fraction(10**9)
) -> Account:
    """Make a charged account with this noise source; accounts of the same kind share a charge."""
    ledger, charge = _charged(adjacency, epsilon)
    return Account(Budget(epsilon), noise, [adjacency], ledger, charge)


@cache
def _charged(adjacency: Adjacency, epsilon: Fraction) -> tuple[Ledger, Charge]:
    ledger = throwaway_ledger()
    terms = Terms(new_name(), epsilon, adjacency=[adjacency], purpose="an audit")
    return ledger, ledger.charge(terms)


_kept: list[tempfile.TemporaryDirectory[str]] = []
