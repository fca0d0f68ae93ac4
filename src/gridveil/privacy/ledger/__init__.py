"""The ledger: the durable record of how much epsilon each dataset has spent.

`gridveil.privacy` has the order in which to read it. Nothing is kept beside the entries that could
fall out of step with them: totals are added up anew whenever they are asked for.
"""

from gridveil.privacy.ledger.address import Address
from gridveil.privacy.ledger.entries import Entry
from gridveil.privacy.ledger.identity import unnamed
from gridveil.privacy.ledger.ledger import Charge, Ledger, Terms
from gridveil.privacy.ledger.names import checked_name, name_key
from gridveil.privacy.ledger.overview import Moment, all_references, history
from gridveil.privacy.ledger.path import ledger_place
from gridveil.privacy.ledger.sketch import Hashes, Sketch, mixed
from gridveil.privacy.ledger.steps import ANY, Declared, Step
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
    "Step",
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
