"""What an owner declares public of a network that has private parameters.

A part of a parameter: by a rule about public facts (`element_rules`), or by a number from which
ratings count as placeholders for "no limit". That a rating is a placeholder is read from it: so
which lines have one is declared public with the number.

Set points of units, and ratios of limits (`limit_ratios`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gridveil.errors import InputError
from gridveil.grid.io import Protected, Ratios, Source, module_of
from gridveil.grid.model.element_rules import fits, usual_form
from gridveil.grid.model.limit_ratios import read_ratios
from gridveil.grid.model.network import Bools, Network
from gridveil.grid.model.parameters import PARAMETERS
from gridveil.grid.model.public_facts import public_facts
from gridveil.privacy.ledger import PART

UNLIMITED_ABOVE = "unlimited_above"
"""The statement's key of the rating from which lines have no limit (MW)."""
_FORMERLY = "unlimited above, MW"  # its key in earlier statements


@dataclass(frozen=True)
class Declared:
    """What an owner declares public of the parameters that are otherwise private.

    Parameters
    ----------
    only
        Rules for what is protected, by parameter; all of it if there is none.
    unlimited_above
        Ratings from here on (MW) are placeholders for lines without a limit; None: none are.
    public_curves
        Whether inner breakpoints of cost curves are public.
    power_factor
        That of all private loads, which gives their released reactive power; None: they have none.
    public_dispatch
        Whether set points of units are public.
    limit_ratios
        Public ratios of further limits of lines to their capacity, by name.
    """

    only: Mapping[str, str] = field(default_factory=dict)
    unlimited_above: float | None = None
    public_curves: bool = False
    power_factor: float | None = None
    public_dispatch: bool = False
    limit_ratios: Ratios = field(default_factory=dict)

    @property
    def reactive_ratio(self) -> float:
        """Mvar for each MW of a private load.

        >>> Declared(power_factor=0.8).reactive_ratio
        0.75
        """
        factor = 1.0 if self.power_factor is None else self.power_factor
        return round(math.sqrt(1 / factor**2 - 1), 6)

    def protects(self, parameter: str) -> str:
        """What of a parameter is protected, in words; empty if all of it is."""
        parts = [self.only[parameter]] if parameter in self.only else []
        if parameter == "capacity" and self.unlimited_above is not None:
            parts.append(f"below {self.unlimited_above:.10g} MW")
        return ", ".join(parts)

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Declared:
        """What the settings of a statement say was declared."""
        return cls(settings.get("only", {}), settings.get(UNLIMITED_ABOVE, settings.get(_FORMERLY)))

    def published(self, parameters: tuple[str, ...]) -> list[str]:
        """The parts of private parameters that are published, in the words of the ledger."""
        parts = ((name, self.protects(name)) for name in parameters)
        return [f"{name} {PART} {part}" for name, part in parts if part]

    def source(self, source: Any, parameters: tuple[str, ...], rows: Protected) -> Source | None:
        """Return what a release of these parameters keeps of a file; None if it keeps nothing.

        That is the file without them, and what is declared public (set points, ratios).

        Raises
        ------
        InputError
            If the file has no set points or no such limits, or if its models reveal private loads.
        """
        stripped = _stripped(source, parameters, rows)
        if stripped is not None and stripped.models is not None and "load" in stripped.private:
            # For a bus with several loads, the mean of their profiles reveals their sizes.
            raise InputError(
                "Loads are private, and they vary over the snapshots.",
                remedy="Release them as series (--parameter load --series FILE), or leave "
                "--snapshots out.",
            )
        here = stripped is not None and isinstance(source, Source)
        known: Any = module_of(source.kind) if here else None
        if self.public_dispatch:
            stripped = _with_set_points(stripped, source, known)
        if not self.limit_ratios:
            return stripped
        limits = known.limit_names(source.data) if hasattr(known, "limit_names") else ()
        unknown = next((name for name in self.limit_ratios if name not in limits), None)
        if unknown is not None:
            has = f"Those of this file are {', '.join(limits)}" if limits else "It has one for each"
            raise InputError(
                f"limit_ratios has a ratio for {unknown}, and lines of this file have no such "
                "limit.",
                remedy=f"{has}: leave it out, or correct the name (--limit-ratios).",
            )
        assert stripped is not None, "a format with names of limits has `strip`"
        return replace(stripped, limit_ratios=dict(self.limit_ratios))

    def network(self, network: Network) -> Network:
        """The network without the placeholders."""
        if self.unlimited_above is None:
            return network
        rated = network.branches.capacity
        return network.with_capacity(np.where(rated >= self.unlimited_above, np.inf, rated))

    def support(self, network: Network, parameter: str) -> dict[str, Bools]:
        """Which entries of a parameter are private, one array per column.

        Of the protected elements those with a limit, or with a value that is not 0.
        """
        table, columns = PARAMETERS[parameter].table, PARAMETERS[parameter].columns
        owner, chosen = getattr(self.network(network), table), self.chosen(network, parameter)
        found = {}
        for column in columns:
            values = getattr(owner, column)
            there = np.isfinite(values) if column == "capacity" else values != 0
            found[column] = there & chosen
            found[column].setflags(write=False)
        return found

    def chosen(self, network: Network, parameter: str) -> Bools:
        """Which elements a parameter is protected of, by public facts alone."""
        table = PARAMETERS[parameter].table
        found: Bools = np.ones(len(getattr(network, table)), dtype=bool)
        if parameter in self.only:
            found &= fits(self.only[parameter], public_facts(network, table), table)
        return found


