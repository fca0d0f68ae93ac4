"""Read and write pandapower nets, and their ``.json`` files.

What is read, in pandapower's terms (its own ``rundcopp`` uses the same):

- **buses**: ``bus``; the reference is an ``ext_grid`` or a ``gen`` with ``slack``. Buses that a
  closed bus-bus switch joins are one bus; those that no reference reaches are out of service.
- **loads**: ``load`` that is not controllable, ``p_mw * scaling``. ``shunt`` is separate.
- **generators**: ``ext_grid``, ``gen``, ``sgen`` and controllable ``load`` (a negative injection),
  in this order. An ``sgen`` or ``gen`` that is not controllable is a generator whose limits are
  its set power, never a negative load, so that each number can be written back to one place.
- **branches**: ``line``, ``trafo``, ``impedance``, in this order; one with an open switch is out of
  service. A line or transformer without ``max_loading_percent`` has no limit.
- **costs**: ``poly_cost`` and ``pwl_cost`` of active power.

- **three-winding transformers** are three branches without limits and a bus (`transformers`). DC
  lines and storages are public and constant, at their ``p_mw``.

Wards, motors and the like are refused. Controllers are left out (see `other_elements`). Profiles
become models on request (see `profiles`), and are not in the released net.

`released_columns` says what a release keeps, and what happens to every other column. If capacities
are private, a line has its whole impedance and charging on a length of 1 km, and max_i_ka from the
released capacity at 100% loading; a transformer is one unit on the net's base, with
max_loading_percent from the released capacity. A bus's released load is in the first of its loads.
Elements with a private number lose their names, since people write ratings into them.

Resistance and reactance of a line are public. Their ratio reveals a line's type, if it is from a
catalogue, and with it the type's rating.
"""

from __future__ import annotations

import copy
import io
import json
import math
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from gridveil.errors import InputError
from gridveil.grid.io import (
    Source,
    optional_library,
    protected_elements,
    source_of,
    unlogged,
    writable,
)
from gridveil.grid.io.pandapower.edit import put
from gridveil.grid.io.pandapower.profiles import models_at
from gridveil.grid.io.pandapower.published_part import (
    columns,
    published_impedance,
    published_reactive,
    put_dispatch,
    put_reactive,
    set_points,
    strip,
)
from gridveil.grid.io.pandapower.reactive import ac_gaps
from gridveil.grid.io.pandapower.to_network import (
    build,
    bus_facts,
    coordinates,
    limit_loading,
    load_places,
    why_none,
)
from gridveil.grid.io.substitutes import (
    reactive_reach,
    released_dispatch,
    without_reactive_copies,
)
from gridveil.grid.model.checks import readable
from gridveil.grid.model.costs import clip_points, with_points
from gridveil.grid.model.network import Network
from gridveil.grid.model.parameters import check_parameters

__all__ = [
    "ac_gaps",
    "bus_facts",
    "columns",
    "coordinates",
    "load_places",
    "published_impedance",
    "published_reactive",
    "read",
    "set_points",
    "strip",
    "why_none",
    "write",
    "write_release",
]


@unlogged("pandapower")
def read(
    source: str | os.PathLike[str] | Any, max_loading: float | None = None, snapshots: Any = None
) -> Network:
    """Read a pandapower net, or a ``.json`` file of one.

    Parameters
    ----------
    source
        A net or a path.
    max_loading
        Loading in percent that limits lines and transformers without max_loading_percent; by
        default they have no limit, as in rundcopp.
    snapshots
        Times of net.profiles to use as models (see `profiles`); none by default.

    Raises
    ------
    InputError
        If pandapower is not installed, the file is not a net, or the net can't be a DC model.
    """
    library = optional_library("pandapower")
    if isinstance(source, str | os.PathLike):
        net = _from_file(library, Path(source))
    elif isinstance(source, library.pandapowerNet):
        net = copy.deepcopy(source)
    else:
        raise InputError(
            f"Expected a pandapower net, got an object of type {type(source).__name__}.",
            remedy="Give a pandapower net or the path of its .json file.",
        )
    if max_loading is not None:
        limit_loading(net, max_loading)
    network = build(net)
    found = None if snapshots is None else models_at(net, snapshots)
    read = Source("pandapower", net, models=found)
    return replace(readable(network, f"Network '{network.name}'"), source=read)


