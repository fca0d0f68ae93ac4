"""What a release keeps of the columns of a network's file, and what happens to the others.

Writers copy the columns that `copied` returns, and nothing else. The statement, the report, the
command line and the documentation list the rest from `changes`: each column with its fate and the
reason.

What happens to a column is its fate; `table` has the fates of each format. A column that is not in
it may copy a private value, so it is dropped, and listed too. The list depends on which tables and
columns a file has, never on their contents.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridveil.grid.io.released_columns.reasons import (
    DISPATCH,
    EVERY,
    RATED_A,
    RATED_AS,
    UNREAD,
    Fate,
    Rule,
)
from gridveil.grid.io.released_columns.table import KEPT, RULES

Bools = NDArray[np.bool_]
CHANGED = "changed_columns"
"""The statement's key for the list of changes."""
FATES: tuple[Fate, ...] = ("dropped", "released", "rewritten")
"""From strong to weak: if several private parameters change a column, the strongest fate wins."""
TIMES = "Ratios that are declared public multiply it."
KEPT_ROWS = "Elements that are declared public keep theirs."


@dataclass(frozen=True)
class Change:
    """Columns of one table that a release changes, and why.

    Parameters
    ----------
    table, columns
        Their names in the file's format.
    fate
        ``"released"`` (with noise), ``"rewritten"`` (from public and released data), ``"dropped"``.
    reason
        Why, in a sentence.
    """

    table: str
    columns: tuple[str, ...]
    fate: Fate
    reason: str

    def to_json(self) -> dict[str, Any]:
        """Return it in the form of the statement."""
        return {**asdict(self), "columns": list(self.columns)}


@cache
def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def _rules(kind: str, table: str, column: str, parameters: Sequence[str]) -> Iterator[Rule]:
    for rule in RULES[kind]:
        if (
            table in _words(rule.tables)
            and column in _words(rule.columns)
            and (rule.parameters == EVERY or {*_words(rule.parameters)} & {*parameters})
        ):
            yield rule


def copied(kind: str, table: str, parameters: Sequence[str]) -> tuple[str, ...]:
    """Return the columns of a table that a release of these parameters copies.

    Some elements of a copied column may still be changed: see `fate_of`.
    """
    kept = _words(KEPT[kind].get(table, ""))
    return tuple(
        name for name in kept if all(rule.some for rule in _rules(kind, table, name, parameters))
    )


def row_groups(
    parameters: Sequence[str], protected: Mapping[str, Bools]
) -> Iterator[tuple[tuple[str, ...], Bools]]:
    """Yield groups of rows with fewer private parameters than others, and these parameters.

    Parameters
    ----------
    parameters
        The private parameters.
    protected
        The rows whose value of a parameter is protected; all rows if it is not listed.
    """
    partial = [name for name in parameters if name in protected]
    if not partial:
        return
    columns = np.column_stack([protected[name] for name in partial])
    for pattern in np.unique(columns, axis=0):
        if not pattern.all():
            public = {name for name, own in zip(partial, pattern, strict=True) if not own}
            rows: Bools = (columns == pattern).all(axis=1)
            yield tuple(name for name in parameters if name not in public), rows


def private_of_each(
    parameters: Sequence[str],
    protected: Mapping[str, Bools],
    branches: Iterable[object],
    loads: Iterable[tuple[object, int]],
    units: Iterable[object],
) -> dict[int, tuple[str, ...]]:
    """Return the private parameters of every element that has fewer of them than others, by `id`.

    Parameters
    ----------
    parameters, protected
        As in `row_groups`.
    branches, loads, units
        The elements of a file for the rows of a network's tables; loads with their buses. One that
        is several branches is public only if all of these are.
    """
    public: dict[int, set[str]] = {}
    if "capacity" in protected:
        for one, own in zip(branches, protected["capacity"], strict=True):
            public.setdefault(id(one), {"capacity"})
            if own:
                public[id(one)].discard("capacity")
    if "load" in protected:
        for one, bus in loads:
            if not protected["load"][bus]:
                public.setdefault(id(one), set()).update(("load", "reactive_load"))
    if "generator_limit" in protected:
        for one, own in zip(units, protected["generator_limit"], strict=True):
            if not own:
                public.setdefault(id(one), set()).add("generator_limit")
    return {
        key: tuple(name for name in parameters if name not in names)
        for key, names in public.items()
    }


def fate_of(kind: str, table: str, column: str, parameters: Sequence[str]) -> Rule | None:
    """Return the rule that changes a column, or None if it is copied."""
    found = list(_rules(kind, table, column, parameters))
    if found:
        return min(found, key=lambda rule: FATES.index(rule.fate))
    if column in _words(KEPT[kind].get(table, "")):
        return None
    return Rule(table, column, EVERY, "dropped", UNREAD)


def changes(
    kind: str,
    present: Mapping[str, Iterable[str]],
    parameters: Sequence[str],
    partial: Collection[str] = (),
    *,
    dispatched: bool = False,
    ratios: bool = False,
) -> tuple[Change, ...]:
    """List all columns of a file that its release changes, with the reasons.

    Parameters
    ----------
    kind
        The format.
    present
        The columns that the file has, by table.
    parameters
        The private parameters.
    partial
        The parameters that are private for some elements only.
    dispatched
        Whether set points of units are declared public, and kept.
    ratios
        Whether ratios of further ratings to the first are declared public.
    """
    whole = tuple(name for name in parameters if name not in partial)
    found: dict[tuple[str, Fate, str], list[str]] = {}
    for table, columns in present.items():
        for column in columns:
            rule = fate_of(kind, table, column, parameters)
            if rule is not None and not (dispatched and rule.reason == DISPATCH):
                kept = len(whole) < len(parameters) and _kept(kind, table, column, whole)
                reason = f"{rule.reason} {KEPT_ROWS}" if kept else rule.reason
                if ratios and rule.reason in (RATED_A, RATED_AS):
                    reason = f"{reason} {TIMES}"
                names = found.setdefault((_plain(table), rule.fate, reason), [])
                names.append(_plain(column))
    return tuple(
        Change(table, tuple(dict.fromkeys(names)), fate, reason)
        for (table, fate, reason), names in found.items()
    )


def _kept(kind: str, table: str, column: str, parameters: Sequence[str]) -> bool:
    """Say whether an element keeps its entry of a column if only these parameters are private."""
    return fate_of(kind, table, column, parameters) is None


def _plain(name: str) -> str:
    """Return a plain name, or "(other)": users' own columns may have any text as a name."""
    return name if re.fullmatch(r"[A-Za-z_][A-Za-z_0-9]{0,40}\*?", name) else "(other)"


def lines(found: Sequence[Change]) -> Iterator[tuple[Fate, str, str]]:
    """Yield the list for people: a fate, the columns that have it for one reason, the reason."""
    for fate in FATES:
        reasons: dict[str, list[str]] = {}
        for one in found:
            if one.fate == fate:
                reasons.setdefault(one.reason, []).append(f"{one.table} {', '.join(one.columns)}")
        for reason, columns in reasons.items():
            yield fate, "; ".join(columns), reason
