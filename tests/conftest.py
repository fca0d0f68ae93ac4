"""Shared fixtures: a ledger of its own for every test, and accounts on it."""

from pathlib import Path

import hypothesis
import pytest
from support.making import make_account
from support.sizes import FULL

from gridveil.grid import congestion
from gridveil.privacy.account import Account
from gridveil.privacy.ledger import Ledger

LOOK = congestion._LOOK

hypothesis.settings.register_profile("fast", deadline=None, max_examples=100, derandomize=True)
hypothesis.settings.register_profile("full", deadline=None, max_examples=5000)
hypothesis.settings.load_profile("full" if FULL else "fast")


@pytest.fixture(autouse=True)
def _own_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test may touch the user's own ledger."""
    monkeypatch.setenv("GRIDVEIL_LEDGER", str(tmp_path / "default-ledger.sqlite"))


@pytest.fixture(autouse=True)
def _one_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    """One imagined release is enough to look for false congestion; a user's makes up to five.

    They take most of the time of a small release. Tests about what they find ask for
    `all_draws`.
    """
    if not FULL:
        monkeypatch.setattr(congestion, "_LOOK", (LOOK[0], 1))


@pytest.fixture
def all_draws(monkeypatch: pytest.MonkeyPatch, _one_draw: None) -> None:
    """As many imagined releases as a release of a user makes."""
    monkeypatch.setattr(congestion, "_LOOK", LOOK)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "ledger.sqlite")


@pytest.fixture
def account(ledger: Ledger) -> Account:
    """An account with a generous epsilon and secure noise."""
    return make_account(ledger)
