"""The paper's figure of one line's released capacity, for growing alpha and T."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gridveil.errors import InputError
from gridveil.studies import figure_style
from gridveil.studies.grid_case import COLOURS, NAMES, Case, GridStudy, GridWorld
from gridveil.studies.study_plan import Cell, Measures
from gridveil.studies.summary_text import band, table

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Fig4(GridStudy):
    """Distributions of the released capacity of a line across runs.

    Parameters
    ----------
    line
        The line to show, counted from 1. The results contain all lines, so it can be changed.
    """

    name = "fig4"
    measures: ClassVar = {"capacity": pa.list_(pa.float64())}

    alphas: tuple[float, ...] = (5.0, 15.0, 30.0)
    rounds: tuple[int, ...] = (1, 5, 10)
    versions: tuple[str, ...] = ("published", "paper", "certified")
    epsilon: float = 1.0
    models: int = 1000
    data_seed: int = 0
    line: int = 40

    def settings(self) -> dict[str, Any]:
        """All settings except the line, which does not change the results."""
        return {key: value for key, value in super().settings().items() if key != "line"}

    def cells(self) -> list[Cell]:
        """One cell for each version, alpha and T; certified has no T."""
        return [
            {"method": version, "alpha": alpha, "rounds": rounds, "epsilon": self.epsilon}
            for version in self.versions
            for alpha in self.alphas
            for rounds in ((0,) if version == "certified" else self.rounds)
        ]

    def prepare(self) -> Case:
        """Make the paper's network and models."""
        case = super().prepare()
        count = len(case.network.branches)
        if not 1 <= self.line <= count:
            raise InputError(
                f"There is no line {self.line}.", remedy=f"Take one from 1 to {count}."
            )
        return case

    def run(self, world: GridWorld, cell: Cell, seed: int) -> Measures:
        """Make one release."""
        return {"capacity": world.release(cell, seed).values}

    def draw(self, table: pd.DataFrame, shared: Case) -> Figure:
        """Draw boxes of each version against T, one panel per alpha."""
        real = float(shared.network.branches.capacity[self.line - 1])
        with figure_style.style():
            figure, axes = figure_style.panels(
                1, len(self.alphas), width=figure_style.PAGE, height=2.6, sharey=True
            )
            for panel, alpha in zip(axes[0], self.alphas, strict=True):
                self._panel(panel, table, alpha)
                panel.axhline(real, color=figure_style.BLACK, linestyle="--", linewidth=1)
                panel.set_title(f"$\\alpha$ = {alpha:g} MW", loc="left")
            axes[0, 0].set_ylabel(f"capacity of line {self.line} (MW)")
            self._legend(figure)
        return figure

    def words(self, table_: pd.DataFrame, shared: Case) -> str:
        """Report median, quartiles and band of every box."""
        real = float(shared.network.branches.capacity[self.line - 1])
        rows = []
        for cell in self.cells():
            values = self._values(table_, cell)
            low, middle, high = np.percentile(values, [25, 50, 75])
            rows.append(
                [
                    NAMES[str(cell["method"])],
                    f"{cell['alpha']:g}",
                    str(cell["rounds"]) if cell["rounds"] else "none",
                    f"{middle:.0f} [{low:.0f}, {high:.0f}]",
                    band(values, 0),
                ]
            )
        return "\n\n".join(
            [
                f"# Released capacity of line {self.line}",
                f"{shared.network.name}, {self.models:,} models, epsilon {self.epsilon:g}, "
                f"{table_.run.max() + 1:,} runs a cell. The real capacity is {real:g} MW.",
                table(
                    ["version", "alpha (MW)", "T", "median [quartiles] (MW)", "mean [90% of runs]"],
                    rows,
                ),
                self._found(table_, real),
            ]
        )

    def _found(self, found: pd.DataFrame, real: float) -> str:
        last = max(self.alphas)
        lines = []
        for version in self.versions:
            cells = [c for c in self.cells() if c["method"] == version and c["alpha"] == last]
            widths = [
                np.ptp(np.percentile(self._values(found, c), figure_style.BAND)) for c in cells
            ]
            shifts = [float(np.median(self._values(found, c))) - real for c in cells]
            span = (
                f"{min(widths):.0f} to {max(widths):.0f}" if len(widths) > 1 else f"{widths[0]:.0f}"
            )
            moved = ", ".join(f"{shift:+.0f}" for shift in shifts)
            lines.append(
                f"- **{NAMES[version]}**, alpha {last:g} MW: 90% of runs span {span} MW; the "
                f"median is off by {moved} MW."
            )
        return "\n".join(lines)

    def _values(self, table: pd.DataFrame, cell: Cell) -> NDArray[np.float64]:
        some = table
        for name in ("method", "alpha", "rounds"):
            some = some[some[name] == cell[name]]
        return np.array([values[self.line - 1] for values in some.capacity])

    def _panel(self, panel: Axes, table: pd.DataFrame, alpha: float) -> None:
        ticks, labels, place = [], [], 0.0
        iterated = [v for v in self.versions if v != "certified"]
        for rounds in self.rounds:
            ticks.append(place + (len(iterated) - 1) / 2)
            labels.append(f"T = {rounds}")
            for version in iterated:
                cell: Cell = {"method": version, "alpha": alpha, "rounds": rounds}
                _box(panel, self._values(table, cell), place, COLOURS[version])
                place += 1
            place += 0.7
        if "certified" in self.versions:
            free: Cell = {"method": "certified", "alpha": alpha, "rounds": 0}
            _box(panel, self._values(table, free), place, COLOURS["certified"])
            ticks.append(place)
            labels.append("no T")
        panel.set_xticks(ticks, labels)
        panel.grid(visible=False, axis="x")

    def _legend(self, figure: Figure) -> None:
        from matplotlib.lines import Line2D
        from matplotlib.patches import Patch

        handles: list[Any] = [
            Patch(facecolor=COLOURS[version], alpha=0.6, label=NAMES[version])
            for version in self.versions
        ]
        handles.append(
            Line2D([], [], color=figure_style.BLACK, linestyle="--", label="real capacity")
        )
        figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))


def _box(panel: Axes, values: NDArray[np.float64], place: float, colour: str) -> None:
    """Draw the quartiles as a box, and 90% of the runs as whiskers."""
    # The whiskers of `boxplot` would end at the last run inside the band.
    low, first, middle, third, high = np.percentile(
        values, [figure_style.BAND[0], 25, 50, 75, figure_style.BAND[1]]
    )
    panel.bxp(
        [{"whislo": low, "q1": first, "med": middle, "q3": third, "whishi": high}],
        positions=[place],
        widths=0.75,
        showfliers=False,
        patch_artist=True,
        manage_ticks=False,
        boxprops={"facecolor": colour, "alpha": 0.6, "linewidth": 0.6},
        medianprops={"color": figure_style.BLACK, "linewidth": 1.2},
        whiskerprops={"linewidth": 0.7},
        capprops={"linewidth": 0.7},
    )
