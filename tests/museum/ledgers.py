"""Controls that add up charges wrongly: small ledgers of their own, with one fault each."""

import math
from fractions import Fraction
from functools import partial

from gridveil.auditing.ledger import Composition
from museum.control import Control, same

SERIES = same(8)
WORDS = ("capacity", "capacity of lines", "capacity (ratings)")
NAMES = ("scada", "scada-final", "north farm")


def ledger(key_of, place_of):
    """Totals and first alphas, found by what a charge calls its parameter and its data."""

    def opened():
        spent, reference = {}, {}

        def pay(one):
            place = place_of(one)
            first = reference.setdefault((place, key_of(one)), one.alpha)
            factor = math.ceil(first / one.alpha)
            spent[place] = spent.get(place, Fraction(0)) + one.epsilon * factor
            return spent[place]

        return pay

    return opened


def renamed_key(prose):
    opened = ledger(lambda one: one.words if prose else "capacity/1", lambda one: "data")
    return Composition("renamed key", opened, ["data"], SERIES, WORDS)


def second_name(named):
    opened = ledger(lambda one: "capacity/1", lambda one: one.name if named else "fingerprint")
    return Composition("second name", opened, NAMES, SERIES)


LEDGERS = (
    Control(
        "The ledger's renamed key",
        "the reference alpha is looked up by prose: in other words alpha 5 after 30 is paid once, "
        "not six times",
        partial(renamed_key, True),
        partial(renamed_key, False),
    ),
    Control(
        "The second name",
        "the same data under another name gets a fresh budget",
        partial(second_name, True),
        partial(second_name, False),
    ),
)
