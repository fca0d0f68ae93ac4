"""PyPSA networks, and their ``.nc`` files.

What is read, at one snapshot, in PyPSA's words (its own ``optimize`` uses the same):

- **buses** with carrier AC; the reference of an island is the bus of its slack generator, else of
  its first one.
- **loads**: ``loads.p_set`` times minus their sign.
- **generators**: limits ``p_nom * p_min_pu`` and ``p_nom * p_max_pu``, both ``p_set`` where one is
  given; cost ``marginal_cost`` and ``marginal_cost_quadratic``.
- **branches**: ``lines``, then ``transformers``, types turned into numbers; capacity
  ``s_nom * s_max_pu``, infinite where that is; ``tap_ratio``, ``phase_shift`` and ``v_ang_max``.

Links, storage, global constraints, extendable, committable and piecewise components, investment
periods and scenarios are refused. Shunt impedances are left out, as ``optimize`` does.

What a release has, for every private parameter, at one snapshot called ``now``:

=================  ===============================================================================
buses              kept: name, v_nom, x, y
lines              kept: bus0, bus1, x, r, b, g, length, v_ang_max, active, s_nom, s_max_pu
transformers       the same without length, and tap_ratio, phase_shift
loads              kept: bus, p_set, q_set, sign, active
generators         kept: bus, active, whether slack, p_nom, p_min_pu, p_max_pu, p_set,
                   marginal_cost, marginal_cost_quadratic
dropped            all series, all results (p, p0, p1, mu_*, marginal_price, *_opt), *_extendable,
                   *_min, *_max, *_mod, *_set, types and their names, num_parallel, carriers,
                   ramps, ratings of other kinds, costs of capital, name, meta, crs, objective,
                   shapes, shunt impedances, every attribute and component not named here
=================  ===============================================================================

and in particular, names of elements being kept unless they are the ones with the private number:

=================  ===============================================================================
capacity           lines: s_nom from the released capacity, s_max_pu 1; length, b, g 0, which tell
                   how many circuits there are; named by order.
                   transformers: s_nom is 1; x, r are on it, with three digits; s_max_pu from the
                   released capacity; b, g 0; named by order
load               loads: p_set from the released load of the bus (all on its first load), q_set 0,
                   sign -1; named by order
generator_limit    generators: p_nom, p_min_pu, p_max_pu from the released limits, no p_set; named
                   by order
cost               generators: marginal_cost and marginal_cost_quadratic from the released costs;
                   named by order
=================  ===============================================================================

Several at once: whatever any of them drops is dropped.

Resistance and reactance of a line are public. Their ratio is that of its type, where it has one
from a catalogue, and a type has a rating there.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gridveil.errors import InputError
from gridveil.grid.checks import check
from gridveil.grid.formats import Source, optional_library, source_of, unlogged, writable
from gridveil.grid.formats.pypsa_edit import put
from gridveil.grid.formats.pypsa_release import rated_branches, strip
from gridveil.grid.formats.pypsa_tables import Snapshot, build
from gridveil.grid.network import Network
from gridveil.grid.public import check_parameters

__all__ = ["rated_branches", "read", "strip", "write", "write_release"]


@unlogged("pypsa")
def read(source: str | os.PathLike[str] | Any, snapshot: Any = None) -> Network:
    """Read a PyPSA network, or a ``.nc`` file of one.

    Parameters
    ----------
    source
        A ``pypsa.Network`` or a path.
    snapshot
        Which one to read, as in ``n.snapshots``; the first by default.

    Raises
    ------
    InputError
        Where PyPSA is not installed, the file is no network, or it can't be a DC model.
    """
    library = optional_library("pypsa")
    if isinstance(source, str | os.PathLike):
        network = _from_file(library, Path(source))
    elif isinstance(source, library.Network):
        network = source.copy()
    else:
        raise InputError(
            f"An object of type {type(source).__name__} is no PyPSA network.",
            remedy="Give a pypsa.Network or the path of its .nc file.",
        )
    data = Snapshot(network, _label(network, snapshot))
    return check(replace(build(data), source=Source("pypsa", data)))


@unlogged("pypsa")
def write(network: Network, path: str | os.PathLike[str] | None = None) -> Any:
    """The PyPSA network that `network` came from with what changed; written where `path` says.

    Raises
    ------
    InputError
        Where the network did not come from PyPSA, or a value has no attribute to go to.
    """
    data: Snapshot = source_of(network, "pypsa").data
    copied = Snapshot(data.network.copy(), data.label)
    put(copied, build(copied), network)
    return _save(copied.network, path)


@unlogged("pypsa")
def write_release(
    network: Network, path: str | os.PathLike[str] | None, parameters: str | Sequence[str]
) -> Any:
    """Write `network`, with released values in it, for publication; gives back the new network.

    Parameters
    ----------
    network
        A network with the released values of `parameters`.
    path
        Where to; None gives back the PyPSA network only.
    parameters
        ``"capacity"``, ``"load"``, ``"generator_limit"`` or ``"cost"``, or several of them.
    """
    source = source_of(network, "pypsa")
    private = check_parameters(parameters)
    if source.private:
        bare = Snapshot(source.data.network.copy(), source.data.label)
    else:
        bare = strip(source.data, private)
    put(bare, build(bare), network)
    return _save(bare.network, path)


def _from_file(library: Any, path: Path) -> Any:
    if not path.is_file():
        raise InputError(f"There is no file '{path}'.", remedy="Check the path.")
    try:
        return library.Network(str(path))
    except Exception as error:  # noqa: BLE001 - a broken file fails in many ways inside PyPSA
        raise InputError(
            f"'{path.name}' is no PyPSA network ({type(error).__name__}).",
            remedy="Write it with n.export_to_netcdf.",
        ) from None


def _label(network: Any, snapshot: Any) -> Any:
    if network.has_investment_periods or network.has_scenarios:
        raise InputError(
            "The PyPSA network has investment periods or scenarios.",
            remedy="Give a network of one period and one scenario.",
        )
    if snapshot is None:
        return network.snapshots[0]
    if snapshot not in network.snapshots:
        raise InputError(
            f"The PyPSA network has no snapshot {snapshot!r}.",
            remedy="Use one of n.snapshots.",
        )
    return snapshot


def _save(network: Any, path: str | os.PathLike[str] | None) -> Any:
    if path is not None:
        with writable("pypsa"):
            network.export_to_netcdf(str(path))
    return network
