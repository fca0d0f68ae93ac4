"""The two levels as one model of SCIP: the relaxation, prices below, and complementarity.

Each limit of a model with its price is a special ordered set of type 1, in which only one may
differ from zero. So prices need no bound, which a binary would (see `paper_exact`).
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridveil.grid.restoration.paper_exact import Branching, Found
from gridveil.grid.restoration.paper_relaxation import End, LowerSolver, Relaxation

Floats = NDArray[np.float64]

TOLERANCE = 1e-8
# Entries of the PTDF below this are rounding.
NEGLIGIBLE = 1e-12


def search_by_scip(branching: Branching, found: Found, left: Callable[[], float]) -> Found:
    """As `Branching.search`, by SCIP."""
    given = branching.relaxation, branching.below, found, branching.tolerance
    return solve_by_scip(*given, left())


def solve_by_scip(
    relaxation: Relaxation,
    below: list[LowerSolver],
    warm: Found,
    tolerance: float,
    time_limit: float,
) -> Found:
    """Solve from a point that is there already, which is kept if nothing is better."""
    whole = Complementarity(relaxation, below)
    whole.begin(warm.phi)
    found, bound = whole.solve(tolerance, time_limit)
    best = warm
    for phi in found:
        costs = np.array([solver.solve(phi).cost for solver in below])
        objective = relaxation.problem.objective(phi, costs)
        if objective < best.objective:
            best = Found(phi, objective, warm.bound)
    if bound - best.objective > tolerance * max(1.0, abs(best.objective)):
        # A bound above what was found is wrong, so it proves nothing.
        return best
    return Found(best.phi, best.objective, min(max(bound, warm.bound), best.objective))


class Complementarity:
    """The model in SCIP; every variable has its place in one vector of values."""

    def __init__(self, relaxation: Relaxation, below: list[LowerSolver]) -> None:
        self._relaxation, self._below = relaxation, below
        self._module = import_module("pyscipopt")
        self._scip = self._module.Model()
        self._scip.hideOutput()
        self._z = self._variables(relaxation.low, relaxation.high)
        self._gaps: dict[int, list[Any]] = {}
        self._prices: dict[int, list[Any]] = {}
        self._balance: dict[int, list[Any]] = {}
        self._rows()
        for t in np.flatnonzero(relaxation.hard).tolist():
            self._conditions(t)
        self._scip.setObjective(self._sum(relaxation.cost, self._z))

    def begin(self, phi: Floats) -> bool:
        """Hand over capacities with optimal dispatches and prices; says whether SCIP took them."""
        problem, scip = self._relaxation.problem, self._scip
        lowest = [solver.solve(phi) for solver in self._below]
        if any(found.end is not End.SOLVED for found in lowest):
            return False
        moved = phi - problem.start
        off = np.abs(problem.goal - np.array([found.cost for found in lowest]))
        z = np.concatenate(
            [np.maximum(moved, 0), np.maximum(-moved, 0), off, *(found.x for found in lowest)]
        )
        pairs = list(zip(self._z, z, strict=True))
        for t, gaps in self._gaps.items():
            found = lowest[t]
            pairs += zip(gaps, self._below[t].gaps(phi, found.x), strict=True)
            pairs += zip(self._prices[t], found.prices, strict=True)
            pairs += zip(self._balance[t], found.balance, strict=True)
        start = scip.createSol()
        for variable, value in pairs:
            scip.setSolVal(start, variable, float(value))
        return bool(scip.addSol(start))

    def solve(self, tolerance: float, time_limit: float) -> tuple[list[Floats], float]:
        """Solve it: capacities (none where none were found in time), and the bound."""
        settings: dict[str, bool | int | float] = {
            # Dual reductions cut optima of such models off (seen in SCIP 10.0 with presolving).
            "misc/allowstrongdualreds": False,
            "misc/allowweakdualreds": False,
            "presolving/maxrounds": 0,
            "limits/gap": tolerance / 2,
            "numerics/feastol": TOLERANCE,
            "numerics/dualfeastol": TOLERANCE,
            "lp/threads": 1,
        }
        if np.isfinite(time_limit):
            settings["limits/time"] = max(time_limit, 0.0)
        self._scip.setParams(settings)
        self._scip.optimize()
        found = []
        if self._scip.getNSols() > 0:
            best = self._scip.getBestSol()
            z = np.array([self._scip.getSolVal(best, variable) for variable in self._z])
            found.append(self._relaxation.phi(z))
        bound = float(self._scip.getDualbound())
        return found, bound if abs(bound) < self._scip.infinity() else -np.inf

    def _variables(self, low: Floats, high: Floats) -> list[Any]:
        ends = zip(low.tolist(), high.tolist(), strict=True)
        return [
            self._scip.addVar(lb=None if a == -np.inf else a, ub=None if b == np.inf else b)
            for a, b in ends
        ]

    def _sum(self, values: Floats, variables: list[Any]) -> Any:
        kept = np.flatnonzero(np.abs(values) > NEGLIGIBLE)
        return self._module.quicksum(float(values[k]) * variables[k] for k in kept)

    def _rows(self) -> None:
        """All rows of the relaxation."""
        given = self._relaxation
        table = given.table.toarray()
        for row, low, high in zip(table, given.row_low, given.row_high, strict=True):
            left = self._sum(row, self._z)
            if low == high:
                self._scip.addCons(left == float(low))
            elif np.isfinite(low):
                self._scip.addCons(left >= float(low))
            else:
                self._scip.addCons(left <= float(high))

    def _conditions(self, t: int) -> None:
        """Prices that explain the costs of one model, each with its limit in a set."""
        solver, given = self._below[t], self._relaxation
        model, count = solver.model, solver.count
        none, ever = np.zeros(count), np.full(count, np.inf)
        gaps, prices = self._variables(none, ever), self._variables(none, ever)
        free = np.full(len(model.demand), np.inf)
        balance = self._variables(-free, free)
        at, here = given.columns_of(t), given.rows_of(t)
        rows, width = len(model.rows), len(model.lin)
        x = self._z[at]
        table = given.table[[*range(here.start, here.stop)]].toarray()
        for k in range(rows):
            limit = float(given.row_high[here.start + k])
            self._scip.addCons(self._sum(table[k], self._z) + gaps[k] == limit)
        for j in range(width):
            bottom, top = rows + j, rows + width + j
            self._scip.addCons(x[j] - gaps[bottom] == float(model.low[j]))
            self._scip.addCons(x[j] + gaps[top] == float(model.high[j]))
            price = balance[model.island[j]] - self._sum(model.rows[:, j], prices[:rows])
            self._scip.addCons(price + prices[bottom] - prices[top] == float(model.lin[j]))
        for gap, price in zip(gaps, prices, strict=True):
            self._scip.addConsSOS1([gap, price])
        self._gaps[t], self._prices[t], self._balance[t] = gaps, prices, balance
