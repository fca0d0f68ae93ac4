"""Read and write networks: one module for each format, all with the same functions.

Every module has

- ``read(source) -> Network``, which puts a `Source` of its kind into ``network.source``;
- ``write(network, path)``, which changes only what was changed in the network;
- ``write_release(network, path, parameters)``, which builds the file from an allow-list for the
  private parameters and copies nothing else; if the path is None it builds the file and writes
  nothing;
- ``ac_gaps(data)``, which lists a problem for every element that AC power flow can't have;
- ``bus_facts(data)``, public facts of all buses, one array each: ``voltage`` (kV), ``area``...

A module may have ``strip(data, parameters, protected) -> data``: ``source.data`` without the
parameters and everything that copies, bounds or was computed from them. `strip` and `write_release`
take a name or a sequence of names; with several parameters, whatever any of them drops is dropped.
Elements that are not `protected` keep what only that parameter would have dropped.
``network.split`` keeps the source of a format with `strip` and drops that of any other, so that no
private number remains in a public network.

A format that has `strip` also has ``columns(data)``: the tables and columns of a file, from which
`released_columns` lists those that a release changes.

``models(data)`` returns the models that a file itself contains and a release may serve, as arrays
of a population, or None; PyPSA has it (its snapshots).

``coordinates(data)`` returns those of the buses in the order of the file, NaN for what is not a
coordinate: a picture is not worth refusing a network. pandapower and PyPSA have it.

``set_points(data)`` returns the set points of all units in the order of the network (MW), for an
owner who declares them public; PyPSA has none.

``limit_names(data)`` returns the names of the limits that lines have besides their capacity:
durations, sides, further ratings. MATPOWER, PSS/E, CGMES and powsybl have it.

``why_none(data, parameter)`` says what a file lacks if it has no value of a parameter to release,
and what to do; pandapower, CGMES and powsybl have it.

A format whose impedances are relative to ratings also has ``published_impedance(data)``: which
branches these are, and all branches, with their impedances in stripped data. If capacities are
private, `strip` keeps few digits of them (`coarse`): 11.2% on 37.3 MVA, converted to another base
with all digits, would reveal both numbers. ``published_reactive(data)`` returns buses and units
of stripped data, if their shunts or reactive limits may follow from private numbers; pandapower
has it.
"""

from __future__ import annotations

import importlib
import logging
import math
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gridveil.errors import InputError, unwarned

if TYPE_CHECKING:
    import pandas as pd

    from gridveil.grid.model.network import Network

Protected = Mapping[str, NDArray[np.bool_]]
"""The elements whose value of a private parameter is protected; the owner made the others public.

Parameters that are not listed are protected for all elements.
"""

Ratios = Mapping[str, float]
"""Public ratios of further limits of a line to its capacity, by their names."""

SUFFIXES = {
    ".m": "matpower",
    ".json": "pandapower",
    ".nc": "pypsa",
    ".raw": "psse",
    ".zip": "cgmes",
    **dict.fromkeys((".xiidm", ".iidm", ".uct", ".txt"), "powsybl"),
}
"""Formats by the suffixes of their files; a release is written with a format's first suffix."""
OBJECTS = {"pandapower": "pandapower", "pypsa": "PyPSA", "powsybl": "pypowsybl", "cgmes": "CGMES"}
"""The formats that other packages read, with the names that people use for them."""
PACKAGES = {"powsybl": "pypowsybl"}
"""Packages whose name differs from that of their format."""
_OTHER_LOGS = {"pypowsybl": ("powsybl",)}  # logs whose names do not start with the package's


@dataclass(frozen=True, eq=False)
class Source:
    """The file or object that a network came from, with what its format needs to write it back.

    Parameters
    ----------
    kind
        The format: ``"matpower"``, ``"pandapower"``, ``"pypsa"``, ``"psse"``, ``"cgmes"`` or
        ``"powsybl"``.
    data
        What the format's module keeps; only that module reads it.
    private
        The parameters that `strip` removed from `data`; empty if none were. A network without these
        is only ever written as a release of them.
    protected
        The elements whose value was removed, by parameter; all elements if it is not listed.
    dispatch
        Set points of all units (MW) that a release publishes, if its owner declared them public.
    limit_ratios
        Public ratios of a line's further limits to its capacity, by their `limit_names`; 1 for
        those that are not listed.
    models
        Models that were read with the network, as arrays of a population; None if none were, or if
        they are in `data`.
    """

    kind: str
    data: Any = field(repr=False)
    private: tuple[str, ...] = ()
    protected: Protected = field(default_factory=dict, repr=False)
    dispatch: NDArray[np.float64] | None = field(default=None, repr=False)
    limit_ratios: Ratios = field(default_factory=dict)
    models: Mapping[str, NDArray[np.float64]] | None = field(default=None, repr=False)


