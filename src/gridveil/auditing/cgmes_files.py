"""Write the small network of the replays as a CGMES model, with copies of its private values."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

from gridveil.auditing.transcript import Values
from gridveil.auditing.triangle import LINES, VALUES, reactive_loads

_VOLTAGE = 230.0
_CIM = "http://iec.ch/TC57/2013/CIM-schema-cim16#"
_ENTSOE = "http://entsoe.eu/CIM/SchemaExtension/3/1#"
_OPEN = (
    f'<?xml version="1.0" encoding="UTF-8"?>\n<rdf:RDF xmlns:entsoe="{_ENTSOE}" '
    f'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:cim="{_CIM}" '
    'xmlns:md="http://iec.ch/TC57/61970-552/ModelDescription/1#">'
)
_PROFILES = {
    "EQ": "EquipmentCore/3/1",
    "SSH": "SteadyStateHypothesis/1/1",
    "TP": "Topology/4/1",
    "SV": "StateVariables/4/1",
}


class _Model:
    """Profiles that are being built: a resource is defined in one, and others add to it."""

    def __init__(self, note: str) -> None:
        self._note = note
        self._texts: dict[str, list[str]] = {profile: [] for profile in _PROFILES}

    def put(self, profile: str, kind: str, name: str, **says: str | float) -> None:
        """Add a resource; values that start with # refer to others, those with . are choices."""
        own = "rdf:ID" if profile in ("EQ", "SV") or kind == "TopologicalNode" else "rdf:about"
        mark = "_" if own == "rdf:ID" else "#_"
        lines = [f'<cim:{kind} {own}="{mark}{name}">']
        if own == "rdf:ID" and profile != "SV":
            lines.append(f"<cim:IdentifiedObject.name>{name}</cim:IdentifiedObject.name>")
            text = f"IdentifiedObject.description>{self._note}</cim:IdentifiedObject.description>"
            lines.append(f"<cim:{text}")
        for column, value in says.items():
            space, schema = ("entsoe", _ENTSOE) if "entsoe" in column else ("cim", _CIM)
            tag = f"{space}:{column.removeprefix('entsoe__').replace('__', '.')}"
            if str(value).startswith("#"):
                lines.append(f'<{tag} rdf:resource="#_{str(value)[1:]}"/>')
            elif str(value).startswith("."):
                lines.append(f'<{tag} rdf:resource="{schema}{str(value)[1:]}"/>')
            else:
                lines.append(f"<{tag}>{value}</{tag}>")
        self._texts[profile].append("".join([*lines, f"</cim:{kind}>"]))

    def equipment(self, kind: str, name: str, places: tuple[int, ...], **says: str | float) -> None:
        """Add equipment with a terminal at each of these buses."""
        self.put("EQ", kind, name, **says)
        for end, place in enumerate(places, 1):
            terminal = f"{name}-end{end}"
            known = {"Terminal__ConductingEquipment": f"#{name}"}
            self.put("EQ", "Terminal", terminal, **known, ACDCTerminal__sequenceNumber=end)
            self.put("SSH", "Terminal", terminal, ACDCTerminal__connected="true")
            self.put("TP", "Terminal", terminal, Terminal__TopologicalNode=f"#bus{place}")
            flow = {"SvPowerFlow__p": self._note.split(" ")[0]}
            self.put("SV", "SvPowerFlow", f"{terminal}-flow", **flow)

    def write(self, path: Path) -> None:
        """Write all profiles to a zip file."""
        with zipfile.ZipFile(path, "w") as packed:
            for profile, known in _PROFILES.items():
                head = (
                    f'<md:FullModel rdf:about="urn:uuid:{profile}">'
                    "<md:Model.scenarioTime>2030-01-01T00:00:00Z</md:Model.scenarioTime>"
                    "<md:Model.created>2030-01-01T00:00:00Z</md:Model.created>"
                    "<md:Model.version>1</md:Model.version>"
                    "<md:Model.modelingAuthoritySet>operator</md:Model.modelingAuthoritySet>"
                    f"<md:Model.description>{self._note}</md:Model.description>"
                    f"<md:Model.profile>http://entsoe.eu/CIM/{known}</md:Model.profile>"
                    "</md:FullModel>"
                )
                body = "".join(self._texts[profile])
                packed.writestr(f"triangle_{profile}.xml", f"{_OPEN}{head}{body}</rdf:RDF>\n")


