"""What models do on a released network beside the real one, for the owner's evaluation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gridveil.errors import InputError
from gridveil.grid.model.network import Network
from gridveil.grid.model.population import Population
from gridveil.grid.opf.engine import Solutions, solve_population
from gridveil.grid.opf.outages import Contingencies

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_CONGESTED = 1e-4
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
        models that cost something; nan where none does.
    penalised
        In how many of them ``C^R`` holds penalties for broken limits.
    bias
        The same with its sign: above 0 where the released network is dearer.
    price_error
        Mean error of nodal prices, $/MWh, over the models that both networks serve; nan where
        there are none.
    missed, added
        Of the pairs of a model and a line that is congested in it on the real network, the share
        that is not on the released one, %; and the other way round. nan where there are no such
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
        was = _kept(real.line_price)[both] > _CONGESTED
        now = _kept(found.line_price)[both] > _CONGESTED
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
