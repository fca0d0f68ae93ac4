"""Read and write CGMES: the profiles that European operators exchange, in a zip file.

pypowsybl reads them (CGMES 2.4.15 and 3.0), and the network is the one that `powsybl` makes from
its XIIDM: the same buses, branches and capacities. The CGMES files themselves are written:

- **for their owner**: every profile as it was, with changed numbers in it;
- **for a release**: the profiles EQ, SSH and TP, and those of boundaries, built resource by
  resource from the allow-list of `released_columns`. States (SV), diagrams and dynamics are left
  out. The zip file has no times and no compression. Elements are in the order of the source.

All limits of a line (`OperationalLimit` of its terminals, or of itself) are one capacity, loads are
the powers of the SSH profile (or those of EQ), generator limits are those of generating units. A
model with HVDC lines, or with loads or machines of other classes than these, is released as XIIDM,
and a note says so.

Before anything is charged, pypowsybl reads a release with public numbers in place of the private
ones; the release is refused if one of the numbers is lost.
"""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from gridveil.errors import InputError
from gridveil.grid.io import Protected, powsybl, protected_elements, source_of, unlogged, writable
from gridveil.grid.io.cgmes.published_part import profiles, shown
from gridveil.grid.io.cgmes.rdf import (
    MODEL,
    RESOURCE,
    SCHEMAS,
    Graph,
    NotCgmes,
    bare,
    column,
    local,
    read_profiles,
    schema,
    write_zip,
)
from gridveil.grid.io.cgmes.resources import (
    Places,
    Unplaced,
    check_shared,
    load_id,
    places,
    put_limits,
    put_powers,
)
from gridveil.grid.io.powsybl import ac_gaps, bus_facts, limit_names, set_points, why_none
from gridveil.grid.io.powsybl.published_part import hidden_of, renamed_ids
from gridveil.grid.io.powsybl.to_network import build
from gridveil.grid.io.powsybl.tree import BRANCHES, Tree, elements, number, put_in_order
from gridveil.grid.io.released_columns.cgmes import KEPT
from gridveil.grid.model.network import Bools, Network
from gridveil.grid.model.parameters import check_parameters

__all__ = [
    "ac_gaps",
    "bus_facts",
    "columns",
    "limit_names",
    "read",
    "set_points",
    "strip",
    "why_none",
    "write",
    "write_release",
]

_CLOSE = 1e-9


@dataclass(frozen=True, eq=False)
class Model(Tree):
    """A CGMES model: its network as XIIDM, its RDF, and which resources the network's rows are.

    `ids` maps ids of the tree to ids of the files, if they differ.
    """

    graph: Graph = field(repr=False)
    places: Places = field(repr=False)
    ids: dict[str, str] = field(default_factory=dict, repr=False)


@unlogged("pypowsybl")
def read(source: str | os.PathLike[str]) -> Network:
    """Read a CGMES model in a zip file; `powsybl` reads any other network in a zip file.

    Raises
    ------
    InputError
        If pypowsybl is not installed, or the file is not a network.
    """
    try:
        graph = Graph(read_profiles(Path(source)))
    except NotCgmes:
        return powsybl.read(source)
    try:
        network = powsybl.read(source)
    except InputError:
        absent = _absent_voltages(graph)
        if not absent:
            raise
        raise InputError(
            f"'{Path(source).name}' refers to {len(absent)} base voltages that none of its "
            f"profiles has, {absent[0]} for example.",
            remedy="Put the boundary profiles (EQBD, TPBD), which have them, into the same zip "
            "file.",
        ) from None
    network = _in_order(network, graph)
    tree = source_of(network, "powsybl").data
    try:
        if elements(tree.root, "hvdcLine"):
            raise Unplaced("DCLineSegment")
        model = Model(tree.root, tree.origin, graph, places(graph, build(tree)[1]))
    except Unplaced as other:
        why = f"with {other} it can't be written as CGMES" if str(other) else "SV has loads"
        note = f"a release of this model is XIIDM: {why}"
        return replace(network, notes=(*network.notes, note))
    return replace(network, source=replace(source_of(network, "powsybl"), kind="cgmes", data=model))


