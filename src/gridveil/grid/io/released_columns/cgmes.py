"""Which columns of CGMES a release keeps; classes count as tables, and properties as columns."""

from __future__ import annotations

from gridveil.grid.io.released_columns.reasons import (
    COPIES,
    DISPATCH,
    EVERY,
    FACTOR,
    LOADS,
    MADE,
    NAMES,
    NOISE,
    REACH,
    RESULTS,
    SIZE,
    TEXT,
    Rule,
)

BRANCHES = "ACLineSegment SeriesCompensator EquivalentBranch PowerTransformer"
LOAD_CLASSES = (
    "EnergyConsumer ConformLoad NonConformLoad StationSupply AsynchronousMachine EnergySource "
    "EquivalentInjection"
)
MACHINES = "SynchronousMachine ExternalNetworkInjection EquivalentInjection"
LIMITS = "CurrentLimit ApparentPowerLimit ActivePowerLimit"
UNITS = (
    "GeneratingUnit ThermalGeneratingUnit HydroGeneratingUnit NuclearGeneratingUnit "
    "SolarGeneratingUnit WindGeneratingUnit"
)
_SWITCHES = (
    "Switch Breaker Disconnector LoadBreakSwitch ProtectedSwitch GroundDisconnector Jumper Fuse"
)
_AT = "name EquipmentContainer BaseVoltage inService"
_HELD = "RegulatingControl controlEnabled"
_TAPS = (
    "name TransformerEnd lowStep highStep normalStep neutralStep neutralU ltcFlag step "
    "controlEnabled TapChangerControl"
)
_CONTROL = "name Terminal mode discrete enabled targetDeadband targetValue "
_CONTROL += "targetValueUnitMultiplier"
_CURVE = "InitialReactiveCapabilityCurve"
_POINT = "r x g b step ratio"
_NODE = "name ConnectivityNodeContainer boundaryPoint fromEndIsoCode toEndIsoCode"
_ONE = (
    "one limit for a line: all of its sides and durations follow the released capacity by public "
    "ratios, 1 if none is given."
)
_ONLY_VOLTAGE = "what a control holds beside a voltage is often a limit or a result: it is off."
_FAR = " Of those that may regulate it is generation, which is public and stays."
_FAR_Q = _FAR[:-1] + ", or 0 if they do."
_BOUNDS = "dropped if they are those of a machine or load, whose private numbers they may copy."
_PARTS = "other parts of the private load, or near a multiple of it."
_LENGTH = "lengths tell the rating of a known type."
_HEAD = "kept if it is a date or a known profile, else dropped: " + TEXT
_OWN = "ids and names of parts follow from the element that they belong to: " + NAMES

OWNED = f"Terminal OperationalLimitSet {LIMITS} VoltageLimit PowerTransformerEnd RatioTapChanger "
OWNED += (
    "PhaseTapChangerLinear PhaseTapChangerSymmetrical PhaseTapChangerAsymmetrical "
    "PhaseTapChangerTabular RatioTapChangerTable PhaseTapChangerTable RatioTapChangerTablePoint "
    "PhaseTapChangerTablePoint TapChangerControl RegulatingControl ReactiveCapabilityCurve "
    f"CurveData {UNITS} OperationalLimitType LoadResponseCharacteristic "
    "NonlinearShuntCompensatorPoint"
)
"""Classes whose resources are parts of other elements."""

