"""The privacy core: sealed data, mechanisms, budget, ledger and statement.

**The argument.** A release is epsilon-private for two datasets that are neighbours. This holds if

(a) private values leave a seal only through a mechanism (`sealed`, `mechanisms`);
(b) what a mechanism answers moves by at most its sensitivity between neighbours, as computed, with
    rounding and numerical error (`adjacency`, `sensitivity`, and the caller's bound);
(c) the noise has the scale that OpenDP's privacy map asks for at that distance (`sensitivity`,
    `noise`);
(d) nothing else depends on private values: no error, no refusal, no size, no order (`mechanisms`);
(e) the epsilons of a release add up to no more than was charged (`account`), and those of
    all releases of a dataset to what the ledger says, for steps of its reference (`ledger`).

Nothing here knows of wind or grids, and imports go one way. To review it, read in this order (lines
of each file in brackets; six in ten are code). The first two parts are what the guarantee rests on,
and read in about an hour; to check every line of them by hand takes longer.

**The guarantee.** What is wrong here breaks it.

1. `adjacency` (333): who is a neighbour, and how many steps of one promise make up another. Check
   `blocks_in`, `relative_steps` and `Step.steps`: all that the ledger needs to compare promises.
2. `sealed` (165): values that can't be looked at. Check that clipping is total, and `unseal`'s
   callers (a test lists them).
3. `sensitivity` (189): from a bound to a scale. Check ``steps``, ``score_steps``, and every
   ``separate=True`` of the callers. `noise` (125): OpenDP's samplers and maps. Check ``secure``.
4. `mechanisms` (273): the five steps of every look at private data. Check that steps 1 and 2 read
   public numbers only, and that no exception of step 3 gets out of ``_quietly``.

**The sum.** What is wrong here lets releases add up to more than was said.

5. `account` (235): what one release may spend, and did, and what each mechanism returned. Check
   that secure noise needs a charge, and that only what has noise is ``answered``.
6. `ledger.totals` (300): what entries add up to, as `Reading` in `ledger.entries` reads them. Check
   `counts`, which is all of the arithmetic, `in_force`, and what is refused.
7. `ledger.ledger` (345): what is paid for, and charging. Check that the refusals, the sum and the
   new entry are inside one transaction.

**Keeping it.** What is wrong here could lose a charge in a crash or a race: tests/faults and
tests/privacy/test_team_ledger.py try. Half an hour more.

8. `ledger.identity` (224): under which name; the fingerprints in it are an aid against second names
   of the same data, and refuse and warn by public rows alone. `ledger.entries` (374): what is
   written and what it says (`Reading` is for ledgers of version 1), its chain, and the check of the
   whole chain before anything is added. Then the one that you use. SQLite: `ledger.file` (384),
   made in one step, one name and one writer. PostgreSQL: `ledger.database` (157), the lock and lost
   answers; `ledger.database_tables` (138), who may do what; `ledger.database_connection` (146).
   `ledger.moving` (106): there is one ledger at a time.

**What is said.** `statement` (245): what a release says of all this. Check `make_statement`: each
figure is the account's or the ledger's.

**To be skipped**, and why. None of it opens a seal or draws secure noise.

- `exact_numbers` (79), `ledger.reference_alphas` (76): numbers as people write them. What is read
  is what is charged, what the noise is for, and what statement and ledger say.
- `guarantee_words` (380), `schema` (48): statements in words, classes and JSON.
- `seeded` (47): noise for studies; an account with it is never ``dp_valid``.
- `ledger.history` (60): what was spent when.
- `ledger.place` (172): where the ledger is, without its password.
- `ledger.export` (87): for checks after the fact.

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
    from gridveil.privacy.sealed import Range as Range
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
    "Range": "sealed",
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
    "Range",
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
