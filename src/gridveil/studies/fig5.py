"""The paper's figure of infeasible models and of the cost error against T, in three versions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gridveil.studies import figure_style
from gridveil.studies.grid_case import NAMES, Case, GridStudy
from gridveil.studies.study_plan import Cell
from gridveil.studies.summary_text import band, failures, table

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_ROWS = {
    "infeasible": "infeasible models (%)",
    "cost_error": "cost error $\\Delta C$ (%)",
}


@dataclass(frozen=True)
class Fig5(GridStudy):
    """Share of infeasible models and mean cost error against T, for several alphas."""

    name = "fig5"

    alphas: tuple[float, ...] = (5.0, 15.0, 30.0)
    rounds: tuple[int, ...] = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
    versions: tuple[str, ...] = ("published", "paper", "certified")
    epsilon: float = 1.0
    models: int = 1000
    data_seed: int = 0

    def cells(self) -> list[Cell]:
        """One cell for each version, alpha and T; certified has no T."""
        return [
            {"method": version, "alpha": alpha, "rounds": rounds, "epsilon": self.epsilon}
            for version in self.versions
            for alpha in self.alphas
            for rounds in ((0,) if version == "certified" else self.rounds)
        ]

    def draw(self, table: pd.DataFrame, shared: Case) -> Figure:
        """Draw one column of panels per version, one line per alpha."""
        with figure_style.style():
            figure, axes = figure_style.panels(
                len(_ROWS),
                len(self.versions),
                width=figure_style.PAGE,
                height=3.9,
                sharex=True,
                sharey="row",
            )
            for (i, j), panel in np.ndenumerate(axes):
                self._panel(panel, table, list(_ROWS)[i], self.versions[j])
                letter = "abcdefghi"[i * len(self.versions) + j]
                panel.set_title(f"({letter}) {NAMES[self.versions[j]]}", loc="left")
            for panel in axes.flat:  # after all are drawn: panels of a row share their y axis
                panel.set_ylim(bottom=0)
            for panel, version in zip(axes[-1], self.versions, strict=True):
                panel.set_xlabel("any T" if version == "certified" else "iterations $T$")
                panel.set_xticks(self.rounds)
            for panel, label in zip(axes[:, 0], _ROWS.values(), strict=True):
                panel.set_ylabel(label)
            handles, labels = axes[0, 0].get_legend_handles_labels()
            figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
        return figure

    def words(self, table_: pd.DataFrame, shared: Case) -> str:
        """Report the first and last T of each version, with a verdict on each."""
        rows = []
        for version in self.versions:
            for alpha in self.alphas:
                free = version == "certified"
                ends = (0,) if free else (self.rounds[0], self.rounds[-1])
                for rounds in ends:
                    infeasible = self._values(table_, version, alpha, rounds, "infeasible")
                    error = self._values(table_, version, alpha, rounds, "cost_error")
                    rows.append(
                        [NAMES[version], f"{alpha:g}", "none" if free else str(rounds)]
                        + [band(infeasible, 2), band(error, 3)]
                    )
        head = ["version", "alpha (MW)", "T", "infeasible models (%)", "cost error (%)"]
        return "\n\n".join(
            [
                "# Infeasible models and cost error against T",
                f"{shared.network.name}, {self.models:,} models, epsilon {self.epsilon:g}, "
                f"{table_.run.max() + 1:,} runs a cell. Mean of the runs, and the band that holds "
                "90% of them. The cost error is the mean over models of the distance between the "
                "cost on released and on real capacities, flows over a limit priced at 3,000 "
                "$/MWh.",
                table(head, rows),
                "\n".join(self._verdict(table_, version) for version in self.versions),
                *failures(table_),
            ]
        )

    def _verdict(self, found: pd.DataFrame, version: str) -> str:
        last = 0 if version == "certified" else self.rounds[-1]
        shares = {a: self._values(found, version, a, last, "infeasible") for a in self.alphas}
        errors = {a: self._values(found, version, a, last, "cost_error") for a in self.alphas}
        none = all((some == 0).all() for some in shares.values())
        when = "" if version == "certified" else f" at T = {last}"
        served = (
            "no model is infeasible in any run, at any alpha"
            if none
            else "infeasible models are "
            + ", ".join(f"{shares[a].mean():.2f}% (alpha {a:g} MW)" for a in self.alphas)
        )
        costs = ", ".join(f"{errors[a].mean():.3f}% (alpha {a:g} MW)" for a in self.alphas)
        return f"- **{NAMES[version]}**{when}: {served}; the mean cost error is {costs}."

    def _panel(self, panel: Axes, table: pd.DataFrame, measure: str, version: str) -> None:
        shades = figure_style.shades(len(self.alphas))
        for alpha, colour, marker in zip(self.alphas, shades, figure_style.MARKS, strict=False):
            label = f"$\\alpha$ = {alpha:g} MW"
            if version == "certified":
                runs = self._values(table, version, alpha, 0, measure)
                ends = [self.rounds[0], self.rounds[-1]]
                figure_style.mean_and_band(
                    panel, ends, [runs, runs], colour=colour, label=label, marker=""
                )
                continue
            figure_style.mean_and_band(
                panel,
                self.rounds,
                [self._values(table, version, alpha, t, measure) for t in self.rounds],
                colour=colour,
                label=label,
                marker=marker,
            )

    def _values(
        self, table: pd.DataFrame, version: str, alpha: float, rounds: int, measure: str
    ) -> NDArray[np.float64]:
        some = table[(table.method == version) & (table.alpha == alpha) & (table.rounds == rounds)]
        return np.asarray(some[measure], dtype=np.float64)
