"""What a release is charged to, and what it was charged, said to its owner."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gridveil.cli.console import err, plain
from gridveil.errors import LedgerWarning, show_exact

if TYPE_CHECKING:
    from gridveil.privacy.account import Account
    from gridveil.privacy.ledger import Charge

DatasetOption = Annotated[
    str | None,
    typer.Option(
        "--dataset",
        help="The ledger's name for the data, the same for every release of it. Needed the first "
        "time.",
        show_default=False,
    ),
]
DistinctOption = Annotated[
    str | None,
    typer.Option(
        "--distinct",
        metavar="REASON",
        help="Why this is not the data of another dataset that it looks like; the ledger keeps it.",
        show_default=False,
    ),
]


@contextmanager
def ledger_warnings(*, quiet: bool) -> Iterator[None]:
    """Say on standard error what the ledger warns of, as soon as it does."""
    with warnings.catch_warnings():
        shown = warnings.showwarning

        def show(message: Any, category: type[Warning], *where: Any, **more: Any) -> None:
            if not issubclass(category, LedgerWarning):
                shown(message, category, *where, **more)
            elif not quiet:
                err().print(f"[yellow]warning:[/] {plain(message)}")

        warnings.simplefilter("always", LedgerWarning)
        warnings.showwarning = show
        yield


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
