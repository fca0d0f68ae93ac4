"""Build the part of an XIIDM tree that may be published, depending on the private parameters.

The new tree is built element by element from the allow-list of `released_columns`; nothing else is
copied. Elements with a private number get new ids from their order, and references are changed to
match.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence

import numpy as np

from gridveil.grid.io import Protected
from gridveil.grid.io.powsybl.edit import drop_limits
from gridveil.grid.io.powsybl.to_network import Layout, build
from gridveil.grid.io.powsybl.tree import BRANCHES, LIMITS, XIIDM, Tree, number
from gridveil.grid.io.released_columns import copied, private_of_each
from gridveil.grid.io.released_columns.table import KEPT
from gridveil.grid.model.parameters import check_parameters

CARRIERS = {
    "capacity": BRANCHES,
    "load": ("load", "danglingLine"),
    "generator_limit": ("generator",),
    "cost": ("generator",),
    "reactive_load": ("load", "danglingLine"),
}
"""The elements that hold the values of a parameter."""
_TEXTS = ("name", "pairingKey", "geographicalTags", "tso", "country")
LABEL = re.compile(r"[\w #/+-]{1,60}")
"""The texts that elements without a private number keep."""
_SIDES = {f"{tag}{side}": tag for tag in ("operationalLimitsGroup",) for side in ("", *"123")}
_SIDES |= {f"{tag}TapChanger{side}": f"{tag}TapChanger" for tag in ("ratio", "phase") for side in
           ("", *"123")}  # fmt: skip
_ENDED = re.compile(r"[123]$")


def strip(tree: Tree, parameters: str | Sequence[str], protected: Protected | None = None) -> Tree:
    """Make a new tree with only what the allow-lists of all `parameters` contain."""
    private = check_parameters(parameters)
    network, layout = build(tree)
    hidden = hidden_of(layout, private, protected or {})
    renamed = renamed_ids(tree.root, private, hidden)
    bare = Tree(_copy(tree.root, private, hidden, renamed), tree.origin)
    bare.root.set("id", "release")
    if "capacity" in private:
        # Limits in groups that are not selected are not the capacity; remove them.
        for one, new in zip(network.branches.capacity, build(bare)[1].branches, strict=True):
            if not np.isfinite(one):
                drop_limits(new)
    return bare


def columns(tree: Tree) -> dict[str, tuple[str, ...]]:
    """List the attributes of a tree, element by element, as `released_columns` names them."""
    found: dict[str, dict[str, None]] = {}
    rest: dict[str, None] = {}
    for element in tree.root.iter():
        table = _table(element.tag)
        if table in KEPT["powsybl"]:
            own = found.setdefault(table, {})
            own |= dict.fromkeys(_column(table, name) for name in element.attrib)
        elif not table.startswith("{"):
            rest[table] = None
    if tree.origin != XIIDM:
        rest["format"] = None
    # The children of an element that is dropped are dropped with it.
    return {**{table: tuple(names) for table, names in found.items()}, "more": tuple(rest)}


def hidden_of(
    layout: Layout, private: Sequence[str], protected: Protected
) -> dict[int, tuple[str, ...]]:
    """Return the private parameters of every element that has fewer of them than others."""
    branches = (one.element for one in layout.branches)
    return private_of_each(private, protected, branches, layout.loads, layout.generators)


def renamed_ids(
    root: ET.Element, private: Sequence[str], hidden: Mapping[int, tuple[str, ...]]
) -> dict[str, str]:
    """Map old to new ids of the elements that have a private number."""
    carriers: list[tuple[str, str]] = []
    taken: set[str] = set()  # ids that stay: which ones the others had decides nothing
    for element in root.iter():
        names, old = hidden.get(id(element), private), element.get("id")
        if old is not None and any(element.tag in CARRIERS[name] for name in names):
            carriers.append((old, element.tag))
        elif old is not None:
            taken.add(old)
    found: dict[str, str] = {}
    counts: dict[str, int] = {}
    for old, tag in carriers:
        place = counts.get(tag, 0)
        counts[tag] = place + 1
        new = f"{tag}-{place}"
        while new in taken:
            new += "'"
        found[old] = new
    return found


def _copy(
    element: ET.Element,
    private: tuple[str, ...],
    hidden: Mapping[int, tuple[str, ...]],
    renamed: Mapping[str, str],
) -> ET.Element:
    names = hidden.get(id(element), private)
    table = _table(element.tag)
    kept = copied("powsybl", table, names)
    found = ET.Element(element.tag)
    for name, value in element.attrib.items():
        if _column(table, name) in kept and (name not in _TEXTS or LABEL.fullmatch(value)):
            found.set(name, value)
    if element.get("id") in renamed:
        found.set("id", renamed[element.attrib["id"]])
    for name in ("danglingLineId1", "danglingLineId2"):
        if name in found.attrib:
            found.set(name, renamed.get(found.attrib[name], found.attrib[name]))
    for child in element:
        # Leave out calculated buses ("nodes"): they follow from switches and hold the state.
        if _table(child.tag) in KEPT["powsybl"] and "nodes" not in child.attrib:
            # Children have the private parameters of their element.
            inner = {**hidden, id(child): hidden.get(id(child), names)}
            found.append(_copy(child, private, inner, renamed))
    _neutral(found, element, names)
    return found


def _neutral(found: ET.Element, source: ET.Element, private: Sequence[str]) -> None:
    """Write neutral values for attributes that XIIDM requires and a release may not copy."""
    tag = _table(source.tag)
    if (tag == "load" and "load" in private) or (tag == "danglingLine" and "load" in private):
        found.attrib.update(p0="0.0", q0="0.0")
    elif tag == "generator":
        found.attrib.update(targetP="0.0")
        if source.get("voltageRegulatorOn") == "true" or "generator_limit" in private:
            found.attrib.update(targetQ="0.0")
        if "generator_limit" in private:
            found.attrib.update(minP="0.0", maxP="0.0")
            _only_sides(found)
    elif tag == "ratioTapChanger" and source.get("regulationMode") != "VOLTAGE":
        # A flow of reactive power is often a result. Without a mode, the value may be such a flow.
        for name in ("regulationValue", "targetDeadband"):
            found.attrib.pop(name, None)
        if "regulating" in found.attrib:
            found.set("regulating", "false")
    elif tag == "phaseTapChanger":
        found.attrib.update(regulating="false", regulationMode="CURRENT_LIMITER")
    elif tag in LIMITS and "capacity" in private and "permanentLimit" in source.attrib:
        found.set("permanentLimit", "1.0")
    elif tag == "temporaryLimit":
        if "name" not in found.attrib:
            found.set("name", f"{source.get('acceptableDuration', 'no')} s")
        if "capacity" in private and "value" in source.attrib:
            found.set("value", "1.0")
    if tag in BRANCHES and "capacity" in private:
        _rename_groups(found, source)


def _rename_groups(found: ET.Element, source: ET.Element) -> None:
    """Rename groups of limits by their order, and refer to the selected one by its new name."""
    for side in ("", *"123"):
        chosen = found.attrib.pop(f"selectedOperationalLimitsGroupId{side}", None)
        groups = (one.findall(f"operationalLimitsGroup{side}") for one in (found, source))
        for place, (new, old) in enumerate(zip(*groups, strict=True)):
            new.set("id", f"limits-{place}")
            if old.get("id") == chosen:
                found.set(f"selectedOperationalLimitsGroupId{side}", f"limits-{place}")


def _only_sides(found: ET.Element) -> None:
    """Keep only the signs of reactive limits (1, -1 or 0); `put_reactive` fills in the sizes."""
    curve = found.find("reactiveCapabilityCurve")
    limits = found.find("minMaxReactiveLimits")
    points = [] if curve is None else curve.findall("point")
    if limits is not None:
        points = [limits]
    for one in (curve, limits):
        if one is not None:
            found.remove(one)
    if points:
        low = min(number(point, "minQ", 0.0) for point in points)
        high = max(number(point, "maxQ", 0.0) for point in points)
        sides = {"minQ": str(-float(low < 0)), "maxQ": str(float(high > 0))}
        ET.SubElement(found, "minMaxReactiveLimits", sides)


def _table(tag: str) -> str:
    return _SIDES.get(tag, tag)


def _column(table: str, name: str) -> str:
    """Return the name of an attribute without its side, for branches."""
    sided = table in BRANCHES and name not in ("g1", "b1", "g2", "b2")
    return _ENDED.sub("", name) if sided else name
