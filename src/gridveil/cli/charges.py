"""What a release was charged, said to its owner at the end."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from gridveil.errors import show_exact

if TYPE_CHECKING:
    from gridveil.privacy.account import Account
    from gridveil.privacy.ledger import Charge


def charge_line(account: Account) -> str:
    """What was charged, to which dataset, in which ledger, and what the cap leaves."""
    charge, path = _charge(account)
    left = "no cap"
    if charge.cap is not None:
        left = f"{show_exact(charge.cap - charge.spent)} left of the cap {show_exact(charge.cap)}"
    return (
        f"Charged {show_exact(charge.charged)} to {charge.dataset!r} in {path} "
        f"({show_exact(charge.spent)} spent so far; {left})."
    )


def charge_fields(account: Account) -> dict[str, Any]:
    """The same for a script."""
    charge, path = _charge(account)
    return {
        "dataset": charge.dataset,
        "ledger": str(path),
        "charged": str(charge.charged),
        "spent": str(charge.spent),
        "cap": None if charge.cap is None else str(charge.cap),
        "remaining": None if charge.cap is None else str(charge.cap - charge.spent),
    }


def _charge(account: Account) -> tuple[Charge, Path]:
    # A command's release always has both: only a study has none.
    assert account.ledger is not None
    assert account.charge is not None
    return account.charge, Path(account.ledger.path).absolute()
