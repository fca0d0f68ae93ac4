"""Pictures for the report, drawn from released and public data only."""

from __future__ import annotations

import base64
import io
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, which people with any kind of colour vision can tell apart.
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#8a8f98"

Vector = NDArray[np.float64]


def new_figure(width: float = 7.2, height: float = 4.2) -> tuple[Figure, Axes]:
    """An empty picture in the house style; no window, no global state."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=144, layout="constrained")
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25, linewidth=0.6)
    return figure, axes


def scatter_with_curve(
    x: Vector, y: Vector, curve_x: Vector, curve_y: Vector, *, x_label: str, y_label: str
) -> str:
    """Released records as dots and their fitted curve as a line, as a ``data:`` address."""
    figure, axes = new_figure()
    axes.plot(x, y, ".", color=BLUE, markersize=3, alpha=0.45, label="released records")
    axes.plot(curve_x, curve_y, "-", color=ORANGE, linewidth=2, label="regression on them")
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    axes.legend(frameon=False, markerscale=3)
    return data_address(figure)


def data_address(figure: Figure) -> str:
    """A picture as text that stands inside a page."""
    stream = io.BytesIO()
    figure.savefig(stream, format="png", metadata={"Software": None})
    return "data:image/png;base64," + base64.b64encode(stream.getvalue()).decode()
