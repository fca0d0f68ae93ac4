"""What the page asks: read as the command line would, with every fault told at its own field."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

from gridveil.errors import InputError, show_exact
from gridveil.planning.choice import Choice
from gridveil.planning.release_kind import Kind
from gridveil.privacy.exact_numbers import exact

_LARGEST = 1000  # epsilon; more is a slip of the pen
_LONGEST = 400  # characters of a text field

_Private = list[tuple[str, Any]]
_Ranges = list[tuple[str, tuple[float, float]]]


class Faults:
    """What is wrong with a question: words for each field of the page that has a fault."""

    def __init__(self) -> None:
        self.found: dict[str, str] = {}

    @contextmanager
    def at(self, field: str) -> Iterator[None]:
        """Note an `InputError` as this field's, and go on."""
        try:
            yield
        except InputError as error:
            self.found.setdefault(field, str(error))


def text_of(given: Any) -> str:
    """A text of the question, or nothing if it holds anything else."""
    return str(given).strip() if isinstance(given, str | int | float) else ""


def read_choice(kind: Kind, asked: Mapping[str, Any], faults: Faults) -> Choice | None:
    """The choice, or None if it has a fault."""
    epsilon, size, method = None, None, None
    with faults.at("epsilon"):
        epsilon = exact(text_of(asked.get("epsilon")), name="epsilon")
        if epsilon > _LARGEST:
            raise InputError(
                f"epsilon {show_exact(epsilon)} protects nothing.",
                remedy="Guarantees that mean something have an epsilon of a few, or less.",
            )
    with faults.at("size"):
        size = _size(kind, text_of(asked.get("size")))
    with faults.at("method"):
        method = kind.method(text_of(asked.get("method"))).name
    private, ranges = _private(kind, asked.get("private"), faults)
    if epsilon is None or size is None or method is None or faults.found:
        return None
    choice = Choice(kind.name, tuple(private), method, epsilon, size, tuple(ranges))
    for name in choice.parameters:
        with faults.at(f"alpha-{name}"):
            kind.neighbours(choice.only(name))
    with faults.at("method"):
        kind.check_method(choice)
    if not faults.found:
        with faults.at("parameters"):
            kind.neighbours(choice)
    return None if faults.found else choice


def _private(kind: Kind, given: Any, faults: Faults) -> tuple[_Private, _Ranges]:
    """Every private parameter with its alpha and its range, in the kind's own order."""
    chosen: dict[str, Mapping[str, Any]] = {}
    with faults.at("parameters"):
        for one in given if isinstance(given, list) else ():
            if isinstance(one, Mapping):
                chosen[kind.parameter(text_of(one.get("name"))).name] = one
        if not chosen:
            raise InputError("Nothing is private.", remedy="Choose one parameter or more.")
    private, ranges = [], []
    for parameter in (one for one in kind.parameters if one.name in chosen):
        name, typed = parameter.name, chosen[parameter.name]
        with faults.at(f"alpha-{name}"):
            private.append((name, kind.alpha(parameter, text_of(typed.get("alpha")))))
        if ends := text_of(typed.get("range")):
            with faults.at(f"range-{name}"):
                ranges.append((name, kind.ranges(name, ends)))
    return private, ranges


def _size(kind: Kind, text: str) -> int:
    counts, least, _, most = kind.size
    # Whoever types a million digits gets no number made of them.
    if not (text.isascii() and text.isdigit() and len(text) < 10 and least <= int(text) <= most):
        raise InputError(
            f"The number of {counts} must be between {least:,} and {most:,}.",
            remedy="The stand-in is there to see the accuracy, not to be as large as yours.",
        )
    return int(text)


def numbers_read(kind: Kind, choice: Choice) -> dict[str, float]:
    """What was understood of the numbers, for the sliders."""
    read = {"epsilon": float(choice.epsilon)}
    for name, alpha in choice.private:
        scale = 100 if kind.parameter(name).unit == "%" else 1
        if isinstance(alpha, Fraction):
            read[f"alpha-{name}"] = float(scale * alpha)
        elif isinstance(alpha, str):
            read[f"alpha-{name}"] = float(alpha.removesuffix("%"))
    return read


def read_fields(
    kind: Kind, asked: Mapping[str, Any], choice: Choice | None, faults: Faults
) -> dict[str, str]:
    """What was typed for the command; faults for what the command would not take."""
    given = asked.get("fields")
    values = given if isinstance(given, Mapping) else {}
    fields = {one.name: text_of(values.get(one.name)) for one in kind.fields}
    for one in kind.fields:
        with faults.at(f"field-{one.name}"):
            if not (one.optional or fields[one.name]):
                raise InputError("The command needs this.", remedy="Fill it in.")
            if len(fields[one.name]) > _LONGEST:
                raise InputError(f"This is longer than {_LONGEST} letters.", remedy="Shorten it.")
            kind.check_field(one.name, fields, choice)
    return fields
