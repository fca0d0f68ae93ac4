"""The list of everything that is audited, by name."""

from __future__ import annotations

from collections.abc import Callable

from gridveil.auditing import grid, wind
from gridveil.auditing.grid_files import GRID_FILES, SLOW_FILES
from gridveil.auditing.grid_series import SERIES
from gridveil.auditing.ledger import LEDGER_AUDITS
from gridveil.auditing.mechanisms import MECHANISMS
from gridveil.auditing.verdicts import Audit
from gridveil.auditing.wind_files import WIND_FILES
from gridveil.auditing.wind_tables import WIND_TABLES
from gridveil.errors import InputError

AUDITS: dict[str, Callable[[], Audit]] = {
    **MECHANISMS,
    **LEDGER_AUDITS,
    **wind.WIND,
    **WIND_TABLES,
    **WIND_FILES,
    **grid.GRID,
    **SERIES,
    **GRID_FILES,
}
"""Functions that make the audits, by name; quick ones first."""

FULL_ONLY = frozenset({*wind.SLOW, *grid.SLOW, *SLOW_FILES})
"""Audits that a fast run leaves out."""


def matching(name: str | None, *, fast: bool = False) -> dict[str, Callable[[], Audit]]:
    """Return the audits whose names start with `name` (all for None); a fast run has no slow ones.

    Raises
    ------
    InputError
        If there is no such audit.
    """
    known = {one: make for one, make in AUDITS.items() if not (fast and one in FULL_ONLY)}
    found = {one: make for one, make in known.items() if one.startswith(name or "")}
    if not found:
        raise InputError(
            f"There is no audit {name!r}{' in a fast run' if fast else ''}.",
            remedy=f"There are {', '.join(known)}.",
        )
    return found
