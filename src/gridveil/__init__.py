"""GridVeil: publish power-system data with a differential-privacy guarantee that holds.

>>> import gridveil as gv
>>> gv.wind.RBF(5)
RBF(count=5, low=2.5, high=12.5, spread=None, column='speed')

`wind` and `grid` read data, plan a release and make it: ``plan(...)`` opens and charges nothing,
``release(...)`` is plan, charge and run, ``evaluate(...)`` compares a release with the real data
for its owner. A `Ledger` keeps what every dataset has spent; `verify` checks a bundle as its
recipient would. Whoever builds a mechanism or wants to attack one finds the parts in `privacy` and
`auditing`; `studies` has the paper's figures. What can go wrong is in `errors`. These packages
list their public names in ``__all__``. All others (`release`, `report`, `planning`, `cli`) and all
modules inside packages are internal, and may change without notice.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gridveil import auditing as auditing
    from gridveil import errors as errors
    from gridveil import grid as grid
    from gridveil import privacy as privacy
    from gridveil import studies as studies
    from gridveil import wind as wind
    from gridveil.errors import BudgetRefused as BudgetRefused
    from gridveil.errors import GridveilError as GridveilError
    from gridveil.errors import InputError as InputError
    from gridveil.errors import LedgerError as LedgerError
    from gridveil.errors import LedgerRefused as LedgerRefused
    from gridveil.errors import LedgerWarning as LedgerWarning
    from gridveil.errors import NotPrivateWarning as NotPrivateWarning
    from gridveil.errors import ReleaseAborted as ReleaseAborted
    from gridveil.errors import SealedError as SealedError
    from gridveil.errors import WriteError as WriteError
    from gridveil.privacy.ledger import Ledger as Ledger
    from gridveil.release.verification import verify_bundle as verify

__version__ = "0.1.0"

__all__ = [
    "BudgetRefused",
    "GridveilError",
    "InputError",
    "Ledger",
    "LedgerError",
    "LedgerRefused",
    "LedgerWarning",
    "NotPrivateWarning",
    "ReleaseAborted",
    "SealedError",
    "WriteError",
    "__version__",
    "auditing",
    "errors",
    "grid",
    "privacy",
    "studies",
    "verify",
    "wind",
]

_PACKAGES = ("auditing", "errors", "grid", "privacy", "studies", "wind")
_PLACES = {
    "Ledger": ("privacy.ledger", "Ledger"),
    "verify": ("release.verification", "verify_bundle"),
}


def __getattr__(name: str) -> Any:
    # Parts are loaded when they are first used: a command that needs none starts at once.
    if name in _PACKAGES:
        return importlib.import_module(f"gridveil.{name}")
    if name in __all__:
        module, there = _PLACES.get(name, ("errors", name))
        return getattr(importlib.import_module(f"gridveil.{module}"), there)
    raise AttributeError(f"module 'gridveil' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
