"""Compare grid releases with the published code's noise, with correct noise, and certified."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from gridveil.studies import figure_style
from gridveil.studies.grid_case import (
    COLOURS,
    MEASURES,
    NAMES,
    UNSEEN_MEASURES,
    Case,
    GridStudy,
    GridWorld,
)
from gridveil.studies.noise_verdicts import grid_verdicts, verdict_table
from gridveil.studies.study_plan import Cell
from gridveil.studies.summary_text import band, failures, table

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

VERSIONS = ("published", "paper", "certified")

_PANELS = {
    "infeasible": "(a) infeasible models (%)",
    "cost_error": "(b) cost error (%)",
    "capacity_error": "(c) capacity error (MW)",
    "price_error": "(d) nodal price error (\\$/MWh)",
}


@dataclass(frozen=True)
class HonestGrid(GridStudy):
    """Errors at the same settings with the published noise, with correct noise, and certified."""

    name = "honest-grid"
    measures: ClassVar = {**MEASURES, **UNSEEN_MEASURES}

    alphas: tuple[float, ...] = (5.0, 15.0, 30.0)
    rounds: int = 10
    epsilon: float = 1.0
    models: int = 1000
    data_seed: int = 0

    def cells(self) -> list[Cell]:
        """One cell for each version and alpha."""
        return [
            {
                "method": version,
                "alpha": alpha,
                "rounds": 0 if version == "certified" else self.rounds,
                "epsilon": self.epsilon,
            }
            for version in VERSIONS
            for alpha in self.alphas
        ]

    def draw(self, table: pd.DataFrame, shared: Case) -> Figure:
        """Draw four measures: means as dots, 90% of the runs as whiskers."""
        with figure_style.style():
            figure, axes = figure_style.panels(1, len(_PANELS), width=figure_style.PAGE, height=2.5)
            for panel, (measure, title) in zip(axes[0], _PANELS.items(), strict=True):
                self._panel(panel, table, measure)
                panel.set_title(title, loc="left", fontsize=7)
                panel.set_ylim(bottom=0)
                panel.set_xlabel("$\\alpha$ (MW)")
            handles, labels = axes[0, 0].get_legend_handles_labels()
            figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
        return figure

    def words(self, table_: pd.DataFrame, shared: Case) -> str:
        """Report the measures in a table, and the epsilon that each version really spends."""
        rows = []
        for version in VERSIONS:
            for alpha in self.alphas:
                some = table_[(table_.method == version) & (table_.alpha == alpha)]
                rows.append(
                    [NAMES[version], f"{alpha:g}", f"{self._spent(version):g}"]
                    + [band(some.infeasible, 2), band(some.unseen_infeasible, 2)]
                    + [band(some.cost_error, 3), f"{some.capacity_error.mean():.1f}"]
                    + [f"{some.price_error.mean():.2f}", f"{some.congestion.mean():.0f}"]
                )
        head = ["version", "alpha (MW)", "epsilon spent", "infeasible (%)", "of unseen models (%)"]
        head += ["cost error (%)", "capacity (MW)", "prices ($/MWh)", "congested lines (%)"]
        return "\n\n".join(
            [
                "# Grid: the published code's noise, correct noise, and certified",
                f"{shared.network.name}, {self.models:,} models and as many that no release saw; "
                f"epsilon {self.epsilon:g} is claimed by all; T = {self.rounds}; "
                f"{table_.run.max() + 1:,} runs a cell. Means, and the band that holds 90% of the "
                "runs. Congested lines: of those that have a price on real or released capacities, "
                "how many have one on both.",
                table(head, rows),
                self._found(table_),
                *failures(table_),
                f"What the audit proves of each noisy cost at alpha {max(self.alphas):g} MW:",
                verdict_table(
                    grid_verdicts(GridWorld(shared), max(self.alphas), self.epsilon, self.rounds),
                    NAMES,
                ),
            ]
        )

    def _spent(self, version: str) -> float:
        """Compute the epsilon that a version's noise really has.

        Half of epsilon is for the capacities and a quarter for choosing models. With the published
        noise of scale ``alpha L / (epsilon 4 T)`` each of T costs spends ``4 T epsilon``.
        """
        if version != "published":
            return self.epsilon
        return self.epsilon * (0.75 + 4 * self.rounds**2)

    def _found(self, found: pd.DataFrame) -> str:
        last = max(self.alphas)
        mean = {
            version: found[(found.method == version) & (found.alpha == last)].mean(
                numeric_only=True
            )
            for version in VERSIONS
        }
        served = found[found.method == "certified"].infeasible
        never = (
            "serves every model in every run, at every alpha"
            if (served == 0).all()
            else f"leaves up to {served.max():.2f}% of the models infeasible"
        )
        return "\n".join(
            [
                f"- **Published noise.** At alpha {last:g} MW the cost error is "
                f"{mean['published'].cost_error:.3f}%, with an epsilon of up to "
                f"{self._spent('published'):g} where {self.epsilon:g} is claimed.",
                f"- **Correct noise.** The same algorithm then has a cost error of "
                f"{mean['paper'].cost_error:.3f}% and leaves {mean['paper'].infeasible:.1f}% of "
                "the models infeasible.",
                f"- **Certified.** GridVeil {never}; its cost error is "
                f"{mean['certified'].cost_error:.3f}%, and a capacity is off by "
                f"{mean['certified'].capacity_error:.0f} MW where the paper's algorithm has "
                f"{mean['paper'].capacity_error:.0f} MW, at the same epsilon.",
            ]
        )

    def _panel(self, panel: Axes, table: pd.DataFrame, measure: str) -> None:
        for place, version in enumerate(VERSIONS):
            some = [self._values(table, version, alpha, measure) for alpha in self.alphas]
            means = np.array([values.mean() for values in some])
            low, high = np.array([np.percentile(values, figure_style.BAND) for values in some]).T
            x = np.arange(len(self.alphas)) + 0.22 * (place - 1)
            whiskers = np.clip([means - low, high - means], 0, None)
            panel.errorbar(
                x,
                means,
                yerr=whiskers,
                fmt=figure_style.MARKS[place],
                markersize=4,
                capsize=2,
                elinewidth=1,
                color=COLOURS[version],
                label=NAMES[version],
            )
        panel.set_xticks(range(len(self.alphas)), [f"{alpha:g}" for alpha in self.alphas])
        panel.grid(visible=False, axis="x")

    def _values(
        self, table: pd.DataFrame, version: str, alpha: float, measure: str
    ) -> NDArray[np.float64]:
        some = table[(table.method == version) & (table.alpha == alpha)]
        return np.asarray(some[measure], dtype=np.float64)
