"""What a release is about, from public data: private parameters, neighbours and models."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from gridveil.errors import InputError
from gridveil.grid.io import module_of
from gridveil.grid.model.alphas_by_class import by_class
from gridveil.grid.model.declarations import Declared
from gridveil.grid.model.network import Network
from gridveil.grid.model.parameters import PARAMETERS, Floats, Parameter, summed_of
from gridveil.grid.model.population import Population
from gridveil.grid.model.public_facts import public_facts
from gridveil.grid.model.public_network import PublicNetwork
from gridveil.privacy.adjacency import RELATIVE, Adjacency
from gridveil.privacy.exact_numbers import Exact
from gridveil.privacy.sealed import Range

if TYPE_CHECKING:
    from gridveil.grid.opf.engine import Solutions
    from gridveil.grid.opf.formulation import Model


class ReleaseProblem:
    """What a release asks about: some private parameters together, as one vector, without values.

    Parameters
    ----------
    public
        The network without them.
    models
        The population.
    price
        What the Lipschitz cost's slack is bought at, $/MWh.
    relative
        The parameters whose alpha is a share of each value, and not an amount.
    steps
        Of parameters whose steps differ by public class: the step of every entry.
    """

    def __init__(
        self,
        public: PublicNetwork,
        models: Population,
        price: Fraction,
        relative: Collection[str] = (),
        steps: Mapping[str, tuple[Fraction, ...]] | None = None,
    ) -> None:
        self.public = public
        self.models = models
        self.price = price
        self.relative = frozenset(relative)
        self.steps = dict(steps or {})
        self.kinds = tuple(PARAMETERS[name] for name in public.parameters)

    def in_units(self, unit: float) -> ReleaseProblem:
        """The same with powers counted in this unit (MW); see `scaled`."""
        public = self.public.in_units(unit)
        return ReleaseProblem(public, self.models, self.price, self.relative, self.steps)

    def with_models(self, models: Population) -> ReleaseProblem:
        """The same with other models."""
        return ReleaseProblem(self.public, models, self.price, self.relative, self.steps)

    def step_of_each(self, name: str, alpha: Fraction) -> tuple[Fraction, ...]:
        """How far every entry of a parameter may move: by alpha, or by the step of its class."""
        part = self.public.parts[name]
        return self.steps.get(name) or (alpha,) * (part.stop - part.start)

    def units(self, unit: float) -> Floats:
        """What every entry is counted in then: powers in the unit, costs in $/MWh as before."""
        found = np.ones(self.public.entries)
        for kind in self.kinds:
            if kind.is_power:
                found[self.public.parts[kind.name]] = unit
        return found

    @property
    def slack(self) -> tuple[Model, ...]:
        """The model of the Lipschitz cost."""
        return tuple(kind.slack for kind in self.kinds if kind.slack is not None) or ("strict",)

    @property
    def keep(self) -> tuple[str, ...]:
        """What of a solution the slopes are computed from."""
        return tuple(name for kind in self.kinds for name in kind.keep)

    @property
    def curvature(self) -> int:
        """1 if costs are convex in the private vector, -1 if they are concave, else 0."""
        names = set(self.public.parameters)
        return (-1 if names == {"cost"} else 0) if "cost" in names else 1

    @property
    def monotone(self) -> bool:
        """Whether a step to a neighbour moves the costs of all models the same way."""
        return all(kind.monotone(self.public, self.models) for kind in self.kinds)

    @property
    def summed(self) -> Parameter | None:
        """The parameter of which a sum can be bought."""
        return summed_of(self.kinds)

    def slope(self, solutions: Solutions, models: Population) -> Floats:
        """How the costs change with the private entries: ``(models, entries)``."""
        return np.concatenate(
            [kind.slope(solutions, models, self.public) for kind in self.kinds], axis=1
        )

    def steepness(self, kind: Parameter) -> Fraction:
        """How far a cost moves at most with one unit of one entry of a parameter."""
        return kind.steepness(self.public, self.models, self.price)

    def check_cost_query(self) -> None:
        """Raise `InputError` if no bound on a cost's move is proved for these parameters."""
        if {"cost", "generator_limit"} <= set(self.public.parameters):
            raise InputError(
                "If costs and generator limits are private together, no bound on a cost is "
                "known, so that no cost can be asked for.",
                remedy='Use method="certified", which asks for none.',
            )


