"""What becomes of a network's file in a release: what could be private, what stays, what changes.

It follows from the table that writers follow (`released_columns.table`) and the columns that the
file has. How many values there are of a parameter is public in a release of it, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gridveil.grid.io import SUFFIXES, Source, module_of
from gridveil.grid.io.released_columns import Change, changes, fate_of, lines
from gridveil.grid.model.declarations import Declared
from gridveil.grid.model.network import Network
from gridveil.grid.model.parameters import PARAMETERS

KINDS = {
    "matpower": "a MATPOWER case",
    "pandapower": "a pandapower net",
    "pypsa": "a PyPSA network",
    "psse": "a PSS/E case",
    "cgmes": "a CGMES model",
    "powsybl": "a network that pypowsybl reads",
}


@dataclass(frozen=True)
class FileFacts:
    """What becomes of a file in a release.

    Parameters
    ----------
    kind, written_as
        The format, and how the file of a release ends.
    kept
        The columns that a release has as they are whatever is private, by table.
    always
        What it does not have so, whatever is private.
    entries, private
        How many values of a parameter could be private, and what changes with it beside `always`.
    """

    kind: str
    written_as: str
    kept: Mapping[str, Sequence[str]]
    always: tuple[Change, ...]
    entries: Mapping[str, int]
    private: Mapping[str, tuple[Change, ...]]

    def to_json(self) -> dict[str, Any]:
        """Everything."""
        return {
            "kind": self.kind,
            "written_as": self.written_as,
            "published": {table: list(columns) for table, columns in self.kept.items()},
            "whatever_is_private": [one.to_json() for one in self.always],
            "private": {
                name: {"values": count, "changes": [one.to_json() for one in self.private[name]]}
                for name, count in self.entries.items()
            },
        }

    def rows(self) -> list[tuple[str, str]]:
        """The same for people: a word and a line each."""
        kept = "; ".join(f"{table} {', '.join(names)}" for table, names in self.kept.items())
        said = [("file", f"{KINDS[self.kind]}; a release of it is a {self.written_as} file")]
        said.append(("published", kept))
        said += _lines(self.always)
        for name, count in self.entries.items():
            if not count:
                said.append((name, "has no values in this file"))
                continue
            values = "1 value" if count == 1 else f"{count:,} values"
            said.append((name, f"{values} could be private. With it, beside the above:"))
            said += _lines(self.private[name])
        return said


def _lines(found: Sequence[Change]) -> list[tuple[str, str]]:
    said: dict[str, list[str]] = {}
    for fate, columns, _ in lines(found):
        said.setdefault(f"  {fate}", []).append(columns)
    return [(word, "; ".join(columns)) for word, columns in said.items()]


def file_facts(network: Network) -> FileFacts | None:
    """What becomes of the file that a network was read from; None if it came from none."""
    source = network.source
    if not isinstance(source, Source) or source.private:
        return None
    kind = source.kind
    present = {
        table: names for table, names in module_of(kind).columns(source.data).items() if names
    }
    always = changes(kind, present, ())
    kept, told = {}, {}
    for table, columns in present.items():
        as_is = [name for name in columns if fate_of(kind, table, name, ()) is None]
        safe = [n for n in as_is if all(fate_of(kind, table, n, (p,)) is None for p in PARAMETERS)]
        if safe:
            kept[table] = tuple(dict.fromkeys(safe))
    for parameter in PARAMETERS:
        own = {
            table: [
                name
                for name in columns
                if fate_of(kind, table, name, (parameter,)) != fate_of(kind, table, name, ())
            ]
            for table, columns in present.items()
        }
        told[parameter] = changes(kind, own, (parameter,))
    suffix = next(end for end, name in SUFFIXES.items() if name == kind)
    declared = Declared()
    entries = {
        name: sum(int(one.sum()) for one in declared.support(network, name).values())
        for name in PARAMETERS
    }
    return FileFacts(kind, suffix, kept, always, entries, told)
