"""Read and write networks of pypowsybl, and files that it reads: XIIDM, UCTE, IEEE-CDF, CGMES.

Every format is converted to XIIDM first. What is read, in the terms of XIIDM:

- **buses**: the connected parts of voltage levels (closed switches join), stars of transformers
  with three windings, far ends of dangling lines and middles of tie lines. Parts that no generator
  feeds are out of service.
- **loads**: ``p0`` of loads that are connected and of dangling lines.
- **generators**: ``minP`` and ``maxP``. There are no costs.
- **branches**: lines, transformers with two windings, the three sides of transformers with three,
  dangling lines, in this order. The capacity is *one* number for a line: the least of its permanent
  limits (MVA; ampere by nominal voltage) in the groups of limits that are selected. All limits of
  the sides and durations of a released line are this number, times public ratios.

Batteries, HVDC lines and generation at far ends are public and constant, and a note says so.
Shunts draw the power of their conductance. For AC power flow taps and sections of shunts stay where
they are; converter stations and static var compensators that regulate a voltage inject any reactive
power within their limits.

A release is XIIDM, whatever the source's format: a new file, built from the allow-list of
`released_columns` by this package. pypowsybl's own writers are never used for it: properties,
aliases and extensions would still contain the original values.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridveil.errors import InputError
from gridveil.grid.io import (
    Source,
    optional_library,
    protected_elements,
    source_of,
    unlogged,
    writable,
)
from gridveil.grid.io.powsybl import constant_elements
from gridveil.grid.io.powsybl.branches import duration, limits_of
from gridveil.grid.io.powsybl.edit import put, put_dispatch, put_reactive
from gridveil.grid.io.powsybl.published_part import CARRIERS, columns, strip
from gridveil.grid.io.powsybl.swap_crossed_limits import Limits, put_back, uncrossed
from gridveil.grid.io.powsybl.to_network import build
from gridveil.grid.io.powsybl.tree import VERSION, XIIDM, Tree, number, parse, text_of
from gridveil.grid.io.substitutes import (
    reactive_reach,
    released_dispatch,
    without_reactive_copies,
)
from gridveil.grid.model.checks import Problem, readable
from gridveil.grid.model.network import Floats, Network
from gridveil.grid.model.parameters import check_parameters

__all__ = [
    "CARRIERS",
    "ac_gaps",
    "bus_facts",
    "columns",
    "from_tree",
    "limit_names",
    "read",
    "set_points",
    "strip",
    "why_none",
    "write",
    "write_release",
]

_SETTINGS = {
    "iidm.export.xml.version": VERSION,
    "iidm.export.xml.flatten": "true",
    "iidm.export.xml.iidm-version-incompatibility-behavior": "THROW_EXCEPTION",
}


@unlogged("pypowsybl")
def read(source: str | os.PathLike[str] | Any) -> Network:
    """Read a file that pypowsybl can read, or a pypowsybl network.

    Raises
    ------
    InputError
        If pypowsybl is not installed, the file is not a network, or it can't be a DC model.
    """
    library = optional_library("powsybl")
    crossed: Limits = {}
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        own = path.suffix.lower() in (".xiidm", ".iidm")
        name, (grid, crossed) = path.name, _from_file(library, path, own=own)
    else:
        name, grid, own = "network", source, True
    try:
        text = grid.save_to_string("XIIDM", _SETTINGS)
        tree = Tree(parse(text), XIIDM if own else str(grid.source_format))
    except Exception as error:  # noqa: BLE001 - what it can't hold fails in many ways
        raise InputError(
            f"'{name}' has elements that XIIDM {VERSION} does not hold ({type(error).__name__}).",
            remedy="Remove detailed DC equipment and the like, or give a simpler model.",
        ) from None
    put_back(tree.root, crossed)
    return from_tree(tree, name)


def from_tree(tree: Tree, name: str) -> Network:
    """Make the network of a tree."""
    network = replace(build(tree)[0], name=name)
    return replace(readable(network, name), source=Source("powsybl", tree))


def write(network: Network, path: str | os.PathLike[str]) -> None:
    """Write the network as XIIDM, with only those values changed that were changed in it.

    It is for its owner: it contains names, properties and results of the file.

    Raises
    ------
    InputError
        If the network did not come from such a file, or a value can't be written into it.
    """
    _save(text_of(changed_tree(source_of(network, "powsybl").data, network).root), path)


def changed_tree(tree: Tree, network: Network) -> Tree:
    """Return a copy of a tree with the values of a network that came from it."""
    found = Tree(copy.deepcopy(tree.root), tree.origin)
    before, layout = build(found)
    put(layout, before, network)
    return found


def write_release(
    network: Network, path: str | os.PathLike[str] | None, parameters: str | Sequence[str]
) -> Tree:
    """Write `network`, with released values in it, for publication: XIIDM from the allow-list.

    Parameters
    ----------
    network
        A network with the released values of `parameters`.
    path
        The file; None makes the tree and writes nothing.
    parameters
        ``"capacity"``, ``"load"`` or ``"generator_limit"``, or several of them.
    """
    source = source_of(network, "powsybl")
    private = check_parameters(parameters)
    bare = source.data if source.private else strip(source.data, private)
    tree = Tree(copy.deepcopy(bare.root), bare.origin)
    before, layout = build(tree)
    own = protected_elements(network, "capacity", len(network.branches))
    released = own if "capacity" in private else None
    put(
        layout,
        before,
        without_reactive_copies(network, private),
        released,
        source.limit_ratios,
    )
    put_dispatch(layout, released_dispatch(network))
    if "generator_limit" in private:
        hidden = protected_elements(network, "generator_limit", len(network.generators))
        put_reactive(layout, reactive_reach(network), hidden)
    if path is not None:
        _save(text_of(tree.root), path)
    return tree


def set_points(tree: Tree) -> Floats:
    """Return the set points of all units, MW."""
    units = build(tree)[1].generators
    return np.nan_to_num([number(one, "targetP", 0.0) for one in units])


def ac_gaps(tree: Tree) -> list[Problem]:
    """List the elements of which AC power flow needs more than is read."""
    return constant_elements.ac_gaps(tree.root)


def bus_facts(tree: Tree) -> dict[str, NDArray[Any]]:
    """Return public facts of buses, for rules about which elements are protected."""
    return {"voltage": np.array(build(tree)[1].places.voltages)}


def limit_names(tree: Tree) -> tuple[str, ...]:
    """Return the sides and durations of the lines' limits."""
    known = [one for branch in build(tree)[1].branches for one in limits_of(branch)]
    sides = {"side2" for _, _, side, _ in known if side == "side2"}
    temporary = (one for limits, *_ in known for one in limits.iter("temporaryLimit"))
    lasting = {duration(one) for one in temporary if "value" in one.attrib} - {""}
    return *sides, *sorted(lasting, key=lambda name: (len(name), name), reverse=True)


