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

from gridveil.grid.io import Source, module_of
from gridveil.grid.model.network import Network
from gridveil.report.charts import WIDTH
from gridveil.report.picture_style import BLUE, GREEN, GREY, INK, ORANGE, new_figure
from gridveil.report.visible_text import label

Floats = NDArray[np.float64]

_PIVOTS = 120
_SMALL = 600  # buses up to which every pair counts
_ROUNDS = 60


def bus_positions(network: Network) -> Floats:
    """Coordinates of every bus, ``(buses, 2)``, within the unit square or so; no randomness."""
    given = mapped_positions(network)
    return _drawn_positions(network) if given is None else given


def mapped_positions(network: Network) -> Floats | None:
    """The coordinates of the file, within the unit square; None if it has too few of them.

    A bus without any is drawn among its neighbours. Degrees are drawn as on a map: those of
    longitude get narrower towards the poles.
    """
    place = _file_coordinates(network)
    if place is None:
        return None
    known: NDArray[np.bool_] = np.asarray(np.isfinite(place).all(axis=1))
    if 2 * known.sum() < len(known) or len(np.unique(place[known], axis=0)) < 2:
        return None
    x, y = place[known].T
    if (np.abs(x) <= 180).all() and (np.abs(y) <= 90).all():
        place[:, 0] *= np.cos(np.radians(y.mean()))
    return _in_unit_square(_filled(place, known, _graph(network)))


def _file_coordinates(network: Network) -> Floats | None:
    """Return the coordinates of every bus in the file's units, NaN if missing; None without any."""
    source = network.source
    read = None
    if isinstance(source, Source):
        read = getattr(module_of(source.kind), "coordinates", None)
    if read is None:
        return None
    found = np.full((len(network.buses), 2), np.nan)
    given = np.array(read(source.data), dtype=float).reshape(-1, 2)[: len(found)]
    found[: len(given)] = given
    found[~np.isfinite(found).all(axis=1)] = np.nan
    return found


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
_SHADES, _WIDTHS = 7, 8  # of lines on a page: lines of one shade and width are one path
_MARGIN, _TALLEST, _SCALE = 16.0, 460.0, 50.0


def map_svg(network: Network, loading: Floats | None, *, width: Floats) -> str:
    """A network as inline SVG in the colours of the page, light or dark.

    Lines are as thick as `width` (0 to 1) says, and the darker the fuller. Lines that are
    `CONGESTED` have a colour of their own, lie on top and are never thin. All lines are alike if
    there is no loading.
    """
    place = bus_positions(network)
    span = place.max(0) - place.min(0)
    room = np.array([WIDTH, _TALLEST]) - 2 * _MARGIN
    scale = float((room / np.maximum(span, 1e-9)).min())
    tall = scale * span[1] + 2 * _MARGIN
    left = (WIDTH - scale * span[0]) / 2
    x, y = (place - place.min(0)).T * scale
    place = np.column_stack([left + x, tall - _MARGIN - y]).round(1)
    lines = network.branches
    shown = np.flatnonzero(lines.in_service)
    shade = np.full(len(lines), _SHADES - 1) if loading is None else _shade(loading)
    thick = np.rint(width * (_WIDTHS - 1)).astype(int)
    drawn = []
    for kind in np.unique(np.column_stack([shade, thick])[shown], axis=0):
        some = shown[(shade[shown] == kind[0]) & (thick[shown] == kind[1])]
        ends = zip(place[lines.from_bus[some]], place[lines.to_bus[some]], strict=True)
        path = "".join(f"M{a:g} {b:g}L{c:g} {d:g}" for (a, b), (c, d) in ends)
        drawn.append(_stroke(path, *_look(int(kind[0]), kind[1] / (_WIDTHS - 1))))
    made = np.zeros(len(place), dtype=bool)
    made[network.generators.bus[network.generators.in_service]] = True
    size = max(2.2, 52.0 / np.sqrt(len(place)))
    some_load = network.buses.load != 0
    for which, colour in ((~made & ~some_load, "c0"), (~made & some_load, "c1"), (made, "c3")):
        path = "".join(f"M{a:g} {b:g}h0" for a, b in place[which])
        drawn.append(_stroke(path, colour, size, 1.0))
    if loading is not None:
        drawn.append(_scale(tall + 4))
        tall += _SCALE
    return (
        f'<svg class="chart" viewBox="0 0 {WIDTH:g} {tall:g}" aria-hidden="true" '
        f'focusable="false">{"".join(drawn)}</svg>'
    )


def _shade(loading: Floats) -> NDArray[np.int64]:
    """The class of each line by its loading; the last but one is the fullest that is not full."""
    share = np.clip(loading, 0.0, CONGESTED) / CONGESTED
    found = np.minimum((share * _SHADES).astype(np.int64), _SHADES - 1)
    return np.where(loading > CONGESTED, _SHADES, found)


