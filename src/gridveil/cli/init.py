"""``gridveil init``: ask a few questions, and write the file of a release."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from gridveil.cli import parsing
from gridveil.cli.case_options import BUILT_IN
from gridveil.cli.console import out, plain
from gridveil.cli.release_toml import FILE, KINDS, file_text, help_of, release_command
from gridveil.cli.typed_options import DATA, OWNERS, parameters_of
from gridveil.errors import InputError, reason

# What is asked, in this order; everything else can be added to the file.
_ASKED = {
    "wind": (DATA, "speed", "power", "capacity", "time", "turbine", "alpha"),
    "grid": (DATA, "parameter", "alpha", "range"),
}
_LAST = ("epsilon", "dataset", "output")
_AGAIN = (DATA, "dataset", "output")
_COLUMNS = ("speed", "power", "time", "turbine")
_FIRST_CHOICE = {"output": "release", "encoding": "cp1252", "decimal": ","}


def command(
    file: Annotated[Path, typer.Argument(help="The file to write.")] = Path(FILE),
    repeat: Annotated[
        Path | None,
        typer.Option(
            "--from",
            help="Take the answers from a bundle, to repeat its release.",
            metavar="BUNDLE",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
) -> None:
    """Ask a few questions about a release, and write them to a file.

    The data is not read, but for the names of its columns.

    Example: [cyan]gridveil init release.toml[/]
    """
    if os.path.exists(file) and not force:
        raise InputError(
            f"{file} is there already.", remedy="Name another file, or add --force to replace it."
        )
    known = {} if repeat is None else _request(repeat)
    out().print("Enter alone takes the answer in brackets, or leaves out what is not needed.")
    kind = known.pop("kind", None) or _choose("What is released", KINDS)
    parameters = parameters_of(release_command(kind))
    columns: list[str] = []
    # Of a release that is repeated only what its statement does not have is asked.
    asked = (*_ASKED[kind], *_LAST) if repeat is None else _AGAIN
    for name in asked:
        known |= _ask(kind, name, parameters[name], columns, known)
        if name == DATA:
            if not _readable(kind, known):
                known |= _ask(kind, "encoding", parameters["encoding"], columns, known)
            columns = _columns(kind, known)
            if repeat is None and kind == "wind" and _opened(known).delimiter == ";":
                known |= _ask(kind, "decimal", parameters["decimal"], columns, known)
            if kind == "grid" and Path(known[DATA]).suffix.lower() == ".nc":
                known |= _ask(kind, "snapshots", parameters["snapshots"], columns, known)
    try:
        file.write_text(file_text(kind, known, str(file)), encoding="utf-8")
    except OSError as problem:
        raise InputError(
            f"{file} can't be written: {reason(problem)}.", remedy="Name another file."
        ) from None
    out().print(f"Wrote {plain(file)}. Nothing was charged.")
    out().print(f"  the plan:    [cyan]gridveil release {plain(file)} --dry-run[/]")
    out().print(f"  the release: [cyan]gridveil release {plain(file)}[/]")


def _request(bundle: Path) -> dict[str, Any]:
    """What a bundle's statement holds of the words that it was made with."""
    from gridveil.privacy.statement import STATEMENT_FILE, Statement

    path = bundle / STATEMENT_FILE if os.path.isdir(bundle) else bundle
    try:
        text = path.read_bytes()
    except OSError as problem:
        raise InputError(
            f"{path} can't be read: {reason(problem)}.", remedy="Name a bundle's folder."
        ) from None
    request = Statement.from_json(text).body.get("request")
    if request is None:
        raise InputError(
            f"{path} does not say how its release was asked for: it was made from Python, or by an "
            "older version.",
            remedy="Leave --from out, and answer the questions.",
        )
    # Another's bundle may say more, such as a ledger that is not the owner's.
    return {name: value for name, value in request.items() if name not in OWNERS}


def _ask(
    kind: str, name: str, parameter: Any, columns: list[str], known: dict[str, Any]
) -> dict[str, Any]:
    """One question, asked again until its answer can be used; nothing for one that is left out."""
    words = help_of(parameter) or "The data: files of records, or a case."
    default = _FIRST_CHOICE.get(name, parameter.default)
    needed = parameter.required or name in ("alpha", "dataset", "output")
    more = {name: f" Columns: {', '.join(columns)}." for name in _COLUMNS}
    more["range"] = more["capacity"] = " Here with blanks between them."
    out().print(f"\n{plain(words + more.get(name, ''))}")
    answer = typer.prompt(
        name,
        default=default if isinstance(default, str) else "",
        show_default=isinstance(default, str),
        value_proc=_check(kind, name, columns, known, needed=needed),
    )
    several = _several(answer) if name in ("range", "capacity") else []
    return {name: several if len(several) > 1 else answer} if answer else {}