@unlogged("pandapower")
def write(network: Network, path: str | os.PathLike[str] | None = None) -> Any:
    """Return the net that `network` came from, with changed values; write it to `path`.

    Raises
    ------
    InputError
        If the network did not come from pandapower, or there is no column for a value.
    """
    net = copy.deepcopy(source_of(network, "pandapower").data)
    put(net, build(net), network)
    return _save(net, path)


@unlogged("pandapower")
def write_release(
    network: Network, path: str | os.PathLike[str] | None, parameters: str | Sequence[str]
) -> Any:
    """Write `network`, with released values in it, for publication, and return the new net.

    Parameters
    ----------
    network
        A network with the released values of `parameters`.
    path
        The file; None returns the net only.
    parameters
        ``"capacity"``, ``"load"``, ``"generator_limit"`` or ``"cost"``, or several of them.
    """
    source = source_of(network, "pandapower")
    private = check_parameters(parameters)
    net = copy.deepcopy(source.data) if source.private else strip(source.data, private)
    if "generator_limit" in private:
        network = _with_public_ends(network)
    bare = build(net)
    put(net, bare, without_reactive_copies(network, private))
    # Use the released file's branches: the owner's impedances may have more digits, which would
    # reveal ratings.
    put_dispatch(net, released_dispatch(replace(network, branches=bare.branches)))
    if "generator_limit" in private:
        hidden = protected_elements(network, "generator_limit", len(network.generators))
        put_reactive(net, reactive_reach(network), hidden)
    return _save(net, path)


def _with_public_ends(network: Network) -> Network:
    """End piecewise-linear costs at the released limits, with all inner points kept."""
    units = network.generators
    low, high = units.p_min.copy(), units.p_max.copy()
    for at, points in enumerate(units.points):
        if points is not None and len(points) > 2:
            low[at] = min(low[at], points[1, 0] - 1.0)
            high[at] = max(high[at], points[-2, 0] + 1.0)
    hidden = protected_elements(network, "generator_limit", len(units))
    return replace(network, generators=with_points(units, clip_points(units, low, high), hidden))


def _readable(text: str) -> str:
    """Write extreme numbers of JSON as the nearest that are read: no private one decides a refusal.

    The tables of a net are JSON in texts of JSON. Other texts, such as names, stay as they are. All
    numbers are written again, in all files, so that how others are read depends on no private one.
    """
    read = json.loads(text, parse_float=_near, parse_int=_whole, object_hook=_inner)
    return json.dumps(read)


def _near(text: str) -> float:
    value = float(text)
    size = min(abs(value), sys.float_info.max)
    return math.copysign(max(size, sys.float_info.min) if size else size, value)


def _whole(text: str) -> float:
    if len(text) <= 20 and -(2**63) <= int(text) < 2**63:
        return int(text)
    return _near(text)


def _inner(found: dict[str, Any]) -> dict[str, Any]:
    held = found.get("_object")
    if isinstance(held, str):
        with suppress(ValueError):  # not all is JSON
            found["_object"] = _readable(held)
    return found


def _from_file(library: Any, path: Path) -> Any:
    if not os.path.isfile(path):  # `Path.is_file` fails on a name that is too long
        raise InputError(f"There is no file '{path}'.", remedy="Check the path.")
    try:
        text = path.read_text(encoding="utf-8")
        net = library.from_json(io.StringIO(_readable(text)))
    except Exception as error:  # noqa: BLE001 - a broken file fails in many ways inside pandapower
        raise InputError(
            f"'{path.name}' is not a pandapower net ({type(error).__name__}).",
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
