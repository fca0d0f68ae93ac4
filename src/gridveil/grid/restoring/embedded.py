"""The convex problem of `matching` for capacities in one linear programme, models and all.

With capacities as the only private values and linear costs, a model's own dispatch can stand in the
programme: ``cost of the dispatch <= goal + miss`` is then the convex term, exactly, and every
solution serves the models. Rows of lines enter where they are broken. The concave term is a plane,
as in `matching`, and changes from step to step; all else stays warm.
"""

from __future__ import annotations

import highspy
import numpy as np
from numpy.typing import NDArray

from gridveil.grid.restoring.bilevel import LowerModel
from gridveil.grid.restoring.master import TIGHT, Unsolved

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Rows enter where they are broken by more than this (MW): a hundredth of what the engine takes for
# a model that is not served.
_BROKEN = 1e-9
_AT_ONCE = 20


class Embedded:
    """The least of distances and misses over capacities and the models' dispatches.

    Parameters
    ----------
    models
        The numbers of every model.
    goals
        What their costs should be.
    start
        Where distances are measured from.
    low, high
        The public box.
    known
        For every model, rows that were needed before; added to as more are.
    """

    def __init__(
        self,
        models: list[LowerModel],
        goals: Floats,
        start: Floats,
        low: Floats,
        high: Floats,
        known: list[set[int]],
    ) -> None:
        self._models, self._goals, self._start, self._known = models, goals, start, known
        self._low, self._high = low, high
        n, terms = len(start), len(models)
        self._n, self._below = n, 0
        self._x = 2 * n + terms + np.concatenate([[0], np.cumsum([len(m.lin) for m in models])])
        self._highs = highspy.Highs()  # type: ignore[no-untyped-call]
        options: dict[str, bool | int | float | str] = {
            "output_flag": False,
            "threads": 1,
            "presolve": "off",
            "primal_feasibility_tolerance": TIGHT,
            "dual_feasibility_tolerance": TIGHT,
        }
        for name, value in options.items():
            self._highs.setOptionValue(name, value)
        self._up = np.maximum(low - start, 0.0), np.maximum(high - start, 0.0)
        self._down = np.maximum(start - high, 0.0), np.maximum(start - low, 0.0)
        self._highs.addVars(
            int(self._x[-1]),
            np.concatenate([self._up[0], self._down[0], np.zeros(terms), *(m.low for m in models)]),
            np.concatenate(
                [self._up[1], self._down[1], np.full(terms, np.inf), *(m.high for m in models)]
            ),
        )
        paid = np.arange(2 * n + terms, dtype=np.int32)
        self._highs.changeColsCost(len(paid), paid, np.ones(len(paid)))
        self._rows = 0
        for t, model in enumerate(models):
            self._add_model(t, model)

    def solve(self, plane: tuple[Floats, Floats, Floats] | None) -> tuple[Floats, float]:
        """The best capacities and the least sum, with costs below their goals at a plane.

        Parameters
        ----------
        plane
            Values, costs and slopes at a point; None to leave the concave term out.
        """
        self._turn(plane)
        while True:
            x = self._run()
            phi = self._phi(x)
            if not self._add_broken(x, phi):
                return phi, float(self._highs.getInfo().objective_function_value)

    def hold(self, lines: Ints, ends: Floats) -> None:
        """Keep some capacities at or below these ends, and let all others go."""
        least_up, most_up = self._up
        least_down, most_down = (end.copy() for end in self._down)
        most_up, least_up = most_up.copy(), least_up.copy()
        most_up[lines] = np.maximum(ends - self._start[lines], 0.0)
        least_up[lines] = np.minimum(least_up[lines], most_up[lines])
        least_down[lines] = np.maximum(self._start[lines] - ends, least_down[lines])
        places = np.arange(2 * self._n, dtype=np.int32)
        low, high = np.concatenate([least_up, least_down]), np.concatenate([most_up, most_down])
        self._highs.changeColsBounds(len(places), places, low, high)

    def dispatches(self) -> list[Floats]:
        """The models' dispatches in the last solution."""
        x = np.array(self._highs.getSolution().col_value)
        return [x[self._x[t] : self._x[t + 1]] for t in range(len(self._models))]

    def _run(self) -> Floats:
        for again in (False, True):
            if again:
                self._highs.clearSolver()
            self._highs.run()
            if self._highs.getModelStatus() == highspy.HighsModelStatus.kOptimal:
                return np.array(self._highs.getSolution().col_value)
        raise Unsolved("No values in the public range serve the chosen models.")

    def _phi(self, x: Floats) -> Floats:
        n = self._n
        return np.clip(self._start + x[:n] - x[n : 2 * n], self._low, self._high)

    def _add_model(self, t: int, model: LowerModel) -> None:
        at = np.arange(self._x[t], self._x[t + 1])
        for island, demand in enumerate(model.demand):
            own = at[model.island == island]
            self._add(own, np.ones(len(own)), float(demand), float(demand))
        places = np.append(at, 2 * self._n + t)
        most = float(self._goals[t]) - model.constant
        self._add(places, np.append(model.lin, -1.0), -np.inf, most)
        for row in sorted(self._known[t]):
            self._add_row(t, row)

    def _add_row(self, t: int, row: int) -> None:
        """A limit of a line: ``rows x <= room + factor (start + up - down)``."""
        model, line = self._models[t], int(self._models[t].line[row])
        at = np.arange(self._x[t], self._x[t + 1])
        factor = float(model.factor[row])
        places = np.concatenate([at, [line, self._n + line]])
        values = np.concatenate([model.rows[row], [-factor, factor]])
        limit = float(model.room[row] + factor * self._start[line])
        self._add(places, values, -np.inf, limit)

    def _add_broken(self, x: Floats, phi: Floats) -> bool:
        found = False
        for t, model in enumerate(self._models):
            over = model.rows @ x[self._x[t] : self._x[t + 1]] - model.limits(phi)
            over[list(self._known[t])] = -np.inf
            worst = np.argsort(-over, kind="stable")[:_AT_ONCE]
            for row in worst[over[worst] > _BROKEN].tolist():
                self._known[t].add(row)
                self._add_row(t, row)
                found = True
        return found

    def _turn(self, plane: tuple[Floats, Floats, Floats] | None) -> None:
        """Take other planes: the old ones are switched off, since rows can't move."""
        terms = len(self._models)
        if self._below:
            for row in range(self._below, self._below + terms):
                self._highs.changeRowBounds(row, -np.inf, np.inf)
        self._below = 0
        if plane is None:
            return
        values, costs, slopes = plane
        self._below = self._rows
        for t in range(terms):
            some = np.flatnonzero(slopes[t])
            places = np.concatenate([some, self._n + some, [2 * self._n + t]])
            slope = slopes[t, some]
            # miss >= goal - cost - slope (start + up - down - values)
            least = self._goals[t] - costs[t] - slopes[t] @ (self._start - values)
            self._add(places, np.concatenate([slope, -slope, [1.0]]), float(least), np.inf)

    def _add(self, places: NDArray[np.int64], values: Floats, low: float, high: float) -> None:
        self._highs.addRow(low, high, len(places), places.astype(np.int32), values)
        self._rows += 1
