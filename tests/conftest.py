"""Shared fixtures: a ledger of its own for every test, and accounts on it."""

import os
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

# Before NumPy is loaded: there are as many processes as cores already, and threads that wait for
# one another take more of a busy machine than they save.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import hypothesis
import pytest
from support.making import make_account
from support.noise import repeatable
from support.sizes import FULL

from gridveil.grid import congestion
from gridveil.grid.model import sampling
from gridveil.privacy.account import Account
from gridveil.privacy.ledger import Ledger

LOOK = congestion._LOOK
SAMPLED = sampling.SAMPLED

# No check of Hypothesis may depend on how fast the machine is.
hypothesis.settings.register_profile(
    "patient", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
patient = hypothesis.settings.get_profile("patient")
hypothesis.settings.register_profile("fast", patient, max_examples=100, derandomize=True)
hypothesis.settings.register_profile("full", patient, max_examples=5000)
hypothesis.settings.load_profile("full" if FULL else "fast")


@pytest.fixture(autouse=True)
def _own_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test may touch the user's own ledger."""
    monkeypatch.setenv("GRIDVEIL_LEDGER", str(tmp_path / "default-ledger.sqlite"))


# What is about noise itself draws the real noise, and says how seldom it fails.
REAL_NOISE = ("tests/audit/", "tests/faults/", "tests/museum/", "tests/privacy/")


def _noise_of(place: str):
    """Every run draws the same noise for the same test, but with GRIDVEIL_FULL=1."""
    return nullcontext() if FULL or place.startswith(REAL_NOISE) else repeatable(place)


@pytest.fixture(autouse=True)
def _own_noise(request: pytest.FixtureRequest) -> Iterator[None]:
    with _noise_of(request.node.nodeid):
        yield


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[object], request: pytest.FixtureRequest
) -> Iterator[None]:
    """What tests share has noise of its own, whichever of them is the first to ask for it."""
    if fixturedef.scope == "function":
        return (yield)
    number = getattr(request, "param_index", 0)
    with _noise_of(f"{fixturedef.baseid}::{fixturedef.argname}-{number}"):
        return (yield)


@pytest.fixture(scope="session", autouse=True)
def _small_releases() -> Iterator[None]:
    """Fewer models and one imagined release, which take most of the time of a small release.

    A user's has 1,000 models if none are given, and looks for false congestion in up to five
    imagined releases. Tests about either ask for `usual_models` or `all_draws`.
    """
    with pytest.MonkeyPatch.context() as patch:
        if not FULL:
            patch.setattr(congestion, "_LOOK", (LOOK[0], 1))
            patch.setattr(sampling, "SAMPLED", (40, 20))
        yield


@pytest.fixture
def all_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many imagined releases as a release of a user makes."""
    monkeypatch.setattr(congestion, "_LOOK", LOOK)


@pytest.fixture
def usual_models(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many models as a release of a user samples."""
    monkeypatch.setattr(sampling, "SAMPLED", SAMPLED)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "ledger.sqlite")


@pytest.fixture
def account(ledger: Ledger) -> Account:
    """An account with a generous epsilon and secure noise."""
    return make_account(ledger)
