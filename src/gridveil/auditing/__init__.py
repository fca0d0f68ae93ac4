"""Audits: attacks on the guarantees. `AUDITS` has all of them, `run_audits` runs some.

To write your own audit, make a `Frequency`, a `Support` or a `Repeat` for a `Pair` of neighbours;
`attacks` has functions that score outcomes. The modules are internal.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gridveil.auditing import attacks as attacks
    from gridveil.auditing.audits import Frequency as Frequency
    from gridveil.auditing.audits import Pair as Pair
    from gridveil.auditing.audits import Repeat as Repeat
    from gridveil.auditing.audits import Sizes as Sizes
    from gridveil.auditing.audits import Support as Support
    from gridveil.auditing.audits import Verdict as Verdict
    from gridveil.auditing.audits import run_audits as run_audits
    from gridveil.auditing.catalogue import AUDITS as AUDITS

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


def __getattr__(name: str) -> Any:
    # Load on demand: the catalogue imports every audit, and these import most of the package.
    if name == "attacks":
        return importlib.import_module("gridveil.auditing.attacks")
    if name in __all__:
        place = "catalogue" if name == "AUDITS" else "audits"
        return getattr(importlib.import_module(f"gridveil.auditing.{place}"), name)
    raise AttributeError(f"module 'gridveil.auditing' has no attribute {name!r}")
