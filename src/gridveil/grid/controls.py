"""Networks that a release is measured against: they tell nothing of a single private entry."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gridveil.grid.model.network import Bools, Network
from gridveil.grid.model.parameters import PARAMETERS
from gridveil.grid.model.selection import Declared


def unlimited(network: Network, lines: Bools | None = None) -> Network:
    """The network without limits: of any line, or of some."""
    some = np.ones(len(network.branches), dtype=bool) if lines is None else lines
    return network.with_capacity(np.where(some, np.inf, network.branches.capacity))


def controls(
    released: Network, real: Network, parameters: Sequence[str], declared: Declared
) -> Iterator[tuple[str, Network]]:
    """Networks to measure a release against: those that need no value of a single entry.

    Without limits, where capacities are private; and with every private entry at the mean of the
    released ones of its kind and sign.
    """
    if "capacity" in parameters:
        hidden = declared.support(real, "capacity")["capacity"]
        yield "no limits", unlimited(released, hidden)
    flat = released
    for name in parameters:
        table = PARAMETERS[name].table
        filled: dict[str, Any] = {}
        for column, mask in declared.support(real, name).items():
            values = getattr(getattr(released, table), column).copy()
            ours = getattr(getattr(real, table), column)
            for some in (mask & (ours > 0), mask & (ours < 0)):
                values[some] = values[some].mean() if some.any() else 0.0
            filled[column] = values
        flat = replace(flat, **{table: replace(getattr(flat, table), **filled)})
    yield "all at mean", flat