KEPT: dict[str, str] = {
    "FullModel": "profile scenarioTime",
    "GeographicalRegion": "name",
    "SubGeographicalRegion": "name Region",
    "Substation": "name Region",
    "BaseVoltage": "name nominalVoltage",
    "VoltageLevel": "name lowVoltageLimit highVoltageLimit Substation BaseVoltage",
    "Bay": "name VoltageLevel",
    "Line": "name Region",
    "ConnectivityNode": f"{_NODE} TopologicalNode",
    "TopologicalNode": f"{_NODE} BaseVoltage",
    "BoundaryPoint": "name ConnectivityNode fromEndIsoCode toEndIsoCode isDirectCurrent",
    "BusbarSection": _AT,
    "Junction": _AT,
    **dict.fromkeys(_SWITCHES.split(), f"{_AT} normalOpen open retained"),
    "Equipment": "inService",
    "Terminal": "name ConductingEquipment sequenceNumber ConnectivityNode TopologicalNode "
    "connected phases",
    "ACLineSegment": f"{_AT} r x gch bch r0 x0 g0ch b0ch length",
    "SeriesCompensator": f"{_AT} r x r0 x0",
    "EquivalentBranch": f"{_AT} r x r21 x21",
    "PowerTransformer": _AT,
    "PowerTransformerEnd": "name PowerTransformer Terminal BaseVoltage endNumber r x g b r0 x0 g0 "
    "b0 ratedU ratedS connectionKind phaseAngleClock grounded",
    "RatioTapChanger": f"{_TAPS} stepVoltageIncrement tculControlMode RatioTapChangerTable",
    "PhaseTapChangerLinear": f"{_TAPS} stepPhaseShiftIncrement xMin xMax",
    "PhaseTapChangerSymmetrical": f"{_TAPS} voltageStepIncrement xMin xMax",
    "PhaseTapChangerAsymmetrical": f"{_TAPS} voltageStepIncrement windingConnectionAngle xMin xMax",
    "PhaseTapChangerTabular": f"{_TAPS} PhaseTapChangerTable",
    "RatioTapChangerTable": "name",
    "PhaseTapChangerTable": "name",
    "RatioTapChangerTablePoint": f"{_POINT} RatioTapChangerTable",
    "PhaseTapChangerTablePoint": f"{_POINT} angle PhaseTapChangerTable",
    "TapChangerControl": _CONTROL,
    "RegulatingControl": _CONTROL,
    "OperationalLimitSet": "name Terminal Equipment",
    "OperationalLimitType": "name direction limitType kind acceptableDuration isInfiniteDuration",
    **dict.fromkeys(
        LIMITS.split(), "name value normalValue OperationalLimitSet OperationalLimitType"
    ),
    "VoltageLimit": "name value normalValue OperationalLimitSet OperationalLimitType",
    "EnergyConsumer": f"{_AT} p q pfixed qfixed LoadResponse",
    "ConformLoad": f"{_AT} p q pfixed qfixed LoadResponse",
    "NonConformLoad": f"{_AT} p q pfixed qfixed LoadResponse",
    "StationSupply": f"{_AT} p q pfixed qfixed LoadResponse",
    "AsynchronousMachine": f"{_AT} {_HELD} p q ratedU asynchronousMachineType",
    "EnergySource": f"{_AT} activePower reactivePower nominalVoltage",
    "LoadResponseCharacteristic": "name exponentModel pConstantCurrent pConstantImpedance "
    "pConstantPower pVoltageExponent qConstantCurrent qConstantImpedance qConstantPower "
    "qVoltageExponent",
    "EquivalentInjection": f"{_AT} p q minP maxP minQ maxQ regulationCapability regulationStatus "
    "regulationTarget",
    "ExternalNetworkInjection": f"{_AT} {_HELD} p q minP maxP minQ maxQ referencePriority",
    "SynchronousMachine": f"{_AT} {_HELD} GeneratingUnit {_CURVE} p q minQ "
    "maxQ ratedS ratedU type operatingMode referencePriority",
    **dict.fromkeys(
        UNITS.split(),
        "name EquipmentContainer inService minOperatingP maxOperatingP initialP nominalP normalPF",
    ),
    "ReactiveCapabilityCurve": "name curveStyle xUnit y1Unit y2Unit",
    "CurveData": "Curve xvalue y1value y2value",
    "LinearShuntCompensator": f"{_AT} {_HELD} nomU bPerSection gPerSection maximumSections "
    "normalSections sections",
    "NonlinearShuntCompensator": f"{_AT} {_HELD} nomU maximumSections normalSections sections",
    "NonlinearShuntCompensatorPoint": "NonlinearShuntCompensator sectionNumber b g",
    "EquivalentShunt": f"{_AT} b g",
    "StaticVarCompensator": f"{_AT} {_HELD} capacitiveRating inductiveRating slope sVCControlMode "
    "voltageSetPoint",
}

KEPT = {name: f"id {columns}" for name, columns in KEPT.items()}
_NAMED = [name for name, columns in KEPT.items() if "name" in columns.split()]
_LOADS = "EnergyConsumer ConformLoad NonConformLoad StationSupply"
_DRAWN = LOAD_CLASSES.replace(" EquivalentInjection", "")

