"""What models do on a released network beside the real one and beside controls, in DC and in AC.

For the owner's evaluation: what is found here depends on private values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridveil.errors import InputError
from gridveil.grid.model.declarations import Declared
from gridveil.grid.model.network import Network
from gridveil.grid.model.parameters import PARAMETERS
from gridveil.grid.model.population import Population
from gridveil.grid.opf.ac.engine import AcStatus, solve_ac
from gridveil.grid.opf.engine import Solutions, solve_population
from gridveil.grid.opf.outages import Contingencies

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_PAID = 1e-6


@dataclass(frozen=True)
class ModelErrors:
    """What some models do on the released network, beside the real one.

    Parameters
    ----------
    size
        How many there are.
    models
        How many have a solution on the real network: those are compared.
    infeasible
        The share of them without one on the released network, %.
    cost_error
        The paper's ``Delta C``: mean of ``|C(real) - C^R(released)| / C(real)``, %, over the
        models that cost something; nan if none does.
    penalised
        In how many of them ``C^R`` holds penalties for broken limits.
    bias
        The same with its sign: above 0 if the released network is dearer.
    price_error
        Mean error of nodal prices, $/MWh, over the models that both networks serve; nan if
        there are none.
    missed, added
        Of the pairs of a model and a line that is congested in it on the real network, the share
        that is not on the released one, %; and the other way round. nan if there are no such
        pairs.
    """

    size: int
    models: int
    infeasible: float
    cost_error: float
    penalised: int
    bias: float
    price_error: float
    missed: float
    added: float


class Reference:
    """The real network's answers to a population, computed once for all releases.

    Parameters
    ----------
    network
        The real network.
    models
        Models to compare on; those without a solution on the real network are left out.
    contingencies
        Outages that every dispatch must survive, here and on released networks. It may be that the
        real network does so in no model.
    """

    def __init__(
        self, network: Network, models: Population, contingencies: Contingencies | None = None
    ) -> None:
        self.models = models
        self._outages = contingencies
        self._found = self._solve(network)
        self.served: Bools = np.isfinite(self._found.cost)
        if not self.served.any() and contingencies is None:
            raise InputError(
                "No model of the population has a solution on the real network.",
                remedy="Compare on other models: --unseen FILE.",
            )

    def errors(self, released: Network, *, penalty: float, adequate: bool = True) -> ModelErrors:
        """How far a released network's answers are from them."""
        ok, real = self.served, self._found
        found = self._solve(released)
        relaxed = solve_population(
            released,
            self.models,
            model="relaxed" if adequate else ("relaxed", "shed"),
            slack_price=penalty,
            contingencies=self._outages,
        )
        priced = ok & (real.cost != 0)
        change = (relaxed.cost - real.cost)[priced] / np.abs(real.cost[priced])
        both = ok & np.isfinite(found.cost)
        prices = np.abs(_kept(found.nodal_price)[both] - _kept(real.nodal_price)[both])
        was, now = real.congested[both], found.congested[both]
        # A penalty was paid where breaking limits is cheaper than keeping them.
        penalised = ok & (found.cost > relaxed.cost + _PAID * np.abs(relaxed.cost))
        return ModelErrors(
            size=self.models.size,
            models=int(ok.sum()),
            infeasible=100 * _mean(np.isinf(found.cost[ok])),
            cost_error=100 * _mean(np.abs(change)),
            penalised=int(penalised.sum()),
            bias=100 * _mean(change),
            price_error=_mean(prices[np.isfinite(prices)]),
            missed=_share(was & ~now, was),
            added=_share(now & ~was, now),
        )

    def _solve(self, network: Network) -> Solutions:
        keep = ("cost", "line_price", "nodal_price")
        return solve_population(network, self.models, keep=keep, contingencies=self._outages)


def _mean(values: Floats | Bools) -> float:
    return float(values.mean()) if values.size else float("nan")


def _share(part: Bools, whole: Bools) -> float:
    return 100 * float(part.sum() / whole.sum()) if whole.any() else float("nan")


def _kept(values: Floats | None) -> Floats:
    assert values is not None
    return values


@dataclass(frozen=True)
class AcErrors:
    """What some models do in AC on the released network, beside the real one.

    Parameters
    ----------
    models
        How many the real network serves: those are compared.
    not_served
        The share of them that the released network does not serve, %.
    unknown
        How many of them nothing is known of on the released network.
    cost_error
        Mean of ``|C(real) - C(released)| / C(real)``, %, over models that both serve.
    voltage_error
        Mean error of voltages over buses and these models, per unit.
    loss_error
        Mean error of losses, % of the real ones.
    """

    models: int
    not_served: float
    unknown: int
    cost_error: float
    voltage_error: float
    loss_error: float

    def to_json(self) -> dict[str, Any]:
        """The figures as JSON can hold them: None if there is none."""
        return {name: value if np.isfinite(value) else None for name, value in vars(self).items()}


def ac_errors(
    real: Network,
    released: Network,
    models: Population,
    contingencies: Contingencies | None = None,
) -> AcErrors:
    """Solve models on both networks, and compare; with outages, dispatches that survive them."""
    ours, theirs = (
        solve_ac(network, models, contingencies=contingencies) for network in (real, released)
    )
    compared, both = ours.served, ours.served & theirs.served
    return AcErrors(
        int(compared.sum()),
        100 * _mean_of_known(~theirs.served[compared]),
        int((theirs.status[compared] == AcStatus.UNKNOWN).sum()),
        100 * _mean_of_known(np.abs(_ratio(theirs.cost[both], ours.cost[both]))),
        _mean_of_known(np.abs(theirs.voltage - ours.voltage)[both]),
        100 * _mean_of_known(np.abs(_ratio(theirs.losses[both], ours.losses[both]))),
    )


def _ratio(new: Any, old: Any) -> Any:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(old != 0, new / old - 1, np.nan)


def _mean_of_known(values: Any) -> float:
    known = np.asarray(values, dtype=np.float64)
    known = known[np.isfinite(known)]
    return float(known.mean()) if known.size else float("nan")


def unlimited(network: Network, lines: Bools | None = None) -> Network:
    """The network without limits: of any line, or of some."""
    some = np.ones(len(network.branches), dtype=bool) if lines is None else lines
    return network.with_capacity(np.where(some, np.inf, network.branches.capacity))


def controls(
    released: Network, real: Network, parameters: Sequence[str], declared: Declared
) -> Iterator[tuple[str, Network]]:
    """Networks to measure a release against: those that need no value of a single entry.

    Without limits, where capacities are private; and with every private entry at the mean of the
    released ones of its kind and sign.
    """
    if "capacity" in parameters:
        hidden = declared.support(real, "capacity")["capacity"]
        yield "no limits", unlimited(released, hidden)
    flat = released
    for name in parameters:
        table = PARAMETERS[name].table
        filled: dict[str, Any] = {}
        for column, mask in declared.support(real, name).items():
            values = getattr(getattr(released, table), column).copy()
            ours = getattr(getattr(real, table), column)
            for some in (mask & (ours > 0), mask & (ours < 0)):
                values[some] = values[some].mean() if some.any() else 0.0
            filled[column] = values
        flat = replace(flat, **{table: replace(getattr(flat, table), **filled)})
    yield "all at mean", flat