def _check(
    kind: str, name: str, columns: list[str], known: dict[str, Any], *, needed: bool
) -> Callable[[str], str]:
    def check(text: str) -> str:
        answer = text.strip()
        if needed and not answer:
            raise typer.BadParameter("An answer is needed here.")
        if name in _COLUMNS and answer and columns and answer not in columns:
            raise typer.BadParameter(f"There is no such column. There are: {', '.join(columns)}.")
        try:
            if name == DATA:
                _readable(kind, {**known, name: answer})
            if name in ("encoding", "decimal"):
                _columns(kind, {**known, name: answer})
            if answer and name in _READ:
                _READ[name](kind, answer)
        except InputError as problem:
            raise typer.BadParameter(str(problem)) from None
        return answer

    return check


def _read_alpha(kind: str, text: str) -> None:
    from gridveil.privacy.exact_numbers import exact

    given = parsing.steps(text) if kind == "grid" else text
    for one in [given] if isinstance(given, str) else given.values():
        if exact(one, name="alpha") > 1 and kind == "wind":
            raise InputError(f"alpha is a share of capacity, at most 1, and {text} is more.")


def _several(answer: str) -> list[str]:
    """What is repeated on the command line; names may have blanks: ``A 1=20 A 2=30``."""
    return re.findall(r"\S[^=]*=\S+|\S.*", answer)


def _read_capacity(_: str, text: str) -> None:
    given = _several(text)
    for one in given:
        name, _, number = one.rpartition("=")
        try:
            fits = 0 < float(number) < math.inf and bool(name or len(given) == 1)
        except ValueError:
            fits = False
        if not fits:
            raise InputError(
                f"The capacity {one!r} can't be used.", remedy="Write 2750, or T1=2750 T2=3000."
            )


def _read_epsilon(_: str, text: str) -> None:
    from gridveil.privacy.exact_numbers import exact

    exact(text, name="epsilon")


def _read_parameters(_: str, text: str) -> None:
    from gridveil.grid.model.parameters import check_parameters

    check_parameters(text)


def _read_ranges(_: str, text: str) -> None:
    from gridveil.privacy.sealed import Range

    given = parsing.ranges(_several(text))
    for low, high in given.values() if isinstance(given, dict) else [given]:
        Range(low, high)


# How an answer is read by the release: what it would refuse is asked again at once.
_READ: dict[str, Callable[[str, str], None]] = {
    "alpha": _read_alpha,
    "capacity": _read_capacity,
    "epsilon": _read_epsilon,
    "parameter": _read_parameters,
    "range": _read_ranges,
}


def _readable(kind: str, known: dict[str, Any]) -> bool:
    """Whether the encoding of a table's columns is known; other problems are raised."""
    from gridveil.wind.io.files import EncodingError

    try:
        _columns(kind, known)
    except EncodingError:
        return False
    return True


def _columns(kind: str, known: dict[str, Any]) -> list[str]:
    """The names of a table's columns; none of a network, which is not read here."""
    data = known[DATA]
    if kind == "grid":
        if data not in BUILT_IN and not os.path.isfile(data):
            named = " or ".join(BUILT_IN)
            raise InputError(f"There is no file {data}. {named} are built in.")
        return []
    return list(_opened(known).names)


def _opened(known: dict[str, Any]) -> Any:
    """The table, of which nothing but its header was read."""
    from gridveil.wind.io.read_options import CsvStyle
    from gridveil.wind.io.sources import open_source

    style = {name: known[name] for name in ("sep", "decimal", "encoding") if name in known}
    return open_source(known[DATA], CsvStyle(**style))


def _choose(words: str, known: tuple[str, ...]) -> str:
    def check(text: str) -> str:
        if text.strip() not in known:
            raise typer.BadParameter(f"Write {' or '.join(known)}.")
        return text.strip()

    return str(typer.prompt(f"{words} ({' or '.join(known)})", value_proc=check))