def write_cgmes(path: Path, parts: Mapping[str, Values], show: Callable[[float], str]) -> None:
    """Write the triangle as CGMES; ids, names, descriptions and states copy private values."""
    found = {**VALUES, **parts}
    draw, unit, line = (
        show if name in parts else str for name in ("load", "generator_limit", "capacity")
    )
    model = _Model(" ".join(show(value) for values in parts.values() for value in values))
    model.put("EQ", "GeographicalRegion", "region")
    model.put("EQ", "SubGeographicalRegion", "part", SubGeographicalRegion__Region="#region")
    model.put("EQ", "BaseVoltage", "volts", BaseVoltage__nominalVoltage=_VOLTAGE)
    for kind, lasts in (("patl", 0), ("tatl", 600)):
        model.put(
            "EQ", "OperationalLimitType", kind,
            OperationalLimitType__acceptableDuration=lasts,
            entsoe__OperationalLimitType__limitType=f".LimitTypeKind.{kind}",
            OperationalLimitType__direction=".OperationalLimitDirectionKind.absoluteValue",
        )  # fmt: skip
    for at in (1, 2, 3):
        model.put("EQ", "Substation", f"station{at}", Substation__Region="#part")
        model.put(
            "EQ", "VoltageLevel", f"level{at}",
            VoltageLevel__Substation=f"#station{at}", VoltageLevel__BaseVoltage="#volts",
        )  # fmt: skip
        model.put(
            "TP", "TopologicalNode", f"bus{at}",
            TopologicalNode__BaseVoltage="#volts",
            TopologicalNode__ConnectivityNodeContainer=f"#level{at}",
        )  # fmt: skip
    for at, load, reactive in zip((2, 3), found["load"], reactive_loads(parts), strict=True):
        name = f"load-{_id(draw(load))}-{at}"
        model.equipment("EnergyConsumer", name, (at,), Equipment__EquipmentContainer=f"#level{at}")
        powers = {"EnergyConsumer__p": draw(load), "EnergyConsumer__q": draw(reactive)}
        model.put("SSH", "EnergyConsumer", name, **powers)
    limits = found["generator_limit"]
    for at, low, high in ((1, limits[0], limits[2]), (3, limits[1], limits[3])):
        _machine(model, at, low, high, unit)
    for (a, b, x), rating in zip(LINES, found["capacity"], strict=True):
        _line(model, (a, b), x, rating, line)
    model.write(path)


def _machine(model: _Model, at: int, low: float, high: float, show: Callable[[float], str]) -> None:
    name = f"unit-{_id(show(high))}-{at}"
    model.equipment(
        "SynchronousMachine", name, (at,),
        Equipment__EquipmentContainer=f"#level{at}",
        RotatingMachine__GeneratingUnit=f"#{name}-own",
        RegulatingCondEq__RegulatingControl=f"#{name}-control",
        SynchronousMachine__minQ=show(-0.3 * high),
        SynchronousMachine__maxQ=show(0.3 * high),
        RotatingMachine__ratedS=show(high),
        SynchronousMachine__type=".SynchronousMachineKind.generator",
    )  # fmt: skip
    model.put(
        "EQ", "ThermalGeneratingUnit", f"{name}-own",
        Equipment__EquipmentContainer=f"#station{at}",
        GeneratingUnit__minOperatingP=show(low),
        GeneratingUnit__maxOperatingP=show(high),
        GeneratingUnit__nominalP=show(high),
        GeneratingUnit__initialP=show(low),
    )  # fmt: skip
    model.put(
        "EQ", "RegulatingControl", f"{name}-control",
        RegulatingControl__Terminal=f"#{name}-end1",
        RegulatingControl__mode=".RegulatingControlModeKind.voltage",
    )  # fmt: skip
    model.put(
        "SSH", "RegulatingControl", f"{name}-control",
        RegulatingControl__enabled="true", RegulatingControl__targetValue=_VOLTAGE,
        RegulatingControl__discrete="false",
    )  # fmt: skip
    model.put(
        "SSH", "SynchronousMachine", name,
        RotatingMachine__p=show(-low), RotatingMachine__q="0",
        RegulatingCondEq__controlEnabled="true",
        SynchronousMachine__operatingMode=".SynchronousMachineOperatingMode.generator",
        SynchronousMachine__referencePriority="1" if at == 1 else "0",
    )  # fmt: skip


def _line(
    model: _Model, ends: tuple[int, int], x: float, rating: float, show: Callable[[float], str]
) -> None:
    name, ohms = f"line-{_id(show(rating))}-{ends[0]}-{ends[1]}", _VOLTAGE**2 / 100
    model.equipment(
        "ACLineSegment", name, ends,
        ConductingEquipment__BaseVoltage="#volts",
        Equipment__EquipmentContainer=f"#{name}-route",
        ACLineSegment__r=0.01 * ohms, ACLineSegment__x=x * ohms, ACLineSegment__bch="0",
        Conductor__length=show(rating),
    )  # fmt: skip
    model.put("EQ", "Line", f"{name}-route", Line__Region="#part")
    for end in (1, 2):
        group = f"{name}-set{end}"
        own = {"OperationalLimitSet__Terminal": f"#{name}-end{end}"}
        model.put("EQ", "OperationalLimitSet", group, **own)
        for kind, value in (("patl", rating), ("tatl", 1.25 * rating)):
            model.put(
                "EQ", "ApparentPowerLimit", f"{group}-{kind}-{_id(show(rating))}",
                OperationalLimit__OperationalLimitSet=f"#{group}",
                OperationalLimit__OperationalLimitType=f"#{kind}",
                ApparentPowerLimit__value=show(value),
            )  # fmt: skip


def _id(shown: str) -> str:
    return shown.replace("+", "p")
