"""Networks that a release is measured against: they tell nothing of a single private entry."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gridveil.grid.network import Network
from gridveil.grid.ranges import PARAMETERS


def unlimited(network: Network) -> Network:
    """The network without any line limit."""
    return network.with_capacity(np.full(len(network.branches), np.inf))


def controls(
    released: Network, real: Network, parameters: Sequence[str]
) -> Iterator[tuple[str, Network]]:
    """Networks to measure a release against: those that need no value of a single entry.

    Without limits, where capacities are private; and with every private entry at the mean of the
    released ones of its kind and sign.
    """
    if "capacity" in parameters:
        yield "no limits at all", unlimited(released)
    flat = released
    for name in parameters:
        table, columns, _ = PARAMETERS[name]
        filled: dict[str, Any] = {}
        for column in columns:
            values = getattr(getattr(released, table), column).copy()
            ours = getattr(getattr(real, table), column)
            for some in (np.isfinite(ours) & (ours > 0), np.isfinite(ours) & (ours < 0)):
                values[some] = values[some].mean() if some.any() else 0.0
            filled[column] = values
        flat = replace(flat, **{table: replace(getattr(flat, table), **filled)})
    yield "all entries at their mean", flat
