"""What is unusual about a planned release of wind records: public facts, with their remedies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gridveil.wind.clock import oddities
from gridveil.wind.features import Features, uncovered
from gridveil.wind.methods.base import Guarantee, Prepared
from gridveil.wind.methods.choice import useless
from gridveil.wind.records import Records
from gridveil.wind.regression import Fit


def unusual(
    records: Records,
    features: Features,
    fits: Sequence[Fit],
    guarantee: Guarantee,
    prepared: Prepared,
) -> tuple[str, ...]:
    """What looks like a slip, a sentence each; no power decides it."""
    return (
        *_times(records),
        *_features(records, features),
        *useless(fits, guarantee, prepared),
    )


def _times(records: Records) -> list[str]:
    times = [one for one in (group.times() for group in records.groups) if one is not None]
    return oddities(times, [group.name for group in records.groups]) if times else []


def _features(records: Records, features: Features) -> Iterator[str]:
    low, high = records.speed_range
    for column in {"speed": None, records.speed: None}:
        for problem in uncovered(features, column, low, high):
            yield (
                f"Public wind speeds go from {low:g} to {high:g}, but {problem}: the regression "
                "can't tell speeds beyond from each other. Give features that cover the speeds "
                "(--features), or leave them out."
            )
