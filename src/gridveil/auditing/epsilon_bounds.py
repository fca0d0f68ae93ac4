"""Compute the epsilon that counts of outcomes on two neighbours prove.

With a mechanism of this epsilon, every event ``E`` has probabilities on two neighbours with
``P(E) <= exp(epsilon) Q(E)``. Clopper-Pearson gives ``p <= P(E)`` and ``Q(E) <= q`` from counts,
so ``epsilon >= log(p/q)``: an event that is seen more often than chance allows proves a larger
epsilon.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import beta

from gridveil.auditing.attacks import Attack, Outcomes, Score, Vector

_LEVELS = 512  # the most thresholds that are tried to choose an event


@dataclass(frozen=True)
class Proof:
    """An epsilon that outcomes prove, and the event that proves it, in words."""

    epsilon: float
    words: str


def prove(ones: Outcomes, others: Outcomes, attacks: Sequence[Attack], error: float) -> Proof:
    """Find the largest epsilon (0 or more) that outcomes on two neighbours prove.

    The probability that it is above the true one is at most ``error``, whatever the attacks are.
    They learn on the first quarter of the outcomes, the best event in each direction is chosen on
    the second, and these two events are tested on the other half. That takes four bounds, each
    wrong with a probability of a quarter of ``error``.
    """
    (learn, choose, test), (learn_too, choose_too, test_too) = _parts(ones), _parts(others)
    scores = [(attack.name, attack.learn(learn, learn_too)) for attack in attacks]
    trials = len(test), len(test_too)
    event = _choose(scores, choose, choose_too, trials, error / 4)
    reverse = _choose(scores, choose_too, choose, trials[::-1], error / 4)
    found = [_test(event, test, test_too, error / 4), _test(reverse, test_too, test, error / 4)]
    return max(found, key=lambda proof: proof.epsilon)


def lower_bound(hits: Vector | float, trials: int, error: float) -> Vector:
    """Clopper-Pearson: the true probability is below this with probability at most ``error``."""
    seen = np.asarray(hits, dtype=np.float64)
    return np.where(seen > 0, beta.ppf(error, np.maximum(seen, 1e-300), trials - seen + 1), 0.0)


def upper_bound(hits: Vector | float, trials: int, error: float) -> Vector:
    """Clopper-Pearson: the true probability is above this with probability at most ``error``."""
    seen = np.asarray(hits, dtype=np.float64)
    missed = np.maximum(trials - seen, 1e-300)
    return np.where(seen < trials, beta.isf(error, seen + 1, missed), 1.0)


def epsilon_bound(
    hits: Vector | float, other_hits: Vector | float, trials: tuple[int, int], error: float
) -> Vector:
    """Compute ``log(p/q)``, which counts of an event on two neighbours prove at least.

    Each of the two bounds is wrong with probability at most ``error``.
    """
    p, q = lower_bound(hits, trials[0], error), upper_bound(other_hits, trials[1], error)
    with np.errstate(divide="ignore"):
        return np.asarray(np.maximum(np.log(p) - np.log(q), 0.0))


@dataclass(frozen=True)
class _Event:
    """A score at or above a level; or, with a sign of -1, at or below it."""

    name: str
    score: Score
    sign: float
    level: float

    def count(self, outcomes: Outcomes) -> int:
        return int((self.sign * self.score(outcomes) >= self.sign * self.level).sum())

    def __str__(self) -> str:
        return f"{self.name} {'at least' if self.sign > 0 else 'at most'} {self.level:.4g}"


def _parts(outcomes: Outcomes) -> tuple[Outcomes, Outcomes, Outcomes]:
    quarter, half = len(outcomes) // 4, len(outcomes) // 2
    return outcomes[:quarter], outcomes[quarter:half], outcomes[half:]


def _choose(
    scores: Sequence[tuple[str, Score]],
    more: Outcomes,
    less: Outcomes,
    trials: tuple[int, int],
    error: float,
) -> _Event:
    """Choose the event that would prove most if the outcomes of the test were like these."""
    found: list[tuple[float, _Event]] = []
    for name, score in scores:
        here, there = score(more), score(less)
        levels = _levels(np.concatenate([here, there]))
        for sign in (1.0, -1.0):
            hits, other_hits = (
                n * (1 - np.searchsorted(np.sort(sign * part), sign * levels) / len(part))
                for n, part in zip(trials, (here, there), strict=True)
            )
            bounds = epsilon_bound(hits, other_hits, trials, error)
            at = int(np.argmax(bounds))
            found.append((float(bounds[at]), _Event(name, score, sign, float(levels[at]))))
    return max(found, key=lambda one: one[0])[1]


def _test(event: _Event, more: Outcomes, less: Outcomes, error: float) -> Proof:
    """Count the event on outcomes that were not used to choose it."""
    hits, other_hits = event.count(more), event.count(less)
    epsilon = float(epsilon_bound(hits, other_hits, (len(more), len(less)), error))
    counts = f"{hits:,} of {len(more):,} against {other_hits:,} of {len(less):,}"
    return Proof(epsilon, f"{event}: {counts}")


def _levels(scores: Vector) -> Vector:
    found = np.unique(scores)
    if len(found) <= _LEVELS:
        return found
    return np.unique(np.quantile(scores, np.linspace(0, 1, _LEVELS), method="nearest"))
