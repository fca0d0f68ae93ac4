"""Measure how accurate a grid release will be, to choose epsilon and alpha before spending any."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gridveil.studies import figure_style
from gridveil.studies.grid_case import MEASURES, NAMES, UNSEEN_MEASURES, Case, GridStudy, make_case
from gridveil.studies.study_plan import Cell
from gridveil.studies.summary_text import listed, table

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

_PANELS = {
    "capacity_error": ("(a) error of a capacity", "MW"),
    "cost_error": ("(b) error of a cost", "%"),
    "price_error": ("(c) error of a nodal price", "\\$/MWh"),
}


@dataclass(frozen=True)
class FrontierGrid(GridStudy):
    """Errors of a release of capacities against epsilon, for several alphas, on a public network.

    Parameters
    ----------
    source
        A built-in network, or a file; `digest` is that of the file.
    """

    name = "frontier"
    measures: ClassVar = {**MEASURES, **UNSEEN_MEASURES}

    epsilons: tuple[float, ...] = (0.25, 0.5, 1.0, 2.0, 4.0)
    alphas: tuple[float, ...] = (5.0, 15.0, 30.0)
    method: str = "certified"
    source: str = "rts96-paper"
    digest: str | None = None
    models: int = 1000
    spread: float = 0.125
    rounds: int = 10
    data_seed: int = 0

    def settings(self) -> dict[str, Any]:
        """All settings except the path of a file, which may be moved."""
        known = super().settings()
        return known if self.digest is None else {**known, "source": "a file"}

    def cells(self) -> list[Cell]:
        """One cell for each alpha and epsilon."""
        return [
            {"method": self.method, "alpha": alpha, "epsilon": epsilon, "rounds": self.rounds}
            for alpha in self.alphas
            for epsilon in self.epsilons
        ]

    def prepare(self) -> Case:
        """Make the public network, and models of it."""
        return make_case(self.source, self.models, self.data_seed, self.spread)

    def draw(self, table: pd.DataFrame, shared: Case) -> Figure:
        """Draw three errors against epsilon, one line per alpha."""
        settings = [(alpha, epsilon) for alpha in self.alphas for epsilon in self.epsilons]
        with figure_style.style():
            figure, axes = figure_style.panels(
                1, 3, width=figure_style.PAGE, height=2.4, sharex=True
            )
            for panel, (measure, (title, unit)) in zip(axes[0], _PANELS.items(), strict=True):
                figure_style.frontier(
                    panel,
                    self.alphas,
                    self.epsilons,
                    runs={at: self._values(table, *at, measure) for at in settings},
                    label=lambda alpha: f"$\\alpha$ = {alpha:g} MW",
                )
                panel.set_title(title, loc="left")
                panel.set_ylabel(unit)
            handles, labels = axes[0, 0].get_legend_handles_labels()
            figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
        return figure

    def words(self, table_: pd.DataFrame, shared: Case) -> str:
        """Report the errors in a table, and how many models are not served."""
        measures = ("capacity_error", "cost_error", "price_error")
        rows = [
            [f"{epsilon:g}"]
            + [
                " / ".join(
                    f"{self._values(table_, alpha, epsilon, m).mean():.3g}" for m in measures
                )
                for alpha in self.alphas
            ]
            for epsilon in self.epsilons
        ]
        capacity = shared.network.branches.capacity
        usual = np.median(capacity[np.isfinite(capacity)])
        return "\n\n".join(
            [
                "# Accuracy against epsilon and alpha: grid",
                f"{shared.network.name}: {len(capacity):,} lines, half of them below {usual:g} MW; "
                f"{self.models:,} models; method {NAMES[self.method]}; {table_.run.max() + 1:,} "
                "runs a cell. Mean errors: of a capacity (MW) / of a cost (%) / of a nodal price "
                "($/MWh).",
                table(["epsilon", *(f"alpha {a:g} MW" for a in self.alphas)], rows),
                self._served(table_),
                "Choose by these figures, which hold nothing private, and never by trying on the "
                "real network.",
            ]
        )

    def _served(self, found: pd.DataFrame) -> str:
        sentences = []
        for column, what in (
            ("infeasible", "models of the population"),
            ("unseen_infeasible", "models that the release did not see"),
        ):
            worst = found.groupby("alpha")[column].mean()
            if (worst == 0).all():
                sentences.append(f"- No {what} are infeasible in any run.")
            else:
                shares = [f"{worst[a]:.2g}% (alpha {a:g} MW)" for a in self.alphas]
                sentences.append(f"- Infeasible {what}, on average: {listed(shares)}.")
        return "\n".join(sentences)

    def _values(
        self, table: pd.DataFrame, alpha: float, epsilon: float, measure: str
    ) -> NDArray[np.float64]:
        some = table[(table.alpha == alpha) & (table.epsilon == epsilon)]
        return np.asarray(some[measure], dtype=np.float64)
