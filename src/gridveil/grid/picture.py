"""A picture of a network: how loaded each line is, and where power is made and used.

Buses are drawn at their coordinates, if the file has them. Without coordinates buses are drawn
close if few branches lie between. Distances are numbers of branches. Pivot scaling (classical
scaling of the distances to some buses) gives a start at any size; on networks of a few hundred
buses it is improved by stress majorisation, which makes distances in the picture follow those in
the network.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from gridveil.grid.io.places import file_places
from gridveil.grid.model.network import Network
from gridveil.report.labels import label
from gridveil.report.pictures import LIGHT, Theme, new_figure

Floats = NDArray[np.float64]

_PIVOTS = 120
_SMALL = 600  # buses up to which every pair counts
_ROUNDS = 60


def bus_positions(network: Network) -> Floats:
    """Coordinates of every bus, ``(buses, 2)``, within the unit square or so; no randomness."""
    given = mapped_positions(network)
    return _drawn_positions(network) if given is None else given


def mapped_positions(network: Network) -> Floats | None:
    """The coordinates of the file, within the unit square; None where it has too few of them.

    A bus without any is drawn among its neighbours. Degrees are drawn as on a map: those of
    longitude get narrower towards the poles.
    """
    place = file_places(network.source, len(network.buses))
    if place is None:
        return None
    known: NDArray[np.bool_] = np.asarray(np.isfinite(place).all(axis=1))
    if 2 * known.sum() < len(known) or len(np.unique(place[known], axis=0)) < 2:
        return None
    x, y = place[known].T
    if (np.abs(x) <= 180).all() and (np.abs(y) <= 90).all():
        place[:, 0] *= np.cos(np.radians(y.mean()))
    return _in_unit_square(_filled(place, known, _graph(network)))


def _filled(place: Floats, known: NDArray[np.bool_], graph: csr_array[np.float64]) -> Floats:
    """Places for all: those without one go to the mean of neighbours that have one."""
    middle, place = place[known].mean(axis=0), np.where(known[:, None], place, 0.0)
    while not known.all():
        weight = graph @ known.astype(float)
        reached = ~known & (weight > 0)
        if not reached.any():
            place[~known] = middle
            break
        place[reached] = np.asarray(graph @ place)[reached] / weight[reached, None]
        known = known | reached
    return place


def _drawn_positions(network: Network) -> Floats:
    count = len(network.buses)
    if count < 3:
        return np.column_stack([np.linspace(0, 1, count), np.zeros(count)])
    graph = _graph(network)
    pivots = _spread_out(graph, min(_PIVOTS, count))
    start = _pivot_scaling(_finite(dijkstra(graph, indices=pivots, unweighted=True)))
    if count <= _SMALL:
        start = _majorise(start, _finite(dijkstra(graph, unweighted=True)))
    return _in_unit_square(start)


def _in_unit_square(place: Floats) -> Floats:
    low, high = place.min(0), place.max(0)
    return np.asarray((place - low) / max(float((high - low).max()), 1e-12))


def _graph(network: Network) -> csr_array[np.float64]:
    lines = network.branches
    some = lines.in_service
    ends = np.concatenate([lines.from_bus[some], lines.to_bus[some]])
    others = np.concatenate([lines.to_bus[some], lines.from_bus[some]])
    size = len(network.buses)
    return csr_array((np.ones(len(ends)), (ends, others)), shape=(size, size))


def _spread_out(graph: csr_array[np.float64], count: int) -> NDArray[np.int64]:
    """Buses far from each other: each next one is the farthest from those before."""
    pivots = [0]
    nearest = _finite(dijkstra(graph, indices=[0], unweighted=True))[0]
    while len(pivots) < count:
        pivots.append(int(nearest.argmax()))
        distance = _finite(dijkstra(graph, indices=[pivots[-1]], unweighted=True))[0]
        nearest = np.minimum(nearest, distance)
    return np.array(pivots)


def _finite(distance: Floats) -> Floats:
    """Islands are drawn a little further apart than anything connected."""
    reached = distance[np.isfinite(distance)]
    return np.where(np.isfinite(distance), distance, reached.max(initial=0.0) + 2)


def _pivot_scaling(distance: Floats) -> Floats:
    square = distance.T**2
    centred = square - square.mean(0) - square.mean(1, keepdims=True) + square.mean()
    left, _, _ = np.linalg.svd(-centred / 2, full_matrices=False)
    place = left[:, :2] * np.sqrt(len(left))
    # Buses at the end of equal chains would lie on top of each other: fan them out a little.
    turn = np.arange(len(place)) * 2.399963
    return np.asarray(place + 1e-3 * np.column_stack([np.cos(turn), np.sin(turn)]))


def _majorise(place: Floats, distance: Floats) -> Floats:
    """Lower the stress, the weighted sum of squares of (drawn - real) distances."""
    weight = 1 / np.maximum(distance, 1) ** 2
    np.fill_diagonal(weight, 0.0)
    laplacian = np.diag(weight.sum(1)) - weight
    inverse = np.linalg.pinv(laplacian, hermitian=True)
    place = place * distance.mean() / max(float(np.abs(place).mean()), 1e-12)
    for _ in range(_ROUNDS):
        drawn = np.linalg.norm(place[:, None] - place[None], axis=2)
        pull = weight * distance / np.maximum(drawn, 1e-9)
        np.fill_diagonal(pull, 0.0)
        place = inverse @ ((np.diag(pull.sum(1)) - pull) @ place)
    return place


if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import LineCollection
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure

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


def draw_ac_network(
    network: Network, loading: Floats, voltage: Floats, path: Path, *, title: str
) -> None:
    """Draw what AC power flow found to a PNG or SVG file: loading on the map, voltages beside it.

    Parameters
    ----------
    network
        What to draw.
    loading
        MVA over the rating of each branch; 0 for lines without one.
    voltage
        Per unit, one row per model and one column a bus; NaN out of service.
    path, title
        As for `draw_network`.
    """
    figure, axes = new_figure(12.5, 6.0)
    places = figure.add_gridspec(1, 2, width_ratios=(3, 2))
    axes.set_subplotspec(places[0])
    beside = figure.add_subplot(places[1])
    paint_network(figure, axes, LIGHT, network, loading, width=np.clip(loading, 0.0, 1.0))
    figure.suptitle(label(title))
    on = np.flatnonzero(network.buses.in_service)
    order = on[np.argsort(voltage[:, on].mean(0), kind="stable")]
    place = np.arange(len(order))
    limits = network.buses.v_min[order], network.buses.v_max[order]
    beside.fill_between(place, *limits, color=LIGHT.grey, alpha=0.15, label="within limits")
    if len(voltage) > 1:
        ends = voltage[:, order].min(0), voltage[:, order].max(0)
        beside.fill_between(place, *ends, color=LIGHT.blue, alpha=0.35, label="all models")
    beside.plot(
        place,
        voltage[:, order].mean(0),
        color=LIGHT.blue,
        label="mean voltage" if len(voltage) > 1 else "voltage",
    )
    beside.set(xlabel="buses by their voltage", ylabel="voltage (p.u.)")
    beside.spines[["top", "right"]].set_visible(False)
    beside.grid(alpha=0.25, linewidth=0.6)
    beside.legend(frameon=False, loc="lower right")
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
