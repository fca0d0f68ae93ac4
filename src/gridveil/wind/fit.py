"""The public side of one turbine's records: their features and the regression on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridveil.errors import InputError
from gridveil.privacy.mechanisms import Blocks
from gridveil.wind.features import RBF, Features
from gridveil.wind.records import Group, Records
from gridveil.wind.regression import Ridge, fit_features
from gridveil.wind.rows import ArrayRows, BlockRows, LocalRows

Vector = NDArray[np.float64]

_HELD = 65_536  # rows whose features are worth keeping between passes
_SPACING = 2.5  # m/s between centres, as in the paper


@dataclass(frozen=True, eq=False)
class Fit:
    """One turbine: its records' public columns, and ridge regression on their features."""

    group: Group
    features: Features
    ridge: Ridge

    @property
    def rows(self) -> int:
        """How many records."""
        return self.group.rows

    def with_noisy(self, noisy: Vector) -> LocalRows:
        """Public features beside the noisy records of this turbine."""
        return _rows(self.group, self.features, _slices(noisy))

    def with_blocks(self, power: Blocks) -> LocalRows:
        """Public features beside blocks of power: released, or opened inside a mechanism."""
        return BlockRows(_beside(self.group, self.features.inputs, power), self.features)

    def speed_and_rows(self, power: Blocks) -> Iterator[tuple[Vector, Vector, Vector]]:
        """Wind speed, features and power, block by block."""
        names = tuple(dict.fromkeys(("speed", *self.features.inputs)))
        for columns, y in _beside(self.group, names, power)():
            yield columns["speed"], self.features(columns), y


def default_features(records: Records) -> RBF:
    """Bumps every 2.5 m/s over the range of the public wind speeds, to the half m/s.

    For speeds from 2.5 to 12.5 m/s, the paper's, these are the paper's five.
    """
    low = np.floor(2 * records.speed_range[0]) / 2
    high = np.ceil(2 * records.speed_range[1]) / 2
    count = max(round((high - low) / _SPACING) + 1, 2)
    if high == low or count > 100:
        raise InputError(
            f"Wind speeds from {records.speed_range[0]:g} to {records.speed_range[1]:g} have no "
            "sensible default features.",
            remedy="Check the speed column and its unit (m/s), or name features.",
        )
    return RBF(count, float(low), float(high))


def fit_records(records: Records, features: Features, ridge: float) -> tuple[Fit, ...]:
    """Build every turbine's regression from public data.

    Raises
    ------
    InputError
        Where the features can't be computed from the published columns.
    """
    try:
        return tuple(
            Fit(group, features, fit_features(_rows(group, features, None), ridge))
            for group in records.groups
        )
    except ValueError as problem:  # public columns and settings only
        raise InputError(
            f"The regression can't be built: {problem}.",
            remedy="Name other features, or a larger ridge.",
        ) from None


def _rows(group: Group, features: Features, power: Blocks | None) -> LocalRows:
    read = _beside(group, features.inputs, power)
    if group.rows > _HELD:
        return BlockRows(read, features)
    pairs = list(read())
    columns = {n: np.concatenate([c[n] for c, _ in pairs]) for n in features.inputs}
    if power is None:
        return ArrayRows(columns, features)
    return ArrayRows(columns, features, np.concatenate([y for _, y in pairs]))


def _beside(
    group: Group, names: tuple[str, ...], power: Blocks | None
) -> Callable[[], Iterator[tuple[dict[str, Vector], Any]]]:
    columns = group.columns(names)

    def read() -> Iterator[tuple[dict[str, Vector], Any]]:
        if power is None:
            yield from ((block, None) for block in columns())
            return
        rest = iter(power())
        kept = np.empty(0)
        for block in columns():
            size = len(next(iter(block.values())))
            while len(kept) < size:
                more = next(rest)
                kept = np.concatenate([kept, more]) if len(kept) else more
            yield block, kept[:size]
            kept = kept[size:]

    return read


def _slices(values: Vector) -> Blocks:
    return lambda: iter([values])
