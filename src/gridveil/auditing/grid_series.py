"""Audits of released load series: two loads of a triangle of three buses, over eight days.

Neighbours differ in one block of one load, for every kind of block that can be protected: every
value moves by alpha, all of them up, or with the signs that move the waves of a day furthest.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gridveil import grid
from gridveil.auditing.bundle_bytes import bundle_parts
from gridveil.auditing.checks import Sizes
from gridveil.auditing.scratch_ledgers import EPSILON, MADE_UP, new_name, throwaway_ledger
from gridveil.auditing.transcript import Outcome
from gridveil.auditing.transcript_audits import Ratio, Replay
from gridveil.auditing.triangle_network import VALUES
from gridveil.auditing.triangle_secrets import triangle
from gridveil.auditing.verdicts import Audit
from gridveil.grid.series.queries import profiles
from gridveil.privacy.adjacency import ALTOGETHER, BLOCKS, ENTRY
from gridveil.privacy.noise import SecureNoise

Floats = NDArray[np.float64]

ALPHA = Fraction(10)
DAYS = 8  # from a Monday: two weeks are touched
_HOURS = 24 * DAYS
_RATIOS, _REPLAYS = Sizes(4, 100), Sizes(1, 8)
_BASE = np.add.outer(10 * np.sin(np.arange(_HOURS) / 24 * 2 * np.pi), VALUES["load"])
_TYPICAL = 1000.0  # so high that every query is asked


def ratios(block: str) -> Audit:
    """Audit the likelihood ratios of all noisy answers of a release, on pairs of neighbours."""
    pairs = [
        (partial(_published, block, _BASE), partial(_published, block, moved))
        for moved in _neighbours(block)
    ]
    return Ratio(f"grid-series-{block}-ratio", EPSILON, pairs, _RATIOS)


def replays(block: str) -> Audit:
    """Audit that the whole bundle is the same on very different series."""
    far = (np.full(_BASE.shape, 1.5), _BASE, np.abs(np.sin(_BASE)) * 150 + 1)
    runs = [partial(_bundle, block, values) for values in far]
    return Replay(f"grid-series-{block}-replay", runs, _REPLAYS)


def _neighbours(block: str) -> list[Floats]:
    """Return series with one block moved: all up, and along the waves of a day."""
    hours = {ENTRY: 1, "hour": 1, "day": 24, "week": 7 * 24, ALTOGETHER: _HOURS}[block]
    rows = profiles(24, 11)
    signs = 1 - 2 * ((np.arange(2**10)[:, None] >> np.arange(10)) & 1)
    waves = np.column_stack([np.ones(len(signs)), signs]) @ rows
    worst = np.tile(np.sign(waves[np.abs(waves).sum(axis=1).argmax()]), DAYS)
    found = []
    for load in range(_BASE.shape[1]):
        for way in (np.ones(_HOURS), worst):
            moved = _BASE.copy()
            moved[:hours, load] += float(ALPHA) * way[:hours]
            found.append(moved)
    return found


def _published(block: str, values: Floats, noise: SecureNoise) -> Outcome:
    return {"values": _release(block, values, noise).values.tobytes()}


def _bundle(block: str, values: Floats, noise: SecureNoise) -> Outcome:
    return bundle_parts(_release(block, values, noise))


def _release(block: str, values: Floats, noise: SecureNoise) -> grid.SeriesRelease:
    network = triangle("load", VALUES["load"])
    buses = [n for n, load in zip(network.buses.name, network.buses.load, strict=True) if load]
    times = pd.date_range("2024-01-01", periods=_HOURS, freq="h", tz="UTC", name="time")
    series = grid.read_series(pd.DataFrame(values, times, buses), network)
    planned = grid.plan_series(
        network,
        series,
        epsilon=EPSILON,
        alpha=ALPHA,
        protect=block,
        range=(0, 200),
        typical=_TYPICAL,
        hours="none",
    )
    account = planned.charge(throwaway_ledger(), dataset=new_name(), distinct=MADE_UP, noise=noise)
    return planned.run(account)


SERIES: dict[str, Callable[[], Audit]] = {
    **{f"grid-series-{block}-ratio": partial(ratios, block) for block in BLOCKS},
    **{f"grid-series-{block}-replay": partial(replays, block) for block in BLOCKS},
}
