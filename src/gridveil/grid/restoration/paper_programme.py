"""The linear programme of the paper's restoration: it stays in HiGHS, and rows are added to it."""

from __future__ import annotations

import highspy
import numpy as np
from numpy.typing import NDArray

from gridveil.grid.restoration.master import TIGHT, Unsolved

Floats = NDArray[np.float64]


def quiet(**more: str) -> highspy.Highs:
    """Make a HiGHS instance that prints nothing, uses one thread, and has tight tolerances."""
    highs = highspy.Highs()  # type: ignore[no-untyped-call]
    options: dict[str, bool | int | float | str] = {
        "output_flag": False,
        "threads": 1,
        "presolve": "off",
        "primal_feasibility_tolerance": TIGHT,
        "dual_feasibility_tolerance": TIGHT,
        **more,
    }
    for name, value in options.items():
        highs.setOptionValue(name, value)
    return highs


class GrowingProgramme:
    """The least sum of the `paid` columns, which are between `low` and `high`; it gets rows later.

    Some rows are planes: they say that a miss is at least what a cost's plane at some point says,
    and are replaced from step to step.
    """

    def __init__(self, low: Floats, high: Floats, paid: range) -> None:
        self._highs = quiet()
        self._highs.addVars(len(low), low, high)
        columns = np.arange(paid.start, paid.stop, dtype=np.int32)
        self._highs.changeColsCost(len(columns), columns, np.ones(len(columns)))
        self._rows, self._planes = 0, range(0)

    def _add(self, places: NDArray[np.int64], values: Floats, low: float, high: float) -> None:
        self._highs.addRow(low, high, len(places), places.astype(np.int32), values)
        self._rows += 1

    def _replace_planes(self, count: int) -> None:
        """Switch off the old planes; the next ``count`` rows are the new ones."""
        # Deleting rows would renumber later ones.
        for row in self._planes:
            self._highs.changeRowBounds(row, -np.inf, np.inf)
        self._planes = range(self._rows, self._rows + count)

    def _solved(self) -> tuple[Floats, float]:
        """Find the best columns and the least sum; raise `Unsolved` if there are none."""
        for again in (False, True):
            if again:
                # The warm start had numerical trouble: try again from scratch.
                self._highs.clearSolver()
            self._highs.run()
            if self._highs.getModelStatus() == highspy.HighsModelStatus.kOptimal:
                value = self._highs.getInfo().objective_function_value
                return np.array(self._highs.getSolution().col_value), float(value)
        raise Unsolved("No values in the public range serve the chosen models.")
