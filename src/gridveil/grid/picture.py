"""A picture of a network: how loaded each line is, and where power is made and used."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gridveil.grid.layout import bus_positions
from gridveil.grid.network import Network
from gridveil.report.pictures import BLUE, GREY, ORANGE, new_figure

Floats = NDArray[np.float64]


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
    from matplotlib.collections import LineCollection

    figure, axes = new_figure(8.0, 6.0)
    place = bus_positions(network)
    lines = network.branches
    shown = np.flatnonzero(lines.in_service)
    ends = np.stack([place[lines.from_bus[shown]], place[lines.to_bus[shown]]], axis=1)
    share = np.clip(loading[shown], 0.0, 1.0)
    drawn = LineCollection(
        list(ends), cmap="viridis_r", linewidths=0.6 + 2.4 * share, zorder=1, capstyle="round"
    )
    drawn.set_array(100 * share)
    drawn.set_clim(0, 100)
    axes.add_collection(drawn)
    figure.colorbar(drawn, ax=axes, label="loading of the line (% of capacity)", shrink=0.8)
    made = np.zeros(len(network.buses), dtype=bool)
    made[network.generators.bus[network.generators.in_service]] = True
    size = max(2.0, 60.0 / np.sqrt(len(place)))
    for some, colour, label in (
        (~made & (network.buses.load == 0), GREY, "bus"),
        (~made & (network.buses.load != 0), BLUE, "load"),
        (made, ORANGE, "generation"),
    ):
        if some.any():
            x, y = place[some].T
            axes.scatter(x, y, s=size**2 / 3, color=colour, label=label, zorder=2)
    axes.set(title=title, xticks=[], yticks=[], aspect="equal")
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    axes.legend(
        frameon=False,
        loc="upper center",
        bbox_to_anchor=(0.5, 0.02),
        ncols=3,
        markerscale=max(1, 5 / size),
    )
    figure.savefig(path)
