"""Audits of made-up mechanisms, in a module that worker processes can import."""

from fractions import Fraction

import numpy as np

from gridveil.auditing.attacks import values
from gridveil.auditing.checks import Frequency, Pair, Sizes

SIZES = Sizes(4_000, 8_000)


def noisy(value, seed, scale=1.0):
    rng = np.random.default_rng(seed)
    return lambda n: value + rng.laplace(0.0, scale, n)


def shifted(distance):
    return Pair(f"{distance} apart", noisy(0.0, 1), noisy(distance, 2))


def audit(claimed=1, distance=1.0, name="shift"):
    return Frequency(name, Fraction(claimed), [shifted(distance)], [values()], SIZES)


def broken_audit():
    return audit(claimed=1, distance=3.0, name="broken")


def sound_audit():
    return audit()
