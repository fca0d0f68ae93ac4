"""The parameters of a network that can be private, one small class each.

A class says what its values are worth in a cost: the public constant that bounds how far the cost
of a model moves with one entry, why that is so, and the slope of a cost at public values. A fifth
parameter is one more class here, and its line in the file formats.

**Lipschitz costs.** Let ``C(x) = min c'p`` over the dispatches that keep to limits with right-hand
side ``x``. If every limit that depends on ``x`` can be bought at ``price`` a MW, a dispatch
that is optimal for ``x`` serves ``x'`` as well, at ``price |x - x'|`` more: so ``|C(x) - C(x')| <=
price |x - x'|``, whatever the costs (linear, convex, piecewise) and the other limits are. If a
model scales the entry by a public factor, its own limit moves by the factor times as much.

- capacity: rows ``+-flow - v <= f``, ``v >= 0`` at ``price``;
- load: shed and spill at every bus, unbounded, at ``price``;
- generator limits: room ``u, w >= 0`` above and below them, at ``price`` on top of the cost;
- reactive loads: a cost in DC does not know them, and does not move;
- costs: the least of ``c'p`` over a set that does not depend on ``c``; with ``p`` optimal for
  ``c``, ``C(c') - C(c) <= (c' - c)'p``, and the same with the two exchanged, so one entry that
  moves by ``a`` moves the cost by at most ``a max |p|``.

With several slacks at once the argument is the same for each entry.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gridveil.errors import InputError

if TYPE_CHECKING:
    from gridveil.grid.model.population import Population
    from gridveil.grid.model.public_network import PublicNetwork
    from gridveil.grid.opf.engine import Solutions
    from gridveil.grid.opf.formulation import Model

Floats = NDArray[np.float64]


class Parameter(ABC):
    """One parameter that can be private.

    Attributes
    ----------
    name
        What users call it.
    table, columns, unit
        Where its values are in a network, and their unit.
    slack
        What its Lipschitz cost may buy, or None if the cost itself is Lipschitz.
    why
        Why the cost moves no further than `steepness` says, for the statement.
    keep
        What of a solution its slope is computed from.
    alike
        Whether what entries have in common may be learned from noisy ones, and each be moved
        towards it. For costs that is not so: a dispatch takes the cheap units, whose costs would
        all be moved up.
    beside
        The parameter that it is a part of, or None: it may be private with that one alone, and a
        release that publishes the one in clear publishes both.
    summed, share
        What the sum of its entries is that a share of epsilon can buy, or None; and that share,
        if the owner names none.
    """

    name: str
    table: str
    columns: tuple[str, ...]
    unit: str = "MW"
    slack: Model | None
    why: str
    keep: tuple[str, ...]
    alike = True
    beside: str | None = None
    summed: str | None = None
    share = Fraction(0)

    @property
    def is_power(self) -> bool:
        """Whether its values are powers, which are counted in one unit with all others."""
        return self.unit in ("MW", "Mvar")

    def weights(self, public: PublicNetwork) -> Floats:
        """Public weights of the entries in their sum, the largest 1."""
        return np.ones(public.parts[self.name].stop - public.parts[self.name].start)

    @abstractmethod
    def factors(self, models: Population) -> Sequence[Floats | None]:
        """The public multipliers of the models, one array per column of the parameter."""

    @abstractmethod
    def slopes(self, solutions: Solutions) -> Sequence[Floats]:
        """What one more unit of a model's own values adds to its cost, one array per column."""

    def slope(self, solutions: Solutions, models: Population, public: PublicNetwork) -> Floats:
        """How the cost of every model changes with the private entries: ``(models, entries)``."""
        found = []
        given = zip(self.columns, self.slopes(solutions), self.factors(models), strict=True)
        for column, slope, factor in given:
            scaled = slope if factor is None else slope * factor
            found.append(np.nan_to_num(scaled[:, public.support[column]]))
        return np.concatenate(found, axis=1)

    def steepness(self, public: PublicNetwork, models: Population, price: Fraction) -> Fraction:
        """How far a model's cost moves at most with one unit of one entry ($/h)."""
        return price * self.largest_factor(public, models)

    def largest_factor(self, public: PublicNetwork, models: Population) -> Fraction:
        """The largest multiplier of an entry in any model; 1 if there are none."""
        largest = 0.0
        for column, factor in zip(self.columns, self.factors(models), strict=True):
            mask = public.support[column]
            if mask.any():
                largest = max(largest, 1.0 if factor is None else float(factor[:, mask].max()))
        return Fraction(largest)

    def monotone(self, public: PublicNetwork, models: Population) -> bool:
        """Whether one entry's move shifts the costs of all models the same way."""
        return True


