"""The options of a method: frozen dataclasses that are checked when they are made.

    @dataclass(frozen=True)
    class Certified(Options):
        '''What the method does.'''

        method: ClassVar[str] = "certified"
        margin: float = option(0.04, help="share kept in reserve", check=Within(0, 0.5), read=share)

Every field says what it means, which values it takes and how its text is read. Command-line
options, their help, the fields of the plan page and the statement's settings come from that. Once
every field is sound, a class is called back to check them together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, dataclass, field, fields
from fractions import Fraction
from numbers import Real
from typing import Any, ClassVar, Self, TypeVar

from gridveil.errors import InputError, show_exact, wrong_type

Check = Callable[[str, Any], Any]
"""Takes an option's name and value; returns the value as it is kept, or raises `InputError`."""


@dataclass(frozen=True)
class Within:
    """A check for a number between two ends, both allowed; it is kept as a float (or an int)."""

    least: float
    most: float
    whole: bool = False

    def __call__(self, name: str, value: Any) -> float | int:
        """The number, or `InputError` that says what is allowed."""
        number = isinstance(value, Real) and not isinstance(value, bool)
        if not number or not (math.isfinite(value) and self.least <= value <= self.most):
            raise InputError(
                f"{name} is {_shown(value)}.",
                remedy=f"It must be between {self.least:g} and {self.most:g}.",
            )
        if self.whole and value != int(value):
            raise InputError(
                f"{name} is {value}.", remedy=f"It must be a whole number, as {int(value)}."
            )
        return int(value) if self.whole else float(value)


@dataclass(frozen=True)
class OneOf:
    """A check for one of a few words."""

    words: tuple[str, ...]

    def __call__(self, name: str, value: Any) -> str:
        """The word, or `InputError` with those that are known."""
        if not isinstance(value, str) or value not in self.words:
            raise InputError(
                f"{name} is {_shown(value)}.", remedy=f"Use {' or '.join(self.words)}."
            )
        return value


@dataclass(frozen=True)
class About:
    """What a field of an `Options` class means.

    Parameters
    ----------
    help
        What it is, in a few words for the command line and the plan page.
    default
        The default in words; None if it is the field's own.
    check
        Gives a value as it is kept, or raises `InputError`. None stays None, unchecked.
    read
        Makes a value of the text on a command line, or raises `ValueError`.
    example
        Such a text.
    parameters
        The private parameters that the option is for; empty if for all.
    """

    help: str
    default: str | None
    check: Check
    read: Callable[[str], Any]
    example: str
    parameters: tuple[str, ...]


def option(
    value: Any,
    *,
    help: str,  # noqa: A002
    check: Check,
    example: str,
    read: Callable[[str], Any] = float,
    default: str | None = None,
    parameters: tuple[str, ...] = (),
) -> Any:
    """A field of an `Options` class with this default; see `About` for the rest."""
    about = About(help, default, check, read, example, parameters)
    return field(default=value, metadata={"about": about})


def share(text: str) -> float:
    """Read a share: ``4%`` or ``0.04``."""
    number = text.strip().removesuffix("%")
    return float(number) / (100 if number != text.strip() else 1)


def flag(name: str, value: Any) -> bool:
    """A check for yes or no."""
    if not isinstance(value, bool):
        raise InputError(f"{name} is {_shown(value)}.", remedy="Use True or False.")
    return value


def flagged(text: str) -> bool:
    """Read yes or no."""
    known = {"yes": True, "no": False}
    if text.strip().lower() not in known:
        raise ValueError
    return known[text.strip().lower()]


def numbers(text: str) -> list[float]:
    """Read numbers with commas between them: ``105,240,300``."""
    return [float(part) for part in text.split(",")]


@dataclass(frozen=True)
class Options:
    """Base of the options of a method; subclasses are frozen dataclasses of `option` fields."""

    method: ClassVar[str]

    def __post_init__(self) -> None:
        """Check every field on its own, then the fields together."""
        for name, about in self.about().items():
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, about.check(name, value))
        self._check_together()

    def _check_together(self) -> None:
        """Raise `InputError` for fields that contradict each other."""

    @classmethod
    def about(cls) -> dict[str, About]:
        """What each option means, in the order of the fields."""
        return {one.name: one.metadata["about"] for one in _fields(cls)}

    @classmethod
    def read(cls, name: str, text: str) -> Any:
        """The value of an option from its text on a command line or a page."""
        about = cls.about()[name]
        try:
            return about.read(text)
        except InputError:
            raise  # it says what is wrong already
        except ValueError:
            raise InputError(
                f"{name} is {text[:40]!r}.", remedy=f"Write it as {about.example}."
            ) from None

    @classmethod
    def default(cls, name: str) -> Any:
        """What an option is if it is left out."""
        return next(one.default for one in _fields(cls) if one.name == name)

    @property
    def given(self) -> dict[str, Any]:
        """The options that differ from their defaults."""
        values = {one.name: (getattr(self, one.name), one.default) for one in _fields(type(self))}
        return {name: value for name, (value, default) in values.items() if value != default}

    def check_parameters(self, parameters: tuple[str, ...]) -> Self:
        """These options, or `InputError` if one of them is for other private parameters."""
        for name, about in self.about().items():
            elsewhere = about.parameters and not set(about.parameters) & set(parameters)
            if elsewhere and name in self.given:
                raise no_meaning(name, ", ".join(parameters), about.parameters)
        return self

    def settings(self) -> dict[str, Any]:
        """Every option by its name, as the statement has it: stable keys, values for JSON."""
        return {name: _plain(getattr(self, name)) for name in self.about()}


