"""The ledger: the durable record of how much epsilon each dataset has spent.

`gridveil.privacy` has the order in which to read it. Nothing is kept beside the entries that could
fall out of step with them: totals are added up anew whenever they are asked for.
"""

from gridveil.privacy.ledger.entries import Entry
from gridveil.privacy.ledger.history import Moment, all_references, history
from gridveil.privacy.ledger.identity import (
    Hashes,
    Sketch,
    checked_name,
    mixed,
    name_key,
    unnamed,
)
from gridveil.privacy.ledger.ledger import Charge, Ledger, Terms
from gridveil.privacy.ledger.place import Address, ledger_place
from gridveil.privacy.ledger.reference_alphas import ANY, Declared
from gridveil.privacy.ledger.totals import PART, Totals, refuse_exposed, steps_to_reference

__all__ = [
    "ANY",
    "PART",
    "Address",
    "Charge",
    "Declared",
    "Entry",
    "Hashes",
    "Ledger",
    "Moment",
    "Sketch",
    "Terms",
    "Totals",
    "all_references",
    "checked_name",
    "history",
    "ledger_place",
    "mixed",
    "name_key",
    "refuse_exposed",
    "steps_to_reference",
    "unnamed",
]
