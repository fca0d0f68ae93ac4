"""The style of the studies' figures: sized for a paper's column, readable without colours."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gridveil.report.picture_style import BLUE, GREEN, GREY, INK, ORANGE
from gridveil.studies.results_folder import write_atomically

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


COLUMN, PAGE = 3.5, 7.16
"""Widths of a column and of a page of an IEEE journal, in inches."""

PURPLE, BLACK = "#CC79A7", INK

MARKS = ("o", "s", "^", "D", "v", "P", "X", "*")
"""Markers that distinguish lines without colours."""

BAND = (5.0, 95.0)
"""The percentiles of the runs that a band spans."""

_DOTS_PER_INCH = 300


@contextmanager
def style() -> Iterator[None]:
    """Set fonts and lines for print, inside this context only."""
    import matplotlib as mpl

    wanted: dict[str, Any] = {
        "font.size": 8,
        "axes.titlesize": 8,
        "axes.labelsize": 8,
        "legend.fontsize": 7,
        "xtick.labelsize": 7,
        "ytick.labelsize": 7,
        "axes.linewidth": 0.6,
        "xtick.major.width": 0.6,
        "ytick.major.width": 0.6,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "grid.alpha": 0.25,
        "grid.linewidth": 0.5,
        "axes.axisbelow": True,
        "legend.frameon": False,
        "lines.linewidth": 1.4,
        "svg.hashsalt": "gridveil",
    }
    with mpl.rc_context(wanted):  # type: ignore[arg-type, unused-ignore]
        yield


def panels(
    rows: int, columns: int, *, width: float, height: float, **shared: Any
) -> tuple[Figure, NDArray[Any]]:
    """Make a figure of several panels, as an array of axes; call it, and draw, within `style`."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=_DOTS_PER_INCH, layout="constrained")
    return figure, np.asarray(figure.subplots(rows, columns, squeeze=False, **shared))


def mean_and_band(
    axes: Axes, x: ArrayLike, runs: list[NDArray[np.float64]], *, colour: str, label: str,
    marker: str = "o",
) -> None:  # fmt: skip
    """Draw a line through the means of runs, and a band that contains 90% of them."""
    place = np.asarray(x, dtype=np.float64)
    low, high = np.array([np.percentile(some, BAND) for some in runs]).T
    means = [some.mean() for some in runs]
    axes.fill_between(place, low, high, color=colour, alpha=0.18, linewidth=0)
    axes.plot(place, means, marker=marker, markersize=3.2, color=colour, label=label)


def frontier(
    axes: Axes, alphas: Sequence[float], epsilons: Sequence[float], *,
    runs: Mapping[tuple[float, float], NDArray[np.float64]], label: Callable[[float], str],
) -> None:  # fmt: skip
    """Draw an error against epsilon on a logarithmic axis, a line and a band for each alpha."""
    for alpha, colour, marker in zip(alphas, shades(len(alphas)), MARKS, strict=False):
        some = [runs[alpha, epsilon] for epsilon in epsilons]
        mean_and_band(axes, epsilons, some, colour=colour, label=label(alpha), marker=marker)
    axes.set_xscale("log")
    axes.set_xticks(list(epsilons), [f"{epsilon:g}" for epsilon in epsilons])
    axes.minorticks_off()
    axes.set_xlabel("$\\varepsilon$")
    axes.set_ylim(bottom=0)


def shades(count: int) -> list[str]:
    """Return blues from light to dark, for a few values of one quantity.

    >>> len(shades(3))
    3
    """
    light, dark = np.array([0x8C, 0xC5, 0xE8]), np.array([0x03, 0x2F, 0x5C])
    steps = np.linspace(0, 1, count) if count > 1 else np.array([0.5])
    mixed = [np.rint(light + step * (dark - light)).astype(int) for step in steps]
    return ["#" + "".join(f"{part:02x}" for part in colour) for colour in mixed]


def save_figure(figure: Figure, folder: Path) -> None:
    """Write ``figure.png`` and ``figure.svg``, the same bytes for the same figure."""
    figure_files: dict[str, Callable[[Path], object]] = {
        "figure.png": lambda path: figure.savefig(path, format="png", metadata={"Software": None}),
        "figure.svg": lambda path: figure.savefig(path, format="svg", metadata={"Date": None}),
    }
    with style():
        for name, write in figure_files.items():
            write_atomically(folder / name, write)


__all__ = [
    "BAND",
    "BLACK",
    "BLUE",
    "COLUMN",
    "GREEN",
    "GREY",
    "MARKS",
    "ORANGE",
    "PAGE",
    "PURPLE",
    "frontier",
    "mean_and_band",
    "panels",
    "save_figure",
    "shades",
    "style",
]
