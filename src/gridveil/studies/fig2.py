"""The paper's figure of wind releases: real and released records for growing alpha.

Each panel shows the run with the median loss of all runs of its cell, so that none was selected for
how it looks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gridveil.studies import figure_style
from gridveil.studies.figure_style import BLACK, GREY
from gridveil.studies.study_plan import Cell, Measures
from gridveil.studies.summary_text import of_capacity, table
from gridveil.studies.wind_turbine import COLOURS, MEASURES, NAMES, Turbine, TurbineStudy, WindWorld

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LETTERS = "abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True)
class Fig2(TurbineStudy):
    """Released records of each method for growing alpha, over wind speed."""

    name = "fig2"
    measures: ClassVar = {**MEASURES, "power": pa.list_(pa.float64())}

    alphas: tuple[float, ...] = (0.05, 0.1, 0.2, 0.3)
    methods: tuple[str, ...] = ("laplace", "wpo", "tuned")

    def cells(self) -> list[Cell]:
        """One cell for each method and alpha."""
        return self.each(self.methods)

    def run(self, world: WindWorld, cell: Cell, seed: int) -> Measures:
        """Make one release, and measure it."""
        released = world.release(cell, seed)
        return {**world.compare(released), "power": released}

    def draw(self, table: pd.DataFrame, shared: Turbine) -> Figure:
        """Draw one row of panels per method, one column per alpha."""
        world = WindWorld(shared)
        with figure_style.style():
            figure, axes = figure_style.panels(
                len(self.methods),
                len(self.alphas),
                width=figure_style.PAGE,
                height=0.4 + 1.55 * len(self.methods),
                sharex=True,
                sharey=True,
            )
            for (i, j), panel in np.ndenumerate(axes):
                method, alpha = self.methods[i], self.alphas[j]
                row = self._typical(table, method, alpha)
                self._panel(panel, world, row, COLOURS[method])
                letter = _LETTERS[i * len(self.alphas) + j]
                panel.set_title(
                    f"({letter}) {NAMES[method]}, $\\alpha$ = {of_capacity(alpha)}", loc="left"
                )
            for panel in axes[-1]:
                panel.set_xlabel("wind speed (m/s)")
            for panel in axes[:, 0]:
                panel.set_ylabel("power (of capacity)")
            self._legend(figure, axes[:, 0])
        return figure

    def words(self, table_: pd.DataFrame, shared: Turbine) -> str:
        """Report loss and errors of each panel."""
        world = WindWorld(shared)
        rows = []
        for alpha in self.alphas:
            some = [self._typical(table_, method, alpha) for method in self.methods]
            errors = [(row.loss, 100 * row.rmse, 100 * row.curve_error) for row in some]
            rows.append(
                [of_capacity(alpha), *("{:.2f} / {:.1f} / {:.1f}".format(*e) for e in errors)]
            )
        head = ["alpha", *(NAMES[method] for method in self.methods)]
        return "\n\n".join(
            [
                "# Wind releases for growing alpha",
                f"{self.rows:,} made-up records about the power curve of a GE 2.75-103, from 2.5 "
                f"to 12.5 m/s; epsilon {self.epsilon:g}. Each panel shows the run with the median "
                f"loss of {table_.run.max() + 1:,}. The loss of the regression on the real records "
                f"is {world.loss:.2f}. Below: loss / error of a record / error of the regression's "
                "curve, both root mean squares in percent of capacity.",
                table(head, rows),
                self._found(table_),
            ]
        )

    def _found(self, found: pd.DataFrame) -> str:
        last = max(self.alphas)
        curves = {m: 100 * self._typical(found, m, last).curve_error for m in self.methods}
        records = {m: 100 * self._typical(found, m, last).rmse for m in self.methods}
        best, worst = min(curves, key=curves.__getitem__), max(curves, key=curves.__getitem__)
        return (
            f"At alpha {of_capacity(last)} the curve through the {NAMES[best]} records is off by "
            f"{curves[best]:.1f}% of capacity and that through the {NAMES[worst]} records by "
            f"{curves[worst]:.1f}%; a record by {records[best]:.1f}% and {records[worst]:.1f}%."
        )

    def _typical(self, table: pd.DataFrame, method: str, alpha: float) -> Any:
        some = table[(table.method == method) & (table.alpha == alpha)].sort_values("loss")
        return some.iloc[(len(some) - 1) // 2]

    def _panel(self, panel: Axes, world: WindWorld, row: Any, colour: str) -> None:
        turbine = world.turbine
        # Draw dots as pixels: thousands of vector dots make a file slow to open.
        dots: dict[str, Any] = {"marker": "o", "markersize": 1.1, "mew": 0, "ls": ""}
        dots["rasterized"] = True
        panel.plot(turbine.speed, turbine.power, color=GREY, alpha=0.5, **dots)
        released = np.asarray(row.power)
        panel.plot(turbine.speed, released, color=colour, alpha=0.6, **dots)
        order = np.argsort(turbine.speed)
        weights, _ = world.fit.ridge.weights_and_loss(released)
        x, X = turbine.speed[order], world.X[order]
        panel.plot(x, X @ world.weights, color=BLACK, linewidth=1.2)
        panel.plot(x, X @ weights, color=colour, linewidth=1.2, linestyle="--")
        panel.set_ylim(-0.03, 1.03)

    def _legend(self, figure: Figure, first: NDArray[Any]) -> None:
        """Add a legend of real and released records, in the colours of all rows."""
        from matplotlib.legend_handler import HandlerTuple

        real, _, real_curve, _ = first[0].lines
        released = tuple(panel.lines[1] for panel in first)
        curves = tuple(panel.lines[3] for panel in first)
        handles: list[Any] = [real, released, real_curve, curves]
        figure.legend(
            handles,
            ["real records", "released records", "regression on real", "regression on released"],
            handler_map={tuple: HandlerTuple(ndivide=None, pad=0.6)},
            handlelength=4.5,
            markerscale=3,
            ncols=4,
            loc="outside lower center",
        )
