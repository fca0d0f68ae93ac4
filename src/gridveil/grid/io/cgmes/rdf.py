"""The RDF of a CGMES model: profiles in a zip file, their resources, and references."""

from __future__ import annotations

import copy
import re
import xml.etree.ElementTree as ET
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, unquote

RDF = "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}"
MODEL = "{http://iec.ch/TC57/61970-552/ModelDescription/1#}"
CIM = ("http://iec.ch/TC57/2013/CIM-schema-cim16#", "http://iec.ch/TC57/CIM100#")
"""Schemas of CGMES 2.4.15 and 3.0."""
EXTENSIONS = ("http://entsoe.eu/CIM/SchemaExtension/3/1#", "http://iec.ch/TC57/CIM100-European#")
SCHEMAS = (*CIM, *EXTENSIONS)
ID, ABOUT, RESOURCE = f"{RDF}ID", f"{RDF}about", f"{RDF}resource"
_PREFIXES = {"rdf": RDF[1:-1], "md": MODEL[1:-1], "entsoe": EXTENSIONS[0], "eu": EXTENSIONS[1]}
_KINDS = {
    **dict.fromkeys(("EquipmentBoundary", "EquipmentBoundaryOperation"), "EQBD"),
    **dict.fromkeys(("EquipmentCore", "EquipmentOperation", "EquipmentShortCircuit"), "EQ"),
    **dict.fromkeys(("CoreEquipment-EU", "Operation-EU", "ShortCircuit-EU"), "EQ"),
    **dict.fromkeys(("SteadyStateHypothesis", "SteadyStateHypothesis-EU"), "SSH"),
    **dict.fromkeys(("TopologyBoundary",), "TPBD"),
    **dict.fromkeys(("Topology", "Topology-EU"), "TP"),
    "EquipmentBoundary-EU": "EQBD",
}
PROFILES = ("EQBD", "TPBD", "EQ", "SSH", "TP")
"""The kinds of profiles, in the order in which a release contains them."""
_PROFILE = re.compile(
    r"http://(?:entsoe\.eu/CIM/([A-Za-z]{1,40})/\d/\d|iec\.ch/TC57/ns/CIM/([A-Za-z-]{1,40})/\d\.\d)"
)
_LARGEST = 2_000_000_000
"""The largest size of a model in bytes, unpacked."""


class NotCgmes(Exception):
    """The zip file is not a CGMES model of a known version."""


@dataclass(frozen=True, eq=False)
class Profile:
    """One file of a model: name, kind (EQ, SSH, TP, EQBD, TPBD; empty: another) and RDF."""

    name: str
    kind: str
    root: ET.Element = field(repr=False)


class _Plain(ET.TreeBuilder):
    """A tree builder that refuses document type declarations, which can define entities."""

    def doctype(self, name: str, pubid: str | None, system: str | None) -> None:
        raise NotCgmes


def read_profiles(path: Path) -> tuple[Profile, ...]:
    """Read the profiles of a zip file.

    Raises
    ------
    NotCgmes
        If there is no equipment profile of CGMES 2.4.15 or 3.0 in it.
    """
    try:
        with zipfile.ZipFile(path) as packed:
            files = [one for one in packed.infolist() if one.filename.lower().endswith(".xml")]
            if sum(one.file_size for one in files) > _LARGEST:
                raise NotCgmes
            found = tuple(_profile(one.filename, packed.read(one)) for one in files)
    except (zipfile.BadZipFile, ET.ParseError, OSError, RuntimeError, ValueError, LookupError):
        raise NotCgmes from None
    if not any(one.kind == "EQ" for one in found):
        raise NotCgmes
    return found


def _profile(name: str, text: bytes) -> Profile:
    root = ET.fromstring(text, ET.XMLParser(target=_Plain()))
    known = {_KINDS.get(one.rpartition("/CIM/")[2].split("/")[0], "") for one in uris(root)} - {""}
    kind = "EQBD" if "EQBD" in known else min(known, default="")
    return Profile(name, kind, root)


def uris(root: ET.Element) -> list[str]:
    """Return the profiles that a file claims to follow, if their addresses are well formed."""
    found = (one.text or "" for one in root.iter(f"{MODEL}Model.profile"))
    return sorted({one for one in found if _PROFILE.fullmatch(one)})


