"""Reference alphas as an owner writes them: for one parameter, or for all of a unit."""

from __future__ import annotations

from collections.abc import Mapping

from gridveil.errors import InputError, show_exact
from gridveil.privacy.exact import Exact, exact
from gridveil.privacy.ledger.names import checked_key
from gridveil.privacy.ledger.steps import ANY, SHARE, Declared

Alphas = Exact | Mapping[str, Exact]


def read_alphas(given: Alphas) -> dict[str, Declared]:
    """Reference alphas as a user gives them, or `InputError`.

    >>> read_alphas("15%")["*"].unit, read_alphas({"load": 10})["load"].unit
    ('of capacity', '')
    """
    if isinstance(given, Mapping):
        if not given:
            raise InputError("No reference alpha is given.", remedy="Write --alpha capacity=30.")
        return {checked_key(str(key)): _declared(one) for key, one in given.items()}
    one = _declared(given)
    if not one.unit and one.alpha <= 1:
        raise InputError(
            f"A reference alpha of {show_exact(one.alpha)} may be a share or an amount.",
            remedy="Write it in percent (15%), or name its parameter (power=0.15, load=0.5).",
        )
    return {ANY: one if one.unit else Declared(one.alpha, "MW")}


def _declared(given: Exact) -> Declared:
    percent = isinstance(given, str) and given.strip().endswith("%")
    return Declared(exact(given, name="the reference alpha"), SHARE if percent else "")
