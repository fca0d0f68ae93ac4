"""Options of a release command that come from the classes of its methods.

A method's class says what each of its options means, which values it takes and what its default
is: nothing of that is written down again here. The decorator calls back into its command once the
options of the method are gathered.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Annotated, Any, get_type_hints

import typer

from gridveil.release.options import About, Options, show_value

Methods = Mapping[str, type[Options]]

_TAKES = "options"  # the command's parameter that gets what was typed


def takes_options_of(methods: Methods) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command an option ``--margin`` for every ``margin`` of its methods.

    The command has a parameter ``options`` in their place, which gets the texts that were typed.
    """
    known, flags = _known(methods), _flags(methods)

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def with_options(**given: Any) -> None:
            texts = {name: given.pop(name) for name in known}
            texts |= {name: "yes" for name in flags if texts[name]}
            command(**given, **{_TAKES: {n: text for n, text in texts.items() if text is not None}})

        hints = get_type_hints(command, include_extras=True)
        made = []
        for one in inspect.signature(command).parameters.values():
            if one.name == _TAKES:
                made += [_parameter(name, words, name in flags) for name, words in known.items()]
            else:
                kind = inspect.Parameter.KEYWORD_ONLY
                made.append(one.replace(annotation=hints[one.name], kind=kind))
        with_options.__signature__ = inspect.Signature(made)  # type: ignore[attr-defined]
        with_options.__annotations__ = {one.name: one.annotation for one in made}
        return with_options

    return decorate


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


def _known(methods: Methods) -> dict[str, str]:
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


def _flags(methods: Methods) -> set[str]:
    """Options that are off by default, and on if they are named."""
    kinds = methods.values()
    return {name for kind in kinds for name in kind.about() if kind.default(name) is False}


def _parameter(name: str, words: str, flag: bool) -> inspect.Parameter:
    option = typer.Option(f"--{name.replace('_', '-')}", help=words, show_default=False)
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[bool | None if flag else str | None, option],
    )
