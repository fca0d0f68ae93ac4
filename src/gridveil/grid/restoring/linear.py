"""A linear programme in HiGHS whose bounds change from one solve to the next."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

import highspy
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

Floats = NDArray[np.float64]

TOLERANCE = 1e-9


class End(Enum):
    """How a solve ended."""

    SOLVED = auto()
    INFEASIBLE = auto()
    UNBOUNDED = auto()
    FAILED = auto()


@dataclass(frozen=True, eq=False)
class Answer:
    """How it ended, and where it was solved the value, the columns and the duals."""

    end: End
    value: float
    x: Floats
    row_dual: Floats
    column_dual: Floats


_ENDS = {
    highspy.HighsModelStatus.kOptimal: End.SOLVED,
    highspy.HighsModelStatus.kInfeasible: End.INFEASIBLE,
    highspy.HighsModelStatus.kUnbounded: End.UNBOUNDED,
}


class Linear:
    """``min cost'x, low <= x <= high, row_low <= A x <= row_high``, warm-started."""

    def __init__(
        self,
        cost: Floats,
        low: Floats,
        high: Floats,
        A: Floats | csr_array,
        row_low: Floats,
        row_high: Floats,
    ) -> None:
        self._highs = highspy.Highs()  # type: ignore[no-untyped-call]
        options: dict[str, bool | int | float | str] = {
            "output_flag": False,
            "threads": 1,
            "parallel": "off",
            "presolve": "off",
            "primal_feasibility_tolerance": TOLERANCE,
            "dual_feasibility_tolerance": TOLERANCE,
        }
        for name, value in options.items():
            self._highs.setOptionValue(name, value)
        table = csr_array(A)
        self._columns = np.arange(len(cost), dtype=np.int32)
        self._rows = np.arange(len(row_low), dtype=np.int32)
        none = np.zeros(0, np.int32)
        self._highs.addCols(
            len(cost), cost, low, high, 0, np.zeros(len(cost), np.int32), none, np.zeros(0)
        )
        self._highs.addRows(
            len(row_low),
            row_low,
            row_high,
            table.nnz,
            table.indptr[:-1].astype(np.int32),
            table.indices.astype(np.int32),
            table.data,
        )

    def change_columns(self, low: Floats, high: Floats) -> None:
        """Give every column new bounds."""
        self._highs.changeColsBounds(len(self._columns), self._columns, low, high)

    def change_rows(self, low: Floats, high: Floats) -> None:
        """Give every row new bounds."""
        # Its stub leaves this method out.
        self._highs.changeRowsBounds(  # type: ignore[attr-defined]
            len(self._rows), self._rows, low, high
        )

    def solve(self) -> Answer:
        """Solve it from where it stands; from scratch where that ends in trouble."""
        end = self._run()
        if end is End.FAILED:
            self._highs.clearSolver()
            end = self._run()
        if end is not End.SOLVED:
            none = np.zeros(0)
            return Answer(end, np.inf if end is End.INFEASIBLE else -np.inf, none, none, none)
        found = self._highs.getSolution()
        return Answer(
            end,
            float(self._highs.getInfo().objective_function_value),
            np.array(found.col_value),
            np.array(found.row_dual),
            np.array(found.col_dual),
        )

    def _run(self) -> End:
        self._highs.run()
        return _ENDS.get(self._highs.getModelStatus(), End.FAILED)


def highs_name() -> str:
    """The solver's name and version."""
    version = highspy.Highs().version()  # type: ignore[no-untyped-call]
    return f"HiGHS {version}"