def _absent_voltages(graph: Graph) -> list[str]:
    """Return the base voltages that are referred to, and in no profile: boundaries have them."""
    parts = (part for profile in graph.profiles for element in profile.root for part in element)
    used = {bare(one.get(RESOURCE, "")) for one in parts if column(one.tag) == "BaseVoltage"}
    return sorted(name for name in used - {""} if name not in graph)


def _in_order(network: Network, graph: Graph) -> Network:
    """Put a network's rows into the order of its files.

    pypowsybl's order depends on ids, which a release changes, and on chance if the file contains
    the models of several operators.
    """
    tree: Tree = source_of(network, "powsybl").data
    put_in_order(tree.root, graph.order())
    return powsybl.from_tree(tree, network.name)


def write(network: Network, path: str | os.PathLike[str]) -> None:
    """Write the model, with only those numbers changed that were changed in the network.

    It is for its owner: it contains names, descriptions and results of the files.
    """
    model: Model = source_of(network, "cgmes").data
    graph = model.graph.copied()
    before, _ = build(model)
    tree = powsybl.changed_tree(model, network)
    changed: Bools = before.branches.capacity != network.branches.capacity
    if np.isinf(network.branches.capacity[changed]).any():
        raise InputError(
            "The limit of a line was removed, which can't be written into CGMES.",
            remedy="Give it a large limit instead.",
        )
    put_limits(graph, model.places, network.branches.capacity, changed, {})
    put_powers(graph, model.places, build(tree)[1])
    _save(graph, path)


def strip(
    model: Model, parameters: str | Sequence[str], protected: Protected | None = None
) -> Model:
    """Make a new model with only what the allow-lists of all `parameters` contain."""
    private = check_parameters(parameters)
    own, graph = protected or {}, model.graph
    network, layout = build(model)
    if "generator_limit" in private:
        everyone = np.ones(len(layout.generators), dtype=np.bool_)
        check_shared(model.places, own.get("generator_limit", everyone))
    hidden = hidden_of(layout, private, own)
    ids = renamed_ids(model.root, private, hidden)
    names: dict[str, tuple[str, ...]] = {}
    known: dict[str, str] = {}
    for element in elements(model.root, *BRANCHES, "load", "generator"):
        name, mine = element.get("id", ""), hidden.get(id(element), private)
        if element.tag in BRANCHES:
            names[name] = tuple(one for one in mine if one == "capacity")
            known[name] = ids.get(name, name)
        if element.tag == "generator":
            names[name] = tuple(one for one in mine if one in ("generator_limit", "cost"))
            known[name] = ids.get(name, name)
        if element.tag in ("load", "danglingLine"):
            try:
                drawn = load_id(graph, element)
            except Unplaced:
                continue  # a half of a tie line
            names[drawn] = tuple(one for one in mine if one in ("load", "reactive_load"))
            end = " far end" if element.tag == "danglingLine" else ""
            known[drawn] = f"{ids.get(name, name)}{end}"
    finite = np.isfinite(network.branches.capacity)
    limits = frozenset(
        one.name
        for each, limited in zip(model.places.branches, finite, strict=True)
        for one in each
        if limited
    )
    found = shown(graph, private, names, known, limits)
    new = {name: found.id_of(name) for name in found.labels}
    tree = powsybl.strip(model, private, protected)
    return Model(
        tree.root,
        tree.origin,
        Graph(profiles(found)),
        model.places.renamed(new),
        {ids[name]: new[name] for name in ids if name in new},
    )


