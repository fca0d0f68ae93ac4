"""Shared fixtures: a ledger of its own for every test, and accounts on it."""

import os
from fractions import Fraction
from pathlib import Path

import hypothesis
import pytest

from gridveil.privacy.account import Account, open_account
from gridveil.privacy.adjacency import Adjacency
from gridveil.privacy.ledger import Ledger
from gridveil.privacy.mechanisms import laplace
from gridveil.privacy.sealed import Limits, seal
from gridveil.privacy.sensitivity import Sensitivity
from gridveil.privacy.statement import Facts, Restoration, make_statement
from gridveil.release import Release

FULL = os.environ.get("GRIDVEIL_FULL") == "1"

hypothesis.settings.register_profile("fast", deadline=None, max_examples=100, derandomize=True)
hypothesis.settings.register_profile("full", deadline=None, max_examples=5000)
hypothesis.settings.load_profile("full" if FULL else "fast")


FACTS = Facts(
    kind="test",
    method="laplace",
    summary="Ten made-up numbers",
    settings={"alpha": "0.1"},
    public_inputs=["nothing"],
    published_in_clear=["hour"],
    restoration=Restoration("none", 0.0, {"gamma": 1e-5}),
    limitations=["It is made up."],
)


@pytest.fixture(autouse=True)
def _own_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test may touch the user's own ledger."""
    monkeypatch.setenv("GRIDVEIL_LEDGER", str(tmp_path / "default-ledger.sqlite"))


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "ledger.sqlite")


@pytest.fixture
def account(ledger: Ledger) -> Account:
    """An account with a generous epsilon and secure noise."""
    return make_account(ledger)


def make_account(ledger: Ledger, epsilon: object = 1000, dataset: str = "test") -> Account:
    return open_account(
        ledger,
        dataset=dataset,
        epsilon=epsilon,
        adjacency=[adjacency()],
        purpose="a test",
    )


def adjacency(
    parameter: str = "power", alpha: object = "0.1", unit: str = "MW", **of: object
) -> Adjacency:
    return Adjacency.of(
        parameter, alpha=Fraction(alpha), unit=unit, limits=Limits(0.0, 1000.0), entries=10, **of
    )


def make_release(ledger: Ledger) -> Release:
    """A small release of made-up numbers, without wind or grid."""
    account = make_account(ledger, epsilon=1, dataset="numbers")
    spend_some(account)
    files = {"numbers.csv": lambda path: path.write_bytes(b"number\n1\n2\n")}
    return Release(make_statement(account, FACTS), account, files)


def spend_some(account: Account, epsilon: object = 1) -> None:
    """One Laplace answer on ten made-up numbers."""
    data = seal(range(10), name="power", unit="MW", limits=Limits(0, 1000))
    laplace(
        account,
        data,
        name="power",
        sensitivity=Sensitivity(Fraction(1, 10), "one entry moves by at most alpha"),
        epsilon=epsilon,
    )
