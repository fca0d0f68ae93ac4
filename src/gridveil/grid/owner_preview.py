"""What an owner should know of a file and its case before epsilon is spent on it.

Of the file: what could be private in it, and what a release would have of it, from the table that
writers follow (`released_columns.table`) and the columns that the file has. How many values there
are of a parameter is public in a release of it, too.

Of the case: whether it has a solution, and which options suit its values. That is for the owner's
eyes only: it solves the real case. Nothing here is published, charged, or asked by a release.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from gridveil.errors import InputError
from gridveil.grid.io import SUFFIXES, Source, module_of
from gridveil.grid.io.released_columns import Change, changes, fate_of, lines
from gridveil.grid.model.declarations import Declared
from gridveil.grid.model.network import Network
from gridveil.grid.model.parameters import PARAMETERS
from gridveil.grid.model.public_facts import PLACEHOLDER, default_range
from gridveil.grid.model.public_network import check_ranges
from gridveil.grid.model.sampling import own_models, sample_population
from gridveil.grid.opf.engine import solve_population
from gridveil.privacy.words import certainty, show_certainty
from gridveil.report.certainty_by_size import misfit, sizes

_USUAL_ALPHA = Fraction(30)
_MODELS, _FEWER, _LARGE = 100, 20, 500
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


@dataclass(frozen=True)
class Preview:
    """Whether a real case, and models sampled about it as a release does, have a solution.

    Parameters
    ----------
    case
        Whether the case has one as it is.
    models, served
        How many models were sampled, and how many of them have one.
    snapshots
        Whether the models are snapshots of the file instead.
    """

    case: bool
    models: int
    served: int
    snapshots: bool = False

    @property
    def words(self) -> list[str]:
        """What the owner should know, a sentence each."""
        said = []
        which = "snapshots" if self.snapshots else "models that vary loads, limits and costs by "
        which += "" if self.snapshots else "12.5%"
        if not self.case:
            said.append("The case has no solution as it is: no dispatch keeps to all limits.")
        if self.served == 0:
            said.append(
                f"None of {self.models:,} {which} has a solution on this network: a release would "
                "spend epsilon, and could not be compared. Correct the case, or give models of "
                "your own (--population)."
            )
        else:
            said.append(
                f"{self.served:,} of {self.models:,} {which} have a solution on this network."
            )
        return said

    def to_json(self) -> dict[str, Any]:
        """The figures."""
        return asdict(self)


def preview(network: Network) -> Preview:
    """Solve a real case, and models sampled about it."""
    size = _MODELS if len(network.buses) <= _LARGE else _FEWER
    own = own_models(network)
    models = sample_population(network, size) if own is None else own
    # Of several snapshots the case itself is none: it has the largest loads of all.
    case = own is not None or bool(np.isfinite(solve_population(network).cost[0]))
    served = int(np.isfinite(solve_population(network, models).cost).sum())
    return Preview(case, models.size, served, own is not None)


def advice(network: Network) -> list[str]:
    """All that the real values suggest for the options of a release."""
    return [*placeholder_words(network), *range_words(network), *step_words(network)]


def placeholder_words(network: Network) -> list[str]:
    """A proposal for ratings that limit nothing."""
    rated = network.branches.capacity
    count = int((np.isfinite(rated) & (rated >= PLACEHOLDER)).sum())
    if not count:
        return []
    return [
        f"{count:,} branches have ratings of {PLACEHOLDER:,.0f} MW or more, which are often "
        "placeholders. If they are, and everybody may know which lines have one, release with "
        f"--unlimited-above {PLACEHOLDER:.0f}."
    ]


def range_words(network: Network) -> list[str]:
    """Which parameters have values that the range of a release would clip, if it names none."""
    said = []
    for name, parameter in PARAMETERS.items():
        table = getattr(network, parameter.table)
        support = Declared().support(network, name)
        values = np.concatenate([getattr(table, column)[on] for column, on in support.items()])
        try:
            known = check_ranges((name,), {name: default_range(network, (name,), name)})[name]
        except InputError:
            continue  # nothing public tells, and a release asks for a range
        count = int(((values < known.low) | (values > known.high)).sum())
        if count:
            said.append(
                f"{count:,} of {len(values):,} values of {name} lie outside [{known.low:g}, "
                f"{known.high:g}] {parameter.unit}, the range of a release that names none: they "
                f"would count as the nearer end. Name one by what is public: --range {name}=LOW:"
                "HIGH."
            )
    return said


def step_words(network: Network) -> list[str]:
    """Whether one alpha in MW fits the lines, by those of a twentieth, a half and all but that."""
    rated = network.branches.capacity[network.branches.in_service]
    rated = rated[np.isfinite(rated) & (rated > 0) & (rated < PLACEHOLDER)]
    found = sizes(rated, [_USUAL_ALPHA] * len(rated), Fraction(1), relative=False)
    if misfit(found, "capacity", "MW") is None:
        return []
    small, median, large = (f"{one.noise:.0%}" for one in found)
    rating = [f"{one.value:,.4g} MW" for one in found]
    sure = [show_certainty(one.sure) for one in found]
    return [
        f"Noise of {_USUAL_ALPHA} MW is {small} of a small line here ({rating[0]}), "
        f"{median} of a median one ({rating[1]}) and {large} of a large one "
        f"({rating[2]}): one alpha in MW drowns the first or leaves the last open. A share of "
        "each value fits all of them: --alpha 20%. Or give each public class its own: --alpha "
        "380kV:100,others:20. Choose by what is public (voltages, kinds): a choice by the ratings "
        "would tell about them.",
        "At epsilon 1 an observer who asks of these three whether they are a tenth larger is right "
        f"at most {sure[0]}, {sure[1]} and {sure[2]} of the time at {_USUAL_ALPHA} MW, and "
        f"{show_certainty(certainty(Fraction(1)))} for each at 20%.",
    ]
