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
from collections.abc import Callable, Sequence
from html import escape
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Vector = NDArray[np.float64]

WIDTH, HEIGHT = 640.0, 380.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 88.0, 28.0, 14.0, 62.0
_LAYERS = 8  # dots in one path do not add up their opacity; in several they show where many are


class Chart:
    """Two axes, and what is drawn on them in the order of the calls.

    Parameters
    ----------
    x_label, y_label
        With their units.
    x_range, y_range
        The ends of the axes.
    log_x
        A logarithmic horizontal axis; its range must be positive.
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
        height: float = HEIGHT,
    ) -> None:
        self._height = height
        self._labels = (x_label, y_label)
        self._transform: Callable[[Any], Any] = np.log10 if log_x else lambda values: values
        (x_low, x_high), self._y_ends = _apart(*x_range), _apart(*y_range)
        self._x_ticks = _decades(x_low, x_high) if log_x else ticks(x_low, x_high)
        self._y_ticks = ticks(*self._y_ends)
        self._x_ends = float(self._transform(x_low)), float(self._transform(x_high))
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
        self.line([x, x], self._y_ends, colour, dashed=True)

    def svg(self) -> str:
        """The picture; what it shows in words is for its `Picture` to say."""
        return (
            f'<svg class="chart" viewBox="0 0 {WIDTH:g} {self._height:g}" aria-hidden="true" '
            f'focusable="false">{self._axes()}{"".join(self._parts)}</svg>'
        )

    def _places(self, x: ArrayLike, y: ArrayLike) -> Vector:
        """Pairs in the units of the picture, kept inside it."""
        low, high = self._x_ends
        bottom, top = self._y_ends
        share_x = (self._transform(np.asarray(x, float)) - low) / (high - low)
        share_y = (np.asarray(y, float) - bottom) / (top - bottom)
        across = _LEFT + np.clip(share_x, 0, 1) * (WIDTH - _LEFT - _RIGHT)
        down = _TOP + (1 - np.clip(share_y, 0, 1)) * (self._height - _TOP - _BOTTOM)
        return np.asarray(np.column_stack([across, down]).round(1))

    def _axes(self) -> str:
        parts = []
        right, floor = WIDTH - _RIGHT, self._height - _BOTTOM
        for value in self._y_ticks:
            level = self._places([self._x_ticks[0]], [value])[0][1]
            parts.append(f'<path class="grid" d="M{_LEFT:g} {level:g}H{right:g}"/>')
            parts.append(_text(_LEFT - 10, level + 5, _show(value, self._y_ticks), "end"))
        for value in self._x_ticks:
            across = self._places([value], [self._y_ends[0]])[0][0]
            parts.append(f'<path class="axis" d="M{across:g} {floor:g}v5"/>')
            parts.append(_text(across, floor + 22, _show(value, self._x_ticks), "middle"))
        parts.append(f'<path class="axis" d="M{_LEFT:g} {floor:g}H{right:g}"/>')
        middle = (_LEFT + right) / 2
        parts.append(_text(middle, self._height - 10, self._labels[0], "middle", "label"))
        centre = (_TOP + floor) / 2
        turn = f' transform="rotate(-90 18 {centre:g})"'
        parts.append(_text(18, centre, self._labels[1], "middle", "label", turn))
        return "".join(parts)


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
    """The range itself, or a little around it where its ends are the same."""
    if high > low:
        return float(low), float(high)
    reach = 0.5 * (abs(low) or 1.0)
    return low - reach, low + reach


def _decades(low: float, high: float) -> list[float]:
    """1, 2 and 5 times powers of ten inside a range; its ends need not be among them."""
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    every = [factor * 10.0**exponent for exponent in exponents for factor in (1.0, 2.0, 5.0)]
    return [value for value in every if low * (1 - 1e-9) <= value <= high * (1 + 1e-9)]


def _show(value: float, among: Sequence[float]) -> str:
    largest = max(abs(one) for one in among)
    return f"{value:,.0f}" if largest >= 10_000 else f"{value:,.10g}"


def _text(x: float, y: float, words: str, anchor: str, kind: str = "tick", more: str = "") -> str:
    return (
        f'<text class="{kind}" x="{x:g}" y="{y:g}" text-anchor="{anchor}"{more}>'
        f"{escape(words)}</text>"
    )