def declared(
    parameters: tuple[str, ...],
    only: str | Mapping[str, str] | None,
    unlimited_above: float | None,
    public_curves: bool,
    power_factor: float | None = None,
    public_dispatch: bool = False,
    limit_ratios: str | Mapping[str, float] | None = None,
) -> Declared:
    """What an owner declares, checked.

    Raises
    ------
    InputError
        If a rule can't be read, or is for a parameter that is not private.
    """
    rules = {} if only is None else only
    if isinstance(rules, str):
        rules = dict.fromkeys(parameters, rules)
    if not isinstance(rules, Mapping) or not set(rules) <= set(parameters):
        raise InputError(
            "only is a rule, or one for each of the private parameters.",
            remedy=f'For example only={{"{parameters[0]}": "voltage>=220"}}.',
        )
    for name in parameters:
        whole = PARAMETERS[name].beside
        if whole is not None and rules.get(name) != rules.get(whole):
            raise InputError(
                f"{name} is protected for the elements that {whole} is protected for: either "
                "tells about the other.",
                remedy="Give both the same rule.",
            )
    if unlimited_above is not None:
        number = isinstance(unlimited_above, int | float | np.number)
        if not number or not (np.isfinite(unlimited_above) and unlimited_above > 0):
            raise InputError(
                "unlimited_above must be a number of MW above 0.", remedy="Give 9000, for example."
            )
        if "capacity" not in parameters:
            raise InputError(
                "unlimited_above is about capacities, which are not private here.",
                remedy="Leave it out.",
            )
    if power_factor is not None:
        number = isinstance(power_factor, int | float | np.number)
        if not number or not 0.1 <= power_factor <= 1:
            raise InputError(
                "power_factor must be between 0.1 and 1.", remedy="Give 0.95, for example."
            )
        if "load" not in parameters:
            raise InputError(
                "power_factor is about loads, which are not private here.", remedy="Leave it out."
            )
        if "reactive_load" in parameters:
            raise InputError(
                "power_factor is for loads whose reactive power is not released itself.",
                remedy="Leave it out, or reactive_load.",
            )
    if public_dispatch and parameters != ("capacity",):
        raise InputError(
            "Set points of units tell loads, limits and costs, and these are private here.",
            remedy="Leave public_dispatch out (--public-dispatch): it is for private capacities.",
        )
    ratios = read_ratios(limit_ratios)
    if ratios and "capacity" not in parameters:
        raise InputError(
            "limit_ratios are about capacities, which are not private here.", remedy="Leave it out."
        )
    read = {name: usual_form(rule) for name, rule in rules.items()}
    above = None if unlimited_above is None else float(unlimited_above)
    factor = None if power_factor is None else float(power_factor)
    return Declared(read, above, bool(public_curves), factor, bool(public_dispatch), ratios)


def _stripped(source: Any, parameters: tuple[str, ...], rows: Protected) -> Source | None:
    if not isinstance(source, Source):
        return None
    if source.private:
        return source if source.private == parameters else None
    strip = getattr(module_of(source.kind), "strip", None)
    if strip is None:
        return None
    bare = strip(source.data, parameters, rows)
    return Source(source.kind, bare, parameters, rows, models=source.models)


def _with_set_points(stripped: Source | None, source: object, known: Any) -> Source:
    if stripped is None or not isinstance(source, Source) or not hasattr(known, "set_points"):
        raise InputError(
            "public_dispatch is about set points of units, which this network's file does not "
            "have.",
            remedy="Leave it out (--public-dispatch).",
        )
    return replace(stripped, dispatch=known.set_points(source.data))
