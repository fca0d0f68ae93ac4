"""Charts as inline SVG: sharp on paper, and in the colours of the page, light or dark.

Colours are classes (``c0`` grey, ``c1`` to ``c4``) that the page's style gives a value. Texts are
escaped; coordinates are rounded to a tenth of a unit.

>>> chart = Chart("wind speed (m/s)", "power (kW)", x_range=(0, 10), y_range=(0, 100))
>>> chart.line([0, 10], [0, 100], "c2")
>>> chart.svg()[:4]
'<svg'
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

import numpy as np
from numpy.typing import ArrayLike, NDArray

Vector = NDArray[np.float64]

WIDTH, HEIGHT = 640.0, 380.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 88.0, 28.0, 14.0, 62.0
_DECADES, _MOST_TICKS = 4, 9  # of a logarithmic axis
_LAYERS = 8  # dots in one path do not add up their opacity; in several they show where many are


class Chart:
    """Two axes, and what is drawn on them in the order of the calls.

    Parameters
    ----------
    x_label, y_label
        With their units.
    x_range, y_range
        The ends of the axes.
    log_x, log_y
        Logarithmic axes; their ranges must be positive.
    height
        In the units of the picture, which is 640 wide.
    """

    def __init__(
        self,
        x_label: str,
        y_label: str,
        *,
        x_range: tuple[float, float],
        y_range: tuple[float, float],
        log_x: bool = False,
        log_y: bool = False,
        height: float = HEIGHT,
    ) -> None:
        self._height = height
        self._labels = (x_label, y_label)
        self._x, self._y = _Axis(*_apart(*x_range), log_x), _Axis(*_apart(*y_range), log_y)
        self._parts: list[str] = []

    def dots(self, x: ArrayLike, y: ArrayLike, colour: str, *, size: float = 3.2) -> None:
        """A dot for every pair."""
        places = self._places(x, y)
        for layer in range(min(_LAYERS, len(places))):
            path = "".join(f"M{a:g} {b:g}h0" for a, b in places[layer::_LAYERS])
            self._parts.append(f'<path class="dots {colour}" stroke-width="{size:g}" d="{path}"/>')

    def line(self, x: ArrayLike, y: ArrayLike, colour: str, *, dashed: bool = False) -> None:
        """A line through every pair."""
        path = "L".join(f"{a:g} {b:g}" for a, b in self._places(x, y))
        dash = ' stroke-dasharray="7 5"' if dashed else ""
        self._parts.append(f'<path class="line {colour}" d="M{path}"{dash}/>')

    def band(self, x: ArrayLike, low: ArrayLike, high: ArrayLike, colour: str) -> None:
        """The area between two lines."""
        there, back = self._places(x, low), self._places(x, high)[::-1]
        path = "L".join(f"{a:g} {b:g}" for a, b in np.concatenate([there, back]))
        self._parts.append(f'<path class="band {colour}" d="M{path}Z"/>')

    def steps(self, edges: ArrayLike, heights: ArrayLike, colour: str) -> None:
        """The outline of a histogram, filled."""
        e, h = np.asarray(edges, float), np.asarray(heights, float)
        x = np.repeat(e, 2)
        y = np.concatenate([[0.0], np.repeat(h, 2), [0.0]])
        path = "L".join(f"{a:g} {b:g}" for a, b in self._places(x, y))
        self._parts.append(f'<path class="steps {colour}" d="M{path}"/>')

    def rule(self, x: float, colour: str) -> None:
        """A dashed vertical line over the whole height."""
        self.line([x, x], [self._y.low, self._y.high], colour, dashed=True)

    def svg(self) -> str:
        """The picture; what it shows in words is for its `Picture` to say."""
        return (
            f'<svg class="chart" viewBox="0 0 {WIDTH:g} {self._height:g}" aria-hidden="true" '
            f'focusable="false">{self._axes()}{"".join(self._parts)}</svg>'
        )

    def _places(self, x: ArrayLike, y: ArrayLike) -> Vector:
        """Pairs in the units of the picture, kept inside it."""
        across = _LEFT + self._x.shares(x) * (WIDTH - _LEFT - _RIGHT)
        down = _TOP + (1 - self._y.shares(y)) * (self._height - _TOP - _BOTTOM)
        return np.asarray(np.column_stack([across, down]).round(1))

    def _axes(self) -> str:
        parts = []
        right, floor = WIDTH - _RIGHT, self._height - _BOTTOM
        for value in self._y.ticks:
            level = self._places([self._x.low], [value])[0][1]
            parts.append(f'<path class="grid" d="M{_LEFT:g} {level:g}H{right:g}"/>')
            parts.append(_text(_LEFT - 10, level + 5, _show(value, self._y.ticks), "end"))
        for value in self._x.ticks:
            across = self._places([value], [self._y.low])[0][0]
            parts.append(f'<path class="axis" d="M{across:g} {floor:g}v5"/>')
            parts.append(_text(across, floor + 22, _show(value, self._x.ticks), "middle"))
        parts.append(f'<path class="axis" d="M{_LEFT:g} {floor:g}H{right:g}"/>')
        middle = (_LEFT + right) / 2
        parts.append(_text(middle, self._height - 10, self._labels[0], "middle", "label"))
        centre = (_TOP + floor) / 2
        turn = f' transform="rotate(-90 18 {centre:g})"'
        parts.append(_text(18, centre, self._labels[1], "middle", "label", turn))
        return "".join(parts)


class _Axis:
    """Values between two ends, linear or by powers of ten."""

    def __init__(self, low: float, high: float, log: bool) -> None:
        self.low, self.high, self._log = low, high, log
        self.ticks = _decades(low, high) if log else ticks(low, high)

    def shares(self, values: ArrayLike) -> Vector:
        """How far along the axis values lie, from 0 to 1; those beyond its ends at the end."""
        inside = np.clip(np.asarray(values, float), self.low, self.high)
        low, high = self.low, self.high
        if self._log:
            inside, low, high = np.log10(inside), math.log10(low), math.log10(high)
        return np.asarray((inside - low) / (high - low))


def log_range(*values: ArrayLike) -> tuple[float, float] | None:
    """The ends of a logarithmic axis for values that need one, or None.

    They do if they span more than a decade and a half: on a linear axis nearly all of them
    would lie in one corner. Zeros, and what is four decades below the largest, go to the lower end;
    negative values have no place on such an axis.

    >>> log_range([10, 5000]), log_range([10, 200]), log_range([-1, 5000]), log_range([0, 5])
    ((10.0, 5000.0), None, None, None)
    """
    every = np.concatenate([np.ravel(np.asarray(one, float)) for one in values])
    positive = every[every > 0]
    if len(positive) == 0 or (every < 0).any():
        return None
    high = float(positive.max())
    low = max(float(positive.min()), high / 10**_DECADES)
    return (low, high) if high > low * 10**1.5 else None


def scatter(x: ArrayLike, y: ArrayLike, x_label: str, y_label: str) -> str:
    """Two quantities of one unit against each other, with the line on which they agree."""
    every = np.concatenate([np.ravel(np.asarray(one, float)) for one in (x, y)])
    log = log_range(every)
    ends = log or (float(every.min()), float(every.max()))
    chart = Chart(
        x_label, y_label, x_range=ends, y_range=ends, log_x=log is not None, log_y=log is not None
    )
    chart.line(ends, ends, "c0", dashed=True)
    chart.dots(x, y, "c1", size=5.0)
    return chart.svg()


def histogram(values: ArrayLike, x_label: str, y_label: str, colour: str, *, bins: int = 25) -> str:
    """How often values occur; in classes of equal ratio if they span decades."""
    some = np.asarray(values, float)
    log = log_range(some)
    low, high = log or _apart(float(some.min()), float(some.max()))
    edges = np.geomspace(low, high, bins + 1) if log else np.linspace(low, high, bins + 1)
    heights = np.histogram(np.clip(some, edges[0], edges[-1]), edges)[0]
    chart = Chart(
        x_label,
        y_label,
        x_range=(float(edges[0]), float(edges[-1])),
        y_range=(0.0, 1.05 * float(heights.max())),
        log_x=log is not None,
        height=260.0,
    )
    chart.steps(edges, heights, colour)
    return chart.svg()


def ticks(low: float, high: float, most: int = 6) -> list[float]:
    """A few round numbers between two others.

    >>> ticks(0.3, 9.7)
    [2.0, 4.0, 6.0, 8.0]
    """
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(f * power for f in (1.0, 2.0, 2.5, 5.0, 10.0) if f * power >= rough * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(step * place, 12) for place in range(first, last + 1)]


def _apart(low: float, high: float) -> tuple[float, float]:
    """The range itself, or a little around it if its ends are the same."""
    if high > low:
        return float(low), float(high)
    reach = 0.5 * (abs(low) or 1.0)
    return low - reach, low + reach


def _decades(low: float, high: float) -> list[float]:
    """1, 2 and 5 times powers of ten inside a range, or the powers alone if these are many."""
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for factors in ((1.0, 2.0, 5.0), (1.0,)):
        every = [float(f"{factor}e{exponent}") for exponent in exponents for factor in factors]
        found = [value for value in every if low * (1 - 1e-9) <= value <= high * (1 + 1e-9)]
        if len(found) <= _MOST_TICKS:
            break
    return found


def _show(value: float, among: Sequence[float]) -> str:
    largest = max(abs(one) for one in among)
    return f"{value:,.0f}" if largest >= 10_000 else f"{value:,.10g}"


def _text(x: float, y: float, words: str, anchor: str, kind: str = "tick", more: str = "") -> str:
    return (
        f'<text class="{kind}" x="{x:g}" y="{y:g}" text-anchor="{anchor}"{more}>'
        f"{escape(words)}</text>"
    )
