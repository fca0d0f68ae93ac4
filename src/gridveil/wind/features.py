"""Public feature maps: from public columns (wind speed and the like) to regression features.

A feature map is fixed by its settings alone: centres, knots and ranges are given, not learnt, so a
release may publish them.  `RBF() + Columns("direction")` has the features of both.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.polynomial import legendre
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@runtime_checkable
class Features(Protocol):
    """What every feature map offers."""

    @property
    def width(self) -> int:
        """Number of features, `p`."""

    @property
    def names(self) -> tuple[str, ...]:
        """The name of each feature."""

    @property
    def inputs(self) -> tuple[str, ...]:
        """The public columns that it reads."""

    def __call__(self, columns: Mapping[str, NDArray[Any]]) -> Floats:
        """Compute the features: `(rows, p)`."""

    def describe(self) -> dict[str, Any]:
        """Return the settings, ready for JSON."""


class _Map:
    """`a + b` puts the features of `b` after those of `a`."""

    @property
    def names(self) -> tuple[str, ...]:
        """The name of each feature."""
        raise NotImplementedError

    @property
    def width(self) -> int:
        """Number of features."""
        return len(self.names)

    def __add__(self, other: Features) -> Sum:
        return Sum(*_parts(self), *_parts(other))


class _OneColumn(_Map):
    """A map of one public column, made for values from `low` to `high`."""

    low: float
    high: float
    column: str

    @property
    def inputs(self) -> tuple[str, ...]:
        """The public column that it reads."""
        return (self.column,)

    @property
    def reach(self) -> tuple[float, float]:
        """The lowest and highest value that the features tell from others."""
        return self.low, self.high

    @property
    def _ends(self) -> dict[str, float]:
        return {"low": float(self.low), "high": float(self.high)}


@dataclass(frozen=True)
class RBF(_OneColumn):
    """Gaussian bumps `exp(-((x - mu_j) / spread)^2)` with evenly spaced centres.

    Parameters
    ----------
    count
        Number of centres.
    low, high
        First and last centre, in the unit of the column.
    spread
        Width of a bump, in the same unit; the paper's 2 if left out.
    column
        The public column they are computed from.

    Examples
    --------
    >>> RBF(count=2, low=0, high=2)({"speed": np.array([0.0])})
    array([[1.        , 0.36787944]])
    """

    count: int = 5
    low: float = 2.5
    high: float = 12.5
    _: KW_ONLY
    spread: float | None = None
    column: str = "speed"

    def __post_init__(self) -> None:
        """Check the settings."""
        _check_count("count", self.count, 1)
        _check_range(self.low, self.high)
        if self.spread is not None and not 0 < self.spread < np.inf:
            raise ValueError(f"spread is {self.spread}; give a positive width or leave it out")

    @property
    def _width(self) -> float:
        return 2.0 if self.spread is None else float(self.spread)

    @property
    def reach(self) -> tuple[float, float]:
        """From a bump's width below the first centre to one above the last."""
        return self.low - self._width, self.high + self._width

    @property
    def centres(self) -> Floats:
        """The centres `mu_j`."""
        return np.linspace(self.low, self.high, self.count)

    @property
    def names(self) -> tuple[str, ...]:
        """The name of each feature."""
        return tuple(f"rbf({self.column}, {mu:g})" for mu in self.centres)

    def __call__(self, columns: Mapping[str, NDArray[Any]]) -> Floats:
        """Compute the features."""
        away = (_column(columns, self.column)[:, None] - self.centres) / self._width
        away *= -away
        return np.exp(away, out=away)

    def describe(self) -> dict[str, Any]:
        """Return the settings, ready for JSON."""
        settings = {"column": self.column, "centres": self.centres.tolist()}
        return {"features": "rbf"} | settings | {"spread": self._width}


