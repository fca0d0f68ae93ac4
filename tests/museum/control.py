"""What a control of the museum is, and the noise that most of them draw."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from gridveil.auditing.checks import Pair, Sizes
from gridveil.auditing.verdicts import Audit
from gridveil.errors import NotPrivateWarning
from gridveil.privacy.account import Account, study_account
from gridveil.privacy.adjacency import Adjacency
from gridveil.privacy.sealed import Range
from gridveil.privacy.seeded import SeededNoise


@dataclass(frozen=True)
class Control:
    """A broken mechanism, and the same one repaired.

    Parameters
    ----------
    name
        What the table calls it.
    what
        What is wrong with it, in a line.
    broken
        Makes the audit that must catch it.
    sound
        Makes the same audit of the mechanism without the fault, which must pass.
    """

    name: str
    what: str
    broken: Callable[[], Audit]
    sound: Callable[[], Audit]


def same(n):
    """So many samples in every setting."""
    return Sizes(n, n)


def pair(words, sample, one, other):
    """Two neighbours and the function that samples a mechanism on either."""
    return Pair(words, lambda n: sample(one, n), lambda n: sample(other, n))


def generator():
    """The museum's own noise: from a seed, so that a control is caught in every run or in none."""
    return np.random.default_rng(20230522)


def seeded_noise(seed):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPrivateWarning)
        return SeededNoise(seed)


def seeded_account(seed=7, alpha=1) -> Account:
    adjacency = Adjacency.of("power", alpha=alpha, unit="MW", range=Range(0.0, 1e6), entries=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPrivateWarning)
        return study_account(Fraction(10**9), adjacency=[adjacency], seed=seed)