class Capacity(Parameter):
    """Line capacities (MW): what the paper's TCO releases."""

    name = "capacity"
    table = "branches"
    columns = ("capacity",)
    slack = "relaxed"
    why = "capacity can be bought at the price, so a cost moves by at most price x alpha"
    keep = ("line_price",)

    def factors(self, models: Population) -> Sequence[Floats | None]:
        """The models' multipliers of capacities."""
        return (models.capacity,)

    def slopes(self, solutions: Solutions) -> Sequence[Floats]:
        """More capacity saves the price of the line."""
        return (-_kept(solutions.line_price),)


class Load(Parameter):
    """Loads (MW): what the published ELO releases."""

    name = "load"
    table = "buses"
    columns = ("load",)
    slack = "shed"
    why = (
        "load can be shed and power spilled at the price, so a cost moves by at most price x alpha"
    )
    keep = ("nodal_price",)
    summed = "the total load"
    share = Fraction(2, 5)

    def factors(self, models: Population) -> Sequence[Floats | None]:
        """The models' multipliers of loads."""
        return (models.load,)

    def slopes(self, solutions: Solutions) -> Sequence[Floats]:
        """More load costs the price of its bus."""
        return (_kept(solutions.nodal_price),)

    def monotone(self, public: PublicNetwork, models: Population) -> bool:
        """Prices can be below zero in some models and above in others."""
        return False


class ReactiveLoad(Parameter):
    """Reactive loads (Mvar), beside the active ones; only AC power flow knows them."""

    name = "reactive_load"
    table = "buses"
    columns = ("reactive_load",)
    unit = "Mvar"
    slack = None
    why = "a cost in DC does not depend on reactive loads"
    keep = ()
    beside = "load"

    def factors(self, models: Population) -> Sequence[Floats | None]:
        """The models' multipliers of loads, which are those of active and of reactive power."""
        return (models.load,)

    def slopes(self, solutions: Solutions) -> Sequence[Floats]:
        """More reactive load costs the price of its bus in AC, and nothing in DC."""
        found = solutions.reactive_price
        return (np.zeros((len(solutions), 1)) if found is None else found,)

    def steepness(self, public: PublicNetwork, models: Population, price: Fraction) -> Fraction:
        """None: what it does not depend on does not move."""
        return Fraction(0)


class GeneratorLimit(Parameter):
    """Lower and upper limits of generators (MW)."""

    name = "generator_limit"
    table = "generators"
    columns = ("p_min", "p_max")
    slack = "limits"
    why = "room beyond a limit can be bought at the price, so a cost moves by at most price x alpha"
    keep = ("limit_price",)

    def factors(self, models: Population) -> Sequence[Floats | None]:
        """The models' multipliers of lower and upper limits."""
        return (models.p_min, models.p_max)

    def slopes(self, solutions: Solutions) -> Sequence[Floats]:
        """A higher lower limit costs, a higher upper limit saves."""
        return (_kept(solutions.p_min_price), -_kept(solutions.p_max_price))


