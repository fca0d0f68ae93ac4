"""Noise that is drawn again the next time, so that no test fails in one run of a hundred."""

import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from gridveil.errors import NotPrivateWarning
from gridveil.privacy.noise import SecureNoise
from gridveil.privacy.seeded import SeededNoise


@contextmanager
def repeatable(name: str) -> Iterator[None]:
    """Let the secure source draw what a seed made of this name gives."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPrivateWarning)
        source = SeededNoise(zlib.crc32(name.encode()))
    with pytest.MonkeyPatch.context() as patch:
        for draw in ("laplace", "noisy_max"):
            patch.setattr(SecureNoise, draw, _from(source, draw))
        yield


def _from(source: SeededNoise, draw: str):
    return lambda _, *given: getattr(source, draw)(*given)