def with_linear_costs(network: Network, parameters: Collection[str], declared: Declared) -> Network:
    """The network with linear costs of the units whose costs are private.

    A curve becomes its mean slope between a unit's limits. If these are private too, one limit
    that moves would move a cost with it: two entries, where neighbours differ in one. Then a
    polynomial becomes its linear coefficient, and piecewise-linear costs are refused: that a cost
    is piecewise linear is public, and that a quadratic term is not 0 is private.
    """
    if "cost" not in parameters:
        return network
    limits, private = "generator_limit" in parameters, declared.chosen(network, "cost")
    if limits and any(network.generators.points[unit] is not None for unit in private.nonzero()[0]):
        raise InputError(
            "Costs and generator limits are private together, and this network has "
            "piecewise-linear costs, whose breakpoints are limits in most cases.",
            remedy="Give a network with polynomial costs.",
        )
    return network.linearised(private_limits=limits, which=private)


def neighbours(
    public: PublicNetwork, alpha: Exact | Mapping[str, Any], *, published: bool
) -> list[Adjacency]:
    """Who counts as a neighbour, for each private parameter.

    Alpha is one step for all, one for each parameter, or for a parameter one for each public class
    of its entries (see `alphas_by_class`).
    """
    given = _by_parameter(public, alpha)
    found = []
    for name in public.parameters:
        step = given[name]
        part = public.parts[name]
        low, high = public.low[part], public.high[part]
        ends = Range(float(low.min()), float(high.max())) if len(low) else public.ranges[name]
        some = list(step.values()) if isinstance(step, Mapping) else [step]
        relative = any(str(one).strip().endswith("%") for one in some)
        if relative:
            _check_share(public, name, published=published)
        also = " (total published; two move, one up and one down)"
        how = {
            "parameter": name + (also if published and name == "load" else ""),
            "unit": RELATIVE if relative else PARAMETERS[name].unit,
            "range": ends,
            "entries": part.stop - part.start,
            "key": name,
            "groups": _groups(public, name),
        }
        if isinstance(step, Mapping):
            found.append(by_class(public, name, step, how))
        else:
            found.append(Adjacency.of(alpha=step, **how))
    return found


def _by_parameter(public: PublicNetwork, alpha: Exact | Mapping[str, Any]) -> dict[str, Any]:
    """What was given for each private parameter."""
    names = public.parameters
    if isinstance(alpha, Mapping) and not set(alpha) & set(PARAMETERS) and len(names) == 1:
        return {names[0]: alpha}
    if isinstance(alpha, Mapping):
        if set(alpha) != set(names):
            raise InputError(
                f"alpha was given for {', '.join(map(str, alpha)) or 'nothing'}, but the private "
                f"parameters are {', '.join(names)}.",
                remedy="Give an alpha for each private parameter.",
            )
        return dict(alpha)
    units = {name: PARAMETERS[name].unit for name in names}
    if len(set(units.values())) > 1:
        said = ", ".join(f"{name} in {unit}" for name, unit in units.items())
        typed = ",".join(f"{name}=..." for name in names)
        written = ", ".join(f'"{name}": ...' for name in names)
        raise InputError(
            f"The private parameters have different units ({said}), and there is one alpha.",
            remedy=f"Give one for each: --alpha {typed} (alpha={{{written}}}).",
        )
    return dict.fromkeys(names, alpha)