class Cost(Parameter):
    """Linear costs of generators ($/MWh)."""

    name = "cost"
    table = "generators"
    columns = ("linear",)
    unit = "$/MWh"
    slack = None
    why = "a cost moves by at most alpha x the largest output, which is public"
    keep = ("dispatch",)
    alike = False
    summed = "the cost of all units at full output"
    share = Fraction(11, 20)

    def weights(self, public: PublicNetwork) -> Floats:
        """The largest outputs of the units, where those are public."""
        if "generator_limit" in public.parameters:
            return super().weights(public)
        units: Any = public.generators
        most = np.maximum(np.abs(units.p_min), np.abs(units.p_max))[public.support["linear"]]
        return most / most.max() if most.max(initial=0.0) > 0 else super().weights(public)

    def factors(self, models: Population) -> Sequence[Floats | None]:
        """The models' multipliers of costs."""
        return (models.cost_factor,)

    def slopes(self, solutions: Solutions) -> Sequence[Floats]:
        """A higher cost is paid on the output."""
        return (_kept(solutions.dispatch),)

    def steepness(self, public: PublicNetwork, models: Population, price: Fraction) -> Fraction:
        """The largest output of a unit in any model, times the largest factor of its cost."""
        least, most = _outputs(public, models)
        mask = public.support["linear"]
        output = np.maximum(np.abs(least), np.abs(most))[:, mask]
        factor = 1.0 if models.cost_factor is None else models.cost_factor[:, mask]
        largest = float((output * factor).max(initial=0.0))
        # One product of floats is below its true value by less than one step.
        return Fraction(float(np.nextafter(largest, np.inf)))

    def monotone(self, public: PublicNetwork, models: Population) -> bool:
        """A unit that only produces, or only consumes, moves every cost the same way."""
        least, most = _outputs(public, models)
        return bool(((least >= 0).all(0) | (most <= 0).all(0)).all())


PARAMETERS: dict[str, Parameter] = {
    kind.name: kind for kind in (Capacity(), Load(), GeneratorLimit(), Cost(), ReactiveLoad())
}
"""The parameters that can be private, by name."""


def check_parameter(parameter: str) -> str:
    """The parameter, if it is one that can be private."""
    if not isinstance(parameter, str) or parameter not in PARAMETERS:
        raise InputError(
            f"{_shown(parameter)} is not a parameter that can be private.",
            remedy=f"Use one of {', '.join(PARAMETERS)}.",
        )
    return parameter


def _shown(given: object) -> str:
    # Only texts are quoted: anything else may hold private values, given by mistake.
    return repr(given) if isinstance(given, str) else f"An object of type {type(given).__name__}"


def check_parameters(given: str | Sequence[str]) -> tuple[str, ...]:
    """The parameters that a name, a text with commas or a sequence of names stands for.

    They come in the order of `PARAMETERS`, whatever order was given.

    Raises
    ------
    InputError
        If one is unknown or named twice, there is none, or a part is private without its whole.
    """
    if isinstance(given, str):
        given = [name.strip() for name in given.split(",")]
    if not isinstance(given, Sequence) or not given:
        raise InputError(
            f"{_shown(given)} names no parameter that can be private.",
            remedy=f"Use one or more of {', '.join(PARAMETERS)}.",
        )
    names = [check_parameter(name) for name in given]
    if len(set(names)) < len(names):
        raise InputError(
            f"A parameter is named twice in {', '.join(names)}.", remedy="Name each one once."
        )
    for name in names:
        whole = PARAMETERS[name].beside
        if whole is not None and whole not in names:
            raise InputError(
                f"{name} is private only beside {whole}: either tells about the other.",
                remedy=f"Give both: {whole},{name}.",
            )
    return tuple(name for name in PARAMETERS if name in names)


def public_beside(private: Iterable[str]) -> list[str]:
    """What is published in clear if these parameters are private; parts go with their wholes.

    >>> public_beside(["load", "reactive_load"])
    ['capacity', 'generator_limit', 'cost']
    """
    hidden = set(private)
    return [name for name, one in PARAMETERS.items() if one.beside is None and name not in hidden]


def summed_of(kinds: Iterable[Parameter]) -> Parameter | None:
    """The first of some parameters of which a sum can be bought."""
    return next((kind for kind in kinds if kind.summed is not None), None)


def _outputs(public: PublicNetwork, models: Population) -> tuple[Floats, Floats]:
    """Public limits of every unit's output in every model."""
    units: Any = public.generators
    least, most = np.atleast_2d(units.p_min), np.atleast_2d(units.p_max)
    least = least if models.p_min is None else least * models.p_min
    most = most if models.p_max is None else most * models.p_max
    return np.where(units.in_service, least, 0.0), np.where(units.in_service, most, 0.0)


def _kept(values: Floats | None) -> Floats:
    assert values is not None
    return values
