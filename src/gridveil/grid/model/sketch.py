"""The sketch of a network: a fingerprint of its public part, for the ledger.

It is of topology and reactances: without names, in which some people write ratings, and without the
order of elements. A network that was renamed, or written in another format, is the same one. A
branch is known by its reactance and those of its neighbours at either end, to the three digits that
are published whatever is private.
"""

from __future__ import annotations

import hashlib

import numpy as np

from gridveil.grid.io import coarse
from gridveil.grid.model.public_network import PublicNetwork
from gridveil.privacy.ledger import Sketch

_BASE = 100.0  # MVA: files of one network may be on different bases


def sketch_network(public: PublicNetwork) -> Sketch:
    """The sketch of a network's branches, each with its neighbours."""
    branches = public.branches
    published = coarse(branches.reactance)
    reactance = [f"{value:.3g}" for value in published * (_BASE / public.base_mva)]
    ends = list(zip(branches.from_bus.tolist(), branches.to_bus.tolist(), strict=True))
    at: dict[int, list[int]] = {}
    for branch, pair in enumerate(ends):
        for bus in set(pair):
            at.setdefault(bus, []).append(branch)
    rows = []
    for branch, pair in enumerate(ends):
        around = sorted(
            " ".join(sorted(reactance[other] for other in at[bus] if other != branch))
            for bus in pair
        )
        rows.append(_hash(" | ".join([reactance[branch], *around])))
    return Sketch.of("network", [np.array(rows, dtype=np.uint64)])


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")
