"""Build the published profiles of a CGMES model, depending on the private parameters.

New profiles are built resource by resource from the allow-list of `released_columns`; nothing else
is copied. Elements with a private number get new ids made from their order, and parts (terminals,
limits, windings) get ids made from the element that they belong to; references are changed to
match.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from uuid import NAMESPACE_URL, uuid5

from gridveil.grid.io.cgmes.rdf import (
    ABOUT,
    ID,
    MODEL,
    PROFILES,
    RDF,
    RESOURCE,
    SCHEMAS,
    Graph,
    Profile,
    bare,
    column,
    identity,
    local,
    marked,
    schema,
    uris,
)
from gridveil.grid.io.powsybl.published_part import LABEL
from gridveil.grid.io.released_columns import copied, fate_of
from gridveil.grid.io.released_columns.cgmes import BRANCHES, KEPT, LIMITS, OWNED, UNITS
from gridveil.grid.io.released_columns.reasons import REACH, Rule

_CHANGERS = "RatioTapChanger PhaseTapChangerLinear PhaseTapChangerSymmetrical "
_CHANGERS += "PhaseTapChangerAsymmetrical PhaseTapChangerTabular"
_OWNERS = {
    "Terminal": ("ConductingEquipment",),
    "OperationalLimitSet": ("Terminal", "Equipment"),
    **dict.fromkeys((*LIMITS.split(), "VoltageLimit"), ("OperationalLimitSet",)),
    "PowerTransformerEnd": ("PowerTransformer",),
    **dict.fromkeys(_CHANGERS.split(), ("TransformerEnd",)),
    "RatioTapChangerTablePoint": ("RatioTapChangerTable",),
    "PhaseTapChangerTablePoint": ("PhaseTapChangerTable",),
    "CurveData": ("Curve",),
    "NonlinearShuntCompensatorPoint": ("NonlinearShuntCompensator",),
}
"""The properties by which a part refers to its owner."""
_USERS = {
    **{name: name for name in ("RatioTapChangerTable", "PhaseTapChangerTable")},
    **{name: name for name in ("TapChangerControl", "RegulatingControl", "OperationalLimitType")},
    "ReactiveCapabilityCurve": "InitialReactiveCapabilityCurve",
    **dict.fromkeys(UNITS.split(), "GeneratingUnit"),
    "LoadResponseCharacteristic": "LoadResponse",
}
"""The properties by which an owner refers to a part."""
_CLASSES = re.compile(
    "|".join(
        (
            *KEPT,
            "IdentifiedObject|ConductingEquipment|Conductor|ACDCTerminal|TransformerEnd|TapChanger",
            "PhaseTapChanger|PhaseTapChangerNonLinear|TapChangerTablePoint|RegulatingCondEq",
            "RotatingMachine|ShuntCompensator|OperationalLimit|Curve|Model",
        )
    )
)
_NUMBER = re.compile(r"[+-]?(\d{1,40}\.?\d{0,40}|\.\d{1,40})([eE][+-]?\d{1,3})?|true|false")
_CHOICE = re.compile(r"[A-Za-z]{1,60}\.[A-Za-z0-9]{1,60}")
_COUNTRY = re.compile(r"[A-Z]{2}")
_DATE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,3})?Z")
_CONTROLS = ("TapChangerControl", "RegulatingControl")
_ORDER = ("sequenceNumber", "endNumber", "step", "sectionNumber")


@cache
def _copied(kind: str, private: tuple[str, ...]) -> frozenset[str]:
    return frozenset(copied("cgmes", kind, private))


@cache
def _fate(kind: str, part: str, private: tuple[str, ...]) -> Rule | None:
    return fate_of("cgmes", kind, part, private)


@dataclass(eq=False)
class Shown:
    """The resources of a release: their new ids, and the private parameters of each."""

    graph: Graph
    private: tuple[str, ...]
    names: dict[str, tuple[str, ...]]
    labels: dict[str, str] = field(default_factory=dict)
    kept: set[str] = field(default_factory=set)
    """Those that keep their ids: they have no private number, and are not parts of others."""

    def of(self, name: str) -> tuple[str, ...]:
        """Return the private parameters of a resource."""
        return self.names.get(name, self.private)

    def id_of(self, name: str) -> str:
        """Return the id of a resource in the release. A private id decides nothing of it."""
        if name in self.kept:
            return name
        return str(uuid5(NAMESPACE_URL, f"gridveil:{self.labels[name]}"))


def shown(
    graph: Graph,
    private: tuple[str, ...],
    names: Mapping[str, tuple[str, ...]],
    known: Mapping[str, str],
    limits: frozenset[str],
) -> Shown:
    """Choose the resources of a release, and their new ids.

    Parameters
    ----------
    graph, private
        The model, and the private parameters.
    names
        The private parameters of elements that have fewer of them.
    known
        New ids of elements that are in the network.
    limits
        The limits that follow released capacities; other limits of elements with a private
        capacity are left out.
    """
    found = Shown(graph, private, dict(names))
    parts: dict[str, list[str]] = {}
    counts: dict[str, int] = {}
    for name in graph.names():
        kind = graph.kind(name)
        if kind in OWNED.split():
            parts.setdefault(kind, []).append(name)
        elif kind in KEPT:
            label = name
            if _fate(kind, "id", found.of(name)) is None:
                found.kept.add(name)
            else:
                counts[kind] = counts.get(kind, 0) + 1
                label = known.get(name, f"{kind}-{counts[kind]}'")
            found.labels[name] = label
    types = _types(graph)
    for kind in OWNED.split():
        if kind in _OWNERS:
            _label_owned(found, kind, parts.get(kind, []), limits, types)
        else:
            _label_used(found, kind, parts.get(kind, []))
    return found


def _types(graph: Graph) -> dict[str, list[int]]:
    """Return the types of every limit and set of limits, by their places in the files."""
    places, found = graph.order(), dict[str, list[int]]()
    for name in graph.names():
        if graph.kind(name) in (*LIMITS.split(), "VoltageLimit"):
            at = places.get(graph.reference(name, "OperationalLimitType"), -1)
            found[name] = [at]
            found.setdefault(graph.reference(name, "OperationalLimitSet"), []).append(at)
    return {name: sorted(own) for name, own in found.items()}


def _label_owned(
    found: Shown,
    kind: str,
    parts: Sequence[str],
    limits: frozenset[str],
    types: Mapping[str, list[int]],
) -> None:
    graph, groups = found.graph, dict[str, list[str]]()
    for name in parts:
        owner = graph.reference(name, *_OWNERS[kind])
        if owner not in found.labels:
            continue
        found.names[name] = found.of(owner)
        if kind in LIMITS.split() and name not in limits and _bounds_private(found, owner):
            continue
        groups.setdefault(owner, []).append(name)
    for owner, names in groups.items():
        names.sort(key=lambda name: (*_public_order(graph, name), types.get(name, [])))
        for place, name in enumerate(names, 1):
            found.labels[name] = f"{found.labels[owner]} {kind} {place}"


def _bounds_private(found: Shown, group: str) -> bool:
    """Return whether limits in a set that follow no capacity may copy a private number.

    Those of machines and loads may, and of whatever is next to a line with a private capacity.
    """
    of = group
    while found.graph.kind(of) in _OWNERS:
        of = found.graph.reference(of, *_OWNERS[found.graph.kind(of)])
    beside = found.graph.kind(of) not in BRANCHES.split()
    hides = found.private if beside else found.of(group)
    return "capacity" in hides or of not in found.kept


def _label_used(found: Shown, kind: str, parts: Sequence[str]) -> None:
    graph, wanted = found.graph, _USERS[kind]
    users: dict[str, list[str]] = {}
    for name in found.labels:
        used = graph.reference(name, wanted)
        if used and wanted in _copied(graph.kind(name), found.of(name)):
            users.setdefault(used, []).append(name)
    groups: dict[str, list[str]] = {}
    for name in parts:
        if name in users:
            first = min(found.labels[user] for user in users[name])
            groups.setdefault(first, []).append(name)
            every = {one for user in users[name] for one in found.of(user)}
            found.names[name] = tuple(one for one in found.private if one in every)
    for first, names in groups.items():
        for place, name in enumerate(names, 1):
            found.labels[name] = f"{first} {kind} {place}"


def _public_order(graph: Graph, name: str) -> tuple[float, str]:
    """Return a sort key: parts by their numbers, limits by their durations, others as in the file.

    Limits of one duration may be in the order of their values, and so may their sets: these are
    then sorted by their types, of which it is public how they are ordered.
    """
    text = next((graph.text(name, one) for one in _ORDER if graph.text(name, one)), "")
    kind = graph.reference(name, "OperationalLimitType")
    lasts = graph.text(kind, "acceptableDuration") if kind else ""
    value = text or lasts
    at = float(value) if _NUMBER.fullmatch(value) and value not in ("true", "false") else 0.0
    return at, graph.reference(kind, "limitType", "kind") + graph.reference(kind, "direction")


# -- copies ------------------------------------------------------------------------------------


def profiles(found: Shown) -> tuple[Profile, ...]:
    """Build the profiles of a release; private numbers are 0, limits of branches are 1."""
    kinds = [one for one in found.graph.profiles if one.kind]
    kinds.sort(key=lambda one: PROFILES.index(one.kind))
    authorities = list(dict.fromkeys(_authority(one) for one in kinds))
    counts: dict[str, int] = {}
    made: list[Profile] = []
    equipment: list[tuple[int, str]] = []
    for one in kinds:
        counts[one.kind] = counts.get(one.kind, 0) + 1
        at, name = authorities.index(_authority(one)) + 1, f"{one.kind}_{counts[one.kind]}"
        if one.kind == "EQ":
            equipment.append((at, name))
        needs = [other for mine, other in equipment if mine == at and one.kind in ("SSH", "TP")]
        root = ET.Element(f"{RDF}RDF")
        root.append(_head(one.root, name, at, needs))
        copies = [_copy(found, element) for element in one.root]
        root.extend(_sorted([each for each in copies if each is not None]))
        made.append(Profile(f"network_{name}.xml", one.kind, root))
    return tuple(made)


def _sorted(copies: list[ET.Element]) -> list[ET.Element]:
    """Sort by class; elements stay in the order of the file, parts of them follow their ids.

    A file may have the limits of a line in the order of their values. New ids depend on no value.
    """
    owned = OWNED.split()
    return sorted(
        copies, key=lambda one: (one.tag, identity(one) if local(one.tag) in owned else "")
    )


def _authority(profile: Profile) -> str:
    found = (one.text or "" for one in profile.root.iter(f"{MODEL}Model.modelingAuthoritySet"))
    return next(found, "")


def _head(root: ET.Element, name: str, authority: int, needs: Sequence[str]) -> ET.Element:
    found = ET.Element(f"{MODEL}FullModel", {ABOUT: _urn(name)})
    dates = (one.text or "" for one in root.iter(f"{MODEL}Model.scenarioTime"))
    date = next((one for one in dates if _DATE.fullmatch(one)), "1970-01-01T00:00:00Z")
    for part, text in (
        ("scenarioTime", date),
        ("created", date),
        ("version", "1"),
        *(("profile", uri) for uri in uris(root)),
        ("modelingAuthoritySet", f"urn:gridveil:authority:{authority}"),
    ):
        ET.SubElement(found, f"{MODEL}Model.{part}").text = text
    for other in needs:
        ET.SubElement(found, f"{MODEL}Model.DependentOn", {RESOURCE: _urn(other)})
    return found


def _urn(name: str) -> str:
    return f"urn:uuid:{uuid5(NAMESPACE_URL, f'gridveil:network_{name}')}"


def _copy(found: Shown, element: ET.Element) -> ET.Element | None:
    name, kind = identity(element), local(element.tag)
    if schema(element.tag) not in SCHEMAS or kind not in KEPT or name not in found.labels:
        return None
    own = marked(found.id_of(name))
    defined = element.get(ID) is not None
    copy = ET.Element(element.tag, {ID: own} if defined else {ABOUT: f"#{own}"})
    seen: set[str] = set()
    for one in element:
        part = column(one.tag)
        if part not in seen and _known(one.tag):
            seen.add(part)
            new = _property(found, name, kind, one)
            if new is not None:
                copy.append(new)
    return copy


def _known(tag: str) -> bool:
    owner = local(tag).rpartition(".")[0]
    return schema(tag) in SCHEMAS and _CLASSES.fullmatch(owner) is not None


def _property(found: Shown, name: str, kind: str, one: ET.Element) -> ET.Element | None:
    part, private = column(one.tag), found.of(name)
    new = ET.Element(one.tag)
    if part == "name":
        new.text = _name(found, name, one.text or "")
        return new if "name" in KEPT[kind].split() else None
    if part not in _copied(kind, private):
        rule = _fate(kind, part, private)
        if rule is None or rule.fate == "dropped" or rule.reason == REACH:
            return None  # reactive limits are written together with the released active ones
        new.text = "1.0" if kind in LIMITS.split() else "0.0"
        return new
    target = one.get(RESOURCE)
    if target is not None:
        space, _, choice = target.partition("#")
        if f"{space}#" in SCHEMAS:
            new.set(RESOURCE, target)
            return new if _CHOICE.fullmatch(choice) else None
        old = bare(target)
        if old not in found.labels:
            return None
        new.set(RESOURCE, f"#{marked(found.id_of(old))}")
        return new
    new.text = (one.text or "").strip()
    if part in ("enabled", "controlEnabled", "targetValue", "targetDeadband"):
        held = _held(found.graph, name)
        if (held or kind in _CONTROLS) and not held.endswith(".voltage"):
            new.text = "false" if part.lower().endswith("enabled") else None
    country = part.endswith("IsoCode")
    return new if (_COUNTRY if country else _NUMBER).fullmatch(new.text or "") else None


def _name(found: Shown, name: str, text: str) -> str:
    """Return a name that may be published, or the id: readers expect every element to have one."""
    return text if name in found.kept and LABEL.fullmatch(text) else found.labels[name]


def _held(graph: Graph, name: str) -> str:
    """Return the mode of a control, or of the control that a resource refers to."""
    control = graph.reference(name, "TapChangerControl", "RegulatingControl") or name
    return next((one.get(RESOURCE, "") for one in graph.properties(control, "mode")), "")
