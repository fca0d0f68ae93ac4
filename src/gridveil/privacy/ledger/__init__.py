"""The ledger: the durable record of how much epsilon each dataset has spent.

1. `entries`: what is written, chained by hash, and how older entries read today.
2. `totals`: what the entries of one dataset add up to, and the rules for the next charge. Nothing
   is kept beside the entries that could fall out of step with them.
3. `names`: which dataset a release is charged to.
4. `ledger`: the `Ledger` itself: charging a release, setting a cap, reading back.
5. `file`: keeps the entries in SQLite, and checks the whole chain before anything is added.
6. `path`: where that file is and must not be, how it is made, and the lock on it.
"""

from gridveil.privacy.ledger.entries import Declared, Entry, Step
from gridveil.privacy.ledger.ledger import Charge, Ledger, Terms
from gridveil.privacy.ledger.names import Hashes, Sketch, checked_name, mixed, name_key, unnamed
from gridveil.privacy.ledger.path import ledger_path
from gridveil.privacy.ledger.totals import ANY, PART, Totals, refuse_exposed, steps_to_reference

__all__ = [
    "ANY",
    "PART",
    "Charge",
    "Declared",
    "Entry",
    "Hashes",
    "Ledger",
    "Sketch",
    "Step",
    "Terms",
    "Totals",
    "checked_name",
    "ledger_path",
    "mixed",
    "name_key",
    "refuse_exposed",
    "steps_to_reference",
    "unnamed",
]
