"""The options that many commands have: the ledger, JSON for a script, quiet, force."""

from __future__ import annotations

from typing import Annotated

import typer

from gridveil.errors import InputError


def no_password(given: str | None) -> str | None:
    """Refuse the address of a ledger that was given on the command line with its password."""
    if given is not None and "://" in given:
        from gridveil.privacy.ledger import Address

        if Address.like(given) and Address(given).has_password:
            raise InputError(
                "A password on the command line can be read by everyone on this machine.",
                remedy="Leave it out of --ledger, and keep it in ~/.pgpass or PGPASSWORD; or put "
                "the whole address into GRIDVEIL_LEDGER.",
            )
    return given


LedgerOption = Annotated[
    str | None,
    typer.Option(
        "--ledger",
        help="The ledger's file, or its database: postgresql://USER@HOST/DATABASE. Default: "
        "GRIDVEIL_LEDGER, else the user's data folder.",
        callback=no_password,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for a script.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace a bundle that is there.")]
