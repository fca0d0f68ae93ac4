"""``release.toml``: all that a release command is told, in a file to keep, review and run again.

Its keys are the names of the command's own options, and ``data`` is its argument: the commands say
what there is, and nothing of that is written down again here. A file is turned into the words of
the command, so that it can do what the command can, and nothing else.
"""

from __future__ import annotations

import difflib
import json
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from gridveil.cli.commands import Command
from gridveil.cli.typed_options import DATA, as_single, parameters_of
from gridveil.errors import InputError, reason

KINDS = ("wind", "grid")
FILE = "release.toml"
_LONGEST = 1_000_000  # bytes of a file


@cache
def release_command(kind: str) -> Any:
    """The command ``gridveil KIND release``."""
    return Command(kind, "").load().commands["release"]


def read_file(path: Path) -> tuple[str, list[str]]:
    """The kind of release that a file describes, and the words of its command.

    Raises
    ------
    InputError
        If it can't be read, or has a key that the command does not know; nothing was done.
    """
    values = _loaded(path)
    kind = values.pop("kind", None)
    if kind not in KINDS:
        raise InputError(
            f"{path} does not say what kind of release it is.",
            remedy='Begin it with kind = "wind" or kind = "grid"; gridveil init writes one.',
        )
    command = release_command(kind)
    known = parameters_of(command)
    given = {name.replace("-", "_"): value for name, value in values.items()}
    for name in given:
        if name not in known:
            raise _unknown(path, kind, name, list(known))
    missing = [name for name, one in known.items() if one.required and name not in given]
    if missing:
        words = help_of(known[missing[0]]) or "See the command's help."
        raise InputError(
            f"{path} has no {' and no '.join(missing)}.",
            remedy=f'Add a line {missing[0]} = "...": {words}',
        )
    return kind, words_of(path, known, given)


def words_of(path: Path, known: Mapping[str, Any], given: Mapping[str, Any]) -> list[str]:
    """What a user would type after the command for these values."""
    words: list[str] = []
    for name, value in given.items():
        if name == DATA:
            continue
        option, one = known[name].opts[0], known[name]
        if one.is_flag:
            if not isinstance(value, bool):
                raise InputError(f"{path}: {name} is not true or false.", remedy="Write true.")
            words += [option] * value
            continue
        texts = _texts(path, name, value, several=one.multiple)
        words += [f"{option}={text}" for text in texts]
    data = _texts(path, DATA, given[DATA], several=True) if DATA in given else []
    return [*words, "--", *data]


def _texts(path: Path, name: str, value: Any, *, several: bool) -> list[str]:
    """A value as texts for the command: one for each time that the option is given."""
    if isinstance(value, Mapping):
        pairs = [f"{key}={_text(path, name, one)}" for key, one in value.items()]
        return pairs if several else [",".join(pairs)]
    if isinstance(value, list):
        texts = [_text(path, name, one) for one in value]
        return texts if several else [",".join(texts)]
    return [_text(path, name, value)]


def _text(path: Path, name: str, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise InputError(
            f"{path}: {name} is neither a text nor a number.",
            remedy=f'Write it in quotes, as on the command line: {name} = "...".',
        )
    return str(value)


def _loaded(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > _LONGEST:
            raise InputError(f"{path} is too long for a release file.", remedy="Name another.")
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(
            f"There is no file {path}.", remedy="gridveil init asks a few questions and writes it."
        ) from None
    except OSError as problem:
        raise InputError(f"{path} can't be read: {reason(problem)}.") from None
    except UnicodeDecodeError:
        raise InputError(f"{path} is not text in UTF-8.", remedy="Save it as UTF-8.") from None
    except tomllib.TOMLDecodeError as problem:
        raise InputError(
            f"{path} can't be read: {problem}.", remedy='Lines look like this: alpha = "15%".'
        ) from None


def _unknown(path: Path, kind: str, name: str, known: Sequence[str]) -> InputError:
    close = difflib.get_close_matches(name, known, 1)
    meant = f"Did you mean {close[0]}? " if close else ""
    return InputError(
        f"{path} has {name[:40]!r}, which gridveil {kind} release does not know.",
        remedy=f"{meant}Known are: kind, {', '.join(known)}.",
    )


def file_text(kind: str, values: Mapping[str, Any], called: str = FILE) -> str:
    """The text of a file with these values, each under what its option means.

    Parameters
    ----------
    kind, values
        The kind of release, and what its command is told.
    called
        The name of the file, which its first line has.

    Raises
    ------
    InputError
        If a value can't be written.
    """
    known = parameters_of(release_command(kind))
    name = " ".join(called.split())  # a comment ends with its line
    lines = [f"# Run it with: gridveil release {name} (--dry-run shows the plan alone)."]
    lines += [f"kind = {_toml(kind)}", ""]
    for name, one in known.items():
        if name in values:
            words = help_of(one)
            lines += [f"# {words}"] if words else []
            lines += [f"{name} = {_toml(values[name])}", ""]
    return "\n".join(lines)


def values_of(kind: str, words: Sequence[str]) -> dict[str, Any]:
    """The values of a file that does what these words after the command do."""
    known = parameters_of(release_command(kind))
    names = {text: name for name, one in known.items() for text in one.opts if name != DATA}
    found: dict[str, Any] = {}
    data = []
    waiting = iter(words)
    for word in waiting:
        name = names.get(word)
        if name is None:
            data.append(word)
        elif known[name].is_flag:
            found[name] = True
        elif known[name].multiple:
            found.setdefault(name, []).append(next(waiting))
        else:
            found[name] = next(waiting)
    return {DATA: data[0] if len(data) == 1 else data, **as_single(found)}


def help_of(parameter: Any) -> str:
    """The help of a command's parameter on one line, as it is shown; empty if it has none."""
    return " ".join((getattr(parameter, "help", None) or "").replace("[none][/none]", "").split())


def _toml(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(_toml(one) for one in value)}]"
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise InputError(
                "A text holds half a character, which no file can.", remedy="Write it again."
            ) from None
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return json.dumps(value)
