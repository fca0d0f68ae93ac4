"""What an owner declares public in addition to the file: set points of units, ratios of limits.

Many files have several limits for a line: for durations (20 min), for sides, ratings A, B and C.
They belong to one asset and are one private number, the capacity. In a release each of them is the
released capacity times a ratio that the owner declares public, or times 1. A ratio is never
computed from the limits of the file.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gridveil.errors import InputError
from gridveil.grid.io import Protected, Source, module_of

Ratios = Mapping[str, float]
_DURATION = re.compile(r"(\d+)\s*(s|min|h)")
_SECONDS = {"s": 1, "min": 60, "h": 3600}
_EXAMPLE = (
    'Write "1200s=1.1, 600s=1.2" for durations, "B=1.1, C=1.2" for ratings ("2=1.1, 3=1.2" from '
    "PSS/E 34 on)."
)
_MOST = 10.0


def read_ratios(given: Any) -> dict[str, float]:
    """Read and check ratios of limits by name; durations are converted to seconds.

    >>> read_ratios("20min=1.1, side2=1.05")
    {'1200s': 1.1, 'side2': 1.05}
    """
    if given is None:
        return {}
    if isinstance(given, str):
        split = [one.partition("=") for one in given.split(",")]
        pairs: list[tuple[Any, Any]] = [(name, ratio) for name, _, ratio in split]
    elif isinstance(given, Mapping):
        pairs = list(given.items())
    else:
        raise InputError("limit_ratios are names of limits with a ratio each.", remedy=_EXAMPLE)
    found: dict[str, float] = {}
    for name, ratio in pairs:
        key, value = _name(str(name).strip()), _ratio(ratio)
        if not key or key in found or not 1 <= value <= _MOST:
            raise InputError(
                f"limit_ratios need a name once, and a ratio between 1 and {_MOST:g} for it: a "
                "capacity is the least of a line's limits.",
                remedy=_EXAMPLE,
            )
        found[key] = value
    return found


def _name(text: str) -> str:
    duration = _DURATION.fullmatch(text)
    return f"{int(duration[1]) * _SECONDS[duration[2]]}s" if duration else text


def _ratio(given: Any) -> float:
    try:
        return float(given)
    except (TypeError, ValueError):
        return math.nan


def strip_source(source: Any, parameters: tuple[str, ...], protected: Protected) -> Source | None:
    """What a release of these parameters has of a file; None if it has nothing."""
    if not isinstance(source, Source):
        return None
    if source.private:
        return source if source.private == parameters else None
    strip = getattr(module_of(source.kind), "strip", None)
    if strip is None:
        return None
    bare = strip(source.data, parameters, protected)
    return Source(source.kind, bare, parameters, protected, models=source.models)


def with_declared(
    stripped: Source | None, source: object, *, dispatch: bool, ratios: Ratios
) -> Source | None:
    """Add what the owner declares public (the file's set points, ratios) to a stripped source.

    Raises
    ------
    InputError
        If the file has no set points or no such limits, or if its models reveal private loads.
    """
    if stripped is not None and stripped.models is not None and "load" in stripped.private:
        # For a bus with several loads, the mean of their profiles reveals their sizes.
        raise InputError(
            "Loads are private, and they vary over the snapshots.",
            remedy="Release them as series (--parameter load --series FILE), or leave --snapshots "
            "out.",
        )
    known = module_of(source.kind) if isinstance(source, Source) and stripped is not None else None
    if dispatch:
        stripped = _with_set_points(stripped, source, known)
    if not ratios:
        return stripped
    limits = known.limit_names(source.data) if hasattr(known, "limit_names") else ()  # type: ignore[attr-defined, union-attr]
    for name in ratios:
        if name not in limits:
            has = f"Those of this file are {', '.join(limits)}" if limits else "It has one for each"
            raise InputError(
                f"limit_ratios has a ratio for {name}, and lines of this file have no such limit.",
                remedy=f"{has}: leave it out, or correct the name (--limit-ratios).",
            )
    assert stripped is not None, "a format with names of limits has `strip`"
    return replace(stripped, limit_ratios=dict(ratios))


def _with_set_points(stripped: Source | None, source: object, known: Any) -> Source:
    if stripped is None or not isinstance(source, Source) or not hasattr(known, "set_points"):
        raise InputError(
            "public_dispatch is about set points of units, which this network's file does not "
            "have.",
            remedy="Leave it out (--public-dispatch).",
        )
    return replace(stripped, dispatch=known.set_points(source.data))
