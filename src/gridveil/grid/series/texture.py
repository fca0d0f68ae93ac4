"""Hour-to-hour spread for loads that were rebuilt: made by a model, marked as such, off by default.

A rebuilt load follows its typical days and the total: it changes from hour to hour by less than a
real one. Studies of ramps and reserves need the spread, though not its own ups and downs. What is
added here tells nothing of the real hours: it is a walk that comes back, drawn from a seed made of
the rebuilt loads, of a size that the owner names. It changes no hour's total and no sum of a load's
day, so everything that was asked for stays.
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_MEMORY = 0.5  # how much of a residual is left after an hour


def textured(values: Floats, share: float, memory: float = _MEMORY) -> Floats:
    """Rebuilt loads ``(days, slots, loads)`` with residuals of about ``share`` of their level.

    ``memory`` is the correlation of residuals an hour apart. Residuals add up to 0 over the loads
    of a slot and over the slots of a load's day; a network of one load keeps what it has.
    """
    days, slots, loads = values.shape
    seed = hashlib.sha256(np.ascontiguousarray(values).tobytes()).digest()
    draws = np.random.default_rng(int.from_bytes(seed, "little"))
    step = memory ** (24 / slots)
    walk = np.empty((days * slots, loads))
    last = draws.standard_normal(loads)
    for place in range(days * slots):
        last = step * last + np.sqrt(1 - step**2) * draws.standard_normal(loads)
        walk[place] = last
    level = values.mean(axis=1, keepdims=True)
    added = share * level * walk.reshape(values.shape)
    added -= added.mean(axis=1, keepdims=True)
    # The sum of an hour is taken back from loads by their variances, the same all day, so that
    # sums of days stay 0.
    weight = level**2
    whole = np.maximum(weight.sum(axis=2, keepdims=True), 1e-12)
    return np.asarray(values + added - weight / whole * added.sum(axis=2, keepdims=True))
