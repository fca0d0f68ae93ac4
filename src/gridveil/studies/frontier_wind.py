"""Measure how accurate a wind release will be, to choose epsilon and alpha before spending any."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gridveil.studies import figure_style
from gridveil.studies.study_plan import Cell, Measures, Study
from gridveil.studies.summary_text import of_capacity, table
from gridveil.studies.wind_turbine import (
    MEASURES,
    NAMES,
    Turbine,
    WindWorld,
    curve_turbine,
    file_turbine,
)
from gridveil.wind.demo import TURBINE

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

GOOD = 0.1
"""An error of the loss below this share of it counts as good in the summary."""


@dataclass(frozen=True)
class FrontierWind(Study):
    """Errors of a release against epsilon, for several alphas, on a public stand-in.

    Parameters
    ----------
    source
        A file of public records with ``columns`` of speed and power, its digest, and the
        capacity; or None for records made up about the curve of ``turbine``.
    """

    name = "frontier"
    measures: ClassVar = MEASURES

    epsilons: tuple[float, ...] = (0.25, 0.5, 1.0, 2.0, 4.0)
    alphas: tuple[float, ...] = (0.05, 0.15, 0.3)
    method: str = "tuned"
    turbine: str = TURBINE
    rows: int = 1000
    noise: float = 0.1
    source: str | None = None
    digest: str | None = None
    columns: tuple[str, str] = ("wind_speed", "power")
    capacity: float = 1.0
    data_seed: int = 0

    def settings(self) -> dict[str, Any]:
        """All settings except the path of the file, which may be moved."""
        return {key: value for key, value in super().settings().items() if key != "source"}

    def cells(self) -> list[Cell]:
        """One cell for each alpha and epsilon."""
        return [
            {"method": self.method, "alpha": alpha, "epsilon": epsilon}
            for alpha in self.alphas
            for epsilon in self.epsilons
        ]

    def prepare(self) -> Turbine:
        """Make or read the public records that stand in for the private ones."""
        if self.source is None:
            return curve_turbine(self.turbine, self.rows, self.noise, self.data_seed)
        return file_turbine(Path(self.source), *self.columns, self.capacity)

    def world(self, shared: Turbine) -> WindWorld:
        """Fit the regression to the records."""
        return WindWorld(shared)

    def run(self, world: WindWorld, cell: Cell, seed: int) -> Measures:
        """Make one release, and measure it."""
        return world.compare(world.release(cell, seed))

    def draw(self, table: pd.DataFrame, shared: Turbine) -> Figure:
        """Draw three errors against epsilon, one line per alpha."""
        world = WindWorld(shared)
        errors = {
            (alpha, e): self._errors(table, alpha, e, world)
            for alpha in self.alphas
            for e in self.epsilons
        }
        with figure_style.style():
            figure, axes = figure_style.panels(
                1, 3, width=figure_style.PAGE, height=2.4, sharex=True
            )
            for panel, (measure, title) in zip(axes[0], _PANELS.items(), strict=True):
                figure_style.frontier(
                    panel,
                    self.alphas,
                    self.epsilons,
                    runs={at: 100 * one[measure] for at, one in errors.items()},
                    label=lambda alpha: f"$\\alpha$ = {of_capacity(alpha)}",
                )
                panel.set_title(title, loc="left")
            axes[0, 0].set_ylabel("% of capacity")
            axes[0, 1].set_ylabel("% of the real loss")
            axes[0, 2].set_ylabel("% of capacity")
            axes[0, 0].axhline(
                100 * world.loss / np.sqrt(len(shared.power)),
                color=figure_style.BLACK,
                linestyle="--",
                label="spread about the curve",
            )
            handles, labels = axes[0, 0].get_legend_handles_labels()
            figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
        return figure

    def words(self, table_: pd.DataFrame, shared: Turbine) -> str:
        """Report the errors in a table, and the least epsilon with a small error of the loss."""
        world = WindWorld(shared)
        cells = {
            (alpha, epsilon): {
                name: 100 * values.mean()
                for name, values in self._errors(table_, alpha, epsilon, world).items()
            }
            for alpha in self.alphas
            for epsilon in self.epsilons
        }
        rows = [
            [f"{epsilon:g}"]
            + [" / ".join(f"{value:.1f}" for value in cells[alpha, epsilon].values())
               for alpha in self.alphas]
            for epsilon in self.epsilons
        ]  # fmt: skip
        spread = 100 * world.loss / np.sqrt(len(shared.power))
        what = (
            f"{len(shared.power):,} public records of a file"
            if self.source
            else f"{self.rows:,} made-up records about the public curve of a {self.turbine}"
        )
        return "\n\n".join(
            [
                "# Accuracy against epsilon and alpha: wind",
                f"{what}; method {NAMES[self.method]}; {table_.run.max() + 1:,} runs a cell. Mean "
                "errors in percent: of a record (root mean square, of capacity) / of the "
                "regression's loss (of the real one) / of the regression's curve (of capacity). "
                f"The records' own spread about their curve is {spread:.1f}% of capacity.",
                table(["epsilon", *(f"alpha {of_capacity(a)}" for a in self.alphas)], rows),
                "\n".join(self._least(cells, alpha) for alpha in self.alphas),
                "Choose by these figures, which hold nothing private, and never by trying on the "
                "real records.",
            ]
        )

    def _least(self, cells: dict[tuple[float, float], dict[str, float]], alpha: float) -> str:
        good: list[float] = []
        for epsilon in sorted(self.epsilons, reverse=True):
            if cells[alpha, epsilon]["loss_error"] >= 100 * GOOD:
                break
            good.append(epsilon)
        where = f"- At alpha {of_capacity(alpha)} the loss is kept to {100 * GOOD:.0f}% on average"
        return f"{where} from epsilon {good[-1]:g} on." if good else f"{where} by none of these."

    def _errors(
        self, table: pd.DataFrame, alpha: float, epsilon: float, world: WindWorld
    ) -> dict[str, NDArray[np.float64]]:
        some = table[(table.alpha == alpha) & (table.epsilon == epsilon)]
        return {
            "rmse": some.rmse.to_numpy(),
            "loss_error": np.abs(some.loss.to_numpy() / world.loss - 1),
            "curve_error": some.curve_error.to_numpy(),
        }


_PANELS = {
    "rmse": "(a) error of a record",
    "loss_error": "(b) error of the loss",
    "curve_error": "(c) error of the curve",
}
