"""Write the triangle as operators' files, with copies of its private values.

These are XIIDM, PSS/E and CGMES.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

from gridveil.auditing.transcript import Values
from gridveil.auditing.triangle_network import LINES, VALUES, reactive_loads

_VOLTAGE = 230.0
_SCHEMA = "http://www.powsybl.org/schema/iidm/1_14"

SPELLINGS: dict[str, Callable[[float], str]] = {
    "100.0": str,
    "1.00E+02": lambda value: f"{value:.17E}",
    "100": lambda value: f"{value:.12g}",
    "1e2": lambda value: f"{value:.3e}",
    "+100": lambda value: f"{value:+g}",
}


def write_xiidm(path: Path, parts: Mapping[str, Values], show: Callable[[float], str]) -> None:
    """Write the triangle as XIIDM; properties, aliases, names and results copy private values."""
    found = {**VALUES, **parts}
    draw, unit, line = (
        show if name in parts else str for name in ("load", "generator_limit", "capacity")
    )
    everything = " ".join(show(value) for values in parts.values() for value in values)
    note = f'<iidm:property name="note" value="{everything}"/>'
    limits, ohms = found["generator_limit"], _VOLTAGE**2 / 100
    units: dict[int, list[str]] = {1: [], 2: [], 3: []}
    for at, low, high in ((1, limits[0], limits[2]), (3, limits[1], limits[3])):
        units[at].append(
            f'<iidm:generator id="unit {unit(high)} {at}" energySource="OTHER" '
            f'minP="{unit(low)}" maxP="{unit(high)}" ratedS="{unit(high)}" '
            f'voltageRegulatorOn="true" targetP="{unit(low)}" targetV="{_VOLTAGE}" '
            f'bus="bus {at}" connectableBus="bus {at}" p="{unit(-low)}">{note}'
            f'<iidm:minMaxReactiveLimits minQ="{unit(-0.3 * high)}" maxQ="{unit(0.3 * high)}"/>'
            "</iidm:generator>"
        )
    for at, load, reactive in zip((2, 3), found["load"], reactive_loads(parts), strict=True):
        units[at].append(
            f'<iidm:load id="load {draw(load)} {at}" loadType="UNDEFINED" p0="{draw(load)}" '
            f'q0="{draw(reactive)}" bus="bus {at}" connectableBus="bus {at}" '
            f'p="{draw(load)}">{note}</iidm:load>'
        )
    stations = [
        f'<iidm:substation id="station {at}"><iidm:voltageLevel id="level {at}" '
        f'nominalV="{_VOLTAGE}" topologyKind="BUS_BREAKER"><iidm:busBreakerTopology>'
        f'<iidm:bus id="bus {at}" v="{_VOLTAGE}" angle="0.0"/></iidm:busBreakerTopology>'
        f"{''.join(inside)}</iidm:voltageLevel></iidm:substation>"
        for at, inside in units.items()
    ]
    lines = []
    for (a, b, x), rating in zip(LINES, found["capacity"], strict=True):
        group = "".join(
            f'<iidm:operationalLimitsGroup{side} id="DEFAULT"><iidm:apparentPowerLimits '
            f'permanentLimit="{line(rating)}"><iidm:temporaryLimit name="{line(rating)}" '
            f'acceptableDuration="600" value="{line(1.25 * rating)}"/></iidm:apparentPowerLimits>'
            f"</iidm:operationalLimitsGroup{side}>"
            for side in (1, 2)
        )
        ends = "".join(
            f'voltageLevelId{side} ="level {at}" bus{side}="bus {at}" '
            f'connectableBus{side}="bus {at}" selectedOperationalLimitsGroupId{side}="DEFAULT" '
            for side, at in ((1, a), (2, b))
        )
        lines.append(
            f'<iidm:line id="line {line(rating)} {a}-{b}" r="{0.01 * ohms}" x="{x * ohms}" '
            f'g1="0.0" b1="0.0" g2="0.0" b2="0.0" {ends} p1="{line(rating)}">{note}{group}'
            "</iidm:line>"
        )
    path.write_text(
        f'<?xml version="1.0" encoding="UTF-8"?>\n<iidm:network xmlns:iidm="{_SCHEMA}" '
        'id="triangle" caseDate="2030-01-01T00:00:00.000Z" forecastDistance="0" '
        'sourceFormat="test" minimumValidationLevel="STEADY_STATE_HYPOTHESIS">'
        f"{''.join(stations)}{''.join(lines)}</iidm:network>\n",
        encoding="utf-8",
    )


def write_raw(path: Path, parts: Mapping[str, Values], show: Callable[[float], str]) -> None:
    """Write the triangle as a PSS/E case; ratings, names and comments copy private values."""
    found = {**VALUES, **parts}
    draw, unit, line = (
        show if name in parts else str for name in ("load", "generator_limit", "capacity")
    )
    note = " ".join(show(value) for values in parts.values() for value in values)
    limits = found["generator_limit"]
    lines = [f"0, 100.0, 33, 0, 0, 60.0 / {note}", note, note]
    lines += [
        f"{at}, 'BUS {at}', {_VOLTAGE}, {kind}, 1, 1, 1, 1.0, 0.0"
        for at, kind in ((1, 3), (2, 1), (3, 2))
    ]
    lines += ["0 / END OF BUS"]
    lines += [
        f"{at}, '1', 1, 1, 1, {draw(load)}, {draw(reactive)}, 0, 0, 0, 0 / {note}"
        for at, load, reactive in zip((2, 3), found["load"], reactive_loads(parts), strict=True)
    ]
    lines += ["0 / END OF LOAD", "0 / END OF FIXED SHUNT"]
    lines += [
        f"{at}, '1', {unit(low)}, 0, {unit(0.3 * high)}, {unit(-0.3 * high)}, 1.0, 0, "
        f"{unit(high)}, 0, 1, 0, 0, 1, 1, 100, {unit(high)}, {unit(low)}"
        for at, low, high in ((1, limits[0], limits[2]), (3, limits[1], limits[3]))
    ]
    lines += ["0 / END OF GENERATOR"]
    lines += [
        f"{a}, {b}, '1', 0.01, {x}, 0, {line(rating)}, {line(rating)}, {line(1.25 * rating)}, "
        f"0, 0, 0, 0, 1 / {note}"
        for (a, b, x), rating in zip(LINES, found["capacity"], strict=True)
    ]
    # A rating of 0 means no limit.
    lines += ["1, 3, '2', 0.1, 9.0, 0, 0, 0, 0, 0, 0, 0, 0, 1", "0 / END OF BRANCH"]
    path.write_text("\n".join([*lines, "0 / END OF TRANSFORMER", "Q", ""]), encoding="utf-8")


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
