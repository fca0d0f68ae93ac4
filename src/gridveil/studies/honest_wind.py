"""Compare wind releases of the published code, of the paper's correct algorithm, and tuned.

Their losses look alike, and that is the point: that the published code has too little noise shows
in its epsilon, not in a picture of its results.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gridveil.studies import figure_style
from gridveil.studies.noise_verdicts import verdict_table, wind_verdicts
from gridveil.studies.published_noise_wind import SHARE, published_wind, squared_loss_epsilon
from gridveil.studies.study_plan import Cell, Measures
from gridveil.studies.summary_text import band, of_capacity, table
from gridveil.studies.wind_turbine import COLOURS, MARKERS, NAMES, Turbine, TurbineStudy, WindWorld

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

VERSIONS = ("published", "wpo", "tuned")


@dataclass(frozen=True)
class HonestWind(TurbineStudy):
    """Losses at the same settings with the published code's noise and with correct noise."""

    name = "honest-wind"

    def cells(self) -> list[Cell]:
        """One cell for each version and alpha."""
        return self.each(VERSIONS)

    def run(self, world: WindWorld, cell: Cell, seed: int) -> Measures:
        """Make one release, by mechanisms or as the published code does, and measure it."""
        if cell["method"] == "published":
            alpha, epsilon = float(cell["alpha"]), float(cell["epsilon"])
            return world.compare(published_wind(world, alpha, epsilon, seed))
        return super().run(world, cell, seed)

    def draw(self, table: pd.DataFrame, shared: Turbine) -> Figure:
        """Draw the loss of all versions, and the epsilon that the noisy loss really spends."""
        world = WindWorld(shared)
        x = 100 * np.array(self.alphas)
        with figure_style.style():
            figure, axes = figure_style.panels(1, 2, width=figure_style.PAGE, height=2.6)
            left, right = axes[0]
            left.axhline(world.loss, color=figure_style.BLACK, linestyle="--", label="real records")
            for version in reversed(VERSIONS):
                figure_style.mean_and_band(
                    left,
                    x,
                    [self._losses(table, version, alpha) for alpha in self.alphas],
                    colour=COLOURS[version],
                    label=NAMES[version],
                    marker=MARKERS[version],
                )
            left.set_ylabel("loss of the regression $\\|X\\beta-y\\|$")
            left.set_ylim(bottom=0)
            left.set_title("(a) what is released", loc="left")
            left.legend(loc="lower left")
            self._costs(right, world, x)
            for panel in (left, right):
                panel.set_xlabel("adjacency $\\alpha$ (% of capacity)")
        return figure

    def words(self, table_: pd.DataFrame, shared: Turbine) -> str:
        """Report losses and epsilons, side by side."""
        world = WindWorld(shared)
        rows = [
            [
                of_capacity(alpha),
                *(band(self._losses(table_, version, alpha), 2) for version in VERSIONS),
                f"{squared_loss_epsilon(world, alpha, self.epsilon):.1f}",
                "infinite",
            ]
            for alpha in self.alphas
        ]
        head = ["alpha", *(f"loss: {NAMES[version]}" for version in VERSIONS)]
        head += ["epsilon of its noisy loss", "epsilon of its noisy weights"]
        third = SHARE * self.epsilon
        middle = self.alphas[len(self.alphas) // 2]
        worst = max(squared_loss_epsilon(world, alpha, self.epsilon) for alpha in self.alphas)
        return "\n\n".join(
            [
                "# Wind: the published code's noise and correct noise",
                f"{self.rows:,} made-up records; epsilon {self.epsilon:g} is claimed by all; "
                f"{table_.run.max() + 1:,} runs a cell; the real loss is {world.loss:.2f}. The "
                f"last two columns are of the published code, which means to spend {third:.2f} on "
                "each.",
                table(head, rows),
                self._found(table_, worst, third),
                f"What the audit proves of each noisy answer at alpha {of_capacity(middle)}:",
                verdict_table(wind_verdicts(world, middle, self.epsilon), NAMES),
            ]
        )

    def _found(self, table_: pd.DataFrame, worst: float, third: float) -> str:
        return "\n".join(
            [
                "- **Squared loss.** The published code releases the square of the loss, with "
                "noise for the square of how far the loss moves. The square moves by far more: on "
                f"these records its epsilon is up to {worst:.1f} where {third:.2f} is meant.",
                "- **Shared draw.** It adds one and the same draw to all weights. Differences of "
                "weights come out exactly, without any noise: no epsilon, however large, covers "
                "that.",
                self._spread(table_),
            ]
        )

    def _spread(self, found: pd.DataFrame) -> str:
        last = max(self.alphas)
        widths = {}
        for version in VERSIONS:
            low, high = np.percentile(self._losses(found, version, last), figure_style.BAND)
            widths[version] = high - low
        return (
            f"- **What it hides.** At alpha {of_capacity(last)} the 90% band of the loss is "
            f"{widths['published']:.2f} wide with the published noise, {widths['wpo']:.2f} with "
            f"the noise that the paper's theorem calls for, and {widths['tuned']:.2f} for "
            "GridVeil at the same, correct, epsilon."
        )

    def _costs(self, panel: Axes, world: WindWorld, x: NDArray[np.float64]) -> None:
        really = [squared_loss_epsilon(world, alpha, self.epsilon) for alpha in self.alphas]
        panel.plot(
            x,
            really,
            marker=MARKERS["published"],
            markersize=3.2,
            color=COLOURS["published"],
            label="published: really spent",
        )
        panel.axhline(
            SHARE * self.epsilon,
            color=COLOURS["published"],
            linestyle=":",
            label="published: claimed",
        )
        panel.axhline(
            self.epsilon / 4, color=COLOURS["wpo"], linestyle="-", label="WPO: claimed and spent"
        )
        panel.set_yscale("log")
        top = 100.0
        panel.set_ylim(0.1, top)
        panel.set_yticks([0.1, 1, 10, top], ["0.1", "1", "10", "100"])
        panel.annotate(
            "its noisy weights: $\\varepsilon=\\infty$",
            xy=(x[0] + 0.25 * np.ptp(x), top),
            xytext=(x[0] + 0.25 * np.ptp(x), top / 8),
            ha="center",
            color=COLOURS["published"],
            fontsize=7,
            arrowprops={"arrowstyle": "->", "color": COLOURS["published"]},
        )
        panel.set_ylabel("$\\varepsilon$ of the noisy loss")
        panel.set_title("(b) what it costs", loc="left")
        panel.legend(loc="upper right")

    def _losses(self, table: pd.DataFrame, version: str, alpha: float) -> NDArray[np.float64]:
        some = table[(table.method == version) & (table.alpha == alpha)]
        return np.asarray(some.loss, dtype=np.float64)
