"""Pictures that matplotlib draws, for light and for dark pages; from released and public data only.

For plain charts `charts.Chart` is smaller and sharper; a map of a network is easier here.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gridveil.report.parts import Picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Theme:
    """The colours of one kind of page. Blue, orange and green are told apart by everyone."""

    ink: str
    soft: str
    blue: str
    orange: str
    green: str
    grey: str


# Okabe and Ito's colours, which people with any kind of colour vision can tell apart.
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#007a5a", "#8a8f98"
LIGHT = Theme("#16202b", "#4a5866", BLUE, ORANGE, GREEN, GREY)
DARK = Theme("#e8edf3", "#b3bfcb", "#6bb5ec", "#f59a5b", "#4cc9a0", "#8793a0")


def new_figure(
    width: float = 7.2, height: float = 4.2, theme: Theme = LIGHT
) -> tuple[Figure, Axes]:
    """An empty picture in the house style; no window, no global state."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=144, layout="constrained")
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25, linewidth=0.6)
    _colour(figure, theme)
    return figure, axes


def themed(
    draw: Callable[[Figure, Axes, Theme], None],
    *,
    alt: str,
    caption: str = "",
    legend: Sequence[tuple[str, str]] = (),
    width: float = 7.2,
    height: float = 4.2,
) -> Picture:
    """A picture for light and dark pages: ``draw`` is called for each with its colours."""
    addresses = []
    for theme in (LIGHT, DARK):
        figure, axes = new_figure(width, height, theme)
        draw(figure, axes, theme)
        _colour(figure, theme)  # also what was added, such as a scale of colours
        addresses.append(data_address(figure, transparent=True))
    return Picture(addresses[0], alt, caption, dark=addresses[1], legend=legend)


def _colour(figure: Figure, theme: Theme) -> None:
    """Give every axis the theme's colours."""
    if theme is LIGHT:
        return
    for axes in figure.axes:
        axes.set_facecolor("none")
        axes.spines[:].set_color(theme.soft)
        axes.tick_params(colors=theme.soft)
        for text in (axes.xaxis.label, axes.yaxis.label, axes.title):
            text.set_color(theme.ink)


def data_address(figure: Figure, *, transparent: bool = False) -> str:
    """A picture as text that stands inside a page."""
    stream = io.BytesIO()
    figure.savefig(stream, format="png", metadata={"Software": None}, transparent=transparent)
    return "data:image/png;base64," + base64.b64encode(stream.getvalue()).decode()
