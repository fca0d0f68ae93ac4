"""Alphas that differ by public class: 100 MW for lines of 380 kV, 20 MW for those of 110 kV.

A class is a rule about public facts, as in `element_rules`: ``voltage=380``, ``kind=transformer``,
``area=2``. For short a voltage may be written ``380kV`` and a kind ``line`` or ``transformer``;
``others`` are all that no rule before fits. An entry belongs to the first class that fits it. So
which class an entry is in, and with it how far it may move, is public and the same for neighbours;
docs/maths/class-steps.md has the proofs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridveil.errors import InputError
from gridveil.grid.model.element_rules import fits
from gridveil.grid.model.network import Network
from gridveil.grid.model.parameters import PARAMETERS
from gridveil.grid.model.public_facts import public_facts
from gridveil.grid.model.public_network import PublicNetwork
from gridveil.privacy.adjacency import Adjacency
from gridveil.privacy.exact_numbers import Exact

OTHERS = "others"
"""The class of all that no other fits."""

_VOLTAGE = re.compile(r"\s*([0-9.]+)\s*kV\s*", re.IGNORECASE)
_KINDS = ("line", "transformer")


def rule_of(name: str) -> str:
    """The rule that a class stands for.

    >>> [rule_of(name) for name in ("380kV", "220 kV", "line", "area=2")]
    ['voltage=380', 'voltage=220', 'kind=line', 'area=2']
    """
    voltage = _VOLTAGE.fullmatch(name)
    if voltage is not None:
        return f"voltage={voltage[1]}"
    return f"kind={name.strip()}" if name.strip() in _KINDS else name


def classes_of(
    public: PublicNetwork | Network,
    parameter: str,
    names: list[str],
    support: Mapping[str, NDArray[np.bool_]] | None = None,
) -> NDArray[np.int64]:
    """The class of every private entry of a parameter: its place in the list of names.

    A public network knows which entries are private (its `support`); of another they are given.

    Raises
    ------
    InputError
        If a rule can't be read, a class has no entry, or an entry no class.
    """
    kind = PARAMETERS[parameter]
    facts = public_facts(public, kind.table)
    count = len(getattr(public, kind.table))
    found = np.full(count, -1)
    for place, name in enumerate(names):
        other = name.strip() == OTHERS
        fit = np.ones(count, bool) if other else fits(rule_of(name), facts, kind.table)
        found[fit & (found < 0)] = place
    held = public.support if isinstance(public, PublicNetwork) else support or {}
    entries = np.concatenate([found[held[column]] for column in kind.columns])
    for place, name in enumerate(names):
        if not (entries == place).any():
            raise InputError(
                f"alpha was given for {name!r}, and no private entry of {parameter} is in that "
                "class.",
                remedy="Leave it out, or put it before the classes that take its entries.",
            )
    if (entries < 0).any():
        raise InputError(
            f"{int((entries < 0).sum()):,} entries of {parameter} are in none of the classes "
            f"{', '.join(names)}.",
            remedy=f'Give a step for all others: {{"{names[0]}": ..., "{OTHERS}": ...}}.',
        )
    return np.asarray(entries, dtype=np.int64)


def by_class(
    public: PublicNetwork, parameter: str, given: Mapping[str, Exact], how: Mapping[str, Any]
) -> Adjacency:
    """Neighbours by class steps: the adjacency of the smallest step, with the steps of classes.

    Whoever reads `alpha` alone (the ledger, a sentence) has the smallest step, by which every entry
    may move for the same epsilon.
    """
    if not given:
        raise InputError(
            f"alpha of {parameter} names no class.", remedy='For example {"380kV": 100}.'
        )
    shares = {str(one).strip().endswith("%") for one in given.values()}
    if len(shares) > 1:
        raise InputError(
            f"Some steps of {parameter} are shares of each value, and others are amounts.",
            remedy="Give all classes amounts, or all of them shares.",
        )
    names = [str(name) for name in given]
    classes_of(public, parameter, names)
    each = [Adjacency.of(alpha=one, **how) for one in given.values()]
    least = min(each, key=lambda one: one.alpha)
    steps = {name: one.alpha for name, one in zip(names, each, strict=True)}
    return replace(least, classes=steps)


def steps_of(public: PublicNetwork, adjacency: Adjacency) -> tuple[Fraction, ...]:
    """How far each private entry of a parameter may move, by its class."""
    names, steps = list(adjacency.classes), list(adjacency.classes.values())
    return tuple(steps[place] for place in classes_of(public, adjacency.key, names).tolist())