def _groups(public: PublicNetwork, name: str) -> dict[str, int]:
    """What owners ask about as a whole: a substation or a power station, and a voltage level.

    Sizes of the largest ones, from the public support. Without names, in which some people write
    ratings.
    """
    kind = PARAMETERS[name]
    own: Any = getattr(public, kind.table)
    entries = np.sum([public.support[column] for column in kind.columns], axis=0, dtype=np.int64)
    found = {}
    if kind.table == "branches":
        ends = np.bincount(own.from_bus, entries), np.bincount(own.to_bus, entries)
        at = np.zeros(len(public.buses))
        for one in ends:
            at[: len(one)] += one
        found["the substation with the most lines"] = int(at.max(initial=0))
    elif kind.table == "generators":
        found["the largest power station"] = int(np.bincount(own.bus, entries).max(initial=0))
    voltage = public_facts(public, kind.table).get("voltage")
    if voltage is not None:
        levels, place = np.unique(np.asarray(voltage, dtype=np.float64), return_inverse=True)
        counts = np.bincount(place, entries)
        most = int(counts.argmax())
        found[f"the {levels[most]:g} kV level"] = int(counts[most])
    total = int(entries.sum())
    smaller = {words: count for words, count in found.items() if 1 < count < total}
    return {**smaller, "the whole network": total} if total > 1 else {}


def _check_share(public: PublicNetwork, name: str, *, published: bool) -> None:
    """Raise `InputError` if steps of this parameter can't be shares of its values."""
    unit = PARAMETERS[name].unit
    if unit != "MW":
        raise InputError(
            f"alpha of {name} can't be a share of each value.",
            remedy=f"Give an amount in {unit}: alpha=1, for example.",
        )
    if published:
        raise InputError(
            "The total load is public, so two loads move by the same amount: that is not a share "
            "of each.",
            remedy="Give alpha in MW, or leave published_total out.",
        )
    if (public.signs[public.parts[name]] < 0).any():
        raise InputError(
            f"alpha of {name} is a share of each value, and some values are below 0.",
            remedy="Give alpha in MW.",
        )


def check_generation(problem: ReleaseProblem) -> None:
    """Raise `InputError` if no values in the public range can serve any model.

    It asks the ends of the range, never the values: a refusal tells nothing about them.
    """
    public, models = problem.public, problem.models
    low, high = public.with_values(public.low), public.with_values(public.high)
    if models.hopeless(low, high).all():
        raise InputError(
            "No model can be served: generation can't match the load, wherever in their public "
            "range the private values are.",
            remedy="Check the units of the case (MW), and the range.",
        )


def highest_cost(public: PublicNetwork, models: Population) -> float:
    """The highest marginal cost ($/MWh) of any unit in any model, from public data alone.

    If costs are private it is the upper end of their range. If generator limits are, quadratic
    costs count up to the end of that range.
    """
    units: Any = public.generators
    if models.cost is not None:
        return float(models.cost[:, units.in_service].max(initial=0.0))
    if "generator_limit" in public.parameters:
        most = np.maximum(public.rest("p_max"), float(public.ranges["generator_limit"].high))
    else:
        most = units.p_max if models.p_max is None else units.p_max * models.p_max.max(0)
    curved, slope = units.quadratic != 0, public.rest("linear").copy()
    slope[curved] += 2 * (units.quadratic * np.maximum(most, 0.0))[curved]
    for place, points in enumerate(units.points):
        if points is not None:
            steps = np.diff(points, axis=0)
            slope[place] = (steps[:, 1] / steps[:, 0]).max()
    if "cost" in public.parameters:
        slope = np.maximum(slope, float(public.ranges["cost"].high))
    factor = 1.0 if models.cost_factor is None else models.cost_factor.max(0)
    return float((slope * factor)[units.in_service].max(initial=0.0))


def check_writable(public: PublicNetwork) -> None:
    """Put public numbers in place of the private ones and make the released file of that.

    What can't be written must be known before anything is charged.
    """
    if public.source is None:
        return  # a file that is written from the model alone
    low, high = public.low, public.high
    values = (low + high) / 2
    if "generator_limit" in public.parts:
        part = public.parts["generator_limit"]
        upper = part.start + int(public.support["p_min"].sum())
        values[part.start : upper] = low[part.start : upper]
        values[upper : part.stop] = high[upper : part.stop]
    module_of(public.source.kind).write_release(public.with_values(values), None, public.parameters)