def _look(shade: int, width: float) -> tuple[str, float, float]:
    """Colour, thickness and opacity of the lines of a class."""
    if shade == _SHADES:
        return "c2", max(3.6, 1.7 + 4.4 * width), 1.0
    return "c0", 1.1 + 4.4 * width, 0.3 + 0.7 * shade / (_SHADES - 1)


def _stroke(path: str, colour: str, width: float, opacity: float) -> str:
    look = f'stroke-width="{width:.3g}" stroke-opacity="{opacity:.2g}"'
    return f'<path class="stroke {colour}" {look} d="{path}"/>' if path else ""


def _scale(top: float) -> str:
    """What the shades stand for: a bar from 0% to 90% under the map."""
    step, start = 30.0, (WIDTH - 30.0 * _SHADES) / 2
    parts = [
        f'<rect class="shade c0" x="{start + step * shade:g}" y="{top:.4g}" width="{step:g}" '
        f'height="9" fill-opacity="{_look(shade, 0)[2]:.2g}"/>'
        for shade in range(_SHADES)
    ]
    ends = (start - 8, "end", "0%"), (start + step * _SHADES + 8, "start", "90%")
    for x, anchor, words in ends:
        parts.append(f'<text x="{x:g}" y="{top + 10:.4g}" text-anchor="{anchor}">{words}</text>')
    middle = f'x="{WIDTH / 2:g}" y="{top + 34:.4g}" text-anchor="middle"'
    parts.append(f'<text class="label" {middle}>loading of other lines</text>')
    return "".join(parts)


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
    paint_network(figure, axes, network, loading)
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
        Per unit, one row per model and one column per bus; NaN out of service.
    path, title
        As for `draw_network`.
    """
    figure, axes = new_figure(12.5, 6.0)
    places = figure.add_gridspec(1, 2, width_ratios=(3, 2))
    axes.set_subplotspec(places[0])
    beside = figure.add_subplot(places[1])
    paint_network(figure, axes, network, loading)
    figure.suptitle(label(title))
    on = np.flatnonzero(network.buses.in_service)
    order = on[np.argsort(voltage[:, on].mean(0), kind="stable")]
    place = np.arange(len(order))
    limits = network.buses.v_min[order], network.buses.v_max[order]
    beside.fill_between(place, *limits, color=GREY, alpha=0.15, label="within limits")
    if len(voltage) > 1:
        ends = voltage[:, order].min(0), voltage[:, order].max(0)
        beside.fill_between(place, *ends, color=BLUE, alpha=0.35, label="all models")
    beside.plot(
        place,
        voltage[:, order].mean(0),
        color=BLUE,
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
    network: Network,
    loading: Floats,
) -> None:
    """Draw a network on axes: colours and thickness by loading.

    Lines that are `CONGESTED` have a colour of their own, lie on top and are never thin.
    """
    place = bus_positions(network)
    lines = network.branches
    width = np.clip(loading, 0.0, 1.0)
    shown = np.flatnonzero(lines.in_service)
    full = shown[loading[shown] > CONGESTED]
    free = np.setdiff1d(shown, full)
    drawn = _lines(axes, network, place, free, 0.8 + 3.2 * width[free])
    drawn.set_cmap(_shades())
    drawn.set_array(100 * width[free])
    drawn.set_clim(0, 100 * CONGESTED)
    figure.colorbar(drawn, ax=axes, label="loading of other lines (% of capacity)", shrink=0.8)
    over = _lines(axes, network, place, full, np.maximum(2.6, 1.2 + 3.2 * width[full]))
    over.set(color=ORANGE, zorder=1.5)
    made = np.zeros(len(network.buses), dtype=bool)
    made[network.generators.bus[network.generators.in_service]] = True
    size = max(2.0, 60.0 / np.sqrt(len(place)))
    for some, colour, words in (
        (~made & (network.buses.load == 0), GREY, "bus"),
        (~made & (network.buses.load != 0), BLUE, "load"),
        (made, GREEN, "generation"),
    ):
        if some.any():
            x, y = place[some].T
            axes.scatter(x, y, s=size**2 / 3, color=colour, label=words, zorder=2)
    axes.set(xticks=[], yticks=[], aspect="equal")
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    if len(full):
        axes.plot([], [], color=ORANGE, linewidth=3, label=_FULL)
    axes.legend(
        frameon=False,
        loc="upper center",
        bbox_to_anchor=(0.5, 0.02),
        ncols=4,
        markerscale=max(1, 5 / size),
        labelcolor=INK,
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


def _shades() -> Colormap:
    """Greys for lines that are not congested: the fuller, the further from the paper's colour."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("loading", ("#cfd6dd", "#37424e"))
