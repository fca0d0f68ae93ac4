"""Audits: attacks on the guarantees. `AUDITS` has all of them, `run_audits` runs some.

To write your own audit, make a `Frequency`, a `Support` or a `Repeat` for a `Pair` of neighbours;
`attacks` has functions that score outcomes. The modules are internal.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gridveil.auditing import attacks as attacks
    from gridveil.auditing.catalogue import AUDITS as AUDITS
    from gridveil.auditing.checks import Frequency as Frequency
    from gridveil.auditing.checks import Pair as Pair
    from gridveil.auditing.checks import Repeat as Repeat
    from gridveil.auditing.checks import Sizes as Sizes
    from gridveil.auditing.checks import Support as Support
    from gridveil.auditing.runner import run_audits as run_audits
    from gridveil.auditing.verdicts import Verdict as Verdict

__all__ = [
    "AUDITS",
    "Frequency",
    "Pair",
    "Repeat",
    "Sizes",
    "Support",
    "Verdict",
    "attacks",
    "run_audits",
]

_PLACES = {"AUDITS": "catalogue", "Verdict": "verdicts", "run_audits": "runner"}


def __getattr__(name: str) -> Any:
    # Load on demand: the catalogue imports every audit, and these import most of the package.
    if name == "attacks":
        return importlib.import_module("gridveil.auditing.attacks")
    if name in __all__:
        place = _PLACES.get(name, "checks")
        return getattr(importlib.import_module(f"gridveil.auditing.{place}"), name)
    raise AttributeError(f"module 'gridveil.auditing' has no attribute {name!r}")