def module_of(kind: str) -> Any:
    """Return the module that reads and writes a format, loaded when it is first needed."""
    try:
        return importlib.import_module(f"gridveil.grid.io.{kind}")
    except ImportError as error:
        raise InputError(
            f"Networks of kind '{kind}' need a package that is not installed ({error.name}).",
            remedy=f"Install it, as in: pip install {kind}.",
        ) from None


def coarse(values: ArrayLike, digits: int = 3) -> NDArray[np.float64]:
    """Round numbers to three digits, more than any manufacturer guarantees of an impedance.

    >>> coarse([0.123456, -98765.0, 0.0]).tolist()
    [0.123, -98800.0, 0.0]
    """
    numbers = np.asarray(values, dtype=np.float64)
    return np.array([float(f"{value:.{digits}g}") for value in numbers])


def real(column: pd.Series[Any], name: str) -> NDArray[np.float64]:
    """Copy a column as floats, with NaN for missing entries.

    Raises
    ------
    InputError
        If an entry is not a number. It names the column only: the entry may be private.
    """
    import pandas as pd

    try:
        numbers = pd.to_numeric(column)
        if numbers.dtype.kind != "c":
            return np.array(numbers.to_numpy(dtype=float, na_value=np.nan))
    except (TypeError, ValueError):
        pass  # its message would show the entry
    raise InputError(f"{name} has entries that are not numbers.", remedy="Correct them.")


def over(value: float, by: float) -> float:
    """Divide; return NaN for a division by zero, which the check of a network finds."""
    return value / by if by else math.nan


def numbered(names: Iterable[str]) -> tuple[str, ...]:
    """Make names unique: the second occurrence of a name gets ``#2``.

    >>> numbered(["a", "b", "a"])
    ('a', 'b', 'a #2')
    """
    seen: Counter[str] = Counter()
    found = []
    for name in names:
        seen[name] += 1
        found.append(name if seen[name] == 1 else f"{name} #{seen[name]}")
    return tuple(found)


@contextmanager
def unlogged(kind: str) -> Iterator[None]:
    """Keep the package of a format from logging: PyPSA's log shows the tables that it reads.

    Some modules set their own level, which that of their package does not change. The packages'
    warnings (of pandas to pandapower, for example) are hidden too: they are not for the owner, and
    would bury those that are. NumPy says nothing of absurd private numbers, whatever a caller's
    ``np.seterr`` asks for.
    """
    with unwarned, np.errstate(all="ignore"), _silent_logs(kind):
        yield


@contextmanager
def _silent_logs(kind: str) -> Iterator[None]:
    before: dict[str, int] = {}

    def silence(names: Iterable[str]) -> None:
        for name in names:
            log = logging.getLogger(name)
            before.setdefault(name, log.level)
            log.setLevel(logging.CRITICAL + 1)

    try:
        silence((kind, *_OTHER_LOGS.get(kind, ())))  # some log while they are imported
        with suppress(ImportError):
            importlib.import_module(kind)
        known = logging.root.manager.loggerDict
        silence([name for name in known if name.startswith(f"{kind}.")])
        yield
    finally:
        for name, level in before.items():
            logging.getLogger(name).setLevel(level)


@contextmanager
def writable(kind: str) -> Iterator[None]:
    """Raise `InputError` if the network's own package fails to write it."""
    try:
        yield
    except OSError:
        raise  # a full disk, or a place that may not be written to
    except Exception as error:  # noqa: BLE001 - odd values fail in many ways inside the packages
        raise InputError(
            f"{OBJECTS[kind]} can't write this network ({type(error).__name__}).",
            remedy="Some of its tables hold values that are neither numbers nor text, or columns "
            "of both: correct them.",
        ) from None


def optional_library(kind: str) -> Any:
    """Import the optional package of a format when it is first needed."""
    try:
        return importlib.import_module(PACKAGES.get(kind, kind))
    except ImportError as error:
        raise InputError(
            f"Reading and writing {OBJECTS[kind]} networks needs a package that is not installed "
            f"({error.name}).",
            remedy=f"Install it: pip install gridveil[{kind}].",
        ) from None


def read_text(path: Path) -> str:
    """Read a text file; not all are UTF-8, and other bytes are kept as they are."""
    try:
        return path.read_bytes().decode("utf-8", "surrogateescape")
    except OSError as error:
        raise InputError(
            f"{path} can't be read: {error.strerror}.", remedy="Check the path."
        ) from None


