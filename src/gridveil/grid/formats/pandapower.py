"""pandapower nets, and their ``.json`` files.

What is read, in pandapower's words (its own ``rundcopp`` uses the same):

- **buses**: ``bus``; the reference is an ``ext_grid`` or a ``gen`` with ``slack``. Buses that a
  closed bus-bus switch joins are one bus; those that no reference reaches are out of service.
- **loads**: ``load`` that is not controllable, ``p_mw * scaling``. ``shunt`` is separate.
- **generators**: ``ext_grid``, ``gen``, ``sgen`` and controllable ``load`` (a negative injection),
  in this order. An ``sgen`` or ``gen`` that is not controllable is a generator whose limits are
  its set power, never a negative load: so each number has one place to be written back to.
- **branches**: ``line``, ``trafo``, ``impedance``, in this order; one with an open switch is out of
  service. A line or transformer without ``max_loading_percent`` has no limit.
- **costs**: ``poly_cost`` and ``pwl_cost`` of active power.

Three-winding transformers, DC lines, storage, wards and the like are refused.

What a release has, for every private parameter:

=================  ===============================================================================
bus                kept: name, vn_kv, in_service, coordinates
line               kept: ends, length, impedance, parallel, in_service, coordinates, limit
trafo              kept: ends, voltages, impedance, tap, parallel, in_service, limit
impedance          kept: ends, impedance, in_service, limit
switch             kept: bus, element, et, closed
load               kept: bus, in_service, controllable; p_mw, q_mvar and scaling of fixed ones,
                   limits of controllable ones
gen, sgen          kept: bus, in_service, controllable, slack, limits; p_mw and an sgen's scaling
                   only of fixed ones
ext_grid, shunt    kept: bus, in_service, limits; power of shunts
poly_cost          kept: cost of active power; that of reactive power is 0
pwl_cost           kept: active power
dropped            res_*, std_types, std_type, type, zone, measurement, controller, group,
                   characteristics, profiles, dispatch, voltage set points and limits, reactive
                   limits, sn_mva of loads and units, the net's name and options, every column
                   and table that is not named here
=================  ===============================================================================

and in particular, names of elements being kept unless they are the ones with the private number:

=================  ===============================================================================
capacity           line: max_i_ka from the released capacity at 100% loading, df 1; its whole
                   impedance on a length of 1 km, parallel 1, c and g 0; name dropped.
                   trafo: sn_mva is the net's base; vk_percent, vkr_percent are on it, from an
                   impedance with three digits; parallel 1, no-load losses 0;
                   max_loading_percent from the released capacity; name dropped.
                   impedance: sn_mva from the released capacity, per-unit values on it, from an
                   impedance with three digits; shunt parts 0; name dropped
load               load: p_mw from the released load of the bus (all on its first load);
                   q_mvar 0, scaling 1, name dropped. What a controllable load may take is the
                   limit of a unit: it is kept
generator_limit    min_p_mw, max_p_mw (and p_mw of fixed units) from the released limits; scaling
                   1, name dropped; ends of piecewise-linear costs moved to the released limits
cost               poly_cost and pwl_cost from the released costs; names of units dropped
=================  ===============================================================================

Several at once: whatever any of them drops is dropped.

Resistance and reactance of a line are public. Their ratio is that of its type, where it has one
from a catalogue, and a type has a rating there.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gridveil.errors import InputError
from gridveil.grid.checks import check
from gridveil.grid.costs import clip_points
from gridveil.grid.formats import Source, optional_library, source_of, unlogged, writable
from gridveil.grid.formats.pandapower_edit import put
from gridveil.grid.formats.pandapower_release import rated_branches, strip
from gridveil.grid.formats.pandapower_tables import build
from gridveil.grid.network import Network
from gridveil.grid.public import check_parameters

__all__ = ["rated_branches", "read", "strip", "write", "write_release"]


@unlogged("pandapower")
def read(source: str | os.PathLike[str] | Any) -> Network:
    """Read a pandapower net, or a ``.json`` file of one.

    Raises
    ------
    InputError
        Where pandapower is not installed, the file is no net, or the net can't be a DC model.
    """
    library = optional_library("pandapower")
    if isinstance(source, str | os.PathLike):
        net = _from_file(library, Path(source))
    elif isinstance(source, library.pandapowerNet):
        net = copy.deepcopy(source)
    else:
        raise InputError(
            f"An object of type {type(source).__name__} is no pandapower net.",
            remedy="Give a pandapower net or the path of its .json file.",
        )
    return check(replace(build(net), source=Source("pandapower", net)))


@unlogged("pandapower")
def write(network: Network, path: str | os.PathLike[str] | None = None) -> Any:
    """The net that `network` came from with the values that changed; written where `path` says.

    Raises
    ------
    InputError
        Where the network did not come from pandapower, or a value has no column to go to.
    """
    net = copy.deepcopy(source_of(network, "pandapower").data)
    put(net, build(net), network)
    return _save(net, path)


@unlogged("pandapower")
def write_release(
    network: Network, path: str | os.PathLike[str] | None, parameters: str | Sequence[str]
) -> Any:
    """Write `network`, with released values in it, for publication; gives back the new net.

    Parameters
    ----------
    network
        A network with the released values of `parameters`.
    path
        Where to; None gives back the net only.
    parameters
        ``"capacity"``, ``"load"``, ``"generator_limit"`` or ``"cost"``, or several of them.
    """
    source = source_of(network, "pandapower")
    private = check_parameters(parameters)
    net = copy.deepcopy(source.data) if source.private else strip(source.data, private)
    if "generator_limit" in private:
        network = _with_public_ends(network)
    put(net, build(net), network)
    return _save(net, path)


def _with_public_ends(network: Network) -> Network:
    """Piecewise-linear costs from the lower to the upper released limit, all inner points kept."""
    units = network.generators
    low, high = units.p_min.copy(), units.p_max.copy()
    for at, points in enumerate(units.points):
        if points is not None and len(points) > 2:
            low[at] = min(low[at], points[1, 0] - 1.0)
            high[at] = max(high[at], points[-2, 0] + 1.0)
    return replace(network, generators=clip_points(units, low, high))


def _from_file(library: Any, path: Path) -> Any:
    if not path.is_file():
        raise InputError(f"There is no file '{path}'.", remedy="Check the path.")
    try:
        net = library.from_json(str(path))
    except Exception as error:  # noqa: BLE001 - a broken file fails in many ways inside pandapower
        raise InputError(
            f"'{path.name}' is no pandapower net ({type(error).__name__}).",
            remedy="Write it with pandapower.to_json.",
        ) from None
    if not isinstance(net, library.pandapowerNet):
        raise InputError(
            f"'{path.name}' holds something else than a pandapower net.",
            remedy="Write it with pandapower.to_json.",
        )
    return net


def _save(net: Any, path: str | os.PathLike[str] | None) -> Any:
    if path is not None:
        with writable("pandapower"):
            optional_library("pandapower").to_json(net, str(path))
    return net
