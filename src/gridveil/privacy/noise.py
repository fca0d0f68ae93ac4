"""The secure noise source: OpenDP's exact samplers, fed by the operating system's entropy.

Everything here works on whole numbers (steps of a public grid), where OpenDP samples exactly: no
low bits of floating point give a value away. The privacy maps are OpenDP's too.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import cache, lru_cache
from importlib import metadata
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]

_version = cache(metadata.version)
_CHUNK = 16_384  # draws per call: bounds the memory of OpenDP's lists, and feeds every core


class NoiseSource(Protocol):
    """Where a release's randomness comes from."""

    @property
    def name(self) -> str:
        """What the statement calls it."""

    @property
    def secure(self) -> bool:
        """Whether its noise carries a guarantee."""

    def laplace(self, values: Integers, scale: float) -> Integers:
        """Add independent discrete Laplace noise of this scale to every value."""

    def noisy_max(self, scores: Integers, scale: float) -> int:
        """Index of the largest score after exponential noise of this scale."""


class SecureNoise:
    """OpenDP's samplers. The only source whose output may be published.

    A class made from it might draw something else, so its noise carries no guarantee, unless it is
    one of the audit's own (`listening`), which draw from here or give recorded answers again.
    """

    @property
    def secure(self) -> bool:
        """Whether its noise carries a guarantee."""
        return type(self) is SecureNoise or type(self) in _LISTENERS

    @property
    def name(self) -> str:
        """What the statement calls it."""
        return f"OpenDP {_version('opendp')}, cryptographic generator"

    def laplace(self, values: Integers, scale: float) -> Integers:
        """Add independent discrete Laplace noise of this scale to every value."""
        draw = _laplace(scale)
        chunks = [values[i : i + _CHUNK] for i in range(0, len(values), _CHUNK)]
        if len(chunks) < 2:
            return np.array(draw(values), dtype=np.int64)
        noisy = np.empty_like(values)
        with ThreadPoolExecutor(os.cpu_count()) as pool:  # OpenDP leaves Python's lock
            for i, part in enumerate(pool.map(draw, chunks)):
                noisy[i * _CHUNK : i * _CHUNK + len(part)] = part
        return noisy

    def noisy_max(self, scores: Integers, scale: float) -> int:
        """Index of the largest score after exponential noise of this scale."""
        # The choice does not depend on whether the scores are monotone; its price does.
        return int(_noisy_max(scale, monotone=False)(scores))

    def __repr__(self) -> str:
        return f"SecureNoise({self.name})"


_LISTENERS: set[type[SecureNoise]] = set()
_Listener = TypeVar("_Listener", bound=type[SecureNoise])


def listening(source: _Listener) -> _Listener:
    """Let a class of the audit, which listens to a release, stand for the secure source."""
    _LISTENERS.add(source)
    return source


@lru_cache(maxsize=1024)
def laplace_epsilon(scale: float, distance: int) -> Fraction:
    """OpenDP's privacy map: epsilon of the Laplace mechanism at an L1 distance on the grid."""
    return _as_epsilon(_laplace(scale).map(distance))


@lru_cache(maxsize=1024)
def noisy_max_epsilon(scale: float, distance: int, *, monotone: bool) -> Fraction:
    """OpenDP's privacy map: epsilon of noisy max if each score moves by ``distance``."""
    return _as_epsilon(_noisy_max(scale, monotone=monotone).map(distance))


def _as_epsilon(mapped: float) -> Fraction:
    # An infinite epsilon has no rational; it compares as larger than any budget.
    return Fraction(mapped) if np.isfinite(mapped) else Fraction(10**30)


@lru_cache(maxsize=64)
def _laplace(scale: float) -> Any:
    from opendp import measurements, metrics

    return measurements.make_laplace(_vectors(), metrics.l1_distance(T="i64"), scale=scale)


@lru_cache(maxsize=64)
def _noisy_max(scale: float, *, monotone: bool) -> Any:
    from opendp import measurements, measures, metrics

    distance = metrics.linf_distance(T="i64", monotonic=monotone)
    return measurements.make_noisy_max(_vectors(), distance, measures.max_divergence(), scale=scale)


@cache
def _vectors() -> Any:
    # Not OpenDP's prelude, which takes three times as long to load: it loads Polars and more.
    from opendp import domains, mod

    mod.enable_features("contrib")
    return domains.vector_domain(domains.atom_domain(T="i64"))