def why_none(tree: Tree, parameter: str) -> tuple[str, str] | None:
    """Say what the file lacks if it has no value of a parameter, and the remedy."""
    if parameter == "cost":
        return "files of this kind have no costs", "Choose another parameter."
    if parameter == "capacity":
        return (
            "no line has a permanent limit in a selected group of limits",
            "Give lines limits, or select groups of them.",
        )
    return None


def _from_file(library: Any, path: Path, *, own: bool) -> tuple[Any, Limits]:
    """Load a file; return limits to put back if it has crossed ones, which pypowsybl refuses."""
    if not os.path.isfile(path):  # `Path.is_file` fails on a name that is too long
        raise InputError(f"There is no file '{path}'.", remedy="Check the path.")
    try:
        return library.network.load(str(path)), {}
    except Exception as error:  # noqa: BLE001 - a broken file fails in many ways inside pypowsybl
        kind = type(error).__name__
    text, crossed = uncrossed(path) if own else ("", {})
    try:
        if crossed:
            return library.network.load_from_string(path.name, text), crossed
    except Exception as error:  # noqa: BLE001 - as above
        kind = type(error).__name__
    raise InputError(
        f"'{path.name}' is not a network that pypowsybl can read ({kind}).",
        remedy="Give XIIDM (.xiidm), CGMES (.zip), UCTE (.uct) or IEEE-CDF (.txt).",
    )


def _save(text: str, path: str | os.PathLike[str]) -> None:
    with writable("powsybl"):
        Path(path).write_text(text, encoding="utf-8")