def identity(element: ET.Element) -> str:
    """Return the id of the resource that an element describes, without the marks of RDF."""
    own = element.get(ID)
    return bare(element.get(ABOUT, "")) if own is None else unquote(own.removeprefix("_"))


def bare(reference: str) -> str:
    """Return the id in a reference, without a leading underscore, as pypowsybl names it."""
    return unquote(reference.partition("#")[2].removeprefix("_"))


def marked(name: str) -> str:
    """Return an id with the marks of RDF."""
    return f"_{quote(name, safe='')}"


def local(tag: str) -> str:
    """Return a name without its schema."""
    return tag.rpartition("}")[2]


def schema(tag: str) -> str:
    """Return the schema of a name."""
    return tag[1:].partition("}")[0] if tag.startswith("{") else ""


def column(tag: str) -> str:
    """Return a property without its class: ``r`` for ``ACLineSegment.r``."""
    return local(tag).rpartition(".")[2]


class Graph:
    """The profiles of a model, with its resources by id."""

    def __init__(self, profiles: Iterable[Profile]) -> None:
        self.profiles = tuple(profiles)
        self._at: dict[str, list[ET.Element]] = {}
        for profile in self.profiles:
            for element in profile.root:
                if profile.kind and schema(element.tag) in SCHEMAS:
                    self._at.setdefault(identity(element), []).append(element)

    def __contains__(self, name: str) -> bool:
        return name in self._at

    def names(self) -> Iterator[str]:
        """Yield the ids of all resources, in the order of the files."""
        yield from self._at

    def order(self) -> dict[str, int]:
        """Number the resources: profile by profile, class by class, then as in the files.

        A release contains its resources in this order, whatever new ids they have.
        """
        known = sorted(
            (one for one in self.profiles if one.kind), key=lambda one: PROFILES.index(one.kind)
        )
        found: dict[str, int] = {}
        for profile in known:
            for element in sorted(profile.root, key=lambda one: one.tag):
                if schema(element.tag) in SCHEMAS:
                    found.setdefault(identity(element), len(found))
        return found

    def without(self, names: frozenset[str]) -> Graph:
        """Return the graph without some of its resources."""
        left = []
        for one in self.profiles:
            root = ET.Element(one.root.tag, one.root.attrib)
            root.extend(each for each in one.root if identity(each) not in names)
            left.append(Profile(one.name, one.kind, root))
        return Graph(left)

    def described(self, name: str) -> Sequence[ET.Element]:
        """Return the elements that describe a resource, from all profiles."""
        return self._at.get(name, ())

    def kind(self, name: str) -> str:
        """Return the class of a resource; a profile that adds to it may name a more general one."""
        found = self.described(name)
        first = next((one for one in found if one.get(ID) is not None), found[0] if found else None)
        return "" if first is None else local(first.tag)

    def properties(self, name: str, wanted: str) -> list[ET.Element]:
        """Return all values of one property of a resource."""
        return [one for part in self.described(name) for one in part if column(one.tag) == wanted]

    def text(self, name: str, wanted: str) -> str:
        """Return the text of a property, or an empty text."""
        return next((one.text or "" for one in self.properties(name, wanted)), "").strip()

    def reference(self, name: str, *wanted: str) -> str:
        """Return the id that the first of these properties refers to, or an empty text."""
        found = (one.get(RESOURCE, "") for part in wanted for one in self.properties(name, part))
        return bare(next(found, ""))

    def copied(self) -> Graph:
        """Return a deep copy."""
        return Graph(Profile(one.name, one.kind, copy.deepcopy(one.root)) for one in self.profiles)


def write_zip(path: Path, profiles: Iterable[Profile]) -> None:
    """Write profiles as a zip file that depends on nothing else: no times, no compression."""
    for prefix, space in _PREFIXES.items():
        ET.register_namespace(prefix, space)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as packed:
        for one in profiles:
            text = ET.tostring(_indented(one.root), "unicode")
            entry = zipfile.ZipInfo(one.name, (1980, 1, 1, 0, 0, 0))
            packed.writestr(entry, f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'.encode())


def _indented(root: ET.Element) -> ET.Element:
    found = copy.deepcopy(root)
    space = next((schema(one.tag) for one in root if schema(one.tag) in CIM), CIM[0])
    ET.register_namespace("cim", space)
    ET.indent(found, "  ")
    return found
