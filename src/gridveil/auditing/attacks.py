"""Attacks that tell two neighbours apart: each turns an outcome into a number, the score.

An attack may learn in any way. Its claim is tested on outcomes that it has not seen, so a poor
attack proves less and never too much.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Outcomes = NDArray[Any]
"""Outcomes of independent runs, one row per run: numbers or vectors of numbers."""

Score = Callable[[Outcomes], Vector]

_FLOOR = 1e-14  # the least variance of a feature: avoids division by 0 in directions without noise
_STEPS = 25


@dataclass(frozen=True)
class Attack:
    """An attack: its name, and a function that learns a score from outcomes on both neighbours."""

    name: str
    learn: Callable[[Outcomes, Outcomes], Score]


def known(score: Score, name: str = "likelihood ratio") -> Attack:
    """Make an attack whose score is known beforehand, so that it learns nothing."""
    return Attack(name, lambda ones, others: score)


def values() -> Attack:
    """Make an attack whose score is the outcome itself, which must be one number."""
    return known(lambda outcomes: np.asarray(outcomes, dtype=np.float64).reshape(-1), "value")


def atoms() -> Attack:
    """Make an attack by how much more often the same outcome was seen on one neighbour."""
    return Attack("same outcome", _learn_atoms)


def linear(features: Callable[[Outcomes], Vector] | None = None) -> Attack:
    """Make an attack by logistic regression on the outcome, or on features of it.

    Features are whitened first, so that a direction with hardly any noise (such as the difference
    of two coordinates that share a draw) is found, however small it is.
    """

    def learn(ones: Outcomes, others: Outcomes) -> Score:
        return _learn_linear(ones, others, features or _plain)

    return Attack("linear classifier", learn)


def laplace_ratio(one: Vector, other: Vector, scale: Vector | float) -> Score:
    """Return the log likelihood ratio of answers ``one`` and ``other`` with Laplace noise.

    Outcomes are rows of noisy answers. Each coordinate adds ``(|z - other| - |z - one|)/scale``,
    whose size is at most ``|one - other|/scale``, so it needs no clipping.
    """
    return lambda z: np.asarray(
        ((np.abs(z - other) - np.abs(z - one)) / scale).reshape(len(z), -1).sum(1)
    )


def _learn_atoms(ones: Outcomes, others: Outcomes) -> Score:
    counts: dict[bytes, list[float]] = {}
    for place, outcomes in enumerate((ones, others)):
        for key in _keys(outcomes):
            counts.setdefault(key, [0.5, 0.5])[place] += 1
    # Counts start at one half on either side: an outcome that was seen once says little.
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
    """Fit the weights of a logistic regression with a small ridge, by Newton's method."""
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