O = TypeVar("O", bound=Options)  # noqa: E741
Methods = Mapping[str, type[Options]]


def options_of(
    known: Mapping[str, type[O]], method: str | O, keywords: Mapping[str, Any] | None = None
) -> O:
    """The options of a release, from ``method=Certified(...)`` or from a name and keywords.

    A keyword that is None counts as left out.

    Raises
    ------
    InputError
        For an unknown method or option, one of another method, or a value that can't be used.
    """
    given = {name: value for name, value in (keywords or {}).items() if value is not None}
    if not isinstance(method, str):
        kind = type(method).__name__
        if not isinstance(method, tuple(known.values())):
            raise wrong_type("method", method, remedy=f"Use {', '.join(known)}, or its options.")
        if given:
            raise InputError(
                f"{', '.join(given)} is given beside method={kind}(...).",
                remedy=f"Write it inside: {kind}({next(iter(given))}=...).",
            )
        return method
    if method not in known:
        raise InputError(f"There is no method {method!r}.", remedy=f"Use {', '.join(known)}.")
    chosen = known[method]
    for name in given:
        if name in chosen.about():
            continue
        others = [one for one, kind in known.items() if name in kind.about()]
        if not others:
            raise InputError(
                f"There is no option {name}.",
                remedy=f"Options of {method}: {', '.join(chosen.about()) or 'none'}.",
            )
        raise no_meaning(name, f"method {method}", others)
    return chosen(**given)


def described(methods: Methods) -> dict[str, str]:
    """Every option of the methods with its help: which methods have it, meaning and default."""
    about: dict[str, dict[str, About]] = {}
    defaults: dict[str, dict[str, str]] = {}
    for method, kind in methods.items():
        for name, one in kind.about().items():
            about.setdefault(name, {})[method] = one
            default = show_value(kind.default(name)) if one.default is None else one.default
            defaults.setdefault(name, {})[method] = default
    found = {}
    for name, by_method in about.items():
        first = next(iter(by_method.values()))
        where = "" if len(by_method) == len(methods) else ", ".join([*by_method, *first.parameters])
        said = set(defaults[name].values())
        each = "; ".join(f"{method}: {words}" for method, words in defaults[name].items())
        default = said.pop() if len(said) == 1 else each
        found[name] = f"{where}: {first.help}" if where else first.help
        found[name] = f"{found[name][0].upper()}{found[name][1:]}. Default: {default}."
    return found


def flags_of(methods: Methods) -> set[str]:
    """Options that are off by default, and on if they are named."""
    kinds = methods.values()
    return {name for kind in kinds for name in kind.about() if kind.default(name) is False}


def read_options(methods: Methods, method: str, texts: Mapping[str, str]) -> dict[str, Any]:
    """What was typed as values; one of another method too, which the plan then refuses.

    Raises
    ------
    InputError
        For a text that can't be read.
    """
    found = {}
    for name, text in texts.items():
        having = [one for one, kind in methods.items() if name in kind.about()]
        chosen = methods[method if method in having else having[0]]
        found[name] = chosen.read(name, text)
    return found


def no_meaning(name: str, here: str, there: Sequence[str]) -> InputError:
    """The refusal of an option that is for something else."""
    return InputError(
        f"{name} has no meaning for {here}: it is for {' and '.join(there)}.",
        remedy=f"Leave {name} out.",
    )


def _shown(value: Any) -> str:
    # Texts and numbers alone: anything else may hold private values, given by mistake.
    if isinstance(value, str):
        return repr(value[:40])
    return str(value) if isinstance(value, Real) else f"of type {type(value).__name__}"


def show_value(value: Any) -> str:
    """A default for people: ``10``, ``0.001``, ``steps``."""
    return f"{value:g}" if isinstance(value, float) else str(_plain(value))


def _fields(kind: type[Options]) -> tuple[Field[Any], ...]:
    return tuple(one for one in fields(kind) if "about" in one.metadata)


def _plain(value: Any) -> Any:
    if isinstance(value, Fraction):
        return show_exact(value)
    return [_plain(one) for one in value] if isinstance(value, tuple) else value