RULES: tuple[Rule, ...] = (
    Rule(f"{BRANCHES} Line", "id name", "capacity", "rewritten", NAMES),
    Rule(LIMITS, "value normalValue", "capacity", "released", NOISE + " " + _ONE),
    Rule(LIMITS, "value normalValue", "load generator_limit", "rewritten", _BOUNDS, some=True),
    Rule("PowerTransformerEnd", "ratedS", "capacity", "dropped", COPIES),
    Rule("ACLineSegment", "length", "capacity", "dropped", _LENGTH),
    Rule(LOAD_CLASSES, "id name", "load", "rewritten", NAMES),
    Rule(_DRAWN, "p", "load", "released", LOADS),
    Rule(_DRAWN, "q", "load", "rewritten", FACTOR),
    Rule("EquivalentInjection", "p", "load", "released", LOADS + _FAR),
    Rule("EquivalentInjection", "q", "load", "rewritten", FACTOR + _FAR_Q),
    Rule(LOAD_CLASSES, "q", "reactive_load", "released", LOADS),
    Rule(_LOADS, "pfixed", "load", "released", LOADS),
    Rule(_LOADS, "qfixed", "load", "rewritten", FACTOR),
    Rule(_LOADS, "qfixed", "reactive_load", "released", LOADS),
    Rule("EnergySource", "activePower", "load", "released", LOADS),
    Rule("EnergySource", "reactivePower", "load", "rewritten", FACTOR),
    Rule("EnergySource", "reactivePower", "reactive_load", "released", LOADS),
    Rule("EquivalentInjection", "minP maxP minQ maxQ", "load", "dropped", _PARTS),
    Rule(MACHINES, "id name", "generator_limit cost", "rewritten", NAMES),
    Rule(UNITS, "minOperatingP maxOperatingP", "generator_limit", "released", NOISE),
    Rule("ExternalNetworkInjection", "minP maxP", "generator_limit", "released", NOISE),
    Rule("EquivalentInjection", "minP maxP", "generator_limit", "released", NOISE),
    Rule(MACHINES, "minQ maxQ", "generator_limit", "rewritten", REACH),
    Rule("SynchronousMachine", "ratedS", "generator_limit", "dropped", SIZE),
    Rule("SynchronousMachine", _CURVE, "generator_limit", "dropped", REACH),
    Rule("CurveData", "Curve xvalue y1value y2value", "generator_limit", "dropped", REACH),
    Rule(UNITS, "nominalP", "generator_limit", "dropped", SIZE),
    Rule(UNITS, "normalPF", "generator_limit", "dropped", MADE),
    Rule("SynchronousMachine ExternalNetworkInjection", "p", EVERY, "rewritten", DISPATCH),
    Rule("EquivalentInjection", "p", EVERY, "rewritten", DISPATCH, some=True),
    Rule(UNITS, "initialP", EVERY, "rewritten", DISPATCH),
    Rule(
        "SynchronousMachine ExternalNetworkInjection",
        "q",
        EVERY,
        "rewritten",
        "0 if it holds a voltage: " + RESULTS,
    ),
    Rule("EquivalentInjection", "q", EVERY, "rewritten", RESULTS, some=True),
    Rule(
        "TapChangerControl RegulatingControl",
        "enabled targetValue targetDeadband",
        EVERY,
        "rewritten",
        _ONLY_VOLTAGE,
        some=True,
    ),
    Rule(OWNED, "id name", EVERY, "rewritten", _OWN),
    Rule(
        " ".join(name for name in _NAMED if name not in OWNED.split()),
        "name",
        EVERY,
        "rewritten",
        "kept if it is a short label, else its id: " + TEXT,
        some=True,
    ),
    Rule("FullModel", "profile scenarioTime", EVERY, "rewritten", _HEAD, some=True),
    Rule("FullModel", "id created version DependentOn modelingAuthoritySet", EVERY, "rewritten",
         "numbers and ids of the release."),
    Rule("FullModel", "description Supersedes", EVERY, "dropped", TEXT),
    Rule("more", "SvVoltage SvPowerFlow SvTapStep SvShuntCompensatorSections SvStatus "
         "TopologicalIsland", EVERY, "dropped", RESULTS),
)  # fmt: skip
