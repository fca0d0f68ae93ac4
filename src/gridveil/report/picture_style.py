"""The colours and the style of pictures that matplotlib draws into files.

Pages have charts and maps in their own colours instead: see `charts`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# Okabe and Ito's colours, which people with any kind of colour vision can tell apart.
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#007a5a", "#8a8f98"
INK = "#16202b"


def new_figure(width: float = 7.2, height: float = 4.2) -> tuple[Figure, Axes]:
    """An empty picture in the house style; no window, no global state."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=144, layout="constrained")
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25, linewidth=0.6)
    return figure, axes
