"""The linear programme of `matching`, which stays in HiGHS and is given more rows.

Columns are the values ``x``, their distances ``u`` from the start and the misses ``r`` of the
terms. Rows are ``|x - start| <= u``, cuts, and planes ``r >= cost - goal`` and
``r >= goal - cost``.
"""

from __future__ import annotations

import highspy
import numpy as np
from numpy.typing import NDArray

from gridveil.grid.restoring.master import TIGHT, Unsolved

Floats = NDArray[np.float64]

_NEGLIGIBLE = 1e-11


class Programme:
    """The least of all distances and misses; every row that is added stays, but for `below`."""

    def __init__(self, start: Floats, goals: Floats, low: Floats, high: Floats) -> None:
        self._low, self._high, self._goals = low, high, goals
        self._n, self._terms = len(start), len(goals)
        self._below = 0
        n, size = self._n, 2 * self._n + self._terms
        solver = highspy.Highs()  # type: ignore[no-untyped-call]
        solver.setOptionValue("output_flag", False)
        solver.setOptionValue("threads", 1)
        solver.setOptionValue("presolve", "off")
        for tolerance in ("primal_feasibility_tolerance", "dual_feasibility_tolerance"):
            solver.setOptionValue(tolerance, TIGHT)
        solver.addVars(
            size,
            np.concatenate([low, np.zeros(n + self._terms)]),
            np.concatenate([high, np.full(n + self._terms, highspy.kHighsInf)]),
        )
        places = np.arange(n, size, dtype=np.int32)
        solver.changeColsCost(len(places), places, np.ones(len(places)))
        self._solver = solver
        for k in range(n):
            pair = np.array([k, n + k], dtype=np.int32)
            solver.addRow(-highspy.kHighsInf, start[k], 2, pair, np.array([1.0, -1.0]))
            solver.addRow(-highspy.kHighsInf, -start[k], 2, pair, np.array([-1.0, -1.0]))
        self._rows = 2 * n

    def cut(self, slope: Floats, bound: float) -> None:
        """``slope @ x <= bound``."""
        self._add(slope, bound, None)

    def above(self, term: int, slope: Floats, constant: float) -> None:
        """The cost of a term is at least ``constant + slope @ x``."""
        self._add(slope, float(self._goals[term]) - constant, term)

    def below(self, plane: tuple[Floats, Floats, Floats] | None) -> None:
        """Take every cost to be its plane at a point (values, costs, slopes), where it is low."""
        if self._below:
            # Rows that came later would move: the planes are switched off, and new ones added.
            for row in range(self._below, self._below + self._terms):
                self._solver.changeRowBounds(row, -highspy.kHighsInf, highspy.kHighsInf)
        self._below = 0
        if plane is None:
            return
        values, costs, slopes = plane
        self._below = self._rows
        for term in range(self._terms):
            bound = costs[term] - slopes[term] @ values - self._goals[term]
            self._add(-slopes[term], float(bound), term)

    def within(self, low: Floats, high: Floats) -> None:
        """Look for values between these ends only, and in the box."""
        places = np.arange(self._n, dtype=np.int32)
        ends = np.maximum(low, self._low), np.minimum(high, self._high)
        self._solver.changeColsBounds(self._n, places, *ends)

    def solve(self) -> tuple[Floats, float]:
        """The best values, and the least sum.

        Raises
        ------
        Unsolved
            Where no values keep to the cuts.
        """
        self._solver.run()
        status = self._solver.getModelStatus()
        if status != highspy.HighsModelStatus.kOptimal:
            # Numerical trouble of a warm start: once more from scratch.
            self._solver.clearSolver()
            self._solver.run()
            status = self._solver.getModelStatus()
        if status != highspy.HighsModelStatus.kOptimal:
            raise Unsolved("No values in the public range serve the chosen models.")
        found = np.array(self._solver.getSolution().col_value)[: self._n]
        value = self._solver.getInfo().objective_function_value
        return np.clip(found, self._low, self._high), float(value)

    def _add(self, slope: Floats, bound: float, term: int | None) -> None:
        places = np.flatnonzero(np.abs(slope) > _NEGLIGIBLE).astype(np.int32)
        values = slope[places]
        if term is not None:
            places = np.append(places, np.int32(2 * self._n + term))
            values = np.append(values, -1.0)
        self._solver.addRow(-highspy.kHighsInf, bound, len(places), places, values)
        self._rows += 1