def write_text(text: str, path: str | os.PathLike[str]) -> None:
    """Write a text, with the bytes that `read_text` kept."""
    try:
        Path(path).write_bytes(text.encode("utf-8", "surrogateescape"))
    except OSError as error:
        raise InputError(
            f"{Path(path)} can't be written: {error.strerror}.", remedy="Check the path."
        ) from None


def source_of(network: Network, kind: str) -> Source:
    """Return the source of a network of this format, or raise `InputError`."""
    source = network.source
    if not isinstance(source, Source) or source.kind != kind:
        raise InputError(
            f"Network '{network.name}' did not come from {OBJECTS.get(kind, 'PSS/E')}.",
            remedy="Write it as the kind that it came from.",
        )
    return source


def check_sizes(old: Network, new: Network, what: str) -> None:
    """Raise `InputError` if a network has more or fewer elements than the file it came from."""
    sizes = [[len(n.buses), len(n.generators), len(n.branches)] for n in (old, new)]
    if sizes[0] != sizes[1]:
        raise InputError(
            f"The network has other buses, generators or branches than the {what} it came from.",
            remedy="Change values only, not the elements.",
        )


def protected_elements(network: Network, parameter: str, count: int) -> NDArray[np.bool_]:
    """Mark the elements (of `count`) whose value of a parameter is protected; by default all."""
    source = network.source
    known = source.protected if isinstance(source, Source) else {}
    return known.get(parameter, np.ones(count, dtype=np.bool_))


OPTIONS = {
    "snapshot": ("pypsa",),
    "snapshots": ("pypsa", "pandapower"),
    "full_availability": ("pypsa",),
    "max_loading": ("pandapower",),
}
"""The options of `read_case`, and the formats that have each."""


def read_case(
    source: str | os.PathLike[str] | Any,
    *,
    snapshot: Any = None,
    snapshots: Any = None,
    full_availability: bool = False,
    max_loading: float | None = None,
) -> Network:
    """Read a network from a file or an object; it is written back as the same kind.

    Parameters
    ----------
    source
        A MATPOWER (``.m``) or PSS/E (``.raw``) case, a pandapower net or its ``.json`` file, a
        PyPSA network or its ``.nc`` file, a pypowsybl network or a file that pypowsybl reads
        (``.xiidm``, CGMES in a ``.zip``, UCTE ``.uct``, IEEE-CDF ``.txt``).
    snapshot
        PyPSA: which snapshot to read; needed if there are several.
    snapshots
        PyPSA, and pandapower with net.profiles: several snapshots to read: ``"all"``,
        ``"every 24h"``, a file with one per line, or a list. A release without a population uses
        them as its models; those of PyPSA stay in its file.
    full_availability
        PyPSA: read the limits of generators with series of availability at full availability.
        Needed to release generator limits of such a network.
    max_loading
        pandapower: the loading in percent that limits lines and transformers for which the net has
        no max_loading_percent. Without it they have no limit.

    Raises
    ------
    InputError
        If the kind is unknown, its package is missing, or the network has problems: it names them
        all. Whether costs are convex and values of parameters finite is not checked here, since
        they may be private: `problems` does that.
    """
    if isinstance(source, str | os.PathLike):
        suffix = Path(source).suffix.lower()
        kind = SUFFIXES.get(suffix)
        if kind is None:
            raise InputError(
                f"'{Path(source).name}' is not a network that can be read.",
                remedy="Save it as .m in MATPOWER: savecase('case.m', loadcase('case.mat'))."
                if suffix == ".mat"
                else f"Give a file that ends in one of {', '.join(SUFFIXES)}.",
            )
    else:
        packages = [base.__module__.split(".")[0] for base in type(source).__mro__]
        known = {PACKAGES.get(kind, kind): kind for kind in OBJECTS}
        kind = next((known[package] for package in packages if package in known), None)
        if kind is None:
            raise InputError(
                f"Expected a network, got an object of type {type(source).__name__}.",
                remedy="Give a path, a pandapower net, a PyPSA network or a pypowsybl one.",
            )
    given = {"snapshot": snapshot, "snapshots": snapshots, "max_loading": max_loading}
    asked = {name: value for name, value in given.items() if value is not None}
    asked |= {"full_availability": True} if full_availability else {}
    for name in asked:
        if kind not in OPTIONS[name]:
            raise InputError(
                f"{name} is for networks of {', '.join(OBJECTS[one] for one in OPTIONS[name])}.",
                remedy=f"Leave {name} out.",
            )
    network: Network = module_of(kind).read(source, **asked)
    return network


def network_suffix(network: Network) -> str:
    """Return the suffix of a released network's file, by the format that it came from."""
    kind = network.source.kind if isinstance(network.source, Source) else "matpower"
    return next(suffix for suffix, name in SUFFIXES.items() if name == kind)
