"""Ways of telling two neighbours apart: each makes a number, the score, of an outcome.

An attack may be as clever as it likes. What it claims is tested on outcomes that it has not seen,
so a poor attack proves less and never too much.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Outcomes = NDArray[Any]
"""Outcomes of independent runs, a row each: numbers or vectors of numbers."""

Score = Callable[[Outcomes], Vector]

_FLOOR = 1e-14  # of a feature's variance: directions without noise are kept, not divided by 0
_STEPS = 25


@dataclass(frozen=True)
class Attack:
    """An attack: its name, and how it learns a score from outcomes on both neighbours."""

    name: str
    learn: Callable[[Outcomes, Outcomes], Score]


def known(score: Score, name: str = "likelihood ratio") -> Attack:
    """An attack that needs to learn nothing: its score is known beforehand."""
    return Attack(name, lambda ones, others: score)


def values() -> Attack:
    """The outcome itself, if it is one number."""
    return known(lambda outcomes: np.asarray(outcomes, dtype=np.float64).reshape(-1), "value")


def atoms() -> Attack:
    """How much more often the very same outcome was seen on one neighbour than on the other."""
    return Attack("same outcome", _learn_atoms)


def linear(features: Callable[[Outcomes], Vector] | None = None) -> Attack:
    """Logistic regression on the outcome, or on features of it.

    Features are whitened first, so that a direction with hardly any noise (the difference of two
    coordinates that share a draw, say) is found however small it is.
    """

    def learn(ones: Outcomes, others: Outcomes) -> Score:
        return _learn_linear(ones, others, features or _plain)

    return Attack("linear classifier", learn)


def laplace_ratio(one: Vector, other: Vector, scale: Vector | float) -> Score:
    """The log likelihood ratio of answers ``one`` and ``other`` with Laplace noise.

    Outcomes are rows of noisy answers. Each coordinate counts ``(|z - other| - |z - one|)/scale``,
    which lies between ``-|one - other|/scale`` and that: it is clipped by itself.
    """
    return lambda z: np.asarray(
        ((np.abs(z - other) - np.abs(z - one)) / scale).reshape(len(z), -1).sum(1)
    )


def _learn_atoms(ones: Outcomes, others: Outcomes) -> Score:
    counts: dict[bytes, list[float]] = {}
    for place, outcomes in enumerate((ones, others)):
        for key in _keys(outcomes):
            counts.setdefault(key, [0.5, 0.5])[place] += 1
    # Half a count more on either side: an outcome that was seen once says little.
    ratio = {key: float(np.log(one / other)) for key, (one, other) in counts.items()}
    return lambda outcomes: np.array([ratio.get(key, 0.0) for key in _keys(outcomes)])


def _keys(outcomes: Outcomes) -> list[bytes]:
    rows = np.ascontiguousarray(outcomes).reshape(len(outcomes), -1)
    return [row.tobytes() for row in rows]


def _plain(outcomes: Outcomes) -> Vector:
    return np.asarray(outcomes, dtype=np.float64).reshape(len(outcomes), -1)


def _learn_linear(
    ones: Outcomes, others: Outcomes, features: Callable[[Outcomes], Vector]
) -> Score:
    a, b = features(ones), features(others)
    both = np.vstack([a, b])
    middle, size = both.mean(0), both.std(0)
    size[size == 0] = 1.0
    a, b = (a - middle) / size, (b - middle) / size
    within = (np.cov(a.T, bias=True) + np.cov(b.T, bias=True)).reshape(len(size), -1) / 2
    variances, directions = np.linalg.eigh(within)
    basis = directions / np.sqrt(np.maximum(variances, _FLOOR))
    weights = _logistic(np.vstack([a, b]) @ basis, np.repeat([1.0, 0.0], [len(a), len(b)]))
    return lambda outcomes: np.asarray(((features(outcomes) - middle) / size) @ basis @ weights)


def _logistic(x: Vector, label: Vector) -> Vector:
    """Weights of a logistic regression with a small ridge, by Newton's method."""
    x = np.hstack([x, np.ones((len(x), 1))])
    weights = np.zeros(x.shape[1])
    ridge = np.eye(x.shape[1])
    for _ in range(_STEPS):
        p = 1 / (1 + np.exp(-np.clip(x @ weights, -30, 30)))
        gradient = x.T @ (label - p) - weights
        curvature = (x * np.maximum(p * (1 - p), 1e-9)[:, None]).T @ x + ridge
        step = np.linalg.solve(curvature, gradient)
        length = float(np.abs(step).max())
        weights = weights + step * min(1.0, 5.0 / max(length, 1e-300))
        if length < 1e-8:
            break
    return np.asarray(weights[:-1])
