"""The tables of `fates` for the files of operators: XIIDM (and what becomes XIIDM), PSS/E."""

from __future__ import annotations

from gridveil.grid.io.fate_words import (
    COPIES,
    DISPATCH,
    EVERY,
    NAMES,
    NOISE,
    REACH,
    REACTIVE,
    RESULTS,
    SIZE,
    STATE,
    TEXT,
    Rule,
)

_BRANCHES = "line twoWindingsTransformer threeWindingsTransformer danglingLine"
_LIMITS = "currentLimits apparentPowerLimits activePowerLimits"
_AT = "bus connectableBus node"
_ENDS = "voltageLevelId bus connectableBus node selectedOperationalLimitsGroupId"
_REGULATED = "what a phase shifter holds is often a limit: it stays at its tap in the release."
_LINE = (
    "one limit for a line: all of its sides and durations follow the released capacity by public "
    "ratios."
)

KEPT: dict[str, dict[str, str]] = {
    "powsybl": {
        "network": "caseDate forecastDistance sourceFormat minimumValidationLevel",
        "substation": "id name country geographicalTags tso",
        "voltageLevel": "id name nominalV lowVoltageLimit highVoltageLimit topologyKind fictitious",
        "busBreakerTopology": "",
        "nodeBreakerTopology": "",
        "bus": "id name fictitious",
        "busbarSection": "id name node fictitious",
        "switch": "id name kind retained open bus1 bus2 node1 node2 fictitious",
        "internalConnection": "node1 node2",
        "generator": f"id name energySource minP maxP ratedS voltageRegulatorOn targetP targetV "
        f"targetQ condenser fictitious {_AT}",
        "battery": f"id name targetP targetQ minP maxP fictitious {_AT}",
        "load": f"id name loadType p0 q0 fictitious {_AT}",
        "exponentialModel": "np nq",
        "zipModel": "c0p c1p c2p c0q c1q c2q",
        "regulatingTerminal": "id side",
        "terminalRef": "id side",
        "reactiveCapabilityCurve": "",
        "point": "p minQ maxQ",
        "minMaxReactiveLimits": "minQ maxQ",
        "shunt": f"id name sectionCount voltageRegulatorOn targetV targetDeadband fictitious {_AT}",
        "shuntLinearModel": "bPerSection gPerSection maximumSectionCount",
        "shuntNonLinearModel": "",
        "section": "b g",
        "staticVarCompensator": f"id name bMin bMax voltageSetpoint reactivePowerSetpoint "
        f"regulationMode regulating fictitious {_AT}",
        "vscConverterStation": f"id name voltageRegulatorOn lossFactor voltageSetpoint "
        f"reactivePowerSetpoint fictitious {_AT}",
        "lccConverterStation": f"id name lossFactor powerFactor fictitious {_AT}",
        "line": f"id name r x g1 b1 g2 b2 fictitious {_ENDS}",
        "twoWindingsTransformer": f"id name r x g b ratedU ratedS fictitious {_ENDS}",
        "threeWindingsTransformer": f"id name r x g b g1 b1 g2 b2 ratedU ratedS ratedU0 fictitious "
        f"{_ENDS}",
        "danglingLine": f"id name p0 q0 r x g b pairingKey generationMinP generationMaxP "
        f"generationVoltageRegulationOn generationTargetP generationTargetV generationTargetQ "
        f"fictitious {_ENDS}",
        "tieLine": "id name danglingLineId1 danglingLineId2 fictitious",
        "hvdcLine": "id name r nominalV convertersMode activePowerSetpoint maxP converterStation1 "
        "converterStation2 fictitious",
        "ratioTapChanger": "regulating lowTapPosition tapPosition targetDeadband "
        "loadTapChangingCapabilities regulationMode regulationValue targetV",
        "phaseTapChanger": "regulating lowTapPosition tapPosition targetDeadband regulationMode "
        "regulationValue loadTapChangingCapabilities",
        "step": "r x g b rho alpha",
        "operationalLimitsGroup": "id",
        **dict.fromkeys(_LIMITS.split(), "permanentLimit"),
        "temporaryLimit": "name acceptableDuration value fictitious",
    },
}

RULES: dict[str, tuple[Rule, ...]] = {
    "powsybl": (
        Rule(_BRANCHES, "name", "capacity", "dropped", NAMES),
        Rule(_BRANCHES, "id", "capacity", "rewritten", NAMES),
        Rule(_LIMITS, "permanentLimit", "capacity", "released", NOISE),
        Rule("temporaryLimit", "value", "capacity", "rewritten", _LINE),
        Rule("temporaryLimit", "name", "capacity", "rewritten", NAMES),
        Rule("operationalLimitsGroup", "id", "capacity", "rewritten", NAMES),
        Rule(
            _BRANCHES, "selectedOperationalLimitsGroupId", "capacity", "rewritten", NAMES, some=True
        ),
        Rule(
            "twoWindingsTransformer threeWindingsTransformer",
            "ratedS",
            "capacity",
            "dropped",
            COPIES,
        ),
        Rule("load danglingLine", "name", "load", "dropped", NAMES),
        Rule("load danglingLine", "id", "load", "rewritten", NAMES),
        Rule("load danglingLine", "p0", "load", "released", NOISE),
        Rule("load danglingLine", "q0", "load", "dropped", REACTIVE),
        Rule("generator", "name", "generator_limit cost", "dropped", NAMES),
        Rule("generator", "id", "generator_limit cost", "rewritten", NAMES),
        Rule("generator", "minP maxP", "generator_limit", "released", NOISE),
        Rule("generator", "ratedS", "generator_limit", "dropped", SIZE),
        Rule("minMaxReactiveLimits", "minQ maxQ", "generator_limit", "rewritten", REACH, some=True),
        Rule("point", "p minQ maxQ", "generator_limit", "rewritten", REACH, some=True),
        Rule("generator", "targetP", EVERY, "rewritten", DISPATCH),
        Rule(
            "generator",
            "targetQ",
            EVERY,
            "rewritten",
            "0 if it holds a voltage: " + RESULTS,
            some=True,
        ),
        Rule("phaseTapChanger", "regulating regulationMode", EVERY, "rewritten", _REGULATED),
        Rule("phaseTapChanger", "regulationValue targetDeadband", EVERY, "dropped", _REGULATED),
        Rule("bus", "v angle nodes", EVERY, "dropped", STATE),
        Rule(
            f"{_BRANCHES} generator battery load shunt staticVarCompensator vscConverterStation "
            "lccConverterStation",
            "p q",
            EVERY,
            "dropped",
            RESULTS,
        ),
        Rule("ratioTapChanger phaseTapChanger", "solvedTapPosition", EVERY, "dropped", RESULTS),
        Rule("shunt", "solvedSectionCount", EVERY, "dropped", RESULTS),
        Rule("network", "id", EVERY, "dropped", TEXT),
        Rule("more", "format", EVERY, "rewritten", "a release of such a file is XIIDM."),
        Rule("more", "property alias extension", EVERY, "dropped", TEXT),
        Rule(
            "substation voltageLevel bus busbarSection switch shunt staticVarCompensator tieLine "
            "hvdcLine vscConverterStation lccConverterStation battery generator load " + _BRANCHES,
            "name geographicalTags tso pairingKey",
            EVERY,
            "rewritten",
            "kept if it is a short label, else dropped: " + TEXT,
            some=True,
        ),
    ),
}
