"""The paper's figure of the regression's loss against alpha, over many runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gridveil.studies import figure_style
from gridveil.studies.study_plan import Cell
from gridveil.studies.summary_text import band, inside, listed, of_capacity, percent, table
from gridveil.studies.wind_turbine import COLOURS, MARKERS, NAMES, Turbine, TurbineStudy, WindWorld

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Fig3(TurbineStudy):
    """Loss of the regression on released records: mean and 90% band of many runs."""

    name = "fig3"

    methods: tuple[str, ...] = ("laplace", "wpo", "tuned")

    def cells(self) -> list[Cell]:
        """One cell for each method and alpha."""
        return self.each(self.methods)

    def draw(self, table: pd.DataFrame, shared: Turbine) -> Figure:
        """Draw the loss against alpha."""
        real = WindWorld(shared).loss
        with figure_style.style():
            figure, axes = figure_style.panels(1, 1, width=figure_style.COLUMN, height=2.5)
            panel = axes[0, 0]
            for method in self.methods:
                figure_style.mean_and_band(
                    panel,
                    100 * np.array(self.alphas),
                    [self._losses(table, method, alpha) for alpha in self.alphas],
                    colour=COLOURS[method],
                    label=NAMES[method],
                    marker=MARKERS[method],
                )
            panel.axhline(real, color=figure_style.BLACK, linestyle="--", label="real records")
            panel.set_xlabel("adjacency $\\alpha$ (% of capacity)")
            panel.set_ylabel("loss of the regression $\\|X\\beta-y\\|$")
            panel.set_ylim(bottom=0)
            panel.legend(loc="upper left")
        return figure

    def words(self, table_: pd.DataFrame, shared: Turbine) -> str:
        """Report the losses in a table, with a verdict on each method."""
        real = WindWorld(shared).loss
        rows = [
            [of_capacity(alpha)]
            + [band(self._losses(table_, method, alpha)) for method in self.methods]
            for alpha in self.alphas
        ]
        runs = int(table_.run.max()) + 1
        return "\n\n".join(
            [
                "# Loss of the regression against alpha",
                f"{self.rows:,} made-up records about the power curve of a GE 2.75-103; epsilon "
                f"{self.epsilon:g}; {runs:,} runs a cell. The loss, the root of the sum of squared "
                f"residuals, is {real:.3f} on the real records. Mean of the runs, and the band "
                "that holds 90% of them:",
                table(["alpha", *(NAMES[method] for method in self.methods)], rows),
                "\n".join(self._verdict(table_, method, real) for method in self.methods),
            ]
        )

    def _verdict(self, found: pd.DataFrame, method: str, real: float) -> str:
        losses = {alpha: self._losses(found, method, alpha) for alpha in self.alphas}
        within = [of_capacity(alpha) for alpha, some in losses.items() if inside(real, some)]
        if len(within) == len(losses):
            where = "inside the 90% band at every alpha"
        elif within:
            where = f"inside the 90% band at alpha {listed(within)} only"
        else:
            where = "outside the 90% band at every alpha"
        first, last = (
            losses[alpha].mean() / real - 1 for alpha in (self.alphas[0], self.alphas[-1])
        )
        return (
            f"- **{NAMES[method]}**: the real loss is {where}. The mean is off by "
            f"{percent(first, 1)} at alpha {of_capacity(self.alphas[0])} and by "
            f"{percent(last, 1)} at alpha {of_capacity(self.alphas[-1])}."
        )

    def _losses(self, table: pd.DataFrame, method: str, alpha: float) -> NDArray[np.float64]:
        some = table[(table.method == method) & (table.alpha == alpha)]
        return np.asarray(some.loss, dtype=np.float64)
