"""Ratios of a line's further limits to its capacity, which an owner declares public.

Many files have several limits for a line, for durations (20 min), for sides, ratings A, B and C.
They belong to one asset and are one private number, the capacity. In a release each of them is the
released capacity times a ratio that the owner declares public, or times 1. A ratio is never
computed from the limits of the file.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from gridveil.errors import InputError

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
        key, value = _limit_name(str(name).strip()), _ratio(ratio)
        if not key or key in found or not 1 <= value <= _MOST:
            raise InputError(
                f"limit_ratios need a name once, and a ratio between 1 and {_MOST:g} for it: a "
                "capacity is the least of a line's limits.",
                remedy=_EXAMPLE,
            )
        found[key] = value
    return found


def _limit_name(text: str) -> str:
    duration = _DURATION.fullmatch(text)
    return f"{int(duration[1]) * _SECONDS[duration[2]]}s" if duration else text


def _ratio(given: Any) -> float:
    try:
        return float(given)
    except (TypeError, ValueError):
        return math.nan
