"""Read and write PyPSA networks, and their ``.nc`` files.

What is read at one snapshot, in PyPSA's terms (its own ``optimize`` uses the same):

- **buses** with carrier AC; the reference of an island is the bus of its slack generator, or else
  of its first generator.
- **loads**: ``loads.p_set`` (and ``q_set``, for one snapshot) times minus their sign.
- **generators**: limits ``p_nom * p_min_pu`` and ``p_nom * p_max_pu``, or both ``p_set`` if it is
  given; cost ``marginal_cost`` and ``marginal_cost_quadratic``.
- **branches**: ``lines``, then ``transformers``, with types converted to numbers; capacity
  ``s_nom * s_max_pu``, which may be infinite; ``tap_ratio``, ``phase_shift`` and ``v_ang_max``.

Links, storage units and stores are public and constant: at their ``p_set`` at the snapshot, kept in
the file, mentioned in a note. Extendable components have the size in the file. Buses of a carrier
other than AC, and what is connected to them, are kept in the file (with released values if they are
private) and are not in the model. Committable and piecewise components, investment periods and
scenarios are refused. Shunt impedances are left out, as in ``optimize``, and so are global
constraints; those of primary energy stay in the file.

A network with several snapshots is read at the one that the caller names, or at several of them
(see `snapshot_models`). Series of availability (p_max_pu, p_min_pu) are public. If generator limits
are private, the series are not part of them: limits are then read at full availability, on request,
and the series stay in the file with the released limits.

`released_columns` says what a release keeps, and what happens to every other attribute. A release
has one snapshot, with the values of all series at it, or the snapshots that were read. If
capacities are private, a line has s_nom from the released capacity; a transformer is on 1 MVA, with
s_max_pu from the released capacity. Elements with a private number are named by their order, since
people write ratings into names; others keep their names.

Resistance and reactance of a line are public. Their ratio reveals a line's type, if it is from a
catalogue, and with it the type's rating.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gridveil.errors import InputError
from gridveil.grid.io import (
    Source,
    optional_library,
    source_of,
    unlogged,
    writable,
)
from gridveil.grid.io.pypsa import snapshot_models as several
from gridveil.grid.io.pypsa.edit import put
from gridveil.grid.io.pypsa.loads_over_time import load_names, load_places, load_series, put_series
from gridveil.grid.io.pypsa.published_part import META, columns, published_impedance, strip
from gridveil.grid.io.pypsa.reactive import ac_gaps
from gridveil.grid.io.pypsa.read_columns import Snapshot, bus_facts, coordinates
from gridveil.grid.io.pypsa.snapshot_models import models
from gridveil.grid.io.pypsa.to_network import build
from gridveil.grid.io.snapshot_choice import chosen
from gridveil.grid.io.substitutes import without_reactive_copies
from gridveil.grid.model.checks import readable
from gridveil.grid.model.network import Network
from gridveil.grid.model.parameters import check_parameters

__all__ = [
    "ac_gaps",
    "bus_facts",
    "columns",
    "coordinates",
    "load_names",
    "load_places",
    "load_series",
    "models",
    "published_impedance",
    "read",
    "strip",
    "write",
    "write_loads",
    "write_release",
]


@unlogged("pypsa")
def read(
    source: str | os.PathLike[str] | Any,
    snapshot: Any = None,
    full_availability: bool = False,
    snapshots: Any = None,
) -> Network:
    """Read a PyPSA network, or a ``.nc`` file of one.

    Parameters
    ----------
    source
        A ``pypsa.Network`` or a path.
    snapshot
        The snapshot to read, as in ``n.snapshots`` or as text; needed if there are several.
    full_availability
        Whether to read limits of generators with series of p_max_pu or p_min_pu at full
        availability (0 to p_nom) instead of at the snapshot. A released file has a mark for it.
    snapshots
        Several snapshots to read: ``"all"``, ``"every 24h"``, a file with one per line, or a list.
        They become the models that a release serves by default.

    Raises
    ------
    InputError
        If PyPSA is not installed, the file is not a network, or it can't be a DC model.
    """
    library = optional_library("pypsa")
    if isinstance(source, str | os.PathLike):
        network = _from_file(library, Path(source))
    elif isinstance(source, library.Network):
        network = _copied(source)
    else:
        raise InputError(
            f"Expected a PyPSA network, got an object of type {type(source).__name__}.",
            remedy="Give a pypsa.Network or the path of its .nc file.",
        )
    full = full_availability or network.meta.get(META) is True
    data = Snapshot(network, _labels(network, snapshot, snapshots), full)
    several.check(data)
    built = build(data)
    return replace(readable(built, f"Network '{built.name}'"), source=Source("pypsa", data))


@unlogged("pypsa")
def write(network: Network, path: str | os.PathLike[str] | None = None) -> Any:
    """Return the PyPSA network that `network` came from, with changed values; write it to `path`.

    Raises
    ------
    InputError
        If the network did not come from PyPSA, or there is no attribute for a value.
    """
    data: Snapshot = source_of(network, "pypsa").data
    copied = replace(data, network=data.network.copy())
    put(copied, build(copied), network)
    return _save(copied.network, path)


@unlogged("pypsa")
def write_release(
    network: Network, path: str | os.PathLike[str] | None, parameters: str | Sequence[str]
) -> Any:
    """Write `network`, with released values in it, for publication, and return the new network.

    Parameters
    ----------
    network
        A network with the released values of `parameters`.
    path
        The file; None returns the PyPSA network only.
    parameters
        ``"capacity"``, ``"load"``, ``"generator_limit"`` or ``"cost"``, or several of them.
    """
    source = source_of(network, "pypsa")
    private = check_parameters(parameters)
    if source.private:
        bare = replace(source.data, network=source.data.network.copy())
    else:
        bare = strip(source.data, private)
    put(bare, build(bare), without_reactive_copies(network, private))
    return _save(bare.network, path)


@unlogged("pypsa")
def write_loads(
    network: Network, path: str | os.PathLike[str], times: Any, loads: Any, names: Sequence[str]
) -> None:
    """Write a network with released loads over time as its snapshots; see `put_series`."""
    _save(put_series(write_release(network, None, ("load",)), times, loads, names), path)


def _copied(network: Any) -> Any:
    """Copy a network without the solver's model of an optimisation, which PyPSA can't copy."""
    return copy.deepcopy(network, {id(getattr(network, "_model", None)): None})


def _from_file(library: Any, path: Path) -> Any:
    if not os.path.isfile(path):  # `Path.is_file` fails on a name that is too long
        raise InputError(f"There is no file '{path}'.", remedy="Check the path.")
    try:
        return library.Network(str(path))
    except Exception as error:  # noqa: BLE001 - a broken file fails in many ways inside PyPSA
        raise InputError(
            f"'{path.name}' is not a PyPSA network ({type(error).__name__}).",
            remedy="Write it with n.export_to_netcdf.",
        ) from None


def _labels(network: Any, snapshot: Any, snapshots: Any) -> tuple[Any, ...]:
    if network.has_investment_periods or network.has_scenarios:
        raise InputError(
            "The PyPSA network has investment periods or scenarios.",
            remedy="Give a network of one period and one scenario.",
        )
    if snapshot is not None and snapshots is not None:
        raise InputError(
            "One snapshot and several were asked for.", remedy="Leave snapshot or snapshots out."
        )
    known = list(network.snapshots)
    if snapshot is None:
        if snapshots is None and len(known) > 1 and network.meta.get(several.META) is True:
            snapshots = "all"
        if snapshots is not None:
            return chosen(network.snapshots, snapshots, "PyPSA network")
        if len(known) > 1:
            raise InputError(
                f"The PyPSA network has {len(known):,} snapshots, {known[0]} to {known[-1]}, and a "
                "model has one.",
                remedy="Name the one to read: snapshot=... (--snapshot NAME); for loads over time "
                "(--series) what it has of limits and availability holds at all times. Or, without "
                "--series, let several be the models of a release: snapshots='all' "
                "(--snapshots all).",
            )
        return (known[0],)
    found = [label for label in known if snapshot in (label, str(label))]
    if not found:
        raise InputError(
            f"The PyPSA network has no snapshot {snapshot!r}.",
            remedy=f"Name one as it is written there: they run from {known[0]} to {known[-1]}.",
        )
    return (found[0],)


def _save(network: Any, path: str | os.PathLike[str] | None) -> Any:
    if path is not None:
        with writable("pypsa"):
            network.export_to_netcdf(str(path))
    return network
