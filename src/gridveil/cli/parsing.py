"""What a person types for alpha, ranges, costs and rules: read, or refused with an example."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from gridveil.errors import InputError
from gridveil.release.options import share


def alpha(text: str) -> str | dict[str, str]:
    """One alpha, or one for each parameter: ``30``, ``capacity=30,cost=1``."""
    if "=" not in text:
        return text
    pairs = [one.partition("=") for one in text.split(",")]
    return _alphas(text, pairs, "one alpha for each parameter", "30, or --alpha capacity=30,cost=1")


def steps(text: str) -> str | dict[str, str]:
    """Like `alpha`, or one for each public class: ``380kV:100,kind=transformer:50,others:20``."""
    if ":" not in text:
        return alpha(text)
    pairs = [one.rpartition(":") for one in text.split(",")]
    return _alphas(text, pairs, "a step for each class", "380kV:100,110kV:20,others:10")


def _alphas(
    text: str, pairs: Iterable[tuple[str, str, str]], needs: str, example: str
) -> dict[str, str]:
    found: dict[str, str] = {}
    for pair in pairs:
        name, sign, value = (part.strip() for part in pair)
        if not (name and sign and value) or name in found:
            raise InputError(
                f"--alpha has {text!r}, and needs {needs}.", remedy=f"Write --alpha {example}."
            )
        found[name] = value
    return found


def ranges(given: list[str] | None) -> Any:
    """The public range, or one for each parameter: ``1:5000``, ``load=0:500``."""
    if not given:
        return None
    found = {}
    for one in given:
        name, equals, ends = (part.strip() for part in one.rpartition("="))
        pair = _ends(ends)
        single = not equals and len(given) == 1
        if len(pair) != 2 or not (name or single) or name in found:
            raise InputError(f"The range {one!r} can't be used.", remedy=_RANGES)
        found[name] = (pair[0], pair[1])
    return found.get("", found)


_RANGES = "Write --range 1:5000, or --range capacity=1:5000 --range load=0:500."


def _ends(text: str) -> list[float]:
    try:
        return [float(end) for end in text.replace(",", ":").split(":")]
    except ValueError:
        raise InputError(
            f"--range has {text!r}, where numbers are needed.", remedy=_RANGES
        ) from None


def costs(text: str) -> tuple[float, float] | float | None:
    """Costs of a population: ``12.5%`` or ``0.125`` around the network's, ``80:100``, ``none``."""
    if text.strip() == "none":
        return None
    try:
        parts = text.replace(",", ":").split(":")
        ends = [float(end) for end in parts] if len(parts) > 1 else []
        width = None if ends else share(text)
    except ValueError:
        ends, width = [], None
    if len(ends) == 2 and -math.inf < ends[0] <= ends[1] < math.inf:
        return ends[0], ends[1]
    if width is not None and 0 <= width <= 1:
        return width
    raise InputError(
        f"--costs has {text!r}; it takes a share, a range in $/MWh or none.",
        remedy="Write --costs 12.5%, --costs 80:100 or --costs none.",
    )


def rules(given: list[str] | None) -> str | dict[str, str] | None:
    """What is protected: ``voltage>=220``, or one rule for each parameter: ``load:zone=1``."""
    if not given:
        return None
    if len(given) == 1 and ":" not in given[0]:
        return given[0]
    found: dict[str, str] = {}
    for one in given:
        name, colon, rule = (part.strip() for part in one.partition(":"))
        if not colon or name in found:
            raise InputError(
                f"--only has {one!r}, and needs one rule for each parameter.",
                remedy="Write --only 'voltage>=220', or --only 'capacity:voltage>=220' --only "
                "'load:zone=1'.",
            )
        found[name] = rule
    return found