@dataclass(frozen=True)
class Polynomial(_OneColumn):
    """Legendre polynomials of degree 0 to `degree` on `[low, high]`.

    They span all polynomials of that degree and are far better conditioned than powers.  Values
    outside the range are clamped to its ends, where polynomials would run away.
    """

    degree: int
    low: float = 0.0
    high: float = 25.0
    _: KW_ONLY
    column: str = "speed"

    def __post_init__(self) -> None:
        """Check the settings."""
        _check_count("degree", self.degree, 0)
        _check_range(self.low, self.high, strict=True)

    @property
    def names(self) -> tuple[str, ...]:
        """The name of each feature."""
        return tuple(f"legendre({self.column}, {k})" for k in range(self.degree + 1))

    def __call__(self, columns: Mapping[str, NDArray[Any]]) -> Floats:
        """Compute the features."""
        x = np.clip(_column(columns, self.column), self.low, self.high)
        x = 2 * (x - self.low) / (self.high - self.low) - 1
        return np.asarray(legendre.legvander(x, self.degree), dtype=np.float64)

    def describe(self) -> dict[str, Any]:
        """Return the settings, ready for JSON."""
        settings = {"column": self.column, "degree": self.degree}
        return {"features": "legendre"} | settings | self._ends


@dataclass(frozen=True)
class BSpline(_OneColumn):
    """`count` B-splines on evenly spaced knots over `[low, high]`; they sum to one everywhere.

    Values outside the range are clamped to its ends.
    """

    count: int
    low: float = 0.0
    high: float = 25.0
    _: KW_ONLY
    degree: int = 3
    column: str = "speed"
    _spline: Any = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Check the settings and place the knots."""
        from scipy.interpolate import BSpline as Spline  # slow to load

        _check_count("degree", self.degree, 0)
        _check_range(self.low, self.high, strict=True)
        _check_count("count", self.count, self.degree + 1)
        inner = np.linspace(self.low, self.high, self.count - self.degree + 1)
        knots = np.pad(inner, self.degree, mode="edge")
        object.__setattr__(self, "_spline", Spline(knots, np.eye(self.count), self.degree))

    @property
    def names(self) -> tuple[str, ...]:
        """The name of each feature."""
        return tuple(f"bspline({self.column}, {k})" for k in range(self.count))

    def __call__(self, columns: Mapping[str, NDArray[Any]]) -> Floats:
        """Compute the features."""
        x = np.clip(_column(columns, self.column), self.low, self.high)
        return np.asarray(self._spline(x), dtype=np.float64)

    def describe(self) -> dict[str, Any]:
        """Return the settings, ready for JSON."""
        settings = {"column": self.column, "count": self.count, "degree": self.degree}
        return {"features": "bspline"} | settings | self._ends


@dataclass(frozen=True, init=False)
class Columns(_Map):
    """The user's own public columns, each divided by a public scale.

    Parameters
    ----------
    *columns
        Names of public columns; each is one feature.
    scale
        One public divisor for all, or one for each column.

    Examples
    --------
    >>> Columns("temperature", scale=40)({"temperature": np.array([20.0])})
    array([[0.5]])
    """

    columns: tuple[str, ...]
    scale: tuple[float, ...]

    def __init__(self, *columns: str, scale: float | tuple[float, ...] = 1.0) -> None:
        if not columns:
            raise ValueError("no columns named: give at least one public column")
        scales = (scale,) * len(columns) if isinstance(scale, int | float) else tuple(scale)
        if len(scales) != len(columns):
            raise ValueError(f"{len(scales)} scales for {len(columns)} columns: give one for each")
        if not all(0 < s < np.inf for s in scales):
            raise ValueError(f"scale is {scale}; give positive finite numbers")
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "scale", tuple(float(s) for s in scales))

    def __repr__(self) -> str:
        return f"Columns({', '.join(map(repr, self.columns))}, scale={self.scale})"

    @property
    def names(self) -> tuple[str, ...]:
        """The name of each feature."""
        return self.columns

    @property
    def inputs(self) -> tuple[str, ...]:
        """The public columns that it reads."""
        return self.columns

    def __call__(self, columns: Mapping[str, NDArray[Any]]) -> Floats:
        """Compute the features."""
        values = [_column(columns, name) for name in self.columns]
        return np.asarray(np.column_stack(values) / np.array(self.scale), dtype=np.float64)

    def describe(self) -> dict[str, Any]:
        """Return the settings, ready for JSON."""
        return {"features": "columns", "columns": list(self.columns), "scale": list(self.scale)}


@dataclass(frozen=True, init=False)
class Sum(_Map):
    """The features of several maps, one after another; made by `a + b`."""

    parts: tuple[Features, ...]

    def __init__(self, *parts: Features) -> None:
        flat = tuple(part for given in parts for part in _parts(given))
        if not flat:
            raise ValueError("a sum needs at least one feature map")
        object.__setattr__(self, "parts", flat)

    def __repr__(self) -> str:
        return " + ".join(map(repr, self.parts))

    @property
    def names(self) -> tuple[str, ...]:
        """The name of each feature."""
        return tuple(name for part in self.parts for name in part.names)

    @property
    def inputs(self) -> tuple[str, ...]:
        """The public columns that it reads, each once."""
        return tuple(dict.fromkeys(name for part in self.parts for name in part.inputs))

    def __call__(self, columns: Mapping[str, NDArray[Any]]) -> Floats:
        """Compute the features."""
        return np.hstack([part(columns) for part in self.parts])

    def describe(self) -> dict[str, Any]:
        """Return the settings, ready for JSON."""
        return {"features": "sum", "parts": [part.describe() for part in self.parts]}


def _parts(features: Any) -> tuple[Features, ...]:
    if isinstance(features, Sum):
        return features.parts
    if not isinstance(features, Features):
        raise TypeError(f"{features!r} is not a feature map: add RBF, Polynomial, BSpline, Columns")
    return (features,)


def _column(columns: Mapping[str, NDArray[Any]], name: str) -> Floats:
    if name not in columns:
        raise ValueError(f"no public column {name!r}; there are {sorted(columns)}")
    values = np.asarray(columns[name], dtype=np.float64)
    if values.ndim != 1:
        raise ValueError(f"column {name!r} has shape {values.shape}; give a vector")
    if not np.isfinite(values).all():
        raise ValueError(f"column {name!r} has missing or infinite values: drop those rows first")
    return values


def _check_count(name: str, value: int, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name} is {value!r}; give a whole number of at least {least}")


def _check_range(low: float, high: float, strict: bool = False) -> None:
    if not -np.inf < low <= high < np.inf or (strict and low == high):
        raise ValueError(f"the range [{low}, {high}] is empty or not finite: give low < high")


def uncovered(features: Features, column: str, low: float, high: float) -> list[str]:
    """Say of which maps of a column the range leaves out some of its public values."""
    return [
        f"{type(part).__name__} reaches from {part.reach[0]:g} to {part.reach[1]:g}"
        for part in _parts(features)
        if isinstance(part, _OneColumn) and part.column == column
        if low < part.reach[0] or high > part.reach[1]
    ]


def features_from(described: Mapping[str, Any]) -> Features:
    """Make the feature map that `describe` described."""
    kind = described["features"]
    if kind == "sum":
        return Sum(*(features_from(part) for part in described["parts"]))
    if kind == "columns":
        return Columns(*described["columns"], scale=tuple(described["scale"]))
    column = described["column"]
    if kind == "rbf":
        centres = described["centres"]
        spread = described["spread"]
        return RBF(len(centres), centres[0], centres[-1], spread=spread, column=column)
    ends = {"low": described["low"], "high": described["high"], "column": column}
    if kind == "legendre":
        return Polynomial(described["degree"], **ends)
    if kind == "bspline":
        return BSpline(described["count"], degree=described["degree"], **ends)
    raise ValueError(f"there are no features of kind {kind!r}")


def parse_features(text: str) -> Features:
    """Read features as the command line has them: ``rbf(5, 2.5, 12.5) + columns(temperature)``.

    Raises
    ------
    ValueError
        If the text does not name features.
    """
    parts = []
    for piece in text.split("+"):
        kind, _, rest = piece.strip().partition("(")
        given = [word.strip() for word in rest.removesuffix(")").split(",") if word.strip()]
        if kind == "columns":
            parts.append(Columns(*given))
        elif kind in _BY_NAME and rest.endswith(")") and _NUMBERS.fullmatch(",".join(given)):
            parts.append(_BY_NAME[kind](int(given[0]), *map(float, given[1:])))
        else:
            raise ValueError(
                f"{piece.strip()!r} is not a feature map: use rbf(COUNT, LOW, HIGH), polynomial("
                "DEGREE, LOW, HIGH), bspline(COUNT, LOW, HIGH) or columns(NAME, ...), joined by +"
            )
    return parts[0] if len(parts) == 1 else Sum(*parts)


_NUMBERS = re.compile(r"-?\d+(,-?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?){0,2}")
_BY_NAME: Mapping[str, Any] = {"rbf": RBF, "polynomial": Polynomial, "bspline": BSpline}
