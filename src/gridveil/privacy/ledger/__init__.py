"""The ledger: the durable record of how much epsilon each dataset has spent.

`book` has the `Ledger` itself: charging a release, setting a cap, reading back what was written.
What it writes are `entries`, each chained by hash to all before it; `file` keeps them in SQLite and
checks the whole chain before it trusts or adds anything (`making` makes that file, `locks` keeps
its names apart). `totals` adds up the entries of one dataset (what is spent, the cap, the reference
alpha, what is public) and holds the rules for the next charge, so there is nothing beside the
entries that could fall out of step; `references` says which step its epsilons add up for.
`identity` says which dataset a release is charged to: `names` which spellings of a name are one,
and `sketch` whether the public part of the data looks like that of another dataset. `path` says
where the file is and must not be.
"""

from gridveil.privacy.ledger.book import Charge, Ledger
from gridveil.privacy.ledger.entries import Entry
from gridveil.privacy.ledger.identity import unnamed
from gridveil.privacy.ledger.names import checked_name, name_key
from gridveil.privacy.ledger.path import ledger_path
from gridveil.privacy.ledger.references import Declared, Reference
from gridveil.privacy.ledger.sketch import Sketch
from gridveil.privacy.ledger.totals import PART, Totals, refuse_exposed, steps_to_reference

__all__ = [
    "PART",
    "Charge",
    "Declared",
    "Entry",
    "Ledger",
    "Reference",
    "Sketch",
    "Totals",
    "checked_name",
    "ledger_path",
    "name_key",
    "refuse_exposed",
    "steps_to_reference",
    "unnamed",
]
