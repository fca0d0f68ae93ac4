"""A picture of a network: how loaded each line is, and where power is made and used."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gridveil.grid.layout import bus_positions
from gridveil.grid.network import Network
from gridveil.report.labels import label
from gridveil.report.pictures import LIGHT, Theme, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import LineCollection
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]

CONGESTED = 0.9
"""Loading above which a line stands out in a picture."""
_FULL = "line above 90%"


def draw_network(network: Network, loading: Floats, path: Path, *, title: str) -> None:
    """Draw a network to a PNG or SVG file.

    Parameters
    ----------
    network
        What to draw.
    loading
        Flow over capacity of each branch, 0 to 1 and beyond; 0 for lines without a limit.
    path
        The file; its suffix says the format.
    title
        Above the picture.
    """
    figure, axes = new_figure(8.0, 6.0)
    paint_network(figure, axes, LIGHT, network, loading, width=np.clip(loading, 0.0, 1.0))
    axes.set_title(label(title))
    figure.savefig(path)


def paint_network(
    figure: Figure,
    axes: Axes,
    theme: Theme,
    network: Network,
    loading: Floats | None,
    *,
    width: Floats,
    legend: bool = True,
) -> None:
    """Draw a network on axes: colours by loading, lines as thick as `width` (0 to 1) says.

    Lines that are `CONGESTED` have a colour of their own, lie on top and are never thin. Lines are
    grey where there is no loading. A page that explains colours in its own, readable letters wants
    no ``legend``.
    """
    place = bus_positions(network)
    lines = network.branches
    shown = np.flatnonzero(lines.in_service)
    full = np.zeros(0, dtype=np.int64) if loading is None else shown[loading[shown] > CONGESTED]
    free = np.setdiff1d(shown, full)
    drawn = _lines(axes, network, place, free, 0.8 + 3.2 * width[free])
    if loading is None:
        drawn.set_color(theme.grey)
    else:
        drawn.set_cmap(_shades(theme))
        drawn.set_array(100 * np.clip(loading[free], 0.0, 1.0))
        drawn.set_clim(0, 100 * CONGESTED)
        figure.colorbar(drawn, ax=axes, label="loading of other lines (% of capacity)", shrink=0.8)
        over = _lines(axes, network, place, full, np.maximum(2.6, 1.2 + 3.2 * width[full]))
        over.set(color=theme.orange, zorder=1.5)
    made = np.zeros(len(network.buses), dtype=bool)
    made[network.generators.bus[network.generators.in_service]] = True
    size = max(2.0, 60.0 / np.sqrt(len(place)))
    for some, colour, words in (
        (~made & (network.buses.load == 0), theme.grey, "bus"),
        (~made & (network.buses.load != 0), theme.blue, "load"),
        (made, theme.green, "generation"),
    ):
        if some.any():
            x, y = place[some].T
            axes.scatter(x, y, s=size**2 / 3, color=colour, label=words, zorder=2)
    axes.set(xticks=[], yticks=[], aspect="equal")
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    if not legend:
        return
    if len(full):
        axes.plot([], [], color=theme.orange, linewidth=3, label=_FULL)
    axes.legend(
        frameon=False,
        loc="upper center",
        bbox_to_anchor=(0.5, 0.02),
        ncols=4,
        markerscale=max(1, 5 / size),
        labelcolor=theme.ink,
    )


def _lines(
    axes: Axes, network: Network, place: Floats, some: NDArray[np.int64], widths: Floats
) -> LineCollection:
    from matplotlib.collections import LineCollection

    lines = network.branches
    ends = np.stack([place[lines.from_bus[some]], place[lines.to_bus[some]]], axis=1)
    drawn = LineCollection(list(ends), linewidths=widths, zorder=1, capstyle="round")
    axes.add_collection(drawn)
    return drawn


def _shades(theme: Theme) -> Colormap:
    """Greys for lines that are not congested: the fuller, the further from the paper's colour."""
    from matplotlib.colors import LinearSegmentedColormap

    ends = ("#cfd6dd", "#37424e") if theme is LIGHT else ("#3b4754", "#dfe6ee")
    return LinearSegmentedColormap.from_list("loading", ends)
