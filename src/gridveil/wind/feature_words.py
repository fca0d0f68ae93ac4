"""Features as words: from the statement's description, and from the command line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gridveil.wind.features import RBF, BSpline, Columns, Features, Polynomial, Sum


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
        return RBF(len(centres), centres[0], centres[-1], described["spread"], column)
    ends = {"low": described["low"], "high": described["high"], "column": column}
    if kind == "legendre":
        return Polynomial(described["degree"], **ends)
    if kind == "bspline":
        return BSpline(described["count"], described["degree"], **ends)
    raise ValueError(f"there are no features of kind {kind!r}")


def parse_features(text: str) -> Features:
    """Read features as the command line has them: ``rbf(5, 2.5, 12.5) + columns(temperature)``.

    Raises
    ------
    ValueError
        Where the text names no features.
    """
    parts = []
    for piece in text.split("+"):
        kind, _, rest = piece.strip().partition("(")
        given = [word.strip() for word in rest.removesuffix(")").split(",") if word.strip()]
        if kind == "columns":
            parts.append(Columns(*given))
        elif kind in _BY_NAME and rest.endswith(")") and 1 <= len(given) <= 3:
            numbers = dict(zip(("low", "high"), map(float, given[1:]), strict=False))
            parts.append(_BY_NAME[kind](int(given[0]), **numbers))
        else:
            raise ValueError(
                f"{piece.strip()!r} is no feature map: use rbf(COUNT, LOW, HIGH), polynomial("
                "DEGREE, LOW, HIGH), bspline(COUNT, LOW, HIGH) or columns(NAME, ...), joined by +"
            )
    return parts[0] if len(parts) == 1 else Sum(*parts)


_BY_NAME: Mapping[str, Any] = {
    "rbf": RBF,
    "polynomial": Polynomial,
    "bspline": lambda count, **ends: BSpline(count, **ends),
}
