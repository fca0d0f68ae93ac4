"""Reading a statement's JSON, and checking it against its schema, which ships with the package."""

from __future__ import annotations

import itertools
import json
import math
from functools import cache
from importlib import resources
from typing import Any


def read_json(text: str | bytes) -> Any:
    """What a JSON text holds; None if it is not JSON, or holds numbers that are not finite."""
    try:
        return json.loads(text, parse_float=_finite, parse_constant=_finite, parse_int=_whole)
    except (ValueError, RecursionError):
        return None


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError
    return number


def _whole(text: str) -> int:
    _finite(text)
    return int(text)


@cache
def schema() -> dict[str, Any]:
    """The JSON Schema of ``release.json``."""
    text = resources.files("gridveil.privacy").joinpath("release.schema.json").read_text("utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def schema_problems(body: Any) -> list[str]:
    """Every place where a statement departs from the schema, in words; the first 100 of them."""
    import jsonschema

    validator = jsonschema.Draft202012Validator(schema())
    some = itertools.islice(validator.iter_errors(body), 100)
    found = sorted(some, key=lambda error: list(map(str, error.path)))
    return [f"{'/'.join(map(str, e.absolute_path)) or 'top'}: {e.message[:200]}" for e in found]