def write_release(
    network: Network, path: str | os.PathLike[str] | None, parameters: str | Sequence[str]
) -> Model:
    """Write `network`, with released values in it, for publication: CGMES from the allow-list.

    Parameters
    ----------
    network
        A network with the released values of `parameters`.
    path
        The file; None makes the model, lets pypowsybl read it as a check, and writes nothing.
    parameters
        ``"capacity"``, ``"load"`` or ``"generator_limit"``, or several of them.
    """
    source = source_of(network, "cgmes")
    private = check_parameters(parameters)
    bare: Model = source.data if source.private else strip(source.data, private)
    as_xiidm = replace(source, kind="powsybl", data=bare, private=private)
    tree = powsybl.write_release(replace(network, source=as_xiidm), None, private)
    graph = bare.graph.copied()
    if "capacity" in private:
        free = np.isinf(network.branches.capacity)  # declared to be without a limit
        own = protected_elements(network, "capacity", len(network.branches))
        # The limit of a public winding was removed too, if its transformer has private ones.
        changed: Bools = own | (build(bare)[0].branches.capacity != network.branches.capacity)
        changed &= ~free
        graph = graph.without(
            frozenset(
                limit.name
                for limits, none in zip(bare.places.branches, free, strict=True)
                for limit in limits
                if none
            )
        )
        put_limits(graph, bare.places, network.branches.capacity, changed, source.limit_ratios)
    hidden = None
    if "generator_limit" in private:
        hidden = protected_elements(network, "generator_limit", len(network.generators))
    put_powers(graph, bare.places, build(tree)[1], hidden)
    made = Model(tree.root, tree.origin, graph, bare.places, bare.ids)
    if path is None:
        _check(made)
    else:
        _save(graph, path)
    return made


def columns(model: Model) -> dict[str, tuple[str, ...]]:
    """List the properties of a model, class by class, as `released_columns` names them."""
    found: dict[str, dict[str, None]] = {}
    rest: dict[str, None] = {}
    for element in (one for profile in model.graph.profiles for one in profile.root):
        kind = local(element.tag)
        if kind in KEPT and (schema(element.tag) in SCHEMAS or element.tag.startswith(MODEL)):
            own = found.setdefault(kind, {"id": None})
            own |= dict.fromkeys(column(one.tag) for one in element)
        else:
            rest[kind] = None
    return {**{kind: tuple(names) for kind, names in found.items()}, "more": tuple(rest)}


@unlogged("pypowsybl")
def _check(model: Model) -> None:
    """Let pypowsybl read a release with public numbers, and check that none of them is lost."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "network.zip"
        _save(model.graph, path)
        try:
            again = _in_order(powsybl.read(path), model.graph)
        except InputError:
            raise _lost("network") from None
    mine, theirs = _values(model, model.ids), _values(source_of(again, "powsybl").data, {})
    for kind, own in mine.items():
        other = theirs[kind]
        if list(own) != list(other) or not all(
            math.isclose(one, two, rel_tol=_CLOSE, abs_tol=_CLOSE) or one == two
            for name in own
            for one, two in zip(own[name], other[name], strict=True)
        ):
            raise _lost(kind)


def _values(tree: Tree, ids: dict[str, str]) -> dict[str, dict[str, tuple[float, ...]]]:
    """Collect capacities, limits, loads and their buses by the ids of the files, in order."""
    network, layout = build(tree)
    lines, units = network.branches, network.generators
    found: dict[str, dict[str, tuple[float, ...]]] = {"line": {}, "generator": {}, "load": {}}
    numbers = (lines.capacity, lines.resistance, lines.reactance, lines.from_bus, lines.to_bus)
    for one, *rest in zip(layout.branches, *numbers, strict=True):
        name = one.element.get("id", "")
        found["line"][f"{ids.get(name, name)} {one.sides}"] = tuple(rest)
    for element, *rest in zip(layout.generators, units.p_min, units.p_max, units.bus, strict=True):
        name = element.get("id", "")
        found["generator"][ids.get(name, name)] = tuple(rest)
    for element, bus in layout.loads:
        name = element.get("id", "")
        powers = (number(element, one, 0.0) for one in ("p0", "generationTargetP"))
        found["load"][ids.get(name, name)] = (*powers, bus)
    return found


def _lost(kind: str) -> InputError:
    return InputError(
        f"A {kind} of this CGMES model does not come back from the file that a release of it would "
        "be.",
        remedy="Save the network as XIIDM with pypowsybl, and release that.",
    )


def _save(graph: Graph, path: str | os.PathLike[str]) -> None:
    with writable("powsybl"):
        write_zip(Path(path), graph.profiles)
