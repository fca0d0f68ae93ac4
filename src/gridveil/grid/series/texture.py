"""Model-made spread from hour to hour for rebuilt loads; off by default, and marked in the release.

A rebuilt load follows its typical days and the total, so it changes less from hour to hour than a
real one. Studies of ramps and reserves need realistic changes, though not the real ones. What is
added here says nothing about the real hours: it is a mean-reverting random walk of a size that the
owner chooses, seeded by the rebuilt loads. It changes no hour's total and no sum of a load's day,
so everything that was asked for stays.
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_MEMORY = 0.5  # the correlation of residuals an hour apart


def textured(values: Floats, share: float) -> Floats:
    """Add residuals of about ``share`` of their level to rebuilt loads ``(days, slots, loads)``.

    Residuals add up to 0 over the loads of a slot and over the slots of a load's day; so a network
    of one load is not changed.
    """
    days, slots, loads = values.shape
    seed = hashlib.sha256(np.ascontiguousarray(values).tobytes()).digest()
    draws = np.random.default_rng(int.from_bytes(seed, "little"))
    step = _MEMORY ** (24 / slots)
    walk = np.empty((days * slots, loads))
    last = draws.standard_normal(loads)
    for place in range(days * slots):
        last = step * last + np.sqrt(1 - step**2) * draws.standard_normal(loads)
        walk[place] = last
    level = values.mean(axis=1, keepdims=True)
    added = share * level * walk.reshape(values.shape)
    added -= added.mean(axis=1, keepdims=True)
    # Subtract each hour's sum from the loads in proportion to their variances. These are constant
    # over a day, so sums of days stay 0.
    weight = level**2
    whole = np.maximum(weight.sum(axis=2, keepdims=True), 1e-12)
    return np.asarray(values + added - weight / whole * added.sum(axis=2, keepdims=True))
