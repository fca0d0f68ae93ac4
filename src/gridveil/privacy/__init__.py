"""The privacy core: sealed data, mechanisms, budget, ledger and statement.

Nothing here knows of wind or grids, and imports go one way. To review it, read in this order (lines
of each file in brackets; six in ten are code).

**The guarantee.** What is wrong here breaks it.

1. `adjacency` (262): who counts as a neighbour. `sealed` (193): values that can't be looked at.
2. `sensitivity` (199): from a bound on how far an answer moves to the scale of its noise; check
   every ``separate=True`` in the callers. `noise` (128): OpenDP's samplers and privacy maps.
3. `mechanisms` (306): the five steps of every look at private data; it alone opens seals.

**The sum.** What is wrong here lets releases add up to more than was said.

4. `budget` (120): exact epsilon. `account` (142): what one release may spend, and did.
5. `ledger.entries` (376): what is written, and how older entries read today. `ledger.totals` (354):
   what it adds up to; `counts` is the arithmetic.
6. `ledger.names` (232): which dataset it is. `ledger.ledger` (337): charging and reading back.
7. `ledger.file` (267): SQLite, and the check of the whole chain. `ledger.path` (276): the file on
   disk, how it is made, and its lock.

**The words.** `statement` (355): what a release says of all this. `strength` (139): how strong that
is. `seeded` (47): reproducible noise for studies, without a guarantee.

The names in ``__all__`` are for whoever builds a mechanism of their own; the modules are internal.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gridveil.privacy.account import Account as Account
    from gridveil.privacy.account import open_account as open_account
    from gridveil.privacy.account import study_account as study_account
    from gridveil.privacy.adjacency import Adjacency as Adjacency
    from gridveil.privacy.adjacency import relative_steps as relative_steps
    from gridveil.privacy.ledger import Ledger as Ledger
    from gridveil.privacy.ledger import Terms as Terms
    from gridveil.privacy.mechanisms import laplace as laplace
    from gridveil.privacy.mechanisms import laplace_blocks as laplace_blocks
    from gridveil.privacy.mechanisms import laplace_scalar as laplace_scalar
    from gridveil.privacy.mechanisms import noisy_max as noisy_max
    from gridveil.privacy.noise import laplace_epsilon as laplace_epsilon
    from gridveil.privacy.noise import noisy_max_epsilon as noisy_max_epsilon
    from gridveil.privacy.sealed import Limits as Limits
    from gridveil.privacy.sealed import Sealed as Sealed
    from gridveil.privacy.sealed import seal as seal
    from gridveil.privacy.sensitivity import Sensitivity as Sensitivity
    from gridveil.privacy.sensitivity import calibrate_laplace as calibrate_laplace
    from gridveil.privacy.sensitivity import calibrate_noisy_max as calibrate_noisy_max
    from gridveil.privacy.statement import Statement as Statement

_PLACES = {
    "Account": "account",
    "open_account": "account",
    "study_account": "account",
    "Adjacency": "adjacency",
    "Ledger": "ledger",
    "Terms": "ledger",
    "laplace": "mechanisms",
    "laplace_blocks": "mechanisms",
    "laplace_scalar": "mechanisms",
    "noisy_max": "mechanisms",
    "laplace_epsilon": "noise",
    "noisy_max_epsilon": "noise",
    "relative_steps": "adjacency",
    "Limits": "sealed",
    "Sealed": "sealed",
    "seal": "sealed",
    "Sensitivity": "sensitivity",
    "calibrate_laplace": "sensitivity",
    "calibrate_noisy_max": "sensitivity",
    "Statement": "statement",
}

__all__ = [
    "Account",
    "Adjacency",
    "Ledger",
    "Limits",
    "Sealed",
    "Sensitivity",
    "Statement",
    "Terms",
    "calibrate_laplace",
    "calibrate_noisy_max",
    "laplace",
    "laplace_blocks",
    "laplace_epsilon",
    "laplace_scalar",
    "noisy_max",
    "noisy_max_epsilon",
    "open_account",
    "relative_steps",
    "seal",
    "study_account",
]


def __getattr__(name: str) -> Any:
    # On demand: the statement of a bundle is read without the mechanisms.
    if name in _PLACES:
        return getattr(importlib.import_module(f"gridveil.privacy.{_PLACES[name]}"), name)
    raise AttributeError(f"module 'gridveil.privacy' has no attribute {name!r}")
